"""What fails inside the SDK is one structured line: what it was and where, and never what it said."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import structlog
from structlog.testing import capture_logs
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from baton.application.settings import Settings
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.infrastructure.temporal.engine import MAX_BYTES, connect
from baton.infrastructure.temporal.interceptors import CallerInterceptor
from baton.infrastructure.temporal.sdk_logging import SDK, configure_sdk_logging
from tests.support.waiting import until

SECRET = "the sample of J. Doe"
ONCE = {"start_to_close_timeout": timedelta(seconds=5), "retry_policy": RetryPolicy(maximum_attempts=1)}

Lines = list[Any]


@activity.defn(name="fail")
async def fail(how: str) -> str:
    if how == "raise":
        raise ValueError(SECRET)
    return "x" * (MAX_BYTES if how == "answer" else 1)


class WaitingWorkflow:
    def __init__(self) -> None:
        self._told = False

    @workflow.signal
    def go_on(self) -> None:
        self._told = True

    async def wait_for_signal(self) -> None:
        await workflow.wait_condition(lambda: self._told)


@workflow.defn(name="failing")
class FailingWorkflow(WaitingWorkflow):
    @workflow.run
    async def run(self, how: str) -> None:
        if how == "task":
            raise RuntimeError(SECRET)
        await workflow.execute_activity(fail, how, **ONCE)
        await self.wait_for_signal()


@workflow.defn(name="failing")
class ChangedWorkflow(WaitingWorkflow):
    """What became of the same workflow in a careless release."""

    @workflow.run
    async def run(self, how: str) -> None:
        await self.wait_for_signal()


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What is logged, with what is bound to its context."""
    before, passes_on = SDK.handlers, SDK.propagate
    configure_sdk_logging()
    with capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        yield lines
    SDK.handlers, SDK.propagate = before, passes_on


@dataclass
class WorkflowQueue:
    """A client and a queue of its own."""

    client: Client
    queue: str

    async def start_workflow(self, how: str) -> WorkflowHandle[Any, Any]:
        return await self.client.start_workflow("failing", how, id=f"failing:{uuid4()}", task_queue=self.queue)

    @asynccontextmanager
    async def running_worker(self, kind: type = FailingWorkflow) -> AsyncIterator[None]:
        async with Worker(
            self.client,
            task_queue=self.queue,
            workflows=[kind],
            activities=[fail],
            interceptors=[CallerInterceptor()],
            workflow_runner=UnsandboxedWorkflowRunner(),
        ):
            yield


@pytest.fixture
async def workflow_queue(temporal: EmbeddedTemporal) -> WorkflowQueue:
    return WorkflowQueue(await connect(Settings(temporal_address=temporal.address)), f"failing:{uuid4()}")


async def test_a_failed_activity_is_one_line_that_says_where(workflow_queue: WorkflowQueue, lines: Lines) -> None:
    handle = await workflow_queue.start_workflow("raise")
    async with workflow_queue.running_worker():
        await until(lambda: lines)
    (line,) = lines
    assert line["event"] == "activity_failed"
    assert (line["workflow_id"], line["workflow"], line["activity"], line["attempt"]) == (handle.id, "failing", "fail", 1)
    assert (line["error"], line["log_level"]) == ("ValueError", "warning")
    assert line["raised_at"][-1].endswith(" fail")
    assert SECRET not in str(lines)


async def test_an_answer_that_is_too_large_is_told_like_any_other_failure(
    workflow_queue: WorkflowQueue, lines: Lines
) -> None:
    await workflow_queue.start_workflow("answer")
    async with workflow_queue.running_worker():
        await until(lambda: lines)
    (line,) = lines
    assert (line["event"], line["error"], line["activity"]) == ("activity_failed", "PayloadTooLargeError", "fail")


async def test_a_failed_workflow_task_is_a_line_without_what_the_exception_said(
    workflow_queue: WorkflowQueue, lines: Lines
) -> None:
    handle = await workflow_queue.start_workflow("task")
    async with workflow_queue.running_worker():
        await until(lambda: lines)
        told = list(lines)  # of what is terminated while it fails again, the engine has more to say
        await handle.terminate()
    assert {line["event"] for line in told} == {"workflow_task_failed"}
    assert (told[0]["workflow_id"], told[0]["error"]) == (handle.id, "RuntimeError")
    assert told[0]["raised_at"][-1].endswith(" run")
    assert SECRET not in str(lines)


async def test_a_workflow_that_no_longer_does_what_its_history_says_is_told(
    workflow_queue: WorkflowQueue, lines: Lines
) -> None:
    handle = await workflow_queue.start_workflow("measure")

    async def has_measured() -> bool:
        kinds = [event.WhichOneof("attributes") async for event in handle.fetch_history_events()]
        return "activity_task_completed_event_attributes" in kinds

    async with workflow_queue.running_worker():
        await until(has_measured)
    async with workflow_queue.running_worker(ChangedWorkflow):
        await handle.signal("go_on")
        await until(lambda: lines, 30)  # the engine may look for the worker that is gone first
        await handle.terminate()
    run_id = (await handle.describe()).run_id
    assert (lines[0]["event"], lines[0]["cause"]) == ("workflow_task_failed", "NonDeterministicError")
    assert lines[0]["message"].startswith("[TMPRL1100] Nondeterminism error: ")
    assert lines[0]["run_id"] == run_id


def test_a_remark_of_the_sdk_is_cut_before_what_an_exception_says(lines: Lines) -> None:
    logging.getLogger("temporalio.worker").warning(f"Completing as failure with error of type {ValueError}: {SECRET}")
    assert lines == [
        {
            "event": "engine_message",
            "message": "Completing as failure with error of type <class 'ValueError'>",
            "log_level": "warning",
        }
    ]
