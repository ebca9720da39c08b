"""What is too large for a history is refused where it is made, and named."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from pydantic import BaseModel
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from baton.application.settings import Settings
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.messages import ConductVerdict, StepReport
from baton.infrastructure.temporal.engine import MAX_BYTES, PayloadTooLargeError, connect, data_converter
from tests.support.waiting import until

QUEUE = "bounded"
ONCE = {"start_to_close_timeout": timedelta(seconds=5), "retry_policy": RetryPolicy(maximum_attempts=1)}


class Spectrum(BaseModel):
    counts: str


@activity.defn
async def measure(size: int) -> Spectrum:
    return Spectrum(counts="x" * size)


@activity.defn
async def weigh(spectrum: Spectrum) -> int:
    return len(spectrum.counts)


@workflow.defn(name="bounded-measuring")
class MeasuringWorkflow:
    @workflow.run
    async def run(self, size: int) -> int:
        spectrum: Spectrum = await workflow.execute_activity(measure, size, **ONCE)
        return len(spectrum.counts)


@workflow.defn(name="bounded-weighing")
class WeighingWorkflow:
    @workflow.run
    async def run(self, size: int) -> int:
        weight: int = await workflow.execute_activity(weigh, Spectrum(counts="x" * size), **ONCE)
        return weight


@pytest.fixture
async def client(temporal: EmbeddedTemporal) -> AsyncIterator[Client]:
    client = await connect(Settings(temporal_address=temporal.address))
    async with Worker(
        client,
        task_queue=QUEUE,
        workflows=[MeasuringWorkflow, WeighingWorkflow],
        activities=[measure, weigh],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        yield client


async def test_what_is_within_the_bound_comes_back_as_it_was() -> None:
    spectrum = Spectrum(counts="x" * (MAX_BYTES - len('{"counts":""}')))
    (payload,) = await data_converter.encode([spectrum])
    assert len(payload.data) == MAX_BYTES
    assert await data_converter.decode([payload], [Spectrum]) == [spectrum]


async def test_one_byte_more_is_refused_by_its_name_before_it_is_sent() -> None:
    with pytest.raises(PayloadTooLargeError) as refused:
        await data_converter.encode([StepReport(verdict=ConductVerdict.DONE), Spectrum(counts="x" * (MAX_BYTES - 12))])
    assert str(refused.value) == (
        "A Spectrum (value 2 of 2) has 32,769 bytes, and no workflow or activity is given or answers more than 32,768; "
        "keep it in the database and pass its id."
    )


async def test_what_somebody_else_sent_is_refused_before_it_is_read() -> None:
    (payload,) = await data_converter.encode([Spectrum(counts="")])
    payload.data = b'{"counts":"' + b"x" * MAX_BYTES + b'"}'
    with pytest.raises(PayloadTooLargeError, match=r"^A Spectrum has 32,781 bytes"):
        await data_converter.decode([payload], [Spectrum])


async def test_a_workflow_is_not_started_with_more_than_it_may_be_told(client: Client) -> None:
    with pytest.raises(PayloadTooLargeError, match=r"^A str has 32,771 bytes"):
        await client.start_workflow("bounded-measuring", "x" * (MAX_BYTES + 1), id="bounded:start", task_queue=QUEUE)


async def test_an_activity_that_answers_too_much_fails_and_says_what(client: Client) -> None:
    assert await client.execute_workflow(MeasuringWorkflow.run, 1000, id="bounded:small", task_queue=QUEUE) == 1000
    with pytest.raises(WorkflowFailureError) as failed:
        await client.execute_workflow(MeasuringWorkflow.run, MAX_BYTES, id="bounded:large", task_queue=QUEUE)
    assert isinstance(failed.value.cause, ActivityError)
    cause = failed.value.cause.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.type, cause.message.partition(",")[0]) == ("PayloadTooLargeError", "A Spectrum has 32")


async def test_a_workflow_that_asks_for_too_much_stands_still_until_its_code_is_mended(client: Client) -> None:
    handle = await client.start_workflow(WeighingWorkflow.run, MAX_BYTES, id="bounded:asks", task_queue=QUEUE)

    async def failed_task() -> str | None:
        events = (await handle.fetch_history()).events
        failures = [event.workflow_task_failed_event_attributes.failure for event in events]
        return next((failure.message for failure in failures if failure.message), None)

    assert str(await until(failed_task)).startswith("A Spectrum has 32,781 bytes")
    await handle.terminate()
