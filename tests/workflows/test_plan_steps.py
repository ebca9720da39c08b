"""Bluesky plans as steps, from the command to the record, on a real queueserver: judged, carried out once, held and aborted,
and found again after the death of the worker."""

import asyncio
import json
import os
import random
import signal
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from baton.application.settings import Settings
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.worker import run_worker
from baton.domain.access.actor import ActorKind, RegisterActor
from baton.domain.conduct.conduct import ConductFromProcedure, ConductOrHoldProcedure, ConductProcedure
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.ends import UNKNOWN_OUTCOMES
from baton.domain.conduct.preflight import PreflightProcedure
from baton.domain.conduct.views import GetProcedureConduct
from baton.domain.procedure.procedure import ProcedureConducted, ProcedureStatus
from baton.domain.run.run import RunStatus
from baton.domain.run.witness import ExitStatus, Standing, WitnessChange, WitnessedEnd
from baton.domain.run.witnessing import WitnessRunChange
from baton.domain.start.run_start import StartRun
from baton.domain.start.run_witness import WitnessRun
from baton.domain.step.plan_steps import ListPlanExecutors, PlanExecutorView, PlanNotAllowedError, PlanParametersInvalidError
from baton.infrastructure.plans.queueserver import Queueserver
from baton.infrastructure.wall_clock import new_id
from tests.support.forked_commands import forked_process
from tests.support.infrastructure.plan_servers import PlanServer, missing_part, running_blueapi, running_queueserver
from tests.support.stack import clean_environment
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.run_cases import StartedRun, build_run_stack
from tests.support.workflows.step_json import action

LOSSES = 20
SECONDS = 120.0


@pytest.fixture(scope="module")
async def queueserver(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PlanServer]:
    if why := missing_part(redis=True):
        pytest.skip(why)
    async with running_queueserver(tmp_path_factory.mktemp("queueserver")) as server:
        yield server


def run_plan_worker() -> None:
    """Run a worker as `python worker.py` does."""
    run_worker(Settings())


@dataclass
class PlanBeamline:
    """A service without a worker in this process, whose workers can be killed, and an executor."""

    stack: ConductStack
    server: PlanServer
    environment: Mapping[str, str]
    directory: Path

    def worker(self, name: str = "worker") -> Any:
        """A worker process, until the end of the block."""
        out, log = self.directory / f"{name}.out", self.directory / f"{name}.log"
        return forked_process(run_plan_worker, (), self.environment, out, log)

    async def view(self) -> PlanExecutorView:
        """The executor, as it is listed."""
        (view,) = (await self.stack.ask(ListPlanExecutors())).items
        assert isinstance(view, PlanExecutorView)
        return view

    async def wait_until_heard(self) -> None:
        async def is_heard() -> bool:
            return (await self.view()).answers

        await until(is_heard, SECONDS)

    async def open(self, note: str, seconds: float = 0.3, how: type[Any] = ConductProcedure, **params: Any) -> UUID:
        """Open a conduct of one plan."""
        step = action("plan:bl7/count_start", note=note, seconds=seconds, **params)
        id = await self.stack.register_from_recipe([step])
        await self.stack.do(how(wait=0), id)
        return id

    async def wait_for_start(self, note: str) -> None:
        await until(lambda: self.server.count(note), SECONDS)

    async def result(self, id: UUID) -> Any:
        """The result of the latest conduct, once it is over."""

        async def is_over() -> bool:
            return (await self.stack.procedure(id)).live_conduct_id is None

        await until(is_over, SECONDS)
        return [event.result for event in await self.stack.events(id) if isinstance(event, ProcedureConducted)][-1]


def executor_settings(server: PlanServer, kind: str = "queueserver", **more: Any) -> dict[str, Any]:
    plans = ["count_start", "absent"]
    return {"name": "bl7", "kind": kind, "address": server.address, "plans": plans, "simulated": True, **more}


@pytest.fixture
async def beamline(
    database_url: str, temporal: EmbeddedTemporal, queueserver: PlanServer, tmp_path: Path
) -> AsyncIterator[PlanBeamline]:
    async for beamline in open_beamline(database_url, temporal, queueserver, tmp_path, executor_settings(queueserver)):
        yield beamline
    await end_plans(queueserver)


async def end_plans(server: PlanServer) -> None:
    """End what a failed test left behind at the server that its neighbours use, too."""
    client = Queueserver(server.address)

    async def is_idle() -> bool:
        status = await client._ask("status")
        if status["manager_state"] != "idle":
            await client._end(status["running_item_uid"], "re_abort")
        return bool(status["manager_state"] == "idle")

    await until(is_idle)
    await client.close()


async def open_beamline(
    database_url: str, temporal: EmbeddedTemporal, server: PlanServer, directory: Path, executor: Mapping[str, Any]
) -> AsyncIterator[PlanBeamline]:
    """A beamline at a server, with no worker yet."""
    async with open_conduct_stack(database_url, temporal.address, plan_executors=[executor]) as stack:
        await stack.stop_worker()
        environment = clean_environment(
            DATABASE_URL=database_url,
            TEMPORAL_ADDRESS=temporal.address,
            PLAN_EXECUTORS=json.dumps([executor]),
            APP_ENV="test",
        )
        yield PlanBeamline(stack, server, environment, directory)


async def test_a_plan_is_judged_by_what_its_executor_offers_and_carried_out_once(beamline: PlanBeamline) -> None:
    with pytest.raises(PlanNotAllowedError) as unheard:
        await beamline.open("unheard")
    assert unheard.value.reason == "not_heard"
    with beamline.worker():
        await beamline.wait_until_heard()
        (absent, counted) = (await beamline.view()).plans
        assert (absent.offered, counted.offered, counted.touches and counted.touches.reads) == (False, True, ("note",))
        for step, refusal in (
            (action("plan:bl7/sleep", time=1), (PlanNotAllowedError, "not_allowed")),
            (action("plan:bl7/absent"), (PlanNotAllowedError, "plan_missing")),
            (action("plan:bl8/scan"), (PlanNotAllowedError, "executor_unknown")),
            (action("plan:bl7/count_start", seconds="long"), (PlanParametersInvalidError, "plan_parameters")),
        ):
            id = await beamline.stack.register_from_recipe([step])
            with pytest.raises(refusal[0]) as refused:
                await beamline.stack.do(ConductProcedure(wait=0), id)
            assert refused.value.reason == refusal[1]
        id = await beamline.stack.register_from_recipe([action("plan:bl7/count_start", note="judged")])
        preflight = await beamline.stack.ask(PreflightProcedure(), id)
        gates = {gate.gate: gate.passed for gate in preflight.gates}
        assert (gates["plans_known"], gates["plan_parameters_valid"], gates["limits_of_plan_not_known"]) == (True,) * 3
        assert preflight.touched.read == ("ophyd:judged",)
        await beamline.stack.do(ConductProcedure(wait=0), id)
        result = await beamline.result(id)
    assert (result.succeeded, result.actuation_kind, beamline.server.count("judged")) == (True, "Simulated", 1)
    done = (await beamline.stack.ledger(id))[-1]
    assert len(done["result_data"]["run_uids"]) == 1


async def test_another_worker_collects_the_plan_of_a_killed_one(beamline: PlanBeamline) -> None:
    with beamline.worker("doomed") as doomed:
        await beamline.wait_until_heard()
        id = await beamline.open("killed", seconds=3)
        await beamline.wait_for_start("killed")
        doomed.kill()
        doomed.join()
        with beamline.worker("heir"):
            result = await beamline.result(id)
    assert (result.succeeded, beamline.server.count("killed")) == (True, 1)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["queueserver", "blueapi"])
async def test_whenever_a_worker_is_lost_a_plan_is_begun_at_most_once(
    database_url: str, temporal: EmbeddedTemporal, tmp_path: Path, kind: str
) -> None:
    """Kill or suspend workers at random moments: done means one start, unknown none or one, and nothing else happens."""
    chance, found = random.Random(int(os.environ.get("SOAK_SEED", "0"))), list[tuple[str, int]]()
    running = running_queueserver if kind == "queueserver" else running_blueapi
    async with running(tmp_path) as server:
        async for beamline in open_beamline(database_url, temporal, server, tmp_path, executor_settings(server, kind)):
            for number in range(LOSSES):
                note, signal_number = f"loss {number}", chance.choice([signal.SIGKILL, signal.SIGSTOP])
                with beamline.worker(f"lost {number}") as lost:
                    await beamline.wait_until_heard()
                    id = await beamline.open(note, seconds=1.5)
                    await asyncio.sleep(chance.uniform(0, 1.5))  # the moment is what varies
                    os.kill(lost.pid or 0, signal_number)
                    with beamline.worker(f"heir {number}"):
                        result = await beamline.result(id)
                        if signal_number == signal.SIGSTOP:
                            os.kill(lost.pid or 0, signal.SIGCONT)
                            await asyncio.sleep(2)  # what it wakes up to do, it does now
                outcome = "done" if result.succeeded else result.failure.error_class
                found.append((outcome, server.count(note)))
                assert found[-1] == ("done", 1) or (outcome in UNKNOWN_OUTCOMES and server.count(note) <= 1), found
    print(sorted(found))


async def test_a_hold_pauses_the_plan_and_taking_up_resumes_it(beamline: PlanBeamline) -> None:
    with beamline.worker():
        await beamline.wait_until_heard()
        id = await beamline.open("held", seconds=4)
        await beamline.wait_for_start("held")
        await beamline.stack.do(HoldProcedure(reason="look at the sample"), id)
        await beamline.stack.wait_for_status(id, ProcedureStatus.HELD)
        client = Queueserver(beamline.server.address)
        assert (await client._ask("status"))["manager_state"] == "paused"
        await client.close()
        await beamline.stack.do(ConductFromProcedure(re_establishment_boundary=0, wait=0), id)
        assert (await beamline.result(id)).succeeded
    assert beamline.server.count("held") == 1


async def test_a_held_run_pauses_the_plan_of_its_phase_and_a_witness_hears_whose_step_it_is(beamline: PlanBeamline) -> None:
    stack = beamline.stack
    line = await build_run_stack(stack)
    started = await stack.do(StartRun(name="Overview", plan_id=line.plan_id))
    run = StartedRun(stack, UUID((started.body or {})["run_id"]), line.supply_id)
    account = await stack.do(RegisterActor(name="Bluesky at BL7", kind=ActorKind.SERVICE_ACCOUNT))
    witness = replace(stack.caller, principal_id=UUID((account.body or {})["actor_id"]))
    with beamline.worker():
        await beamline.wait_until_heard()
        id = await run.recipe_phase([action("plan:bl7/count_start", note="phase", seconds=4)])
        await stack.do(ConductProcedure(wait=0), id)
        await beamline.wait_for_start("phase")
        begun = next(row for row in await stack.ledger(id) if row["mark"] == "in_flight")
        now, own = datetime.now(UTC), {"baton": {"key": begun["submission_key"]}}
        told = {"document_uid": str(new_id()), "plan_id": line.plan_id, "name": "count", "began_at": now, "metadata": own}
        told["metadata"] = {**own, "num_points": 4}
        answer = await stack.runtime.service.execute(WitnessRun(**told), witness)
        assert answer.body == {"run_id": str(run.run_id), "procedure_id": str(id)}
        word = WitnessRunChange(change=WitnessChange.HEARD, at=now, standing=Standing(events={"primary": 2}))
        await stack.runtime.service.execute(word, witness, target_id=run.run_id)

        async def is_seen() -> bool:
            plan = (await stack.ask(GetProcedureConduct(), id)).plan_step
            known = plan is not None and (plan.key, plan.phase) == (UUID(begun["submission_key"]), "running")
            return known and plan.text == f"plan count_start at bl7 as {plan.job_id}: 2 of 4 events"

        await until(is_seen)
        await run.give("hold_run", reason="look at the sample")
        client = Queueserver(beamline.server.address)

        async def is_paused() -> bool:
            return bool((await client._ask("status"))["manager_state"] == "paused")

        await until(is_paused)
        await run.give("resume_run")
        assert (await beamline.result(id)).succeeded
        await client.close()
        end = WitnessedEnd(exit_status=ExitStatus.SUCCESS)
        change = WitnessRunChange(change=WitnessChange.ENDED, at=datetime.now(UTC), end=end)
        await stack.runtime.service.execute(change, witness, target_id=run.run_id)
    assert ((await run.run()).status, beamline.server.count("phase")) == (RunStatus.RUNNING, 1)


async def test_an_abort_ends_the_plan(beamline: PlanBeamline) -> None:
    with beamline.worker():
        await beamline.wait_until_heard()
        id = await beamline.open("aborted", seconds=60)
        await beamline.wait_for_start("aborted")
        await beamline.stack.do(AbortProcedure(reason="the beam is lost"), id)
        assert not (await beamline.result(id)).succeeded
        assert (await beamline.stack.procedure(id)).status is ProcedureStatus.ABORTED
    client = Queueserver(beamline.server.address)
    assert (await client._ask("status"))["manager_state"] == "idle"
    await client.close()


async def test_a_busy_executor_holds_what_can_be_taken_up_again(beamline: PlanBeamline) -> None:
    with beamline.worker():
        await beamline.wait_until_heard()
        first = await beamline.open("occupying", seconds=3)
        await beamline.wait_for_start("occupying")
        second = await beamline.open("waiting", how=ConductOrHoldProcedure)
        refused = await beamline.result(second)
        assert (refused.failure.error_class, refused.held) == ("PlanExecutorBusyError", True)
        assert (await beamline.result(first)).succeeded
        await beamline.stack.do(ConductFromProcedure(re_establishment_boundary=0, wait=0), second)
        assert (await beamline.result(second)).succeeded
    assert (beamline.server.count("occupying"), beamline.server.count("waiting")) == (1, 1)
