"""The edge between the unit that a step counts in and the one that the control system states for a signal."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from baton.application.control import Reading
from baton.domain.recipe.expansion import UnitMismatchError
from baton.domain.shared.text import shorten
from baton.domain.shared.units import UnitError, UnitPolicy, carry, unit_registry
from baton.domain.step.step_values import StepFault


@dataclass(frozen=True)
class UnitEdge:
    """Carries the numbers of one step to a signal and back; a signal that states no unit is taken to count in the step's."""

    unit: str | None
    policy: UnitPolicy

    @property
    def is_asked(self) -> bool:
        """Whether it matters what a signal counts in."""
        return self.unit is not None and self.policy is not UnitPolicy.IGNORE

    def differs(self, reading: Reading) -> bool:
        """Return whether a signal counts in what is spelled otherwise."""
        return self.is_asked and reading.units is not None and reading.units != self.unit

    async def load(self, reading: Reading) -> None:
        """Have the units loaded where they will be needed, while other steps run."""
        if self.differs(reading):
            await asyncio.to_thread(unit_registry)

    def to_signal(self, value: object, reading: Reading, address: str) -> Any:
        """Return a value of the step as the signal counts it; raise a fault where that is not possible."""
        return self._carry(value, reading, address, outward=True) if self.differs(reading) else value

    def from_signal(self, reading: Reading, address: str) -> object:
        """Return what a signal reads as the step counts it; raise a fault where that is not possible."""
        return self._carry(reading.value, reading, address, outward=False) if self.differs(reading) else reading.value

    async def difference(self, size: float, reading: Reading, address: str) -> float:
        """Return the size of a difference as the signal counts it: zeros lie apart, as those of temperatures."""
        await self.load(reading)
        end, zero = (self.to_signal(one, reading, address) for one in (size, 0.0))
        return abs(float(end) - float(zero))

    def _carry(self, value: object, reading: Reading, address: str, *, outward: bool) -> Any:
        own, stated = self.unit or "", reading.units or ""
        try:
            return carry(value, *((own, stated) if outward else (stated, own)), self.policy)
        except UnitError as error:
            message = (
                f"The step counts {address} in {shorten(own)}, and the control system in {shorten(stated)}: {error}; "
                "correct the unit of the step, of its parameter or of the signal."
            )
            facts = {"reason": UnitMismatchError.default_reason, "address": address, "unit": own, "control_unit": stated}
            raise StepFault(UnitMismatchError.__name__, message, facts) from None

    def unit_field(self) -> Mapping[str, object]:
        """Return the field by which a row names the unit of the step."""
        return {} if self.unit is None else {"unit": self.unit}
