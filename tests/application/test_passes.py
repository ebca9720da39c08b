"""Passes of a loop: begun, judged and recorded, each once however often it is asked for."""

from typing import Any

import pytest

from baton.domain.conduct.conduct import ConductUntilConverged
from baton.domain.conduct.endings import LOST, AbortProcedure, HoldProcedure, RecordConductEnd, lost_result
from baton.domain.conduct.messages import ConductOutcome, ConductVerdict, Finish, PassDecision
from baton.domain.procedure.procedure import ProcedureIterationEnded, ProcedureIterationStarted, ProcedureStatus
from baton.domain.step.results import TerminationReason
from baton.infrastructure.compute.in_memory import SimulatedOutcome
from tests.support.application.loop_cases import (
    ASKED,
    CENTRED,
    FIRST,
    GRID,
    RUN_LIVES,
    open_loop,
    open_search,
    request,
    twice,
    walk_pass,
)
from tests.support.application.memory_conduct import (
    STOOD_DOWN,
    MemoryConduct,
    OpenedConduct,
    RevocablePermits,
    WorkAttempt,
    measurement,
)
from tests.support.workflows.step_json import capture, compute, setpoint, steered_value


class TestBriefing:
    async def test_it_says_what_there_is_to_conduct(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3), capture("bl7:b", "n")], [setpoint("bl7:shutter", 0)])
        briefing = await twice(memory, conduct, lambda stand: stand.conductor.brief(conduct.request))
        assert (briefing.step_count, briefing.closing_count, briefing.boundary) == (2, 1, 0)
        assert [ahead.label for ahead in (briefing.next_step, briefing.closing_step, briefing.loop_step)] == [
            "set bl7:a",
            "set bl7:shutter",
            "set bl7:a",
        ]
        assert (briefing.mode, briefing.asks_first, briefing.first_point) == ("Flat", False, None)
        assert memory.progress(conduct).phase == "Walking", "it was taken up"

    async def test_a_conduct_that_is_not_the_live_one_is_none(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)])
        await memory.mark_list_done(conduct)
        await memory.conductor.end(conduct.end(ConductOutcome(finish=Finish.COMPLETED), closed=True))
        assert await memory.other_worker().conductor.brief(conduct.request) is None

    async def test_one_that_was_left_too_long_to_begin_is_given_up(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)])
        await memory.time.sleep(301)
        assert await twice(memory, conduct, lambda stand: stand.conductor.brief(conduct.request)) is None
        *_, conducted, aborted = memory.events(conduct)
        assert conducted.result.failure.error_class == "ConductStartExpired"
        assert (conducted.result.failure.target, "ConductStartExpired" in aborted.reason) == ("start", True)
        assert (memory.procedure(conduct).status, memory.rows()) == (ProcedureStatus.ABORTED, [])

    async def test_a_pass_that_a_lost_conduct_left_open_is_ended_first(self, memory: MemoryConduct) -> None:
        first = await open_loop(memory)
        await memory.passes.start(first.request)
        await self.lose(memory, first)
        conduct = await memory.live(ConductUntilConverged(**CENTRED), first.procedure_id)
        await twice(memory, conduct, lambda stand: stand.conductor.brief(conduct.request))
        ended = memory.events(conduct)[-1]
        assert (ended.iteration_index, ended.converged) == (1, None)
        assert ended.reason == "It was left open."

    async def lose(self, memory: MemoryConduct, conduct: OpenedConduct) -> None:
        """Have the engine forget a conduct, and somebody hold the procedure."""
        await memory.do(
            RecordConductEnd(result=lost_result(conduct.procedure_id, conduct.conduct_id, "ConductUntilConverged", LOST)),
            conduct.procedure_id,
        )
        await memory.do(HoldProcedure(reason="what was that"), conduct.procedure_id)


class TestBeginningAPass:
    async def test_passes_are_begun_in_order_each_once(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        for expected in (1, 2):
            turn = await twice(memory, conduct, lambda stand: stand.passes.start(conduct.request))
            assert turn == PassDecision(verdict=ConductVerdict.DONE, iteration_index=expected)
            assert isinstance(memory.events(conduct)[-1], ProcedureIterationStarted)
            for index in range(2):
                await memory.step(conduct, index, expected)
            await memory.passes.judge(conduct.pass_request(expected))

    async def test_where_it_measures_stands_on_the_record(self, memory: MemoryConduct) -> None:
        conduct = await open_search(memory)
        turn = await twice(memory, conduct, lambda stand: stand.passes.start(conduct.request))
        assert (turn.iteration_index, turn.point) == (1, FIRST)
        assert memory.events(conduct)[-1].point == FIRST

    @pytest.mark.parametrize(("requests", "verdict"), ASKED)
    async def test_a_request_comes_first(self, memory: MemoryConduct, requests: Any, verdict: ConductVerdict) -> None:
        conduct = await open_loop(memory)
        await request(memory, conduct, *requests)
        turn = await twice(memory, conduct, lambda stand: stand.passes.start(conduct.request))
        assert turn == PassDecision(verdict=verdict)

    @pytest.mark.parametrize(("event", "verdict"), RUN_LIVES)
    async def test_and_so_does_the_run(self, memory: MemoryConduct, event: Any, verdict: ConductVerdict) -> None:
        run_id = await memory.run()
        conduct = await open_loop(memory, run_id)
        await memory.append_events(run_id, event.model_copy())
        turn = await twice(memory, conduct, lambda stand: stand.passes.start(conduct.request))
        assert turn == PassDecision(verdict=verdict)

    @pytest.mark.parametrize(("registered", "given", "allowed"), [(None, 2, 2), (2, None, 2), (3, 2, 2), (2, 3, 2)])
    async def test_patience_for_so_many_passes_allows_exactly_so_many(
        self, memory: MemoryConduct, registered: int | None, given: int | None, allowed: int
    ) -> None:
        conduct = await open_loop(memory, cap=given, max_consecutive_unconverged_iterations=registered)
        for _ in range(allowed):
            index = await walk_pass(memory, conduct, 9.0)
            await memory.passes.judge(conduct.pass_request(index))
        turn = await twice(memory, conduct, lambda stand: stand.passes.start(conduct.request))
        assert turn.failure is not None
        assert (turn.verdict, turn.failure.error_class) == (ConductVerdict.FAILED, "ConvergenceIterationCapReached")
        assert (turn.failure.source_kind, turn.failure.target) == ("lifecycle", "abort")
        assert memory.procedure(conduct).iteration_count == allowed

    async def test_no_loop_goes_beyond_ten_thousand_passes(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory, cap=20_000)
        last = ProcedureIterationStarted(iteration_index=10_000)
        ended = ProcedureIterationEnded(iteration_index=10_000, converged=False, reason=None)
        await memory.append_events(conduct.procedure_id, last, ended)
        turn = await twice(memory, conduct, lambda stand: stand.passes.start(conduct.request))
        assert turn.failure is not None
        assert turn.failure.error_class == "AbsoluteIterationCeilingReached"

    @pytest.mark.parametrize(
        ("budget", "passes", "waited", "reason"),
        [
            ({"iterations_remaining": 0}, 0, 0, TerminationReason.ITERATIONS),
            ({"iterations_remaining": 3}, 3, 0, TerminationReason.ITERATIONS),
            ({"wall_clock_remaining": 60.0}, 1, 60, TerminationReason.WALL_CLOCK),
            ({"iterations_remaining": 3, "wall_clock_remaining": 60.0}, 3, 60, TerminationReason.ITERATIONS),
        ],
    )
    async def test_a_spent_budget_ends_a_search_well(
        self, memory: MemoryConduct, budget: Any, passes: int, waited: float, reason: TerminationReason
    ) -> None:
        conduct = await open_search(memory, decide={**GRID, "points_per_axis": 9}, budget=budget)
        for _ in range(passes):
            index = await walk_pass(memory, conduct, 1.0)
            await memory.passes.record_outcome(conduct.pass_request(index))
            await memory.passes.advise(conduct.pass_request(index), WorkAttempt())
        await memory.time.sleep(waited)
        turn = await twice(memory, conduct, lambda stand: stand.passes.start(conduct.request))
        assert turn == PassDecision(verdict=ConductVerdict.DONE, stop=True, termination_reason=reason)
        assert memory.procedure(conduct).iteration_count == passes

    async def test_what_is_left_of_it_is_used(self, memory: MemoryConduct) -> None:
        conduct = await open_search(memory, budget={"iterations_remaining": 3, "wall_clock_remaining": 60.0})
        await memory.time.sleep(59)
        assert (await memory.passes.start(conduct.request)).iteration_index == 1

    async def test_in_a_search_patience_does_not_count(self, memory: MemoryConduct) -> None:
        conduct = await open_search(memory, max_consecutive_unconverged_iterations=1)
        for _ in range(3):
            index = await walk_pass(memory, conduct, 1.0)
            await memory.passes.record_outcome(conduct.pass_request(index))
            await memory.passes.advise(conduct.pass_request(index), WorkAttempt())

    async def test_a_pass_that_the_submitter_may_not_begin_fails(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        assert isinstance(memory.permits, RevocablePermits)
        memory.permits.withdrawn.add("StartProcedureIteration")
        turn = await twice(memory, conduct, lambda stand: stand.passes.start(conduct.request))
        assert turn.failure is not None
        assert turn.verdict is ConductVerdict.DENIED
        assert (turn.failure.source_kind, turn.failure.error_class) == ("lifecycle", "UnauthorizedError")

    async def test_what_has_ended_begins_nothing(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        await memory.other_worker().conductor.end(conduct.end(STOOD_DOWN, closed=False))
        for stand in (memory, memory.other_worker()):
            assert await stand.passes.start(conduct.request) == PassDecision(verdict=ConductVerdict.GONE)


class TestJudging:
    @pytest.mark.parametrize(("reading", "converged"), [(0.5, True), (-0.5, True), (0.51, False)])
    async def test_a_pass_is_judged_by_what_it_captured(
        self, memory: MemoryConduct, reading: float, converged: bool
    ) -> None:
        conduct = await open_loop(memory)
        index = await walk_pass(memory, conduct, reading)
        turn = await twice(memory, conduct, lambda stand: stand.passes.judge(conduct.pass_request(index)))
        assert turn == PassDecision(verdict=ConductVerdict.DONE, converged=converged)
        ended = memory.events(conduct)[-1]
        assert (ended.iteration_index, ended.converged, ended.reason) == (1, converged, None)

    async def test_a_pass_that_captured_nothing_fails(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        await memory.passes.start(conduct.request)
        await memory.reach(conduct, conduct.at(2, 1), {})
        turn = await twice(memory, conduct, lambda stand: stand.passes.judge(conduct.pass_request(1)))
        assert turn.failure is not None
        assert (turn.verdict, turn.failure.error_class) == (ConductVerdict.FAILED, "ComputeMeasurementNotFound")
        assert turn.failure.target == "offset"

    async def test_what_an_earlier_pass_captured_does_not_count(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        index = await walk_pass(memory, conduct, 9.0)
        await memory.passes.judge(conduct.pass_request(index))
        await memory.passes.start(conduct.request)
        await memory.reach(conduct, conduct.at(2, 2), {})
        assert (await memory.passes.judge(conduct.pass_request(2))).verdict is ConductVerdict.FAILED

    async def test_an_abort_comes_first(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        index = await walk_pass(memory, conduct, 0.1)
        await request(memory, conduct, AbortProcedure)
        turn = await twice(memory, conduct, lambda stand: stand.passes.judge(conduct.pass_request(index)))
        assert turn == PassDecision(verdict=ConductVerdict.ABORT), "the pass is discarded"

    @pytest.mark.parametrize(("reading", "converged"), [(0.1, True), (9.0, False)])
    async def test_what_was_measured_counts_before_a_hold(
        self, memory: MemoryConduct, reading: float, converged: bool
    ) -> None:
        conduct = await open_loop(memory)
        index = await walk_pass(memory, conduct, reading)
        await request(memory, conduct, HoldProcedure)
        turn = await twice(memory, conduct, lambda stand: stand.passes.judge(conduct.pass_request(index)))
        assert turn == PassDecision(verdict=ConductVerdict.DONE, converged=converged)
        ended = memory.events(conduct)[-1]
        assert (ended.converged, [item.value for item in ended.measurements]) == (converged, [reading])
        assert memory.procedure(conduct).consecutive_unconverged_iterations == int(not converged)
        if not converged:
            follows = await memory.passes.start(conduct.request)
            assert follows == PassDecision(verdict=ConductVerdict.HOLD), "it is held before the next pass"

    async def test_a_pass_that_captured_nothing_is_held_where_that_was_asked_for(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        await memory.passes.start(conduct.request)
        await memory.reach(conduct, conduct.at(2, 1), {})
        await request(memory, conduct, HoldProcedure)
        turn = await twice(memory, conduct, lambda stand: stand.passes.judge(conduct.pass_request(1)))
        assert turn == PassDecision(verdict=ConductVerdict.HOLD)

    async def test_what_was_judged_stays_although_somebody_asks_for_a_hold(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        index = await walk_pass(memory, conduct, 0.1)
        turn = await memory.passes.judge(conduct.pass_request(index))
        await request(memory, conduct, HoldProcedure)
        assert await memory.other_worker().passes.judge(conduct.pass_request(index)) == turn

    async def test_a_pass_that_the_submitter_may_not_end_fails(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        index = await walk_pass(memory, conduct, 0.1)
        assert isinstance(memory.permits, RevocablePermits)
        memory.permits.withdrawn.add("EndProcedureIteration")
        turn = await twice(memory, conduct, lambda stand: stand.passes.judge(conduct.pass_request(index)))
        assert turn.verdict is ConductVerdict.DENIED

    async def test_what_has_ended_is_not_judged(self, memory: MemoryConduct) -> None:
        conduct = await open_loop(memory)
        index = await walk_pass(memory, conduct, 0.1)
        await memory.other_worker().conductor.end(conduct.end(STOOD_DOWN, closed=False))
        assert await memory.passes.judge(conduct.pass_request(index)) == PassDecision(verdict=ConductVerdict.GONE)


class TestOutcomes:
    async def test_what_a_pass_measured_is_recorded_once(self, memory: MemoryConduct) -> None:
        conduct = await open_search(memory)
        index = await walk_pass(memory, conduct, 7.5)
        turn = await twice(memory, conduct, lambda stand: stand.passes.record_outcome(conduct.pass_request(index)))
        assert turn == PassDecision(verdict=ConductVerdict.DONE)
        recorded = memory.events(conduct)[-1]
        assert (recorded.iteration_index, recorded.point, recorded.succeeded) == (1, FIRST, True)
        assert (recorded.measurements, recorded.actuation_kind) == ((measurement("sharpness", 7.5),), "Physical")

    async def test_a_program_has_measured_it_already(self, memory: MemoryConduct) -> None:
        found = measurement("sharpness", 3.0, units="px")
        memory.compute.seed(("look",), SimulatedOutcome(measurements=(measurement("other", 1.0), found)))
        steps = [setpoint("bl7:a", steered_value("focus")), compute("look", capture_name="sharpness")]
        conduct = await open_search(memory, steps=steps)
        index = await walk_pass(memory, conduct, 0)
        await memory.passes.record_outcome(conduct.pass_request(index))
        assert memory.events(conduct)[-1].measurements == (measurement("other", 1.0), found)

    async def test_a_pass_that_did_not_measure_it_fails(self, memory: MemoryConduct) -> None:
        conduct = await open_search(memory)
        await memory.passes.start(conduct.request)
        await memory.reach(conduct, conduct.at(2, 1), FIRST)
        turn = await twice(memory, conduct, lambda stand: stand.passes.record_outcome(conduct.pass_request(1)))
        assert turn.failure is not None
        assert (turn.failure.error_class, turn.failure.target) == ("ComputeMeasurementNotFound", "sharpness")

    @pytest.mark.parametrize(("requests", "verdict"), ASKED)
    async def test_a_request_is_served_behind_it(
        self, memory: MemoryConduct, requests: Any, verdict: ConductVerdict
    ) -> None:
        conduct = await open_search(memory)
        index = await walk_pass(memory, conduct, 7.5)
        await request(memory, conduct, *requests)
        turn = await twice(memory, conduct, lambda stand: stand.passes.record_outcome(conduct.pass_request(index)))
        assert turn == PassDecision(verdict=verdict)
        recorded = memory.events(conduct)[-1]
        assert recorded.measurements == (measurement("sharpness", 7.5),), "what was measured is recorded first"

    async def test_what_has_ended_records_nothing(self, memory: MemoryConduct) -> None:
        conduct = await open_search(memory)
        await memory.other_worker().conductor.end(conduct.end(STOOD_DOWN, closed=False))
        assert await memory.passes.record_outcome(conduct.pass_request(1)) == PassDecision(verdict=ConductVerdict.GONE)
