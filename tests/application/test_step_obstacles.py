"""What keeps a step from being done, and what a conduct that goes on finds of an earlier one."""

from typing import Any

import pytest

from baton.application.control import Reading
from baton.domain.operation.conduct.conduct import ConductFromProcedure, ConductOrHoldProcedure, ConductUntilConverged
from baton.domain.operation.conduct.messages import ConductVerdict
from baton.domain.operation.procedure.endings import AbortProcedure, HoldProcedure
from baton.domain.run.run import RunAborted, RunHeld, RunStopped
from tests.application.rehearsal import ENDING, STOOD_DOWN, Live, Rehearsal, Try, nothing_to_do
from tests.workflows.steps import action, capture, captured, check, compute, criterion, setpoint


class TestObstacles:
    async def stopped(self, rehearsal: Rehearsal, conduct: Live, **where: Any) -> ConductVerdict:
        """What a step reports that must not touch anything."""
        before = len(rehearsal.rows())
        report = await rehearsal.step(conduct, **where)
        assert len(rehearsal.rows()) == before
        assert not rehearsal.plant.writes
        return report.verdict

    @pytest.mark.parametrize("step", [setpoint("bl7:a", 3), check("bl7:b", 1.5), capture("bl7:b", "n"), action("act")])
    async def test_a_request_is_served_before_every_kind_of_step(self, rehearsal: Rehearsal, step: Any) -> None:
        conduct = await rehearsal.opened([step])
        await rehearsal.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        assert await self.stopped(rehearsal, conduct) is ConductVerdict.HOLD
        await rehearsal.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
        assert await self.stopped(rehearsal, conduct) is ConductVerdict.ABORT, "an abort counts before a hold"

    async def test_a_request_is_served_before_a_program(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([compute("fit")])
        await rehearsal.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        assert await self.stopped(rehearsal, conduct) is ConductVerdict.HOLD
        assert rehearsal.compute.submissions == []

    async def test_even_a_step_that_would_fail_serves_it_first(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", captured("n"))])
        await rehearsal.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        assert await self.stopped(rehearsal, conduct) is ConductVerdict.HOLD

    async def test_what_was_done_is_told_although_a_hold_is_asked_for(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3), setpoint("bl7:c", 3)])
        await rehearsal.step(conduct)
        await rehearsal.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        assert (await rehearsal.step(conduct)).verdict is ConductVerdict.DONE
        assert (await rehearsal.step(conduct, 1)).verdict is ConductVerdict.HOLD

    async def test_a_hold_is_void_while_closing_and_an_abort_is_not(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:c", 3)], [setpoint("bl7:shutter", 0), setpoint("bl7:a", 0)])
        await rehearsal.reach(conduct, conduct.at(0, closing=True), {})
        await rehearsal.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        assert (await rehearsal.step(conduct, closing=True)).verdict is ConductVerdict.DONE
        await rehearsal.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
        assert (await rehearsal.step(conduct, 1, closing=True)).verdict is ConductVerdict.ABORT

    @pytest.mark.parametrize(
        ("event", "main", "closing"),
        [
            (RunHeld(reason=None, decided_by_decision_id=None), ConductVerdict.RUN_HELD, ConductVerdict.DONE),
            (RunStopped(reason="enough", **ENDING), ConductVerdict.RUN_STOPPED, ConductVerdict.DONE),
            (RunAborted(reason="smoke", **ENDING), ConductVerdict.RUN_ABORTED, ConductVerdict.RUN_ABORTED),
        ],
    )
    async def test_a_phase_follows_its_run(
        self, rehearsal: Rehearsal, event: Any, main: ConductVerdict, closing: ConductVerdict
    ) -> None:
        run_id = await rehearsal.run()
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)], run_id=run_id)
        await rehearsal.happens(run_id, event.model_copy())
        assert await self.stopped(rehearsal, conduct) is main
        assert (await rehearsal.step(conduct, closing=True)).verdict is closing

    async def test_an_abort_of_the_run_counts_before_a_hold_and_a_hold_before_its_stop(self, rehearsal: Rehearsal) -> None:
        run_id = await rehearsal.run()
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], run_id=run_id)
        await rehearsal.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        await rehearsal.happens(run_id, RunStopped(reason="enough", **ENDING))
        assert await self.stopped(rehearsal, conduct) is ConductVerdict.HOLD
        await rehearsal.happens(run_id, RunAborted(reason="smoke", **ENDING))
        assert await self.stopped(rehearsal, conduct) is ConductVerdict.RUN_ABORTED

    async def test_closing_alone_asks_no_run(self, rehearsal: Rehearsal) -> None:
        run_id = await rehearsal.run()
        closing = [setpoint("bl7:shutter", 0)]
        first = await rehearsal.opened([setpoint("bl7:a", 3)], closing, how=ConductOrHoldProcedure, run_id=run_id)
        await rehearsal.conductor.end(*first.ids, STOOD_DOWN, closed=False)
        await rehearsal.happens(run_id, RunAborted(reason="smoke", **ENDING))
        only = await rehearsal.live(AbortProcedure(reason="put it away", run_closing=True), first.procedure_id)
        assert (await rehearsal.step(only, closing=True)).verdict is ConductVerdict.DONE
        assert await rehearsal.value("bl7:shutter") == 0

    async def test_a_conduct_that_has_ended_touches_nothing(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3), compute("fit")])
        await rehearsal.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
        await rehearsal.conductor.end(*conduct.ids, STOOD_DOWN, closed=False)
        assert await self.stopped(rehearsal, conduct, step_index=0) is ConductVerdict.GONE
        assert await self.stopped(rehearsal, conduct, step_index=1) is ConductVerdict.GONE
        report = await rehearsal.steps.collect(conduct.score, conduct.at(1), {}, "7", Try())
        assert report.verdict is ConductVerdict.GONE

    @pytest.mark.parametrize("step", [setpoint("bl7:a", 3), check("bl7:b", 1.5), action("act"), capture("bl7:b", "n")])
    async def test_whoever_stood_still_for_too_long_touches_nothing(self, rehearsal: Rehearsal, step: Any) -> None:
        conduct = await rehearsal.opened([step])
        await rehearsal.time.sleep(301)
        report = await rehearsal.step(conduct)
        assert report.failure is not None
        assert (report.verdict, report.failure.error_class) == (ConductVerdict.FAILED, "StepInterrupted")
        assert (report.failure.source_kind, rehearsal.rows()) == (step["kind"], [])

    async def test_a_checks_own_wait_is_granted_on_top(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([check("bl7:b", 1.5, timeout=60.0)])
        await rehearsal.time.sleep(350)
        assert (await rehearsal.step(conduct)).verdict is ConductVerdict.DONE

    async def test_closing_is_never_too_late(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)])
        await rehearsal.time.sleep(10_000)
        assert (await rehearsal.step(conduct, closing=True)).verdict is ConductVerdict.DONE


class TestGoingOn:
    """A conduct that takes up where an earlier one was held."""

    async def test_what_was_captured_before_the_boundary_is_still_there(self, rehearsal: Rehearsal) -> None:
        steps = [capture("bl7:b", "n"), setpoint("bl7:a", 1), setpoint("bl7:c", captured("n"))]
        first = await rehearsal.opened(steps)
        await rehearsal.step(first, 0)
        conduct = await self.taken_up(rehearsal, first, 2)
        assert (await rehearsal.step(conduct, 2)).verdict is ConductVerdict.DONE
        assert await rehearsal.value("bl7:c") == 1.5

    async def test_what_was_captured_behind_it_is_captured_anew(self, rehearsal: Rehearsal) -> None:
        first = await rehearsal.opened([capture("bl7:b", "n"), setpoint("bl7:c", captured("n"))])
        await rehearsal.step(first, 0)
        rehearsal.plant.set_reading("bl7:b", Reading(value=9.0))
        conduct = await self.taken_up(rehearsal, first, 0)
        report = await rehearsal.step(conduct, 1)
        assert report.failure is not None
        assert report.failure.error_class == "UnresolvedCaptureRef"
        other = await self.taken_up(rehearsal, conduct, 0)
        assert (await rehearsal.step(other, 0)).verdict is ConductVerdict.DONE
        await rehearsal.step(other, 1)
        assert await rehearsal.value("bl7:c") == 9.0

    async def test_what_was_published_before_the_boundary_is_still_there(self, rehearsal: Rehearsal) -> None:
        reducing = compute("reduce", output_uri="file:///a.h5", output_ref_name="reduced")
        first = await rehearsal.opened(
            [
                reducing,
                compute("fit", input_uris=[{"__output__": "reduced"}], output_uri="file:///b.h5", output_ref_name="fitted"),
            ]
        )
        await rehearsal.step(first, 0)
        conduct = await self.taken_up(rehearsal, first, 1)
        assert (await rehearsal.step(conduct, 1)).verdict is ConductVerdict.DONE
        assert rehearsal.compute.submissions[-1].input_uris == ("file:///a.h5",)

    @pytest.mark.parametrize("step", [action("collect"), compute("fit")])
    async def test_what_was_begun_is_not_begun_again(self, rehearsal: Rehearsal, step: Any) -> None:
        first = await rehearsal.opened([step, setpoint("bl7:a", 1)])
        await rehearsal.step(first, 0)
        conduct = await self.taken_up(rehearsal, first, 0)
        before = len(rehearsal.rows())
        assert (await rehearsal.step(conduct, 0)).verdict is ConductVerdict.HALT
        assert len(rehearsal.rows()) == before

    @pytest.mark.parametrize("step", [action("collect"), compute("fit")])
    async def test_what_never_was_is_done(self, rehearsal: Rehearsal, step: Any) -> None:
        first = await rehearsal.opened([setpoint("bl7:a", 1), step])
        await rehearsal.step(first, 0)
        rehearsal.actions["collect"] = nothing_to_do
        conduct = await self.taken_up(rehearsal, first, 0)
        assert (await rehearsal.step(conduct, 1)).verdict is ConductVerdict.DONE

    async def test_setpoints_are_written_again_and_checks_judged_anew(self, rehearsal: Rehearsal) -> None:
        first = await rehearsal.opened([setpoint("bl7:a", 1), check("bl7:b", 1.5)])
        for index in range(2):
            await rehearsal.step(first, index)
        rehearsal.plant.set_reading("bl7:b", Reading(value=9.0))
        conduct = await self.taken_up(rehearsal, first, 0)
        assert (await rehearsal.step(conduct, 0)).verdict is ConductVerdict.DONE
        assert (await rehearsal.step(conduct, 1)).verdict is ConductVerdict.FAILED
        assert rehearsal.plant.writes["bl7:a"] == 2

    async def taken_up(self, rehearsal: Rehearsal, first: Live, boundary: int) -> Live:
        await rehearsal.do(HoldProcedure(reason="shift change"), first.procedure_id)
        await rehearsal.conductor.end(*first.ids, STOOD_DOWN, closed=False)
        again = ConductFromProcedure(re_establishment_boundary=boundary, skip=True, skip_reason="done by hand")
        return await rehearsal.live(again, first.procedure_id)

    async def test_each_pass_of_a_loop_captures_for_itself_and_closing_has_the_last(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened(
            [capture("bl7:b", "n"), setpoint("bl7:a", captured("n"))],
            [setpoint("bl7:c", captured("n"))],
            ConductUntilConverged,
            conduct={"convergence_capture_name": "n", "criterion": criterion(0, 0.5)},
        )
        for iteration, reading in enumerate([3.2, 0.9], 1):
            rehearsal.plant.set_reading("bl7:b", Reading(value=reading))
            for index in range(2):
                assert (await rehearsal.step(conduct, index, iteration)).verdict is ConductVerdict.DONE
        assert (await rehearsal.step(conduct, closing=True)).verdict is ConductVerdict.DONE
        assert (await rehearsal.value("bl7:a"), await rehearsal.value("bl7:c")) == (0.9, 0.9)
