"""Recorded histories against today's workflows: what a conduct has begun, every later release can go on with."""

import base64
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from baton.cli.worker import WORKFLOWS
from baton.domain.operation.conduct.messages import ConductOrder
from baton.infrastructure.temporal.engine import data_converter
from baton.infrastructure.temporal.interceptors import CallerInterceptor
from baton.infrastructure.temporal.sdk_logging import core_runtime
from baton.workflows.conduct import ConductWorkflow
from tests.support.workflows.history_recorder import HISTORIES, NEUTRAL

FILES = sorted(HISTORIES.glob("*.json"))
every_history = pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
WELL_KNOWN = re.compile(r"/(tmp|home|root|work|usr|var|opt|Users)/|\.py\b|localhost|127\.0\.0\.1")
"""What would identify the machine that a history was recorded on."""
SCHEDULER = "temporal-scheduler-default-schedule:"
"""How the engine calls itself where it starts a workflow on a calendar."""


def replayer(*kinds: type, sandboxed: bool) -> Replayer:
    """As a worker would go on with them, but without one."""
    runner = SandboxedWorkflowRunner() if sandboxed else UnsandboxedWorkflowRunner()
    return Replayer(
        workflows=kinds,
        workflow_runner=runner,
        data_converter=data_converter,
        interceptors=[CallerInterceptor()],
        runtime=core_runtime(),
    )


def history(path: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json(f"recorded:{path.stem}", path.read_text())


def kind_of(path: Path) -> str:
    return history(path).events[0].workflow_execution_started_event_attributes.workflow_type.name


async def each_history() -> AsyncIterator[WorkflowHistory]:
    for path in FILES:
        yield history(path)


@pytest.mark.parametrize("sandboxed", [True, False], ids=["sandboxed", "as in production"])
async def test_every_recorded_workflow_can_be_gone_on_with(sandboxed: bool) -> None:
    replayed: dict[str, Exception | None] = {}
    async with replayer(*WORKFLOWS, sandboxed=sandboxed).workflow_replay_iterator(each_history()) as results:
        async for result in results:
            replayed[result.history.workflow_id] = result.replay_failure
    assert len(replayed) == len(FILES)
    assert {id: failure for id, failure in replayed.items() if failure} == {}


def test_there_are_histories_of_every_workflow() -> None:
    ours = {workflow._Definition.must_from_class(kind).name for kind in WORKFLOWS}
    assert {kind_of(path) for path in FILES} == ours


@workflow.defn(name="conduct")
class Careless(ConductWorkflow):
    """A conduct that has learned to rest first, and forgotten those who are on their way."""

    @workflow.init
    def __init__(self, order: ConductOrder) -> None:
        super().__init__(order)

    @workflow.run
    async def run(self, order: ConductOrder) -> None:
        await workflow.sleep(1)
        await super().run(order)


async def test_a_workflow_that_does_something_else_first_fails_the_replay() -> None:
    path = HISTORIES / "conduct-waiting.json"
    await replayer(ConductWorkflow, sandboxed=False).replay_workflow(history(path))
    with pytest.raises(workflow.NondeterminismError, match="Nondeterminism error"):
        await replayer(Careless, sandboxed=False).replay_workflow(history(path))


@every_history
def test_a_history_tells_nothing_of_the_machine_it_was_recorded_on(path: Path) -> None:
    text = path.read_text()
    payloads = [base64.b64decode(data).decode() for data in re.findall(r'"data":"([^"]*)"', text)]
    assert payloads or path.stem == "supervise-runs", "that one is told nothing"
    for told in (text, *payloads):
        assert WELL_KNOWN.search(told) is None
    told_by = set(re.findall(r'"identity":"([^"]*)"', text))
    assert {one for one in told_by if not one.startswith(SCHEDULER)} <= {NEUTRAL, "history-service", ""}
    assert all(one.startswith(NEUTRAL) for one in re.findall(r'[^"]*@[^"]*', text))


@every_history
def test_a_history_is_small_and_has_a_line_for_every_event(path: Path) -> None:
    assert path.stat().st_size < 64 * 1024
    assert len(path.read_text().splitlines()) == len(json.loads(path.read_text())["events"]) + 2
