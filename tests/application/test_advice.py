"""Advice on where to measure next: asked for once of any decider, and put on the record with the pass."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from baton.application.conduct.deciders import Decider, DecideTimeoutError
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.messages import ConductOutcome, ConductVerdict, Finish, PassDecision
from baton.domain.conduct.progress import WaitingFor
from baton.domain.conduct.steered_conduct import AdviseProcedure, ConductUntilAdvisedFrom
from baton.domain.procedure.procedure import ProcedureIterationEnded, ProcedureIterationStarted, ProcedureOutcomeRecorded
from baton.domain.run.run import RunStopped
from baton.domain.steering.steering import AskedDecide, DecideNotAvailableError, SteeringAdvice, SteeringEvidence
from tests.support.application.loop_cases import (
    ASKED,
    CALLER,
    FIRST,
    GRID,
    HELD_RUN,
    SEARCH,
    open_search,
    request,
    twice,
    walk_pass,
)
from tests.support.application.memory_conduct import (
    ENDING,
    STOOD_DOWN,
    MemoryConduct,
    OpenedConduct,
    RevocablePermits,
    WorkAttempt,
    memory_conduct,
)
from tests.support.fast_clock import LoopTime


class ScriptedDeciders:
    """A decider that does as a test says; there is no other."""

    def __init__(self, saying: Callable[[SteeringEvidence], Awaitable[SteeringAdvice]]) -> None:
        self._saying = saying
        self.evidence: list[SteeringEvidence] = []
        self.closed = 0

    async def decider(self, decide: AskedDecide) -> Decider:
        return self

    async def advise_next(self, evidence: SteeringEvidence) -> SteeringAdvice:
        self.evidence.append(evidence)
        return await self._saying(evidence)

    async def close(self) -> None:
        self.closed += 1


def measure(focus: float, **more: Any) -> SteeringAdvice:
    return SteeringAdvice.model_validate({"verdict": "Measure", "next_point": {"focus": focus}, **more})


STOP = SteeringAdvice.model_validate({"verdict": "Stop"})


async def measure_once(memory: MemoryConduct, conduct: OpenedConduct, reading: float = 7.5) -> int:
    """Walk a pass and put on the record what it measured."""
    index = await walk_pass(memory, conduct, reading)
    await memory.passes.record_outcome(conduct.pass_request(index))
    return index


class TestAdvice:
    async def test_a_pass_ends_with_what_was_advised(self, memory: MemoryConduct, time: LoopTime) -> None:
        async def say(evidence: SteeringEvidence) -> SteeringAdvice:
            await time.sleep(30)
            return measure(1.0, rationale="uphill", confidence=0.7, alternatives=("0.5",), model_ref="m1")

        deciders = ScriptedDeciders(say)
        asking = memory_conduct(time, deciders=deciders)
        conduct = await open_search(asking)
        index = await measure_once(asking, conduct)
        attempt = WorkAttempt()
        turn = await twice(asking, conduct, lambda stand: stand.passes.advise(conduct.pass_request(index), attempt))
        assert turn == PassDecision(verdict=ConductVerdict.DONE, stop=False, point={"focus": 1.0})
        ended = asking.events(conduct)[-1]
        assert isinstance(ended, ProcedureIterationEnded)
        assert (ended.converged, ended.advised_stop, ended.advised_next_point) == (None, False, {"focus": 1.0})
        assert (ended.reasoning, ended.confidence, ended.alternatives, ended.model_ref) == ("uphill", 0.7, ("0.5",), "m1")
        assert (ended.advised_by, ended.advice_latency) == (None, 30)
        assert (len(deciders.evidence), deciders.closed) == (1, 1), "it was asked once, and let go"
        assert attempt.signs == pytest.approx(30, abs=1)

    async def test_it_is_asked_with_everything_that_was_measured(self, time: LoopTime) -> None:
        async def say(evidence: SteeringEvidence) -> SteeringAdvice:
            return measure(len(evidence.observations) / 2)

        deciders = ScriptedDeciders(say)
        asking = memory_conduct(time, deciders=deciders)
        conduct = await open_search(asking, budget={"iterations_remaining": 5, "wall_clock_remaining": 100.0})
        for passes in range(1, 4):
            index = await walk_pass(asking, conduct, passes)
            await asking.passes.record_outcome(conduct.pass_request(index))
            await time.sleep(10)
            await asking.passes.advise(conduct.pass_request(index), WorkAttempt())
        last = deciders.evidence[-1]
        assert [(seen.point["focus"], seen.measurements[0].value) for seen in last.observations] == [
            (-2, 1),
            (0.5, 2),
            (1.0, 3),
        ]
        assert (last.iteration_index, last.procedure_id) == (3, conduct.procedure_id)
        assert (last.budget.iterations_remaining, last.budget.wall_clock_remaining) == (2, 70)

    async def test_stop_is_an_answer(self, memory: MemoryConduct) -> None:
        conduct = await open_search(memory, decide={"substrate": "in_memory", "advice": []})
        index = await measure_once(memory, conduct)
        turn = await twice(memory, conduct, lambda stand: stand.passes.advise(conduct.pass_request(index), WorkAttempt()))
        assert turn == PassDecision(verdict=ConductVerdict.DONE, stop=True)
        assert memory.events(conduct)[-1].advised_stop is True

    @pytest.mark.parametrize(
        ("said", "error_class"),
        [
            (DecideTimeoutError("It took too long."), "DecideTimeoutError"),
            (DecideNotAvailableError("It is not there."), "DecideNotAvailableError"),
            (measure(9.0), "DecideAdviceMalformedError"),
            (SteeringAdvice.model_validate({"verdict": "Measure"}), "DecideAdviceMalformedError"),
            (SteeringAdvice.model_validate({"verdict": "Stop", "next_point": FIRST}), "DecideAdviceMalformedError"),
            (None, "DecideTimeoutError"),
        ],
    )
    async def test_a_decider_that_fails_fails_the_conduct(self, time: LoopTime, said: Any, error_class: str) -> None:
        async def say(evidence: SteeringEvidence) -> SteeringAdvice:
            if said is None:
                await asyncio.Event().wait()
            if isinstance(said, Exception):
                raise said
            answer: SteeringAdvice = said
            return answer

        deciders = ScriptedDeciders(say)
        asking = memory_conduct(time, deciders=deciders)
        conduct = await open_search(asking)
        index = await measure_once(asking, conduct)
        turn = await twice(asking, conduct, lambda stand: stand.passes.advise(conduct.pass_request(index), WorkAttempt()))
        assert turn.failure is not None
        assert (turn.verdict, turn.failure.error_class) == (ConductVerdict.FAILED, error_class)
        assert (turn.failure.source_kind, turn.failure.target) == ("decide", "sharpness")
        assert (deciders.closed, isinstance(asking.events(conduct)[-1], ProcedureOutcomeRecorded)) == (2, True)
        if said is None:
            assert time.elapsed_seconds == 240, "two minutes each time"

    async def test_an_abort_does_not_wait_for_the_answer(self, time: LoopTime) -> None:
        async def say(evidence: SteeringEvidence) -> SteeringAdvice:
            await asyncio.Event().wait()
            return STOP

        deciders = ScriptedDeciders(say)
        asking = memory_conduct(time, deciders=deciders)
        conduct = await open_search(asking)
        index = await measure_once(asking, conduct)
        advising = asyncio.create_task(asking.passes.advise(conduct.pass_request(index), WorkAttempt()))
        await time.sleep(10.5)
        await request(asking, conduct, HoldProcedure)
        await time.sleep(10)
        assert not advising.done(), "a hold waits for the end of the turn"
        await request(asking, conduct, AbortProcedure)
        assert await advising == PassDecision(verdict=ConductVerdict.ABORT)
        assert (time.elapsed_seconds, deciders.closed) == (21, 1)

    async def test_a_pass_that_the_submitter_may_not_end_fails(self, memory: MemoryConduct) -> None:
        conduct = await open_search(memory)
        index = await measure_once(memory, conduct)
        assert isinstance(memory.permits, RevocablePermits)
        memory.permits.withdrawn.add("EndProcedureIteration")
        turn = await twice(memory, conduct, lambda stand: stand.passes.advise(conduct.pass_request(index), WorkAttempt()))
        assert turn.verdict is ConductVerdict.DENIED

    async def test_what_has_ended_asks_nobody(self, memory: MemoryConduct) -> None:
        conduct = await open_search(memory)
        await memory.other_worker().conductor.end(conduct.end(STOOD_DOWN, closed=False))
        assert await memory.passes.advise(conduct.pass_request(1), WorkAttempt()) == PassDecision(
            verdict=ConductVerdict.GONE
        )


class TestAnOutsideDecider:
    async def open_waiting_search(self, memory: MemoryConduct, **more: Any) -> tuple[OpenedConduct, int, Any]:
        """A search that waits to be told where to measure."""
        conduct = await open_search(memory, decide=CALLER, **more)
        index = await measure_once(memory, conduct)
        advising = asyncio.create_task(memory.passes.advise(conduct.pass_request(index), WorkAttempt()))
        await memory.time.sleep(10)
        assert not advising.done()
        return conduct, index, advising

    async def test_what_it_says_ends_the_pass(self, memory: MemoryConduct) -> None:
        conduct, index, advising = await self.open_waiting_search(memory)
        progress = memory.progress(conduct)
        assert (progress.phase, progress.waiting_for) == ("Waiting", "advice")
        assert progress.waiting_until is not None
        assert (progress.waiting_until - progress.started_at).total_seconds() == 600
        await memory.do(AdviseProcedure(iteration_index=index, advice=measure(1.0)), conduct.procedure_id)
        assert await advising == PassDecision(verdict=ConductVerdict.DONE, point={"focus": 1.0})
        ended = memory.events(conduct)[-1]
        assert (ended.advised_by, ended.advised_next_point) == (memory.caller.principal_id, {"focus": 1.0})
        assert ended.advice_latency == pytest.approx(10, abs=1)
        assert (memory.progress(conduct).waiting_for, memory.progress(conduct).phase) == (None, "Walking")

    async def test_advice_that_was_given_while_nobody_worked_counts(self, memory: MemoryConduct) -> None:
        conduct, index, advising = await self.open_waiting_search(memory)
        advising.cancel()
        await asyncio.gather(advising, return_exceptions=True)
        await memory.ledger.mark_waiting(conduct.procedure_id, conduct.conduct_id, WaitingFor.ADVICE, memory.time.now())
        await memory.do(AdviseProcedure(iteration_index=index, advice=STOP), conduct.procedure_id)
        turn = await twice(memory, conduct, lambda stand: stand.passes.advise(conduct.pass_request(index), WorkAttempt()))
        assert turn == PassDecision(verdict=ConductVerdict.DONE, stop=True)

    async def test_nobody_is_waited_for_longer_than_agreed(self, memory: MemoryConduct) -> None:
        conduct, index, advising = await self.open_waiting_search(memory)
        turn = await advising
        assert turn.failure is not None
        assert (turn.verdict, turn.stood_down, turn.failure.error_class) == (
            ConductVerdict.HOLD,
            True,
            "SteeringDriverStoodDown",
        )
        assert memory.time.elapsed_seconds == pytest.approx(600, abs=1)
        again = await memory.other_worker().passes.advise(conduct.pass_request(index), WorkAttempt())
        assert (again, memory.time.elapsed_seconds) == (turn, pytest.approx(600, abs=1)), "a repetition grants no more"

    @pytest.mark.parametrize(("requests", "verdict"), ASKED)
    async def test_a_request_is_served_meanwhile(
        self, memory: MemoryConduct, requests: Any, verdict: ConductVerdict
    ) -> None:
        conduct, _, advising = await self.open_waiting_search(memory)
        await request(memory, conduct, *requests)
        assert await advising == PassDecision(verdict=verdict)
        assert memory.time.elapsed_seconds == pytest.approx(10, abs=1.1)

    async def test_a_held_run_does_not_end_the_wait_and_a_stopped_one_does(self, memory: MemoryConduct) -> None:
        run_id = await memory.run()
        _, _, advising = await self.open_waiting_search(memory, run_id=run_id)
        await memory.append_events(run_id, HELD_RUN.model_copy())
        await memory.time.sleep(100)
        assert not advising.done()
        await memory.append_events(run_id, RunStopped(reason="enough", **ENDING))
        assert await advising == PassDecision(verdict=ConductVerdict.RUN_STOPPED)

    async def test_waiting_does_not_use_up_the_restart_limit(self, memory: MemoryConduct) -> None:
        conduct, index, advising = await self.open_waiting_search(memory)
        await memory.time.sleep(500)
        await memory.do(AdviseProcedure(iteration_index=index, advice=measure(1.0)), conduct.procedure_id)
        await advising
        await walk_pass(memory, conduct, 7.5)


class TestTakingUp:
    async def resume_conduct(self, memory: MemoryConduct, decide: Any, measured: bool = True) -> OpenedConduct:
        """A search that was held, after its first pass if it had measured, and goes on."""
        first = await open_search(memory, decide=decide)
        if measured:
            await measure_once(memory, first)
        await request(memory, first, HoldProcedure)
        await memory.conductor.end(first.end(ConductOutcome(finish=Finish.HELD), closed=False))
        return await memory.live(ConductUntilAdvisedFrom(**SEARCH, decide=decide), first.procedure_id)

    async def test_it_is_known_before_the_first_pass_that_something_was_measured(self, memory: MemoryConduct) -> None:
        briefing = await memory.conductor.brief((await self.resume_conduct(memory, GRID)).request)
        assert briefing is not None
        assert briefing.asks_first
        other = await memory.conductor.brief((await self.resume_conduct(memory, GRID, measured=False)).request)
        assert other is not None
        assert not other.asks_first

    async def test_the_pass_begins_where_the_decider_says(self, memory: MemoryConduct) -> None:
        conduct = await self.resume_conduct(memory, GRID)
        turn = await twice(memory, conduct, lambda stand: stand.passes.take_up(conduct.request, WorkAttempt()))
        assert turn == PassDecision(verdict=ConductVerdict.DONE, iteration_index=2, point={"focus": 0.0})
        begun = memory.events(conduct)[-1]
        assert isinstance(begun, ProcedureIterationStarted)
        assert (begun.point, begun.advice.next_point) == ({"focus": 0.0}, {"focus": 0.0})

    async def test_it_may_say_stop(self, memory: MemoryConduct) -> None:
        conduct = await self.resume_conduct(memory, {"substrate": "in_memory", "advice": []})
        turn = await twice(memory, conduct, lambda stand: stand.passes.take_up(conduct.request, WorkAttempt()))
        assert turn == PassDecision(verdict=ConductVerdict.DONE, stop=True)

    async def test_a_decider_that_fails_fails_the_conduct(self, memory: MemoryConduct) -> None:
        wrong = {"substrate": "in_memory", "advice": [{"verdict": "Measure", "next_point": {"focus": 9.0}}] * 2}
        conduct = await self.resume_conduct(memory, wrong)
        turn = await twice(memory, conduct, lambda stand: stand.passes.take_up(conduct.request, WorkAttempt()))
        assert turn.failure is not None
        assert turn.failure.error_class == "DecideAdviceMalformedError"

    async def test_a_hold_is_served_before_the_pass_begins(self, memory: MemoryConduct) -> None:
        conduct = await self.resume_conduct(memory, GRID)
        await request(memory, conduct, HoldProcedure)
        turn = await twice(memory, conduct, lambda stand: stand.passes.take_up(conduct.request, WorkAttempt()))
        assert turn == PassDecision(verdict=ConductVerdict.HOLD)

    async def test_an_outside_decider_is_asked_for_the_coming_pass(self, memory: MemoryConduct) -> None:
        conduct = await self.resume_conduct(memory, CALLER)
        taking_up = asyncio.create_task(memory.passes.take_up(conduct.request, WorkAttempt()))
        await memory.time.sleep(10)
        await memory.do(AdviseProcedure(iteration_index=2, advice=measure(1.0)), conduct.procedure_id)
        turn = await taking_up
        assert turn == PassDecision(verdict=ConductVerdict.DONE, iteration_index=2, point={"focus": 1.0})
        assert await memory.other_worker().passes.take_up(conduct.request, WorkAttempt()) == turn
        assert memory.events(conduct)[-1].advice == measure(1.0)

    async def test_and_then_again_for_the_next_one(self, memory: MemoryConduct) -> None:
        """What was said before a pass began is not taken for what follows it."""
        conduct = await self.resume_conduct(memory, CALLER)
        taking_up = asyncio.create_task(memory.passes.take_up(conduct.request, WorkAttempt()))
        await memory.time.sleep(10)
        await memory.do(AdviseProcedure(iteration_index=2, advice=measure(1.0)), conduct.procedure_id)
        index = (await taking_up).iteration_index
        for step in range(2):
            await memory.step(conduct, step, index, point={"focus": 1.0})
        await memory.passes.record_outcome(conduct.pass_request(index))
        advising = asyncio.create_task(memory.passes.advise(conduct.pass_request(index), WorkAttempt()))
        await memory.time.sleep(10)
        assert not advising.done()
        await memory.do(AdviseProcedure(iteration_index=index, advice=STOP), conduct.procedure_id)
        assert await advising == PassDecision(verdict=ConductVerdict.DONE, stop=True)

    async def test_what_has_ended_is_not_taken_up(self, memory: MemoryConduct) -> None:
        conduct = await self.resume_conduct(memory, GRID)
        await memory.other_worker().conductor.end(conduct.end(STOOD_DOWN, closed=False))
        assert await memory.passes.take_up(conduct.request, WorkAttempt()) == PassDecision(verdict=ConductVerdict.GONE)
