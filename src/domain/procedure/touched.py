"""What a conduct touches: the signals that its steps write and read, the assets that own those it writes, and the rules on
both. An action says itself which of its parameters are addresses; one that does not counts as a write that nobody owns."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import assert_never
from uuid import UUID

from baton.domain.equipment.asset import Asset
from baton.domain.equipment.signals import SignalLimits, owners_of, tightest_limits
from baton.domain.kernel import Value
from baton.domain.recipe import steps as kinds
from baton.domain.recipe.expansion import Expansion
from baton.domain.recipe.offered_plans import PLAN_PREFIX
from baton.domain.recipe.steps import RecipeStep, SteeringRef, StepLocation, located_steps
from baton.domain.shared.action_signals import ActionSignals
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import Reads, ask
from baton.domain.shared.refusals import Conflict, Invalid, Refusal
from baton.domain.steering.steering import SteeringSpace
from baton.domain.step.plan_steps import KnownExecutor, PlanName, known_executors, plan_name
from baton.domain.step.signal_units import NO_UNITS, SignalUnits

UNDECLARED = "action:"  # Begins the name under which an action that declares no signals counts as written.
NOT_ADDRESSES = (UNDECLARED, PLAN_PREFIX)  # What stands for whatever an action or a Bluesky plan writes without saying so.
NAMED_AT_MOST = 10  # Addresses in one sentence; the facts have all of them.


class ProcedureTouchesUnownedSignalError(Conflict, context="operation", reason="unowned_signals"):
    """The steps write to signals that no asset in service owns."""


class ProcedureSetpointOutOfLimitsError(Conflict, context="operation", reason="out_of_limits"):
    """A step would write a value outside the limits that an owner of the signal sets."""


class InvalidSearchSpaceError(Invalid, context="operation", reason="outside_limits"):
    """The space of a search reaches beyond the limits of a signal that follows it."""


class TouchedSignals(Value):
    """The addresses that a conduct writes to, and those that it only reads. `action:NAME` is an action that says nothing,
    and `plan:EXECUTOR/NAME` a Bluesky plan that nobody says anything of."""

    written: tuple[str, ...] = ()
    """The addresses that are written."""
    read: tuple[str, ...] = ()
    """The addresses that are only read."""


DeclaredSignals = Mapping[str, ActionSignals]  # By the name of the action.
Executors = Mapping[str, KnownExecutor]  # By the name of the executor.
NO_EXECUTORS: Executors = MappingProxyType({})


def touched_signals(
    steps: Iterable[RecipeStep], actions: DeclaredSignals, executors: Executors = NO_EXECUTORS
) -> TouchedSignals:
    """Return what these steps touch; what is written is not listed as read too."""
    written: set[str] = set()
    read: set[str] = set()
    for step in steps:
        match step:
            case kinds.RecipeSetpointStep():
                written.add(step.address)
                if isinstance(step.verify, kinds.Verification) and step.verify.address is not None:
                    read.add(step.verify.address)
            case kinds.RecipeActionStep():
                name = plan_name(step)
                found = _action_addresses(step, actions) if name is None else _plan_addresses(step, name, executors)
                writes, reads = found
                written |= writes
                read |= reads
            case kinds.RecipeCheckStep() | kinds.RecipeCaptureStep():
                read.add(step.address)
            case kinds.RecipeComputeStep():
                pass  # A program has no control port.
            case _:
                assert_never(step)
    return TouchedSignals(written=tuple(sorted(written)), read=tuple(sorted(read - written)))


def _action_addresses(step: kinds.RecipeActionStep, actions: DeclaredSignals) -> tuple[set[str], set[str]]:
    try:
        return actions[step.name].addresses(step.params)
    except Exception:  # The declaration is a site's own code; whatever it does not say is not known.
        return {f"{UNDECLARED}{step.name}"}, set()


def _plan_addresses(step: kinds.RecipeActionStep, name: PlanName, executors: Executors) -> tuple[set[str], set[str]]:
    executor = executors.get(name.executor)
    told = None if executor is None else executor.touches(name.plan)
    if executor is None or told is None:
        return {str(name)}, set()
    touches, _ = told
    try:
        writes = {one for named in touches.writes for one in executor.addresses(named, step.params)}
        return writes, {one for named in touches.reads for one in executor.addresses(named, step.params)}
    except ValueError:
        return {str(name)}, set()


@dataclass(frozen=True)
class WrittenSignals:
    """The signals that a conduct touches, and the owners of each that it writes."""

    touched: TouchedSignals
    owners: Mapping[str, tuple[Asset, ...]]
    unowned_allowed: bool
    executors: Executors = field(default_factory=dict)

    @property
    def owner_ids(self) -> frozenset[UUID]:
        return frozenset(owner.id for owners in self.owners.values() for owner in owners)

    @property
    def unowned_addresses(self) -> list[str]:
        """The written addresses that nobody owns."""
        return [address for address in self.touched.written if not self.owners.get(address)]


def load_written_signals(steps: Iterable[RecipeStep]) -> Reads[WrittenSignals]:
    """Load the owners of everything that these steps write."""
    deployment, steps = (yield from ask(DeploymentPort.deployment)), tuple(steps)
    names = {name.executor for step in steps if (name := plan_name(step)) is not None}
    executors: Executors = (yield from known_executors(names)) if names else NO_EXECUTORS
    touched = touched_signals(steps, deployment.action_signals, executors)
    known = [address for address in touched.written if not address.startswith(NOT_ADDRESSES)]
    owners = (yield from owners_of(known)) if known else {}
    return WrittenSignals(touched, owners, deployment.unowned_signals_allowed, executors)


def refuse_unowned(signals: WrittenSignals) -> None:
    """Refuse steps that write to signals nobody owns, where the deployment does not allow that."""
    if signals.unowned_addresses and not signals.unowned_allowed:
        raise ProcedureTouchesUnownedSignalError(
            f"{unowned_sentence(signals)}; give the asset that has each an EPICS_PV identifier of it, or change the steps.",
            facts={"addresses": signals.unowned_addresses},
        )


def unowned_sentence(signals: WrittenSignals) -> str:
    """Return which written signals nobody owns, without the end of the sentence."""
    listed, more = signals.unowned_addresses[:NAMED_AT_MOST], len(signals.unowned_addresses) - NAMED_AT_MOST
    return f"No asset in service owns {', '.join(listed)}{f' and {more} more' if more > 0 else ''}"


def refuse_out_of_limits(
    steps: Expansion,
    signals: WrittenSignals,
    units: SignalUnits = NO_UNITS,
    *,
    first_step: int = 0,
    space: SteeringSpace | None = None,
) -> None:
    """Refuse a setpoint from this step on whose value is known and outside the limits that owners of its signal set; and a
    search that would go there, or outside the limits that the control system states."""
    declared = {address: tightest_limits(address, owners) for address, owners in signals.owners.items()}
    if not any((*declared.values(), *units.limits.values())):
        return
    for place, step in located_steps(steps.steps, steps.closing_steps):
        if place.list == "steps" and place.step_index < first_step:
            continue
        if isinstance(step, kinds.RecipeActionStep):
            _judge_plan_limits(place, step, declared, signals.executors)
        if not isinstance(step, kinds.RecipeSetpointStep):
            continue
        sources = {"owners": declared.get(step.address), "control_system": units.limits.get(step.address)}
        for (whose, limits), value in product(sources.items(), known_values(step, space)):
            written = units.in_signal_unit(step, value)
            if limits is not None and not limits.admits(written):
                axis = step.value.steering_axis_name if isinstance(step.value, SteeringRef) else None
                raise _out_of_limits(place, step.address, axis, written, limits, whose)


def known_values(step: kinds.RecipeSetpointStep, space: SteeringSpace | None) -> Iterator[float]:
    """Return the numbers that a setpoint is known to write: its own, or the ends or choices of the axis it follows."""
    values: Iterable[object] = (step.value,)
    if isinstance(step.value, SteeringRef):
        axes = () if space is None else (axis for axis in space.axes if axis.name == step.value.steering_axis_name)
        values = [value for axis in axes for value in axis.bounds or axis.choices]
    yield from (value for value in values if isinstance(value, int | float) and not isinstance(value, bool))


def written_values(step: kinds.RecipeActionStep, executors: Executors) -> Iterator[tuple[str, float]]:
    """Yield the numbers that the parameters of a Bluesky plan are declared to write, each with its address."""
    name = plan_name(step)
    executor = None if name is None else executors.get(name.executor)
    told = None if name is None or executor is None else executor.touches(name.plan)
    if executor is None or told is None:
        return
    for named, holders in told[0].writes.items():
        values = (step.params.get(holder) for holder in holders)
        numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        yield from product(executor.addresses(named, step.params), numbers)


def _judge_plan_limits(
    place: StepLocation, step: kinds.RecipeActionStep, declared: Mapping[str, SignalLimits | None], executors: Executors
) -> None:
    for address, value in written_values(step, executors):
        limits = declared.get(address)
        if limits is not None and not limits.admits(value):
            raise _out_of_limits(place, address, None, value, limits, "owners")


def _out_of_limits(
    place: StepLocation, address: str, axis: str | None, value: float, limits: SignalLimits, whose: str
) -> Refusal:
    sides = (("not below", limits.low), ("not above", limits.high))
    bounds = " and ".join(f"{word} {end:g}" for word, end in sides if end is not None)
    facts = {"address": address, "value": value, "low": limits.low, "high": limits.high, "step": place._asdict()}
    what = f"would set {address} to {value:g}, which may be set {bounds}"
    if axis is None:
        return ProcedureSetpointOutOfLimitsError(f"{place} {what}; change the step or the signal's limits.", facts=facts)
    detail = f"The search {what}; narrow its axis {axis}, or change the signal's limits."
    return InvalidSearchSpaceError(detail, facts={**facts, "axis": axis, "whose": whose})
