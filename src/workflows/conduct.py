"""The workflow of a procedure's conduct: the steps one after the other, pass after pass, then the closing steps and the end.
It only decides what comes next. The truth is on the record, and every effect is an activity that may be repeated."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from baton.domain.operation.conduct import messages
    from baton.domain.operation.conduct.messages import ConductOutcome, ConductVerdict, Finish, PassDecision, StepReport
    from baton.domain.operation.conduct.progress import ConductPhase
    from baton.domain.operation.conduct.results import TerminationReason
    from baton.domain.operation.procedure.procedure import ConductMode
    from baton.workflows.activity_calls import StatusDisplay, call_short_activity, call_waiting_activity, run_to_completion
    from baton.workflows.activity_stubs import ConductActivityStubs as Stubs

STEPS_PER_EXECUTION = 500  # steps after which a conduct continues in a fresh history
NOT_STARTED = messages.ConductStart(command_name="", mode=None, step_count=0, closing_count=0)

A = TypeVar("A")


@workflow.defn(name="conduct")
class ConductWorkflow:
    """One conduct of one procedure."""

    @workflow.init
    def __init__(self, order: messages.ConductOrder) -> None:
        self._order = order
        self._ids = {"procedure_id": order.procedure_id, "conduct_id": order.conduct_id}
        self._request = messages.ConductRequest(**self._ids)
        self._start = order.start or NOT_STARTED
        self._at = order.cursor
        self._step_count = 0
        self._status = StatusDisplay()

    @workflow.run
    async def run(self, order: messages.ConductOrder) -> None:
        try:
            if order.start is None and not await self._begin():
                return
            outcome = self._at.outcome or await self._conduct()
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            outcome = ConductOutcome(finish=Finish.CANCELLED, completed_count=self._completed_count)
        await run_to_completion(self._finish(outcome))

    async def _begin(self) -> bool:
        """Load what there is to conduct and move to the first step; return whether the conduct is still the live one."""
        start = await call_short_activity(Stubs.brief_conduct, self._request)
        if start is None:
            return False
        self._start = start
        self._at = messages.ConductCursor(step_index=start.boundary, next_step=start.next_step, point=start.first_point)
        return True

    async def _conduct(self) -> ConductOutcome:
        """Walk the main list as often as the mode asks for it."""
        match self._start.mode:
            case None:
                return ConductOutcome(finish=Finish.COMPLETED)
            case ConductMode.FLAT:
                return await self._walk() or self._completed_outcome()
            case ConductMode.CONVERGED | ConductMode.ADVISED:
                return await self._loop()

    async def _loop(self) -> ConductOutcome:
        """Walk the main list pass after pass, until it has converged or the decider stops it."""
        if self._start.asks_first and not self._at.passes:
            decision = await self._take_up_search()
            if (outcome := self._outcome_after(decision)) is not None:
                return outcome
            self._enter_pass(decision)
        while True:
            if not self._at.iteration_index:
                decision = await self._start_pass()
                if (outcome := self._outcome_after(decision)) is not None:
                    return outcome
            if (outcome := await self._walk()) is not None:
                return outcome
            decision = await self._end_pass(messages.PassRequest(**self._ids, iteration_index=self._at.iteration_index))
            if (outcome := self._outcome_after(decision)) is not None:
                return outcome
            self._move(iteration_index=0, point=decision.point)

    async def _end_pass(self, request: messages.PassRequest) -> PassDecision:
        """Judge a pass or, in a search, record what it measured and ask where to measure next."""
        if self._start.mode is ConductMode.CONVERGED:
            return await call_short_activity(Stubs.judge_pass, request)
        decision = await call_short_activity(Stubs.record_outcome, request)
        if decision.verdict is not ConductVerdict.DONE:
            return decision
        self._show_waiting_for_advice()
        summary = f"ask where to measure after iteration {request.iteration_index}"
        return await call_waiting_activity(Stubs.advise_pass, request, summary)

    async def _take_up_search(self) -> PassDecision:
        """Ask where a search continues, once the parent run is not held."""
        while True:
            self._show_waiting_for_advice()
            decision = await call_waiting_activity(Stubs.take_up_search, self._request, "ask where to go on")
            if decision.verdict is not ConductVerdict.RUN_HELD:
                return decision
            if (verdict := await self._await_run_resumed()) is not ConductVerdict.DONE:
                return PassDecision(verdict=verdict)

    async def _start_pass(self) -> PassDecision:
        """Begin a pass, once the parent run is not held."""
        while True:
            self._raise_if_cancelled()
            self._roll_over()
            request = messages.StartPassRequest(**self._ids, passes=self._at.passes)
            decision = await call_short_activity(Stubs.start_pass, request)
            if decision.verdict is ConductVerdict.RUN_HELD:
                verdict = await self._await_run_resumed()
                if verdict is ConductVerdict.DONE:
                    continue
                decision = PassDecision(verdict=verdict)
            if decision.verdict is ConductVerdict.DONE and not decision.stop:
                self._enter_pass(decision)
            return decision

    def _enter_pass(self, decision: PassDecision) -> None:
        """Move to the first step of a pass that has begun."""
        self._at = messages.ConductCursor(
            iteration_index=decision.iteration_index,
            next_step=self._start.loop_step,
            passes=self._at.passes + 1,
            point=decision.point,
        )

    async def _walk(self) -> ConductOutcome | None:
        """Walk the main list from the cursor on; return None once every step is done."""
        while self._at.step_index < self._start.step_count:
            self._raise_if_cancelled()
            self._roll_over()
            self._show(ConductPhase.WALKING, f"step {self._at.step_index + 1}/{self._start.step_count}")
            report = await self._do_step()
            if report.verdict is ConductVerdict.RUN_HELD:
                report = StepReport(verdict=await self._await_run_resumed())
                if report.verdict is ConductVerdict.DONE:
                    continue
            if report.verdict is not ConductVerdict.DONE:
                finish = messages.FINISH_BY_VERDICT[report.verdict]
                return ConductOutcome(finish=finish, failure=report.failure, completed_count=self._completed_count)
            self._move(step_index=self._at.step_index + 1, next_step=report.next_step)
        return None

    async def _do_step(self) -> StepReport:
        """Do the step at the cursor; a program is submitted first and collected after that."""
        at, step = self._at, self._at.next_step
        assert step is not None, "there is a step at the cursor"
        place = messages.StepPlace(
            **self._ids, iteration_index=at.iteration_index, closing=at.closing, step_index=at.step_index
        )
        self._step_count += 1
        deadline = None if step.wait_seconds is None else workflow.now() + timedelta(seconds=step.wait_seconds)
        report = await self._call_step(Stubs.do_step, messages.StepRequest(place=place, point=at.point, deadline=deadline))
        if report.job_id is None:
            return report
        request = messages.JobRequest(place=place, point=at.point, job_id=report.job_id)
        return await self._call_step(Stubs.collect_job, request)

    async def _call_step(self, method: Callable[[Any, A], Awaitable[StepReport]], request: A) -> StepReport:
        """Call an activity for the step at the cursor; it is retried while workers are lost, and repeats no effect."""
        assert self._at.next_step is not None, "there is a step at the cursor"
        count = self._start.closing_count if self._at.closing else self._start.step_count
        part = "closing step" if self._at.closing else "step"
        summary = f"{part} {self._at.step_index + 1}/{count} · {self._at.next_step.label}"
        return await call_waiting_activity(method, request, summary, self._at.next_step.timeout_seconds)

    async def _finish(self, outcome: ConductOutcome) -> None:
        """Walk the closing steps where the outcome needs them, and put the end on the record."""
        closed = False
        while outcome.finish is not Finish.GONE:
            if messages.needs_closing(self._start.command_name, outcome) and not closed:
                if not self._at.closing:
                    request = messages.ConductEnd(**self._ids, outcome=outcome, closed=False)
                    verdict = await call_short_activity(Stubs.begin_closing, request)
                    if verdict is ConductVerdict.RUN_HELD:
                        verdict = await self._await_run_resumed()
                        if verdict is ConductVerdict.DONE:
                            continue
                    if verdict is not ConductVerdict.DONE:
                        outcome = outcome.model_copy(update={"finish": messages.FINISH_BY_VERDICT[verdict]})
                        continue
                    self._at = messages.ConductCursor(
                        closing=True, next_step=self._start.closing_step, outcome=outcome, point=self._at.point
                    )
                outcome, closed = await self._close(outcome), True
            end = messages.ConductEnd(**self._ids, outcome=outcome, closed=closed)
            failure = await call_short_activity(Stubs.end_conduct, end)
            if failure is None:
                break
            outcome = outcome.model_copy(update={"denied": True, "failure": failure})
        self._show(ConductPhase.ENDED, outcome.finish.value)

    async def _close(self, outcome: ConductOutcome) -> ConductOutcome:
        """Walk every closing step, also after one that failed."""
        while self._at.step_index < self._start.closing_count:
            self._roll_over()
            self._show(ConductPhase.CLOSING, f"closing step {self._at.step_index + 1}/{self._start.closing_count}")
            report = await self._do_step()
            if report.verdict is ConductVerdict.GONE:
                return outcome.model_copy(update={"finish": Finish.GONE})
            if report.verdict not in (ConductVerdict.DONE, ConductVerdict.FAILED):
                return outcome.model_copy(update={"finish": Finish.ABORTED, "closing_cut_at": self._at.step_index})
            self._move(step_index=self._at.step_index + 1, next_step=report.next_step)
        return outcome

    def _move(self, **changes: Any) -> None:
        self._at = self._at.model_copy(update=changes)

    @property
    def _completed_count(self) -> int:
        """Return how many steps of the main list are done, in the last pass where there are passes."""
        first = self._start.boundary if self._start.mode is ConductMode.FLAT else 0
        return max(0, self._at.step_index - first)

    def _completed_outcome(self, reason: TerminationReason | None = None) -> ConductOutcome:
        return ConductOutcome(finish=Finish.COMPLETED, completed_count=self._completed_count, termination_reason=reason)

    def _outcome_after(self, decision: PassDecision) -> ConductOutcome | None:
        """Return the outcome where a decision about a pass ends the main list; None where it continues."""
        if decision.verdict is ConductVerdict.DONE:
            return self._completed_outcome(decision.termination_reason) if decision.stop or decision.converged else None
        finish, count = messages.FINISH_BY_VERDICT[decision.verdict], self._completed_count
        finish = Finish.STOOD_DOWN if decision.stood_down else finish
        return ConductOutcome(finish=finish, failure=decision.failure, completed_count=count, denied=decision.denied)

    async def _await_run_resumed(self) -> ConductVerdict:
        """Wait until the parent run is resumed or ended."""
        self._show(ConductPhase.WAITING, "waiting for the run to be resumed")
        return await call_waiting_activity(Stubs.await_run, self._request, "wait for the run to be resumed")

    def _raise_if_cancelled(self) -> None:
        """Stop once the engine has cancelled the workflow: a step that ended nevertheless has used up the exception."""
        if workflow.cancellation_reason() is not None:
            raise asyncio.CancelledError

    def _roll_over(self) -> None:
        """Continue in a fresh history when this one has become long; only between two steps."""
        if self._step_count >= STEPS_PER_EXECUTION or workflow.info().is_continue_as_new_suggested():
            workflow.continue_as_new(self._order.model_copy(update={"start": self._start, "cursor": self._at}))

    def _show_waiting_for_advice(self) -> None:
        if self._start.advised_from_outside:
            self._show(ConductPhase.WAITING, "waiting for advice")

    def _show(self, phase: ConductPhase, activity: str) -> None:
        loop = f"iteration {self._at.iteration_index}, " if self._at.iteration_index else ""
        at_a_step = phase in (ConductPhase.WALKING, ConductPhase.CLOSING)
        label = f" · {self._at.next_step.label}" if self._at.next_step is not None and at_a_step else ""
        self._status.show(phase, f"{loop}{activity}{label}")
