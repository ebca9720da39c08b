"""The workflow of a procedure's conduct: the steps one after the other, pass after pass, then the closing steps and the end.
It only decides what comes next. The truth is on the record, and every effect is an activity that may be repeated."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from baton.domain.conduct import messages
    from baton.domain.conduct.ends import ENDS
    from baton.domain.conduct.messages import PassDecision, StepReport
    from baton.domain.conduct.progress import ConductPhase
    from baton.domain.conduct.walk import Action, Walk
    from baton.workflows.activity_calls import (
        StatusDisplay,
        call_local_activity,
        call_short_activity,
        call_waiting_activity,
        run_to_completion,
    )
    from baton.workflows.activity_stubs import ActivityStubs as Stubs

STRETCHES_PER_EXECUTION = 500  # steps, or stretches of them, after which a conduct continues in a fresh history
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
        self._walk = Walk.go_on(order.start or NOT_STARTED, order.cursor)
        self._stretch_count = 0
        self._status = StatusDisplay()

    @workflow.run
    async def run(self, order: messages.ConductOrder) -> None:
        try:
            if order.start is None:
                begin = call_local_activity if order.begins_locally else call_short_activity
                start = await begin(Stubs.brief_conduct, self._request)
                if start is None:
                    return
                self._walk = Walk.begin(start)
            while self._walk.is_cancellable:
                self._raise_if_cancelled()
                await self._act()
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            self._walk = self._walk.after_cancellation()
        await run_to_completion(self._finish())

    async def _finish(self) -> None:
        """Walk the closing steps where the outcome needs them, and put the end on the record."""
        while self._walk.action is not Action.NOTHING:
            await self._act()
        assert self._walk.outcome is not None, "the main list has ended"
        self._show(ConductPhase.ENDED, ENDS[self._walk.outcome.finish].text)

    async def _act(self) -> None:
        """Do what comes next."""
        walk = self._walk
        self._roll_over()
        match walk.action:
            case Action.DO_STEPS:
                self._walk = walk.after_step(await self._do_steps())
            case Action.COLLECT:
                assert walk.job_id is not None, "a program was submitted"
                request = messages.JobRequest(place=self._place, point=walk.at.point, job_id=walk.job_id)
                self._walk = walk.after_step(await self._call_step(Stubs.collect_job, request))
            case Action.AWAIT_RUN:
                self._show(ConductPhase.WAITING, "waiting for the run to be resumed")
                summary = "wait for the run to be resumed"
                self._walk = walk.after_wait(await call_waiting_activity(Stubs.await_run, self._request, summary))
            case Action.BEGIN_CLOSING:
                self._walk = walk.after_closing_begun(await call_short_activity(Stubs.begin_closing, self._end))
            case Action.END:
                end = call_local_activity if walk.start.ends_locally else call_short_activity
                failure = await end(Stubs.end_conduct, self._end)
                self._walk = walk.after_end(messages.ConductVerdict.DONE, failure)
            case Action.NOTHING:
                raise AssertionError("what is over does nothing more")
            case _:
                self._walk = walk.after_pass(await self._decide_pass())

    async def _decide_pass(self) -> PassDecision:
        """Begin a pass, judge it or, in a search, record what it measured and ask where to measure next."""
        walk, index = self._walk, self._walk.at.iteration_index
        request = messages.PassRequest(**self._ids, iteration_index=index)
        match walk.action:
            case Action.START_PASS:
                passes = messages.StartPassRequest(**self._ids, passes=walk.at.passes)
                return await call_short_activity(Stubs.start_pass, passes)
            case Action.JUDGE_PASS:
                return await call_short_activity(Stubs.judge_pass, request)
            case Action.RECORD_OUTCOME:
                return await call_short_activity(Stubs.record_outcome, request)
            case Action.ASK_ADVICE:
                self._show_waiting_for_advice()
                return await call_waiting_activity(
                    Stubs.advise_pass, request, f"ask where to measure after iteration {index}"
                )
            case _:
                self._show_waiting_for_advice()
                return await call_waiting_activity(Stubs.take_up_search, self._request, "ask where to go on")

    async def _do_steps(self) -> StepReport:
        """Do the step at the cursor, or the stretch of steps that begins there."""
        at, start = self._walk.at, self._walk.start
        assert at.next_step is not None, "there is a step at the cursor"
        self._show(ConductPhase.CLOSING if at.closing else ConductPhase.WALKING, position(at, start))
        self._stretch_count += 1
        if at.next_step.stretch_count > 1:
            stretch = messages.StretchRequest(place=self._place, point=at.point, count=at.next_step.stretch_count)
            return await self._call_step(Stubs.do_steps, stretch)
        wait = at.next_step.wait_seconds
        deadline = None if wait is None else workflow.now() + timedelta(seconds=wait)
        return await self._call_step(
            Stubs.do_step, messages.StepRequest(place=self._place, point=at.point, deadline=deadline)
        )

    async def _call_step(self, method: Callable[[Any, A], Awaitable[StepReport]], request: A) -> StepReport:
        """Call an activity for the steps at the cursor; it is retried while workers are lost, and repeats no effect."""
        at, start = self._walk.at, self._walk.start
        assert at.next_step is not None, "there is a step at the cursor"
        summary = f"{position(at, start)} · {at.next_step.label}"
        return await call_waiting_activity(method, request, summary, at.next_step.timeout_seconds)

    @property
    def _place(self) -> messages.StepPlace:
        at = self._walk.at
        return messages.StepPlace(
            **self._ids, iteration_index=at.iteration_index, closing=at.closing, step_index=at.step_index
        )

    @property
    def _end(self) -> messages.ConductEnd:
        assert self._walk.outcome is not None, "the main list has ended"
        return messages.ConductEnd(**self._ids, outcome=self._walk.outcome, closed=self._walk.closed)

    def _raise_if_cancelled(self) -> None:
        """Stop once the engine has cancelled the workflow: a step that ended nevertheless has used up the exception."""
        if self._walk.is_between_steps and workflow.cancellation_reason() is not None:
            raise asyncio.CancelledError

    def _roll_over(self) -> None:
        """Continue in a fresh history when this one has become long; only between two steps."""
        if not self._walk.is_between_steps:
            return
        if self._stretch_count >= STRETCHES_PER_EXECUTION or workflow.info().is_continue_as_new_suggested():
            position = {"start": self._walk.start, "cursor": self._walk.at}
            workflow.continue_as_new(self._order.model_copy(update=position))

    def _show_waiting_for_advice(self) -> None:
        if self._walk.start.advised_from_outside:
            self._show(ConductPhase.WAITING, "waiting for advice")

    def _show(self, phase: ConductPhase, activity: str) -> None:
        at = self._walk.at
        loop = f"iteration {at.iteration_index}, " if at.iteration_index else ""
        at_a_step = phase in (ConductPhase.WALKING, ConductPhase.CLOSING)
        label = f" · {at.next_step.label}" if at.next_step is not None and at_a_step else ""
        self._status.show(phase, f"{loop}{activity}{label}")


def position(at: messages.ConductCursor, start: messages.ConductStart) -> str:
    """Return where in its list a step or stretch is."""
    part, count = ("closing step", start.closing_count) if at.closing else ("step", start.step_count)
    first = at.step_index + 1
    if at.next_step is None or at.next_step.stretch_count == 1:
        return f"{part} {first}/{count}"
    return f"{part}s {first}-{first + at.next_step.stretch_count - 1}/{count}"
