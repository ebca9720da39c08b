"""The life of a procedure: started, held, resumed and ended by people, whether it is carried out by hand or conducted.

While a conduct is live, holding and aborting are requests on the stream that the conduct serves at its next step.
"""

from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, Field

from domain.kernel import Call, Command, Outcome
from domain.operation.gates import GATE_REFUSALS, Ground, ground_of, is_running, parent_run_of, pass_gates
from domain.operation.procedure import (
    DEFINED,
    HELD,
    RUNNING,
    UNDER_WAY,
    ConductMode,
    HoldCause,
    PendingRequest,
    Procedure,
    ProcedureAborted,
    ProcedureAbortRequested,
    ProcedureCompleted,
    ProcedureHeld,
    ProcedureHoldRequested,
    ProcedureResumed,
    ProcedureStarted,
    ProcedureStepsResolved,
    ProcedureTruncated,
    procedure,
)
from domain.shared.reads import Reads, happened
from domain.shared.refusals import Invalid
from domain.shared.text import Text
from domain.shared.times import Instant
from domain.shared.writes import Answer

RESUMING = {
    ConductMode.FLAT: "conduct_from_procedure",
    ConductMode.CONVERGED: "conduct_until_converged",
    ConductMode.ADVISED: "conduct_until_advised_from",
}
"""The command that takes up again what was conducted in each mode."""


class InvalidProcedureHoldReasonError(Invalid):
    """Holding a procedure takes a reason that is not blank."""


class InvalidProcedureAbortReasonError(Invalid):
    """Aborting a procedure takes a reason that is not blank."""


class InvalidProcedureTruncateReasonError(Invalid):
    """Truncating a procedure takes a reason that is not blank."""


class InvalidProcedureInterruptedAtError(Invalid):
    """A procedure cannot have been interrupted in the future."""


class InvalidProcedureReEstablishmentBoundaryError(Invalid):
    """There is no such step to take the procedure up at."""


class Requested(BaseModel):
    """A request that a live conduct serves at its next step."""

    procedure_id: UUID
    conduct_id: UUID


@procedure.command(
    post="/{procedure_id}/start", allowed=[DEFINED], reasons=["parent_run_not_running"], refuses=GATE_REFUSALS
)
class StartProcedure(Command):
    """Begin to carry the procedure out by hand, if its assets, supplies and enclosures allow it."""

    def gather(self, procedure: Procedure, call: Call) -> Reads[Ground]:
        self.operation.check(self, procedure)
        run = yield from parent_run_of(procedure)
        if not is_running(run):
            raise self.cannot("parent_run_not_running", "The parent run is not Running; start or resume it first.")
        return (yield from ground_of(procedure, run, call, resuming=False))

    def decide(self, procedure: Procedure, call: Call, ground: Ground) -> Outcome:
        pass_gates(ground)
        return [ProcedureStarted(conduct_id=None, command_name=None)]


@procedure.command(
    post="/{procedure_id}/hold", allowed=[RUNNING], reasons=["request_pending"], attempts=3, accepted=Requested
)
class HoldProcedure(Command):
    """Pause the procedure; a live conduct finishes its step first. It goes on only when somebody resumes it."""

    reason: Annotated[str, Text(500, InvalidProcedureHoldReasonError, "reason", personal=True)]
    decided_by_decision_id: UUID | None = None

    def decide(self, procedure: Procedure, call: Call) -> Outcome:
        if procedure.pending_request is not None:
            raise self.cannot(
                "request_pending",
                f"A request to {procedure.pending_request.value.lower()} is being served already; wait for it.",
            )
        if procedure.live_conduct_id is not None:
            return [
                ProcedureHoldRequested(conduct_id=procedure.live_conduct_id, **dict(self)),
                served_by(procedure.live_conduct_id, procedure),
            ]
        return [ProcedureHeld(cause=HoldCause.OPERATOR, actuation_kind=procedure.actuation_kind, **dict(self))]


def served_by(conduct_id: UUID, procedure: Procedure) -> Answer:
    """The answer to a request that a conduct will serve."""
    return Answer({"procedure_id": str(procedure.id), "conduct_id": str(conduct_id)}, status=202)


@procedure.command(
    post="/{procedure_id}/resume",
    allowed=[HELD],
    reasons=["parent_run_not_running", "conduct_pinned"],
    refuses=[*GATE_REFUSALS, InvalidProcedureReEstablishmentBoundaryError],
)
class ResumeProcedure(Command):
    """Go on by hand after a hold; what was conducted is taken up by its own command, unless `by_hand` is said."""

    re_establishment_boundary: Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)] = 0
    by_hand: bool = False
    decided_by_decision_id: UUID | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[tuple[Ground, int | None]]:
        self.operation.check(self, procedure)
        run = yield from parent_run_of(procedure)
        if not is_running(run):
            raise self.cannot("parent_run_not_running", "The parent run is not Running; resume it first.")
        if procedure.conduct_mode is not None and not self.by_hand:
            command = RESUMING[procedure.conduct_mode]
            raise self.cannot(
                "conduct_pinned", f"The procedure was conducted; take it up with {command}, or say by_hand.", command=command
            )
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


def check_boundary(boundary: int, step_count: int | None) -> None:
    """Refuse to take steps up behind the last one; just behind it nothing is left to do."""
    if step_count is not None and boundary > step_count:
        raise InvalidProcedureReEstablishmentBoundaryError(
            f"The procedure has {step_count} steps; give a boundary of 0 to {step_count}.",
            facts={"step_count": step_count},
        )


@procedure.command(post="/{procedure_id}/complete", allowed=[RUNNING], reasons=["conduct_live"])
class CompleteProcedure(Command):
    """The task is done; a live conduct says so itself."""

    def decide(self, procedure: Procedure, call: Call) -> Outcome:
        if procedure.live_conduct_id is not None:
            raise conduct_live(self, procedure)
        return [ProcedureCompleted(actuation_kind=procedure.actuation_kind, termination_reason=None)]


def conduct_live(command: Command, procedure: Procedure) -> Exception:
    """The refusal of what only a live conduct may do to its procedure."""
    return command.cannot(
        "conduct_live",
        "A conduct of this procedure is live; wait for it, hold it or abort it.",
        conduct_id=str(procedure.live_conduct_id),
    )


@procedure.command(
    post="/{procedure_id}/abort",
    allowed=UNDER_WAY,
    reasons=["request_pending"],
    attempts=3,
    destructive=True,
    accepted=Requested,
)
class AbortProcedure(Command):
    """Give the procedure up; a live conduct is cancelled and closes nothing."""

    reason: Annotated[str, Text(500, InvalidProcedureAbortReasonError, "reason", personal=True)]

    def decide(self, procedure: Procedure, call: Call) -> Outcome:
        if procedure.pending_request is PendingRequest.ABORT:
            raise self.cannot("request_pending", "The procedure is being aborted already; wait for it.")
        if procedure.live_conduct_id is not None:
            return [
                ProcedureAbortRequested(conduct_id=procedure.live_conduct_id, reason=self.reason, run_closing=False),
                served_by(procedure.live_conduct_id, procedure),
            ]
        return [ProcedureAborted(reason=self.reason, actuation_kind=procedure.actuation_kind)]


@procedure.command(
    post="/{procedure_id}/truncate",
    allowed=UNDER_WAY,
    reasons=["conduct_live"],
    refuses=[InvalidProcedureInterruptedAtError],
    destructive=True,
)
class TruncateProcedure(Command):
    """Close the books on a procedure that died by itself, with the best guess of when."""

    reason: Annotated[str, Text(500, InvalidProcedureTruncateReasonError, "reason", personal=True)]
    interrupted_at: Instant | None = None

    def decide(self, procedure: Procedure, call: Call) -> Outcome:
        if self.interrupted_at is not None and self.interrupted_at > call.now:
            raise InvalidProcedureInterruptedAtError(
                "The procedure cannot have been interrupted in the future; give a past time."
            )
        if procedure.live_conduct_id is not None:
            raise conduct_live(self, procedure)
        return [ProcedureTruncated(**dict(self))]
