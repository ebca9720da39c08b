"""Actions: named pieces of work on the plant that a step can ask for, and how they can fail."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError

from baton.application.control import Control, Timekeeper
from baton.domain.shared.action_signals import ActionSignals

ActionBody = Callable[[Control, Timekeeper, Mapping[str, Any]], Awaitable[Mapping[str, JsonValue]]]
"""The body of an action: it works the plant through the given control port and clock, and returns a JSON object. Its
parameters are plain JSON data: lists, objects, texts, numbers. Whatever it returns is a success; a soft failure is part of
the result. It refuses by raising ActionRefusedError before its first write. When cancelled it stops what it started, and
lets the cancellation pass."""

B = TypeVar("B", bound=ActionBody)
_OBJECT: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def touches(
    *,
    writes: Iterable[str] = (),
    reads: Iterable[str] = (),
    derived_writes: Callable[[Mapping[str, Any]], Iterable[str]] | None = None,
) -> Callable[[B], B]:
    """Declare which parameters of an action hold addresses: those it writes to, at the address or below it, and those it
    only reads. `derived_writes` returns further addresses that follow from the parameters, such as a neighbouring device.
    A parameter may hold one address or a list of them. Whose assets own what is written is judged before the conduct starts;
    an action that declares nothing counts as a write to a signal that nobody owns."""

    def declare(body: B) -> B:
        body.signals = ActionSignals(tuple(writes), tuple(reads), derived_writes)  # type: ignore[attr-defined]
        return body

    return declare


def declared_signals(body: ActionBody) -> ActionSignals | None:
    """Return what an action declares to touch; None where it declares nothing."""
    return getattr(body, "signals", None)


class UnknownActionError(Exception):
    """No action has this name here."""


class ActionRefusedError(Exception):
    """The action was not begun: nothing was written."""


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

    def body_of(self, name: str) -> ActionBody:
        """Return the body of an action; raise UnknownActionError where there is none."""


async def perform(
    actions: Actions, name: str, params: Mapping[str, object], control: Control, time: Timekeeper, ceiling: float
) -> dict[str, JsonValue]:
    """Run an action, for so many seconds at most, and return its result."""
    body = actions.body_of(name)
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
