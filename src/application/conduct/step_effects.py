"""What each kind of step does to the plant, through the ports; the ledger is not its affair."""

import asyncio
import math
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Generic, TypeVar

from baton.application.clock import Timekeeper
from baton.application.conduct.actions import Actions, perform
from baton.application.control import Control, ControlError, Fence, Reading, Witness, always_open
from baton.domain.operation.conduct.actuation import ActuationKind, DeclaredRoute, touched_kind
from baton.domain.operation.conduct.messages import WRITE_TIMEOUT
from baton.domain.operation.conduct.step_values import (
    GOOD,
    Memory,
    StepFault,
    captured,
    meets,
    reference_of,
    refuse_duplicate,
)
from baton.domain.recipe.steps import RecipeActionStep, RecipeCaptureStep, RecipeCheckStep, RecipeSetpointStep

T = TypeVar("T")

LARGEST = 1000
"""Numbers of an array that a row holds; of more, only the shape."""
TRIED = 10
"""Values sent to an address and never confirmed that a row holds: the last ones."""
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""Characters that no row can hold."""


@dataclass(frozen=True)
class EffectResult:
    """What an effect came to: what its row says besides, and the slot it fills."""

    says: Mapping[str, Any] = field(default_factory=dict)
    slot: str | None = None


async def nothing() -> None:
    """What there is to take back of most effects."""


@dataclass(frozen=True)
class Effect(Generic[T]):
    """A step made ready: what its rows say, how it is done, and what of the plant it has touched so far."""

    says: Mapping[str, Any]
    body: Callable[[], Coroutine[Any, Any, T]]
    kind: Callable[[], ActuationKind | None]
    marked: bool
    """Whether it may change something, so that the ledger must know before."""
    repeatable: bool = True
    """Whether it may be done again although it may have had its effect."""
    left: Callable[[], Mapping[str, Any]] = dict
    """What its row says of what it has left behind so far, whatever came of it."""
    withdraw: Callable[[], Coroutine[Any, Any, None]] = nothing
    """How it is taken back where it was cut off."""


class DetailedFault(StepFault):
    """A fault that has more to say: the reading that was found wanting."""

    def __init__(self, fault: StepFault, says: Mapping[str, Any]) -> None:
        super().__init__(fault.label, str(fault))
        self.says = says


class StepEffects:
    """Makes steps ready to be done on this deployment's plant."""

    def __init__(
        self, control: Control, actions: Actions, time: Timekeeper, routes: tuple[DeclaredRoute, ...], action_timeout: float
    ) -> None:
        self._control = control
        self._actions = actions
        self._time = time
        self._routes = routes
        self._action_timeout = action_timeout

    def setpoint(self, step: RecipeSetpointStep, memory: Memory, fence: Fence) -> Effect[EffectResult]:
        """Write a value and wait until it is confirmed; reading it back is evidence and judges nothing."""
        value, witness = memory.value(step.value), Witness(self._control, fence)

        async def write() -> EffectResult:
            await witness.write(step.address, value, timeout=WRITE_TIMEOUT)
            if not step.verify:
                return EffectResult()
            try:
                return EffectResult({"post_reading": shown(await witness.read(step.address))})
            except ControlError as error:
                return EffectResult({"post_read_error": plain(f"{type(error).__name__}: {error}")})

        def left() -> Mapping[str, Any]:
            return {"sent": True} if witness.unconfirmed else {}

        says = {"address": step.address, "value": plain(value), "verify": step.verify, **reference_of(step.value)}
        return Effect(says, write, lambda: self._kind(witness), marked=True, left=left)

    def action(self, step: RecipeActionStep, fence: Fence) -> Effect[EffectResult]:
        """Do a registered action."""
        witness = Witness(self._control, fence)
        params = step.model_dump(mode="json")["params"]

        async def act() -> EffectResult:
            said = await perform(self._actions, step.name, params, witness, self._time, self._action_timeout)
            return EffectResult({"result_data": plain(said)})

        def left() -> Mapping[str, Any]:
            sent = [[address, plain(value)] for address, values in witness.unconfirmed.items() for value in values[-TRIED:]]
            written = [[address, plain(value)] for address, value in witness.written.items()]
            return {"writes": written, **({"unconfirmed": sent} if sent else {})}

        says = {"name": step.name, "params": plain(params)}
        return Effect(says, act, lambda: self._kind(witness), marked=True, repeatable=False, left=left)

    def check(self, step: RecipeCheckStep, memory: Memory, deadline: datetime | None) -> Effect[EffectResult]:
        """Read, follow the signal until it satisfies or the deadline comes, and judge the last reading."""
        criterion, witness = step.criterion, Witness(self._control, always_open)
        expected = memory.value(criterion.expected)

        def satisfied(reading: Reading) -> bool:
            return reading.quality.value == GOOD and meets(criterion, expected, reading.value, reading.index)

        async def judge() -> EffectResult:
            began = self._time.now()
            reading = await witness.read(step.address)
            if not satisfied(reading) and deadline is not None:
                reading = await self._followed(witness, step.address, reading, satisfied, deadline)
            says = {"reading": shown(reading), "waited": (self._time.now() - began).total_seconds()}
            if satisfied(reading):
                return EffectResult(says)
            found = f"reads {plain(reading.value)!r} with quality {reading.quality.value}"
            fault = StepFault("CheckFailedError", f"{step.address} {found}, which does not meet the criterion.")
            raise DetailedFault(fault, says)

        says = {
            "address": step.address,
            "criterion": {**criterion.model_dump(mode="json", exclude={"expected"}), "expected": plain(expected)},
            **reference_of(criterion.expected),
        }
        return Effect(says, judge, lambda: self._kind(witness), marked=False)

    async def _followed(
        self, control: Control, address: str, reading: Reading, satisfied: Callable[[Reading], bool], deadline: datetime
    ) -> Reading:
        """The reading that satisfies, or the last one before the deadline."""
        left = max(0.0, (deadline - self._time.now()).total_seconds())
        try:
            async with asyncio.timeout(left) as limit, aclosing(control.subscribe(address)) as readings:
                async for reading in readings:
                    if satisfied(reading):
                        break
        except TimeoutError:
            if not limit.expired():
                raise
        return reading

    def capture(self, step: RecipeCaptureStep, memory: Memory) -> Effect[EffectResult]:
        """Read a number and keep it in a slot."""
        witness = Witness(self._control, always_open)

        async def read() -> EffectResult:
            refuse_duplicate(step.capture_name, memory.captures)
            reading = await witness.read(step.address)
            says = {"reading": shown(reading)}
            try:
                number = captured(reading.value, reading.quality.value, step.address)
            except StepFault as fault:
                raise DetailedFault(fault, says) from fault
            return EffectResult({**says, "captured_value": number}, slot=step.capture_name)

        says = {"address": step.address, "capture_name": step.capture_name}
        return Effect(says, read, lambda: self._kind(witness), marked=False)

    def _kind(self, witness: Witness) -> ActuationKind | None:
        return touched_kind(witness.touched, self._routes)


def shown(reading: Reading) -> dict[str, Any]:
    """A reading as a row holds it."""
    return {
        "value": plain(reading.value),
        "kind": reading.kind.value,
        "quality": reading.quality.value,
        "quality_detail": plain(reading.quality_detail),
        "sampled_at": reading.sampled_at and reading.sampled_at.isoformat(),
        **({} if reading.units is None else {"units": plain(reading.units)}),
    }


def plain(value: Any) -> Any:
    """A value as a row can hold it: no NaN, no NUL, no more numbers than anybody would read; what is no JSON, as text."""
    match value:
        case None | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return UNSTORABLE.sub("\ufffd", value)
        case list() | tuple():
            if is_large(value):
                return {"kind": "Array", "shape": shape(value)}
            return [plain(item) for item in value]
        case Mapping():
            return {plain(str(key)): plain(item) for key, item in value.items()}
    return plain(str(value))


def shape(value: Any) -> list[int]:
    """How long a list is, and the lists in it."""
    found: list[int] = []
    while isinstance(value, list | tuple):
        found.append(len(value))
        value = value[0] if value else None
    return found


def is_large(value: Any) -> bool:
    return len(list(islice(leaves(value), LARGEST + 1))) > LARGEST


def leaves(value: Any) -> Iterator[Any]:
    """What is in a list, and in the lists in it."""
    if not isinstance(value, list | tuple) or not value:
        yield value
        return
    for item in value:
        yield from leaves(item)
