"""What keeps a step from being done, and what a conduct that goes on finds of an earlier one."""

from typing import Any

import pytest

from baton.application.authorization import PrincipalStatuses
from baton.application.control import Reading
from baton.domain.access.actor import ActorDeactivated, ActorKind, ActorRegistered
from baton.domain.conduct.conduct import ConductFromProcedure, ConductOrHoldProcedure, ConductUntilConverged
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.messages import ConductVerdict, JobRequest, StepRequest, StretchRequest
from baton.domain.conduct.signals import ConductSignals
from baton.domain.procedure.procedure import PendingRequest, ProcedureIterationEnded
from baton.domain.run.run import RunAborted, RunHeld, RunStatus, RunStopped
from baton.testing.store import MemoryStore
from tests.support.application.loop_cases import FIRST, open_search
from tests.support.application.memory_conduct import (
    ENDING,
    STOOD_DOWN,
    MemoryConduct,
    OpenedConduct,
    RevocablePermits,
    WorkAttempt,
    finish_at_once,
    memory_conduct,
)
from tests.support.domain.run_lives import LIVES_OF_RUNS, run_events
from tests.support.fast_clock import LoopTime
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

    @pytest.mark.parametrize("life", LIVES_OF_RUNS)
    async def test_whatever_happened_to_it_the_run_is_looked_at_as_it_stands(self, memory: MemoryConduct, life: str) -> None:
        status, run_id = LIVES_OF_RUNS[life][1], await memory.run()
        conduct = await memory.open_conduct([setpoint("bl7:c", 3)], [setpoint("bl7:shutter", 0)], run_id=run_id)
        for event in run_events(life):
            await memory.append_events(run_id, event)
        verdict = ConductSignals(run=status).verdict or ConductVerdict.DONE
        assert (await memory.step(conduct)).verdict is verdict
        assert (await memory.step(conduct, closing=True)).verdict is (
            ConductVerdict.RUN_ABORTED if status is RunStatus.ABORTED else ConductVerdict.DONE
        )

    @pytest.mark.parametrize("stretch", [False, True])
    async def test_a_pass_is_the_open_one_and_measures_where_it_was_begun(
        self, memory: MemoryConduct, stretch: bool
    ) -> None:
        conduct = await open_search(memory)

        async def verdict_of(iteration_index: int, point: Any) -> ConductVerdict:
            at: dict[str, Any] = {"place": conduct.at(0, iteration_index), "point": point}
            if stretch:
                return (await memory.steps.do_stretch(StretchRequest(**at, count=2), WorkAttempt())).verdict
            return (await memory.steps.do(StepRequest(**at), WorkAttempt())).verdict

        assert await verdict_of(1, FIRST) is ConductVerdict.GONE, "no pass was begun"
        await memory.passes.start(conduct.request)
        for iteration_index, point in [(2, FIRST), (1, {}), (1, {"focus": 1.5})]:
            assert await verdict_of(iteration_index, point) is ConductVerdict.GONE
        assert (memory.rows(), dict(memory.plant.writes)) == ([], {})
        assert await verdict_of(1, {"focus": -2}) is ConductVerdict.DONE
        ended = ProcedureIterationEnded(iteration_index=1, converged=None, reason=None)
        await memory.append_events(conduct.procedure_id, ended)
        assert await verdict_of(1, FIRST) is ConductVerdict.GONE

    async def test_what_is_asked_of_another_conduct_is_no_hindrance(self, memory: MemoryConduct) -> None:
        conduct, other = [await memory.open_conduct([setpoint("bl7:a", 3)]) for _ in range(2)]
        await memory.do(AbortProcedure(reason="smoke"), other.procedure_id)
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE

    @pytest.mark.parametrize("requests", [(), (HoldProcedure,), (AbortProcedure,), (HoldProcedure, AbortProcedure)])
    @pytest.mark.parametrize("life", [None, "running", "held", "aborted"])
    async def test_work_in_progress_hears_what_the_record_says(
        self, memory: MemoryConduct, requests: Any, life: str | None
    ) -> None:
        run_id = None if life is None else await memory.run()
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], run_id=run_id)
        watch, place = memory.conductor.watch, conduct.at(0)
        before = await watch.beat(memory.ledger, conduct.plan, place, None)
        assert before == ConductSignals(run=None if life is None else RunStatus.RUNNING)
        for command in requests:
            await memory.do(command(reason="smoke"), conduct.procedure_id)
        if life is not None and run_id is not None:
            for event in run_events(life):
                await memory.append_events(run_id, event)
        asked = {(): None, (HoldProcedure,): PendingRequest.HOLD}.get(requests, PendingRequest.ABORT)
        expected = ConductSignals(asked=asked, run=None if life is None else LIVES_OF_RUNS[life][1])
        assert await watch.beat(memory.ledger, conduct.plan, place, None) == expected
        assert await watch.signals(memory.ledger, conduct.plan) == expected

    async def test_work_in_progress_hears_that_it_is_not_live_any_more(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)])
        await memory.conductor.end(conduct.end(STOOD_DOWN))
        heard = await memory.other_worker().conductor.watch.beat(memory.ledger, conduct.plan, conduct.at(0), None)
        assert heard.verdict is ConductVerdict.GONE

    async def test_work_in_progress_hears_what_became_of_its_submitter(self, time: LoopTime) -> None:
        store = MemoryStore()
        memory = memory_conduct(time, store=store, permits=RevocablePermits(PrincipalStatuses(store)))
        await memory.append_events(memory.caller.principal_id, ActorRegistered(kind=ActorKind.HUMAN))
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)])
        watch = memory.conductor.watch
        assert (await watch.beat(memory.ledger, conduct.plan, conduct.at(0), None)).objection is None
        await memory.append_events(memory.caller.principal_id, ActorDeactivated())
        heard = await watch.beat(memory.ledger, conduct.plan, conduct.at(0), None)
        assert (heard.objection, heard.verdict) == ("principal_deactivated", ConductVerdict.STOOD_DOWN)

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
