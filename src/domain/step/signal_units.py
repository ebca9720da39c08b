"""Units at the control edge: what steps count in, compared with what the control system states for their signals."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple, Protocol

from pydantic import Field

from baton.domain.equipment.values import SignalLimits
from baton.domain.recipe import steps as kinds
from baton.domain.recipe.expansion import NO_UNITS as NO_BOUND_UNITS
from baton.domain.recipe.expansion import Expansion, UnitMismatchError, one_unit, unit_in
from baton.domain.recipe.steps import CaptureRef, LocatedStep, RecipeStep, Step, StepLocation, located_steps
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import Reads, ask, run_in_thread
from baton.domain.shared.text import shorten
from baton.domain.shared.units import UnitError, UnitPolicy, carry


def with_capture_units(steps: Expansion) -> Expansion:
    """Return steps of which each that uses a captured number counts in the unit that it was captured in."""
    captures = (step for step in steps.every_step if isinstance(step, kinds.CaptureStep) and step.unit is not None)
    units = {step.capture_name: step.unit for step in captures}
    if not units:
        return steps
    lists: dict[str, list[Step]] = {"steps": [], "closing_steps": []}
    for place, step in located_steps(steps.steps, steps.closing_steps):
        lists[place.list].append(_with_capture_unit(place, step, units))
    return Expansion(steps=tuple(lists["steps"]), closing_steps=tuple(lists["closing_steps"]))


def _with_capture_unit(place: StepLocation, step: Any, units: Mapping[str, str | None]) -> Step:
    if isinstance(step, kinds.SetpointStep | kinds.CheckStep):
        for reference in kinds.references(step, CaptureRef):
            name = reference.capture_name
            step = step.model_copy(update={"unit": one_unit(place, step.unit, f"the capture {name}", units.get(name))})
    found: Step = step
    return found


def counted_signals(step: RecipeStep) -> Iterator[str]:
    """Yield the signals whose numbers a step writes or reads."""
    match step:
        case kinds.RecipeSetpointStep() if _may_be_number(step.value):
            yield step.address
            if isinstance(step.verify, kinds.Verification) and step.verify.address is not None:
                yield step.verify.address
        case kinds.RecipeCheckStep() if _may_be_number(step.criterion.expected):
            yield step.address
        case kinds.RecipeCaptureStep():
            yield step.address


class CountedSignal(NamedTuple):
    """A signal, and the unit in which a step counts it."""

    place: StepLocation
    address: str
    unit: str


def units_in(steps: Iterable[LocatedStep], bound: Mapping[str, str] = NO_BOUND_UNITS) -> tuple[CountedSignal, ...]:
    """Return the signals that steps count in units of their own, where parameters have these."""
    found = []
    for place, step in steps:
        if (unit := unit_in(step, place, bound)) is not None:
            found += [CountedSignal(place, address, unit) for address in counted_signals(step)]
        match step:
            case kinds.RecipeSetpointStep(address=written, verify=kinds.Verification(address=read, unit=str() as own)):
                found.append(CountedSignal(place, read or written, own))
    return tuple(found)


def _may_be_number(operand: object) -> bool:
    return not isinstance(operand, bool | str)


UnknownUnits = Annotated[
    tuple[str, ...],
    Field(description="Signals that steps count in a unit, and for which the control system states none, or was not asked."),
]


@dataclass(frozen=True)
class SignalUnits:
    """What the control system states for the signals that steps count in units of their own; None where it states none, or
    could not be asked."""

    policy: UnitPolicy = UnitPolicy.IGNORE
    stated: Mapping[str, str | None] | None = None
    limits: Mapping[str, SignalLimits | None] = field(default_factory=dict)
    """The limits that the control system states for the signals that follow an axis of a search."""

    def of(self, address: str) -> str | None:
        return (self.stated or {}).get(address)

    @property
    def unknown_addresses(self) -> tuple[str, ...]:
        """The addresses whose unit is not known, so that values are written and compared as they are."""
        return tuple(sorted(address for address, unit in (self.stated or {}).items() if unit is None))

    def in_signal_unit(self, step: kinds.RecipeSetpointStep, value: object) -> Any:
        """Return a value of a setpoint as it would be written, where the unit of its signal is known."""
        stated = self.of(step.address)
        return value if step.unit is None or stated is None else carry(value, step.unit, stated, self.policy)


NO_UNITS = SignalUnits()  # Where no step counts in a unit of its own, or nothing is to be compared.


def load_units(steps: Expansion) -> Reads[SignalUnits]:
    """Load the units of the signals that steps count in units of their own, and the limits of those that follow a search;
    refuse units that cannot be carried to those of the signals."""
    units = yield from compare_units(units_in(located_steps(steps.steps, steps.closing_steps)))
    setpoints = (step for step in steps.every_step if isinstance(step, kinds.RecipeSetpointStep))
    followed = sorted({step.address for step in setpoints if isinstance(step.value, kinds.SteeringRef)})
    if not followed:
        return units
    return replace(units, limits=(yield from ask(UnitPort.stated_limits, tuple(followed))))


class UnitPort(Protocol):
    """Knows the units of the control system."""

    async def stated_units(self, addresses: Sequence[str]) -> Mapping[str, str | None]:
        """Return the unit that the control system states for each of these signals; None where it states none, or no worker
        could ask in time."""

    async def stated_limits(self, addresses: Sequence[str]) -> Mapping[str, SignalLimits | None]:
        """Return the limits that the control system states for each of these signals; None where it states none, or no
        worker could ask in time."""


def compare_units(counted: Sequence[CountedSignal]) -> Reads[SignalUnits]:
    """Ask the control system for the units of signals, unless none is to be compared; refuse what cannot be carried."""
    if not counted or (policy := (yield from ask(DeploymentPort.deployment)).unit_policy) is UnitPolicy.IGNORE:
        return NO_UNITS
    addresses = tuple(sorted({one.address for one in counted}))
    units = SignalUnits(policy, (yield from ask(UnitPort.stated_units, addresses)))
    yield from run_in_thread(refuse_unit_mismatch, counted, units)
    return units


def refuse_unit_mismatch(counted: Iterable[CountedSignal], units: SignalUnits) -> None:
    """Refuse a step whose numbers cannot be carried to the unit of a signal that it writes or reads."""
    for place, address, own in counted:
        if (stated := units.of(address)) is None:
            continue
        try:
            carry(1.0, own, stated, units.policy)
        except UnitError as error:
            raise UnitMismatchError(
                f"{place} counts {address} in {shorten(own)}, and the control system in {shorten(stated)}: {error}; "
                "correct the unit of the step, of its parameter or of the signal.",
                facts={"address": address, "unit": own, "control_unit": stated, "step": place._asdict()},
            ) from None
