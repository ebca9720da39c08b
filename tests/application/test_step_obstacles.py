"""What keeps a step from being done, and what a conduct that goes on finds of an earlier one."""

from typing import Any

import pytest

from baton.application.control import Reading
from baton.domain.operation.conduct.conduct import ConductFromProcedure, ConductOrHoldProcedure, ConductUntilConverged
from baton.domain.operation.conduct.messages import ConductVerdict, JobRequest
from baton.domain.operation.procedure.endings import AbortProcedure, HoldProcedure
from baton.domain.run.run import RunAborted, RunHeld, RunStopped
from tests.support.application.memory_conduct import (
    ENDING,
    STOOD_DOWN,
    MemoryConduct,
    OpenedConduct,
    WorkAttempt,
    finish_at_once,
)
from tests.support.workflows.step_json import action, capture, captured_value, check, compute, criterion, setpoint


class TestObstacles:
    async def verdict_of_untouched_step(self, memory: MemoryConduct, conduct: OpenedConduct, **where: Any) -> ConductVerdict:
        """What a step reports that must not touch anything."""
        before = len(memory.rows())
        report = await memory.step(conduct, **where)
        assert len(memory.rows()) == before
        assert not memory.plant.writes
        return report.verdict

    @pytest.mark.parametrize("step", [setpoint("bl7:a", 3), check("bl7:b", 1.5), capture("bl7:b", "n"), action("act")])
    async def test_a_request_is_served_before_every_kind_of_step(self, memory: MemoryConduct, step: Any) -> None:
        conduct = await memory.open_conduct([step])
        await memory.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        assert await self.verdict_of_untouched_step(memory, conduct) is ConductVerdict.HOLD
        await memory.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
        assert await self.verdict_of_untouched_step(memory, conduct) is ConductVerdict.ABORT, "an abort counts before a hold"

    async def test_a_request_is_served_before_a_program(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([compute("fit")])
        await memory.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        assert await self.verdict_of_untouched_step(memory, conduct) is ConductVerdict.HOLD
        assert memory.compute.submissions == []

    async def test_even_a_step_that_would_fail_serves_it_first(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", captured_value("n"))])
        await memory.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        assert await self.verdict_of_untouched_step(memory, conduct) is ConductVerdict.HOLD

    async def test_what_was_done_is_told_although_a_hold_is_asked_for(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3), setpoint("bl7:c", 3)])
        await memory.step(conduct)
        await memory.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        assert (await memory.step(conduct, 1)).verdict is ConductVerdict.HOLD

    async def test_a_hold_is_void_while_closing_and_an_abort_is_not(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:c", 3)], [setpoint("bl7:shutter", 0), setpoint("bl7:a", 0)])
        await memory.reach(conduct, conduct.at(0, closing=True), {})
        await memory.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        assert (await memory.step(conduct, closing=True)).verdict is ConductVerdict.DONE
        await memory.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
        assert (await memory.step(conduct, 1, closing=True)).verdict is ConductVerdict.ABORT

    @pytest.mark.parametrize(
        ("event", "main", "closing"),
        [
            (RunHeld(reason=None, decided_by_decision_id=None), ConductVerdict.RUN_HELD, ConductVerdict.DONE),
            (RunStopped(reason="enough", **ENDING), ConductVerdict.RUN_STOPPED, ConductVerdict.DONE),
            (RunAborted(reason="smoke", **ENDING), ConductVerdict.RUN_ABORTED, ConductVerdict.RUN_ABORTED),
        ],
    )
    async def test_a_phase_follows_its_run(
        self, memory: MemoryConduct, event: Any, main: ConductVerdict, closing: ConductVerdict
    ) -> None:
        run_id = await memory.run()
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)], run_id=run_id)
        await memory.append_events(run_id, event.model_copy())
        assert await self.verdict_of_untouched_step(memory, conduct) is main
        assert (await memory.step(conduct, closing=True)).verdict is closing

    async def test_an_abort_of_the_run_counts_before_a_hold_and_a_hold_before_its_stop(self, memory: MemoryConduct) -> None:
        run_id = await memory.run()
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], run_id=run_id)
        await memory.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        await memory.append_events(run_id, RunStopped(reason="enough", **ENDING))
        assert await self.verdict_of_untouched_step(memory, conduct) is ConductVerdict.HOLD
        await memory.append_events(run_id, RunAborted(reason="smoke", **ENDING))
        assert await self.verdict_of_untouched_step(memory, conduct) is ConductVerdict.RUN_ABORTED

    async def test_closing_alone_asks_no_run(self, memory: MemoryConduct) -> None:
        run_id = await memory.run()
        closing = [setpoint("bl7:shutter", 0)]
        first = await memory.open_conduct([setpoint("bl7:a", 3)], closing, how=ConductOrHoldProcedure, run_id=run_id)
        await memory.conductor.end(first.end(STOOD_DOWN, closed=False))
        await memory.append_events(run_id, RunAborted(reason="smoke", **ENDING))
        only = await memory.live(AbortProcedure(reason="put it away", run_closing=True), first.procedure_id)
        assert (await memory.step(only, closing=True)).verdict is ConductVerdict.DONE
        assert await memory.value("bl7:shutter") == 0

    async def test_a_conduct_that_has_ended_touches_nothing(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3), compute("fit")])
        await memory.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
        await memory.conductor.end(conduct.end(STOOD_DOWN, closed=False))
        assert await self.verdict_of_untouched_step(memory, conduct, step_index=0) is ConductVerdict.GONE
        assert await self.verdict_of_untouched_step(memory, conduct, step_index=1) is ConductVerdict.GONE
        report = await memory.steps.collect(JobRequest(place=conduct.at(1), job_id="7"), WorkAttempt())
        assert report.verdict is ConductVerdict.GONE

    @pytest.mark.parametrize("step", [setpoint("bl7:a", 3), check("bl7:b", 1.5), action("act"), capture("bl7:b", "n")])
    async def test_a_worker_that_stood_still_for_too_long_touches_nothing(self, memory: MemoryConduct, step: Any) -> None:
        conduct = await memory.open_conduct([step])
        await memory.time.sleep(301)
        report = await memory.step(conduct)
        assert report.failure is not None
        assert (report.verdict, report.failure.error_class) == (ConductVerdict.FAILED, "StepInterrupted")
        assert (report.failure.source_kind, memory.rows()) == (step["kind"], [])

    async def test_a_checks_own_wait_is_granted_on_top(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([check("bl7:b", 1.5, timeout=60.0)])
        await memory.time.sleep(350)
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE

    async def test_closing_is_never_too_late(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], [setpoint("bl7:shutter", 0)])
        await memory.time.sleep(10_000)
        assert (await memory.step(conduct, closing=True)).verdict is ConductVerdict.DONE


class TestGoingOn:
    """A conduct that takes up where an earlier one was held."""

    async def test_what_was_captured_before_the_boundary_is_still_there(self, memory: MemoryConduct) -> None:
        steps = [capture("bl7:b", "n"), setpoint("bl7:a", 1), setpoint("bl7:c", captured_value("n"))]
        first = await memory.open_conduct(steps)
        await memory.step(first, 0)
        conduct = await self.taken_up(memory, first, 2)
        assert (await memory.step(conduct, 2)).verdict is ConductVerdict.DONE
        assert await memory.value("bl7:c") == 1.5

    async def test_what_was_captured_behind_it_is_captured_anew(self, memory: MemoryConduct) -> None:
        first = await memory.open_conduct([capture("bl7:b", "n"), setpoint("bl7:c", captured_value("n"))])
        await memory.step(first, 0)
        memory.plant.set_reading("bl7:b", Reading(value=9.0))
        conduct = await self.taken_up(memory, first, 0)
        report = await memory.step(conduct, 1)
        assert report.failure is not None
        assert report.failure.error_class == "UnresolvedCaptureRef"
        other = await self.taken_up(memory, conduct, 0)
        assert (await memory.step(other, 0)).verdict is ConductVerdict.DONE
        await memory.step(other, 1)
        assert await memory.value("bl7:c") == 9.0

    async def test_what_was_published_before_the_boundary_is_still_there(self, memory: MemoryConduct) -> None:
        reducing = compute("reduce", output_uri="file:///a.h5", output_ref_name="reduced")
        first = await memory.open_conduct(
            [
                reducing,
                compute("fit", input_uris=[{"__output__": "reduced"}], output_uri="file:///b.h5", output_ref_name="fitted"),
            ]
        )
        await memory.step(first, 0)
        conduct = await self.taken_up(memory, first, 1)
        assert (await memory.step(conduct, 1)).verdict is ConductVerdict.DONE
        assert memory.compute.submissions[-1].input_uris == ("file:///a.h5",)

    @pytest.mark.parametrize("step", [action("collect"), compute("fit")])
    async def test_what_was_begun_is_not_begun_again(self, memory: MemoryConduct, step: Any) -> None:
        first = await memory.open_conduct([step, setpoint("bl7:a", 1)])
        await memory.step(first, 0)
        conduct = await self.taken_up(memory, first, 0)
        before = len(memory.rows())
        assert (await memory.step(conduct, 0)).verdict is ConductVerdict.HALT
        assert len(memory.rows()) == before

    @pytest.mark.parametrize("step", [action("collect"), compute("fit")])
    async def test_what_never_was_is_done(self, memory: MemoryConduct, step: Any) -> None:
        first = await memory.open_conduct([setpoint("bl7:a", 1), step])
        await memory.step(first, 0)
        memory.actions["collect"] = finish_at_once
        conduct = await self.taken_up(memory, first, 0)
        assert (await memory.step(conduct, 1)).verdict is ConductVerdict.DONE

    async def test_setpoints_are_written_again_and_checks_judged_anew(self, memory: MemoryConduct) -> None:
        first = await memory.open_conduct([setpoint("bl7:a", 1), check("bl7:b", 1.5)])
        for index in range(2):
            await memory.step(first, index)
        memory.plant.set_reading("bl7:b", Reading(value=9.0))
        conduct = await self.taken_up(memory, first, 0)
        assert (await memory.step(conduct, 0)).verdict is ConductVerdict.DONE
        assert (await memory.step(conduct, 1)).verdict is ConductVerdict.FAILED
        assert memory.plant.writes["bl7:a"] == 2

    async def taken_up(self, memory: MemoryConduct, first: OpenedConduct, boundary: int) -> OpenedConduct:
        await memory.do(HoldProcedure(reason="shift change"), first.procedure_id)
        await memory.conductor.end(first.end(STOOD_DOWN, closed=False))
        again = ConductFromProcedure(re_establishment_boundary=boundary, skip=True, skip_reason="done by hand")
        return await memory.live(again, first.procedure_id)

    async def test_each_pass_of_a_loop_captures_for_itself_and_closing_has_the_last(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct(
            [capture("bl7:b", "n"), setpoint("bl7:a", captured_value("n"))],
            [setpoint("bl7:c", captured_value("n"))],
            ConductUntilConverged,
            conduct={"convergence_capture_name": "n", "criterion": criterion(0, 0.5)},
        )
        for iteration, reading in enumerate([3.2, 0.9], 1):
            memory.plant.set_reading("bl7:b", Reading(value=reading))
            for index in range(2):
                assert (await memory.step(conduct, index, iteration)).verdict is ConductVerdict.DONE
        assert (await memory.step(conduct, closing=True)).verdict is ConductVerdict.DONE
        assert (await memory.value("bl7:a"), await memory.value("bl7:c")) == (0.9, 0.9)
