"""The rules by which a step judges a signal: its unit, its limits, and whether it reads what was written or expected. A
conduct applies them to readings of the control system, a rehearsal to its twin."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from baton.domain.equipment.values import SignalLimits
from baton.domain.recipe.expansion import UnitMismatchError
from baton.domain.recipe.steps import RecipeCheckStep, RecipeSetpointStep
from baton.domain.shared.text import shorten
from baton.domain.shared.units import UnitError, UnitPolicy, carry
from baton.domain.step import step_values
from baton.domain.step.plain_values import bounded_value, brief, leaves, plain
from baton.domain.step.step_values import StepFault

OUT_OF_LIMITS = "SetpointOutOfLimitsError"  # The error class of a value that is not written because of a limit.
NOT_REACHED = "SetpointNotReachedError"  # The error class of a setpoint that did not come near what was written.
CHECK_FAILED = "CheckFailedError"
WHOSE = {"owners": "its owners allow", "control_system": "the control system allows"}  # By the fact `whose`.


@dataclass(frozen=True)
class UnitEdge:
    """Carries the numbers of one step to a signal and back; a signal that states no unit is taken to count in the step's."""

    unit: str | None
    policy: UnitPolicy

    @property
    def is_asked(self) -> bool:
        """Whether it matters what a signal counts in."""
        return self.unit is not None and self.policy is not UnitPolicy.IGNORE

    def differs(self, stated: str | None) -> bool:
        """Return whether a signal counts in what is spelled otherwise."""
        return self.is_asked and stated is not None and stated != self.unit

    def to_signal(self, value: object, stated: str | None, address: str) -> Any:
        """Return a value of the step as the signal counts it; raise a fault where that is not possible."""
        return self._carry(value, stated, address, outward=True) if self.differs(stated) else value

    def from_signal(self, value: object, stated: str | None, address: str) -> Any:
        """Return what a signal reads as the step counts it; raise a fault where that is not possible."""
        return self._carry(value, stated, address, outward=False) if self.differs(stated) else value

    def difference(self, size: float, stated: str | None, address: str) -> float:
        """Return the size of a difference as the signal counts it: zeros lie apart, as those of temperatures."""
        end, zero = (self.to_signal(one, stated, address) for one in (size, 0.0))
        return abs(float(end) - float(zero))

    def unit_field(self) -> Mapping[str, object]:
        """Return the field by which a row names the unit of the step."""
        return {} if self.unit is None else {"unit": self.unit}

    def _carry(self, value: object, stated: str | None, address: str, *, outward: bool) -> Any:
        own, stated = self.unit or "", stated or ""
        try:
            return carry(value, *((own, stated) if outward else (stated, own)), self.policy)
        except UnitError as error:
            message = (
                f"The step counts {address} in {shorten(own)}, and the control system in {shorten(stated)}: {error}; "
                "correct the unit of the step, of its parameter or of the signal."
            )
            facts = {"reason": UnitMismatchError.default_reason, "address": address, "unit": own, "control_unit": stated}
            raise StepFault(UnitMismatchError.__name__, message, facts) from None


def setpoint_edge(step: RecipeSetpointStep, value: object, policy: UnitPolicy) -> UnitEdge:
    """Return the edge of a setpoint: a value without a number is written as it is."""
    return UnitEdge(step.unit if any(map(step_values.is_number, leaves(value))) else None, policy)


def finite_numbers(value: object) -> Iterator[float]:
    """Yield the numbers in a value that is to be written."""
    match value:
        case list() | tuple():
            for item in value:
                yield from finite_numbers(item)
        case int() | float() if abs(value) < math.inf:
            yield value


def refuse_out_of_limits(address: str, value: object, limits: Mapping[str, SignalLimits | None]) -> None:
    """Raise a fault for the first number outside limits, by whose they are; what is no finite number has none."""
    numbers = list(finite_numbers(value))
    for whose, found in limits.items():
        outside = None if found is None else next((number for number in numbers if not found.admits(number)), None)
        if found is not None and outside is not None:
            sides = (("from", found.low), ("to", found.high))
            allowed = " ".join(f"{word} {side!r}" for word, side in sides if side is not None)
            detail = f"{address} was not set to {outside!r}: {WHOSE[whose]} values {allowed}."
            facts = {"address": address, "value": outside, "low": found.low, "high": found.high, "whose": whose}
            raise StepFault(OUT_OF_LIMITS, detail, facts)


def is_near(asked: object, read: object, quality: str, index: int | None, tolerance: float) -> bool:
    """Return whether a signal reads as near to what was asked of it as is wanted."""
    return quality != step_values.BAD and step_values.is_reached(asked, read, index, tolerance)


def not_reached(address: str, asked: object, read: object, unit: str | None, quality: str, tolerance: float) -> StepFault:
    """Return the fault of a setpoint that did not come near what was written."""
    asked, read, unit = plain(asked), plain(read), plain(unit)
    message = (
        f"{address} reads {brief(read)}{'' if unit is None else f' {unit}'} with quality {quality}, which is not within "
        f"{tolerance:g} of {brief(asked)}."
    )
    facts = {"address": address, "asked": bounded_value(asked), "read": bounded_value(read), "tolerance": tolerance}
    return StepFault(NOT_REACHED, message, facts if unit is None else {**facts, "unit": unit})


def satisfies(step: RecipeCheckStep, expected: object, value: object, quality: str, index: int | None = None) -> bool:
    """Return whether a reading, as the step counts it, meets the criterion of a check."""
    return quality == step_values.GOOD and step_values.meets(step.criterion, expected, value, index)


def unmet(address: str, read: object, quality: str) -> StepFault:
    """Return the fault of a check whose last reading does not meet its criterion."""
    message = f"{address} reads {plain(read)!r} with quality {quality}, which does not meet the criterion."
    return StepFault(CHECK_FAILED, message)


def captured_number(address: str, value: object, quality: str, edge: UnitEdge, stated: str | None) -> float:
    """Return a reading as the number that a capture keeps; raise a fault unless it is Good and finite."""
    step_values.capturable_number(value, quality, address)
    number: float = edge.from_signal(value, stated, address)
    return number
