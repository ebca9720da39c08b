"""What a conduct does between its steps: begin, wait for its run, begin closing, and end, each time on the record.
Everything here may be repeated: the stream says whether it was done already."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from baton.application.conduct.conduct_record import ConductRecord, RecordWatch, StepPlan, StepPlans, reject
from baton.application.conduct.end_recording import Seen, put_on_record
from baton.application.conduct.heartbeat import Attempt
from baton.application.conduct.ledger import Ledger, Tally
from baton.application.conduct.step_execution import StepRunner
from baton.application.long_work import Pace, carries_out
from baton.application.ports import Clock, Store
from baton.application.unit_of_work import load_events, load_row, require_state
from baton.domain.conduct import endings, iterations, messages
from baton.domain.conduct.end_decision import EndCommand, EndRecord, Requested, may_be_held, verify_outcome
from baton.domain.conduct.ends import ENDS, EndEffect
from baton.domain.conduct.messages import ConductEnd, ConductOutcome, ConductRequest, ConductVerdict, Finish
from baton.domain.conduct.progress import ConductPhase, ConductProgress, WaitingFor
from baton.domain.conduct.steered_conduct import best_point, spent_budget
from baton.domain.kernel import Command
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import PendingRequest, Procedure, ProcedureAbortRequested, ProcedureHoldRequested
from baton.domain.run.run import Run, RunResumed
from baton.domain.steering.steering import CallerDecide
from baton.domain.step import results
from baton.domain.step.results import Artifact, CapturedValue, ConductResult, Failure

POLL_SECONDS = 1.0  # the pause between two reads of the record while a conduct waits


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

    @carries_out("brief_conduct")
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

    @carries_out("await_run", Pace.WAITING)
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

    @carries_out("begin_closing")
    async def begin_closing(self, request: ConductEnd) -> ConductVerdict:
        """End the open pass and mark that closing begins, unless a person asked for something before."""
        if (plan := await self.plans.load(request)) is None:
            return ConductVerdict.GONE
        record, _ = await self._read_end(plan, request, request.outcome)
        outcome = verify_outcome(record, request.outcome)
        if outcome is None or not ENDS[outcome.finish].closes:
            return reject("conduct_end_rejected", request, finish=request.outcome.finish.value)
        completed, may_hold = outcome.finish is Finish.COMPLETED, may_be_held(record, outcome)
        if record.objection is not None and completed and not plan.closing_only:
            return ConductVerdict.STOOD_DOWN
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

    @carries_out("end_conduct")
    async def end(self, request: ConductEnd) -> Failure | None:
        """Put the end of a conduct on the record. Where its submitter may not end it and closing steps are due, they come
        first: then the failure is returned and nothing is written."""
        if (plan := await self.plans.load(request)) is None:
            return None
        read, target = partial(self._read_end, plan, request), plan.procedure_id
        verdict, outcome = await put_on_record(self.record.commands, plan.caller, target, request.outcome, read)
        if verdict is ConductVerdict.DENIED:
            return outcome.failure
        if verdict is None:
            reject("conduct_end_rejected", request, finish=outcome.finish.value)
        self.plans.forget(request.conduct_id)
        return None

    async def _read_end(self, plan: StepPlan, request: ConductEnd, outcome: ConductOutcome) -> Seen:
        """Return what the record says to an end, as far as its finish asks, and what makes the commands for it."""
        procedure, finish, run = await self.record.procedure(plan), outcome.finish, None
        tally = await self.ledger.tally(plan.conduct_id, procedure.iteration_count if plan.loops else 0)
        standing = await self.watch.commands.authorizer.read_principal_status(plan.caller)
        asked, passes, completed = procedure.pending_request, plan.passes(procedure), finish is Finish.COMPLETED
        wanted: type[Requested] = ProcedureHoldRequested if asked is PendingRequest.HOLD else ProcedureAbortRequested
        requests = await self.record.events(plan, wanted) if asked is not None or plan.closing_only else ()
        looped = completed and plan.loops and passes > 0
        ends = await self.record.events(plan, procedures.ProcedureIterationEnded) if looped else ()
        last, last_closing = plan.last(ends[-1].iteration_index if ends else 0), plan.last(closing=True)
        if finish in (Finish.ABORTED, Finish.STOPPED) and plan.run_id is not None:
            run = await require_state(self.store, Run, plan.run_id)
        if in_time := plan.ends_directly and asked is PendingRequest.HOLD:
            progress = await load_row(self.store, ConductProgress, procedure_id=plan.procedure_id)
            in_time = progress is None or progress.phase != ConductPhase.CLOSING
        index = None if outcome.failure is None else outcome.failure.step_index
        record = EndRecord(
            principal_id=plan.caller.principal_id,
            objection=standing.objection,
            steers=plan.steering is not None and standing.is_agent,
            live=procedure.live_conduct_id == plan.conduct_id,
            command_name=plan.command_name,
            mode=plan.mode,
            takes_up=plan.stated_boundary is not None,
            watches=bool(plan.options.watch),
            holds_unknown=plan.holds_unknown,
            asked=asked,
            request=requests[-1] if requests else None,
            run=None if run is None else run.status,
            run_reason=None if run is None else run.end_reason,
            walked=completed and (last is None or await self.ledger.has_passed(last)),
            step=plan.steps[index] if index is not None and index < len(plan.steps) else None,
            failed=tally.failure,
            closed_gate=(await self.watch.read(plan)).signals.closed_gate if finish is Finish.GATE_CLOSED else None,
            pass_open=procedure.current_iteration_index is not None,
            last_pass=ends[-1] if ends else None,
            spent=None if plan.steering is None else spent_budget(plan.steering, passes, plan.started_at, self.clock()),
            closed=last_closing is None or await self.ledger.has_passed(last_closing),
            closing_due=not (request.closed or plan.ends_directly),
            in_time=in_time,
        )
        return record, partial(self._end_command, plan, procedure, tally)

    async def _end_command(self, plan: StepPlan, procedure: Procedure, tally: Tally, end: EndCommand) -> Command:
        """Return the command that ends a conduct, once no pass is open any more."""
        await self._end_open_pass(plan, procedure, end.ending.outcome)
        result = await self._result(plan, procedure, end, tally)
        match end.leads_to:
            case EndEffect.COMPLETE:
                return endings.CompleteProcedure(conducted=result)
            case EndEffect.HOLD:
                id = end.decided_by
                return endings.HoldProcedure(reason=end.reason, cause=end.cause, decided_by_decision_id=id, conducted=result)
            case EndEffect.ABORT if end.ending.denial is None:
                return endings.AbortProcedure(reason=end.reason, conducted=result)
            case _:
                return endings.RecordConductEnd(result=result, abort_reason=end.reason or None)

    async def _result(self, plan: StepPlan, procedure: Procedure, end: EndCommand, tally: Tally) -> ConductResult:
        """Return the result of a conduct from its end and the ledger."""
        passes, outcome = procedure.iteration_count if plan.loops else None, end.ending.outcome
        captures, outputs = await self._kept_slots(plan) if plan.is_resumed else ({}, {})
        unwalked = unwalked_closing(plan, tally) if outcome.closing_cut_at is not None else ()
        closing = {failed.step_index: failed for failed in (*unwalked, *tally.closing_failures)}
        passed = await self.record.events(plan, *iterations.MEASURED) if plan.loops else ()
        outcomes = [one for one in passed if isinstance(one, procedures.ProcedureOutcomeRecorded)]
        return ConductResult(
            procedure_id=plan.procedure_id,
            conduct_id=plan.conduct_id,
            command_name=plan.command_name,
            succeeded=end.failure is None,
            completed_count=tally.completed_count,
            skipped_count=plan.skipped_count,
            failure=end.failure,
            held=end.leads_to is EndEffect.HOLD,
            acquisition_halt=end.leads_to is EndEffect.STAY and outcome.finish is Finish.HALTED,
            re_establishment_boundary=plan.stated_boundary,
            termination_reason=outcome.termination_reason or await self._stop_rationale(plan, outcome),
            iteration_count=passes,
            actuation_kind=results.merged_kind((procedure.actuation_kind, tally.actuation_kind)),
            captures={**captures, **tally.captures},
            passes=iterations.measured_passes(passed),
            objective=await self._last_objective(plan, procedure),
            best=None if plan.steering is None else best_point(plan.steering, outcomes),
            measurements=tally.measurements,
            artifacts=tally.artifacts,
            outputs={**outputs, **tally.outputs},
            substrate_writes=dict(tally.substrate_writes),
            deviations=tally.deviations,
            closing_failures=tuple(closing[index] for index in sorted(closing, key=lambda index: index or 0)),
        )

    async def _stop_rationale(self, plan: StepPlan, outcome: ConductOutcome) -> str | None:
        """Return why the decider of a search said stop, where that completed it."""
        if plan.steering is None or outcome.finish is not Finish.COMPLETED:
            return None
        ended = await self.record.events(plan, procedures.ProcedureIterationEnded)
        return ended[-1].reasoning if ended and ended[-1].advised_stop else None

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


def unwalked_closing(plan: StepPlan, tally: Tally) -> Sequence[Failure]:
    """Return the failures of the closing steps that an abort kept from running."""
    left = list(enumerate(plan.closing_steps))[tally.closed_count :]
    message = "An abort stopped the closing steps before this one."
    return [messages.step_failure(step, index, "ClosingCancelled", message) for index, step in left]
