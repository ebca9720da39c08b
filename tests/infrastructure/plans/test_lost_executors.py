"""Rule 64: whatever happens to the requests to an executor, or to its processes, a plan is begun at most once."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from baton.application.conduct.actions import ActionCall, ActionFailedError, ActionRefusedError, NotBegun
from baton.application.conduct.plan_executors import PlanAction, PlanExecutor, PlanExecutorSilentError, PlanOutcomeUnknown
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.plans.blueapi import Blueapi
from baton.infrastructure.plans.queueserver import Queueserver
from baton.infrastructure.wall_clock import WallClock
from tests.support.infrastructure.plan_servers import PlanServer, missing_part, running_blueapi, running_queueserver
from tests.support.infrastructure.unreliable_proxy import (
    Disturbance,
    UnreliableProxy,
    unreliable_blueapi,
    unreliable_queueserver,
)
from tests.support.waiting import until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]
REQUESTS = {"queueserver": 8, "exclusive": 9, "blueapi": 10}  # of one plan that are disturbed in turn
VICTIMS = [("queueserver", "manager"), ("queueserver", "worker"), ("queueserver", "redis")]
VICTIMS += [("blueapi", "server"), ("blueapi", "worker")]


def executor_of(kind: str, address: str) -> PlanExecutor:
    return Blueapi(address) if kind == "blueapi" else Queueserver(address, exclusive=kind == "exclusive")


def call_of(seconds: float) -> ActionCall:
    """A call of the plan that counts its starts under the key."""
    key = uuid4()
    return ActionCall(key=key, params={"seconds": seconds, "note": str(key)}, control=Simulator(), time=WallClock())


async def carry_out(action: PlanAction, call: ActionCall) -> str:
    """Have a plan carried out, which is prepared where it has no token, and return what came of it."""
    try:
        call = call if call.token else replace(call, token=await action.prepare(call))
        await action.collect(call, await action.submit(call))
    except ActionRefusedError:
        return "not begun"
    except PlanOutcomeUnknown:
        return "unknown"
    except ActionFailedError:
        return "failed"
    return "done"


def is_right(outcome: str, starts: int) -> bool:
    """Return whether a plan was begun as often as its outcome says."""
    return starts in {"done": (1,), "failed": (1,), "unknown": (0, 1), "not begun": (0,)}[outcome]


async def until_idle(executor: PlanExecutor) -> None:
    """Wait until an executor answers and does nothing."""

    async def is_idle() -> bool:
        with suppress(PlanExecutorSilentError):
            activity = (await executor.catalogue()).activity or ""
            return activity in ("manager idle, RunEngine idle", "worker IDLE")
        return False

    await until(is_idle, 120)


async def start_server(stack: AsyncExitStack, kind: str, directory: Path) -> PlanServer:
    if why := missing_part(redis=kind != "blueapi"):
        pytest.skip(why)
    running = running_blueapi if kind == "blueapi" else running_queueserver
    return await stack.enter_async_context(running(directory))


@pytest.fixture(params=["queueserver", "exclusive", "blueapi"])
async def disturbed_executor(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[str, PlanServer, UnreliableProxy]]:
    """A kind of executor, its server, and a proxy of it."""
    async with AsyncExitStack() as stack:
        server = await start_server(stack, request.param, tmp_path)
        proxied = unreliable_blueapi if request.param == "blueapi" else unreliable_queueserver
        yield request.param, server, await stack.enter_async_context(proxied(server.address))


async def test_a_disturbed_request_never_begins_a_plan_twice(
    disturbed_executor: tuple[str, PlanServer, UnreliableProxy],
) -> None:
    kind, server, proxy = disturbed_executor
    found: list[tuple[str, int, str, int]] = []
    direct, executor = (
        executor_of(kind.replace("exclusive", "queueserver"), server.address),
        executor_of(kind, proxy.address),
    )
    action = PlanAction("bl7", "count_start", executor, True, kind != "blueapi", 60)
    for disturbance in Disturbance:
        for chosen in range(REQUESTS[kind]):
            proxy.arm(disturbance, chosen)
            call = call_of(1)
            outcome = await carry_out(action, call)
            await proxy.settle()
            await until_idle(direct)
            found.append((disturbance.value, chosen, outcome, server.count(str(call.key))))
            assert is_right(*found[-1][2:]), found
    print(kind, sorted(found))
    await direct.close()
    await executor.close()


def victim_of(server: PlanServer, kind: str, victim: str) -> int:
    """Return the process id of a part of an executor: those that a part starts have higher ids than itself."""
    main = server.processes["redis" if victim == "redis" else "blueapi" if kind == "blueapi" else "manager"].pid
    if victim in ("redis", "server"):
        return main
    threads = Path(f"/proc/{main}/task").iterdir()
    children = sorted(int(id) for one in threads for id in (one / "children").read_text().split())
    named = [id for id in children if b"resource_tracker" not in Path(f"/proc/{id}/cmdline").read_bytes()]
    assert len(named) == (1 if kind == "blueapi" else 2), named
    return named[0] if victim == "manager" else named[-1]


@pytest.mark.parametrize(("kind", "victim"), VICTIMS)
async def test_a_killed_part_never_has_a_plan_begun_twice(tmp_path: Path, kind: str, victim: str) -> None:
    chance = random.Random(int(os.environ.get("SOAK_SEED", "0")))
    async with AsyncExitStack() as stack:
        server = await start_server(stack, kind, tmp_path)
        executor = executor_of(kind, server.address)
        stack.push_async_callback(executor.close)
        action = PlanAction("bl7", "count_start", executor, True, kind != "blueapi", 20)
        call = call_of(6)
        call = replace(call, token=await action.prepare(call))
        carried = asyncio.create_task(carry_out(action, call))
        await asyncio.sleep(chance.uniform(0, 1.5))  # the moment is what varies
        os.kill(victim_of(server, kind, victim), signal.SIGKILL)
        if victim in ("redis", "server"):
            server.processes["redis" if victim == "redis" else "blueapi"].wait(30)
            server.restart("redis" if victim == "redis" else "blueapi")
        outcome = await carried
        print(kind, victim, outcome, server.count(str(call.key)))
        assert is_right(outcome, server.count(str(call.key)))
        if isinstance(found := await action.find(call), NotBegun) and outcome == "unknown":
            with suppress(ActionRefusedError, PlanOutcomeUnknown):
                await action.submit(replace(call, token=found.token))
        await asyncio.sleep(2)  # what is still to begin has begun
        assert server.count(str(call.key)) <= 1
