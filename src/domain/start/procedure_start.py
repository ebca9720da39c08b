"""The gates that a procedure passes to start and to resume, and how people do both; a conduct has commands of its own."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Annotated
from uuid import UUID

from pydantic import Field

from baton.domain.caution.caution import AcknowledgedCaution, CautionTarget, CautionTargetKind, banner, cautions_in_scope
from baton.domain.decision.decision import Decision
from baton.domain.equipment.asset import MAINTENANCE, Asset, AssetCondition
from baton.domain.equipment.asset_tree import asset_scope
from baton.domain.kernel import Call, Command, JudgedVerb, Outcome
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import HELD, MODES, ConductMode, Procedure, procedure
from baton.domain.run.gates import (
    Preconditions,
    clearance_ids,
    clearance_times,
    load_plan,
    load_preconditions,
    supply_ids,
    with_clearances,
)
from baton.domain.run.run import Run, RunStatus
from baton.domain.shared.gates import NOT_CONFIRMED, Gate, GateReport, pass_gates
from baton.domain.shared.reads import Reads, events_of, missing_grants, require_all, require_if_given
from baton.domain.shared.refusals import Conflict, Invalid, Refusal, UnauthorizedError


class ProcedureAssetDecommissionedError(Conflict, context="operation"):
    """A judged asset of the procedure is Decommissioned."""


class ProcedureAssetNotReadyError(Conflict, context="operation", passing=True):
    """A judged asset of the procedure is Faulted or in Maintenance."""


class ProcedureRequiresAvailableSupplyError(Conflict, context="operation", passing=True):
    """The parent run's method needs a kind of supply that nothing in scope provides."""


class ProcedureSupplyCoverageMismatchError(Conflict, context="operation", passing=True):
    """The parent run's method needs a kind of supply that is in scope but not available."""


class ProcedureRequiresPermittedEnclosureError(Conflict, context="operation", passing=True):
    """No enclosure that the procedure's assets stand in permits work."""


class ProcedureEnclosureCoverageMismatchError(Conflict, context="operation", passing=True):
    """Some enclosures that the procedure's assets stand in do not permit work."""


class ProcedureRequiresActiveClearanceError(Conflict, context="operation", passing=True):
    """No clearance covers the parent run by its subject, an asset in scope or itself."""


class ProcedureClearanceCoverageMismatchError(Conflict, context="operation", passing=True):
    """Clearances cover the parent run and the judged assets, but none of them is in force."""


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


def procedure_preconditions(
    procedure: Procedure, run: Run | None, call: Call, *, resuming: bool, asset_ids: frozenset[UUID] | None = None
) -> Reads[Preconditions]:
    """Load the facts of assets, supplies and enclosures, for these judged assets or those of the latest opening; refuse with
    404 a missing asset, or a missing link of its run."""
    judged = procedure.judged_asset_ids if asset_ids is None else asset_ids
    yield from require_all(Asset, judged)
    bound, supplies = judged, frozenset[str]()
    if run is not None:
        plan, method = yield from load_plan(run.plan_id)
        bound, supplies = judged | plan.asset_ids, method.needed_supplies
    scope = yield from asset_scope(bound)
    return (yield from load_preconditions(call, scope, judged, supplies, resuming=resuming))


def start_preconditions(
    procedure: Procedure, run: Run | None, call: Call, asset_ids: frozenset[UUID], *, resuming: bool
) -> Reads[Preconditions]:
    """Load the facts that all gates of a procedure judge: of these assets and, for a phase, of clearances."""
    facts = yield from procedure_preconditions(procedure, run, call, resuming=resuming, asset_ids=asset_ids)
    if run is None:
        return facts
    return (yield from with_clearances(facts, run.id, run.subject_id))


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
    """No judged asset is Decommissioned."""
    if gone := facts.decommissioned_assets:
        raise ProcedureAssetDecommissionedError(
            f"{', '.join(asset.name for asset in gone)} is Decommissioned; register the procedure for other assets.",
            reason="asset_decommissioned",
            facts={"asset_ids": [asset.id for asset in gone]},
        )


def assets_ready(facts: Preconditions) -> None:
    """No judged asset is Faulted or in Maintenance."""
    if faulted := [asset for asset in facts.assets if asset.condition is AssetCondition.FAULTED]:
        detail = f"{', '.join(asset.name for asset in faulted)} is Faulted; have it repaired, then restore_asset."
        raise ProcedureAssetNotReadyError(detail, reason="asset_faulted", facts={"asset_ids": [one.id for one in faulted]})
    if maintained := [asset for asset in facts.assets if asset.lifecycle is MAINTENANCE]:
        detail = f"{', '.join(asset.name for asset in maintained)} is in Maintenance; exit_asset_maintenance first."
        ids = [asset.id for asset in maintained]
        raise ProcedureAssetNotReadyError(detail, reason="asset_in_maintenance", facts={"asset_ids": ids})


def supplies_available(facts: Preconditions) -> None:
    """Of every kind of supply the run's method needs, one is available."""
    if (finding := facts.supply) is not None:
        raise finding.refusal(ProcedureRequiresAvailableSupplyError, ProcedureSupplyCoverageMismatchError)


def enclosures_permitted(facts: Preconditions) -> None:
    """Every enclosure that assets in scope stand in permits work, by a recent observation."""
    if (finding := facts.enclosure) is not None:
        raise finding.refusal(ProcedureRequiresPermittedEnclosureError, ProcedureEnclosureCoverageMismatchError)


def permits_confirmed(facts: Preconditions, term: int | None) -> None:
    """The deployment's own monitor, which leads in this term, is there and has read what it watches of this."""
    if term is not None:
        return
    refusal: type[Conflict] = ProcedureSupplyCoverageMismatchError
    detail = "Nobody watches the supplies that this needs just now"
    if watched := facts.monitored_enclosures:
        refusal = ProcedureEnclosureCoverageMismatchError
        detail = f"Nobody confirms the permit of {', '.join(sorted(watched))} just now: no worker has read it of late"
    raise refusal(f"{detail}; see that a worker runs, look, and resume.", reason=NOT_CONFIRMED)


def clearance_in_force(facts: Preconditions) -> None:
    """There is no parent run, or a clearance that covers it or a judged asset is in force."""
    if facts.run_id is not None and (finding := facts.clearance) is not None:
        raise finding.refusal(ProcedureRequiresActiveClearanceError, ProcedureClearanceCoverageMismatchError)


GATES = (
    Gate(targets_in_service, lambda facts: facts.asset_ids),
    Gate(assets_ready, lambda facts: facts.asset_ids),
    Gate(supplies_available, supply_ids),
    Gate(enclosures_permitted, lambda facts: facts.scope.enclosure_ids),
    Gate(clearance_in_force, clearance_ids, clearance_times),
)  # The gates that a procedure passes, in order, to start and to resume.

GATE_REFUSALS: tuple[type[Refusal], ...] = (
    ProcedureAssetDecommissionedError,
    ProcedureAssetNotReadyError,
    ProcedureRequiresAvailableSupplyError,
    ProcedureSupplyCoverageMismatchError,
    ProcedureRequiresPermittedEnclosureError,
    ProcedureEnclosureCoverageMismatchError,
    ProcedureRequiresActiveClearanceError,
    ProcedureClearanceCoverageMismatchError,
)  # Every refusal of the gates.
HOLDING = tuple(kind for kind in GATE_REFUSALS if kind.passing)
"""The refusals that hold the run when a phase is to start, until somebody resumes it."""

ENDINGS = ("AbortProcedure", "CompleteProcedure", "HoldProcedure")
LOOPED = (*ENDINGS, "EndProcedureIteration", "StartProcedureIteration")
ISSUED = {ConductMode.FLAT: ENDINGS, ConductMode.CONVERGED: LOOPED, ConductMode.ADVISED: LOOPED}
"""The commands that a conduct issues as its submitter, in each mode."""
RUN_ISSUED = ("AbortRun", "CompleteRun", "HoldRun")
"""The commands that the conduct of a run issues as its submitter, besides those of its phases."""


def needed_grants(command_name: str) -> tuple[str, ...]:
    """Return the permissions that a command of a procedure needs; one that conducts needs those of its end too."""
    return (command_name, *issued_commands(command_name))


def issued_commands(command_name: str) -> tuple[str, ...]:
    """Return what a conduct that a command opens issues as its submitter; nothing where it opens none."""
    return ISSUED[MODES[command_name]] if command_name in MODES else ()


OBJECTIONS = {
    "principal_deactivated": "The account that asked for this conduct is deactivated",
    "agent_not_versioned": "The agent that asked for this conduct is not in service",
    "principal_unknown": "The account that asked for this conduct is not on record",
}  # The sentence for each reason why a principal may not act at all.


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


RESUMING = {
    ConductMode.FLAT: "conduct_from_procedure",
    ConductMode.CONVERGED: "conduct_until_converged",
    ConductMode.ADVISED: "conduct_until_advised_from",
}  # The command that resumes a procedure conducted in each mode.


def resuming_command(procedure: Procedure) -> str:
    """Return the command that takes a procedure up again."""
    return "resume_procedure" if procedure.conduct_mode is None else RESUMING[procedure.conduct_mode]


class InvalidProcedureReEstablishmentBoundaryError(Invalid, context="operation"):
    """There is no such step to take the procedure up at, or going on there would leave steps out."""


@procedure.command(post="/{procedure_id}/start", allowed=[procedures.DEFINED], leads_to=procedures.RUNNING, gated=True)
class StartProcedure(JudgedVerb[Procedure, Preconditions]):
    """Begin to carry the procedure out by hand, if its assets, supplies and enclosures allow it."""

    def gather(self, procedure: Procedure, call: Call) -> Reads[Preconditions]:
        self.operation.check(self, procedure)
        run = yield from require_if_given(Run, procedure.parent_run_id)
        if (why := idle_run(run)) is not None:
            raise self.cannot("parent_run_not_running", why)
        return (yield from start_preconditions(procedure, run, call, procedure.target_asset_ids, resuming=False))

    def decide(self, procedure: Procedure, call: Call, facts: Preconditions) -> Outcome:
        pass_gates(GATES, facts)
        return [procedures.ProcedureStarted(conduct_id=None, command_name=None, judged_asset_ids=facts.asset_ids)]


@procedure.command(post="/{procedure_id}/resume", allowed=[HELD], leads_to=procedures.RUNNING, gated=True)
class ResumeProcedure(JudgedVerb[Procedure, tuple[Preconditions, int | None]]):
    """Go on by hand after a hold; what was conducted is taken up by its own command, unless `by_hand` is said."""

    re_establishment_boundary: Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)] = 0
    by_hand: bool = False
    decided_by_decision_id: UUID | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[tuple[Preconditions, int | None]]:
        yield from require_if_given(Decision, self.decided_by_decision_id)
        self.operation.check(self, procedure)
        if procedure.live_conduct_id is not None:
            raise live_conduct_refusal(self, procedure)
        run = yield from require_if_given(Run, procedure.parent_run_id)
        if (why := idle_run(run)) is not None:
            raise self.cannot("parent_run_not_running", why)
        refuse_pinned(self, procedure)
        facts = yield from start_preconditions(procedure, run, call, procedure.target_asset_ids, resuming=True)
        pins = yield from events_of(procedure.id, procedures.ProcedureStepsResolved)
        return facts, len(pins[-1].resolved_steps) if pins else None

    def decide(self, procedure: Procedure, call: Call, known: tuple[Preconditions, int | None]) -> Outcome:
        facts, step_count = known
        check_boundary(self.re_establishment_boundary, step_count)
        pass_gates(GATES, facts)
        own = {name: value for name, value in self if name != "by_hand"} | {"judged_asset_ids": facts.asset_ids}
        return [procedures.ProcedureResumed(**own, conduct_id=None, command_name=None)]


def refuse_pinned(command: ResumeProcedure, procedure: Procedure) -> None:
    """Refuse to resume by hand a procedure that was conducted, unless `by_hand` is given."""
    if procedure.conduct_mode is not None and not command.by_hand:
        better = RESUMING[procedure.conduct_mode]
        detail = f"The procedure was conducted; take it up with {better}, or say by_hand."
        raise command.cannot("conduct_pinned", detail, command=better)


def check_boundary(boundary: int, step_count: int | None) -> None:
    """Refuse a boundary behind the last step; one just behind it leaves nothing to do."""
    if step_count is not None and boundary > step_count:
        detail = f"The procedure has {step_count} steps; give a boundary of 0 to {step_count}."
        raise InvalidProcedureReEstablishmentBoundaryError(detail, facts={"step_count": step_count})


LIVE_CONDUCT = "A conduct of this procedure is live; wait for it, hold it or abort it."


def live_conduct_refusal(command: Command, procedure: Procedure) -> Refusal:
    """Return the refusal of a command on a procedure whose conduct is live."""
    return command.cannot("conduct_live", LIVE_CONDUCT, conduct_id=procedure.live_conduct_id)
