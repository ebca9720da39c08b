"""A conduct: the steps one after the other, pass after pass, then the closing steps and the end.

It only decides what comes next. What is true is on the record, and every effect is an activity that may be repeated.
"""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception
from temporalio.workflow import ActivityCancellationType

with workflow.unsafe.imports_passed_through():
    from baton.domain.operation.conduct.messages import (
        FINISH_BY_VERDICT,
        NextStep,
        ConductStart,
        ConductOrder,
        ConductCursor,
        Finish,
        ConductOutcome,
        StepPlace,
        StepReport,
        PassDecision,
        ConductVerdict,
        needs_closing,
    )
    from baton.domain.operation.conduct.progress import ConductPhase
    from baton.domain.operation.conduct.results import Failure
    from baton.domain.operation.procedure.procedure import ConductMode
    from baton.workflows.activity_calls import HEARTBEAT, RETRY, SHORT, STATE, has_search_attributes, call_waiting_activity, call_short_activity, run_to_completion

STEPS_PER_EXECUTION = 500
"""Steps after which a conduct goes on in a fresh history."""
NOT_STARTED = ConductStart(command_name="", mode=None, step_count=0, closing_count=0)
"""What is known of a conduct before it has begun."""


@workflow.defn(name="conduct")
class ConductWorkflow:
    """One conduct of one procedure."""

    @workflow.init
    def __init__(self, order: ConductOrder) -> None:
        self._order = order
        self._briefing = order.start or NOT_STARTED
        self._at = order.cursor
        self._walked = 0
        self._state = ""

    @workflow.run
    async def run(self, order: ConductOrder) -> None:
        try:
            if order.start is None and not await self._briefed():
                return
            outcome = self._at.outcome or await self._main()
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            outcome = ConductOutcome(finish=Finish.CANCELLED, completed_count=self._completed)
        await run_to_completion(self._finish(outcome))

    async def _briefed(self) -> bool:
        """Hear what there is to conduct, and stand at the first step; there may be nothing any more."""
        briefing = await self._between("brief_conduct", result_type=ConductStart | None)
        if briefing is None:
            return False
        self._briefing = briefing
        self._at = ConductCursor(step_index=briefing.boundary, next_step=briefing.next_step, point=briefing.first_point)
        return True

    async def _main(self) -> ConductOutcome:
        """The main list, as often as the mode asks for it."""
        match self._briefing.mode:
            case None:
                return ConductOutcome(finish=Finish.COMPLETED)
            case ConductMode.FLAT:
                return await self._walk() or self._complete()
            case ConductMode.CONVERGED:
                return await self._until_converged()
            case ConductMode.ADVISED:
                return await self._until_advised()

    async def _until_converged(self) -> ConductOutcome:
        while True:
            if not self._at.iteration_index:
                turn = await self._start_pass()
                if turn.verdict is not ConductVerdict.DONE:
                    return self._ended(turn)
            if (outcome := await self._walk()) is not None:
                return outcome
            turn = await self._between("judge_pass", self._at.iteration_index, result_type=PassDecision)
            if turn.verdict is not ConductVerdict.DONE:
                return self._ended(turn)
            if turn.converged:
                return self._complete()
            self._at = self._at.model_copy(update={"iteration_index": 0})

    async def _until_advised(self) -> ConductOutcome:
        if self._briefing.asks_first and not self._at.passes:
            turn = await self._take_up()
            if turn.verdict is not ConductVerdict.DONE:
                return self._ended(turn)
            if turn.stop:
                return self._complete(turn)
            self._enter(turn)
        while True:
            if not self._at.iteration_index:
                turn = await self._start_pass()
                if turn.verdict is not ConductVerdict.DONE:
                    return self._ended(turn)
                if turn.stop:
                    return self._complete(turn)
            if (outcome := await self._walk()) is not None:
                return outcome
            index, point = self._at.iteration_index, self._at.point
            turn = await self._between("record_outcome", index, point, result_type=PassDecision)
            if turn.verdict is ConductVerdict.DONE:
                self._show_asking()
                asking = f"ask where to measure after iteration {index}"
                turn = await self._waiting("advise_pass", asking, index, self._at.passes, result_type=PassDecision)
            if turn.verdict is not ConductVerdict.DONE:
                return self._ended(turn)
            if turn.stop:
                return self._complete()
            self._at = self._at.model_copy(update={"iteration_index": 0, "point": turn.point})

    async def _take_up(self) -> PassDecision:
        """Ask where a search goes on; while the parent run is held, that waits."""
        while True:
            self._show_asking()
            turn = await self._waiting("take_up_search", "ask where to go on", result_type=PassDecision)
            if turn.verdict is not ConductVerdict.RUN_HELD:
                return turn
            if (verdict := await self._run_resumed()) is not ConductVerdict.DONE:
                return PassDecision(verdict=verdict)

    async def _start_pass(self) -> PassDecision:
        """Begin a pass; while the parent run is held, that waits."""
        while True:
            self._heed_cancellation()
            self._roll_over()
            turn = await self._between("start_pass", self._at.passes, self._at.point, result_type=PassDecision)
            if turn.verdict is ConductVerdict.RUN_HELD:
                verdict = await self._run_resumed()
                if verdict is ConductVerdict.DONE:
                    continue
                turn = PassDecision(verdict=verdict)
            if turn.verdict is ConductVerdict.DONE and not turn.stop:
                self._enter(turn)
            return turn

    def _enter(self, turn: PassDecision) -> None:
        """Stand at the first step of a pass that has begun."""
        self._at = ConductCursor(
            iteration_index=turn.iteration_index,
            next_step=self._briefing.loop_step,
            passes=self._at.passes + 1,
            point=turn.point,
        )

    async def _walk(self) -> ConductOutcome | None:
        """The main list from the cursor on; None once every step is done."""
        while self._at.step_index < self._briefing.step_count:
            self._heed_cancellation()
            self._roll_over()
            self._show(ConductPhase.WALKING, f"step {self._at.step_index + 1}/{self._briefing.step_count}")
            report = await self._step()
            if report.verdict is ConductVerdict.RUN_HELD:
                report = StepReport(verdict=await self._run_resumed())
                if report.verdict is ConductVerdict.DONE:
                    continue
            if report.verdict is not ConductVerdict.DONE:
                return ConductOutcome(finish=FINISH_BY_VERDICT[report.verdict], failure=report.failure, completed_count=self._completed)
            self._advance(report)
        return None

    async def _step(self) -> StepReport:
        """Do the step at the cursor; a program is submitted first and waited for after that."""
        at, ahead = self._at, self._at.next_step
        assert ahead is not None, "there is a step at the cursor"
        place = StepPlace(
            procedure_id=self._order.procedure_id,
            conduct_id=self._order.conduct_id,
            iteration_index=at.iteration_index,
            closing=at.closing,
            step_index=at.step_index,
        )
        self._walked += 1
        patience = timedelta(seconds=ahead.timeout_seconds)
        deadline = None if ahead.wait_seconds is None else workflow.now() + timedelta(seconds=ahead.wait_seconds)
        report = await self._effect("do_step", ahead, patience, place, at.point, deadline)
        if report.job_id is None:
            return report
        return await self._effect("collect_job", ahead, patience, place, at.point, report.job_id)

    async def _finish(self, outcome: ConductOutcome) -> None:
        """Close what is to be closed, and put the end on the record."""
        closed = False
        while outcome.finish is not Finish.GONE:
            if needs_closing(self._briefing.command_name, outcome) and not closed:
                if not self._at.closing:
                    verdict = await self._between("begin_closing", outcome, result_type=ConductVerdict)
                    if verdict is ConductVerdict.RUN_HELD and (verdict := await self._run_resumed()) is ConductVerdict.DONE:
                        continue
                    if verdict is not ConductVerdict.DONE:
                        outcome = outcome.model_copy(update={"finish": FINISH_BY_VERDICT[verdict]})
                        continue
                    self._at = ConductCursor(
                        closing=True, next_step=self._briefing.closing_step, outcome=outcome, point=self._at.point
                    )
                outcome, closed = await self._close(outcome), True
            failure = await self._between("end_conduct", outcome, closed, result_type=Failure | None)
            if failure is None:
                break
            outcome = outcome.model_copy(update={"denied": True, "failure": failure})
        self._show(ConductPhase.ENDED, outcome.finish.value)

    async def _close(self, outcome: ConductOutcome) -> ConductOutcome:
        """Every closing step in turn, whatever came of the one before it."""
        while self._at.step_index < self._briefing.closing_count:
            self._roll_over()
            self._show(ConductPhase.CLOSING, f"closing step {self._at.step_index + 1}/{self._briefing.closing_count}")
            report = await self._step()
            if report.verdict is ConductVerdict.GONE:
                return outcome.model_copy(update={"finish": Finish.GONE})
            if report.verdict not in (ConductVerdict.DONE, ConductVerdict.FAILED):
                return outcome.model_copy(update={"finish": Finish.ABORTED, "closing_cut_at": self._at.step_index})
            self._advance(report)
        return outcome

    def _advance(self, report: StepReport) -> None:
        self._at = self._at.model_copy(update={"step_index": self._at.step_index + 1, "next_step": report.next_step})

    @property
    def _completed(self) -> int:
        """Steps of the main list that were done, in the last pass where there are passes."""
        begun = self._briefing.boundary if self._briefing.mode is ConductMode.FLAT else 0
        return max(0, self._at.step_index - begun)

    def _complete(self, turn: PassDecision | None = None) -> ConductOutcome:
        reason = None if turn is None else turn.termination_reason
        return ConductOutcome(finish=Finish.COMPLETED, completed_count=self._completed, termination_reason=reason)

    def _ended(self, turn: PassDecision) -> ConductOutcome:
        """The end that something between two steps leads to."""
        finish = Finish.STOOD_DOWN if turn.stood_down else FINISH_BY_VERDICT[turn.verdict]
        return ConductOutcome(finish=finish, failure=turn.failure, completed_count=self._completed, denied=turn.denied)

    async def _run_resumed(self) -> ConductVerdict:
        """Wait until the parent run goes on, or is brought to an end."""
        self._show(ConductPhase.WAITING, "waiting for the run to be resumed")
        return await self._waiting("await_run", "wait for the run to be resumed", result_type=ConductVerdict)

    def _heed_cancellation(self) -> None:
        """Go no further once the engine was told to cancel: a step that ended nevertheless has used that up."""
        if workflow.cancellation_reason() is not None:
            raise asyncio.CancelledError

    def _roll_over(self) -> None:
        """Go on in a fresh history when this one has become long; only between two steps."""
        if self._walked >= STEPS_PER_EXECUTION or workflow.info().is_continue_as_new_suggested():
            workflow.continue_as_new(self._order.model_copy(update={"start": self._briefing, "cursor": self._at}))

    def _show_asking(self) -> None:
        """Tell whoever looks into the engine that somebody is waited for to advise."""
        if self._briefing.advised_from_outside:
            self._show(ConductPhase.WAITING, "waiting for advice")

    def _show(self, phase: ConductPhase, doing: str) -> None:
        """Tell whoever looks into the engine where the conduct stands."""
        loop = f"iteration {self._at.iteration_index}, " if self._at.iteration_index else ""
        at_a_step = phase in (ConductPhase.WALKING, ConductPhase.CLOSING)
        label = f" · {self._at.next_step.label}" if self._at.next_step is not None and at_a_step else ""
        workflow.set_current_details(f"**{phase.value}**: {loop}{doing}{label}")
        if phase.value != self._state:
            self._state = phase.value
            if has_search_attributes():
                workflow.upsert_search_attributes([STATE.value_set(phase.value)])

    async def _effect(self, name: str, ahead: NextStep, patience: timedelta, *given: Any) -> StepReport:
        """One step, tried again as long as workers are lost; what was done is not done again."""
        count = self._briefing.closing_count if self._at.closing else self._briefing.step_count
        part = "closing step" if self._at.closing else "step"
        report: StepReport = await workflow.execute_activity(
            name,
            args=given,
            result_type=StepReport,
            start_to_close_timeout=patience + SHORT,
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RETRY,
            cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            summary=f"{part} {self._at.step_index + 1}/{count} · {ahead.label}",
        )
        return report

    async def _waiting(self, name: str, summary: str, *given: Any, result_type: Any) -> Any:
        return await call_waiting_activity(name, [self._order.procedure_id, self._order.conduct_id, *given], result_type, summary)

    async def _between(self, name: str, *given: Any, result_type: Any) -> Any:
        return await call_short_activity(name, [self._order.procedure_id, self._order.conduct_id, *given], result_type)
