"""What a procedure must pass to start, and again to go on: its assets, the supplies of its run, its enclosures."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from baton.domain.caution.banner import AcknowledgedCaution, banner, cautions_in_scope
from baton.domain.caution.caution import CautionTarget, CautionTargetKind
from baton.domain.enclosure.permission import Contacts, Enclosures, enclosure_finding, enclosures_with_contacts
from baton.domain.equipment.asset import DECOMMISSIONED, Asset
from baton.domain.equipment.asset_tree import AncestorWalkDepthExceededError
from baton.domain.equipment.scope import AssetScope, asset_scope
from baton.domain.kernel import Call
from baton.domain.operation.procedure.procedure import Procedure
from baton.domain.recipe.method import Method
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.practice import Practice
from baton.domain.run.gates import Execution, execution_of
from baton.domain.run.run import Run, RunStatus
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Reads, ask, required, required_all
from baton.domain.shared.refusals import Conflict
from baton.domain.supply.coverage import supplies_in_scope, supply_finding
from baton.domain.supply.supply import Supply


class ProcedureAssetDecommissionedError(Conflict, context="operation"):
    """A target asset of the procedure is Decommissioned."""


class ProcedureRequiresAvailableSupplyError(Conflict, context="operation"):
    """The parent run's method needs a kind of supply that nothing in scope provides."""


class ProcedureSupplyCoverageMismatchError(Conflict, context="operation"):
    """The parent run's method needs a kind of supply that is in scope but not available."""


class ProcedureRequiresPermittedEnclosureError(Conflict, context="operation"):
    """No enclosure that the procedure's assets stand in permits work."""


class ProcedureEnclosureCoverageMismatchError(Conflict, context="operation"):
    """Some enclosures that the procedure's assets stand in do not permit work."""


@dataclass(frozen=True)
class Ground:
    """What a procedure stands on: its targets, those of its run, and the supplies and enclosures that bear on them."""

    now: datetime
    targets: tuple[Asset, ...]
    needed_supplies: frozenset[str]
    scope: AssetScope
    supplies: tuple[Supply, ...]
    enclosures: Enclosures
    contacts: Contacts
    fresh_within: timedelta
    monitored: frozenset[str]
    """The enclosures that a monitor watches, by the keys of their names."""
    resuming: bool


def parent_run_of(procedure: Procedure) -> Reads[Run | None]:
    """The run this procedure is a phase of, if it is one."""
    if procedure.parent_run_id is None:
        return None
    return (yield from required(Run, procedure.parent_run_id))


def why_idle(run: Run | None) -> str | None:
    """Why a phase of this run may not go on; None where it may. A procedure that stands alone needs nobody's leave."""
    if run is None or run.status is RunStatus.RUNNING:
        return None
    advice = "resume it first" if run.status is RunStatus.HELD else "register the procedure with another run"
    return f"The parent run is {run.status.value}; {advice}."


def ground_of(procedure: Procedure, run: Run | None, call: Call, *, resuming: bool) -> Reads[Ground]:
    """Load what a procedure stands on; a missing asset, or a missing link behind the run, is 404."""
    deployment = yield from ask(Ports.deployment)
    targets = yield from required_all(Asset, procedure.target_asset_ids)
    execution: Execution | None = None if run is None else (yield from execution_of(run.plan_id))
    bound = procedure.target_asset_ids | (frozenset() if execution is None else execution.plan.asset_ids)
    needed = frozenset() if execution is None else execution.method.needed_supplies
    scope = yield from asset_scope(bound)
    supplies = yield from supplies_in_scope(needed, scope, deployment.self_facility_code)
    enclosures, contacts = yield from enclosures_with_contacts(scope.enclosure_ids)
    return Ground(
        now=call.now,
        targets=tuple(targets.values()),
        needed_supplies=needed,
        scope=scope,
        supplies=supplies,
        enclosures=enclosures,
        contacts=contacts,
        fresh_within=deployment.enclosure_observation_ttl,
        monitored=deployment.monitored_enclosures,
        resuming=resuming,
    )


def acknowledged_cautions(procedure: Procedure, run: Run | None, ground: Ground) -> Reads[tuple[AcknowledgedCaution, ...]]:
    """The cautions that a conduct acknowledges: on the procedure, its recipe, its run's plan and the judged assets."""
    worked_with = (
        (CautionTargetKind.PROCEDURE, procedure.id),
        (CautionTargetKind.RECIPE, procedure.recipe_id),
        (CautionTargetKind.PLAN, None if run is None else run.plan_id),
    )
    work = frozenset(CautionTarget(kind=kind, id=id) for kind, id in worked_with if id is not None)
    bound, above = ground.scope.bound_ids, ground.scope.ancestor_ids
    return banner((yield from cautions_in_scope(bound, above, work)), bound, above, work, ground.now)


def targets_in_service(ground: Ground) -> None:
    """No target asset is Decommissioned."""
    gone = sorted((asset for asset in ground.targets if asset.lifecycle is DECOMMISSIONED), key=lambda asset: asset.id)
    if gone:
        raise ProcedureAssetDecommissionedError(
            f"{', '.join(asset.name for asset in gone)} is Decommissioned; register the procedure for other assets.",
            reason="asset_decommissioned",
            facts={"asset_ids": [str(asset.id) for asset in gone]},
        )


def supplies_available(ground: Ground) -> None:
    """Of every kind of supply the run's method needs, one is available."""
    if (finding := supply_finding(ground.needed_supplies, ground.supplies, ground.resuming)) is not None:
        raise finding.refusal(ProcedureRequiresAvailableSupplyError, ProcedureSupplyCoverageMismatchError)


def enclosures_permitted(ground: Ground) -> None:
    """Every enclosure that assets in scope stand in permits work, by a recent observation."""
    finding = enclosure_finding(
        ground.scope.enclosure_ids, ground.enclosures, ground.contacts, ground.now, ground.fresh_within, ground.monitored
    )
    if finding is not None:
        raise finding.refusal(ProcedureRequiresPermittedEnclosureError, ProcedureEnclosureCoverageMismatchError)


GATES = (targets_in_service, supplies_available, enclosures_permitted)
"""What a procedure must pass, in order, to start and to go on."""
GATE_REFUSALS = (
    Run.aggregate.NotFound,
    Asset.aggregate.NotFound,
    Plan.aggregate.NotFound,
    Practice.aggregate.NotFound,
    Method.aggregate.NotFound,
    AncestorWalkDepthExceededError,
    ProcedureAssetDecommissionedError,
    ProcedureRequiresAvailableSupplyError,
    ProcedureSupplyCoverageMismatchError,
    ProcedureRequiresPermittedEnclosureError,
    ProcedureEnclosureCoverageMismatchError,
)


def pass_gates(ground: Ground) -> None:
    """Refuse by the first gate that stays closed."""
    for gate in GATES:
        gate(ground)
