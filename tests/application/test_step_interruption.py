"""A step that is stopped while it is done: by the engine, by the record, or by a database that cannot be reached."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from baton.application.conduct.compute import JobSpec, JobStatus
from baton.application.conduct.heartbeat import HeartbeatLost
from baton.application.conduct.ledger import BeatReply, BeginResult
from baton.application.control import Control, Fence, Timekeeper, always_open
from baton.application.plant import Substrate
from baton.application.ports import StoreUnavailableError
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.messages import ConductVerdict
from baton.domain.run.run import RunAborted, RunHeld, RunStopped
from baton.infrastructure.compute.in_memory import SimulatedCompute, SimulatedOutcome
from baton.infrastructure.control.routes import RoutedControl
from baton.testing.ledger import MemoryLedger
from tests.support.application.memory_conduct import (
    ENDING,
    HERE,
    ROUTES,
    STOOD_DOWN,
    MemoryConduct,
    OpenedConduct,
    WorkAttempt,
    endless_body,
    failing_body,
    memory_conduct,
)
from tests.support.fast_clock import LoopTime
from tests.support.workflows.step_json import action, compute, setpoint


class TestCallingOff:
    """A step that is stopped from outside while its body runs."""

    async def start_endless_step(
        self, memory: MemoryConduct, attempt: WorkAttempt
    ) -> tuple[OpenedConduct, Any, list[float]]:
        stopped: list[float] = []
        memory.actions["collect"] = endless_body(memory.time, stopped)
        conduct = await memory.open_conduct([action("collect"), setpoint("bl7:a", 1)])
        running = asyncio.create_task(memory.step(conduct, attempt=attempt))
        await memory.time.sleep(2.5)
        return conduct, running, stopped

    async def test_a_try_that_is_followed_by_another_leaves_its_row_alone(self, memory: MemoryConduct) -> None:
        _, running, stopped = await self.start_endless_step(memory, WorkAttempt())
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (stopped, [mark for _, mark, _ in memory.marks()]) == ([2.5], ["in_flight"])

    async def test_a_try_that_the_engine_has_lost_sight_of_is_seen_through_and_the_next_one_waits_for_it(
        self, memory: MemoryConduct
    ) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:x", 10)])
        running = asyncio.create_task(memory.step(conduct, attempt=WorkAttempt(is_abandoned=True)))
        await memory.time.sleep(2.5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        assert [(row["result"], row["attempt"]) for row in memory.rows()] == [("in_flight", 1), ("ok", 1)]

    async def test_what_nobody_waits_for_is_stopped_with_the_process(self, memory: MemoryConduct) -> None:
        _, running, stopped = await self.start_endless_step(memory, WorkAttempt(is_abandoned=True))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await memory.time.sleep(2.0)
        assert stopped == []
        await memory.steps.close()
        assert (stopped, [mark for _, mark, _ in memory.marks()]) == ([4.5], ["in_flight"])

    async def test_work_that_is_not_wanted_any_more_is_settled(self, memory: MemoryConduct) -> None:
        conduct, running, stopped = await self.start_endless_step(memory, WorkAttempt(is_cancelled=True))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert stopped == [2.5]
        row = memory.rows()[-1]
        assert (row["result"], row["error_class"], row["attempt"]) == ("failed", "CancelledError", 1)
        report = await memory.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == "CancelledError"

    async def test_a_job_that_is_not_wanted_any_more_is_cancelled(self, memory: MemoryConduct) -> None:
        memory.compute.seed(("fit",), SimulatedOutcome(until=asyncio.Event()))
        conduct = await memory.open_conduct([compute("fit")])
        running = asyncio.create_task(memory.step(conduct, attempt=WorkAttempt(is_cancelled=True)))
        await memory.time.sleep(2.5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        job_id = str(memory.compute.submissions[0].submission_key)
        assert await memory.compute.await_terminal_state(job_id) is JobStatus.CANCELLED
        assert memory.rows()[-1]["error_class"] == "CancelledError"

    async def test_an_abort_stops_a_body_within_a_second(self, memory: MemoryConduct) -> None:
        conduct, running, stopped = await self.start_endless_step(memory, WorkAttempt())
        await memory.time.sleep(0.1)
        await memory.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
        assert (await running).verdict is ConductVerdict.ABORT
        assert stopped == [3.0], "at its next sign of life"
        row = memory.rows()[-1]
        assert (row["result"], row["error_class"], row["name"]) == ("failed", "CancelledError", "collect")
        again = await memory.step(conduct, attempt=WorkAttempt(is_repeated=True))
        assert (again.verdict, again.failure) == (ConductVerdict.ABORT, None), "also where the first report was lost"

    async def test_a_hold_lets_it_end(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:x", 10), setpoint("bl7:a", 1)])
        running = asyncio.create_task(memory.step(conduct))
        await memory.time.sleep(2.5)
        await memory.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        assert (await running).verdict is ConductVerdict.DONE
        assert (await memory.step(conduct, 1)).verdict is ConductVerdict.HOLD

    @pytest.mark.parametrize(
        ("event", "verdict"),
        [
            (RunAborted(reason="smoke", **ENDING), ConductVerdict.RUN_ABORTED),
            (RunStopped(reason="enough", **ENDING), ConductVerdict.DONE),
            (RunHeld(reason=None, decided_by_decision_id=None), ConductVerdict.DONE),
        ],
    )
    async def test_only_an_abort_of_the_run_stops_a_body(
        self, memory: MemoryConduct, event: Any, verdict: ConductVerdict
    ) -> None:
        run_id = await memory.run()
        conduct = await memory.open_conduct([setpoint("bl7:x", 10)], run_id=run_id)
        running = asyncio.create_task(memory.step(conduct))
        await memory.time.sleep(2.5)
        await memory.append_events(run_id, event.model_copy())
        assert (await running).verdict is verdict

    async def test_the_end_of_the_conduct_stops_a_body(self, memory: MemoryConduct) -> None:
        conduct, running, stopped = await self.start_endless_step(memory, WorkAttempt())
        await memory.conductor.end(conduct.end(STOOD_DOWN, closed=False))
        assert (await running).verdict is ConductVerdict.GONE
        assert stopped == [3.0]

    @pytest.mark.parametrize("called_off", [True, False])
    async def test_a_job_whose_submission_is_cut_off_does_not_run_on(self, time: LoopTime, called_off: bool) -> None:
        class Slow(SimulatedCompute):
            async def submit(self, job: JobSpec, fence: Fence = always_open) -> str:
                job_id = await super().submit(job, fence)
                await asyncio.sleep(20)
                return job_id

        slow = memory_conduct(time, compute=Slow())
        slow.compute.seed(("fit",), SimulatedOutcome(until=asyncio.Event()))
        conduct = await slow.open_conduct([compute("fit")])
        running = asyncio.create_task(slow.step(conduct, attempt=WorkAttempt(called_off)))
        await time.sleep(2.5)
        if called_off:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        else:
            await slow.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
            assert (await running).verdict is ConductVerdict.ABORT
        job_id = str(slow.compute.submissions[0].submission_key)
        assert await slow.compute.await_terminal_state(job_id) is JobStatus.CANCELLED
        assert slow.rows()[-1]["error_class"] == "CancelledError"

    async def test_an_abort_is_over_when_nothing_of_the_job_runs_any_more(self, time: LoopTime) -> None:
        class Stubborn(SimulatedCompute):
            """Its jobs take 8 s to end once they are told to."""

            async def await_terminal_state(self, job_id: str) -> JobStatus:
                status = await super().await_terminal_state(job_id)
                await asyncio.sleep(8)
                ends.append(time.elapsed_seconds)
                return status

        ends: list[float] = []
        stubborn = memory_conduct(time, compute=Stubborn())
        stubborn.compute.seed(("fit",), SimulatedOutcome(until=asyncio.Event()))
        conduct, attempt = await stubborn.open_conduct([compute("fit")]), WorkAttempt()
        running = asyncio.create_task(stubborn.step(conduct, attempt=attempt))
        await time.sleep(2.5)
        await stubborn.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
        assert (await running).verdict is ConductVerdict.ABORT
        assert ends == [time.elapsed_seconds]
        assert attempt.signs >= 10, "it is heard of meanwhile"

    async def test_an_abort_cancels_the_job_that_is_waited_for(self, memory: MemoryConduct) -> None:
        memory.compute.seed(("fit",), SimulatedOutcome(until=asyncio.Event()))
        conduct = await memory.open_conduct([compute("fit")])
        running = asyncio.create_task(memory.step(conduct))
        await memory.time.sleep(2.5)
        await memory.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
        assert (await running).verdict is ConductVerdict.ABORT
        job_id = str(memory.compute.submissions[0].submission_key)
        assert await memory.compute.await_terminal_state(job_id) is JobStatus.CANCELLED
        assert (memory.rows()[-1]["error_class"], memory.rows()[-1]["job_id"]) == ("CancelledError", job_id)

    async def test_a_write_that_was_confirmed_just_then_counts_as_written(
        self, memory: MemoryConduct, time: LoopTime
    ) -> None:
        class Slow(MemoryLedger):
            async def beat(self, *given: Any) -> BeatReply:
                orders = await super().beat(*given)
                await asyncio.sleep(0.5)
                return orders

        slow = memory_conduct(time, make_ledger=Slow)
        conduct = await slow.open_conduct([setpoint("bl7:x", 1.2)])
        running = asyncio.create_task(slow.step(conduct))
        await time.sleep(0.5)
        await slow.do(AbortProcedure(reason="smoke"), conduct.procedure_id)
        assert (await running).verdict is ConductVerdict.DONE
        assert slow.rows()[-1]["result"] == "ok"
        assert (await slow.ledger.tally(conduct.conduct_id, 0)).substrate_writes == {"bl7:x": 1.2}


class Unreachable(MemoryLedger):
    """A ledger whose database comes and goes."""

    down = False

    async def beat(self, *given: Any) -> BeatReply:
        self._refuse()
        return await super().beat(*given)

    async def settle(self, row: Any) -> Mapping[str, Any]:
        self._refuse()
        return await super().settle(row)

    async def begin(self, crossing: Any) -> BeginResult:
        self._refuse()
        return await super().begin(crossing)

    def _refuse(self) -> None:
        if self.down:
            raise StoreUnavailableError("The database cannot be reached.")


class TestAnUnreachableDatabase:
    @pytest.fixture
    def outage(self, memory: MemoryConduct, time: LoopTime) -> MemoryConduct:
        return memory_conduct(time, make_ledger=Unreachable)

    def cut(self, memory: MemoryConduct, down: bool = True) -> None:
        assert isinstance(memory.ledger, Unreachable)
        memory.ledger.down = down

    async def test_a_body_that_is_not_heard_of_for_three_seconds_stops_itself(self, outage: MemoryConduct) -> None:
        stopped: list[float] = []
        outage.actions["collect"] = endless_body(outage.time, stopped)
        conduct = await outage.open_conduct([action("collect")])
        running = asyncio.create_task(outage.step(conduct))
        await outage.time.sleep(10.5)
        self.cut(outage)
        with pytest.raises(HeartbeatLost):
            await running
        assert stopped == [13.0], "ten seconds were heard of"
        assert [mark for _, mark, _ in outage.marks()] == ["in_flight"]

    async def test_an_outage_of_two_seconds_is_nothing(self, outage: MemoryConduct) -> None:
        conduct = await outage.open_conduct([setpoint("bl7:x", 10)])
        running = asyncio.create_task(outage.step(conduct))
        await outage.time.sleep(4.5)
        self.cut(outage)
        await outage.time.sleep(2)
        self.cut(outage, down=False)
        assert (await running).verdict is ConductVerdict.DONE
        assert outage.time.elapsed_seconds == pytest.approx(10, abs=0.1)

    async def test_a_write_that_stopped_itself_is_sent_again(self, outage: MemoryConduct) -> None:
        conduct = await outage.open_conduct([setpoint("bl7:x", 10)])
        running = asyncio.create_task(outage.step(conduct))
        await outage.time.sleep(0.5)
        self.cut(outage)
        with pytest.raises(HeartbeatLost):
            await running
        with pytest.raises(StoreUnavailableError):
            await outage.step(conduct)
        self.cut(outage, down=False)
        assert (await outage.step(conduct)).verdict is ConductVerdict.DONE
        assert [row["attempt"] for row in outage.rows()] == [1, 2, 2]

    async def test_an_action_that_stopped_itself_is_not_done_again(self, outage: MemoryConduct) -> None:
        outage.actions["collect"] = endless_body(outage.time, [])
        conduct = await outage.open_conduct([action("collect")])
        running = asyncio.create_task(outage.step(conduct))
        await outage.time.sleep(0.5)
        self.cut(outage)
        with pytest.raises(HeartbeatLost):
            await running
        self.cut(outage, down=False)
        report = await outage.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == "ActionOutcomeUnknown"

    async def test_an_outcome_is_kept_until_it_can_be_stored(self, outage: MemoryConduct) -> None:
        conduct = await outage.open_conduct([setpoint("bl7:x", 0.5)])
        running = asyncio.create_task(outage.step(conduct))
        await outage.time.sleep(0.1)
        self.cut(outage)
        await outage.time.sleep(60)
        self.cut(outage, down=False)
        assert (await running).verdict is ConductVerdict.DONE
        assert [row["attempt"] for row in outage.rows()] == [1, 1]

    async def test_an_outcome_that_cannot_be_stored_is_no_outcome(self, outage: MemoryConduct) -> None:
        conduct = await outage.open_conduct([setpoint("bl7:x", 0.5)])
        running = asyncio.create_task(outage.step(conduct))
        await outage.time.sleep(0.1)
        self.cut(outage)
        with pytest.raises((StoreUnavailableError, TimeoutError)):
            await running
        self.cut(outage, down=False)
        again = await outage.step(conduct)
        assert again.failure is not None
        assert again.failure.error_class == "StepInterrupted", "it stood still for too long meanwhile"
        assert [row["attempt"] for row in outage.rows()] == [1]

    async def test_a_wait_for_a_job_stops_itself_and_leaves_the_job_alone(self, outage: MemoryConduct) -> None:
        ready = asyncio.Event()
        outage.compute.seed(("fit",), SimulatedOutcome(until=ready))
        conduct = await outage.open_conduct([compute("fit")])
        running = asyncio.create_task(outage.step(conduct))
        await outage.time.sleep(5.5)
        self.cut(outage)
        with pytest.raises(HeartbeatLost):
            await running
        self.cut(outage, down=False)
        ready.set()
        assert (await outage.step(conduct)).verdict is ConductVerdict.DONE
        assert len(outage.compute.submissions) == 1

    async def test_a_body_that_loses_the_database_itself_is_tried_again(self, outage: MemoryConduct) -> None:
        outage.actions["collect"] = failing_body(StoreUnavailableError("The database cannot be reached."))
        conduct = await outage.open_conduct([action("collect")])
        with pytest.raises(StoreUnavailableError):
            await outage.step(conduct)
        assert [mark for _, mark, _ in outage.marks()] == ["in_flight"]


class SlowToConnect(RoutedControl):
    """A control whose channels take their time, in which the process may stand still."""

    connecting = 0.0
    suspend: Callable[[], None] = staticmethod(lambda: None)

    async def write(self, address: str, value: Any, *given: Any, **named: Any) -> None:
        await asyncio.sleep(self.connecting)
        self.suspend()
        await super().write(address, value, *given, **named)


class TestStandingStill:
    """A worker that was suspended, and that others may have taken for lost meanwhile."""

    @pytest.fixture
    def control(self, memory: MemoryConduct) -> SlowToConnect:
        control = SlowToConnect(ROUTES, {Substrate.IN_MEMORY: memory.plant})
        memory.control = control
        memory.steps = memory.worker(HERE)
        return control

    async def test_a_setpoint_that_stood_still_while_it_connected_writes_nothing(
        self, memory: MemoryConduct, control: SlowToConnect, time: LoopTime
    ) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 5)])
        control.connecting, control.suspend = 0.5, lambda: time.suspend(20)
        with pytest.raises(HeartbeatLost):
            await memory.step(conduct)
        assert (await memory.value("bl7:a"), memory.plant.writes) == (0, Counter())
        assert [mark for _, mark, _ in memory.marks()] == ["in_flight"], "the next try finds what it finds"

    async def test_a_setpoint_that_connects_slowly_but_is_heard_of_is_written(
        self, memory: MemoryConduct, control: SlowToConnect
    ) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 5)])
        control.connecting = 4.5
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        assert await memory.value("bl7:a") == 5

    @pytest.mark.parametrize("seconds", [1.0, 20.0])
    async def test_an_action_that_stood_still_between_two_writes_sends_only_what_comes_in_time(
        self, memory: MemoryConduct, time: LoopTime, seconds: float
    ) -> None:
        async def body(control: Control, clock: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
            await control.write("bl7:a", 1)
            time.suspend(seconds)
            with suppress(Exception):
                await control.write("bl7:c", 1)
            return {}

        memory.actions["collect"] = body
        conduct = await memory.open_conduct([action("collect")])
        if seconds < 3:
            assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        else:
            with pytest.raises(HeartbeatLost):
                await memory.step(conduct)
        assert (await memory.value("bl7:a"), await memory.value("bl7:c")) == (1, int(seconds < 3))

    async def test_what_an_action_left_behind_cannot_write_after_the_step(
        self, memory: MemoryConduct, time: LoopTime
    ) -> None:
        left: list[asyncio.Task[None]] = []

        async def body(control: Control, clock: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
            async def later() -> None:
                await clock.sleep(1)
                await control.write("bl7:a", 1)

            left.append(asyncio.create_task(later()))
            return {}

        memory.actions["collect"] = body
        conduct = await memory.open_conduct([action("collect")])
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        with pytest.raises(HeartbeatLost):
            await left[0]
        assert await memory.value("bl7:a") == 0

    async def test_a_program_is_not_begun_by_a_worker_that_stood_still(self, time: LoopTime) -> None:
        class SuspendedCompute(SimulatedCompute):
            async def submit(self, job: JobSpec, fence: Fence = always_open) -> str:
                time.suspend(20)
                return await super().submit(job, fence)

        slept = memory_conduct(time, compute=SuspendedCompute())
        conduct = await slept.open_conduct([compute("fit")])
        with pytest.raises(HeartbeatLost):
            await slept.step(conduct)
        assert slept.compute.submissions == []
