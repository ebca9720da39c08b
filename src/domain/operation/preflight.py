"""Every gate of a procedure at once: whether it could start now or, from Held, go on, by hand and by a conduct.

The rules are those that the commands themselves are judged by, in the same order; here all of them are asked.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from uuid import UUID

from pydantic import BaseModel

from domain.kernel import Call, Query
from domain.operation.carrying_out import RESUMING, ResumeProcedure, StartProcedure, conduct_live
from domain.operation.conducting import (
    refuse_forward,
    refuse_idle_run,
    refuse_resuming,
    refuse_rivals,
    rivals_of,
)
from domain.operation.gates import GATES, Ground, ground_of, parent_run_of
from domain.operation.pins import pinned_steps, prepared
from domain.operation.procedure import HELD, Procedure, ProcedureStepsResolved, procedure
from domain.run.run import Run
from domain.shared.gates import GateVerdict, closed, judged
from domain.shared.reads import Reads, happened
from domain.shared.refusals import Refusal

NOT_JUDGED = "not_judged"
"""Why a gate does not let pass that could not be asked, because what it asks about could not be loaded."""


class ProcedureGateVerdict(GateVerdict):
    """What one gate says, and the commands that have to pass it."""

    asked_by: tuple[str, ...]


class CommandVerdict(BaseModel):
    """Whether a command would pass all its gates and, if not, the first that refuses it."""

    command: str
    passed: bool
    refused_by: str | None


class ProcedurePreflight(BaseModel):
    """Every gate's verdict in order, and what that means for beginning or going on by hand and by a conduct."""

    procedure_id: UUID
    resuming: bool
    passed: bool
    commands: tuple[CommandVerdict, ...]
    gates: tuple[ProcedureGateVerdict, ...]


class Round:
    """The gates asked so far; each is put to those of the commands that have to pass it."""

    def __init__(self, by_hand: str, conduct: str | None) -> None:
        self.by_hand, self.conduct = (by_hand,), () if conduct is None else (conduct,)
        self.both = self.by_hand + self.conduct
        self.verdicts: list[ProcedureGateVerdict] = []

    def note(self, verdict: GateVerdict, asked_by: tuple[str, ...]) -> None:
        if asked_by:
            self.verdicts.append(ProcedureGateVerdict(**dict(verdict), asked_by=asked_by))

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
        return ProcedurePreflight(
            procedure_id=procedure.id,
            resuming=procedure.status is HELD,
            passed=all(verdict.passed for verdict in self.verdicts),
            commands=tuple(map(self._verdict_on, self.both)),
            gates=tuple(self.verdicts),
        )

    def _verdict_on(self, command: str) -> CommandVerdict:
        shut = [one.gate for one in self.verdicts if command in one.asked_by and not one.passed]
        return CommandVerdict(command=command, passed=not shut, refused_by=shut[0] if shut else None)


@procedure.query(get="/{procedure_id}/preflight", returns=ProcedurePreflight, essential=True)
class PreflightProcedure(Query):
    """Ask every gate whether this procedure could start now or, from Held, go on; and change nothing."""

    def answer(self, procedure: Procedure, call: Call) -> Reads[ProcedurePreflight]:
        if procedure.status is HELD:
            return (yield from ask_to_resume(procedure, call))
        return (yield from ask_to_start(procedure, call))


def ask_to_start(procedure: Procedure, call: Call) -> Reads[ProcedurePreflight]:
    """Ask the gates of a beginning."""
    gates, start = Round("start_procedure", "conduct_procedure"), StartProcedure()
    gates.ask("status_allowed", gates.by_hand, lambda: start.operation.check(start, procedure))
    gates.ask("conduct_allowed", gates.conduct, lambda: refuse_forward(procedure))
    run, found = yield from ask_run(gates, procedure, StartProcedure)
    yield from ask_steps(gates, procedure, run)
    yield from ask_ground(gates, procedure, run, found, call)
    return gates.outcome(procedure)


def ask_to_resume(procedure: Procedure, call: Call) -> Reads[ProcedurePreflight]:
    """Ask the gates of going on; by hand that takes `by_hand` where the procedure was conducted, and there is no other
    way where it never was."""
    mode = procedure.conduct_mode
    gates = Round("resume_procedure", None if mode is None else RESUMING[mode])
    resume = ResumeProcedure(by_hand=True)

    def status_allowed() -> None:
        resume.operation.check(resume, procedure)
        if procedure.live_conduct_id is not None:
            raise conduct_live(resume, procedure)

    gates.ask("status_allowed", gates.by_hand, status_allowed)
    gates.ask("conduct_allowed", gates.conduct, lambda: refuse_resuming(procedure))
    run, found = yield from ask_run(gates, procedure, ResumeProcedure)
    yield from ask_programs(gates, procedure)
    yield from ask_ground(gates, procedure, run, found, call)
    return gates.outcome(procedure)


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
    rivals = yield from rivals_of(procedure)
    gates.ask("targets_unclaimed", gates.conduct, lambda: refuse_rivals(rivals), targets)


SUBJECTS: dict[str, Callable[[Ground], Iterable[UUID]]] = {
    "targets_in_service": lambda ground: (asset.id for asset in ground.targets),
    "supplies_available": lambda ground: (supply.id for supply in ground.supplies),
    "enclosures_permitted": lambda ground: ground.scope.enclosure_ids,
}
"""What each gate on the ground asks about."""
