"""Gates that close while a procedure is conducted: the next step is not begun, and the service holds what was under way."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from baton.application.caller import Caller
from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.conduct.conduct import ConductFromProcedure
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.messages import ConductOutcome, ConductVerdict, Finish, StepReport, StretchRequest
from baton.domain.enclosure.enclosure import Enclosure, ObserveEnclosureStatus, enclosure_key
from baton.domain.kernel import NIL
from baton.domain.procedure.procedure import HoldCause, ProcedureStatus
from baton.domain.run.run import HoldRun, Run, RunStatus
from baton.domain.start.procedure_start import ProcedureRequiresPermittedEnclosureError
from baton.domain.start.run_start import ResumeRun, StartRun
from baton.domain.supply.supply import MarkSupplyUnavailable, ObserveSupplyStatus, Supply, address_key
from baton.domain.trust.surface import SYSTEM_HTTP
from tests.support.application.loop_cases import open_loop, walk_pass
from tests.support.application.memory_conduct import (
    MemoryConduct,
    OpenedConduct,
    WorkAttempt,
    finish_at_once,
    memory_conduct,
)
from tests.support.application.store_and_world import store_of_world
from tests.support.domain.run_beamline import SEARCHED, Beamline, beamline
from tests.support.domain.world import expect_refusal, new_id
from tests.support.fast_clock import LoopTime
from tests.support.workflows.step_json import action, capture, check, compute, setpoint

STEPS = [setpoint("bl7:a", value) for value in range(1, 5)]
CLOSING = [setpoint("bl7:shutter", 0)]
ENCLOSURE_CLOSED = ProcedureRequiresPermittedEnclosureError.__name__
MONITOR = 0x6D
OBSERVED_FOR = 120
"""Seconds for which an observation of an enclosure counts."""
CONFIRMED_FOR = 10
"""Seconds for which one of the service's own monitor does."""


@dataclass
class Hutch:
    """A beamline in memory whose enclosure permits work, and conducts of its camera there."""

    memory: MemoryConduct
    line: Beamline
    monitor: Caller

    async def observe(self, status: str = "Permitted") -> None:
        observed = ObserveEnclosureStatus(new_status=status, **SEARCHED)
        await self.memory.commands.execute(observed, self.monitor, target_id=self.line.enclosure_id)

    async def confirm_beam(self) -> None:
        """Confirm the beam as the service's own monitor does."""
        confirmed = ObserveSupplyStatus(new_status="Unknown", confirms=True, **SEARCHED)
        await self.memory.commands.execute(confirmed, self.monitor, target_id=self.line.supply_id)

    async def lose_beam(self) -> None:
        await self.memory.do(MarkSupplyUnavailable(reason="beam dump"), self.line.supply_id)

    async def open_conduct(self, steps: Sequence[Any] = STEPS, **more: Any) -> OpenedConduct:
        targets = frozenset({self.line.hutch.camera})
        return await self.memory.open_conduct(steps, CLOSING, target_asset_ids=targets, **more)

    async def start_run(self) -> UUID:
        return await self.memory.create(StartRun(**self.line.request))

    def run(self, run_id: UUID) -> Run:
        state = self.memory.store.state((Run.__name__, run_id))
        assert isinstance(state, Run)
        return state

    async def walk(self, conduct: OpenedConduct, count: int) -> None:
        """Do so many steps."""
        for index in range(count):
            assert (await self.memory.step(conduct, index)).verdict is ConductVerdict.DONE

    async def end(self, conduct: OpenedConduct, report: StepReport) -> None:
        """End the conduct as its workflow would after a gate has closed."""
        assert report.verdict is ConductVerdict.GATE_CLOSED
        outcome = ConductOutcome(finish=Finish.GATE_CLOSED, failure=report.failure)
        assert await self.memory.conductor.end(conduct.end(outcome)) is None


@pytest.fixture
async def hutch(time: LoopTime) -> Hutch:
    line = beamline()
    memory, monitor = memory_conduct(time, store=store_of_world(line.world)), Caller(new_id(), SYSTEM_HTTP, new_id())
    await memory.append_events(monitor.principal_id, ActorRegistered(kind=ActorKind.SERVICE_ACCOUNT))
    hutch = Hutch(memory, line, monitor)
    await hutch.observe()
    return hutch


class TestAnOwnMonitor:
    """What the service's own monitor watches rests on a monitor that is there."""

    @pytest.fixture
    async def watched_hutch(self, hutch: Hutch) -> Hutch:
        """Return the hutch, watched by a monitor that leads."""
        hutch.memory.monitored_enclosures = {enclosure_key(hutch.line.world.state(Enclosure, hutch.line.enclosure_id))}
        hutch.memory.store.leases[MONITOR] = 1
        return hutch

    async def test_that_is_gone_lets_the_next_step_wait_and_holds_after_five_seconds(self, watched_hutch: Hutch) -> None:
        memory, conduct = watched_hutch.memory, await watched_hutch.open_conduct()
        await watched_hutch.walk(conduct, 1)
        began = memory.time.elapsed_seconds
        memory.store.leases.clear()
        report = await memory.step(conduct, 1)
        assert 5 <= memory.time.elapsed_seconds - began < 6
        assert report.failure is not None
        assert (report.verdict, report.failure.facts) == (ConductVerdict.GATE_CLOSED, {"reason": "not_confirmed"})
        assert "Nobody confirms the permit of" in report.failure.message
        assert memory.plant.writes.get("bl7:a", 0) == 1, "nothing was begun"
        await watched_hutch.end(conduct, report)
        procedure = memory.procedure(conduct)
        assert (procedure.status, procedure.hold_cause) == (ProcedureStatus.HELD, HoldCause.GATE_CLOSED)

    async def test_that_another_follows_in_time_holds_nothing(self, watched_hutch: Hutch) -> None:
        memory, conduct = watched_hutch.memory, await watched_hutch.open_conduct()
        await watched_hutch.walk(conduct, 1)
        memory.store.leases.clear()
        asyncio.get_running_loop().call_later(3, memory.store.leases.update, {MONITOR: 2})
        assert (await memory.step(conduct, 1)).verdict is ConductVerdict.DONE

    async def test_that_finds_the_hutch_open_holds_at_once(self, watched_hutch: Hutch) -> None:
        memory, conduct = watched_hutch.memory, await watched_hutch.open_conduct()
        await watched_hutch.walk(conduct, 1)
        began = memory.time.elapsed_seconds
        memory.store.leases[MONITOR] = 2
        await watched_hutch.observe("NotPermitted")
        report = await memory.step(conduct, 1)
        assert (report.verdict, memory.time.elapsed_seconds) == (ConductVerdict.GATE_CLOSED, began)

    async def test_that_is_gone_does_not_keep_closing_steps_back(self, watched_hutch: Hutch) -> None:
        memory, conduct = watched_hutch.memory, await watched_hutch.open_conduct()
        await watched_hutch.walk(conduct, len(STEPS))
        memory.store.leases.clear()
        completed = ConductOutcome(finish=Finish.COMPLETED)
        assert await memory.conductor.begin_closing(conduct.end(completed)) is ConductVerdict.DONE
        assert (await memory.step(conduct, closing=True)).verdict is ConductVerdict.DONE


class TestASupplyOfAnOwnMonitor:
    """What the service's own monitor watches counts while it confirms it."""

    @pytest.fixture
    async def watched_hutch(self, hutch: Hutch) -> Hutch:
        """Return the hutch, whose beam is watched by a monitor that leads and has just confirmed it."""
        hutch.memory.monitored_supplies = {address_key(hutch.line.world.state(Supply, hutch.line.supply_id))}
        hutch.memory.store.leases[MONITOR] = 1
        await hutch.confirm_beam()
        return hutch

    @pytest.fixture
    async def conduct(self, watched_hutch: Hutch) -> OpenedConduct:
        """Return a phase that watches the beam, and has done its first step."""
        conduct = await watched_hutch.open_conduct(run_id=await watched_hutch.start_run(), conduct={"watch": ["supply"]})
        await watched_hutch.walk(conduct, 1)
        return conduct

    def run_of(self, hutch: Hutch, conduct: OpenedConduct) -> Run:
        assert conduct.plan.run_id is not None
        return hutch.run(conduct.plan.run_id)

    async def test_whose_signal_is_lost_while_the_monitor_lives_holds_five_seconds_after_it_has_grown_old(
        self, watched_hutch: Hutch, conduct: OpenedConduct
    ) -> None:
        memory = watched_hutch.memory
        await memory.time.sleep(CONFIRMED_FOR - 1 - memory.time.elapsed_seconds)
        assert (await memory.step(conduct, 1)).verdict is ConductVerdict.DONE
        await memory.time.sleep(2)
        began = memory.time.elapsed_seconds
        assert (await memory.step(conduct, 2)).verdict is ConductVerdict.RUN_HELD
        assert 5 <= memory.time.elapsed_seconds - began < 6
        assert memory.plant.writes["bl7:a"] == 2, "nothing was begun"
        run = self.run_of(watched_hutch, conduct)
        assert run.status is RunStatus.HELD
        assert "Beam was last observed 16 s ago, not within 10 s" in memory.store.streams["Run", run.id][-1].payload

    async def test_that_is_confirmed_again_in_time_holds_nothing(self, watched_hutch: Hutch, conduct: OpenedConduct) -> None:
        memory = watched_hutch.memory
        await memory.time.sleep(CONFIRMED_FOR + 1)
        asyncio.get_running_loop().call_later(3, lambda: asyncio.ensure_future(watched_hutch.confirm_beam()))
        assert (await memory.step(conduct, 1)).verdict is ConductVerdict.DONE

    async def test_that_is_confirmed_all_the_time_holds_nothing(self, watched_hutch: Hutch, conduct: OpenedConduct) -> None:
        for index in range(1, len(STEPS)):
            await watched_hutch.memory.time.sleep(CONFIRMED_FOR - 1)
            await watched_hutch.confirm_beam()
            began = watched_hutch.memory.time.elapsed_seconds
            assert (await watched_hutch.memory.step(conduct, index)).verdict is ConductVerdict.DONE
            assert watched_hutch.memory.time.elapsed_seconds == began, "nothing was waited for"

    async def test_whose_monitor_is_gone_holds_after_five_seconds(
        self, watched_hutch: Hutch, conduct: OpenedConduct
    ) -> None:
        memory, began = watched_hutch.memory, watched_hutch.memory.time.elapsed_seconds
        memory.store.leases.clear()
        assert (await memory.step(conduct, 1)).verdict is ConductVerdict.RUN_HELD
        assert 5 <= memory.time.elapsed_seconds - began < 6

    async def test_that_is_known_to_be_out_holds_at_once(self, watched_hutch: Hutch, conduct: OpenedConduct) -> None:
        memory, began = watched_hutch.memory, watched_hutch.memory.time.elapsed_seconds
        await watched_hutch.lose_beam()
        assert (await memory.step(conduct, 1)).verdict is ConductVerdict.RUN_HELD
        assert memory.time.elapsed_seconds == began

    async def test_is_no_affair_of_a_conduct_that_watches_enclosures_alone(self, watched_hutch: Hutch) -> None:
        conduct = await watched_hutch.open_conduct(run_id=await watched_hutch.start_run(), conduct={"watch": ["enclosure"]})
        await watched_hutch.memory.time.sleep(CONFIRMED_FOR + 1)
        await watched_hutch.walk(conduct, len(STEPS))

    async def test_that_nobody_confirms_keeps_a_run_from_starting_and_resuming(self, watched_hutch: Hutch) -> None:
        memory, run_id = watched_hutch.memory, await watched_hutch.start_run()
        await memory.do(HoldRun(reason="lunch"), run_id)
        await memory.time.sleep(CONFIRMED_FOR + 1)
        with expect_refusal("RunSupplyCoverageMismatchError", "not_confirmed"):
            await watched_hutch.start_run()
        with expect_refusal("RunSupplyCoverageMismatchError", "not_confirmed"):
            await memory.do(ResumeRun(), run_id)
        await watched_hutch.confirm_beam()
        await memory.do(ResumeRun(), run_id)


class TestAnEnclosure:
    @pytest.mark.parametrize("at", range(len(STEPS)))
    @pytest.mark.parametrize("status", ["NotPermitted", "Unknown"])
    async def test_that_is_withdrawn_holds_the_procedure_before_the_next_step(
        self, hutch: Hutch, at: int, status: str
    ) -> None:
        memory, conduct = hutch.memory, await hutch.open_conduct()
        await hutch.walk(conduct, at)
        await hutch.observe(status)
        report = await memory.step(conduct, at)
        assert report.failure is not None
        assert (report.verdict, report.failure.error_class) == (ConductVerdict.GATE_CLOSED, ENCLOSURE_CLOSED)
        assert (len(memory.rows()), memory.plant.writes.get("bl7:a", 0)) == (2 * at, at), "nothing was begun"
        await hutch.end(conduct, report)
        procedure = memory.procedure(conduct)
        assert (procedure.status, procedure.hold_cause) == (ProcedureStatus.HELD, HoldCause.GATE_CLOSED)
        assert procedure.last_status_reason == report.failure.message
        *_, conducted, _ = memory.events(conduct)
        assert (conducted.result.held, conducted.result.completed_count) == (True, at)
        assert conducted.result.failure.error_class == ENCLOSURE_CLOSED
        assert memory.store.streams["Procedure", conduct.procedure_id][-1].principal_id == NIL, "the service holds it"
        assert await memory.value("bl7:shutter") == 1, "nothing is closed, as with any hold"

    @pytest.mark.parametrize(
        "step", [setpoint("bl7:a", 1), check("bl7:b", 1.5), capture("bl7:b", "n"), action("act"), compute("fit")]
    )
    async def test_that_is_withdrawn_holds_before_every_kind_of_step(self, hutch: Hutch, step: Any) -> None:
        hutch.memory.actions["act"] = finish_at_once
        conduct = await hutch.open_conduct([step])
        await hutch.observe("NotPermitted")
        assert (await hutch.memory.step(conduct)).verdict is ConductVerdict.GATE_CLOSED
        assert (hutch.memory.rows(), hutch.memory.compute.submissions) == ([], [])

    @pytest.mark.parametrize("at", range(len(STEPS)))
    async def test_that_is_withdrawn_within_a_stretch_is_in_force_at_the_next_step(self, hutch: Hutch, at: int) -> None:
        memory, conduct = hutch.memory, await hutch.open_conduct()
        writes, write = 0, memory.plant.write

        async def write_and_open_door(address: str, value: Any, *rest: Any) -> Any:
            nonlocal writes
            writes += address == "bl7:a"
            if writes == at:
                await hutch.observe("NotPermitted")
            return await write(address, value, *rest)

        memory.plant.write = write_and_open_door  # type: ignore[method-assign]
        if not at:
            await hutch.observe("NotPermitted")
        request = StretchRequest(place=conduct.at(0), count=len(STEPS))
        report = await memory.steps.do_stretch(request, WorkAttempt())
        assert (report.verdict, report.done_count, writes) == (ConductVerdict.GATE_CLOSED, at, at)

    @pytest.mark.parametrize(("seconds", "verdict"), [(-1, ConductVerdict.DONE), (1, ConductVerdict.GATE_CLOSED)])
    async def test_whose_observation_has_become_too_old_holds_it(
        self, hutch: Hutch, seconds: float, verdict: ConductVerdict
    ) -> None:
        conduct = await hutch.open_conduct()
        await hutch.walk(conduct, 1)
        await hutch.memory.time.sleep(OBSERVED_FOR + seconds - hutch.memory.time.elapsed_seconds)
        report = await hutch.memory.step(conduct, 1)
        assert report.verdict is verdict
        if report.failure is not None:
            assert "was last observed 121 s ago" in report.failure.message

    async def test_that_is_observed_in_time_holds_nothing(self, hutch: Hutch) -> None:
        conduct = await hutch.open_conduct()
        for index in range(len(STEPS)):
            await hutch.memory.time.sleep(OBSERVED_FOR - 20)
            await hutch.observe()
            assert (await hutch.memory.step(conduct, index)).verdict is ConductVerdict.DONE

    async def test_that_permits_again_before_the_next_step_holds_nothing(self, hutch: Hutch) -> None:
        conduct = await hutch.open_conduct()
        await hutch.walk(conduct, 1)
        await hutch.observe("NotPermitted")
        await hutch.observe()
        assert (await hutch.memory.step(conduct, 1)).verdict is ConductVerdict.DONE

    async def test_that_permits_again_after_the_step_was_kept_back_still_holds_it(self, hutch: Hutch) -> None:
        memory, conduct = hutch.memory, await hutch.open_conduct()
        await hutch.observe("NotPermitted")
        report = await memory.step(conduct)
        await hutch.observe()
        await hutch.end(conduct, report)
        procedure = memory.procedure(conduct)
        assert (procedure.status, procedure.hold_cause) == (ProcedureStatus.HELD, HoldCause.GATE_CLOSED)

    async def test_does_not_stop_closing_steps(self, hutch: Hutch) -> None:
        memory, conduct = hutch.memory, await hutch.open_conduct()
        await hutch.walk(conduct, len(STEPS))
        await hutch.observe("NotPermitted")
        completed = ConductOutcome(finish=Finish.COMPLETED)
        assert await memory.conductor.begin_closing(conduct.end(completed)) is ConductVerdict.DONE
        assert (await memory.step(conduct, closing=True)).verdict is ConductVerdict.DONE

    async def test_does_not_stop_a_step_that_was_begun(self, hutch: Hutch) -> None:
        """This is operations control: what moves is the interlock's to stop."""
        conduct = await hutch.open_conduct([setpoint("bl7:x", 5)])
        running = asyncio.create_task(hutch.memory.step(conduct))
        await hutch.memory.time.sleep(2)
        await hutch.observe("NotPermitted")
        assert (await running).verdict is ConductVerdict.DONE

    async def test_is_judged_again_to_resume(self, hutch: Hutch) -> None:
        memory, conduct = hutch.memory, await hutch.open_conduct()
        await hutch.walk(conduct, 1)
        await hutch.observe("NotPermitted")
        await hutch.end(conduct, await memory.step(conduct, 1))
        resume = ConductFromProcedure(re_establishment_boundary=1)
        with expect_refusal(ENCLOSURE_CLOSED):
            await memory.do(resume, conduct.procedure_id)
        await hutch.observe()
        resumed = await memory.live(resume, conduct.procedure_id)
        assert (await memory.step(resumed, 1)).verdict is ConductVerdict.DONE

    @pytest.mark.parametrize(
        ("command", "verdict"), [(HoldProcedure, ConductVerdict.HOLD), (AbortProcedure, ConductVerdict.ABORT)]
    )
    async def test_counts_after_what_a_person_asked_for(self, hutch: Hutch, command: Any, verdict: ConductVerdict) -> None:
        conduct = await hutch.open_conduct()
        await hutch.memory.do(command(reason="lunch"), conduct.procedure_id)
        await hutch.observe("NotPermitted")
        assert (await hutch.memory.step(conduct)).verdict is verdict

    async def test_holds_a_loop_and_leaves_no_pass_open(self, hutch: Hutch) -> None:
        memory = hutch.memory
        conduct = await open_loop(memory, target_asset_ids=frozenset({hutch.line.hutch.camera}))
        await memory.passes.start(conduct.request)
        assert (await memory.step(conduct, 0, 1)).verdict is ConductVerdict.DONE
        await hutch.observe("NotPermitted")
        await hutch.end(conduct, await memory.step(conduct, 1, 1))
        procedure = memory.procedure(conduct)
        assert (procedure.hold_cause, procedure.current_iteration_index) == (HoldCause.GATE_CLOSED, None)

    async def test_is_not_asked_about_between_passes(self, hutch: Hutch) -> None:
        """Only a step is kept back by it: what was measured is judged and recorded."""
        memory = hutch.memory
        conduct = await open_loop(memory, target_asset_ids=frozenset({hutch.line.hutch.camera}))
        index = await walk_pass(memory, conduct, 7.0)
        await hutch.observe("NotPermitted")
        assert (await memory.passes.judge(conduct.pass_request(index))).verdict is ConductVerdict.DONE
        begun = await memory.passes.start(conduct.request)
        assert begun.verdict is ConductVerdict.DONE
        assert (await memory.step(conduct, 0, begun.iteration_index)).verdict is ConductVerdict.GATE_CLOSED


class TestWhatIsWatched:
    async def test_nothing_where_nothing_is_to_be(self, hutch: Hutch) -> None:
        conduct = await hutch.open_conduct(conduct={"watch": []})
        await hutch.observe("NotPermitted")
        await hutch.memory.time.sleep(OBSERVED_FOR + 60)
        await hutch.walk(conduct, len(STEPS))

    async def test_a_claim_that_a_gate_has_closed_is_rejected_then(self, hutch: Hutch) -> None:
        conduct = await hutch.open_conduct(conduct={"watch": []})
        told = hutch.memory.event_types(conduct)
        await hutch.memory.conductor.end(conduct.end(ConductOutcome(finish=Finish.GATE_CLOSED)))
        assert hutch.memory.event_types(conduct) == told

    @pytest.mark.parametrize(
        ("watch", "closes"), [(["enclosure"], False), (["supply"], True), (["supply", "enclosure"], True)]
    )
    async def test_a_supply_holds_only_where_it_is_watched(self, hutch: Hutch, watch: list[str], closes: bool) -> None:
        run_id = await hutch.start_run()
        conduct = await hutch.open_conduct(run_id=run_id, conduct={"watch": watch})
        await hutch.walk(conduct, 1)
        await hutch.lose_beam()
        report = await hutch.memory.step(conduct, 1)
        assert report.verdict is (ConductVerdict.RUN_HELD if closes else ConductVerdict.DONE)
        assert hutch.run(run_id).status is (RunStatus.HELD if closes else RunStatus.RUNNING)

    async def test_a_supply_alone_does_not_watch_enclosures(self, hutch: Hutch) -> None:
        conduct = await hutch.open_conduct(conduct={"watch": ["supply"]})
        await hutch.observe("NotPermitted")
        await hutch.walk(conduct, len(STEPS))

    async def test_an_enclosure_that_nothing_judged_stands_in_is_no_affair_of_the_conduct(self, hutch: Hutch) -> None:
        conduct = await hutch.memory.open_conduct(STEPS)
        await hutch.observe("NotPermitted")
        await hutch.walk(conduct, len(STEPS))


class TestAPhase:
    @pytest.mark.parametrize("step", [setpoint("bl7:a", 1), action("act"), compute("fit")])
    async def test_holds_its_run_and_waits_for_it(self, hutch: Hutch, step: Any) -> None:
        hutch.memory.actions["act"] = finish_at_once
        memory, run_id = hutch.memory, await hutch.start_run()
        conduct = await hutch.open_conduct([step], run_id=run_id)
        await hutch.observe("NotPermitted")
        assert (await memory.step(conduct)).verdict is ConductVerdict.RUN_HELD
        run = hutch.run(run_id)
        assert run.status is RunStatus.HELD
        assert memory.store.streams["Run", run_id][-1].principal_id == NIL
        assert memory.procedure(conduct).status is ProcedureStatus.RUNNING
        assert (memory.rows(), memory.compute.submissions) == ([], [])

    async def test_goes_on_when_its_run_does(self, hutch: Hutch) -> None:
        memory, run_id = hutch.memory, await hutch.start_run()
        conduct = await hutch.open_conduct(run_id=run_id)
        await hutch.observe("NotPermitted")
        assert (await memory.step(conduct)).verdict is ConductVerdict.RUN_HELD
        await hutch.observe()
        await memory.do(ResumeRun(), run_id)
        assert await memory.conductor.await_run(conduct.request, WorkAttempt()) is ConductVerdict.DONE
        assert (await memory.step(conduct)).verdict is ConductVerdict.DONE

    async def test_whose_run_is_held_already_holds_nothing_twice(self, hutch: Hutch) -> None:
        memory, run_id = hutch.memory, await hutch.start_run()
        conduct = await hutch.open_conduct(run_id=run_id)
        await memory.do(HoldRun(reason="the supervisor came first"), run_id)
        await hutch.observe("NotPermitted")
        assert (await memory.step(conduct)).verdict is ConductVerdict.RUN_HELD
        held = [row.event_type for row in memory.store.streams["Run", run_id]]
        assert held.count("RunHeld") == 1

    async def test_whose_supervisor_comes_between_leaves_one_hold(self, hutch: Hutch) -> None:
        """The gate is seen closed, and before the phase holds its run the supervisor has."""
        memory, run_id = hutch.memory, await hutch.start_run()
        conduct = await hutch.open_conduct(run_id=run_id)
        await hutch.observe("NotPermitted")
        execute = memory.commands.execute

        async def supervise_first(command: Any, *given: Any, **named: Any) -> Any:
            if isinstance(command, HoldRun):
                await execute(HoldRun(reason="the supervisor came first"), *given, **named)
            return await execute(command, *given, **named)

        memory.commands.execute = supervise_first  # type: ignore[method-assign]
        assert (await memory.step(conduct)).verdict is ConductVerdict.RUN_HELD
        held = [row.event_type for row in memory.store.streams["Run", run_id]]
        assert held.count("RunHeld") == 1
        assert hutch.run(run_id).status is RunStatus.HELD
