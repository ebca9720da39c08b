"""Whatever a workflow sets going is told on whose behalf, and every line logged there says so."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
import structlog
from temporalio import activity, workflow
from temporalio import client as client_module
from temporalio import worker as worker_module
from temporalio.client import Client
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, UnsandboxedWorkflowRunner, Worker

from baton.application.settings import Settings
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.infrastructure.temporal.engine import connect
from baton.infrastructure.temporal.interceptors import HEADER, CallerInterceptor
from tests.support.workflows.conduct_stack import OPERATOR, open_conduct_stack
from tests.support.workflows.step_json import setpoint

QUEUE = "carrying"
SOON = {"start_to_close_timeout": timedelta(seconds=10)}


@dataclass
class Order:
    """What a workflow is told that knows its caller."""

    principal_id: UUID
    surface_id: UUID
    conduit_id: UUID
    correlation_id: UUID


@activity.defn(name="bound")
async def bound() -> dict[str, Any]:
    """What a line logged here would say besides."""
    return structlog.contextvars.get_contextvars()


@workflow.defn(name="carrying-parent")
class Parent:
    @workflow.run
    async def run(self, order: Order) -> list[dict[str, Any]]:
        own = await workflow.execute_activity(bound, **SOON)
        beside = await workflow.execute_local_activity(bound, **SOON)
        child = await workflow.execute_child_workflow(Child.run, "first", id=f"{workflow.info().workflow_id}:child")
        return [own, beside, child]


@workflow.defn(name="carrying-child")
class Child:
    @workflow.run
    async def run(self, turn: str) -> dict[str, Any]:
        if turn == "first":
            workflow.continue_as_new("second")
        found: dict[str, Any] = await workflow.execute_activity(bound, **SOON)
        return found


@pytest.fixture
async def client(temporal: EmbeddedTemporal) -> AsyncIterator[Client]:
    client = await connect(Settings(temporal_address=temporal.address))
    async with Worker(
        client,
        task_queue=QUEUE,
        workflows=[Parent, Child],
        activities=[bound],
        interceptors=[CallerInterceptor()],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        yield client


async def test_activities_and_children_learn_who_the_caller_is(client: Client) -> None:
    order, id = Order(uuid4(), uuid4(), uuid4(), uuid4()), f"carrying:{uuid4()}"
    own, beside, child = await client.execute_workflow(Parent.run, order, id=id, task_queue=QUEUE)
    caller = {"principal_id": str(order.principal_id), "correlation_id": str(order.correlation_id), "activity": "bound"}
    assert own == beside == {**caller, "workflow_id": id}
    assert child == {**caller, "workflow_id": f"{id}:child"}, "also in the execution that it continues as"


async def test_a_workflow_that_knows_of_no_caller_is_none_the_worse(client: Client) -> None:
    id = f"carrying:{uuid4()}"
    found = await client.execute_workflow(Child.run, "second", id=id, task_queue=QUEUE)
    assert found == {"workflow_id": id, "activity": "bound"}


class ToldCallers(client_module.Interceptor, worker_module.Interceptor):
    """Keeps the caller that every activity of a worker is told, the local ones included."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        told = self.told

        class Listening(ActivityInboundInterceptor):
            async def execute_activity(self, input: ExecuteActivityInput) -> Any:
                told[activity.info().activity_type] = orjson.loads(input.headers[HEADER].data)
                return await super().execute_activity(input)

        return Listening(next)


async def test_every_activity_of_a_conduct_is_told_the_whole_caller(database_url: str, temporal: EmbeddedTemporal) -> None:
    heard = ToldCallers()
    async with open_conduct_stack(database_url, temporal.address, simulated_signals={"a": 0}) as stage:
        await stage.stop_worker()
        stage.client = Client(**{**stage.client.config(), "interceptors": [heard]})
        await stage.start_worker()
        _, result = await stage.conduct_steps([setpoint("a", 1)])
        assert result["succeeded"]
    expected = {
        "principal_id": str(OPERATOR),
        "surface_id": str(stage.caller.surface_id),
        "conduit_id": str(stage.caller.conduit_id),
        "correlation_id": str(stage.caller.correlation_id),
    }
    assert heard.told == dict.fromkeys(("brief_conduct", "do_step", "end_conduct"), expected)
