"""The gates that a procedure passes to start and to resume: its assets, supplies, enclosures, and its submitter's grants.

A conduct issues further commands as its submitter, who must hold all of their permissions when it is opened.
"""

from collections.abc import Iterable, Mapping
from functools import partial

from baton.domain.caution.caution import AcknowledgedCaution, CautionTarget, CautionTargetKind, banner, cautions_in_scope
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_tree import asset_scope
from baton.domain.kernel import Call, Command
from baton.domain.operation.conduct.messages import OBJECTIONS
from baton.domain.operation.procedure.procedure import MODES, ConductMode, Procedure
from baton.domain.run.gates import Preconditions, enclosure_ids, load_plan, load_preconditions, supply_ids
from baton.domain.run.run import Run, RunStatus
from baton.domain.shared.gates import Gate, GateReport
from baton.domain.shared.reads import Reads, missing_grants, required, required_all
from baton.domain.shared.refusals import Conflict, UnauthorizedError


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


def parent_run_of(procedure: Procedure) -> Reads[Run | None]:
    """Return the run that this procedure is a phase of, or None."""
    if procedure.parent_run_id is None:
        return None
    return (yield from required(Run, procedure.parent_run_id))


def idle_run(run: Run | None) -> str | None:
    """Return why a phase of this run may not go on, or None; a procedure without a run may."""
    if run is None or run.status is RunStatus.RUNNING:
        return None
    advice = "resume it first" if run.status is RunStatus.HELD else "register the procedure with another run"
    return f"The parent run is {run.status.value}; {advice}."


def refuse_idle_run(run: Run | None, verb: type[Command]) -> None:
    """Refuse, as another verb would, a phase whose run is not Running."""
    if (why := idle_run(run)) is not None:
        raise verb.Cannot(why, reason="parent_run_not_running")


def procedure_preconditions(procedure: Procedure, run: Run | None, call: Call, *, resuming: bool) -> Reads[Preconditions]:
    """Load the facts that the gates of a procedure judge; refuse with 404 a missing target, or a missing link of its run."""
    targets = procedure.target_asset_ids
    yield from required_all(Asset, targets)
    if run is None:
        return (
            yield from load_preconditions(call, (yield from asset_scope(targets)), targets, frozenset(), resuming=resuming)
        )
    plan, method = yield from load_plan(run.plan_id)
    scope = yield from asset_scope(targets | plan.asset_ids)
    return (yield from load_preconditions(call, scope, targets, method.needed_supplies, resuming=resuming))


def acknowledged_cautions(
    procedure: Procedure, run: Run | None, facts: Preconditions
) -> Reads[tuple[AcknowledgedCaution, ...]]:
    """Return the cautions that a conduct acknowledges: on the procedure, its recipe, its run's plan and the assets."""
    targets = (
        (CautionTargetKind.PROCEDURE, procedure.id),
        (CautionTargetKind.RECIPE, procedure.recipe_id),
        (CautionTargetKind.PLAN, None if run is None else run.plan_id),
    )
    work = frozenset(CautionTarget(kind=kind, id=id) for kind, id in targets if id is not None)
    bound, above = facts.scope.bound_ids, facts.scope.ancestor_ids
    return banner((yield from cautions_in_scope(bound, above, work)), bound, above, work, facts.now)


def targets_in_service(facts: Preconditions) -> None:
    """No target asset is Decommissioned."""
    if gone := facts.decommissioned_assets:
        raise ProcedureAssetDecommissionedError(
            f"{', '.join(asset.name for asset in gone)} is Decommissioned; register the procedure for other assets.",
            reason="asset_decommissioned",
            facts={"asset_ids": [str(asset.id) for asset in gone]},
        )


def supplies_available(facts: Preconditions) -> None:
    """Of every kind of supply the run's method needs, one is available."""
    if (finding := facts.supply) is not None:
        raise finding.refusal(ProcedureRequiresAvailableSupplyError, ProcedureSupplyCoverageMismatchError)


def enclosures_permitted(facts: Preconditions) -> None:
    """Every enclosure that assets in scope stand in permits work, by a recent observation."""
    if (finding := facts.enclosure) is not None:
        raise finding.refusal(ProcedureRequiresPermittedEnclosureError, ProcedureEnclosureCoverageMismatchError)


GATES = (
    Gate(targets_in_service, lambda facts: facts.asset_ids),
    Gate(supplies_available, supply_ids),
    Gate(enclosures_permitted, enclosure_ids),
)  # The gates that a procedure passes, in order, to start and to resume.

ENDINGS = ("AbortProcedure", "CompleteProcedure", "HoldProcedure")
PASSES = ("EndProcedureIteration", "StartProcedureIteration")
ISSUED: Mapping[ConductMode, tuple[str, ...]] = {
    ConductMode.FLAT: ENDINGS,
    ConductMode.CONVERGED: (*ENDINGS, *PASSES),
    ConductMode.ADVISED: (*ENDINGS, *PASSES),
}  # The commands that a conduct issues as its submitter, in each mode.
RUN_ISSUED = ("AbortRun", "CompleteRun", "HoldRun")
"""The commands that the conduct of a run issues as its submitter, besides those of its phases."""


def needed_grants(command_name: str) -> tuple[str, ...]:
    """Return the permissions that a command of a procedure needs; one that conducts needs those of its end too."""
    mode = MODES.get(command_name)
    return (command_name, *(() if mode is None else ISSUED[mode]))


def refuse_missing(objection: str | None, missing: Iterable[str]) -> None:
    """Refuse a submitter who may not act at all, or who does not hold all that the conduct will do on its behalf."""
    if objection is not None:
        raise UnauthorizedError(f"{OBJECTIONS[objection]}; have somebody conduct it who may.", reason=objection)
    if names := sorted(set(missing)):
        raise UnauthorizedError(
            f"The conduct would do {', '.join(names)} on your behalf, which your policies do not permit here; "
            "ask an administrator for that, or have somebody conduct it who may.",
            reason="grants_missing",
            facts={"missing": names},
        )


def refuse_missing_grants(command_names: Iterable[str]) -> Reads[None]:
    """Refuse to open a conduct whose submitter does not hold all of these."""
    refuse_missing(*(yield from missing_grants(*command_names)))


def ask_grants(report: GateReport, wanted: Mapping[str, Iterable[str]], by_hand: Iterable[str]) -> Reads[None]:
    """Ask the gate `grants_present` for several commands; commands with the same answer share a verdict.

    A command by hand needs its own permission only, whatever keeps its caller from conducting.
    """
    objection, missing = yield from missing_grants(*{name: None for names in wanted.values() for name in names})
    sharing: dict[tuple[str | None, tuple[str, ...]], tuple[str, ...]] = {}
    for command, names in wanted.items():
        found = None if command in by_hand else objection, tuple(name for name in missing if name in set(names))
        sharing[found] = (*sharing.get(found, ()), command)
    for found, commands in sharing.items():
        report.ask("grants_present", commands, partial(refuse_missing, *found))
