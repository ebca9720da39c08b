"""Recorded histories against today's workflows: what a conduct has begun, every later release can go on with."""

import base64
import json
import re
from collections.abc import AsyncIterator, Collection
from functools import cache
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from baton.activities.bindings import declared_workflows
from baton.domain.conduct.messages import ConductOrder
from baton.infrastructure.temporal.engine import data_converter
from baton.infrastructure.temporal.interceptors import CallerInterceptor
from baton.infrastructure.temporal.sdk_logging import core_runtime
from baton.workflows.conduct import ConductWorkflow
from tests.support.workflows.history_recorder import HISTORIES, NEUTRAL

pytestmark = pytest.mark.slow

FILES = sorted(HISTORIES.glob("*.json"))
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


@cache
def one_of_each_kind() -> dict[str, Path]:
    return {kind_of(path): path for path in FILES}


async def replay(paths: Collection[Path], *, sandboxed: bool) -> None:
    """Replay these histories, and report every one that fails."""

    async def histories() -> AsyncIterator[WorkflowHistory]:
        for path in paths:
            yield history(path)

    replayed: dict[str, Exception | None] = {}
    async with replayer(*declared_workflows(), sandboxed=sandboxed).workflow_replay_iterator(histories()) as results:
        async for result in results:
            replayed[result.history.workflow_id] = result.replay_failure
    assert len(replayed) == len(paths)
    assert {id: failure for id, failure in replayed.items() if failure} == {}


async def test_every_recorded_workflow_can_be_gone_on_with() -> None:
    await replay(FILES, sandboxed=False)


async def test_a_recorded_workflow_of_each_kind_can_be_gone_on_with_in_the_sandbox() -> None:
    await replay(one_of_each_kind().values(), sandboxed=True)


@pytest.mark.soak
async def test_every_recorded_workflow_can_be_gone_on_with_in_the_sandbox() -> None:
    await replay(FILES, sandboxed=True)


def test_there_are_histories_of_every_workflow() -> None:
    ours = {workflow._Definition.must_from_class(kind).name for kind in declared_workflows()}
    assert one_of_each_kind().keys() == ours


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


def test_no_history_tells_of_the_machine_it_was_recorded_on() -> None:
    telling = []
    for path in FILES:
        text = path.read_text()
        payloads = [base64.b64decode(data).decode() for data in re.findall(r'"data":"([^"]*)"', text)]
        assert payloads or path.stem == "supervise-runs", "that one is told nothing"
        told = [found[0] for one in (text, *payloads) if (found := WELL_KNOWN.search(one))]
        told += [one for one in re.findall(r'[^"]*@[^"]*', text) if not one.startswith(NEUTRAL)]
        told_by = {one for one in re.findall(r'"identity":"([^"]*)"', text) if not one.startswith(SCHEDULER)}
        telling += [(path.stem, one) for one in (*told, *(told_by - {NEUTRAL, "history-service", ""}))]
    assert telling == []


def test_every_history_is_small_and_has_a_line_for_every_event() -> None:
    texts = {path.stem: path.read_text() for path in FILES}
    assert [name for name, text in texts.items() if len(text.encode()) >= 64 * 1024] == []
    assert [name for name, text in texts.items() if len(text.splitlines()) != len(json.loads(text)["events"]) + 2] == []
