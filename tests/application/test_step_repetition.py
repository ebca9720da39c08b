"""A step that was begun before: what the ledger and the other workers say decides whether it is done again."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from baton.application.conduct.compute import JobSpec
from baton.application.conduct.heartbeat import HeartbeatLost
from baton.application.conduct.ledger import BeginResult
from baton.application.control import Control, Fence, Timekeeper, always_open
from baton.domain.conduct.endings import HoldProcedure
from baton.domain.conduct.messages import ConductVerdict, JobRequest, StepRequest
from baton.infrastructure.compute.in_memory import SimulatedCompute, SimulatedOutcome
from baton.infrastructure.control.simulator import SimulatedFault
from baton.testing.ledger import MemoryLedger
from tests.support.application.memory_conduct import (
    ELSEWHERE,
    HERE,
    MemoryConduct,
    OpenedConduct,
    WorkAttempt,
    endless_body,
    failing_body,
    finish_at_once,
    measurement,
    memory_conduct,
)
from tests.support.fast_clock import LoopTime
from tests.support.workflows.step_json import action, capture, check, compute, setpoint


class TestWorkerLoss:
    """A row that says a step was begun, and nothing that says what came of it."""

    async def lost(
        self, memory: MemoryConduct, conduct: OpenedConduct, after: float = 0.5, step_index: int = 0, name: str = ELSEWHERE
    ) -> None:
        """Have another worker begin a step, and cut it off after so many seconds."""
        cut = asyncio.create_task(memory.step(conduct, step_index, by=memory.worker(name)))
        await memory.time.sleep(after)
        cut.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cut
        assert memory.marks()[-1][1] == "in_flight"

    async def test_a_write_of_a_dead_worker_is_sent_again_at_once(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:x", 10)])
        await self.lost(memory, conduct)
        memory.dead.add(ELSEWHERE)
        report = await memory.step(conduct)
        assert report.verdict is ConductVerdict.DONE
        assert memory.time.elapsed_seconds == pytest.approx(10.1, abs=0.6)
        told = [(row["attempt"], row["result"], row.get("worker")) for row in memory.rows()]
        assert told == [(1, "in_flight", ELSEWHERE), (2, "in_flight", HERE), (2, "ok", None)]
        assert memory.plant.writes["bl7:x"] == 2

    async def test_a_failure_names_the_attempts_that_may_have_been_written(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:x", 10)])
        await self.lost(memory, conduct)
        memory.dead.add(ELSEWHERE)
        memory.plant.simulate_disconnect("bl7:x")
        report = await memory.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == "ControlNotConnectedError"
        assert report.failure.message.endswith("Attempt 1 may have been written; look at the equipment.")
        written = (await memory.ledger.tally(conduct.conduct_id, 0)).substrate_writes
        assert written == {"bl7:x": {"outcome": "unknown", "values": [10]}}

    async def test_a_write_that_was_sent_and_not_confirmed_says_so_too(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 1), setpoint("bl7:a", 2)])
        await memory.step(conduct)
        memory.plant.simulate_fault("bl7:a", SimulatedFault.SILENT)
        report = await memory.step(conduct, 1)
        assert report.failure is not None
        assert report.failure.error_class == "ControlTimeoutError"
        assert "Attempt 1 may have been written" in report.failure.message
        written = (await memory.ledger.tally(conduct.conduct_id, 0)).substrate_writes
        assert written == {"bl7:a": {"outcome": "unknown", "values": [1, 2]}}

    async def test_a_write_that_came_too_late_to_be_sent_again_does_not_say_that_nothing_was_touched(
        self, memory: MemoryConduct
    ) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:x", 10)])
        await self.lost(memory, conduct)
        memory.dead.add(ELSEWHERE)
        await memory.time.sleep(400)
        report = await memory.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == "StepInterrupted"
        assert "an attempt at it may have been written" in report.failure.message

    async def test_a_write_of_this_worker_that_was_cut_off_is_sent_again_at_once(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:x", 10)])
        cut = asyncio.create_task(memory.step(conduct))
        await memory.time.sleep(0.5)
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        await memory.step(conduct)
        assert [row["attempt"] for row in memory.rows()] == [1, 2, 2]
        assert memory.time.elapsed_seconds < 12

    async def test_a_write_of_somebody_who_fell_silent_is_sent_again_after_four_seconds(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:x", 10)])
        await self.lost(memory, conduct)
        attempt = WorkAttempt()
        await memory.step(conduct, attempt=attempt)
        _, again, done = memory.activities()
        assert (again.occurred_at - memory.activities()[0].occurred_at).total_seconds() == pytest.approx(4.3, abs=0.3)
        assert (again.attempt, done.attempt, done.payload["result"]) == (2, 2, "ok")
        assert attempt.signs > 12, "a worker that waits is alive"

    async def test_a_write_of_somebody_who_is_heard_of_is_waited_for(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:x", 20)])
        first = asyncio.create_task(memory.step(conduct, by=memory.worker()))
        await memory.time.sleep(5)
        second = await memory.step(conduct)
        assert second == await first
        assert memory.time.elapsed_seconds == pytest.approx(20, abs=0.5)
        assert memory.plant.writes["bl7:x"] == 1

    async def test_a_hold_is_served_instead_of_sending_a_write_again(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:x", 10)])
        await self.lost(memory, conduct)
        waiting = asyncio.create_task(memory.step(conduct))
        await memory.time.sleep(2)
        await memory.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        assert (await waiting).verdict is ConductVerdict.HOLD
        assert memory.plant.writes["bl7:x"] == 1

    async def test_a_hold_is_not_in_force_while_somebody_else_still_moves(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:x", 10)])
        first = asyncio.create_task(memory.step(conduct, by=memory.worker()))
        await memory.time.sleep(5)
        await memory.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        second = await memory.step(conduct)
        assert (second.verdict, first.done()) == (ConductVerdict.DONE, True)
        assert memory.plant.writes["bl7:x"] == 1

    async def test_a_worker_that_hears_too_late_that_it_may_begin_does_not(self, time: LoopTime) -> None:
        """Somebody else may have taken it for lost meanwhile, and have gone on to later steps."""

        class Tardy(MemoryLedger):
            late = True

            async def begin(self, crossing: Any) -> BeginResult:
                standing = await super().begin(crossing)
                if self.late:
                    await asyncio.sleep(4)
                return standing

        tardy = memory_conduct(time, make_ledger=Tardy)
        conduct = await tardy.open_conduct([setpoint("bl7:x", 1)])
        with pytest.raises(HeartbeatLost):
            await tardy.step(conduct)
        assert tardy.plant.writes["bl7:x"] == 0
        tardy.ledger.late = False  # type: ignore[attr-defined]
        assert (await tardy.step(conduct)).verdict is ConductVerdict.DONE
        assert [row["attempt"] for row in tardy.rows()] == [1, 2, 2]

    async def test_what_was_done_is_not_unknown_because_it_could_not_be_stored_at_once(self, time: LoopTime) -> None:
        class Stuck(MemoryLedger):
            async def settle(self, row: Any) -> Mapping[str, Any]:
                await mended.wait()
                return await super().settle(row)

        mended, stuck = asyncio.Event(), memory_conduct(time, make_ledger=Stuck)
        stuck.actions["collect"] = finish_at_once
        conduct = await stuck.open_conduct([action("collect")])
        first = asyncio.create_task(stuck.step(conduct))
        await time.sleep(20)
        second = asyncio.create_task(stuck.step(conduct))
        await time.sleep(20)
        assert not second.done()
        mended.set()
        assert (await second).verdict is (await first).verdict is ConductVerdict.DONE

    @pytest.mark.parametrize("known_dead", [True, False])
    async def test_an_action_is_not_done_again(self, memory: MemoryConduct, known_dead: bool) -> None:
        begun: list[str] = []

        async def collect(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
            begun.append("once")
            await time.sleep(100)
            return {}

        memory.actions["collect"] = collect
        conduct = await memory.open_conduct([action("collect")])
        await self.lost(memory, conduct, after=2.5)
        if known_dead:
            memory.dead.add(ELSEWHERE)
        report = await memory.step(conduct)
        assert report.failure is not None
        assert (report.verdict, report.failure.error_class) == (ConductVerdict.FAILED, "ActionOutcomeUnknown")
        assert begun == ["once"]
        assert memory.time.elapsed_seconds == pytest.approx(2.5 if known_dead else 6.5, abs=0.3), "silent for four seconds"
        assert memory.marks() == [("action", "in_flight", "in_flight"), ("action", "outcome", "failed")]
        assert await memory.step(conduct) == report

    async def test_an_action_of_somebody_who_is_heard_of_is_waited_for(self, memory: MemoryConduct) -> None:
        begun: list[str] = []

        async def collect(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
            begun.append("once")
            await time.sleep(100)
            return {"frames": 3}

        memory.actions["collect"] = collect
        conduct = await memory.open_conduct([action("collect")])
        first = asyncio.create_task(memory.step(conduct, by=memory.worker()))
        await memory.time.sleep(5)
        second = await memory.step(conduct)
        assert (second, begun) == (await first, ["once"])
        assert memory.rows()[-1]["result_data"] == {"frames": 3}

    async def test_an_unknown_outcome_is_told_although_a_hold_is_asked_for(self, memory: MemoryConduct) -> None:
        memory.actions["collect"] = endless_body(memory.time, [])
        conduct = await memory.open_conduct([action("collect")])
        await self.lost(memory, conduct)
        memory.dead.add(ELSEWHERE)
        await memory.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        report = await memory.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == "ActionOutcomeUnknown"

    async def test_two_tries_at_once_in_one_worker_do_it_once(self, memory: MemoryConduct, time: LoopTime) -> None:
        begun: list[str] = []

        async def collect(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
            begun.append("once")
            await time.sleep(10)
            return {}

        distant = memory_conduct(time, actions={"collect": collect}, make_ledger=DistantLedger)
        conduct = await distant.open_conduct([action("collect")])
        reports = await asyncio.gather(*(distant.step(conduct) for _ in range(3)))
        assert [report.verdict for report in reports] == [ConductVerdict.DONE] * 3
        assert begun == ["once"]

    async def test_a_job_that_was_submitted_is_found_again(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([compute("fit")])
        place = conduct.at(0)
        first = await memory.worker().do(StepRequest(place=place), WorkAttempt())
        memory.dead.add(ELSEWHERE)
        again = await memory.steps.do(StepRequest(place=place), WorkAttempt())
        assert (again.verdict, again.job_id) == (ConductVerdict.DONE, first.job_id)
        assert len(memory.compute.submissions) == 1
        assert memory.marks() == [("compute", "in_flight", "in_flight")]

    @pytest.mark.parametrize("known_dead", [True, False])
    async def test_a_submission_that_nobody_knows_of_is_not_repeated(
        self, memory: MemoryConduct, time: LoopTime, known_dead: bool
    ) -> None:
        class HangingCompute(SimulatedCompute):
            async def submit(self, job: JobSpec, fence: Fence = always_open) -> str:
                await asyncio.Event().wait()
                raise AssertionError("it never comes back")

        hanging = memory_conduct(time, compute=HangingCompute())
        conduct = await hanging.open_conduct([compute("fit")])
        await self.lost(hanging, conduct, after=2.5)
        if known_dead:
            hanging.dead.add(ELSEWHERE)
        report = await hanging.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == "ComputeOutcomeUnknown"
        assert time.elapsed_seconds == pytest.approx(2.5 if known_dead else 6.5, abs=0.3)
        assert "seconds" not in hanging.rows()[-1], "nobody knows how long it took"

    async def test_a_wait_for_a_job_goes_on_in_another_worker(self, memory: MemoryConduct) -> None:
        ready = asyncio.Event()
        found = SimulatedOutcome(measurements=(measurement("offset", 3.2),), until=ready)
        memory.compute.seed(("find",), found)
        conduct = await memory.open_conduct([compute("find", capture_name="offset")])
        submitted = await memory.worker().do(StepRequest(place=conduct.at(0)), WorkAttempt())
        assert submitted.job_id is not None
        cut = asyncio.create_task(
            memory.worker().collect(JobRequest(place=conduct.at(0), job_id=submitted.job_id), WorkAttempt())
        )
        await memory.time.sleep(20)
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        going_on = asyncio.create_task(
            memory.steps.collect(JobRequest(place=conduct.at(0), job_id=submitted.job_id), WorkAttempt())
        )
        await memory.time.sleep(20)
        ready.set()
        report = await going_on
        again = await memory.worker().collect(JobRequest(place=conduct.at(0), job_id=submitted.job_id), WorkAttempt())
        assert (report.verdict, again) == (ConductVerdict.DONE, report)
        assert [mark for _, mark, _ in memory.marks()] == ["in_flight", "outcome", "deposit"]
        _, outcome, deposit = memory.rows()
        assert outcome["seconds"] == pytest.approx(40, abs=0.1), "since it was submitted, whoever waits"
        assert "seconds" not in deposit

    async def test_an_outcome_without_its_deposit_is_deposited(self, memory: MemoryConduct) -> None:
        memory.compute.seed(("find",), SimulatedOutcome(measurements=(measurement("offset", 3.2),)))
        conduct = await memory.open_conduct([compute("find", capture_name="offset")])
        await memory.step(conduct)
        rows: Any = memory.store.entries["entries_procedure_activities"]
        assert rows.pop().mark == "deposit"
        submitted = str(memory.compute.submissions[0].submission_key)
        report = await memory.steps.collect(JobRequest(place=conduct.at(0), job_id=submitted), WorkAttempt())
        assert report.verdict is ConductVerdict.DONE
        assert memory.activities()[-1].slot == "offset"

    async def test_a_job_that_nobody_knows_of_any_more_has_an_unknown_outcome(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([compute("find")])
        begun = await memory.steps.do(StepRequest(place=conduct.at(0)), WorkAttempt())
        assert begun.job_id is not None
        memory.compute = SimulatedCompute()
        report = await memory.worker().collect(JobRequest(place=conduct.at(0), job_id=begun.job_id), WorkAttempt())
        assert report.failure is not None
        assert report.failure.error_class == "ComputeOutcomeUnknown"

    @pytest.mark.parametrize("step", [check("bl7:b", 1.5), capture("bl7:b", "n")])
    async def test_what_only_reads_is_done_again(self, memory: MemoryConduct, step: Any) -> None:
        memory.plant.simulate_fault("bl7:b", SimulatedFault.SILENT)
        conduct = await memory.open_conduct([step])
        cut = asyncio.create_task(memory.step(conduct, by=memory.worker()))
        await memory.time.sleep(2)
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        memory.plant.simulate_fault("bl7:b", None)
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE
        assert len(memory.rows()) == 1

    async def test_a_closing_step_is_repeated_as_its_kind_is(self, memory: MemoryConduct) -> None:
        conduct = await memory.open_conduct([setpoint("bl7:a", 3)], [setpoint("bl7:x", 10)])
        cut = asyncio.create_task(memory.step(conduct, closing=True, by=memory.worker()))
        await memory.time.sleep(0.5)
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        memory.dead.add(ELSEWHERE)
        assert (await memory.step(conduct, closing=True)).verdict is ConductVerdict.DONE
        assert [row["attempt"] for row in memory.rows()] == [1, 2, 2]


class DistantLedger(MemoryLedger):
    """A ledger whose answer to the worker that marked a step comes after the answers to all others."""

    async def begin(self, crossing: Any) -> BeginResult:
        standing = await super().begin(crossing)
        await asyncio.sleep(0.05 if standing.marked else 0.01)
        return standing


async def test_a_worker_that_is_done_is_at_work_on_nothing(memory: MemoryConduct) -> None:
    memory.actions["collect"] = failing_body(RuntimeError("broken"))
    conduct = await memory.open_conduct([setpoint("bl7:a", 1), action("collect"), compute("fit"), setpoint("bl7:a", 2)])
    for index in (0, 1, 2, 0):
        await memory.step(conduct, index)
    await memory.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
    await memory.step(conduct, 3)
    assert not memory.steps.at_work
