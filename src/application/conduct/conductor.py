"""What a conduct does between its steps: begin, wait for its run, begin closing, and end, each time on the record.
Everything here may be repeated: the stream says whether it was done already."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_never

import structlog

from baton.application.conduct import conduct_record
from baton.application.conduct.conduct_record import ConductRecord, RecordWatch, StepPlan, StepPlans
from baton.application.conduct.heartbeat import Attempt
from baton.application.conduct.ledger import Ledger, Tally
from baton.application.conduct.step_execution import StepRunner
from baton.application.ports import Clock, Store
from baton.application.unit_of_work import load_events, load_row, require_state
from baton.domain.kernel import Command
from baton.domain.operation.conduct import messages, results
from baton.domain.operation.conduct.ends import ENDS, Leads, failure_of_end, finish_after, finish_denied
from baton.domain.operation.conduct.messages import ConductEnd, ConductOutcome, ConductRequest, ConductVerdict, Finish
from baton.domain.operation.conduct.progress import ConductPhase, ConductProgress, WaitingFor
from baton.domain.operation.conduct.results import Artifact, CapturedValue, ConductResult, Failure
from baton.domain.operation.procedure import endings
from baton.domain.operation.procedure import procedure as procedures
from baton.domain.operation.procedure.procedure import HoldCause, PendingRequest, Procedure
from baton.domain.operation.procedure.start import GATE_REFUSALS
from baton.domain.operation.steering.steered_conduct import best_point, spent_budget
from baton.domain.operation.steering.steering import CallerDecide
from baton.domain.run.run import ENDINGS, LIVE, Run, RunResumed, RunStatus
from baton.domain.shared.refusals import ConcurrencyError, Refusal, UnauthorizedError, Unavailable

log = structlog.get_logger()
POLL_SECONDS = 1.0  # the pause between two reads of the record while a conduct waits
Execute = Callable[[StepPlan, Command], Awaitable[None]]  # executes a command: as the submitter, or as the service
STEP_FAILURES = (Finish.FAILED, Finish.FAULTED, Finish.UNKNOWN)  # the ends at a step that failed
REOPENED = "A gate that is watched was closed for a moment; look at the equipment, and take it up again."


@dataclass(frozen=True)
class Conductor:
    """Acts for conducts through the command path, as their submitters."""

    store: Store
    record: ConductRecord
    clock: Clock
    ledger: Ledger
    plans: StepPlans
    steps: StepRunner
    watch: RecordWatch

    async def brief(self, request: ConductRequest) -> messages.ConductStart | None:
        """Return what there is to conduct; None where the conduct is not the live one, or no worker began it in time."""
        if (plan := await self.plans.load(request)) is None:
            return None
        if self.clock() - plan.started_at > timedelta(seconds=self.steps.limits.restart):
            result = endings.lost_result(plan.procedure_id, plan.conduct_id, plan.command_name, endings.EXPIRED)
            with suppress(endings.RecordConductEnd.Cannot):
                end = endings.RecordConductEnd(result=result, abort_reason=messages.reason_of(endings.EXPIRED))
                await self.record.execute_as_service(plan, end)
        procedure = await self.record.procedure(plan)
        if procedure.live_conduct_id != plan.conduct_id:
            self.plans.forget(plan.conduct_id)
            return None
        await self.ledger.mark_walking(plan.procedure_id, plan.conduct_id)
        if (open_pass := procedure.current_iteration_index) is not None:
            await self.record.end_pass(plan, open_pass, "It was left open.")
        steering = plan.steering
        measured = await self.record.events(plan, procedures.ProcedureOutcomeRecorded) if steering is not None else ()
        return messages.ConductStart(
            command_name=plan.command_name,
            mode=plan.mode,
            step_count=len(plan.steps),
            closing_count=len(plan.closing_steps),
            boundary=plan.boundary,
            next_step=self.steps.describe(plan.steps, plan.boundary),
            closing_step=self.steps.describe(plan.closing_steps),
            loop_step=self.steps.describe(plan.steps),
            asks_first=bool(measured),
            advised_from_outside=steering is not None and isinstance(steering.decide, CallerDecide),
            first_point=None if steering is None else steering.start_point,
            holds_unknown=plan.holds_unknown,
            ends_directly=plan.ends_directly,
            ends_locally=True,
        )

    async def await_run(self, request: ConductRequest, attempt: Attempt) -> ConductVerdict:
        """Wait while the parent run is held; return what the conduct must do then."""
        if (plan := await self.plans.load(request)) is None:
            return ConductVerdict.GONE
        await self.ledger.mark_waiting(plan.procedure_id, plan.conduct_id, WaitingFor.RUN, None)
        verdict: ConductVerdict | None = ConductVerdict.RUN_HELD
        while verdict is ConductVerdict.RUN_HELD:
            attempt.heartbeat()
            verdict = (await self.watch.signals(self.ledger, plan)).verdict
            if verdict is ConductVerdict.RUN_HELD:
                await asyncio.sleep(POLL_SECONDS)
        resumed_at = None
        if verdict is None:
            assert plan.run_id is not None, "a run was waited for"
            resumptions = await load_events(self.store, plan.run_id, RunResumed)
            resumed_at = resumptions[-1].occurred_at if resumptions else None
        await self.ledger.mark_walking(plan.procedure_id, plan.conduct_id, resumed_at)
        return verdict or ConductVerdict.DONE

    async def begin_closing(self, request: ConductEnd) -> ConductVerdict:
        """End the open pass and mark that closing begins, unless a person asked for something before."""
        if (plan := await self.plans.load(request)) is None:
            return ConductVerdict.GONE
        procedure = await self.record.procedure(plan)
        outcome = await self._verify(plan, procedure, request.outcome, await self._tally(plan, procedure))
        if outcome is None or not ENDS[outcome.finish].closes:
            return reject(plan, request.outcome)
        if completes(plan, outcome) and await self.watch.has_stood_down(plan.caller):
            return ConductVerdict.STOOD_DOWN
        completed, may_hold = outcome.finish is Finish.COMPLETED, may_be_held(plan, outcome)
        verdict: ConductVerdict | None = None
        while verdict is None:
            watched = await self.watch.read(plan)
            verdict = watched.signals.before_closing(completed=completed, may_hold=may_hold)
            versions = watched.versions if verdict is None else None
            heard = await self.ledger.begin_closing(plan.procedure_id, plan.conduct_id, versions)
            if not heard.live:
                return ConductVerdict.GONE
            if not heard.moved:
                verdict = ConductVerdict.DONE
        if verdict is not ConductVerdict.DONE:
            return verdict
        await self._end_open_pass(plan, await self.record.procedure(plan), outcome)
        return ConductVerdict.DONE

    async def end(self, request: ConductEnd) -> Failure | None:
        """Put the end of a conduct on the record. Where its submitter stood down, the service does: what would be Completed
        is Held, else it ends as it would have. Where its submitter may not end it, the service does too and names them; but
        closing steps that are due come first, and then the failure is returned and nothing is written."""
        plan, outcome, denied = await self.plans.load(request), request.outcome, False
        while plan is not None:
            procedure = await self.record.procedure(plan)
            if procedure.live_conduct_id != plan.conduct_id:
                break
            tally = await self._tally(plan, procedure)
            verified = await self._verify(plan, procedure, outcome, tally)
            if verified is None or not await self._is_closed(plan, procedure, verified):
                reject(plan, outcome)
                break
            outcome = verified
            asked_to_hold = procedure.pending_request is PendingRequest.HOLD and ENDS[outcome.finish].closes
            if asked_to_hold and plan.ends_directly and may_be_held(plan, outcome) and not await self._is_closing(plan):
                outcome = outcome.model_copy(update={"finish": Finish.HELD})
            stood_down = await self.watch.has_stood_down(plan.caller)
            if stood_down and completes(plan, outcome):
                outcome = outcome.model_copy(update={"finish": Finish.STOOD_DOWN})
            if outcome.finish is Finish.STOOD_DOWN and outcome.failure is None:
                outcome = outcome.model_copy(update={"failure": await self.watch.failure(plan)})
            await self._end_open_pass(plan, procedure, outcome)
            by_service = stood_down or ENDS[outcome.finish].by_service
            execute = self.record.execute_as_service if by_service else self.record.execute
            target = "complete" if outcome.finish is Finish.COMPLETED else "abort"
            try:
                if denied or outcome.finish is Finish.DENIED:
                    assert outcome.failure is not None, "something was denied"
                    reason = conduct_record.denial_reason(plan.caller.principal_id, outcome.failure)
                    await self._record_failed_end(plan, procedure, outcome, tally, reason)
                else:
                    await self._record_end(plan, procedure, outcome, tally, execute)
            except UnauthorizedError as refused:
                if await self.watch.has_stood_down(plan.caller):
                    continue
                failure, denied = messages.lifecycle_failure(target, refused.code, refused.detail), True
                outcome = outcome.model_copy(update={"finish": finish_denied(outcome.finish), "failure": failure})
                asked = procedure.pending_request is PendingRequest.ABORT
                if not (request.closed or asked or plan.ends_directly) and ENDS[outcome.finish].closes:
                    return failure
            except ConcurrencyError:
                continue
            except Unavailable:
                raise
            except Refusal as refusal:
                procedure = await self.record.procedure(plan)
                if procedure.live_conduct_id == plan.conduct_id and refusal.reason != "request_pending":
                    failure = outcome.failure or messages.lifecycle_failure(target, refusal.code, refusal.detail)
                    await self._record_failed_end(plan, procedure, outcome.model_copy(update={"failure": failure}), tally)
        self.plans.forget(request.conduct_id)
        return None

    async def _tally(self, plan: StepPlan, procedure: Procedure) -> Tally:
        """Return what the ledger holds of a conduct, with the results of its last pass."""
        return await self.ledger.tally(plan.conduct_id, procedure.iteration_count if plan.loops else 0)

    async def _verify(
        self, plan: StepPlan, procedure: Procedure, outcome: ConductOutcome, tally: Tally
    ) -> ConductOutcome | None:
        """Return the outcome with everything that the record says about it; None where the record does not agree."""
        # a forged workflow can give a conduct up, but not claim that something was done, failed or was asked for
        facts: dict[str, Any] = {"completed_count": tally.completed_count, "termination_reason": None}
        if plan.steering is not None and outcome.termination_reason is not None:
            passes = plan.passes(procedure)
            facts["termination_reason"] = spent_budget(plan.steering, passes, plan.started_at, self.clock())
        facts["closing_cut_at"] = None if outcome.closing_cut_at is None else tally.closed_count
        verified = outcome.model_copy(update=facts)
        if (failure := outcome.failure) is not None and failure.step_index is not None:
            if failure.error_class == messages.INTERRUPTED and failure.step_index < len(plan.steps):
                step = plan.steps[failure.step_index]
                begun = failure != messages.interruption(step, failure.step_index, begun=False)
                actual: Failure | None = messages.interruption(step, failure.step_index, begun=begun)
            elif tally.failure is not None and tally.failure.step_index == failure.step_index:
                actual = tally.failure
            elif procedure.pending_request is PendingRequest.ABORT:
                actual = None
            else:
                return None
            verified = verified.model_copy(update={"failure": actual})
        if outcome.finish in STEP_FAILURES:
            failed, unknown = ConductVerdict.FAILED, plan.holds_unknown
            finish = finish_after(failed, verified.failure, plan.command_name, holds_unknown=unknown)
            verified = verified.model_copy(update={"finish": finish})
        if outcome.finish is Finish.GATE_CLOSED:
            verified = verified.model_copy(update={"failure": await self._closed_gate(plan, outcome)})
        if procedure.pending_request is PendingRequest.ABORT:
            return verified
        if outcome.finish is Finish.COMPLETED and plan.loops:
            return await self._verify_loop(plan, procedure, verified)
        return verified if await self._is_shown(plan, procedure, outcome) else None

    async def _closed_gate(self, plan: StepPlan, outcome: ConductOutcome) -> Failure:
        """Return the refusal of the gate that is closed or, where all are open again, that one was closed for a moment."""
        if (gate := (await self.watch.read(plan)).signals.closed_gate) is not None:
            return gate
        code = None if outcome.failure is None else outcome.failure.error_class
        known = next((one.__name__ for one in GATE_REFUSALS if one.__name__ == code), "GateClosed")
        return messages.lifecycle_failure("hold", known, REOPENED)

    async def _is_shown(self, plan: StepPlan, procedure: Procedure, outcome: ConductOutcome) -> bool:
        """Return whether the record shows that the main list ended so; giving up needs nothing."""
        run = None if plan.run_id is None else (await require_state(self.store, Run, plan.run_id)).status
        match outcome.finish:
            case Finish.COMPLETED:
                last = plan.last()
                return last is None or await self.ledger.has_passed(last)
            case Finish.HELD:
                return procedure.pending_request is not None
            case Finish.ABORTED:
                return run is RunStatus.ABORTED
            case Finish.STOPPED:
                return run is not None and run not in LIVE
            case Finish.FAILED | Finish.FAULTED | Finish.UNKNOWN | Finish.DENIED:
                return outcome.failure is not None
            case Finish.GATE_CLOSED:
                return bool(plan.options.watch)
            case Finish.HALTED | Finish.STOOD_DOWN | Finish.CANCELLED:
                return True
            case Finish.GONE:
                return False
            case _:
                assert_never(outcome.finish)

    async def _verify_loop(self, plan: StepPlan, procedure: Procedure, outcome: ConductOutcome) -> ConductOutcome | None:
        """Return the outcome of a completed loop with its termination reason, where the record shows that it has ended."""
        if procedure.current_iteration_index is not None:
            return None
        passes = plan.passes(procedure)
        ended = (await self.record.events(plan, procedures.ProcedureIterationEnded))[-1] if passes else None
        if ended is not None and (ended.converged if plan.steering is None else ended.advised_stop):
            last = plan.last(ended.iteration_index)
            return outcome if last is None or await self.ledger.has_passed(last) else None
        if plan.steering is None:
            return None
        if outcome.termination_reason is None and ended is None and plan.stated_boundary:
            return outcome  # the decider had nothing more measured when the search was taken up
        spent = spent_budget(plan.steering, passes, plan.started_at, self.clock())
        return None if spent is None else outcome.model_copy(update={"termination_reason": spent})

    async def _is_closing(self, plan: StepPlan) -> bool:
        """Return whether closing has begun, after which a hold comes too late."""
        progress = await load_row(self.store, ConductProgress, procedure_id=plan.procedure_id)
        return progress is not None and progress.phase == ConductPhase.CLOSING

    async def _is_closed(self, plan: StepPlan, procedure: Procedure, outcome: ConductOutcome) -> bool:
        """Return whether every closing step that the outcome needs is done; an abort that was asked for needs none."""
        last = plan.last(closing=True)
        if last is None or procedure.pending_request is PendingRequest.ABORT:
            return True
        return not ENDS[outcome.finish].closes or await self.ledger.has_passed(last)

    async def _record_end(
        self, plan: StepPlan, procedure: Procedure, outcome: ConductOutcome, tally: Tally, execute: Execute
    ) -> None:
        """Execute the command that an outcome leads to; what was asked for meanwhile comes first."""
        if procedure.pending_request is PendingRequest.ABORT:
            outcome = outcome.model_copy(update={"finish": Finish.ABORTED})
        elif procedure.pending_request is PendingRequest.HOLD and outcome.finish is Finish.HALTED:
            outcome = outcome.model_copy(update={"finish": Finish.HELD})
        result = await self._result(plan, procedure, outcome, tally)
        match ENDS[outcome.finish].leads_to:
            case Leads.COMPLETE if not plan.closing_only:
                await execute(plan, endings.CompleteProcedure(conducted=result))
            case Leads.HOLD:
                await execute(plan, await self._hold(plan, procedure, outcome, result))
            case Leads.STAY:
                await self.record.execute_as_service(plan, endings.RecordConductEnd(result=result))
            case Leads.COMPLETE | Leads.ABORT:
                reason = await self._abort_reason(plan, procedure, outcome)
                await execute(plan, endings.AbortProcedure(reason=reason, conducted=result))
            case Leads.NOTHING:
                raise AssertionError("what is gone has ended")

    async def _hold(
        self, plan: StepPlan, procedure: Procedure, outcome: ConductOutcome, result: ConductResult
    ) -> endings.HoldProcedure:
        """Return the hold that was asked for, or the one that the outcome leads to."""
        if procedure.pending_request is PendingRequest.HOLD:
            asked = (await self.record.events(plan, procedures.ProcedureHoldRequested))[-1]
            decision_id = asked.decided_by_decision_id
            return endings.HoldProcedure(reason=asked.reason, decided_by_decision_id=decision_id, conducted=result)
        failure, cause = outcome.failure, ENDS[outcome.finish].cause
        assert failure is not None, "nobody asked, so something failed"
        assert cause is not None, "a hold has a cause"
        if failure.error_class == messages.DRIVER_STOOD_DOWN:
            cause = HoldCause.DRIVER_STOOD_DOWN
        reason = failure.message[: messages.MAX_REASON_LENGTH]
        if cause is not HoldCause.GATE_CLOSED:
            reason = messages.reason_of(failure)
        return endings.HoldProcedure(reason=reason, cause=cause, conducted=result)

    async def _abort_reason(self, plan: StepPlan, procedure: Procedure, outcome: ConductOutcome) -> str:
        """Return the reason of an abort: what was asked for, the end of the parent run, or the failure."""
        if procedure.pending_request is PendingRequest.ABORT or outcome.finish is Finish.COMPLETED:
            return (await self.record.events(plan, procedures.ProcedureAbortRequested))[-1].reason
        if outcome.finish is Finish.CANCELLED:
            return "conduct cancelled"
        if outcome.finish in (Finish.STOPPED, Finish.ABORTED) and plan.run_id is not None:
            ending = (await load_events(self.store, plan.run_id, *ENDINGS))[-1]
            return str(getattr(ending, "reason", "The parent run was completed."))
        assert outcome.failure is not None, "an abort has a reason"
        return messages.reason_of(outcome.failure)

    async def _record_failed_end(
        self, plan: StepPlan, procedure: Procedure, outcome: ConductOutcome, tally: Tally, abort_reason: str | None = None
    ) -> None:
        """End a conduct whose last command was denied or refused, as the service; without a reason the status stays."""
        result = (await self._result(plan, procedure, outcome, tally)).model_copy(update={"succeeded": False, "held": False})
        await self.record.execute_as_service(plan, endings.RecordConductEnd(result=result, abort_reason=abort_reason))

    async def _result(self, plan: StepPlan, procedure: Procedure, outcome: ConductOutcome, tally: Tally) -> ConductResult:
        """Return the result of a conduct from its outcome and the ledger."""
        passes = procedure.iteration_count if plan.loops else None
        captures, outputs = await self._kept_slots(plan) if plan.is_resumed else ({}, {})
        failure = failure_of_end(outcome)
        closing = {failed.step_index: failed for failed in (*unwalked_closing(plan, outcome), *tally.closing_failures)}
        outcomes = await self.record.events(plan, procedures.ProcedureOutcomeRecorded) if plan.steering is not None else ()
        return ConductResult(
            procedure_id=plan.procedure_id,
            conduct_id=plan.conduct_id,
            command_name=plan.command_name,
            succeeded=failure is None,
            completed_count=outcome.completed_count,
            skipped_count=plan.skipped_count,
            failure=failure,
            held=ENDS[outcome.finish].leads_to is Leads.HOLD,
            acquisition_halt=outcome.finish is Finish.HALTED,
            re_establishment_boundary=plan.stated_boundary,
            termination_reason=outcome.termination_reason,
            iteration_count=passes,
            actuation_kind=results.merged_kind((procedure.actuation_kind, tally.actuation_kind)),
            captures={**captures, **tally.captures},
            objective=await self._last_objective(plan, procedure),
            best=None if plan.steering is None else best_point(plan.steering, outcomes),
            measurements=tally.measurements,
            artifacts=tally.artifacts,
            outputs={**outputs, **tally.outputs},
            substrate_writes=dict(tally.substrate_writes),
            deviations=tally.deviations,
            closing_failures=tuple(closing[index] for index in sorted(closing, key=lambda index: index or 0)),
        )

    async def _last_objective(self, plan: StepPlan, procedure: Procedure) -> results.LastObjective | None:
        """Return what a loop is judged by, as measured by the last pass that measured it."""
        if plan.convergence is None:
            return None
        name, criterion = plan.convergence.capture_name, plan.convergence.criterion
        for index in range(procedure.iteration_count, max(plan.iterations_before, procedure.iteration_count - 2), -1):
            tally = await self.ledger.tally(plan.conduct_id, index, of_pass=True)
            if (capture := tally.captures.get(name)) is not None:
                aim: dict[str, Any] = {"expected": criterion.expected, "tolerance": getattr(criterion, "tolerance", None)}
                return results.LastObjective(name=name, value=capture.value, iteration_index=index, **aim)
        return None

    async def _kept_slots(self, plan: StepPlan) -> tuple[dict[str, CapturedValue], dict[str, Artifact]]:
        """Return the captures and outputs of earlier conducts that a resumed conduct has found."""
        slots = await self.ledger.slots(plan.procedure_id, plan.conduct_id, 0, plan.boundary)
        rows = [row for row in slots if not row.closing]
        values = [row for row in rows if "value" in row.content]
        captures = {row.slot: CapturedValue(value=row.content["value"], time=row.recorded_at) for row in values}
        return captures, {row.slot: Artifact(**row.content["artifact"]) for row in rows if "artifact" in row.content}

    async def _end_open_pass(self, plan: StepPlan, procedure: Procedure, outcome: ConductOutcome) -> None:
        """End a pass that is still open, before anything else ends."""
        while (index := procedure.current_iteration_index) is not None and procedure.live_conduct_id == plan.conduct_id:
            failure = None if outcome.finish is Finish.HELD else outcome.failure
            reason = outcome.finish.value if failure is None else messages.reason_of(failure)
            await self.record.end_pass(plan, index, reason, discarded=outcome.finish is Finish.STOOD_DOWN)
            procedure = await self.record.procedure(plan)


def reject(plan: StepPlan, outcome: ConductOutcome) -> ConductVerdict:
    """Log an outcome that the record does not agree with; nothing is written, and the workflow ends."""
    ids = {"procedure_id": str(plan.procedure_id), "conduct_id": str(plan.conduct_id)}
    log.warning("conduct_end_rejected", **ids, finish=outcome.finish.value)
    return ConductVerdict.GONE


def unwalked_closing(plan: StepPlan, outcome: ConductOutcome) -> Sequence[Failure]:
    """Return the failures of the closing steps that an abort kept from running."""
    cut_at = len(plan.closing_steps) if outcome.closing_cut_at is None else outcome.closing_cut_at
    left = list(enumerate(plan.closing_steps))[cut_at:]
    message = "An abort stopped the closing steps before this one."
    return [messages.step_failure(step, index, "ClosingCancelled", message) for index, step in left]


def may_be_held(plan: StepPlan, outcome: ConductOutcome) -> bool:
    """Return whether a hold that was asked for still counts when the main list has ended: not once a loop has its result."""
    looped = outcome.finish is Finish.COMPLETED and plan.loops
    return outcome.finish is not Finish.DENIED and not plan.closing_only and not looped


def completes(plan: StepPlan, outcome: ConductOutcome) -> bool:
    """Return whether the conduct is about to complete its procedure, which needs a submitter who may act."""
    return outcome.finish is Finish.COMPLETED and not plan.closing_only
