"""How a procedure stops: held, completed, aborted or truncated, by people or by its conduct. A live conduct is asked to hold
or abort and does so at its next step; its own end goes through the same commands, which then carry its result."""

from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

from baton.domain.conduct.conduct import CONDUCTED_ASSETS, Rivals, judged_assets, open_conduct, rivals_of
from baton.domain.conduct.ends import UNKNOWN_OUTCOMES
from baton.domain.conduct.ledger import LedgerPort
from baton.domain.conduct.messages import lifecycle_failure
from baton.domain.conduct.progress import (
    ABORT_ASKED,
    CLOSING_FAILED,
    HOLD_ASKED,
    LOST_CONDUCTS,
    ConductPhase,
    ConductProgress,
)
from baton.domain.decision.decision import Decision
from baton.domain.kernel import Call, Command, Event, JudgedVerb, Outcome, Verb
from baton.domain.launch.launch import Launch, launch_end
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import RUNNING, UNDER_WAY, PendingRequest, Procedure, ProcedureStatus, procedure
from baton.domain.procedure.touched import load_written_signals
from baton.domain.registry import EndedWork, Internal, WokenWork
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.reads import Reads, ask, events_of, find, record_of, require_if_given
from baton.domain.shared.refusals import Invalid, Refusal
from baton.domain.shared.times import Instant, check_told_time
from baton.domain.shared.writes import Also, Answer, Delist, Enlist, Put, Release
from baton.domain.start.procedure_start import live_conduct_refusal
from baton.domain.step.results import (
    CONDUCT_LOST,
    ActuationKind,
    ConductResult,
    Failure,
    PlacedStep,
    TerminationReason,
    merged_kind,
)

SILENT_FOR = timedelta(seconds=60)  # After this long without a heartbeat a live conduct may be given up.


class InvalidProcedureInterruptedAtError(Invalid, context="operation"):
    """A procedure cannot have been interrupted in the future, nor before it started."""


class RequestAccepted(AnswerForm):
    """A request that a live conduct serves at its next step, or a conduct of the closing steps alone."""

    procedure_id: UUID
    conduct_id: UUID


OwnResult = Annotated[ConductResult | None, Internal()]  # The result, where the conduct itself gives the command.


def progress_of(procedure: Procedure, wanted: bool) -> Reads[ConductProgress | None]:
    """Return the progress of the procedure's latest conduct, where it is wanted, and have its own launch read."""
    yield from find(Launch, procedure.own_launch_id)
    return (yield from record_of(ConductProgress, procedure_id=procedure.id)) if wanted else None


def conclude(procedure: Procedure, progress: ConductProgress | None, result: ConductResult, *ending: Event) -> Outcome:
    """Return what ends a live conduct: its result, the event it leads to, and the release of everything it held."""
    key = str(result.conduct_id)
    skipped = tuple(one for one in procedure.skipped_waits if one.conduct_id == result.conduct_id)
    result = result.model_copy(update={"skipped_waits": skipped, "resolved_steps": procedure.resolved_steps})
    over: dict[str, Any] = {"phase": ConductPhase.ENDED.value, "waiting_for": None, "waiting_until": None}
    ended = [] if progress is None else [Put(replace(progress, **over))]
    return [
        procedures.ProcedureConducted(conduct_id=result.conduct_id, succeeded=result.succeeded, result=result),
        *ending,
        *(Release(CONDUCTED_ASSETS, str(asset_id)) for asset_id in sorted(procedure.judged_asset_ids)),
        Delist(HOLD_ASKED, key),
        Delist(ABORT_ASKED, key),
        *([Enlist(LOST_CONDUCTS, "")] if result.failure == LOST and not ending else []),
        *([Enlist(CLOSING_FAILED, "")] if result.closing_failures else []),
        *([Delist(CLOSING_FAILED, "")] if procedure.closing_failures and not result.closing_failures else []),
        *ended,
        *ended_launch(procedure, *ending),
    ]


OUTCOMES: dict[type[Event], ProcedureStatus] = {
    procedures.ProcedureCompleted: procedures.COMPLETED,
    procedures.ProcedureAborted: procedures.ABORTED,
    procedures.ProcedureTruncated: procedures.TRUNCATED,
}


def ended_launch(procedure: Procedure, *events: Event) -> list[Also]:
    """Return the end of a procedure's own launch, where one of these events is the end of the procedure."""
    ends = [event for event in events if type(event) in OUTCOMES]
    return [
        one for end in ends for one in launch_end(procedure.own_launch_id, OUTCOMES[type(end)], getattr(end, "reason", None))
    ]


def end_by_hand(procedure: Procedure, event: Event) -> Outcome:
    """Return what somebody does to a procedure that is not conducted; one whose conduct was lost is not looked for then."""
    found = [Delist(LOST_CONDUCTS, "")] if procedure.lost else []
    return [event, *found, *ended_launch(procedure, event)]


def accept_request(conduct_id: UUID, procedure: Procedure) -> Answer:
    """Return the answer to a request that a conduct will serve."""
    return Answer({"procedure_id": str(procedure.id), "conduct_id": str(conduct_id)}, status=202)


@procedure.command(
    post="/{procedure_id}/hold",
    allowed=[RUNNING],
    leads_to=ProcedureStatus.HELD,
    attempts=3,
    accepted=RequestAccepted,
    work=WokenWork("conduct"),
)
class HoldProcedure(JudgedVerb[Procedure, ConductProgress | None]):
    """Pause the procedure; a live conduct finishes its step first. It continues only when somebody resumes it."""

    reason: Annotated[str, procedure.text("hold_reason", 500, label="reason", personal=True)]
    decided_by_decision_id: UUID | None = None
    cause: Annotated[procedures.HoldCause, Internal()] = procedures.HoldCause.OPERATOR
    conducted: OwnResult = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[ConductProgress | None]:
        if self.conducted is None:
            yield from require_if_given(Decision, self.decided_by_decision_id)
        self.operation.check(self, procedure)
        if self.conducted is None and procedure.live_conduct_id is not None:
            asked = yield from events_of(procedure.id, procedures.ProcedureAbortRequested)
            if any(one.run_closing and one.conduct_id == procedure.live_conduct_id for one in asked):
                raise pending_request_refusal(self, PendingRequest.ABORT)
        return (yield from progress_of(procedure, self.conducted is not None))

    def decide(self, procedure: Procedure, call: Call, progress: ConductProgress | None) -> Outcome:
        if self.conducted is not None:
            refuse_other_end(self, procedure, self.conducted)
            return conclude(procedure, progress, self.conducted, self.held_event(self.conducted))
        if procedure.pending_request is not None:
            raise pending_request_refusal(self, procedure.pending_request)
        if (conduct_id := procedure.live_conduct_id) is not None:
            id = self.decided_by_decision_id
            asked = procedures.ProcedureHoldRequested(conduct_id=conduct_id, reason=self.reason, decided_by_decision_id=id)
            return [asked, Enlist(HOLD_ASKED, str(conduct_id)), accept_request(conduct_id, procedure)]
        return end_by_hand(procedure, self.held_event(procedure))

    def held_event(self, source: Procedure | ConductResult) -> procedures.ProcedureHeld:
        own = {name: value for name, value in self if name != "conducted"}
        unknown = None if self.conducted is None else unknown_step(self.conducted)
        return procedures.ProcedureHeld(**own, actuation_kind=source.actuation_kind, unknown_step=unknown)


def unknown_step(result: ConductResult) -> PlacedStep | None:
    """Return the step of which nobody knows whether it was done, where a conduct ended with it."""
    failure = result.failure
    if failure is None or failure.step_index is None or failure.error_class not in UNKNOWN_OUTCOMES:
        return None
    passes = result.iteration_count or 0
    return PlacedStep(conduct_id=result.conduct_id, iteration_index=passes, step_index=failure.step_index)


def pending_request_refusal(command: Command, request: PendingRequest) -> Refusal:
    """Return the refusal of a request while another one is being served."""
    detail = f"A request to {request.value.lower()} is being served already; wait for it."
    return command.cannot("request_pending", detail)


def refuse_not_live(command: Command, procedure: Procedure, result: ConductResult) -> None:
    """Refuse the end of a conduct that is not the live one any more."""
    if procedure.live_conduct_id != result.conduct_id:
        raise live_conduct_refusal(command, procedure)


def refuse_other_end(command: Command, procedure: Procedure, result: ConductResult) -> None:
    """Refuse a conduct any other end than the one it was asked for meanwhile."""
    refuse_not_live(command, procedure, result)
    if procedure.pending_request is PendingRequest.ABORT:
        raise pending_request_refusal(command, PendingRequest.ABORT)


@procedure.command(post="/{procedure_id}/complete", allowed=[RUNNING], leads_to=ProcedureStatus.COMPLETED)
class CompleteProcedure(JudgedVerb[Procedure, ConductProgress | None]):
    """Complete the procedure, whose task is done; a live conduct does so itself."""

    conducted: OwnResult = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[ConductProgress | None]:
        return (yield from progress_of(procedure, self.conducted is not None))

    def decide(self, procedure: Procedure, call: Call, progress: ConductProgress | None) -> Outcome:
        if (result := self.conducted) is not None:
            refuse_other_end(self, procedure, result)
            reason = result.termination_reason if isinstance(result.termination_reason, TerminationReason) else None
            ended = procedures.ProcedureCompleted(actuation_kind=result.actuation_kind, termination_reason=reason)
            return conclude(procedure, progress, result, ended)
        if procedure.live_conduct_id is not None:
            raise live_conduct_refusal(self, procedure)
        kind = procedure.actuation_kind
        return end_by_hand(procedure, procedures.ProcedureCompleted(actuation_kind=kind, termination_reason=None))


Closing = tuple[int, frozenset[UUID], Rivals]
"""What a conduct of the closing steps alone is judged by: their number, the assets it needs, and the rivals. It passes no
gates: what leads to a safe state is not kept from running by a gate that closed."""


@procedure.command(
    post="/{procedure_id}/abort",
    allowed=UNDER_WAY,
    attempts=3,
    destructive=True,
    accepted=RequestAccepted,
    work=WokenWork("conduct"),
)
class AbortProcedure(JudgedVerb[Procedure, ConductProgress | Closing | None]):
    """Give the procedure up; a live conduct is cancelled and closes nothing.

    Without a live conduct, `run_closing` has the closing steps conducted first.
    """

    reason: Annotated[str, procedure.text("abort_reason", 500, label="reason", personal=True)]
    run_closing: bool = False
    conducted: OwnResult = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[ConductProgress | Closing | None]:
        if self.conducted is not None:
            return (yield from progress_of(procedure, wanted=True))
        yield from find(Launch, procedure.own_launch_id)
        if not self.run_closing or procedure.live_conduct_id is not None:
            return None
        pins = yield from events_of(procedure.id, procedures.ProcedureStepsResolved)
        if not pins or not pins[-1].resolved_closing_steps:
            return None
        closing_steps = pins[-1].resolved_closing_steps
        judged = judged_assets(procedure, (yield from load_written_signals(closing_steps)))
        return len(closing_steps), judged, (yield from rivals_of(procedure, judged))

    def decide(self, procedure: Procedure, call: Call, facts: ConductProgress | Closing | None) -> Outcome:
        if (result := self.conducted) is not None:
            refuse_not_live(self, procedure, result)
            aborted = procedures.ProcedureAborted(reason=self.reason, actuation_kind=result.actuation_kind)
            return conclude(procedure, facts if isinstance(facts, ConductProgress) else None, result, aborted)
        if procedure.pending_request is PendingRequest.ABORT:
            raise pending_request_refusal(self, PendingRequest.ABORT)
        if (conduct_id := procedure.live_conduct_id) is not None:
            if self.run_closing:
                detail = "A conduct of this procedure is live; abort it without run_closing, or hold it first."
                raise self.cannot("conduct_live", detail, conduct_id=conduct_id)
            asked = procedures.ProcedureAbortRequested(conduct_id=conduct_id, reason=self.reason, run_closing=False)
            return [asked, Enlist(ABORT_ASKED, str(conduct_id)), accept_request(conduct_id, procedure)]
        if isinstance(facts, tuple):
            closing_count, judged, rivals = facts
            own: dict[str, Any] = {"conduct_id": call.new_id, "reason": self.reason, "judged_asset_ids": judged}
            asked = procedures.ProcedureAbortRequested(**own, run_closing=True)
            counts = (0, closing_count)
            opened = open_conduct(procedure, call, self.operation.command_name, rivals, judged, counts, asked)
            return [*opened, accept_request(call.new_id, procedure)]
        aborted = procedures.ProcedureAborted(reason=self.reason, actuation_kind=procedure.actuation_kind)
        return end_by_hand(procedure, aborted)


LiveFacts = tuple[ConductProgress | None, ActuationKind | None]


def live_facts(procedure: Procedure, *, wanted: bool) -> Reads[LiveFacts]:
    """Return the progress of the latest conduct, where it is wanted, and what the live one was done on, by its ledger."""
    progress = yield from progress_of(procedure, wanted)
    live = procedure.live_conduct_id
    return progress, None if live is None else (yield from ask(LedgerPort.actuation_kind, live))


@procedure.command(post="/{procedure_id}/truncate", allowed=UNDER_WAY, destructive=True, work=EndedWork("conduct"))
class TruncateProcedure(JudgedVerb[Procedure, LiveFacts]):
    """Close the books on a procedure that died by itself, with the best guess of when.

    A conduct that has been silent for a minute is given up with it.
    """

    reason: Annotated[str, procedure.text("truncate_reason", 500, label="reason", personal=True)]
    interrupted_at: Instant | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[LiveFacts]:
        return (yield from live_facts(procedure, wanted=procedure.live_conduct_id is not None))

    def decide(self, procedure: Procedure, call: Call, facts: LiveFacts) -> Outcome:
        progress, kind = facts
        live = procedure.live_conduct_id is not None
        if live and (progress is None or call.now - (progress.heartbeat_at or progress.started_at) < SILENT_FOR):
            raise live_conduct_refusal(self, procedure)
        if self.interrupted_at is not None:
            at, now, since = self.interrupted_at, call.now, procedure.started_at or procedure.created_at
            check_told_time(at, InvalidProcedureInterruptedAtError, now, since, "the start of the procedure")
        truncated = procedures.ProcedureTruncated(**dict(self))
        if progress is None:
            return end_by_hand(procedure, truncated)
        result = lost_result(procedure.id, progress.conduct_id, progress.command_name, LOST)
        return conclude(procedure, progress, result.model_copy(update={"actuation_kind": kind}), truncated)


@procedure.command(post="/{procedure_id}/acknowledge")
class AcknowledgeProcedure(Verb[Procedure]):
    """Say that you have looked at how its conduct ended: closing steps that failed wait for nobody any more."""

    def decide(self, procedure: Procedure, call: Call) -> Outcome:
        return [procedures.ProcedureAcknowledged(acknowledged_by=call.principal_id), Delist(CLOSING_FAILED, "")]


LOST = lifecycle_failure(
    "conduct", CONDUCT_LOST, "The engine does not know of this conduct any more; look at the equipment before going on."
)
EXPIRED = lifecycle_failure("start", "ConductStartExpired", "No worker took the conduct up in time; nothing was touched.")


def lost_result(procedure_id: UUID, conduct_id: UUID, command_name: str, failure: Failure) -> ConductResult:
    """Return the result of a conduct that nobody works on."""
    return ConductResult(
        procedure_id=procedure_id, conduct_id=conduct_id, command_name=command_name, succeeded=False, failure=failure
    )


@procedure.internal_command(allowed=UNDER_WAY)
class RecordConductEnd(JudgedVerb[Procedure, LiveFacts]):
    """Record an end that no command asked for: halted, lost, never begun, or one that its submitter may not give it."""

    result: ConductResult
    abort_reason: str | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[LiveFacts]:
        return (yield from live_facts(procedure, wanted=True))

    def decide(self, procedure: Procedure, call: Call, facts: LiveFacts) -> Outcome:
        if procedure.live_conduct_id != self.result.conduct_id:
            return []
        progress, found = facts
        if self.result.failure == EXPIRED and progress is not None and progress.phase != ConductPhase.OPENED.value:
            return []
        kind = merged_kind((self.result.actuation_kind, found))
        result = self.result.model_copy(update={"actuation_kind": kind})
        ending = (
            [] if self.abort_reason is None else [procedures.ProcedureAborted(reason=self.abort_reason, actuation_kind=kind)]
        )
        return conclude(procedure, progress, result, *ending)
