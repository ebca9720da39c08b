"""Passes of a loop: begun, judged and recorded, each once however often it is asked for."""

from typing import Any

import pytest

from baton.domain.operation.conduct.conduct import ConductUntilConverged
from baton.domain.operation.conduct.messages import ConductOutcome, ConductVerdict, Finish, PassDecision
from baton.domain.operation.conduct.results import TerminationReason
from baton.domain.operation.procedure.endings import LOST, HoldProcedure, RecordConductEnd, given_up
from baton.domain.operation.procedure.procedure import ProcedureIterationEnded, ProcedureIterationStarted, ProcedureStatus
from baton.infrastructure.compute.in_memory import Simulated
from tests.application.loops import ASKED, CENTRED, FIRST, GRID, RUN_LIVES, asked, converging, passed, searching, twice
from tests.application.rehearsal import STOOD_DOWN, Live, Permits, Rehearsal, Try, measured
from tests.workflows.steps import capture, compute, setpoint, steered


class TestBriefing:
    async def test_it_says_what_there_is_to_conduct(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3), capture("bl7:b", "n")], [setpoint("bl7:shutter", 0)])
        briefing = await twice(rehearsal, conduct, lambda stand: stand.conductor.brief(*conduct.ids))
        assert (briefing.step_count, briefing.closing_count, briefing.boundary) == (2, 1, 0)
        assert [ahead.label for ahead in (briefing.next_step, briefing.closing_step, briefing.loop_step)] == [
            "set bl7:a",
            "set bl7:shutter",
            "set bl7:a",
        ]
        assert (briefing.mode, briefing.asks_first, briefing.first_point) == ("Flat", False, None)
        assert rehearsal.progress(conduct).phase == "Walking", "it was taken up"

    async def test_a_conduct_that_is_not_the_live_one_is_none(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)])
        await rehearsal.walked(conduct)
        await rehearsal.conductor.end(*conduct.ids, ConductOutcome(finish=Finish.COMPLETED), closed=True)
        assert await rehearsal.relieved().conductor.brief(*conduct.ids) is None

    async def test_one_that_was_left_too_long_to_begin_is_given_up(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)])
        await rehearsal.time.sleep(301)
        assert await twice(rehearsal, conduct, lambda stand: stand.conductor.brief(*conduct.ids)) is None
        *_, conducted, aborted = rehearsal.events(conduct)
        assert conducted.result.failure.error_class == "ConductStartExpired"
        assert (conducted.result.failure.target, "ConductStartExpired" in aborted.reason) == ("start", True)
        assert (rehearsal.procedure(conduct).status, rehearsal.rows()) == (ProcedureStatus.ABORTED, [])

    async def test_a_pass_that_a_lost_conduct_left_open_is_ended_first(self, rehearsal: Rehearsal) -> None:
        first = await converging(rehearsal)
        await rehearsal.passes.start(*first.ids)
        await self.lose(rehearsal, first)
        conduct = await rehearsal.live(ConductUntilConverged(**CENTRED), first.procedure_id)
        await twice(rehearsal, conduct, lambda stand: stand.conductor.brief(*conduct.ids))
        ended = rehearsal.events(conduct)[-1]
        assert (ended.iteration_index, ended.converged) == (1, None)
        assert ended.reason == "It was left open."

    async def lose(self, rehearsal: Rehearsal, conduct: Live) -> None:
        """Have the engine forget a conduct, and somebody hold the procedure."""
        await rehearsal.do(
            RecordConductEnd(result=given_up(*conduct.ids, "ConductUntilConverged", LOST)), conduct.procedure_id
        )
        await rehearsal.do(HoldProcedure(reason="what was that"), conduct.procedure_id)


class TestBeginningAPass:
    async def test_passes_are_begun_in_order_each_once(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        for expected in (1, 2):
            turn = await twice(rehearsal, conduct, lambda stand: stand.passes.start(*conduct.ids))
            assert turn == PassDecision(verdict=ConductVerdict.DONE, iteration_index=expected)
            assert isinstance(rehearsal.events(conduct)[-1], ProcedureIterationStarted)
            for index in range(2):
                await rehearsal.step(conduct, index, expected)
            await rehearsal.passes.judge(*conduct.ids, expected)

    async def test_where_it_measures_stands_on_the_record(self, rehearsal: Rehearsal) -> None:
        conduct = await searching(rehearsal)
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.start(*conduct.ids))
        assert (turn.iteration_index, turn.point) == (1, FIRST)
        assert rehearsal.events(conduct)[-1].point == FIRST

    @pytest.mark.parametrize(("requests", "verdict"), ASKED)
    async def test_a_request_comes_first(self, rehearsal: Rehearsal, requests: Any, verdict: ConductVerdict) -> None:
        conduct = await converging(rehearsal)
        await asked(rehearsal, conduct, *requests)
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.start(*conduct.ids))
        assert turn == PassDecision(verdict=verdict)

    @pytest.mark.parametrize(("event", "verdict"), RUN_LIVES)
    async def test_and_so_does_the_run(self, rehearsal: Rehearsal, event: Any, verdict: ConductVerdict) -> None:
        run_id = await rehearsal.run()
        conduct = await converging(rehearsal, run_id)
        await rehearsal.happens(run_id, event.model_copy())
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.start(*conduct.ids))
        assert turn == PassDecision(verdict=verdict)

    @pytest.mark.parametrize(("registered", "given", "allowed"), [(None, 2, 2), (2, None, 2), (3, 2, 2), (2, 3, 2)])
    async def test_patience_for_so_many_passes_allows_exactly_so_many(
        self, rehearsal: Rehearsal, registered: int | None, given: int | None, allowed: int
    ) -> None:
        conduct = await converging(rehearsal, cap=given, max_consecutive_unconverged_iterations=registered)
        for _ in range(allowed):
            index = await passed(rehearsal, conduct, 9.0)
            await rehearsal.passes.judge(*conduct.ids, index)
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.start(*conduct.ids))
        assert turn.failure is not None
        assert (turn.verdict, turn.failure.error_class) == (ConductVerdict.FAILED, "ConvergenceIterationCapReached")
        assert (turn.failure.source_kind, turn.failure.target) == ("lifecycle", "abort")
        assert rehearsal.procedure(conduct).iteration_count == allowed

    async def test_no_loop_goes_beyond_ten_thousand_passes(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal, cap=20_000)
        last = ProcedureIterationStarted(iteration_index=10_000)
        ended = ProcedureIterationEnded(iteration_index=10_000, converged=False, reason=None)
        await rehearsal.happens(conduct.procedure_id, last, ended)
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.start(*conduct.ids))
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
        self, rehearsal: Rehearsal, budget: Any, passes: int, waited: float, reason: TerminationReason
    ) -> None:
        conduct = await searching(rehearsal, decide={**GRID, "points_per_axis": 9}, budget=budget)
        for _ in range(passes):
            index = await passed(rehearsal, conduct, 1.0)
            await rehearsal.passes.record_outcome(*conduct.ids, index)
            await rehearsal.passes.advise(*conduct.ids, index, Try())
        await rehearsal.time.sleep(waited)
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.start(*conduct.ids))
        assert turn == PassDecision(verdict=ConductVerdict.DONE, stop=True, termination_reason=reason)
        assert rehearsal.procedure(conduct).iteration_count == passes

    async def test_what_is_left_of_it_is_used(self, rehearsal: Rehearsal) -> None:
        conduct = await searching(rehearsal, budget={"iterations_remaining": 3, "wall_clock_remaining": 60.0})
        await rehearsal.time.sleep(59)
        assert (await rehearsal.passes.start(*conduct.ids)).iteration_index == 1

    async def test_in_a_search_patience_does_not_count(self, rehearsal: Rehearsal) -> None:
        conduct = await searching(rehearsal, max_consecutive_unconverged_iterations=1)
        for _ in range(3):
            index = await passed(rehearsal, conduct, 1.0)
            await rehearsal.passes.record_outcome(*conduct.ids, index)
            await rehearsal.passes.advise(*conduct.ids, index, Try())

    async def test_a_pass_that_the_submitter_may_not_begin_fails(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        assert isinstance(rehearsal.permits, Permits)
        rehearsal.permits.withdrawn.add("StartProcedureIteration")
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.start(*conduct.ids))
        assert turn.failure is not None
        assert (turn.verdict, turn.denied) == (ConductVerdict.FAILED, True)
        assert (turn.failure.source_kind, turn.failure.error_class) == ("lifecycle", "UnauthorizedError")

    async def test_what_has_ended_begins_nothing(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        await rehearsal.relieved().conductor.end(*conduct.ids, STOOD_DOWN, closed=False)
        for stand in (rehearsal, rehearsal.relieved()):
            assert await stand.passes.start(*conduct.ids) == PassDecision(verdict=ConductVerdict.GONE)


class TestJudging:
    @pytest.mark.parametrize(("reading", "converged"), [(0.5, True), (-0.5, True), (0.51, False)])
    async def test_a_pass_is_judged_by_what_it_captured(self, rehearsal: Rehearsal, reading: float, converged: bool) -> None:
        conduct = await converging(rehearsal)
        index = await passed(rehearsal, conduct, reading)
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.judge(*conduct.ids, index))
        assert turn == PassDecision(verdict=ConductVerdict.DONE, converged=converged)
        ended = rehearsal.events(conduct)[-1]
        assert (ended.iteration_index, ended.converged, ended.reason) == (1, converged, None)

    async def test_a_pass_that_captured_nothing_fails(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        await rehearsal.passes.start(*conduct.ids)
        await rehearsal.reach(conduct, conduct.at(2, 1), {})
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.judge(*conduct.ids, 1))
        assert turn.failure is not None
        assert (turn.verdict, turn.failure.error_class) == (ConductVerdict.FAILED, "ComputeMeasurementNotFound")
        assert turn.failure.target == "offset"

    async def test_what_an_earlier_pass_captured_does_not_count(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        index = await passed(rehearsal, conduct, 9.0)
        await rehearsal.passes.judge(*conduct.ids, index)
        await rehearsal.passes.start(*conduct.ids)
        await rehearsal.reach(conduct, conduct.at(2, 2), {})
        assert (await rehearsal.passes.judge(*conduct.ids, 2)).verdict is ConductVerdict.FAILED

    @pytest.mark.parametrize(("requests", "verdict"), ASKED)
    async def test_a_request_comes_first(self, rehearsal: Rehearsal, requests: Any, verdict: ConductVerdict) -> None:
        conduct = await converging(rehearsal)
        index = await passed(rehearsal, conduct, 0.1)
        await asked(rehearsal, conduct, *requests)
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.judge(*conduct.ids, index))
        assert turn == PassDecision(verdict=verdict), "the pass is discarded"

    async def test_what_was_judged_stays_although_somebody_asks_for_a_hold(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        index = await passed(rehearsal, conduct, 0.1)
        turn = await rehearsal.passes.judge(*conduct.ids, index)
        await asked(rehearsal, conduct, HoldProcedure)
        assert await rehearsal.relieved().passes.judge(*conduct.ids, index) == turn

    async def test_a_pass_that_the_submitter_may_not_end_fails(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        index = await passed(rehearsal, conduct, 0.1)
        assert isinstance(rehearsal.permits, Permits)
        rehearsal.permits.withdrawn.add("EndProcedureIteration")
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.judge(*conduct.ids, index))
        assert (turn.verdict, turn.denied) == (ConductVerdict.FAILED, True)

    async def test_what_has_ended_is_not_judged(self, rehearsal: Rehearsal) -> None:
        conduct = await converging(rehearsal)
        index = await passed(rehearsal, conduct, 0.1)
        await rehearsal.relieved().conductor.end(*conduct.ids, STOOD_DOWN, closed=False)
        assert await rehearsal.passes.judge(*conduct.ids, index) == PassDecision(verdict=ConductVerdict.GONE)


class TestOutcomes:
    async def test_what_a_pass_measured_is_recorded_once(self, rehearsal: Rehearsal) -> None:
        conduct = await searching(rehearsal)
        index = await passed(rehearsal, conduct, 7.5)
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.record_outcome(*conduct.ids, index))
        assert turn == PassDecision(verdict=ConductVerdict.DONE)
        recorded = rehearsal.events(conduct)[-1]
        assert (recorded.iteration_index, recorded.point, recorded.succeeded) == (1, FIRST, True)
        assert (recorded.measurements, recorded.actuation_kind) == ((measured("sharpness", 7.5),), "Physical")

    async def test_a_program_has_measured_it_already(self, rehearsal: Rehearsal) -> None:
        found = measured("sharpness", 3.0, units="px")
        rehearsal.compute.seed(("look",), Simulated(measurements=(measured("other", 1.0), found)))
        steps = [setpoint("bl7:a", steered("focus")), compute("look", capture_name="sharpness")]
        conduct = await searching(rehearsal, steps=steps)
        index = await passed(rehearsal, conduct, 0)
        await rehearsal.passes.record_outcome(*conduct.ids, index)
        assert rehearsal.events(conduct)[-1].measurements == (measured("other", 1.0), found)

    async def test_a_pass_that_did_not_measure_it_fails(self, rehearsal: Rehearsal) -> None:
        conduct = await searching(rehearsal)
        await rehearsal.passes.start(*conduct.ids)
        await rehearsal.reach(conduct, conduct.at(2, 1), FIRST)
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.record_outcome(*conduct.ids, 1))
        assert turn.failure is not None
        assert (turn.failure.error_class, turn.failure.target) == ("ComputeMeasurementNotFound", "sharpness")

    @pytest.mark.parametrize(("requests", "verdict"), ASKED)
    async def test_a_request_comes_first(self, rehearsal: Rehearsal, requests: Any, verdict: ConductVerdict) -> None:
        conduct = await searching(rehearsal)
        index = await passed(rehearsal, conduct, 7.5)
        await asked(rehearsal, conduct, *requests)
        turn = await twice(rehearsal, conduct, lambda stand: stand.passes.record_outcome(*conduct.ids, index))
        assert turn == PassDecision(verdict=verdict)

    async def test_what_has_ended_records_nothing(self, rehearsal: Rehearsal) -> None:
        conduct = await searching(rehearsal)
        await rehearsal.relieved().conductor.end(*conduct.ids, STOOD_DOWN, closed=False)
        assert await rehearsal.passes.record_outcome(*conduct.ids, 1) == PassDecision(verdict=ConductVerdict.GONE)
