"""What a conductor does between the steps: it begins, waits for its run, closes and ends, each time on the record.

Everything here may be repeated: the stream says whether it was done already.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from baton.application.conduct.conduct_plan import CLOSING_BLOCKS, MAIN_BLOCKS, ConductPlan, ConductPlans
from baton.application.conduct.heartbeat import Attempt
from baton.application.conduct.ledger import ClosingRequest, Ledger
from baton.application.conduct.procedure_stream import ConductRecord, refused
from baton.application.conduct.step_runner import StepRunner
from baton.application.conduct.submitters import Submitters
from baton.application.ports import Clock, Store
from baton.application.record_reader import load_events, require_state
from baton.domain.kernel import Command
from baton.domain.operation.conduct.actuation import merged_kind
from baton.domain.operation.conduct.messages import (
    DRIVER_STOOD_DOWN,
    INTERRUPTED,
    MAX_REASON_LENGTH,
    ConductStart,
    Finish,
    ConductOutcome,
    ConductVerdict,
    needs_closing,
    step_failure,
    leads_to_hold,
    interruption,
    lifecycle_failure,
    reason_of,
)
from baton.domain.operation.conduct.progress import WaitingFor
from baton.domain.operation.conduct.results import Artifact, BestPoint, CapturedValue, ConductResult, Failure, LastObjective
from baton.domain.operation.procedure.endings import (
    EXPIRED,
    AbortProcedure,
    CompleteProcedure,
    HoldProcedure,
    RecordConductEnd,
    given_up,
)
from baton.domain.operation.procedure.procedure import (
    ConductMode,
    HoldCause,
    PendingRequest,
    Procedure,
    ProcedureAbortRequested,
    ProcedureHoldRequested,
    ProcedureIterationEnded,
    ProcedureOutcomeRecorded,
)
from baton.domain.operation.steering.decider_choice import CallerDecide
from baton.domain.operation.steering.steered_conduct import best_point, spent_budget
from baton.domain.run.run import ENDINGS, LIVE, Run, RunResumed, RunStatus
from baton.domain.shared.refusals import ConcurrencyError, Refusal, UnauthorizedError, Unavailable

log = structlog.get_logger()

POLL = 1.0
"""Seconds between two looks at the record while a conduct waits."""
Act = Callable[[ConductPlan, Command], Awaitable[None]]
"""How a command is given: as the submitter, or as the service."""


class Conductor:
    """Acts for conducts through the command path, as whoever asked for them."""

    def __init__(
        self,
        store: Store,
        record: ConductRecord,
        clock: Clock,
        ledger: Ledger,
        scores: ConductPlans,
        steps: StepRunner,
        submitters: Submitters,
    ) -> None:
        self._store = store
        self._record = record
        self._clock = clock
        self._ledger = ledger
        self._scores = scores
        self._steps = steps
        self._submitters = submitters

    async def brief(self, procedure_id: UUID, conduct_id: UUID) -> ConductStart | None:
        """What there is to conduct; None where the conduct is not the live one, or it was left too long to begin."""
        score = await self._scores.score(procedure_id, conduct_id)
        if score is None:
            return None
        if self._clock() - score.started_at > timedelta(seconds=self._steps.limits.restart):
            result = given_up(procedure_id, conduct_id, score.command_name, EXPIRED)
            with suppress(RecordConductEnd.Cannot):
                await self._record.as_service(score, RecordConductEnd(result=result, abort_reason=reason_of(EXPIRED)))
        procedure = await self._record.procedure(score)
        if procedure.live_conduct_id != conduct_id:
            self._scores.forget(conduct_id)
            return None
        await self._ledger.go_on(procedure_id, conduct_id)
        if (left_open := procedure.current_iteration_index) is not None:
            await self._record.end_pass(score, left_open, "It was left open.")
        measured = await self._record.happened(score, ProcedureOutcomeRecorded) if score.steering is not None else ()
        return ConductStart(
            command_name=score.command_name,
            mode=score.mode,
            step_count=len(score.steps),
            closing_count=len(score.closing_steps),
            boundary=score.boundary,
            next_step=self._steps.ahead(score.steps[score.boundary] if score.boundary < len(score.steps) else None),
            closing_step=self._steps.ahead(score.closing_steps[0] if score.closing_steps else None),
            loop_step=self._steps.ahead(score.steps[0] if score.steps else None),
            asks_first=bool(measured),
            advised_from_outside=score.steering is not None and isinstance(score.steering.decide, CallerDecide),
            first_point=None if score.steering is None else score.steering.space.first_point,
        )

    async def await_run(self, procedure_id: UUID, conduct_id: UUID, attempt: Attempt) -> ConductVerdict:
        """Wait while the parent run is held; answers what the conduct is to do then."""
        score = await self._scores.score(procedure_id, conduct_id)
        if score is None:
            return ConductVerdict.GONE
        await self._ledger.wait(procedure_id, conduct_id, WaitingFor.RUN, None)
        verdict: ConductVerdict | None = ConductVerdict.RUN_HELD
        while verdict is ConductVerdict.RUN_HELD:
            attempt.alive()
            verdict = (await self._submitters.orders(self._ledger, score)).verdict
            if verdict is ConductVerdict.RUN_HELD:
                await asyncio.sleep(POLL)
        resumed = await self._resumed(score) if verdict is None else None
        await self._ledger.go_on(procedure_id, conduct_id, resumed)
        return verdict or ConductVerdict.DONE

    async def _resumed(self, score: ConductPlan) -> datetime | None:
        """When the parent run was resumed last."""
        assert score.run_id is not None, "a run was waited for"
        resumptions = await load_events(self._store, score.run_id, RunResumed)
        return resumptions[-1].occurred_at if resumptions else None

    async def begin_closing(self, procedure_id: UUID, conduct_id: UUID, outcome: ConductOutcome) -> ConductVerdict:
        """Close the open pass and mark that closing begins, unless something was asked for before."""
        score = await self._scores.score(procedure_id, conduct_id)
        if score is None:
            return ConductVerdict.GONE
        verified = await self._verified(score, await self._record.procedure(score), outcome)
        if verified is None or not needs_closing(score.command_name, verified):
            return disbelieved(score, outcome)
        outcome = verified
        if completes(score, outcome) and await self._submitters.lost(score.caller):
            return ConductVerdict.STOOD_DOWN
        closing = ClosingRequest(
            procedure_id=procedure_id,
            conduct_id=conduct_id,
            run_id=None if score.closing_only else score.run_id,
            may_hold=not outcome.denied and not score.closing_only,
            run_blocks=MAIN_BLOCKS if outcome.finish is Finish.COMPLETED else CLOSING_BLOCKS,
        )
        if (verdict := (await self._ledger.begin_closing(closing)).verdict) is not None:
            return verdict
        await self._close_pass(score, outcome)
        return ConductVerdict.DONE

    async def end(self, procedure_id: UUID, conduct_id: UUID, outcome: ConductOutcome, closed: bool) -> Failure | None:
        """Put the end of a conduct on the record.

        Where its submitter stood down, the service does: what would be Completed is Held, else it ends as it would have.
        Where its submitter may not end it, the service does too, naming who that was; but what was not closed must be closed
        before, and then the failure is answered and nothing is written.
        """
        score = await self._scores.score(procedure_id, conduct_id)
        while score is not None:
            procedure = await self._record.procedure(score)
            if procedure.live_conduct_id != conduct_id:
                break
            verified = await self._verified(score, procedure, outcome)
            if verified is None or not await self._is_closed(score, procedure, verified):
                disbelieved(score, outcome)
                break
            outcome = verified
            lost = await self._submitters.lost(score.caller)
            if lost and completes(score, outcome):
                outcome = outcome.model_copy(update={"finish": Finish.STOOD_DOWN})
            if outcome.finish is Finish.STOOD_DOWN and outcome.failure is None:
                outcome = outcome.model_copy(update={"failure": await self._submitters.failure(score)})
            await self._close_pass(score, outcome)
            try:
                if outcome.denied:
                    await self._record_denied(score, procedure, outcome)
                else:
                    act = self._record.as_service if lost else self._record.execute
                    await self._record_end(score, procedure, outcome, act)
            except UnauthorizedError as denied:
                if await self._submitters.lost(score.caller):
                    continue
                failure = refused("complete" if outcome.finish is Finish.COMPLETED else "abort", denied)
                outcome = outcome.model_copy(update={"denied": True, "failure": failure})
                if not closed and procedure.pending_request is not PendingRequest.ABORT:
                    return failure
            except ConcurrencyError:
                continue
            except Unavailable:
                raise
            except Refusal as refusal:
                procedure = await self._record.procedure(score)
                if procedure.live_conduct_id == conduct_id and refusal.reason != "request_pending":
                    await self._record_refused(score, procedure, outcome, refusal)
        self._scores.forget(conduct_id)
        return None

    async def _verified(self, score: ConductPlan, procedure: Procedure, outcome: ConductOutcome) -> ConductOutcome | None:
        """The end of the main list with everything that the record says of it; None where the record does not agree.

        Whoever has the engine can have a conduct given up, but not say that something was done, failed or was asked for.
        """
        tally = await self._ledger.tally(score.conduct_id, procedure.iteration_count if score.loops else 0)
        cut = None if outcome.closing_cut_at is None else tally.closed_count
        passes, now = procedure.iteration_count - score.iterations_before, self._clock()
        spent = None if score.steering is None else spent_budget(score.steering, passes, score.started_at, now)
        reason = None if outcome.termination_reason is None else spent
        seen = {"completed_count": tally.completed_count, "termination_reason": reason, "closing_cut_at": cut}
        said = outcome.model_copy(update=seen)
        if (failure := outcome.failure) is not None and failure.step_index is not None:
            if failure.error_class == INTERRUPTED and failure.step_index < len(score.steps):
                step = score.steps[failure.step_index]
                begun = failure != interruption(step, failure.step_index, begun=False)
                said = said.model_copy(update={"failure": interruption(step, failure.step_index, begun=begun)})
            elif tally.failure is not None and tally.failure.step_index == failure.step_index:
                said = said.model_copy(update={"failure": tally.failure})
            elif procedure.pending_request is not PendingRequest.ABORT:
                return None
            else:
                said = said.model_copy(update={"failure": None})
        if procedure.pending_request is PendingRequest.ABORT:
            return said
        run = None if score.run_id is None else (await require_state(self._store, Run, score.run_id)).status
        match outcome.finish:
            case Finish.COMPLETED if score.loops:
                return await self._converged(score, procedure, said)
            case Finish.COMPLETED:
                last = score.last()
                return said if last is None or await self._ledger.has_passed(last) else None
            case Finish.HELD:
                return said if procedure.pending_request is not None else None
            case Finish.ABORTED:
                return said if run is RunStatus.ABORTED else None
            case Finish.STOPPED:
                return said if run is not None and run not in LIVE else None
            case Finish.FAILED:
                return said if failure is not None else None
            case Finish.HALTED | Finish.STOOD_DOWN | Finish.CANCELLED:
                return said
            case Finish.GONE:
                return None

    async def _converged(self, score: ConductPlan, procedure: Procedure, said: ConductOutcome) -> ConductOutcome | None:
        """The end of a loop with why it ended, where the record shows that it has."""
        if procedure.current_iteration_index is not None:
            return None
        passes = procedure.iteration_count - score.iterations_before
        ended = (await self._record.happened(score, ProcedureIterationEnded))[-1] if passes else None
        if ended is not None and (ended.converged if score.steering is None else ended.advised_stop):
            last = score.last(ended.iteration_index)
            return said if last is None or await self._ledger.has_passed(last) else None
        if score.steering is None:
            return None
        if (spent := spent_budget(score.steering, passes, score.started_at, self._clock())) is not None:
            return said.model_copy(update={"termination_reason": spent})
        return said if ended is None and score.stated_boundary else None

    async def _is_closed(self, score: ConductPlan, procedure: Procedure, outcome: ConductOutcome) -> bool:
        """Whether an end that closes has every closing step behind it; an abort that was asked for needs none."""
        last = score.last(closing=True)
        if last is None or procedure.pending_request is PendingRequest.ABORT or not needs_closing(score.command_name, outcome):
            return True
        return await self._ledger.has_passed(last)

    async def _record_end(self, score: ConductPlan, procedure: Procedure, outcome: ConductOutcome, act: Act) -> None:
        """The command that the end of the conduct comes to, given as the submitter or as the service."""
        if procedure.pending_request is PendingRequest.ABORT:
            asked = (await self._record.happened(score, ProcedureAbortRequested))[-1]
            aborted = outcome.model_copy(update={"finish": Finish.ABORTED})
            result = await self._told_result(score, procedure, aborted)
            await act(score, AbortProcedure(reason=asked.reason, conducted=result))
            return
        if procedure.pending_request is PendingRequest.HOLD and outcome.finish is Finish.HALTED:
            outcome = outcome.model_copy(update={"finish": Finish.HELD})
        result = await self._told_result(score, procedure, outcome)
        match outcome.finish:
            case Finish.COMPLETED if score.closing_only:
                asked = (await self._record.happened(score, ProcedureAbortRequested))[-1]
                await act(score, AbortProcedure(reason=asked.reason, conducted=result))
            case Finish.COMPLETED:
                await act(score, CompleteProcedure(conducted=result))
            case Finish.HELD | Finish.STOOD_DOWN:
                await act(score, await self._hold(score, procedure, outcome, result))
            case Finish.FAILED if leads_to_hold(score.command_name, outcome.failure):
                await act(score, await self._hold(score, procedure, outcome, result))
            case Finish.HALTED:
                await self._record.as_service(score, RecordConductEnd(result=result))
            case Finish.FAILED | Finish.ABORTED | Finish.STOPPED | Finish.CANCELLED:
                await act(score, AbortProcedure(reason=await self._why(score, outcome), conducted=result))
            case Finish.GONE:
                raise AssertionError("what is gone has ended")

    async def _hold(self, score: ConductPlan, procedure: Procedure, outcome: ConductOutcome, result: ConductResult) -> HoldProcedure:
        """The hold that was asked for, or that a step that failed or a submitter or driver who stood down leads to."""
        if procedure.pending_request is PendingRequest.HOLD:
            asked = (await self._record.happened(score, ProcedureHoldRequested))[-1]
            return HoldProcedure(reason=asked.reason, decided_by_decision_id=asked.decided_by_decision_id, conducted=result)
        assert outcome.failure is not None, "nobody asked, so something failed"
        return HoldProcedure(
            reason=reason_of(outcome.failure), cause=hold_cause(outcome.finish, outcome.failure), conducted=result
        )

    async def _why(self, score: ConductPlan, outcome: ConductOutcome) -> str:
        """The reason of an abort that nobody asked the procedure for."""
        if outcome.finish is Finish.CANCELLED:
            return "conduct cancelled"
        if outcome.finish in (Finish.STOPPED, Finish.ABORTED) and score.run_id is not None:
            ending = (await load_events(self._store, score.run_id, *ENDINGS))[-1]
            return str(getattr(ending, "reason", "The parent run was completed."))
        assert outcome.failure is not None, "an abort has a reason"
        return reason_of(outcome.failure)

    async def _record_denied(self, score: ConductPlan, procedure: Procedure, outcome: ConductOutcome) -> None:
        """End what its submitter may not end any more, as the service itself."""
        assert outcome.failure is not None, "something was denied"
        result = await self._told_result(score, procedure, outcome)
        reason = f"The principal {score.caller.principal_id} may not go on with this: {outcome.failure.message}"[:MAX_REASON_LENGTH]
        await self._record.as_service(score, RecordConductEnd(result=ended_badly(result), abort_reason=reason))

    async def _record_refused(self, score: ConductPlan, procedure: Procedure, outcome: ConductOutcome, refusal: Refusal) -> None:
        """End a conduct whose last command was refused; the status stays, and the first failure is what is told."""
        target = "complete" if outcome.finish is Finish.COMPLETED else "abort"
        failure = outcome.failure or lifecycle_failure(target, refusal.code, refusal.detail)
        result = await self._told_result(score, procedure, outcome.model_copy(update={"failure": failure}))
        await self._record.as_service(score, RecordConductEnd(result=ended_badly(result)))

    async def _told_result(self, score: ConductPlan, procedure: Procedure, outcome: ConductOutcome) -> ConductResult:
        """The result as the ledger and the outcome have it."""
        loop = score.mode in (ConductMode.CONVERGED, ConductMode.ADVISED)
        tally = await self._ledger.tally(score.conduct_id, procedure.iteration_count if loop else 0)
        outputs = {**(await self._kept(score) if score.resumed else {}), **tally.outputs}
        closing = {failure.step_index: failure for failure in (*self._cut(score, outcome), *tally.closing_failures)}
        result = self._result(score, outcome)
        return result.model_copy(
            update={
                "iteration_count": procedure.iteration_count if loop else None,
                "actuation_kind": merged_kind((procedure.actuation_kind, tally.actuation_kind)),
                "captures": {**(await self._kept_captures(score) if score.resumed else {}), **tally.captures},
                "objective": await self._objective(score, procedure),
                "best": await self._best(score),
                "measurements": tally.measurements,
                "artifacts": tally.artifacts,
                "outputs": outputs,
                "substrate_writes": dict(tally.substrate_writes),
                "closing_failures": tuple(closing[index] for index in sorted(closing, key=lambda index: index or 0)),
            }
        )

    async def _objective(self, score: ConductPlan, procedure: Procedure) -> LastObjective | None:
        """What a loop was judged by, as the last of its passes measured it that did."""
        if score.convergence is None:
            return None
        name, criterion = score.convergence.capture_name, score.convergence.criterion
        for index in range(procedure.iteration_count, max(score.iterations_before, procedure.iteration_count - 2), -1):
            tally = await self._ledger.tally(score.conduct_id, index, of_pass=True)
            if (found := tally.captures.get(name)) is not None:
                return LastObjective(
                    name=name,
                    value=found.value,
                    iteration_index=index,
                    expected=criterion.expected,
                    tolerance=getattr(criterion, "tolerance", None),
                )
        return None

    async def _best(self, score: ConductPlan) -> BestPoint | None:
        """The best point of a search."""
        if score.steering is None:
            return None
        return best_point(score.steering, await self._record.happened(score, ProcedureOutcomeRecorded))

    async def _kept_captures(self, score: ConductPlan) -> dict[str, CapturedValue]:
        """The captures of earlier conducts that a conduct which goes on has found."""
        rows = await self._ledger.slots(score.procedure_id, score.conduct_id, 0, score.boundary)
        return {
            row.slot: CapturedValue(value=row.content["value"], time=row.recorded_at)
            for row in rows
            if "value" in row.content and not row.closing
        }

    async def _kept(self, score: ConductPlan) -> dict[str, Artifact]:
        """The outputs of earlier conducts that a conduct which goes on has found."""
        rows = await self._ledger.slots(score.procedure_id, score.conduct_id, 0, score.boundary)
        return {
            row.slot: Artifact(**row.content["artifact"]) for row in rows if "artifact" in row.content and not row.closing
        }

    def _cut(self, score: ConductPlan, outcome: ConductOutcome) -> Sequence[Failure]:
        """The closing steps that an abort kept from being done."""
        if outcome.closing_cut_at is None:
            return ()
        left = list(enumerate(score.closing_steps))[outcome.closing_cut_at :]
        message = "An abort stopped the closing steps before this one."
        return [step_failure(step, index, "ClosingCancelled", message) for index, step in left]

    def _result(self, score: ConductPlan, outcome: ConductOutcome) -> ConductResult:
        held = outcome.finish in (Finish.HELD, Finish.STOOD_DOWN) or (
            outcome.finish is Finish.FAILED and leads_to_hold(score.command_name, outcome.failure)
        )
        failure = outcome.failure or UNASKED.get(outcome.finish)
        return ConductResult(
            procedure_id=score.procedure_id,
            conduct_id=score.conduct_id,
            command_name=score.command_name,
            succeeded=failure is None,
            completed_count=outcome.completed_count,
            skipped_count=score.skipped_count,
            failure=failure,
            held=held,
            acquisition_halt=outcome.finish is Finish.HALTED,
            re_establishment_boundary=score.stated_boundary,
            termination_reason=outcome.termination_reason,
        )

    async def _close_pass(self, score: ConductPlan, outcome: ConductOutcome) -> None:
        """End a pass that is still open, before anything else ends."""
        procedure = await self._record.procedure(score)
        while (index := procedure.current_iteration_index) is not None and procedure.live_conduct_id == score.conduct_id:
            failed = outcome.failure is not None and outcome.finish is not Finish.HELD
            reason = reason_of(outcome.failure) if failed and outcome.failure else outcome.finish.value
            await self._record.end_pass(score, index, reason, discarded=outcome.finish is Finish.STOOD_DOWN)
            procedure = await self._record.procedure(score)


def disbelieved(score: ConductPlan, outcome: ConductOutcome) -> ConductVerdict:
    """The verdict on an end that the record does not agree with: nothing is written, and whoever says so is gone."""
    ids = {"procedure_id": str(score.procedure_id), "conduct_id": str(score.conduct_id)}
    log.warning("conduct_end_disbelieved", **ids, finish=outcome.finish.value)
    return ConductVerdict.GONE


UNASKED = {
    Finish.HELD: lifecycle_failure("hold", "ProcedureHeldByOperator", "The procedure was held as asked."),
    Finish.ABORTED: lifecycle_failure("abort", "ProcedureAborted", "The conduct was aborted as asked."),
    Finish.STOPPED: lifecycle_failure("abort", "RunStopped", "The parent run was stopped."),
    Finish.CANCELLED: lifecycle_failure("abort", "CancelledError", "The conduct was cancelled in the engine."),
    Finish.HALTED: lifecycle_failure(
        "hold",
        "AcquisitionResumeRequiresOperator",
        "The next step was begun by an earlier conduct and is not repeated; settle it by hand first.",
    ),
}
"""What a result says of an end that no step failed in."""


def completes(score: ConductPlan, outcome: ConductOutcome) -> bool:
    """Whether the conduct is about to complete its procedure, which takes somebody who stands behind it."""
    return outcome.finish is Finish.COMPLETED and not outcome.denied and not score.closing_only


def hold_cause(finish: Finish, failure: Failure) -> HoldCause:
    """Why a procedure is held that nobody asked to be."""
    if finish is not Finish.STOOD_DOWN:
        return HoldCause.STEP_FAULT
    steered = failure.error_class == DRIVER_STOOD_DOWN
    return HoldCause.DRIVER_STOOD_DOWN if steered else HoldCause.SUBMITTER_STOOD_DOWN


def ended_badly(result: ConductResult) -> ConductResult:
    """The result of a conduct that did not come to the end it was bound for."""
    return result.model_copy(update={"succeeded": False, "held": False})
