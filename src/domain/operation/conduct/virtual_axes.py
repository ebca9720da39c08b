"""Virtual axes in steps: before steps are pinned, a setpoint on one becomes setpoints on the axes that its rule drives."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from baton.domain.calibration.calibration import Calibration
from baton.domain.calibration.quantities import CalibrationQuantity
from baton.domain.equipment.asset import DECOMMISSIONED, Asset
from baton.domain.equipment.partition import (
    LookupTable,
    PartitionNotEvaluatedError,
    PartitionNotFiniteError,
    PartitionOutOfRangeError,
    PartitionRule,
    SolverReference,
    arity,
    setpoints,
)
from baton.domain.equipment.values import AlternateIdentifierKind
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.plan_wires import wires_into
from baton.domain.recipe.steps import SetpointStep, Step
from baton.domain.run.run import Run
from baton.domain.shared.reads import Reads, every, existing, required
from baton.domain.shared.refusals import Conflict, Refusal, Unprocessable

SCHEME = "virtual-axis://"


class ProcedureVirtualAxisUnresolvedError(Conflict, context="operation"):
    """The axes that a virtual axis is made of are not known."""


class ProcedureVirtualAxisOutOfRangeError(Unprocessable, context="operation"):
    """A virtual axis cannot go where a step sends it."""


class ProcedureVirtualAxisEvaluationError(Refusal, context="operation"):
    """The rule of a virtual axis leads to no usable setpoints."""


Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class VirtualAxis:
    """A virtual axis with the addresses of its constituents, in the order of its rule."""

    asset_id: UUID
    name: str
    rule: PartitionRule
    addresses: tuple[str, ...]
    points: Points


def virtual_axes_of(steps: Iterable[Step], run: Run | None) -> Reads[dict[str, VirtualAxis]]:
    """Return the virtual axes that steps address, resolved by the plan of the parent run."""
    addresses = sorted(
        {step.address for step in steps if isinstance(step, SetpointStep) and step.address.startswith(SCHEME)}
    )
    if not addresses:
        return {}
    if run is None:
        raise unresolved_axis(addresses[0], "the procedure has no parent run whose plan would say its wiring")
    plan = yield from required(Plan, run.plan_id)
    found: dict[str, VirtualAxis] = {}
    for address in addresses:
        found[address] = yield from _resolve(address, plan)
    return found


def _resolve(address: str, plan: Plan) -> Reads[VirtualAxis]:
    try:
        asset_id = UUID(address.removeprefix(SCHEME))
    except ValueError:
        raise unresolved_axis(address, "it names no asset") from None
    axis = yield from existing(Asset, asset_id)
    if axis is None or axis.partition_rule is None:
        raise unresolved_axis(address, "there is no such virtual axis")
    rule = axis.partition_rule
    if isinstance(rule, SolverReference):
        raise unresolved_axis(address, "its rule is recorded only")
    wires = wires_into(plan.wires, axis.id)
    if len(wires) != arity(rule):
        raise unresolved_axis(address, f"its rule drives {arity(rule)} axes and the plan wires {len(wires)} into it")
    assets = yield from every(Asset, (wire.source_asset_id for wire in wires))
    addresses = tuple(constituent_address(address, assets.get(wire.source_asset_id)) for wire in wires)
    points = (yield from _points(address, rule)) if isinstance(rule, LookupTable) else ()
    return VirtualAxis(axis.id, axis.name, rule, addresses, points)


def constituent_address(address: str, asset: Asset | None) -> str:
    """Return the one control address of a constituent axis."""
    if asset is None or asset.lifecycle is DECOMMISSIONED:
        raise unresolved_axis(address, "an axis it is made of is missing or Decommissioned")
    known = [one.value for one in asset.alternate_identifiers if one.kind is AlternateIdentifierKind.EPICS_PV]
    if len(known) != 1:
        raise unresolved_axis(address, f"{asset.name} has {len(known)} EPICS_PV identifiers and needs exactly one")
    return known[0]


def _points(address: str, rule: LookupTable) -> Reads[Points]:
    calibration = yield from existing(Calibration, rule.calibration_id)
    revision = None if calibration is None else calibration.revision(rule.calibration_revision_id)
    if calibration is None or revision is None:
        raise unresolved_axis(address, "the calibration revision its table follows does not exist")
    if calibration.quantity is not CalibrationQuantity.ENERGY_POSITION_CURVE:
        raise unresolved_axis(address, f"its table follows a {calibration.quantity.value}, not an energy_position_curve")
    return tuple(
        (float(point["energy"]), float(point.get("position", point.get("angle")))) for point in revision.value["points"]
    )


def without_virtual_axes(steps: Sequence[Step], axes: Mapping[str, VirtualAxis]) -> tuple[Step, ...]:
    """Return the steps with every setpoint on a virtual axis replaced."""
    replaced: list[Step] = []
    for step in steps:
        if isinstance(step, SetpointStep) and step.address in axes:
            replaced += _constituent_setpoints(step, axes[step.address])
        else:
            replaced.append(step)
    return tuple(replaced)


def _constituent_setpoints(step: SetpointStep, axis: VirtualAxis) -> list[Step]:
    value: Any = step.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise out_of_range(axis, "it takes a number that is known before the start")
    try:
        values = setpoints(axis.rule, float(value), axis.points)
    except PartitionOutOfRangeError as error:
        raise out_of_range(axis, str(error)) from None
    except PartitionNotEvaluatedError as error:
        raise unresolved_axis(step.address, str(error)) from None
    except PartitionNotFiniteError as error:
        raise ProcedureVirtualAxisEvaluationError(
            f"The rule of {axis.name} leads to no finite setpoint: {error}.", reason="not_finite"
        ) from None
    if len(values) != len(axis.addresses):
        raise ProcedureVirtualAxisEvaluationError(
            f"The rule of {axis.name} gives {len(values)} setpoints for {len(axis.addresses)} axes.", reason="count"
        )
    return [
        SetpointStep(kind="setpoint", address=address, value=value)
        for address, value in zip(axis.addresses, values, strict=True)
    ]


def unresolved_axis(address: str, why: str) -> ProcedureVirtualAxisUnresolvedError:
    """Return the refusal of a virtual axis that cannot be resolved."""
    return ProcedureVirtualAxisUnresolvedError(
        f"The axis {address} cannot be resolved: {why}; correct the plan or the steps.",
        reason="unresolved",
        facts={"address": address},
    )


def out_of_range(axis: VirtualAxis, why: str) -> ProcedureVirtualAxisOutOfRangeError:
    """Return the refusal of a value that a virtual axis cannot take."""
    return ProcedureVirtualAxisOutOfRangeError(
        f"{axis.name} cannot take the value of a step: {why}; change the step.",
        reason="out_of_range",
        facts={"asset_id": str(axis.asset_id)},
    )
