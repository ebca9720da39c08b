"""What a conduct does about its passes: begin each, judge or measure it, ask for advice and end it, each time on the record.
Everything here may be repeated: the stream says whether it was done already."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from baton.application.conduct import conduct_record
from baton.application.conduct.conduct_record import ConductRecord, RecordWatch, StepPlan, StepPlans
from baton.application.conduct.deciders import FAULTS, Deciders, advice_from
from baton.application.conduct.heartbeat import STOPPING, Attempt
from baton.application.conduct.ledger import Ledger, Tally
from baton.application.long_work import Pace, carries_out
from baton.application.ports import Clock, Store
from baton.application.unit_of_work import load_row
from baton.domain.conduct import iterations, messages, steered_conduct
from baton.domain.conduct.iterations import EndProcedureIteration, StartProcedureIteration
from baton.domain.conduct.messages import ConductRequest, ConductVerdict, PassDecision, PassRequest
from baton.domain.conduct.progress import ConductPhase, ConductProgress, WaitingFor
from baton.domain.kernel import Event
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import Procedure, ProcedureAdvised, ProcedureIterationStarted
from baton.domain.shared.refusals import ConcurrencyError, UnauthorizedError
from baton.domain.steering import steering
from baton.domain.steering.steering import AskedDecide, CallerDecide, Point, SteeringAdvice, SteeringEvidence
from baton.domain.step.results import Failure, Measured
from baton.domain.step.step_values import meets

GONE = PassDecision(verdict=ConductVerdict.GONE)
STOOD_DOWN = PassDecision(verdict=ConductVerdict.STOOD_DOWN)
REQUESTED = {asked: PassDecision(verdict=ConductVerdict[asked.name]) for asked in procedures.PendingRequest}
POLL_SECONDS = 1.0  # the pause between two reads of the record while a decider thinks
FIRST_POLL_SECONDS = 0.05  # before the second look for outside advice, which a program may give at once; it grows from there
Answer = tuple[SteeringAdvice, UUID | None] | PassDecision  # advice and its outside adviser, if any; or what came instead


@dataclass(frozen=True)
class Passes:
    """Runs the loops of conducts through the command path, as their submitters, and asks their deciders."""

    store: Store
    record: ConductRecord
    watch: RecordWatch
    clock: Clock
    ledger: Ledger
    plans: StepPlans
    deciders: Deciders

    @carries_out("start_pass")
    async def start(self, request: ConductRequest) -> PassDecision:
        """Begin the next pass, unless the loop has ended or something blocks it."""
        # it measures where the decider advised last or, before the first measurement, where the search begins
        plan, procedure = await self._load_live(request)
        if plan is None or procedure is None or not plan.loops:
            return GONE
        point: Point | None = None
        if plan.steering is not None and procedure.current_iteration_index is None:
            if plan.passes(procedure):
                point = (await self.record.events(plan, procedures.ProcedureIterationEnded))[-1].advised_next_point
            elif not plan.stated_boundary:
                point = plan.steering.start_point
            if point is None:
                return reject(plan, "start_pass")
        return await self._start(plan, point, None)

    @carries_out("take_up_search", Pace.WAITING)
    async def take_up(self, request: ConductRequest, attempt: Attempt) -> PassDecision:
        """Ask where a search that has measured before continues, and begin the pass that measures there."""
        # the advice is recorded with that pass, and nowhere else
        plan, procedure = await self._load_live(request)
        if plan is None or procedure is None or plan.steering is None:
            return GONE
        if procedure.current_iteration_index is not None:
            return await self._open_pass(plan)
        answer = await self._advice(plan, procedure, procedure.iteration_count + 1, attempt)
        if isinstance(answer, PassDecision):
            return answer
        advice, _ = answer
        if advice.verdict is steering.SteeringVerdict.STOP:
            return PassDecision(verdict=ConductVerdict.DONE, stop=True)
        return await self._start(plan, advice.next_point, advice)

    async def _start(self, plan: StepPlan, point: Point | None, advice: SteeringAdvice | None) -> PassDecision:
        conduct_id = plan.conduct_id
        while True:
            procedure = await self.record.procedure(plan)
            if procedure.live_conduct_id != conduct_id:
                return GONE
            if procedure.current_iteration_index is not None:
                return await self._open_pass(plan)
            if (decision := await self._before_pass(plan, procedure)) is not None:
                return decision
            index = procedure.iteration_count + 1
            command = StartProcedureIteration(iteration_index=index, conduct_id=conduct_id, point=point, advice=advice)
            try:
                await self.record.execute(plan, command)
            except UnauthorizedError as denied:
                verdict, failure = await self.watch.read_denial(plan.caller, "start", denied)
                return PassDecision(verdict=verdict, failure=failure)
            except iterations.ProcedureIterationLimitReachedError:
                return PassDecision(verdict=ConductVerdict.FAILED, failure=cap_failure(procedure))
            except (ConcurrencyError, StartProcedureIteration.Cannot):
                continue
            return PassDecision(verdict=ConductVerdict.DONE, iteration_index=index, point=point)

    async def _open_pass(self, plan: StepPlan) -> PassDecision:
        """Return the pass that was begun already."""
        begun = (await self.record.events(plan, ProcedureIterationStarted))[-1]
        return PassDecision(verdict=ConductVerdict.DONE, iteration_index=begun.iteration_index, point=begun.point)

    async def _before_pass(self, plan: StepPlan, procedure: Procedure) -> PassDecision | None:
        """Return what keeps a pass from beginning, the gravest first."""
        progress = await load_row(self.store, ConductProgress, procedure_id=plan.procedure_id)
        if progress is not None and progress.phase == ConductPhase.CLOSING:
            return reject(plan, "start_pass")
        if (verdict := (await self.watch.signals(self.ledger, plan)).verdict) is not None:
            return PassDecision(verdict=verdict)
        if procedure.iteration_count >= messages.MAX_PASSES:
            message = f"The loop has come to {messages.MAX_PASSES} passes, which none goes beyond."
            failure = messages.lifecycle_failure("abort", "AbsoluteIterationCeilingReached", message)
            return PassDecision(verdict=ConductVerdict.FAILED, failure=failure)
        if plan.convergence is not None:
            cap = plan.convergence.max_consecutive_unconverged_iterations
            if cap is not None and procedure.consecutive_unconverged_iterations >= cap:
                return PassDecision(verdict=ConductVerdict.FAILED, failure=cap_failure(procedure))
        if plan.steering is None:
            return None
        spent = steered_conduct.spent_budget(plan.steering, plan.passes(procedure), plan.started_at, self.clock())
        return None if spent is None else PassDecision(verdict=ConductVerdict.DONE, stop=True, termination_reason=spent)

    @carries_out("judge_pass")
    async def judge(self, request: PassRequest) -> PassDecision:
        """Judge whether a pass that was walked to its end has converged, and record it; a hold is served behind that."""
        plan, iteration_index = await self.plans.load(request), request.iteration_index
        while plan is not None and plan.convergence is not None:
            procedure = await self.record.procedure(plan)
            if procedure.live_conduct_id != plan.conduct_id:
                break
            if procedure.current_iteration_index != iteration_index:
                return await self._ended_pass(plan, iteration_index, "judge_pass")
            if procedure.pending_request is procedures.PendingRequest.ABORT:
                return REQUESTED[procedure.pending_request]
            if not await self._is_walked(plan, iteration_index):
                return reject(plan, "judge_pass")
            name, criterion = plan.convergence.capture_name, plan.convergence.criterion
            measured = await self._captured_value(plan, iteration_index, name)
            if measured is None:
                return fail_unmeasured(procedure, name)
            converged = meets(criterion, criterion.expected, measured)
            tally = await self.ledger.tally(plan.conduct_id, iteration_index, of_pass=True)
            decision = await self._try_end(plan, iteration_index, converged=converged, measurements=with_captures(tally))
            if decision is not None:
                return decision
        return GONE

    @carries_out("record_outcome")
    async def record_outcome(self, request: PassRequest) -> PassDecision:
        """Record what a steered pass measured, once; what was asked for meanwhile is served behind that."""
        plan, procedure = await self._load_live(request)
        if plan is None or procedure is None or plan.steering is None:
            return GONE
        iteration_index = request.iteration_index
        begun = (await self.record.events(plan, ProcedureIterationStarted))[-1:]
        if not begun or begun[0].iteration_index != iteration_index or not await self._is_walked(plan, iteration_index):
            return reject(plan, "record_outcome")
        tally = await self.ledger.tally(plan.conduct_id, iteration_index, of_pass=True)
        name, measurements = plan.steering.objective_capture_name, tally.measurements
        measured = await self._captured_value(plan, iteration_index, name)
        if measured is None:
            return fail_unmeasured(procedure, name)
        if not any(item.name == name for item in measurements):
            unit = tally.captures[name].unit if name in tally.captures else None
            measurements = (*measurements, Measured(name=name, value=measured, kind="Scalar", units=unit, quality="Good"))
        outcome = procedures.ProcedureOutcomeRecorded(
            iteration_index=iteration_index,
            point=begun[0].point or {},
            measurements=measurements,
            succeeded=True,
            actuation_kind=tally.actuation_kind,
        )
        await self.record.execute_as_service(plan, steered_conduct.RecordProcedureOutcome(outcome=outcome))
        asked = procedure.pending_request
        return PassDecision(verdict=ConductVerdict.DONE) if asked is None else REQUESTED[asked]

    @carries_out("advise_pass", Pace.WAITING)
    async def advise(self, request: PassRequest, attempt: Attempt) -> PassDecision:
        """Ask the decider where to measure next, and end the open pass with its advice."""
        plan, iteration_index = await self.plans.load(request), request.iteration_index
        while plan is not None and plan.steering is not None:
            procedure = await self.record.procedure(plan)
            if procedure.live_conduct_id != plan.conduct_id:
                break
            if procedure.current_iteration_index != iteration_index:
                return await self._ended_pass(plan, iteration_index, "advise_pass")
            if not await self._is_walked(plan, iteration_index):
                return reject(plan, "advise_pass")
            asked_at = self.clock()
            answer = await self._advice(plan, procedure, iteration_index, attempt)
            if isinstance(answer, PassDecision):
                return answer
            latency = (self.clock() - asked_at).total_seconds()
            decision = await self._try_end(plan, iteration_index, **provenance(*answer, latency))
            if decision is not None and decision.verdict is not ConductVerdict.DONE:
                return decision
        return GONE

    async def _is_walked(self, plan: StepPlan, iteration_index: int) -> bool:
        """Return whether the ledger shows a pass walked to its last step."""
        last = plan.last(iteration_index)
        return last is None or await self.ledger.has_passed(last)

    async def _captured_value(self, plan: StepPlan, iteration_index: int, name: str) -> object:
        """Return what a pass has left in a slot; None where it has left nothing."""
        slots = await self.ledger.slots(plan.procedure_id, plan.conduct_id, iteration_index, 0)
        return next((row.content["value"] for row in slots if row.slot == name and "value" in row.content), None)

    async def _load_live(self, request: ConductRequest) -> tuple[StepPlan | None, Procedure | None]:
        """Return the plan of a conduct and its procedure; None each where it is not the live one."""
        plan = await self.plans.load(request)
        procedure = None if plan is None else await self.record.procedure(plan)
        live = procedure is not None and procedure.live_conduct_id == request.conduct_id
        return (plan, procedure) if live else (None, None)

    async def _try_end(self, plan: StepPlan, iteration_index: int, **fields: Any) -> PassDecision | None:
        """End a pass as the submitter, who must still be able to act; return None where the record must be read again."""
        if await self.watch.is_inactive(plan.caller):
            return STOOD_DOWN
        ids = {"iteration_index": iteration_index, "conduct_id": plan.conduct_id}
        command = EndProcedureIteration(**{**ids, "converged": None, **fields})
        try:
            await self.record.execute(plan, command)
        except UnauthorizedError as denied:
            verdict, failure = await self.watch.read_denial(plan.caller, "abort", denied)
            return PassDecision(verdict=verdict, failure=failure)
        except (ConcurrencyError, EndProcedureIteration.Cannot):
            return None
        return PassDecision(verdict=ConductVerdict.DONE, converged=fields.get("converged"))

    async def _ended_pass(self, plan: StepPlan, iteration_index: int, activity: str) -> PassDecision:
        """Return how a pass of this conduct has ended."""
        events = await self.record.events(plan, procedures.ProcedureIterationEnded)
        ended = next((event for event in reversed(events) if event.iteration_index == iteration_index), None)
        if ended is None or iteration_index <= plan.iterations_before:
            return reject(plan, activity)
        stop, point = bool(ended.advised_stop), ended.advised_next_point
        return PassDecision(verdict=ConductVerdict.DONE, converged=ended.converged, stop=stop, point=point)

    async def _advice(self, plan: StepPlan, procedure: Procedure, iteration_index: int, attempt: Attempt) -> Answer:
        """Return the decider's advice; a decider that fails fails the conduct."""
        design = plan.steering
        assert design is not None, "only a steered conduct is advised"
        if await self.watch.is_inactive(plan.caller):
            return STOOD_DOWN
        try:
            if isinstance(design.decide, CallerDecide):
                within = procedure.current_iteration_index is not None
                return await self._await_caller(plan, iteration_index, within, design.decide, attempt)
            outcomes = await self.record.events(plan, procedures.ProcedureOutcomeRecorded)
            left = steered_conduct.remaining_budget(design, plan.passes(procedure), plan.started_at, self.clock())
            evidence = steered_conduct.evidence_of(procedure, design, outcomes, left)
            return await self._ask(plan, design.decide, evidence, attempt)
        except FAULTS as fault:
            target, message = design.objective_capture_name, str(fault)[: messages.MAX_REASON_LENGTH]
            failure = Failure(source_kind="decide", target=target, error_class=type(fault).__name__, message=message)
            return PassDecision(verdict=ConductVerdict.FAILED, failure=failure)

    async def _ask(self, plan: StepPlan, decide: AskedDecide, evidence: SteeringEvidence, attempt: Attempt) -> Answer:
        """Ask a decider of this deployment; an abort is served while it thinks."""
        decider = await self.deciders.decider(decide)
        asking = asyncio.ensure_future(advice_from(decider, evidence))
        try:
            while not (await asyncio.wait({asking}, timeout=POLL_SECONDS))[0]:
                attempt.heartbeat()
                verdict = (await self.watch.signals(self.ledger, plan)).verdict
                if verdict is not None and verdict in (*STOPPING, ConductVerdict.STOOD_DOWN):
                    return PassDecision(verdict=verdict)
            return await asking, None
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await decider.close()

    async def _await_caller(
        self, plan: StepPlan, iteration_index: int, within: bool, decide: CallerDecide, attempt: Attempt
    ) -> Answer:
        """Wait for the advice of an outside decider; a hold or an abort is served meanwhile."""
        deadline = await self._deadline(plan, iteration_index, decide)
        await self.ledger.mark_waiting(plan.procedure_id, plan.conduct_id, WaitingFor.ADVICE, deadline)
        answer = await self._poll(plan, iteration_index, within, deadline, attempt)
        since = answer.occurred_at if isinstance(answer, ProcedureAdvised) else None
        await self.ledger.mark_walking(plan.procedure_id, plan.conduct_id, since)
        return (answer.advice, answer.advised_by) if isinstance(answer, ProcedureAdvised) else answer

    async def _poll(
        self, plan: StepPlan, iteration_index: int, within: bool, deadline: datetime, attempt: Attempt
    ) -> ProcedureAdvised | PassDecision:
        """Read the record until it has advice, a signal ends the wait, or the deadline comes."""
        pause, version = FIRST_POLL_SECONDS, 0
        events: list[Event] = []
        while True:
            attempt.heartbeat()
            newer, version = await self.record.events_after(plan, version, ProcedureIterationStarted, ProcedureAdvised)
            events += newer
            if advised := steered_conduct.advice_given(events, plan.conduct_id, iteration_index, within=within):
                return advised
            verdict = (await self.watch.signals(self.ledger, plan)).verdict
            if verdict is not None and verdict is not ConductVerdict.RUN_HELD:
                return PassDecision(verdict=verdict)
            if self.clock() >= deadline:
                failure = messages.lifecycle_failure("hold", messages.DRIVER_STOOD_DOWN, "Nobody advised in time.")
                return PassDecision(verdict=ConductVerdict.HOLD, stood_down=True, failure=failure)
            await asyncio.sleep(pause)
            pause = min(pause * 1.3, POLL_SECONDS)

    async def _deadline(self, plan: StepPlan, iteration_index: int, decide: CallerDecide) -> datetime:
        """Return until when advice is awaited, counted from the last recorded outcome, so that a restart grants no more."""
        outcomes = await self.record.events(plan, procedures.ProcedureOutcomeRecorded)
        own = [outcome.occurred_at for outcome in outcomes if outcome.iteration_index == iteration_index]
        return (own[-1] if own else plan.started_at) + timedelta(seconds=decide.advice_timeout)


def reject(plan: StepPlan, activity: str) -> PassDecision:
    """Log a request that the record does not agree with; nothing is written, and the workflow ends."""
    return PassDecision(verdict=conduct_record.reject("pass_out_of_turn", plan.between, activity=activity))


def with_captures(tally: Tally) -> tuple[Measured, ...]:
    """Return what a pass measured, and what it captured besides."""
    known = {item.name for item in tally.measurements}
    others = [(name, one) for name, one in tally.captures.items() if name not in known]
    captured = [Measured(name=name, value=one.value, kind="Scalar", units=one.unit, quality="Good") for name, one in others]
    return (*tally.measurements, *captured)


def fail_unmeasured(procedure: Procedure, name: str) -> PassDecision:
    """Return what becomes of a pass that did not measure what it is judged by: what was asked for, else it fails."""
    if procedure.pending_request is not None:
        return REQUESTED[procedure.pending_request]
    message = f"The pass captured no {name}, by which it is judged."
    failure = Failure(source_kind="capture", target=name, error_class="ComputeMeasurementNotFound", message=message)
    return PassDecision(verdict=ConductVerdict.FAILED, failure=failure)


def cap_failure(procedure: Procedure) -> Failure:
    """Return the failure of a loop with too many passes in a row that have not converged."""
    streak = procedure.consecutive_unconverged_iterations
    message = f"{streak} passes in a row have not converged, and patience lasts no longer."
    return messages.lifecycle_failure("abort", "ConvergenceIterationCapReached", message)


def provenance(advice: SteeringAdvice, adviser: UUID | None, latency: float) -> dict[str, Any]:
    """Return what the end of a pass records of the advice."""
    return {
        "advised_stop": advice.verdict is steering.SteeringVerdict.STOP,
        "reasoning": advice.rationale,
        "confidence": advice.confidence,
        "confidence_source": advice.confidence_source,
        "alternatives": advice.alternatives or None,
        "model_ref": advice.model_ref,
        "advised_next_point": advice.next_point,
        "advised_by": adviser,
        "advice_latency": latency,
    }
