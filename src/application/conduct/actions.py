"""Actions: named pieces of work on the plant that a step can ask for, how they can fail, and how one is found again."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Protocol, TypeVar, runtime_checkable
from uuid import UUID

from pydantic import JsonValue, TypeAdapter, ValidationError

from baton.application.control import Control, Fence, Timekeeper, always_open
from baton.domain.shared.action_signals import ActionForecast, ActionSignals
from baton.domain.step.plan_steps import PlanNews
from baton.domain.step.results import Measured

ActionBody = Callable[[Control, Timekeeper, Mapping[str, Any]], Awaitable[Mapping[str, JsonValue]]]
"""The body of an action: it works the plant through the given control port and clock, and returns a JSON object. Its
parameters are plain JSON data: lists, objects, texts, numbers. Whatever it returns is a success; a soft failure is part of
the result. It refuses by raising ActionRefusedError before its first write. When cancelled it stops what it started, and
lets the cancellation pass."""

Token = Mapping[str, JsonValue]
"""Plain data that an action needs to find what it began, kept in the ledger from before it is begun."""


class Wish(Enum):
    """What the record asks of an action under way."""

    CONTINUE = auto()
    HOLD = auto()  # pause where that does no harm; an action that cannot pause continues to its end
    STOP = auto()  # end early, as a success


def always_continue() -> Wish:
    """Return the wish of a record that asks for nothing."""
    return Wish.CONTINUE


def tell_nobody(news: PlanNews) -> None:
    """Tell news of a plan to nobody."""


@dataclass(frozen=True, kw_only=True)
class ActionCall:
    """One call of an action that can be found again: under this key it is begun once, however often it is asked for."""

    key: UUID
    params: Mapping[str, Any]
    control: Control
    time: Timekeeper
    fence: Fence = always_open  # checked right before anything is sent elsewhere than through `control`
    token: Token = field(default_factory=dict)
    pinned: str | None = None  # the digest of what was known of the action when the steps were pinned
    wish: Callable[[], Wish] = always_continue
    tell: Callable[[PlanNews], None] = tell_nobody  # takes what was heard of a Bluesky plan that is waited for


@dataclass(frozen=True)
class NotBegun:
    """The certainty that nothing was begun under a key, and the token to begin it with."""

    token: Token = field(default_factory=dict)


@dataclass(frozen=True)
class ActionResult:
    """The result of an action that can be found again, and the numbers in it that count as measured."""

    data: Mapping[str, JsonValue] = field(default_factory=dict)
    measurements: tuple[Measured, ...] = ()


@runtime_checkable
class FindableAction(Protocol):
    """An action whose work runs elsewhere and outlives the worker: it is begun, and then collected by any worker. Everything
    but the first submission of a key may be repeated, in any process."""

    async def submit(self, call: ActionCall) -> str:
        """Begin the work and return its id. The fence is checked right before; where it raises, nothing begins. Raises
        ActionRefusedError where nothing was begun, and ActionOutcomeUnknown where nobody can tell."""

    async def find(self, call: ActionCall) -> str | NotBegun | None:
        """Return the id of the work begun under the key, running or ended; NotBegun where it is certain that none was begun
        and none will be; None where nobody can tell, so that the outcome is unknown."""

    async def collect(self, call: ActionCall, job_id: str) -> ActionResult:
        """Wait for the end and return the result. Being cancelled does not end the work. Raises ActionFailedError,
        ActionOutcomeUnknown, and ActionHeld once the work has paused because a hold was wished for."""

    async def stop(self, call: ActionCall, job_id: str) -> None:
        """End the work at once, and return when it has ended. Raises ActionOutcomeUnknown where nobody can tell."""


@runtime_checkable
class PreparedAction(FindableAction, Protocol):
    """An action that makes ready before it is begun, so that the ledger can keep what it is found by."""

    async def prepare(self, call: ActionCall) -> Token:
        """Return the token of a submission; nothing has begun. Raises ActionRefusedError."""


@runtime_checkable
class HoldableAction(FindableAction, Protocol):
    """An action whose work can pause and continue."""

    async def resume(self, call: ActionCall, job_id: str) -> None:
        """Have paused work continue; do nothing where it is not paused."""


B = TypeVar("B", bound=ActionBody)
_OBJECT: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def touches(
    *,
    writes: Iterable[str] = (),
    reads: Iterable[str] = (),
    derived_writes: Callable[[Mapping[str, Any]], Iterable[str]] | None = None,
    rehearse: Callable[[Mapping[str, Any]], ActionForecast] | None = None,
    parameters: Callable[[], Mapping[str, Any]] | None = None,
) -> Callable[[B], B]:
    """Declare which parameters of an action hold addresses: those it writes to, at the address or below it, and those it
    only reads. `derived_writes` returns further addresses that follow from the parameters, such as a neighbouring device.
    A parameter may hold one address or a list of them. Whose assets own what is written is judged before the conduct starts;
    an action that declares nothing counts as a write to a signal that nobody owns. `rehearse` returns what the action would
    do, without doing it, or raises ActionRefusedError; it is quick, and asks no control system. `parameters` returns the
    JSON Schema of the parameters, such as `model_json_schema` of a pydantic model."""

    def forecast(params: Mapping[str, Any]) -> ActionForecast:
        assert rehearse is not None, "it is asked only where it is declared"
        try:
            return rehearse(params)
        except ActionRefusedError as error:
            return ActionForecast(refusal=(type(error).__name__, str(error), error.facts))

    def declare(body: B) -> B:
        said = None if rehearse is None else forecast
        signals = ActionSignals(tuple(writes), tuple(reads), derived_writes, said, parameters, inspect.getdoc(body))
        body.signals = signals  # type: ignore[attr-defined]
        return body

    return declare


def declared_signals(body: "ActionBody | FindableAction") -> ActionSignals | None:
    """Return what an action declares to touch; None where it declares nothing."""
    return getattr(body, "signals", None)


class UnknownActionError(Exception):
    """No action has this name here."""


class FactualError(Exception):
    """An error with facts for programs."""

    def __init__(self, message: str = "", facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.facts = dict(facts or {})


class ActionRefusedError(FactualError):
    """The action was not begun: nothing was written."""


class ActionFailedError(FactualError):
    """The action was begun, and ended without success."""


class ActionOutcomeUnknown(FactualError):
    """The action may have run, and nobody can tell how it ended. The record uses this class name as its label."""


class ActionHeld(Exception):
    """The action has paused because a hold was wished for, and is found again when that is over."""


class InvalidActionParametersError(ActionRefusedError):
    """The action does not accept these parameters."""


class UnboundedAcquisitionError(ActionRefusedError):
    """The acquisition would never end, because nothing says how often to repeat it."""


class UnwiredExternalTriggerError(ActionRefusedError):
    """The acquisition would wait for an external trigger whose source is not named."""


class ActionTimeoutError(Exception):
    """The action took longer than ACTION_TIMEOUT_SECONDS, and was stopped."""


class ActionResultError(Exception):
    """The action ran, but returned no JSON object."""


class Actions(Protocol):
    """The actions of a deployment."""

    def body_of(self, name: str) -> ActionBody | FindableAction:
        """Return the body of an action, or one that can be found again; raise UnknownActionError where there is none."""


async def perform(
    actions: Actions, name: str, params: Mapping[str, object], control: Control, time: Timekeeper, ceiling: float
) -> dict[str, JsonValue]:
    """Run an action, for so many seconds at most, and return its result."""
    body = actions.body_of(name)
    assert not isinstance(body, FindableAction), "an action that can be found again is submitted and collected"
    try:
        async with asyncio.timeout(ceiling) as limit:
            result = await body(control, time, params)
    except TimeoutError:
        if limit.expired():
            detail = f"The action {name} was stopped after {ceiling:g} s, the longest it may take."
            raise ActionTimeoutError(detail) from None
        raise
    try:
        return _OBJECT.validate_python(dict(result))
    except (TypeError, ValueError, ValidationError) as error:
        raise ActionResultError(f"The action {name} returned {type(result).__name__}, not a JSON object.") from error
