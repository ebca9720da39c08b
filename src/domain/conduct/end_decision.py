"""How the end of a conduct gets on the record: the next command, decided from how the walk ended and from what the record
says now, and what a refusal of it changes. A run is ended like a procedure: its phases are its steps."""

from dataclasses import dataclass, replace
from uuid import UUID

from baton.domain.conduct import messages
from baton.domain.conduct.ends import ENDS, EndEffect, failure_of_end, finish_after, finish_denied
from baton.domain.conduct.messages import ConductOutcome, ConductVerdict, Finish, lifecycle_failure
from baton.domain.conduct.views import LOOPS
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import ConductMode, HoldCause, PendingRequest, Procedure
from baton.domain.recipe.steps import RecipeStep
from baton.domain.run.run import GIVEN_UP, LIVE, RunStatus
from baton.domain.shared.refusals import ConcurrencyError, Refusal, UnauthorizedError
from baton.domain.start.procedure_start import GATE_REFUSALS
from baton.domain.step.results import Failure, TerminationReason

Requested = procedures.ProcedureHoldRequested | procedures.ProcedureAbortRequested
REOPENED = "A gate that is watched was closed for a moment; look at the equipment, and take it up again."


@dataclass(frozen=True, kw_only=True)
class EndRecord:
    """What the record says now to an end: about the conduct, its procedure or run, and its submitter."""

    principal_id: UUID  # the submitter
    objection: str | None = None  # why the submitter may not act any more
    steers: bool = False  # whether the submitter is an agent that steers its own search
    live: bool = True  # whether the conduct is the live one
    of_run: bool = False  # whether a run is conducted
    command_name: str = ""
    mode: ConductMode | None = ConductMode.FLAT  # None where only the closing steps are walked
    takes_up: bool = False  # whether it takes an earlier conduct up
    watches: bool = False  # whether it watches gates
    holds_unknown: bool = False  # whether a step whose outcome is unknown holds the procedure for a person
    asked: PendingRequest | None = None
    request: Requested | None = None  # what was asked for last
    run: RunStatus | None = None  # the status of the run, or of the parent run
    run_reason: str | None = None  # why the parent run was ended
    walked: bool = False  # whether the last step has its outcome, or every phase is Completed
    step: RecipeStep | None = None  # the step that the outcome names
    failed: Failure | None = None  # the failure of the last step, or of the phase, that failed
    phase: Procedure | None = None  # the phase at which the conduct of a run ended
    closed_gate: Failure | None = None  # the refusal of a watched gate that is closed
    pass_open: bool = False
    last_pass: procedures.ProcedureIterationEnded | None = None  # how the last pass of this conduct ended
    spent: TerminationReason | None = None  # the part of the search's budget that is used up
    closed: bool = True  # whether every closing step has its outcome
    closing_due: bool = False  # whether closing steps may still be walked before the conduct ends
    in_time: bool = False  # whether a hold that was asked for still counts: nothing is to be closed, nor has closing begun


@dataclass(frozen=True)
class Ending:
    """An end on its way to the record: how the walk ended, and what was refused on the way."""

    outcome: ConductOutcome
    denial: Failure | None = None  # the command that its submitter may not give
    given_up: bool = False  # whether the command was refused, so that the status stays


@dataclass(frozen=True)
class EndCommand:
    """The next command of an end, and what it says."""

    leads_to: EndEffect  # where the status stays, the conduct alone ends
    ending: Ending
    failure: Failure | None  # what the result says failed; without it the conduct has succeeded
    by_service: bool = True  # whether the service gives it, because its submitter may not or did not ask for it
    reason: str = ""
    cause: HoldCause = HoldCause.OPERATOR
    decided_by: UUID | None = None  # the decision that a hold was asked for by


def decide_end(record: EndRecord, ending: Ending) -> EndCommand | ConductVerdict | None:
    """Return the next command of an end, or why there is none: the conduct is gone, closing comes before what its submitter
    is denied, or a run that is done is held. Return None where the record does not show such an end."""
    aborts = record.asked is PendingRequest.ABORT
    if not record.live:
        return ConductVerdict.GONE
    if ending.denial is not None and record.closing_due and ENDS[ending.outcome.finish].closes and not aborts:
        return ConductVerdict.DENIED
    verified = verify_outcome(record, ending.outcome)
    if verified is None or not (record.closed or aborts or not ENDS[verified.finish].closes):
        return None
    is_over = record.of_run and record.run not in LIVE
    outcome = verified if is_over else replace_finish(record, verified)
    finish, held = outcome.finish, record.of_run and record.run is RunStatus.HELD
    denial = ending.denial or (outcome.failure if finish is Finish.DENIED else None)
    ending = replace(ending, outcome=outcome, denial=denial)
    if aborts or (record.asked is PendingRequest.HOLD and finish is Finish.HALTED):
        outcome = outcome.model_copy(update={"finish": Finish.ABORTED if aborts else Finish.HELD})
    failure = recorded_failure(record, outcome)
    if held and finish is Finish.COMPLETED:
        return ConductVerdict.RUN_HELD
    if is_over or ending.given_up or (held and finish is Finish.STOOD_DOWN):
        return EndCommand(EndEffect.STAY, ending, failure)
    if denial is not None:
        reason = f"The principal {record.principal_id} may not go on with this: {denial.message}"
        return EndCommand(EndEffect.ABORT, ending, failure, reason=reason[: messages.MAX_REASON_LENGTH])
    by_service = record.objection is not None or ENDS[finish].by_service
    match ENDS[outcome.finish].leads_to:
        case EndEffect.COMPLETE if record.mode is not None:
            return EndCommand(EndEffect.COMPLETE, ending, failure, by_service)
        case EndEffect.COMPLETE | EndEffect.ABORT:
            return EndCommand(EndEffect.ABORT, ending, failure, by_service, abort_reason(record, outcome))
        case EndEffect.HOLD:
            return EndCommand(EndEffect.HOLD, ending, failure, by_service, *hold_reason(record, outcome))
        case EndEffect.STAY | EndEffect.NOTHING:
            return EndCommand(EndEffect.STAY, ending, failure)


def after_refusal(record: EndRecord, ending: Ending, refusal: Refusal) -> Ending:
    """Return what is left of an end whose command was refused, by the record as it is since then."""
    outcome, completed = ending.outcome, ending.outcome.finish is Finish.COMPLETED
    failure = lifecycle_failure("complete" if completed else "abort", refusal.code, refusal.detail)
    match refusal:
        case UnauthorizedError() if record.objection is None:
            known = recorded_failure(record, outcome) if record.of_run else None  # a run names what failed before
            denied = {"finish": finish_denied(outcome.finish), "failure": known or failure}
            return replace(ending, outcome=outcome.model_copy(update=denied), denial=failure)
        case UnauthorizedError() | ConcurrencyError() | Refusal(reason="request_pending"):
            return ending  # the record says what comes first
        case _:
            told = record.of_run and not (completed and record.run is RunStatus.RUNNING)  # by the run and its phases
            known = outcome.failure or (None if told else failure)
            return replace(ending, outcome=outcome.model_copy(update={"failure": known}), given_up=True)


def verify_outcome(record: EndRecord, outcome: ConductOutcome) -> ConductOutcome | None:
    """Return the outcome with everything that the record says about it; None where the record does not agree."""
    # a forged workflow can give a conduct up, but not claim that something was done, failed or was asked for
    if record.of_run:
        return outcome if is_shown(record, outcome) else None
    finish, failure, aborts = outcome.finish, outcome.failure, record.asked is PendingRequest.ABORT
    if failure is not None and (index := failure.step_index) is not None:
        if failure.error_class == messages.INTERRUPTED and record.step is not None:
            begun = failure != messages.interruption(record.step, index, begun=False)
            failure = messages.interruption(record.step, index, begun=begun)
        elif record.failed is not None and record.failed.step_index == index:
            failure = record.failed
        elif aborts:
            failure = None
        else:
            return None
    if finish in (Finish.FAILED, Finish.FAULTED, Finish.UNKNOWN):
        finish = finish_after(ConductVerdict.FAILED, failure, record.command_name, holds_unknown=record.holds_unknown)
    elif finish is Finish.GATE_CLOSED:
        known = next((gate.__name__ for gate in GATE_REFUSALS if failure and gate.__name__ == failure.error_class), None)
        failure = record.closed_gate or lifecycle_failure("hold", known or "GateClosed", REOPENED)
    reason = None if outcome.termination_reason is None else record.spent
    verified = outcome.model_copy(update={"finish": finish, "failure": failure, "termination_reason": reason})
    if aborts:
        return verified
    if finish is Finish.COMPLETED and record.mode in LOOPS:
        return verify_loop(record, verified)
    return verified if is_shown(record, verified) else None


def verify_loop(record: EndRecord, outcome: ConductOutcome) -> ConductOutcome | None:
    """Return the outcome of a completed loop with its termination reason, where the record shows that it has ended."""
    ended, advised = record.last_pass, record.mode is ConductMode.ADVISED
    if record.pass_open:
        return None
    if ended is not None and (ended.advised_stop if advised else ended.converged):
        return outcome if record.walked else None
    if advised and ended is None and record.takes_up and outcome.termination_reason is None:
        return outcome  # the decider had nothing more measured when the search was taken up
    return None if record.spent is None else outcome.model_copy(update={"termination_reason": record.spent})


def is_shown(record: EndRecord, outcome: ConductOutcome) -> bool:
    """Return whether the record shows that the walk ended so; giving up needs nothing."""
    failed, phase, of_procedure = outcome.failure is not None, record.phase, not record.of_run
    shown = {
        Finish.COMPLETED: record.walked,
        Finish.STOPPED: record.run is not None and record.run not in LIVE,
        Finish.FAILED: failed if of_procedure else phase is not None and (failed or phase.status in GIVEN_UP),
        Finish.DENIED: failed,
        Finish.CANCELLED: True,
        Finish.STOOD_DOWN: True,
        Finish.FAULTED: of_procedure and failed,
        Finish.UNKNOWN: of_procedure and failed,
        Finish.HELD: record.asked is not None,
        Finish.ABORTED: of_procedure and record.run is RunStatus.ABORTED,
        Finish.GATE_CLOSED: record.watches,
        Finish.HALTED: of_procedure,
        Finish.GONE: False,
    }
    return shown[outcome.finish]


def replace_finish(record: EndRecord, outcome: ConductOutcome) -> ConductOutcome:
    """Return how it ends where a hold came in time, or where its submitter stood down and may not complete it."""
    finish, failure = outcome.finish, outcome.failure
    held = record.asked is PendingRequest.HOLD and record.in_time and may_be_held(record, outcome)
    if held and ENDS[finish].closes:
        finish = Finish.HELD
    elif record.objection is not None and finish is Finish.COMPLETED and record.mode is not None:
        finish = Finish.STOOD_DOWN
    if finish is Finish.STOOD_DOWN:
        failure = failure or messages.submitter_stood_down(record.objection, steers=record.steers)
    return outcome.model_copy(update={"finish": finish, "failure": failure})


def may_be_held(record: EndRecord, outcome: ConductOutcome) -> bool:
    """Return whether a hold that was asked for still counts when the main list has ended: not once a loop has its result."""
    looped = outcome.finish is Finish.COMPLETED and record.mode in LOOPS
    return outcome.finish is not Finish.DENIED and record.mode is not None and not looped


def recorded_failure(record: EndRecord, outcome: ConductOutcome) -> Failure | None:
    """Return what the result says failed; that of a run leaves out what the run and its phases have on record."""
    if not record.of_run:
        return failure_of_end(outcome)
    if record.run is RunStatus.COMPLETED:
        return None
    return ENDS[outcome.finish].failure if outcome.finish is Finish.CANCELLED else outcome.failure


def hold_reason(record: EndRecord, outcome: ConductOutcome) -> tuple[str, HoldCause, UUID | None]:
    """Return reason and cause of a hold: of the one that was asked for, with its decision, or of what failed."""
    if record.asked is PendingRequest.HOLD and isinstance(record.request, procedures.ProcedureHoldRequested):
        return record.request.reason, HoldCause.OPERATOR, record.request.decided_by_decision_id
    failure, cause = outcome.failure, ENDS[outcome.finish].cause
    assert failure is not None, "nobody asked, so something failed"
    assert cause is not None, "a hold has a cause"
    if cause is HoldCause.GATE_CLOSED:
        return failure.message[: messages.MAX_REASON_LENGTH], cause, None
    driver = failure.error_class == messages.DRIVER_STOOD_DOWN
    return messages.reason_of(failure), HoldCause.DRIVER_STOOD_DOWN if driver else cause, None


def abort_reason(record: EndRecord, outcome: ConductOutcome) -> str:
    """Return the reason of an abort: what was asked for, a cancellation, the end of the parent run, or what failed."""
    if record.request is not None and (record.asked is PendingRequest.ABORT or outcome.finish is Finish.COMPLETED):
        return record.request.reason
    if outcome.finish is Finish.CANCELLED:
        return "conduct cancelled"
    if outcome.finish in (Finish.STOPPED, Finish.ABORTED):
        return record.run_reason or "The parent run was completed."
    failure, phase = outcome.failure or record.failed, record.phase
    reason = "" if failure is None else messages.reason_of(failure)
    return reason if phase is None else f"phase {phase.name}: {reason or phase.status.value}"[:480]
