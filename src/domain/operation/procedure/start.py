"""How people start and resume a procedure; a conduct does both through its own commands."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from baton.domain.kernel import Call, Command, JudgedVerb, Outcome
from baton.domain.operation.procedure.gates import GATES, idle_run, parent_run_of, procedure_preconditions
from baton.domain.operation.procedure.procedure import (
    DEFINED,
    HELD,
    ConductMode,
    Procedure,
    ProcedureResumed,
    ProcedureStarted,
    ProcedureStepsResolved,
    procedure,
)
from baton.domain.run.gates import Preconditions
from baton.domain.shared.gates import pass_gates
from baton.domain.shared.reads import Reads, events_of
from baton.domain.shared.refusals import Invalid, Refusal

RESUMING = {
    ConductMode.FLAT: "conduct_from_procedure",
    ConductMode.CONVERGED: "conduct_until_converged",
    ConductMode.ADVISED: "conduct_until_advised_from",
}  # The command that resumes a procedure conducted in each mode.


class InvalidProcedureReEstablishmentBoundaryError(Invalid, context="operation"):
    """There is no such step to take the procedure up at, or going on there would leave steps out."""


@procedure.command(post="/{procedure_id}/start", allowed=[DEFINED])
class StartProcedure(JudgedVerb[Procedure, Preconditions]):
    """Begin to carry the procedure out by hand, if its assets, supplies and enclosures allow it."""

    def gather(self, procedure: Procedure, call: Call) -> Reads[Preconditions]:
        self.operation.check(self, procedure)
        run = yield from parent_run_of(procedure)
        if (why := idle_run(run)) is not None:
            raise self.cannot("parent_run_not_running", why)
        return (yield from procedure_preconditions(procedure, run, call, resuming=False))

    def decide(self, procedure: Procedure, call: Call, facts: Preconditions) -> Outcome:
        pass_gates(GATES, facts)
        return [ProcedureStarted(conduct_id=None, command_name=None)]


@procedure.command(post="/{procedure_id}/resume", allowed=[HELD])
class ResumeProcedure(JudgedVerb[Procedure, tuple[Preconditions, int | None]]):
    """Go on by hand after a hold; what was conducted is taken up by its own command, unless `by_hand` is said."""

    re_establishment_boundary: Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)] = 0
    by_hand: bool = False
    decided_by_decision_id: UUID | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[tuple[Preconditions, int | None]]:
        self.operation.check(self, procedure)
        if procedure.live_conduct_id is not None:
            raise live_conduct_refusal(self, procedure)
        run = yield from parent_run_of(procedure)
        if (why := idle_run(run)) is not None:
            raise self.cannot("parent_run_not_running", why)
        refuse_pinned(self, procedure)
        facts = yield from procedure_preconditions(procedure, run, call, resuming=True)
        pins = yield from events_of(procedure.id, ProcedureStepsResolved)
        return facts, len(pins[-1].resolved_steps) if pins else None

    def decide(self, procedure: Procedure, call: Call, known: tuple[Preconditions, int | None]) -> Outcome:
        facts, step_count = known
        check_boundary(self.re_establishment_boundary, step_count)
        pass_gates(GATES, facts)
        return [
            ProcedureResumed(
                re_establishment_boundary=self.re_establishment_boundary,
                conduct_id=None,
                command_name=None,
                decided_by_decision_id=self.decided_by_decision_id,
            )
        ]


def refuse_pinned(command: ResumeProcedure, procedure: Procedure) -> None:
    """Refuse to resume by hand a procedure that was conducted, unless `by_hand` is given."""
    if procedure.conduct_mode is not None and not command.by_hand:
        better = RESUMING[procedure.conduct_mode]
        raise command.cannot(
            "conduct_pinned", f"The procedure was conducted; take it up with {better}, or say by_hand.", command=better
        )


def check_boundary(boundary: int, step_count: int | None) -> None:
    """Refuse a boundary behind the last step; one just behind it leaves nothing to do."""
    if step_count is not None and boundary > step_count:
        raise InvalidProcedureReEstablishmentBoundaryError(
            f"The procedure has {step_count} steps; give a boundary of 0 to {step_count}.", facts={"step_count": step_count}
        )


def live_conduct_refusal(command: Command, procedure: Procedure) -> Refusal:
    """Return the refusal of a command on a procedure whose conduct is live."""
    return command.cannot(
        "conduct_live",
        "A conduct of this procedure is live; wait for it, hold it or abort it.",
        conduct_id=str(procedure.live_conduct_id),
    )
