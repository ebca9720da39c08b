"""Conducts at speed: a durable step beside an empty activity, holds, many conducts at once, a killed worker."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
from temporalio import activity, workflow
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

from baton.infrastructure.temporal.engine import TASK_QUEUE
from tests.support.waiting import until

STEPS = 1_000
HOLDS = 50
CONCURRENT, EACH = 100, 20
QUEUE = "bench"


@activity.defn(name="nothing")
async def nothing() -> None:
    """The emptiest activity there is."""


@workflow.defn(name="empty-activities", sandboxed=False)
class EmptyActivities:
    """One empty activity after the other, in executions as long as those of a conduct."""

    @workflow.run
    async def run(self, left: int) -> None:
        for _ in range(min(left, 500)):
            await workflow.execute_activity("nothing", start_to_close_timeout=timedelta(seconds=30))
        if left > 500:
            workflow.continue_as_new(left - 500)


async def serve_empty_activities(address: str) -> None:
    """A worker for them, in a process of its own as ours is."""
    client = await Client.connect(address, data_converter=pydantic_data_converter)
    async with Worker(client, task_queue=QUEUE, workflows=[EmptyActivities], activities=[nothing]):
        await asyncio.Event().wait()


@dataclass
class ConductBench:
    """A service, its worker and the engine."""

    client: httpx.AsyncClient
    address: str
    environment: dict[str, str]
    worker: "subprocess.Popen[bytes]"

    async def empty_activity(self, count: int) -> float:
        """Milliseconds for each of so many empty activities in a row."""
        client = await Client.connect(self.address, data_converter=pydantic_data_converter)
        empty_worker = launch([sys.executable, "-m", "tests.bench.conducts", self.address], self.environment)
        try:
            await client.execute_workflow("empty-activities", 50, id="warm", task_queue=QUEUE)
            started = time.perf_counter()
            await client.execute_workflow("empty-activities", count, id="empty", task_queue=QUEUE)
            return (time.perf_counter() - started) / count * 1000
        finally:
            empty_worker.kill()
            empty_worker.wait()

    async def durable_step(self, count: int, address: str = "a") -> float:
        """Milliseconds for each of so many setpoints in a row."""
        recipe = await self._recipe([{"kind": "setpoint", "address": address, "value": n} for n in range(count)])
        await self._conduct(await self._procedure([{**SET, "address": address}] * 50))
        body = {"name": "Long", "kind": "bench"}
        made = await self._post(f"/recipes/{recipe}/procedures", body)
        started = time.perf_counter()
        await self._conduct((made["procedure_id"], []))
        return (time.perf_counter() - started) / count * 1000

    async def register_scan(self, points: int) -> str:
        """Return a procedure that is to scan so many points, with a setpoint and a capture for each."""
        steps = [one for n in range(points) for one in ({**SET, "value": n}, {**CAPTURE, "capture_name": f"height_{n}"})]
        made = await self._post(f"/recipes/{await self._recipe(steps)}/procedures", {"name": "Scan", "kind": "bench"})
        return str(made["procedure_id"])

    async def conduct_scan(self, procedure: str) -> float:
        """Return the seconds that a scan takes."""
        started = time.perf_counter()
        await self._conduct((procedure, []))
        return time.perf_counter() - started

    async def holds(self, count: int) -> tuple[list[float], list[float]]:
        """Milliseconds until each of so many holds was accepted, and until it was in force."""
        accepted, in_force = [], []
        for _ in range(count):
            procedure, steps = await self._procedure([SET] * 400)
            await self._post(f"/procedures/{procedure}/conduct", {"steps": steps, "wait": 0})
            await until(lambda of=procedure: self._matches(f"{of}/conduct", lambda seen: seen["step_index"] is not None))
            started = time.perf_counter()
            await self._post(f"/procedures/{procedure}/hold", {"reason": "bench"})
            accepted.append((time.perf_counter() - started) * 1000)
            await until(lambda of=procedure: self._matches(of, lambda seen: seen["status"] == "Held"), longest_pause=0.01)
            in_force.append((time.perf_counter() - started) * 1000)
        return accepted, in_force

    async def conduct_many(self, conducts: int, steps: int) -> float:
        """Steps a second over so many conducts at once."""
        waiting = [await self._procedure([SET] * steps) for _ in range(conducts)]
        started = time.perf_counter()
        await asyncio.gather(*map(self._conduct, waiting))
        return conducts * steps / (time.perf_counter() - started)

    async def restart_after_kill(self) -> float:
        """Seconds from the kill of the worker to the next step that its successor does."""
        procedure = await self._walk_until_killed()
        started = time.perf_counter()
        reached = (await self.client.get(f"/procedures/{procedure}/conduct")).json()["step_index"]
        self.worker = launch(WORKER, self.environment)
        await until(
            lambda: self._matches(f"{procedure}/conduct", lambda seen: seen["step_index"] > reached), longest_pause=0.02
        )
        return time.perf_counter() - started

    async def take_over_after_kill(self) -> float:
        """Seconds from the kill of the worker to the next step, where a second one has run beside it."""
        first, second = self.worker, launch(WORKER, self.environment)
        await until(lambda: self._has_workers(2))
        procedure = await self._walk_until_killed(second)
        started = time.perf_counter()
        self.worker = second if second.returncode is None else first
        reached = (await self.client.get(f"/procedures/{procedure}/conduct")).json()["step_index"]
        await until(
            lambda: self._matches(f"{procedure}/conduct", lambda seen: seen["step_index"] > reached), longest_pause=0.02
        )
        return time.perf_counter() - started

    async def _has_workers(self, count: int) -> bool:
        """Whether so many workers ask the engine for work."""
        client = await Client.connect(self.address)
        queue = TaskQueue(name=TASK_QUEUE)
        request = DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=queue, task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
        )
        return len((await client.workflow_service.describe_task_queue(request)).pollers) >= count

    async def _walk_until_killed(self, *others: "subprocess.Popen[bytes]") -> str:
        """Kill the worker that walks a conduct, once it has walked a few steps, and return the procedure."""
        procedure, steps = await self._procedure([SET] * 400)
        await self._post(f"/procedures/{procedure}/conduct", {"steps": steps, "wait": 0})
        await until(lambda: self._matches(f"{procedure}/conduct", lambda seen: (seen["step_index"] or 0) > 20))
        client = await Client.connect(self.address)
        described = await client.get_workflow_handle(f"conduct:{procedure}").describe()
        at_work = {one.last_worker_identity.split("@")[0] for one in described.raw_description.pending_activities}
        (killed,) = [worker for worker in (self.worker, *others) if str(worker.pid) in at_work]
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        return procedure

    async def _matches(self, path: str, wanted: Callable[[Any], bool]) -> bool:
        return wanted((await self.client.get(f"/procedures/{path}")).json())

    async def _recipe(self, steps: list[Any]) -> str:
        capability = await self._post(
            "/capabilities",
            {
                "code": f"baton.capability.bench_{time.time_ns()}",
                "name": "Bench",
                "required_affordances": [],
                "executor_shapes": ["PROCEDURE"],
            },
        )
        request_body = {"name": "bench", "capability_id": capability["capability_id"], "steps": steps}
        return str((await self._post("/recipes", request_body))["recipe_id"])

    async def _procedure(self, steps: list[Any]) -> tuple[str, list[Any]]:
        made = await self._post("/procedures", {"name": "Bench", "kind": "bench"})
        return str(made["procedure_id"]), steps

    async def _conduct(self, procedure_and_steps: tuple[str, list[Any]]) -> None:
        """Wait for a conduct, however long it takes."""
        procedure, steps = procedure_and_steps
        key = {"Idempotency-Key": f"bench-{procedure}"}
        while True:
            answer = await self.client.post(
                f"/procedures/{procedure}/conduct", json={"steps": steps, "wait": 60}, headers=key
            )
            if answer.status_code == 200:
                assert answer.json()["succeeded"], answer.text
                return
            assert answer.status_code == 202, answer.text

    async def _post(self, path: str, body: Any) -> Any:
        answer = await self.client.post(path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None


WORKER = [sys.executable, "-m", "baton.cli", "worker"]
SET = {"kind": "setpoint", "address": "a", "value": 1}
CAPTURE = {"kind": "capture", "address": "a"}


def launch(command: Sequence[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, env=environment)


@asynccontextmanager
async def open_conduct_bench(
    url: str, port: int, address: str, worker: Sequence[str] = WORKER, **settings: str
) -> AsyncIterator[ConductBench]:
    """A worker on a plant in memory, unless the settings say otherwise, beside an API that serves already."""
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "TEMPORAL_ADDRESS": address,
        "LOG_LEVEL": "ERROR",
        "SIMULATED_SIGNALS": '{"a": 0}',
        **settings,
    }
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=90) as client:
        conducts = ConductBench(client, address, environment, launch(worker, environment))
        try:
            yield conducts
        finally:
            conducts.worker.terminate()
            conducts.worker.wait()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


if __name__ == "__main__":
    asyncio.run(serve_empty_activities(sys.argv[1]))
