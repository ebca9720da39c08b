"""A step that was begun before: what the ledger and the other workers say decides whether it is done again."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from baton.application.clock import Timekeeper
from baton.application.conduct.compute import JobSpec
from baton.application.conduct.heartbeat import HeartbeatLost
from baton.application.conduct.ledger import BeginResult
from baton.application.control import Control, Fence, always_open
from baton.domain.operation.conduct.messages import ConductVerdict
from baton.domain.operation.procedure.endings import HoldProcedure
from baton.infrastructure.compute.in_memory import Simulated, SimulatedCompute
from baton.infrastructure.control.simulator import SimulatedFault
from baton.testing.ledger import MemoryLedger
from tests.application.rehearsal import (
    ELSEWHERE,
    HERE,
    Live,
    Rehearsal,
    Try,
    endless,
    measured,
    nothing_to_do,
    raising,
    rehearsed,
)
from tests.timekeeping import LoopTime
from tests.workflows.steps import action, capture, check, compute, setpoint


class TestWorkerLoss:
    """A row that says a step was begun, and nothing that says what came of it."""

    async def lost(
        self, rehearsal: Rehearsal, conduct: Live, after: float = 0.5, step_index: int = 0, name: str = ELSEWHERE
    ) -> None:
        """Have another worker begin a step, and cut it off after so many seconds."""
        cut = asyncio.create_task(rehearsal.step(conduct, step_index, by=rehearsal.worker(name)))
        await rehearsal.time.sleep(after)
        cut.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cut
        assert rehearsal.marks()[-1][1] == "in_flight"

    async def test_a_write_of_a_dead_worker_is_sent_again_at_once(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:x", 10)])
        await self.lost(rehearsal, conduct)
        rehearsal.dead.add(ELSEWHERE)
        report = await rehearsal.step(conduct)
        assert report.verdict is ConductVerdict.DONE
        assert rehearsal.time.passed == pytest.approx(10.1, abs=0.6)
        told = [(row["attempt"], row["result"], row.get("worker")) for row in rehearsal.rows()]
        assert told == [(1, "in_flight", ELSEWHERE), (2, "in_flight", HERE), (2, "ok", None)]
        assert rehearsal.plant.effects().writes["bl7:x"] == 2

    async def test_a_failure_names_the_attempts_that_may_have_been_written(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:x", 10)])
        await self.lost(rehearsal, conduct)
        rehearsal.dead.add(ELSEWHERE)
        rehearsal.plant.simulate_disconnect("bl7:x")
        report = await rehearsal.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == "ControlNotConnectedError"
        assert report.failure.message.endswith("Attempt 1 may have been written; look at the equipment.")
        written = (await rehearsal.ledger.tally(conduct.conduct_id, 0)).substrate_writes
        assert written == {"bl7:x": {"outcome": "unknown", "values": [10]}}

    async def test_a_write_that_was_sent_and_not_confirmed_says_so_too(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 1), setpoint("bl7:a", 2)])
        await rehearsal.step(conduct)
        rehearsal.plant.simulate_fault("bl7:a", SimulatedFault.SILENT)
        report = await rehearsal.step(conduct, 1)
        assert report.failure is not None
        assert report.failure.error_class == "ControlTimeoutError"
        assert "Attempt 1 may have been written" in report.failure.message
        written = (await rehearsal.ledger.tally(conduct.conduct_id, 0)).substrate_writes
        assert written == {"bl7:a": {"outcome": "unknown", "values": [1, 2]}}

    async def test_a_write_that_came_too_late_to_be_sent_again_does_not_say_that_nothing_was_touched(
        self, rehearsal: Rehearsal
    ) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:x", 10)])
        await self.lost(rehearsal, conduct)
        rehearsal.dead.add(ELSEWHERE)
        await rehearsal.time.sleep(400)
        report = await rehearsal.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == "StepInterrupted"
        assert "an attempt at it may have been written" in report.failure.message

    async def test_a_write_of_this_worker_that_was_cut_off_is_sent_again_at_once(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:x", 10)])
        cut = asyncio.create_task(rehearsal.step(conduct))
        await rehearsal.time.sleep(0.5)
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        await rehearsal.step(conduct)
        assert [row["attempt"] for row in rehearsal.rows()] == [1, 2, 2]
        assert rehearsal.time.passed < 12

    async def test_a_write_of_somebody_who_fell_silent_is_sent_again_when_its_time_is_over(
        self, rehearsal: Rehearsal
    ) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:x", 10)])
        await self.lost(rehearsal, conduct)
        attempt = Try()
        await rehearsal.step(conduct, attempt=attempt)
        _, again, done = rehearsal.activities()
        assert (again.occurred_at - rehearsal.activities()[0].occurred_at).total_seconds() == pytest.approx(30, abs=0.3)
        assert (again.attempt, done.attempt, done.payload["result"]) == (2, 2, "ok")
        assert attempt.signs > 100, "whoever waits is alive"

    async def test_a_write_of_somebody_who_is_heard_of_is_waited_for(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:x", 20)])
        first = asyncio.create_task(rehearsal.step(conduct, by=rehearsal.worker()))
        await rehearsal.time.sleep(5)
        second = await rehearsal.step(conduct)
        assert second == await first
        assert rehearsal.time.passed == pytest.approx(20, abs=0.5)
        assert rehearsal.plant.effects().writes["bl7:x"] == 1

    async def test_a_hold_is_served_instead_of_sending_a_write_again(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:x", 10)])
        await self.lost(rehearsal, conduct)
        waiting = asyncio.create_task(rehearsal.step(conduct))
        await rehearsal.time.sleep(5)
        await rehearsal.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        assert (await waiting).verdict is ConductVerdict.HOLD
        assert rehearsal.plant.effects().writes["bl7:x"] == 1

    async def test_a_hold_is_not_in_force_while_somebody_else_still_moves(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:x", 10)])
        first = asyncio.create_task(rehearsal.step(conduct, by=rehearsal.worker()))
        await rehearsal.time.sleep(5)
        await rehearsal.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        second = await rehearsal.step(conduct)
        assert (second.verdict, first.done()) == (ConductVerdict.DONE, True)
        assert rehearsal.plant.effects().writes["bl7:x"] == 1

    async def test_whoever_hears_too_late_that_it_may_begin_does_not(self, time: LoopTime) -> None:
        """Somebody else may have taken it for lost meanwhile, and have gone on to later steps."""

        class Tardy(MemoryLedger):
            late = True

            async def begin(self, crossing: Any) -> BeginResult:
                standing = await super().begin(crossing)
                if self.late:
                    await asyncio.sleep(4)
                return standing

        tardy = rehearsed(time, make_ledger=Tardy)
        conduct = await tardy.opened([setpoint("bl7:x", 1)])
        with pytest.raises(HeartbeatLost):
            await tardy.step(conduct)
        assert tardy.plant.effects().writes["bl7:x"] == 0
        tardy.ledger.late = False  # type: ignore[attr-defined]
        assert (await tardy.step(conduct)).verdict is ConductVerdict.DONE
        assert [row["attempt"] for row in tardy.rows()] == [1, 2, 2]

    async def test_what_was_done_is_not_unknown_because_it_could_not_be_stored_at_once(self, time: LoopTime) -> None:
        class Stuck(MemoryLedger):
            async def settle(self, row: Any) -> Mapping[str, Any]:
                await mended.wait()
                return await super().settle(row)

        mended, stuck = asyncio.Event(), rehearsed(time, make_ledger=Stuck)
        stuck.actions["collect"] = nothing_to_do
        conduct = await stuck.opened([action("collect")])
        first = asyncio.create_task(stuck.step(conduct))
        await time.sleep(20)
        second = asyncio.create_task(stuck.step(conduct))
        await time.sleep(20)
        assert not second.done()
        mended.set()
        assert (await second).verdict is (await first).verdict is ConductVerdict.DONE

    @pytest.mark.parametrize("known_dead", [True, False])
    async def test_an_action_is_not_done_again(self, rehearsal: Rehearsal, known_dead: bool) -> None:
        begun: list[str] = []

        async def collect(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
            begun.append("once")
            await time.sleep(100)
            return {}

        rehearsal.actions["collect"] = collect
        conduct = await rehearsal.opened([action("collect")])
        await self.lost(rehearsal, conduct, after=2.5)
        if known_dead:
            rehearsal.dead.add(ELSEWHERE)
        report = await rehearsal.step(conduct)
        assert report.failure is not None
        assert (report.verdict, report.failure.error_class) == (ConductVerdict.FAILED, "ActionOutcomeUnknown")
        assert begun == ["once"]
        assert rehearsal.time.passed == pytest.approx(2.5 if known_dead else 8, abs=0.3), "silent for six seconds"
        assert rehearsal.marks() == [("action", "in_flight", "in_flight"), ("action", "outcome", "failed")]
        assert await rehearsal.step(conduct) == report

    async def test_an_action_of_somebody_who_is_heard_of_is_waited_for(self, rehearsal: Rehearsal) -> None:
        begun: list[str] = []

        async def collect(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
            begun.append("once")
            await time.sleep(100)
            return {"frames": 3}

        rehearsal.actions["collect"] = collect
        conduct = await rehearsal.opened([action("collect")])
        first = asyncio.create_task(rehearsal.step(conduct, by=rehearsal.worker()))
        await rehearsal.time.sleep(5)
        second = await rehearsal.step(conduct)
        assert (second, begun) == (await first, ["once"])
        assert rehearsal.rows()[-1]["result_data"] == {"frames": 3}

    async def test_an_unknown_outcome_is_told_although_a_hold_is_asked_for(self, rehearsal: Rehearsal) -> None:
        rehearsal.actions["collect"] = endless(rehearsal.time, [])
        conduct = await rehearsal.opened([action("collect")])
        await self.lost(rehearsal, conduct)
        rehearsal.dead.add(ELSEWHERE)
        await rehearsal.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
        report = await rehearsal.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == "ActionOutcomeUnknown"

    async def test_two_tries_at_once_in_one_worker_do_it_once(self, rehearsal: Rehearsal, time: LoopTime) -> None:
        begun: list[str] = []

        async def collect(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
            begun.append("once")
            await time.sleep(10)
            return {}

        distant = rehearsed(time, actions={"collect": collect}, make_ledger=DistantLedger)
        conduct = await distant.opened([action("collect")])
        reports = await asyncio.gather(*(distant.step(conduct) for _ in range(3)))
        assert [report.verdict for report in reports] == [ConductVerdict.DONE] * 3
        assert begun == ["once"]

    async def test_a_job_that_was_submitted_is_found_again(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([compute("fit")])
        place = conduct.at(0)
        first = await rehearsal.worker().do(conduct.score, place, {}, None, Try())
        rehearsal.dead.add(ELSEWHERE)
        again = await rehearsal.steps.do(conduct.score, place, {}, None, Try())
        assert (again.verdict, again.job_id) == (ConductVerdict.DONE, first.job_id)
        assert len(rehearsal.compute.submissions) == 1
        assert rehearsal.marks() == [("compute", "in_flight", "in_flight")]

    @pytest.mark.parametrize("known_dead", [True, False])
    async def test_a_submission_that_nobody_knows_of_is_not_repeated(
        self, rehearsal: Rehearsal, time: LoopTime, known_dead: bool
    ) -> None:
        class Hanging(SimulatedCompute):
            async def submit(self, job: JobSpec, fence: Fence = always_open) -> str:
                await asyncio.Event().wait()
                raise AssertionError("it never comes back")

        hanging = rehearsed(time, compute=Hanging())
        conduct = await hanging.opened([compute("fit")])
        await self.lost(hanging, conduct, after=2.5)
        if known_dead:
            hanging.dead.add(ELSEWHERE)
        report = await hanging.step(conduct)
        assert report.failure is not None
        assert report.failure.error_class == "ComputeOutcomeUnknown"
        assert time.passed == pytest.approx(2.5 if known_dead else 8, abs=0.3)

    async def test_a_wait_for_a_job_goes_on_in_another_worker(self, rehearsal: Rehearsal) -> None:
        ready = asyncio.Event()
        found = Simulated(measurements=(measured("offset", 3.2),), until=ready)
        rehearsal.compute.seed(("find",), found)
        conduct = await rehearsal.opened([compute("find", capture_name="offset")])
        submitted = await rehearsal.worker().do(conduct.score, conduct.at(0), {}, None, Try())
        assert submitted.job_id is not None
        cut = asyncio.create_task(rehearsal.worker().collect(conduct.score, conduct.at(0), {}, submitted.job_id, Try()))
        await rehearsal.time.sleep(20)
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        going_on = asyncio.create_task(rehearsal.steps.collect(conduct.score, conduct.at(0), {}, submitted.job_id, Try()))
        await rehearsal.time.sleep(20)
        ready.set()
        report = await going_on
        again = await rehearsal.worker().collect(conduct.score, conduct.at(0), {}, submitted.job_id, Try())
        assert (report.verdict, again) == (ConductVerdict.DONE, report)
        assert [mark for _, mark, _ in rehearsal.marks()] == ["in_flight", "outcome", "deposit"]

    async def test_an_outcome_without_its_deposit_is_deposited(self, rehearsal: Rehearsal) -> None:
        rehearsal.compute.seed(("find",), Simulated(measurements=(measured("offset", 3.2),)))
        conduct = await rehearsal.opened([compute("find", capture_name="offset")])
        await rehearsal.step(conduct)
        rows: Any = rehearsal.store.entries["entries_procedure_activities"]
        assert rows.pop().mark == "deposit"
        submitted = str(rehearsal.compute.submissions[0].submission_key)
        report = await rehearsal.steps.collect(conduct.score, conduct.at(0), {}, submitted, Try())
        assert report.verdict is ConductVerdict.DONE
        assert rehearsal.activities()[-1].slot == "offset"

    async def test_a_job_that_nobody_knows_of_any_more_has_an_unknown_outcome(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([compute("find")])
        begun = await rehearsal.steps.do(conduct.score, conduct.at(0), {}, None, Try())
        assert begun.job_id is not None
        rehearsal.compute = SimulatedCompute()
        report = await rehearsal.worker().collect(conduct.score, conduct.at(0), {}, begun.job_id, Try())
        assert report.failure is not None
        assert report.failure.error_class == "ComputeOutcomeUnknown"

    @pytest.mark.parametrize("step", [check("bl7:b", 1.5), capture("bl7:b", "n")])
    async def test_what_only_reads_is_done_again(self, rehearsal: Rehearsal, step: Any) -> None:
        rehearsal.plant.simulate_fault("bl7:b", SimulatedFault.SILENT)
        conduct = await rehearsal.opened([step])
        cut = asyncio.create_task(rehearsal.step(conduct, by=rehearsal.worker()))
        await rehearsal.time.sleep(2)
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        rehearsal.plant.simulate_fault("bl7:b", None)
        assert (await rehearsal.step(conduct)).verdict is ConductVerdict.DONE
        assert len(rehearsal.rows()) == 1

    async def test_a_closing_step_is_repeated_as_its_kind_is(self, rehearsal: Rehearsal) -> None:
        conduct = await rehearsal.opened([setpoint("bl7:a", 3)], [setpoint("bl7:x", 10)])
        cut = asyncio.create_task(rehearsal.step(conduct, closing=True, by=rehearsal.worker()))
        await rehearsal.time.sleep(0.5)
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)
        rehearsal.dead.add(ELSEWHERE)
        assert (await rehearsal.step(conduct, closing=True)).verdict is ConductVerdict.DONE
        assert [row["attempt"] for row in rehearsal.rows()] == [1, 2, 2]


class DistantLedger(MemoryLedger):
    """A ledger whose answer to whoever has marked a step comes after the answers to all others."""

    async def begin(self, crossing: Any) -> BeginResult:
        standing = await super().begin(crossing)
        await asyncio.sleep(0.05 if standing.marked else 0.01)
        return standing


async def test_whoever_is_done_is_at_work_on_nothing(rehearsal: Rehearsal) -> None:
    rehearsal.actions["collect"] = raising(RuntimeError("broken"))
    conduct = await rehearsal.opened([setpoint("bl7:a", 1), action("collect"), compute("fit"), setpoint("bl7:a", 2)])
    for index in (0, 1, 2, 0):
        await rehearsal.step(conduct, index)
    await rehearsal.do(HoldProcedure(reason="shift change"), conduct.procedure_id)
    await rehearsal.step(conduct, 3)
    assert not rehearsal.steps.at_work
