"""How a procedure is begun and taken up by people; a conduct does both through its own opening."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from baton.domain.kernel import Call, Command, JudgedVerb, Outcome
from baton.domain.operation.procedure.gates import GATE_REFUSALS, Ground, ground_of, parent_run_of, pass_gates, why_idle
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
from baton.domain.shared.reads import Reads, happened
from baton.domain.shared.refusals import Invalid, Refusal

RESUMING = {
    ConductMode.FLAT: "conduct_from_procedure",
    ConductMode.CONVERGED: "conduct_until_converged",
    ConductMode.ADVISED: "conduct_until_advised_from",
}
"""The command that takes up again what was conducted in each mode."""


class InvalidProcedureReEstablishmentBoundaryError(Invalid, context="operation"):
    """There is no such step to take the procedure up at, or going on there would leave steps out."""


@procedure.command(post="/{procedure_id}/start", allowed=[DEFINED], refuses=GATE_REFUSALS)
class StartProcedure(JudgedVerb[Procedure, Ground]):
    """Begin to carry the procedure out by hand, if its assets, supplies and enclosures allow it."""

    def gather(self, procedure: Procedure, call: Call) -> Reads[Ground]:
        self.operation.check(self, procedure)
        run = yield from parent_run_of(procedure)
        if (why := why_idle(run)) is not None:
            raise self.cannot("parent_run_not_running", why)
        return (yield from ground_of(procedure, run, call, resuming=False))

    def decide(self, procedure: Procedure, call: Call, ground: Ground) -> Outcome:
        pass_gates(ground)
        return [ProcedureStarted(conduct_id=None, command_name=None)]


@procedure.command(post="/{procedure_id}/resume", allowed=[HELD], refuses=[*GATE_REFUSALS])
class ResumeProcedure(JudgedVerb[Procedure, tuple[Ground, int | None]]):
    """Go on by hand after a hold; what was conducted is taken up by its own command, unless `by_hand` is said."""

    re_establishment_boundary: Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)] = 0
    by_hand: bool = False
    decided_by_decision_id: UUID | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[tuple[Ground, int | None]]:
        self.operation.check(self, procedure)
        if procedure.live_conduct_id is not None:
            raise conduct_live(self, procedure)
        run = yield from parent_run_of(procedure)
        if (why := why_idle(run)) is not None:
            raise self.cannot("parent_run_not_running", why)
        refuse_pinned(self, procedure)
        ground = yield from ground_of(procedure, run, call, resuming=True)
        pins = yield from happened(procedure.id, ProcedureStepsResolved)
        return ground, len(pins[-1].resolved_steps) if pins else None

    def decide(self, procedure: Procedure, call: Call, facts: tuple[Ground, int | None]) -> Outcome:
        ground, step_count = facts
        check_boundary(self.re_establishment_boundary, step_count)
        pass_gates(ground)
        return [
            ProcedureResumed(
                re_establishment_boundary=self.re_establishment_boundary,
                conduct_id=None,
                command_name=None,
                decided_by_decision_id=self.decided_by_decision_id,
            )
        ]


def refuse_pinned(command: ResumeProcedure, procedure: Procedure) -> None:
    """Refuse to go on by hand with what was conducted, unless that is said."""
    if procedure.conduct_mode is not None and not command.by_hand:
        better = RESUMING[procedure.conduct_mode]
        raise command.cannot(
            "conduct_pinned", f"The procedure was conducted; take it up with {better}, or say by_hand.", command=better
        )


def check_boundary(boundary: int, step_count: int | None) -> None:
    """Refuse to take steps up behind the last one; just behind it nothing is left to do."""
    if step_count is not None and boundary > step_count:
        raise InvalidProcedureReEstablishmentBoundaryError(
            f"The procedure has {step_count} steps; give a boundary of 0 to {step_count}.", facts={"step_count": step_count}
        )


def conduct_live(command: Command, procedure: Procedure) -> Refusal:
    """The refusal of what nobody but a live conduct may do to its procedure."""
    return command.cannot(
        "conduct_live",
        "A conduct of this procedure is live; wait for it, hold it or abort it.",
        conduct_id=str(procedure.live_conduct_id),
    )
