"""The preflight of a procedure: every gate of starting or resuming it, by hand and by a conduct, asked at once.
The rules are those that the commands themselves are judged by, in the same order."""

from uuid import UUID

from pydantic import BaseModel

from baton.domain.caution.caution import AcknowledgedCaution
from baton.domain.kernel import Call, Query
from baton.domain.operation.conduct.conduct import refuse_begun, refuse_not_held, refuse_rivals, rivals_of
from baton.domain.operation.conduct.pins import pinned_steps, prepare_steps
from baton.domain.operation.procedure import start
from baton.domain.operation.procedure.procedure import HELD, Procedure, ProcedureStepsResolved, procedure
from baton.domain.operation.procedure.start import ResumeProcedure, StartProcedure
from baton.domain.registry import REGISTRY
from baton.domain.run.run import Run
from baton.domain.shared.gates import Commands, CommandVerdict, GateReport, GateVerdict
from baton.domain.shared.reads import Reads, events_of, require_if_given
from baton.domain.shared.refusals import Refusal

FIRST_CONDUCTS = ("conduct_procedure", "conduct_or_hold_procedure", "conduct_until_converged")
STEERED_CONDUCTS = (*FIRST_CONDUCTS, "conduct_until_advised")  # The conducts that begin a procedure with a recipe.


class ProcedurePreflight(BaseModel):
    """Every gate's verdict in order, and what that means for beginning or going on by hand and by a conduct.

    A command that is not listed would be refused for the procedure's status, for how it was conducted, or for want of a
    recipe to steer. `passed` is said of the command that takes a held procedure up and, before that, of start_procedure and
    conduct_procedure.
    The cautions are those that a conduct would acknowledge now; none, where what they are on cannot be loaded.
    """

    procedure_id: UUID
    resuming: bool
    taken_up_by: str | None  # The command that takes a held procedure up; null where it is not held.
    passed: bool
    commands: tuple[CommandVerdict, ...]
    gates: tuple[GateVerdict, ...]
    acknowledged_cautions: tuple[AcknowledgedCaution, ...]


@procedure.query(get="/{procedure_id}/preflight", returns=ProcedurePreflight, essential=True)
class PreflightProcedure(Query):
    """Ask every gate whether this procedure could start now or, from Held, go on; and change nothing."""

    def answer(self, procedure: Procedure, call: Call) -> Reads[ProcedurePreflight]:
        resuming = procedure.status is HELD
        by_hand = ResumeProcedure() if resuming else StartProcedure()
        conducts: Commands = FIRST_CONDUCTS if procedure.recipe_id is None else STEERED_CONDUCTS
        if resuming:
            conducts = () if procedure.conduct_mode is None else (start.RESUMING[procedure.conduct_mode],)
        commands = (by_hand.operation.name, *conducts)
        report = GateReport()
        cautions = yield from ask_gates(report, procedure, call, by_hand, conducts)
        verdicts = tuple(map(report.command_verdict, commands))
        required = (commands[-1],) if resuming else ("start_procedure", "conduct_procedure")
        return ProcedurePreflight(
            procedure_id=procedure.id,
            resuming=resuming,
            taken_up_by=commands[-1] if resuming else None,
            passed=all(verdict.passed for verdict in verdicts if verdict.command in required),
            commands=verdicts,
            gates=tuple(report.verdicts),
            acknowledged_cautions=cautions,
        )


def ask_gates(
    report: GateReport, procedure: Procedure, call: Call, by_hand: StartProcedure | ResumeProcedure, conducts: Commands
) -> Reads[tuple[AcknowledgedCaution, ...]]:
    """Ask every gate of the command by hand and of the conducts; return the cautions that a conduct would acknowledge."""
    resuming, hand = isinstance(by_hand, ResumeProcedure), (by_hand.operation.name,)
    both = hand + conducts
    needed = {name: start.needed_grants(REGISTRY.operations[name].command_name) for name in both}
    yield from start.ask_grants(report, needed, hand)
    report.ask("status_allowed", hand, lambda: refuse_status(by_hand, procedure))
    report.ask("conduct_allowed", conducts, lambda: refuse_not_held(procedure) if resuming else refuse_begun(procedure))
    parent = () if procedure.parent_run_id is None else (procedure.parent_run_id,)
    run, run_missing = None, None
    try:
        run = yield from require_if_given(Run, procedure.parent_run_id)
    except Refusal as refusal:
        run_missing = refusal
        report.note("parent_run_running", both, refusal, parent)
    else:
        report.ask("parent_run_running", both, lambda: start.refuse_idle_run(run, type(by_hand)), parent)
    if isinstance(by_hand, ResumeProcedure):
        report.ask("conduct_unpinned", hand, lambda: start.refuse_pinned(by_hand, procedure))
        if pins := (yield from events_of(procedure.id, ProcedureStepsResolved)):
            yield from report.ask_reads("programs_allowed", conducts, pinned_steps(pins[-1]))
    else:
        recipe = () if procedure.recipe_id is None else (procedure.recipe_id,)
        yield from report.ask_reads("steps_prepared", conducts, prepare_steps(procedure, (), run), recipe)
    targets, facts = procedure.target_asset_ids, None
    cautions: tuple[AcknowledgedCaution, ...] = ()
    if run_missing is None:
        loading = start.procedure_preconditions(procedure, run, call, resuming=resuming)
        facts = yield from report.ask_reads("targets_found", both, loading, targets)
    else:
        report.skip(["targets_found"], both)
    if facts is None:
        report.skip([gate.name for gate in start.GATES], both)
    else:
        report.ask_all(start.GATES, both, facts)
        cautions = yield from start.acknowledged_cautions(procedure, run, facts)
    rivals = yield from rivals_of(procedure)
    report.ask("targets_unclaimed", conducts, lambda: refuse_rivals(rivals), targets)
    return cautions


def refuse_status(by_hand: StartProcedure | ResumeProcedure, procedure: Procedure) -> None:
    """Refuse a start or resumption by hand that the status or a live conduct does not allow."""
    by_hand.operation.check(by_hand, procedure)
    if procedure.live_conduct_id is not None:
        raise start.live_conduct_refusal(by_hand, procedure)
