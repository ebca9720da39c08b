"""A worker that is wired like any other, and stops itself with SIGSTOP when every conduct has come to its point.

It says on its standard output how many have, when it was woken and when it has nothing left to do, by the clock that counts
suspended time. The test wakes it with SIGCONT: then all conducts go on at once from where they were.
"""

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from enum import StrEnum
from typing import Any
from unittest.mock import patch

from baton.application.conduct.heartbeat import boot_time
from baton.application.conduct.ledger import BeginRequest, BeginResult
from baton.application.conduct.step_execution import StepRunner
from baton.application.control import Control, Timekeeper
from baton.application.settings import Settings
from baton.cli import worker as wiring
from baton.cli.composition.runtime import Runtime
from baton.cli.worker import build_worker
from baton.domain.procedure.activity_logbook import Activity
from baton.infrastructure.control import routes
from baton.infrastructure.control.caproto_client import CaprotoClient
from baton.infrastructure.control.channel_access import ChannelInfo, ChannelProperties, ChannelSample
from baton.infrastructure.control.routes import open_control
from baton.infrastructure.plugins import ActionRegistry
from baton.infrastructure.postgres.ledger import PostgresLedger
from baton.infrastructure.postgres.store import PostgresStore
from baton.infrastructure.temporal.engine import connect


class SuspensionPoint(StrEnum):
    """Where a step is when its worker is suspended."""

    BEFORE_MARK = "before mark"
    AFTER_MARK = "mark to body"
    BEFORE_CONNECT = "mark to connect"
    AFTER_CONNECT = "connect to put"
    GET = "in a reading"
    LIMITS = "in a question for limits"
    FIRST_WRITE = "mark to first write"
    BETWEEN = "between two writes"
    SLEEP = "sleep before a write"


class Suspension:
    """The points at which steps wait for each other, each told by the signal it is about to write."""

    def __init__(self, plan: Mapping[str, str]) -> None:
        self._plan = plan
        self._arrived: set[str] = set()
        self._over = asyncio.Event()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    async def pass_by(self, signal_name: str | None, point: SuspensionPoint) -> None:
        """Go on, unless this is the point of the step: then wait until this process was suspended and woken."""
        if self.arrive(signal_name, point):
            await self._over.wait()

    def arrive(self, signal_name: str | None, point: SuspensionPoint) -> bool:
        """Whether this is the point of the step; with the last one to arrive the process stops."""
        if signal_name is None or self._plan.get(signal_name) != point or self.is_over:
            return False
        self._arrived.add(signal_name)
        if len(self._arrived) == len(self._plan):
            asyncio.get_running_loop().call_soon(self._sleep)
        return True

    def _sleep(self) -> None:
        if not self.is_over:
            print(f"stopped {boot_time()}", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
            self._over.set()

    async def tell_when_idle(self, steps: StepRunner) -> None:
        """Say when nothing is left of what was begun before."""
        await self._over.wait()
        woken = boot_time()
        while steps.at_work or boot_time() - woken < 1:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        print(f"idle {boot_time()}", flush=True)


class SuspendingLedger(PostgresLedger):
    def __init__(self, store: PostgresStore, suspension: Suspension) -> None:
        super().__init__(store)
        self._suspension = suspension

    async def begin(self, request: BeginRequest) -> BeginResult:
        await self._suspension.pass_by(written_signal(request), SuspensionPoint.BEFORE_MARK)
        return await self._pass_marked(request, await super().begin(request))

    async def settle_and_begin(self, row: Activity, request: BeginRequest) -> tuple[Mapping[str, Any], BeginResult]:
        await self._suspension.pass_by(written_signal(request), SuspensionPoint.BEFORE_MARK)
        settled, result = await super().settle_and_begin(row, request)
        return settled, await self._pass_marked(request, result)

    async def _pass_marked(self, request: BeginRequest, result: BeginResult) -> BeginResult:
        if result.marked:
            await self._suspension.pass_by(written_signal(request), SuspensionPoint.AFTER_MARK)
        return result


def written_signal(request: BeginRequest) -> str | None:
    """The signal that a step is about to write, where it says so."""
    said = {} if request.marker is None else request.marker.payload
    name: str | None = said.get("address") or said.get("params", {}).get("address")
    return name


class SuspendingClient(CaprotoClient):
    def __init__(self, suspension: Suspension) -> None:
        super().__init__()
        self._suspension = suspension

    async def connect(self, address: str) -> ChannelInfo:
        await self._suspension.pass_by(address, SuspensionPoint.BEFORE_CONNECT)
        channel = await super().connect(address)
        await self._suspension.pass_by(address, SuspensionPoint.AFTER_CONNECT)
        return channel

    async def get(self, address: str) -> ChannelSample:
        await self._suspension.pass_by(address, SuspensionPoint.GET)
        return await super().get(address)

    async def properties(self, address: str) -> ChannelProperties:
        await self._suspension.pass_by(address, SuspensionPoint.LIMITS)
        return await super().properties(address)


def actions_of(suspension: Suspension) -> ActionRegistry:
    async def write_twice(control: Control, time: Timekeeper, params: Mapping[str, Any]) -> dict[str, Any]:
        address = params["address"]
        await suspension.pass_by(address, SuspensionPoint.FIRST_WRITE)
        await control.write(address, 1)
        await suspension.pass_by(address, SuspensionPoint.BETWEEN)
        if suspension.arrive(address, SuspensionPoint.SLEEP):
            while not suspension.is_over:
                await time.sleep(0.05)
        await control.write(address, 2)
        return {}

    return ActionRegistry({"write_twice": write_twice})


def run_suspended_worker(plan: str) -> None:
    asyncio.run(run(json.loads(plan)))


async def run(plan: Mapping[str, str]) -> None:
    """Work until killed."""
    settings, suspension = Settings(), Suspension(plan)
    with (
        patch.object(routes, "channel_access_client", lambda: SuspendingClient(suspension)),
        patch.object(wiring, "PostgresLedger", lambda store: SuspendingLedger(store, suspension)),
    ):
        async with Runtime(settings) as runtime, open_control(settings) as control:
            wired = wiring.open_conduct_engine(runtime, control, actions=actions_of(suspension))
            async with wired as parts, build_worker(await connect(settings), runtime, parts):
                print("working", flush=True)
                await suspension.tell_when_idle(parts.steps)
                await asyncio.Event().wait()
