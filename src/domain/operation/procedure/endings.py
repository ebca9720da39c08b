"""How a procedure stops: held, completed, aborted or truncated, by people or by the conduct that comes to its end.

While a conduct is live, holding and aborting are requests on the stream that it serves at its next step. Its own end goes
through the same commands, which then carry its result; what nobody asked for is recorded by the service itself.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel

from baton.domain.kernel import Call, Command, Event, JudgedVerb, Outcome
from baton.domain.operation.conduct.actuation import ActuationKind, merged_kind
from baton.domain.operation.conduct.conduct import CONDUCTED_ASSETS, Rivals, opening, rivals_of
from baton.domain.operation.conduct.messages import lifecycle_failure
from baton.domain.operation.conduct.progress import ABORT_ASKED, HOLD_ASKED, ConductPhase, ConductProgress
from baton.domain.operation.conduct.results import ConductResult, Failure
from baton.domain.operation.procedure.procedure import (
    RUNNING,
    UNDER_WAY,
    HoldCause,
    PendingRequest,
    Procedure,
    ProcedureAborted,
    ProcedureAbortRequested,
    ProcedureCompleted,
    ProcedureConducted,
    ProcedureHeld,
    ProcedureHoldRequested,
    ProcedureStepsResolved,
    ProcedureTruncated,
    procedure,
)
from baton.domain.operation.procedure.start import conduct_live
from baton.domain.registry import Internal
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Reads, ask, happened, record_of
from baton.domain.shared.refusals import Invalid, Refusal
from baton.domain.shared.text import Text
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Answer, Delist, Enlist, Put, Release

SILENT_FOR = timedelta(seconds=60)
"""After this long without a heartbeat a live conduct may be given up."""


class InvalidProcedureHoldReasonError(Invalid, context="operation"):
    """Holding a procedure takes a reason that is not blank."""


class InvalidProcedureAbortReasonError(Invalid, context="operation"):
    """Aborting a procedure takes a reason that is not blank."""


class InvalidProcedureTruncateReasonError(Invalid, context="operation"):
    """Truncating a procedure takes a reason that is not blank."""


class InvalidProcedureInterruptedAtError(Invalid, context="operation"):
    """A procedure cannot have been interrupted in the future."""


class Requested(BaseModel):
    """A request that a live conduct serves at its next step, or a conduct of the closing steps alone."""

    procedure_id: UUID
    conduct_id: UUID


Conducted = Annotated[ConductResult | None, Internal()]
"""What a conduct says when it comes to its own end."""


def progress_of(procedure: Procedure, wanted: bool) -> Reads[ConductProgress | None]:
    """Where the procedure's latest conduct stands, where it matters."""
    if not wanted:
        return None
    return (yield from record_of(ConductProgress, procedure_id=procedure.id))


def concluded(procedure: Procedure, progress: ConductProgress | None, result: ConductResult, *ending: Event) -> Outcome:
    """The end of a live conduct: its result, what it leads to, and everything it held given back."""
    key = str(result.conduct_id)
    ended = (
        [Put(replace(progress, phase=ConductPhase.ENDED.value, waiting_for=None, waiting_until=None))]
        if progress is not None
        else []
    )
    return [
        ProcedureConducted(conduct_id=result.conduct_id, succeeded=result.succeeded, result=result),
        *ending,
        *(Release(CONDUCTED_ASSETS, str(asset_id)) for asset_id in sorted(procedure.target_asset_ids)),
        Delist(HOLD_ASKED, key),
        Delist(ABORT_ASKED, key),
        *ended,
    ]


def served_by(conduct_id: UUID, procedure: Procedure) -> Answer:
    """The answer to a request that a conduct will serve."""
    return Answer({"procedure_id": str(procedure.id), "conduct_id": str(conduct_id)}, status=202)


@procedure.command(post="/{procedure_id}/hold", allowed=[RUNNING], attempts=3, accepted=Requested, starts_workflow="conduct")
class HoldProcedure(JudgedVerb[Procedure, ConductProgress | None]):
    """Pause the procedure; a live conduct finishes its step first. It goes on only when somebody resumes it."""

    reason: Annotated[str, Text(500, InvalidProcedureHoldReasonError, "reason", personal=True)]
    decided_by_decision_id: UUID | None = None
    cause: Annotated[HoldCause, Internal()] = HoldCause.OPERATOR
    conducted: Conducted = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[ConductProgress | None]:
        self.operation.check(self, procedure)
        if self.conducted is None and procedure.live_conduct_id is not None:
            asked = yield from happened(procedure.id, ProcedureAbortRequested)
            if any(one.run_closing and one.conduct_id == procedure.live_conduct_id for one in asked):
                raise request_pending(self, PendingRequest.ABORT)
        return (yield from progress_of(procedure, self.conducted is not None))

    def decide(self, procedure: Procedure, call: Call, progress: ConductProgress | None) -> Outcome:
        if self.conducted is not None:
            refuse_other_end(self, procedure, self.conducted)
            return concluded(procedure, progress, self.conducted, self.held(self.conducted))
        if procedure.pending_request is not None:
            raise request_pending(self, procedure.pending_request)
        if (conduct_id := procedure.live_conduct_id) is not None:
            return [
                ProcedureHoldRequested(
                    conduct_id=conduct_id, reason=self.reason, decided_by_decision_id=self.decided_by_decision_id
                ),
                Enlist(HOLD_ASKED, str(conduct_id)),
                served_by(conduct_id, procedure),
            ]
        return [self.held(procedure)]

    def held(self, source: Procedure | ConductResult) -> ProcedureHeld:
        return ProcedureHeld(
            reason=self.reason,
            cause=self.cause,
            decided_by_decision_id=self.decided_by_decision_id,
            actuation_kind=source.actuation_kind,
        )


def request_pending(command: Command, request: PendingRequest) -> Refusal:
    """The refusal of a request beside one that is being served."""
    asked = request.value.lower()
    return command.cannot("request_pending", f"A request to {asked} is being served already; wait for it.")


def refuse_foreign(command: Command, procedure: Procedure, result: ConductResult) -> None:
    """Refuse the end of a conduct that is not the live one any more."""
    if procedure.live_conduct_id != result.conduct_id:
        raise conduct_live(command, procedure)


def refuse_other_end(command: Command, procedure: Procedure, result: ConductResult) -> None:
    """Refuse a conduct any other end than the one it was asked for meanwhile."""
    refuse_foreign(command, procedure, result)
    if procedure.pending_request is PendingRequest.ABORT:
        raise request_pending(command, PendingRequest.ABORT)


@procedure.command(post="/{procedure_id}/complete", allowed=[RUNNING])
class CompleteProcedure(JudgedVerb[Procedure, ConductProgress | None]):
    """Complete the procedure, whose task is done; a live conduct does so itself."""

    conducted: Conducted = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[ConductProgress | None]:
        return (yield from progress_of(procedure, self.conducted is not None))

    def decide(self, procedure: Procedure, call: Call, progress: ConductProgress | None) -> Outcome:
        if (result := self.conducted) is not None:
            refuse_other_end(self, procedure, result)
            completed = ProcedureCompleted(
                actuation_kind=result.actuation_kind, termination_reason=result.termination_reason
            )
            return concluded(procedure, progress, result, completed)
        if procedure.live_conduct_id is not None:
            raise conduct_live(self, procedure)
        return [ProcedureCompleted(actuation_kind=procedure.actuation_kind, termination_reason=None)]


@dataclass(frozen=True)
class Closing:
    """What a conduct of the closing steps alone is judged by."""

    step_count: int
    rivals: Rivals


@procedure.command(
    post="/{procedure_id}/abort",
    allowed=UNDER_WAY,
    attempts=3,
    destructive=True,
    accepted=Requested,
    starts_workflow="conduct",
)
class AbortProcedure(JudgedVerb[Procedure, ConductProgress | Closing | None]):
    """Give the procedure up; a live conduct is cancelled and closes nothing.

    Without a live conduct, `run_closing` has the closing steps conducted first.
    """

    reason: Annotated[str, Text(500, InvalidProcedureAbortReasonError, "reason", personal=True)]
    run_closing: bool = False
    conducted: Conducted = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[ConductProgress | Closing | None]:
        if self.conducted is not None:
            return (yield from progress_of(procedure, wanted=True))
        if not self.run_closing or procedure.live_conduct_id is not None:
            return None
        pins = yield from happened(procedure.id, ProcedureStepsResolved)
        if not pins or not pins[-1].resolved_closing_steps:
            return None
        return Closing(len(pins[-1].resolved_closing_steps), (yield from rivals_of(procedure)))

    def decide(self, procedure: Procedure, call: Call, facts: ConductProgress | Closing | None) -> Outcome:
        if (result := self.conducted) is not None:
            refuse_foreign(self, procedure, result)
            aborted = ProcedureAborted(reason=self.reason, actuation_kind=result.actuation_kind)
            return concluded(procedure, facts if isinstance(facts, ConductProgress) else None, result, aborted)
        if procedure.pending_request is PendingRequest.ABORT:
            raise request_pending(self, PendingRequest.ABORT)
        if (conduct_id := procedure.live_conduct_id) is not None:
            if self.run_closing:
                raise self.cannot(
                    "conduct_live",
                    "A conduct of this procedure is live; abort it without run_closing, or hold it first.",
                    conduct_id=str(conduct_id),
                )
            return [
                ProcedureAbortRequested(conduct_id=conduct_id, reason=self.reason, run_closing=False),
                Enlist(ABORT_ASKED, str(conduct_id)),
                served_by(conduct_id, procedure),
            ]
        if isinstance(facts, Closing):
            request = ProcedureAbortRequested(conduct_id=call.new_id, reason=self.reason, run_closing=True)
            return [
                *opening(procedure, call, self.operation.command_name, facts.rivals, (0, facts.step_count), request),
                served_by(call.new_id, procedure),
            ]
        return [ProcedureAborted(reason=self.reason, actuation_kind=procedure.actuation_kind)]


@procedure.command(post="/{procedure_id}/truncate", allowed=UNDER_WAY, destructive=True, terminates_workflow="conduct")
class TruncateProcedure(JudgedVerb[Procedure, tuple[ConductProgress | None, ActuationKind | None]]):
    """Close the books on a procedure that died by itself, with the best guess of when.

    A conduct that has been silent for a minute is given up with it.
    """

    reason: Annotated[str, Text(500, InvalidProcedureTruncateReasonError, "reason", personal=True)]
    interrupted_at: Instant | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[tuple[ConductProgress | None, ActuationKind | None]]:
        progress = yield from progress_of(procedure, procedure.live_conduct_id is not None)
        return progress, (yield from done_on(procedure))

    def decide(
        self, procedure: Procedure, call: Call, facts: tuple[ConductProgress | None, ActuationKind | None]
    ) -> Outcome:
        progress, kind = facts
        live = procedure.live_conduct_id is not None
        if live and (progress is None or call.now - (progress.heartbeat_at or progress.started_at) < SILENT_FOR):
            raise conduct_live(self, procedure)
        if self.interrupted_at is not None and self.interrupted_at > call.now:
            raise InvalidProcedureInterruptedAtError(
                "The procedure cannot have been interrupted in the future; give a past time."
            )
        truncated = ProcedureTruncated(**dict(self))
        if progress is None:
            return [truncated]
        result = given_up(procedure.id, progress.conduct_id, progress.command_name, LOST)
        return concluded(procedure, progress, result.model_copy(update={"actuation_kind": kind}), truncated)


def done_on(procedure: Procedure) -> Reads[ActuationKind | None]:
    """What the live conduct has been done on so far, by its ledger: what is lost must not be forgotten with it."""
    if procedure.live_conduct_id is None:
        return None
    return (yield from ask(Ports.actuation_kind, procedure.live_conduct_id))


LOST = lifecycle_failure(
    "conduct", "ConductLost", "The engine does not know of this conduct any more; look at the equipment before going on."
)
EXPIRED = lifecycle_failure("start", "ConductStartExpired", "No worker took the conduct up in time; nothing was touched.")


def given_up(procedure_id: UUID, conduct_id: UUID, command_name: str, failure: Failure) -> ConductResult:
    """What is said of a conduct that nobody works on."""
    return ConductResult(
        procedure_id=procedure_id, conduct_id=conduct_id, command_name=command_name, succeeded=False, failure=failure
    )


@procedure.inner(allowed=UNDER_WAY)
class RecordConductEnd(JudgedVerb[Procedure, tuple[ConductProgress | None, ActuationKind | None]]):
    """Record an end that no command asked for: halted, lost, never begun, or one that its submitter may not give it."""

    result: ConductResult
    abort_reason: str | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[tuple[ConductProgress | None, ActuationKind | None]]:
        return (yield from progress_of(procedure, wanted=True)), (yield from done_on(procedure))

    def decide(
        self, procedure: Procedure, call: Call, facts: tuple[ConductProgress | None, ActuationKind | None]
    ) -> Outcome:
        if procedure.live_conduct_id != self.result.conduct_id:
            return []
        progress, found = facts
        if self.result.failure == EXPIRED and progress is not None and progress.phase != ConductPhase.OPENED.value:
            return []
        kind = merged_kind((self.result.actuation_kind, found))
        result = self.result.model_copy(update={"actuation_kind": kind})
        ending = [] if self.abort_reason is None else [ProcedureAborted(reason=self.abort_reason, actuation_kind=kind)]
        return concluded(procedure, progress, result, *ending)
