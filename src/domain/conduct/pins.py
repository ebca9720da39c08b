"""The pin of a conduct: the exact steps it walks, derived from what was registered and frozen before it starts.
A setpoint on a virtual axis becomes setpoints on the axes that its rule drives, and outputs get their names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from baton.domain.calibration.calibration import Calibration
from baton.domain.calibration.quantities import CalibrationQuantity
from baton.domain.conduct.progress import FilledSlot
from baton.domain.equipment import partition
from baton.domain.equipment.asset import DECOMMISSIONED, Asset
from baton.domain.equipment.values import AlternateIdentifierKind
from baton.domain.procedure.procedure import Procedure, ProcedureRecipeExpanded, ProcedureStepsResolved
from baton.domain.recipe import expansion as expansions
from baton.domain.recipe import steps as recipe_steps
from baton.domain.recipe.expansion import EXPANDER_VERSION, Expansion, UnitMismatchError, check_step_count, expansion_of
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.plan_parts import wires_into
from baton.domain.recipe.recipe import Recipe, RecipeVersion, RecipeVersionNotFoundError, version_of
from baton.domain.recipe.step_checks import misshapen, read_steps
from baton.domain.recipe.steps import CaptureRef, RecipeComputeStep, SetpointStep, Step, StepLocation, Verify
from baton.domain.run.run import Run
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import Reads, ask, events_of, find, find_all, records_of, require, run_in_thread
from baton.domain.shared.refusals import Conflict, Invalid, Refusal, Unprocessable
from baton.domain.shared.text import shorten
from baton.domain.shared.units import UnitError, UnitPolicy, carry
from baton.domain.step.output_names import template_words, with_named_outputs
from baton.domain.step.programs import refuse_unlisted_programs
from baton.domain.step.signal_units import with_capture_units

SCHEME = "virtual-axis://"


class ProcedureVirtualAxisUnresolvedError(Conflict, context="operation"):
    """The axes that a virtual axis is made of are not known."""


class ProcedureVirtualAxisOutOfRangeError(Unprocessable, context="operation"):
    """A virtual axis cannot go where a step sends it."""


class ProcedureVirtualAxisEvaluationError(Refusal, context="operation"):
    """The rule of a virtual axis leads to no usable setpoints."""


class ProcedureVirtualAxisVerifyError(Unprocessable, context="operation"):
    """A tolerance on a virtual axis says nothing of the axes that it is made of."""


Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class VirtualAxis:
    """A virtual axis with the addresses of its constituents, in the order of its rule."""

    asset_id: UUID
    name: str
    rule: partition.PartitionRule
    addresses: tuple[str, ...]
    points: Points

    def units(self, own: str | None) -> tuple[str | None, str | None]:
        """Return what the rule is commanded in and what its axes are set in; one that declares neither shares out what it
        is given, in the step's own unit."""
        match self.rule:
            case partition.Affine() | partition.LookupTable():
                ends = (self.rule.input_unit, self.rule.output_unit)
                commanded, driven = (None if unit is None else unit.code for unit in ends)
                return commanded, driven
        return own, own


def virtual_axes_of(steps: Iterable[Step], plan_id: UUID | None) -> Reads[dict[str, VirtualAxis]]:
    """Return the virtual axes that steps address, resolved by this plan, which is that of the parent run."""
    targets = {step.address for step in steps if isinstance(step, SetpointStep)}
    addresses = sorted(address for address in targets if address.startswith(SCHEME))
    if not addresses:
        return {}
    if plan_id is None:
        raise unresolved_axis(addresses[0], "the procedure has no parent run whose plan would say its wiring")
    plan = yield from require(Plan, plan_id)
    found: dict[str, VirtualAxis] = {}
    for address in addresses:
        found[address] = yield from _resolve(address, plan)
    return found


def _resolve(address: str, plan: Plan) -> Reads[VirtualAxis]:
    try:
        asset_id = UUID(address.removeprefix(SCHEME))
    except ValueError:
        raise unresolved_axis(address, "it names no asset") from None
    axis = yield from find(Asset, asset_id)
    if axis is None or axis.partition_rule is None:
        raise unresolved_axis(address, "there is no such virtual axis")
    rule = axis.partition_rule
    if isinstance(rule, partition.SolverReference):
        raise unresolved_axis(address, "its rule is recorded only")
    wires = wires_into(plan.wires, axis.id)
    if len(wires) != (arity := partition.arity(rule)):
        raise unresolved_axis(address, f"its rule drives {arity} axes and the plan wires {len(wires)} into it")
    assets = yield from find_all(Asset, (wire.source_asset_id for wire in wires))
    addresses = tuple(constituent_address(address, assets.get(wire.source_asset_id)) for wire in wires)
    points = (yield from _points(address, rule)) if isinstance(rule, partition.LookupTable) else ()
    return VirtualAxis(axis.id, axis.name, rule, addresses, points)


def constituent_address(address: str, asset: Asset | None) -> str:
    """Return the one control address of a constituent axis."""
    if asset is None or asset.lifecycle is DECOMMISSIONED:
        raise unresolved_axis(address, "an axis it is made of is missing or Decommissioned")
    known = [one.value for one in asset.alternate_identifiers if one.kind is AlternateIdentifierKind.EPICS_PV]
    if len(known) != 1:
        raise unresolved_axis(address, f"{asset.name} has {len(known)} EPICS_PV identifiers and needs exactly one")
    return known[0]


def _points(address: str, rule: partition.LookupTable) -> Reads[Points]:
    calibration = yield from find(Calibration, rule.calibration_id)
    revision = None if calibration is None else calibration.revision(rule.calibration_revision_id)
    if calibration is None or revision is None:
        raise unresolved_axis(address, "the calibration revision its table follows does not exist")
    if calibration.quantity is not CalibrationQuantity.ENERGY_POSITION_CURVE:
        raise unresolved_axis(address, f"its table follows a {calibration.quantity.value}, not an energy_position_curve")
    return tuple((float(one["energy"]), float(one.get("position", one.get("angle")))) for one in revision.value["points"])


def without_virtual_axes(
    steps: Sequence[Step], axes: Mapping[str, VirtualAxis], policy: UnitPolicy = UnitPolicy.CONVERT
) -> tuple[Step, ...]:
    """Return the steps with every setpoint on a virtual axis replaced."""
    return tuple(one for step in steps for one in _driven_steps(step, axes, policy))


def _driven_steps(step: Step, axes: Mapping[str, VirtualAxis], policy: UnitPolicy) -> Sequence[Step]:
    """Return the setpoints that a setpoint on a virtual axis stands for; any other step stands for itself."""
    if not isinstance(step, SetpointStep) or step.address not in axes:
        return (step,)
    axis, value = axes[step.address], step.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise out_of_range(axis, "it takes a number that is known before the start")
    commanded, driven = axis.units(step.unit)
    if step.unit is not None and commanded is not None:
        value = _in_unit_of_rule(axis, value, step.unit, commanded, policy)
    try:
        values = partition.setpoints(axis.rule, float(value), axis.points)
    except partition.PartitionOutOfRangeError as error:
        raise out_of_range(axis, str(error)) from None
    except partition.PartitionNotEvaluatedError as error:
        raise unresolved_axis(step.address, str(error)) from None
    except partition.PartitionNotFiniteError as error:
        detail = f"The rule of {axis.name} leads to no finite setpoint: {error}."
        raise ProcedureVirtualAxisEvaluationError(detail, reason="not_finite") from None
    if len(values) != len(axis.addresses):
        detail = f"The rule of {axis.name} gives {len(values)} setpoints for {len(axis.addresses)} axes."
        raise ProcedureVirtualAxisEvaluationError(detail, reason="count")
    conditions = _driven_conditions(step.verify, axis, (commanded, driven), policy)
    targets = zip(axis.addresses, values, conditions, strict=True)
    return [
        SetpointStep(kind="setpoint", address=address, value=value, verify=verify, unit=driven)
        for address, value, verify in targets
    ]


def _driven_conditions(
    verify: Verify, axis: VirtualAxis, units: tuple[str | None, str | None], policy: UnitPolicy
) -> Sequence[Verify]:
    """Return the condition of each constituent, in its unit, that together mean the tolerance of the axis; refuse one that
    cannot be shared out. The tolerance counts in what the axis is commanded in."""
    if isinstance(verify, bool):
        return [False] * len(axis.addresses)
    (commanded, driven), tolerance = units, verify.tolerance
    if verify.address is not None:
        raise unverified_axis(axis, f"it reads {shorten(verify.address)}, and each axis behind it is read by itself")
    if verify.unit is not None:
        if commanded is None:
            raise unverified_axis(axis, "it has a unit, and neither the step nor the rule has one")
        tolerance = abs(_in_unit_of_rule(axis, tolerance, verify.unit, commanded, policy, difference=True))
    tolerances = partition.constituent_tolerances(axis.rule, tolerance)
    if tolerances is None:
        raise unverified_axis(axis, f"a {axis.rule.kind} has no tolerance for each axis behind it")
    return [verify.model_copy(update={"tolerance": one, "unit": driven}) for one in tolerances]


def _in_unit_of_rule(
    axis: VirtualAxis, value: float, own: str, commanded: str, policy: UnitPolicy, *, difference: bool = False
) -> float:
    """Return a value, or a difference of two, in the unit that a rule is commanded in; refuse one that cannot be."""
    try:
        zero = float(carry(0.0, own, commanded, policy)) if difference else 0.0
        return float(carry(value, own, commanded, policy)) - zero
    except UnitError as error:
        detail = f"A step counts {axis.name} in {shorten(own)}, and its rule in {shorten(commanded)}: {error}; correct one."
        facts = {"asset_id": axis.asset_id, "unit": own, "rule_unit": commanded}
        raise UnitMismatchError(detail, facts=facts) from None


def unresolved_axis(address: str, why: str) -> ProcedureVirtualAxisUnresolvedError:
    """Return the refusal of a virtual axis that cannot be resolved."""
    detail = f"The axis {address} cannot be resolved: {why}; correct the plan or the steps."
    return ProcedureVirtualAxisUnresolvedError(detail, reason="unresolved", facts={"address": address})


def out_of_range(axis: VirtualAxis, why: str) -> ProcedureVirtualAxisOutOfRangeError:
    """Return the refusal of a value that a virtual axis cannot take."""
    detail = f"{axis.name} cannot take the value of a step: {why}; change the step."
    return ProcedureVirtualAxisOutOfRangeError(detail, reason="out_of_range", facts={"asset_id": axis.asset_id})


def unverified_axis(axis: VirtualAxis, why: str) -> ProcedureVirtualAxisVerifyError:
    """Return the refusal of a tolerance that cannot be shared out."""
    detail = f"The verify of a step on {axis.name} cannot be shared out to its axes: {why}; check their signals instead."
    return ProcedureVirtualAxisVerifyError(detail, reason="verify", facts={"asset_id": axis.asset_id})


class ProcedureStepsForbiddenError(Invalid, context="operation"):
    """The steps are those of the recipe or of the pin; none may be sent."""


class ProcedureExpansionRecordNotFoundError(Refusal, context="operation"):
    """The procedure names a recipe, but not what was made of it."""


class ProcedureExpanderVersionMismatchError(Refusal, context="operation"):
    """The procedure was registered by another version of the expansion, which may have read the recipe otherwise."""


class ProcedureExpansionDriftError(Refusal, context="operation"):
    """The recipe does not expand to what was registered."""


class ProcedureClosingCaptureBeforeBoundaryError(Unprocessable, context="operation", reason="capture_missing"):
    """A closing step needs a value that only a step before the boundary captures, and none did."""


UNPINNABLE = (
    *(Recipe.aggregate.NotFound, RecipeVersionNotFoundError),
    *(
        expansions.InvalidProcedureBindingsError,
        expansions.UnboundRecipeBindingError,
        expansions.ProcedureExpansionOverflowError,
        UnitMismatchError,
    ),
    *(ProcedureExpansionRecordNotFoundError, ProcedureExpanderVersionMismatchError, ProcedureExpansionDriftError),
    *(ProcedureVirtualAxisUnresolvedError, ProcedureVirtualAxisOutOfRangeError, ProcedureVirtualAxisEvaluationError),
    ProcedureVirtualAxisVerifyError,
)  # The refusals that keep registered steps from being pinned, whatever was asked for.


def prepare_steps(procedure: Procedure, sent: Sequence[Any], run: Run | None) -> Reads[Expansion]:
    """Return the steps to pin: those of the recorded expansion or, without a recipe, those that were sent."""
    if procedure.recipe_id is None:
        expansion = Expansion(steps=literal_steps(sent), closing_steps=())
    else:
        if sent:
            raise ProcedureStepsForbiddenError("The procedure follows a recipe; conduct it without steps of your own.")
        expansion = yield from recorded_expansion(procedure)
    return (yield from pin_expansion(expansion, None if run is None else run.plan_id, words_of(procedure, run)))


def pin_expansion(expansion: Expansion, plan_id: UUID | None, words: Mapping[str, str]) -> Reads[Expansion]:
    """Return steps as they are pinned: with virtual axes resolved by a plan, units of captures, and names of outputs."""
    axes = yield from virtual_axes_of(expansion.every_step, plan_id)
    expansion = with_capture_units(expansion)
    policy = (yield from ask(DeploymentPort.deployment)).unit_policy if axes else UnitPolicy.IGNORE
    pinned = Expansion(
        steps=with_named_outputs(without_virtual_axes(expansion.steps, axes, policy), words),
        closing_steps=with_named_outputs(without_virtual_axes(expansion.closing_steps, axes, policy), words),
    )
    check_step_count(pinned.step_count)
    yield from refuse_unlisted_programs(pinned)
    return pinned


def words_of(procedure: Procedure, run: Run | None) -> dict[str, str]:
    """Return what template words stand for in the steps of a procedure."""
    if run is None:
        return template_words(None, None, procedure.registered_at)
    return template_words(run.id, run.subject_id, run.created_at)


def pinned_steps(pin: ProcedureStepsResolved) -> Reads[Expansion]:
    """Return the steps of a pin; refuse them where a program of theirs is not allowed any more."""
    steps = Expansion(steps=pin.resolved_steps, closing_steps=pin.resolved_closing_steps)
    yield from refuse_unlisted_programs(steps)
    return steps


def literal_steps(sent: Sequence[object]) -> Any:
    """Return steps that were sent; refuse unbound references, and programs, which come from reviewed recipes only."""
    steps = read_steps(sent)
    for index, step in enumerate(steps):
        place = StepLocation("steps", index)
        if isinstance(step, RecipeComputeStep):
            raise misshapen(place, "kind", "compute_needs_recipe", "must not be compute; programs come from recipes")
        if names := recipe_steps.binding_names([step]):
            raise misshapen(place, "", "misplaced_sentinel", f"refers to {names[0]}, and nothing is bound here")
    return expansion_of(steps, (), {}).steps


def recorded_expansion(procedure: Procedure) -> Reads[Expansion]:
    """Return the expansion that was registered; anything else is a fault of the service and refused."""
    records = yield from events_of(procedure.id, ProcedureRecipeExpanded)
    if not records:
        raise ProcedureExpansionRecordNotFoundError("The record of the recipe's expansion is missing; report this.")
    record = records[-1]
    if record.expander_version != EXPANDER_VERSION:
        versions = f"version {record.expander_version}, this is {EXPANDER_VERSION}"
        raise ProcedureExpanderVersionMismatchError(f"The procedure was expanded by {versions}; register it again.")
    recipe = yield from require(Recipe, record.recipe_id)
    return (yield from run_in_thread(verified_expansion, version_of(recipe, record.recipe_version), record))


def verified_expansion(version: RecipeVersion, record: ProcedureRecipeExpanded) -> Expansion:
    """Return the expansion if it hashes to what was recorded."""
    refuse_drift("bindings", content_hash(record.bindings), record.bindings_hash)
    expansion = expansion_of(version.steps, version.closing_steps, record.bindings, record.binding_units)
    refuse_drift("steps", expansion.steps_hash, record.steps_hash)
    return expansion


def refuse_drift(name: str, found: str, kept: str) -> None:
    """Refuse a hash that differs from the recorded one."""
    if found != kept:
        detail = f"The {name} do not hash to what was recorded; register the procedure again and report this."
        raise ProcedureExpansionDriftError(detail, reason=f"{name}_differ")


def check_closing_captures(procedure: Procedure, pin: Expansion, boundary: int) -> Reads[None]:
    """Refuse to go on from behind the only step that captures what a closing step needs, unless it was captured before."""
    needed = {ref.capture_name for step in pin.closing_steps for ref in recipe_steps.references(step, CaptureRef)}
    missing = needed - {recipe_steps.declared_capture(step) for step in (*pin.steps[boundary:], *pin.closing_steps)}
    if not missing:
        return
    filled = yield from records_of(FilledSlot, procedure_id=procedure.id)
    if empty := sorted(missing - {row.slot for row in filled if not row.closing and row.step_index < boundary}):
        raise ProcedureClosingCaptureBeforeBoundaryError(
            f"A closing step needs {', '.join(empty)}, captured by no step from {boundary} on; give a lower boundary.",
            facts={"capture_names": empty},
        )
