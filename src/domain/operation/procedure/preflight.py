"""Every gate of a procedure at once: whether it could start now or, from Held, go on, by hand and by a conduct.

The rules are those that the commands themselves are judged by, in the same order; here all of them are asked.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from uuid import UUID

from pydantic import BaseModel

from baton.domain.caution.banner import AcknowledgedCaution
from baton.domain.kernel import Call, Query
from baton.domain.operation.conduct.conduct import (
    ConductFromProcedure,
    ConductOrHoldProcedure,
    ConductProcedure,
    ConductUntilConverged,
    refuse_forward,
    refuse_idle_run,
    refuse_resuming,
    refuse_rivals,
    rivals_of,
)
from baton.domain.operation.conduct.grants import ask_grants, needed_grants
from baton.domain.operation.conduct.pins import pinned_steps, prepared
from baton.domain.operation.procedure.gates import GATES, Ground, acknowledged_cautions, ground_of, parent_run_of
from baton.domain.operation.procedure.procedure import HELD, Procedure, ProcedureStepsResolved, procedure
from baton.domain.operation.procedure.start import RESUMING, ResumeProcedure, StartProcedure, conduct_live, refuse_pinned
from baton.domain.operation.steering.steered_conduct import ConductUntilAdvised, ConductUntilAdvisedFrom
from baton.domain.run.run import Run
from baton.domain.shared.gates import AskedGateVerdict, CommandVerdict, GateVerdict, closed, judged, verdict_on
from baton.domain.shared.reads import Reads, happened
from baton.domain.shared.refusals import Refusal

NOT_JUDGED = "not_judged"
"""Why a gate does not let pass that could not be asked, because what it asks about could not be loaded."""


COMMANDS = {
    command.operation.name: command.operation.command_name
    for command in (
        StartProcedure,
        ConductProcedure,
        ConductOrHoldProcedure,
        ConductUntilConverged,
        ConductUntilAdvised,
        ResumeProcedure,
        ConductFromProcedure,
        ConductUntilAdvisedFrom,
    )
}
"""The commands that begin a procedure or take it up, and what permits each."""
STARTING = ("start_procedure", "conduct_procedure")
"""What a procedure is usually begun with, by hand and by a conduct."""
BEGINNING = (*STARTING, "conduct_or_hold_procedure", "conduct_until_converged")
STEERED = (*BEGINNING, "conduct_until_advised")
"""What a procedure that follows a recipe can be begun with besides."""


class ProcedurePreflight(BaseModel):
    """Every gate's verdict in order, and what that means for beginning or going on by hand and by a conduct.

    A command that is not listed would be refused for the procedure's status, for how it was conducted, or for want of a
    recipe to steer. `passed` is said of the command that takes a held procedure up and, before that, of start_procedure and
    conduct_procedure.
    The cautions are those that a conduct would acknowledge now; none, where what they are on cannot be loaded.
    """

    procedure_id: UUID
    resuming: bool
    taken_up_by: str | None
    """The command that takes a held procedure up; null where it is not held."""
    passed: bool
    commands: tuple[CommandVerdict, ...]
    gates: tuple[AskedGateVerdict, ...]
    acknowledged_cautions: tuple[AcknowledgedCaution, ...]


class Round:
    """The gates asked so far; each is put to those of the commands that have to pass it."""

    def __init__(self, by_hand: str, *conduct: str) -> None:
        self.by_hand, self.conduct = (by_hand,), conduct
        self.both = self.by_hand + self.conduct
        self.verdicts: list[AskedGateVerdict] = []
        self.cautions: tuple[AcknowledgedCaution, ...] = ()

    def note(self, verdict: GateVerdict, asked_by: tuple[str, ...]) -> None:
        if asked_by:
            self.verdicts.append(AskedGateVerdict(**dict(verdict), asked_by=asked_by))

    def ask(self, gate: str, asked_by: tuple[str, ...], judge: Callable[[], None], subjects: Iterable[UUID] = ()) -> None:
        """Put a gate to commands."""
        self.note(judged(gate, subjects, judge), asked_by)

    def pass_over(self, gates: Sequence[str]) -> None:
        """Note gates that cannot be asked."""
        for gate in gates:
            detail = "This cannot be judged before what is missing is found."
            verdict = GateVerdict(gate=gate, passed=False, reason=NOT_JUDGED, detail=detail, subjects=())
            self.note(verdict, self.both)

    def outcome(self, procedure: Procedure) -> ProcedurePreflight:
        taken_up_by = self.both[-1] if procedure.status is HELD else None
        commands = tuple(verdict_on(command, self.verdicts) for command in self.both)
        asked = STARTING if taken_up_by is None else (taken_up_by,)
        return ProcedurePreflight(
            procedure_id=procedure.id,
            resuming=procedure.status is HELD,
            taken_up_by=taken_up_by,
            passed=all(verdict.passed for verdict in commands if verdict.command in asked),
            commands=commands,
            gates=tuple(self.verdicts),
            acknowledged_cautions=self.cautions,
        )


@procedure.query(get="/{procedure_id}/preflight", returns=ProcedurePreflight, essential=True)
class PreflightProcedure(Query):
    """Ask every gate whether this procedure could start now or, from Held, go on; and change nothing."""

    def answer(self, procedure: Procedure, call: Call) -> Reads[ProcedurePreflight]:
        if procedure.status is HELD:
            return (yield from ask_to_resume(procedure, call))
        return (yield from ask_to_start(procedure, call))


def ask_to_start(procedure: Procedure, call: Call) -> Reads[ProcedurePreflight]:
    """Ask the gates of a beginning."""
    gates, start = Round(*(BEGINNING if procedure.recipe_id is None else STEERED)), StartProcedure()
    yield from ask_permissions(gates)
    gates.ask("status_allowed", gates.by_hand, lambda: start.operation.check(start, procedure))
    gates.ask("conduct_allowed", gates.conduct, lambda: refuse_forward(procedure))
    run, found = yield from ask_run(gates, procedure, StartProcedure)
    yield from ask_steps(gates, procedure, run)
    yield from ask_ground(gates, procedure, run, found, call)
    return gates.outcome(procedure)


def ask_to_resume(procedure: Procedure, call: Call) -> Reads[ProcedurePreflight]:
    """Ask the gates of going on: by the command of its mode where the procedure was conducted, else by hand."""
    mode, resume = procedure.conduct_mode, ResumeProcedure()
    gates = Round("resume_procedure", *(() if mode is None else (RESUMING[mode],)))

    def status_allowed() -> None:
        resume.operation.check(resume, procedure)
        if procedure.live_conduct_id is not None:
            raise conduct_live(resume, procedure)

    yield from ask_permissions(gates)
    gates.ask("status_allowed", gates.by_hand, status_allowed)
    gates.ask("conduct_allowed", gates.conduct, lambda: refuse_resuming(procedure))
    run, found = yield from ask_run(gates, procedure, ResumeProcedure)
    gates.ask("conduct_unpinned", gates.by_hand, lambda: refuse_pinned(resume, procedure))
    yield from ask_programs(gates, procedure)
    yield from ask_ground(gates, procedure, run, found, call)
    return gates.outcome(procedure)


def ask_permissions(gates: Round) -> Reads[None]:
    """Ask whether the caller holds what each command takes and all that its conduct would do on the caller's behalf."""
    wanted = {command: needed_grants(COMMANDS[command]) for command in gates.both}
    for verdict, commands in (yield from ask_grants(wanted, gates.by_hand)):
        gates.note(verdict, commands)


def ask_run(
    gates: Round, procedure: Procedure, verb: type[StartProcedure] | type[ResumeProcedure]
) -> Reads[tuple[Run | None, bool]]:
    """Ask whether the parent run goes on; answers the run, and whether there is one where there should be."""
    parent = () if procedure.parent_run_id is None else (procedure.parent_run_id,)
    try:
        run = yield from parent_run_of(procedure)
    except Refusal as missing:
        gates.note(closed("parent_run_running", parent, missing), gates.both)
        return None, False
    gates.ask("parent_run_running", gates.both, lambda: refuse_idle_run(run, verb), parent)
    return run, True


def ask_steps(gates: Round, procedure: Procedure, run: Run | None) -> Reads[None]:
    """Ask whether the steps of a recipe can be pinned; steps that come with the request are judged with it."""
    recipe = () if procedure.recipe_id is None else (procedure.recipe_id,)
    try:
        yield from prepared(procedure, (), run)
    except Refusal as refusal:
        gates.note(closed("steps_prepared", recipe, refusal), gates.conduct)
    else:
        gates.note(GateVerdict(gate="steps_prepared", passed=True, subjects=recipe), gates.conduct)


def ask_programs(gates: Round, procedure: Procedure) -> Reads[None]:
    """Ask whether the programs of the pinned steps are still allowed."""
    pins = yield from happened(procedure.id, ProcedureStepsResolved)
    try:
        for pin in pins[-1:]:
            yield from pinned_steps(pin)
    except Refusal as refusal:
        gates.note(closed("programs_allowed", (), refusal), gates.conduct)
    else:
        gates.note(GateVerdict(gate="programs_allowed", passed=True, subjects=()), gates.conduct)


def ask_ground(gates: Round, procedure: Procedure, run: Run | None, found: bool, call: Call) -> Reads[None]:
    """Ask about everything the procedure stands on, and whether its assets are free to be conducted on."""
    targets, names = tuple(sorted(procedure.target_asset_ids)), [gate.__name__ for gate in GATES]
    if not found:
        gates.pass_over(["targets_found", *names])
    else:
        try:
            ground = yield from ground_of(procedure, run, call, resuming=procedure.status is HELD)
        except Refusal as missing:
            gates.note(closed("targets_found", targets, missing), gates.both)
            gates.pass_over(names)
        else:
            gates.note(GateVerdict(gate="targets_found", passed=True, subjects=targets), gates.both)
            for gate in GATES:
                gates.ask(gate.__name__, gates.both, partial(gate, ground), SUBJECTS[gate.__name__](ground))
            gates.cautions = yield from acknowledged_cautions(procedure, run, ground)
    rivals = yield from rivals_of(procedure)
    gates.ask("targets_unclaimed", gates.conduct, lambda: refuse_rivals(rivals), targets)


SUBJECTS: dict[str, Callable[[Ground], Iterable[UUID]]] = {
    "targets_in_service": lambda ground: (asset.id for asset in ground.targets),
    "supplies_available": lambda ground: (supply.id for supply in ground.supplies),
    "enclosures_permitted": lambda ground: ground.scope.enclosure_ids,
}
"""What each gate on the ground asks about."""
