"""What every workflow engine promises, asked of the one in memory and of Temporal alike."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client, WorkflowExecution
from temporalio.common import RetryPolicy
from temporalio.worker import Worker

from baton.application.ports import Engine, EngineUnavailableError, EngineView, Job
from baton.application.settings import Settings
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.agent.reactions import OpenItem
from baton.infrastructure.temporal.engine import MANY_ATTEMPTS, TASK_QUEUE, TemporalEngine, connect, describe_open
from baton.testing.ports import MemoryEngine
from tests.support.domain.world import new_id
from tests.support.infrastructure.epics_servers import free_ports
from tests.support.waiting import until

STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
QUICKLY = RetryPolicy(initial_interval=timedelta(milliseconds=1), maximum_interval=timedelta(milliseconds=5))


@activity.defn(name="contract_failing")
async def fail() -> None:
    raise RuntimeError("again and again")


@activity.defn(name="contract_recovering")
async def fail_then_recover() -> None:
    if activity.info().attempt < MANY_ATTEMPTS + 2:
        raise RuntimeError("not yet")
    await asyncio.Event().wait()


@workflow.defn(name="contract", sandboxed=False)
class ScriptedWorkflow:
    """A workflow that does what it is told."""

    def __init__(self) -> None:
        self._told: str | None = None
        self._news = 0

    @workflow.run
    async def run(self, argument: Any) -> None:
        await workflow.wait_condition(lambda: self._told is not None)
        if self._told != "end":
            await workflow.execute_activity(
                f"contract_{self._told}", start_to_close_timeout=timedelta(seconds=60), retry_policy=QUICKLY
            )

    @workflow.signal
    def tell(self, what: str) -> None:
        self._told = what

    @workflow.signal
    def news(self) -> None:
        self._news += 1

    @workflow.query
    def told_of_news(self) -> int:
        return self._news


@dataclass
class EngineUnderTest:
    """An engine under test, and what plays the workflows in it."""

    engine: Engine
    unreachable: Engine
    end: Callable[[str], Awaitable[None]]
    stall: Callable[[str], Awaitable[None]]
    told: Callable[[str], Awaitable[int]]  # how often the job of this id was told of news
    recover: Callable[[str], Awaitable[None]] | None = None


@pytest.fixture(scope="module")
async def temporal_machine(temporal: EmbeddedTemporal) -> AsyncIterator[EngineUnderTest]:
    settings = Settings(temporal_address=temporal.address, app_env="test")
    client = await connect(settings)
    (nowhere,) = free_ports(1)
    away = TemporalEngine(Settings(temporal_address=f"127.0.0.1:{nowhere}", app_env="test"))

    async def end(id: str) -> None:
        await client.get_workflow_handle(id).signal("tell", "end")
        await client.get_workflow_handle(id).result()

    async def stall(id: str) -> None:
        await client.get_workflow_handle(id).signal("tell", "failing")
        await until(lambda: failed_often(client, id), within=60)

    async def recover(id: str) -> None:
        await client.get_workflow_handle(id).signal("tell", "recovering")
        await until(lambda: is_under_way_again(client, id), within=60)

    async def count_news(id: str) -> int:
        return await client.get_workflow_handle(id).query(ScriptedWorkflow.told_of_news)

    async with Worker(client, task_queue=TASK_QUEUE, workflows=[ScriptedWorkflow], activities=[fail, fail_then_recover]):
        yield EngineUnderTest(TemporalEngine(settings), away, end, stall, count_news, recover)


async def failed_often(client: Client, id: str) -> bool:
    known = await client.get_workflow_handle(id).describe()
    return any(one.attempt >= MANY_ATTEMPTS for one in known.raw_description.pending_activities)


async def is_under_way_again(client: Client, id: str) -> bool:
    known = await client.get_workflow_handle(id).describe()
    return any(one.attempt == MANY_ATTEMPTS + 2 and one.state == STARTED for one in known.raw_description.pending_activities)


def memory_machine() -> EngineUnderTest:
    engine, away = MemoryEngine(), MemoryEngine()
    away.reachable = False

    async def end(id: str) -> None:
        engine.end(id)

    async def stall(id: str) -> None:
        engine.stall(id)

    async def count_news(id: str) -> int:
        return engine.told.count(id)

    return EngineUnderTest(engine, away, end, stall, count_news)


@pytest.fixture(params=["memory", "temporal"])
def machine(request: pytest.FixtureRequest, temporal_machine: EngineUnderTest) -> EngineUnderTest:
    return memory_machine() if request.param == "memory" else temporal_machine


@pytest.fixture
async def job(machine: EngineUnderTest) -> AsyncIterator[Job]:
    """A job with an id of its own; nothing of it is left behind."""
    id = f"contract:{new_id()}"
    yield Job("contract", id, {"of": "a test"}, attributes={"BatonFacility": "facility"}, summary="a test of the engine")
    await machine.engine.terminate(id, "the test is over")


class TestStarting:
    async def test_what_was_started_is_open(self, machine: EngineUnderTest, job: Job) -> None:
        assert await machine.engine.view(job.id) is EngineView.ABSENT
        assert await machine.engine.start(job)
        assert await machine.engine.view(job.id) is EngineView.OPEN

    async def test_what_is_to_run_once_is_not_started_again_after_its_end(self, machine: EngineUnderTest, job: Job) -> None:
        once = replace(job, once=True, memo={"event_id": "an event"})
        assert await machine.engine.start(once)
        await machine.end(job.id)
        assert not await machine.engine.start(once)
        assert await machine.engine.view(job.id) is EngineView.ABSENT

    async def test_what_is_open_is_left_alone(self, machine: EngineUnderTest, job: Job) -> None:
        await machine.engine.start(job)
        assert not await machine.engine.start(job)
        assert await machine.engine.view(job.id) is EngineView.OPEN

    async def test_of_many_that_start_it_at_once_one_does(self, machine: EngineUnderTest, job: Job) -> None:
        started = await asyncio.gather(*(machine.engine.start(job) for _ in range(5)))
        assert sorted(started) == [False] * 4 + [True]

    async def test_after_its_end_the_id_is_free_again(self, machine: EngineUnderTest, job: Job) -> None:
        await machine.engine.start(job)
        await machine.end(job.id)
        assert await machine.engine.view(job.id) is EngineView.ABSENT
        assert await machine.engine.start(job)

    async def test_what_is_open_is_told_of_news_and_nothing_else_is_started(
        self, machine: EngineUnderTest, job: Job
    ) -> None:
        await machine.engine.start(job)
        news = replace(job, news=True)
        assert await machine.engine.start(news)
        assert await machine.engine.start(news)
        assert await machine.told(job.id) == 2
        await machine.end(job.id)
        assert await machine.engine.view(job.id) is EngineView.ABSENT, "one was open, and no other"

    async def test_where_none_is_open_news_start_one(self, machine: EngineUnderTest, job: Job) -> None:
        assert await machine.engine.start(replace(job, news=True))
        assert await machine.engine.view(job.id) is EngineView.OPEN

    async def test_others_have_ids_of_their_own(self, machine: EngineUnderTest, job: Job) -> None:
        await machine.engine.start(job)
        assert await machine.engine.view(f"{job.id}:other") is EngineView.ABSENT


class TestWhatIsOpen:
    async def test_it_is_listed_with_the_event_it_was_started_for_until_its_end(
        self, machine: EngineUnderTest, job: Job
    ) -> None:
        event_id, other = new_id(), replace(job, id=f"{job.id}:other")
        await machine.engine.start(other)
        await machine.engine.start(replace(job, memo={"event_id": str(event_id)}))

        async def is_listed() -> list[OpenItem]:
            return [item for item in await machine.engine.open_items(["contract"]) if item.workflow_id == job.id]

        (item,) = await until(is_listed)
        assert (item.event_id, item.attempt, item.last_error) == (event_id, 1, None)
        assert await machine.engine.open_items(["another"]) == []
        found = {item.workflow_id for item in await machine.engine.open_items(["contract"])}
        assert other.id not in found, "it was started for no event"
        await machine.engine.terminate(other.id, "the test is over")
        await machine.end(job.id)
        assert await is_listed() == []


class TestStalling:
    async def test_what_fails_again_and_again_is_stalled_until_it_is_terminated(
        self, machine: EngineUnderTest, job: Job
    ) -> None:
        await machine.engine.start(job)
        await machine.stall(job.id)

        async def is_stalled() -> bool:
            return await machine.engine.view(job.id) is EngineView.STALLED  # not while another attempt is just under way

        await until(is_stalled, within=60)
        assert not await machine.engine.start(job), "it is open nevertheless"
        await machine.engine.terminate(job.id, "given up")
        assert await machine.engine.view(job.id) is EngineView.ABSENT


async def test_what_failed_often_and_is_under_way_again_is_not_stalled(temporal_machine: EngineUnderTest) -> None:
    """As a long wait is, which begins anew with every worker."""
    job = Job("contract", f"contract:{new_id()}", {"of": "a test"})
    await temporal_machine.engine.start(job)
    await temporal_machine.recover(job.id)
    assert await temporal_machine.engine.view(job.id) is EngineView.OPEN
    await temporal_machine.engine.terminate(job.id, "the test is over")


class TestTerminating:
    async def test_what_was_terminated_is_gone(self, machine: EngineUnderTest, job: Job) -> None:
        await machine.engine.start(job)
        await machine.engine.terminate(job.id, "given up")
        assert await machine.engine.view(job.id) is EngineView.ABSENT
        assert await machine.engine.start(job)

    async def test_what_is_not_there_may_be_terminated(self, machine: EngineUnderTest, job: Job) -> None:
        await machine.engine.terminate(job.id, "given up")
        await machine.engine.start(job)
        for _ in range(2):
            await machine.engine.terminate(job.id, "given up")


async def test_what_is_gone_since_it_was_listed_is_left_out(
    temporal_machine: EngineUnderTest, temporal: EmbeddedTemporal
) -> None:
    engine, job = temporal_machine.engine, Job("contract", f"contract:{new_id()}", {"of": "a test"})
    assert isinstance(engine, TemporalEngine)
    await engine.start(job)
    client = await connect(Settings(temporal_address=temporal.address, app_env="test"))

    async def is_listed() -> list[WorkflowExecution]:
        return [known async for known in client.list_workflows(f"WorkflowId = '{job.id}'")]

    (known,) = await until(is_listed)
    assert await describe_open(client, known.id, str(new_id())) is None
    await engine.terminate(job.id, "the test is over")
    assert await describe_open(client, known.id, known.run_id) is None


async def test_an_engine_that_answers_and_refuses_says_with_what(temporal: EmbeddedTemporal) -> None:
    settings = Settings(temporal_address=temporal.address, temporal_namespace="nowhere", app_env="test")
    with pytest.raises(EngineUnavailableError) as caught:
        await TemporalEngine(settings).start(Job("contract", "contract:none", {"of": "a test"}))
    assert "(NOT_FOUND)" in caught.value.detail


@pytest.mark.parametrize("asking", ["open_items", "start", "view", "terminate", "answer"])
async def test_an_engine_that_cannot_be_reached_says_so(machine: EngineUnderTest, asking: str) -> None:
    engine = machine.unreachable
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "open_items": lambda: engine.open_items(["contract"]),
        "start": lambda: engine.start(Job("contract", "contract:none", {"of": "a test"})),
        "view": lambda: engine.view("contract:none"),
        "terminate": lambda: engine.terminate("contract:none", "given up"),
        "answer": lambda: engine.answer(Job("contract", "contract:none", {"of": "a test"}), dict, 1.0),
    }
    with pytest.raises(EngineUnavailableError):
        await calls[asking]()
