"""The API, PostgreSQL and Temporal killed or away while procedures are conducted: nothing is lost, nothing is done twice."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psutil
import pytest

from baton.application.conduct.conduct_work import workflow_id
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.up import SEARCH_ATTRIBUTES
from baton.cli.worker import reconciling
from baton.domain.operation.conduct.conduct import ConductProcedure
from baton.domain.operation.conduct.progress import ConductProgress
from baton.domain.operation.conduct.results import ConductResult
from baton.domain.operation.procedure.endings import AbortProcedure, HoldProcedure
from baton.domain.operation.procedure.procedure import ProcedureConducted, ProcedureStatus
from baton.infrastructure.actions.registry import ActionRegistry
from baton.infrastructure.postgres.migrate import migrate
from tests.conftest import UNSAFE_BUT_FAST
from tests.e2e.stack import clean_environment
from tests.running import running_api
from tests.waiting import until
from tests.workflows.stage import Stage, staged
from tests.workflows.steps import action, check, setpoint

RUNNING, HELD, COMPLETED, ABORTED = (
    ProcedureStatus.RUNNING,
    ProcedureStatus.HELD,
    ProcedureStatus.COMPLETED,
    ProcedureStatus.ABORTED,
)
SIGNALS = {"simulated_signals": {"a": 0, "b": 0, "first gate": 0, "second gate": 0}}


def waiting_for(gate: str) -> dict[str, Any]:
    return check(gate, 1, timeout=100)


class Camera:
    """An action that exposes until it is told to stop, and knows how often it was begun and cut short."""

    def __init__(self) -> None:
        self.begun = self.cut_short = 0
        self.enough = asyncio.Event()

    async def expose(self, control: Any, time: Any, params: Mapping[str, Any]) -> dict[str, Any]:
        self.begun += 1
        try:
            await self.enough.wait()
        except asyncio.CancelledError:
            self.cut_short += 1
            raise
        return {"exposed": True}


@pytest.fixture
def mortal_temporal(tmp_path: Path) -> Iterator[EmbeddedTemporal]:
    """A server that can be killed, and comes back at the same place."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with EmbeddedTemporal(tmp_path, port=port, headless=True, search_attributes=SEARCH_ATTRIBUTES) as server:
        yield server


@pytest.fixture
def mortal_postgres(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """A server that can be killed: it has written what it has committed, though not to the disk itself."""
    with EmbeddedPostgres(tmp_path, settings={**UNSAFE_BUT_FAST, "synchronous_commit": "on"}) as server:
        migrate(server.url)
        yield server


def kill(server: EmbeddedPostgres | EmbeddedTemporal) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)


async def back(server: EmbeddedPostgres | EmbeddedTemporal) -> None:
    """Start a killed server again, on the same files and at the same address."""
    await asyncio.to_thread(server.stop)
    await asyncio.to_thread(server.start)


@contextmanager
def away(server: EmbeddedTemporal) -> Iterator[None]:
    """Nobody answers until the end of the block."""
    process = psutil.Process(server.pid)
    process.suspend()
    try:
        yield
    finally:
        process.resume()


async def begun(stage: Stage, *steps: Any) -> UUID:
    """A procedure that is being conducted."""
    id = await stage.registered()
    executed = await stage.do(ConductProcedure(steps=steps, wait=0), id)
    assert executed.status == 202
    return id


async def written(stage: Stage, *writes: tuple[str, Any]) -> None:
    """Wait until just this was written."""

    async def all_written() -> bool:
        return sorted(stage.control.writes) == sorted(writes)

    await until(all_written)


async def ended(stage: Stage, id: UUID, status: ProcedureStatus) -> ConductResult:
    """What came of the conduct, which leaves the procedure so."""

    async def is_over() -> bool:
        return (await stage.procedure(id)).live_conduct_id is None

    await until(is_over, 60)
    assert (await stage.procedure(id)).status is status
    (result,) = [event.result for event in await stage.events(id) if isinstance(event, ProcedureConducted)]
    return result


@asynccontextmanager
async def served(settings: Mapping[str, str]) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The API as a process of its own, and where it is."""
    program = [sys.executable, "-m", "baton.cli", "api", "--port=0"]
    process = await asyncio.create_subprocess_exec(
        *program, env=clean_environment(**settings), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield process, (await process.stdout.readline()).decode().split()[-1]
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_conduct_goes_on_without_the_api_and_a_repeat_attaches_to_it(
    database_url: str, temporal: EmbeddedTemporal
) -> None:
    settings = {"database_url": database_url, "temporal_address": temporal.address}
    async with staged(**settings, **SIGNALS) as stage:
        id = await stage.registered()
        asked = {"steps": [setpoint("a", 1), waiting_for("first gate"), setpoint("a", 2)], "wait": 60}
        sent = {"url": f"/procedures/{id}/conduct", "json": asked, "headers": {"Idempotency-Key": "once"}, "timeout": 70}
        environment = {name.upper(): value for name, value in settings.items()}
        async with served(environment) as (api, url), httpx.AsyncClient(base_url=url, verify=False) as client:
            waiting = asyncio.create_task(client.post(**sent))
            await written(stage, ("a", 1))
            api.kill()
            with pytest.raises(httpx.TransportError):
                await waiting
        await stage.plant.write("first gate", 1)
        async with running_api(projecting=False, **settings) as another:
            answer = await another.client.post(**sent)
        assert (answer.status_code, answer.headers.get("Idempotency-Replayed")) == (200, "true"), answer.text
        assert answer.json() == (await ended(stage, id, COMPLETED)).model_dump(mode="json")
        assert stage.control.writes == [("a", 1), ("a", 2)]


async def test_a_conduct_goes_on_when_temporal_is_back(database_url: str, mortal_temporal: EmbeddedTemporal) -> None:
    camera = Camera()
    actions = ActionRegistry({"expose": camera.expose})
    async with staged(database_url, mortal_temporal.address, actions=actions, **SIGNALS) as stage:
        exposing = await begun(stage, action("expose"), setpoint("a", 1))
        waiting = await begun(stage, waiting_for("first gate"), setpoint("b", 1))

        async def both_are_under_way() -> bool:
            return camera.begun == 1 and stage.plant.subscriptions("first gate") == 1

        async def is_tried_or_heard_of_again() -> bool:
            """Whichever comes first when the engine is back: that it counts the worker as lost, or that it hears of it."""
            described = await stage.client.get_workflow_handle(workflow_id("conduct", exposing)).describe()
            return any(
                activity.attempt > 1 or activity.last_heartbeat_time.ToDatetime(UTC) > killed_at + timedelta(seconds=1)
                for activity in described.raw_description.pending_activities
            )

        async def the_engine_has_been_blind() -> bool:
            """Whether the worker has been heard of in the record for longer than the engine lets it be silent."""
            async with stage.runtime.store.session() as session:
                (progress,) = await session.records(ConductProgress, {"procedure_id": exposing})
            heard: datetime = progress.heartbeat_at  # type: ignore[attr-defined]
            return heard > killed_at + timedelta(seconds=8)

        await until(both_are_under_way)
        kill(mortal_temporal)
        killed_at = datetime.now(UTC)
        await stage.plant.write("first gate", 1)
        await until(the_engine_has_been_blind)
        await back(mortal_temporal)
        assert (await ended(stage, waiting, COMPLETED)).succeeded
        await until(is_tried_or_heard_of_again, 60)
        camera.enough.set()
        assert (await ended(stage, exposing, COMPLETED)).succeeded
        assert (camera.begun, camera.cut_short, sorted(stage.control.writes)) == (1, 0, [("a", 1), ("b", 1)])


async def test_what_is_asked_for_while_temporal_is_away_is_recorded_at_once_and_served_when_it_is_back(
    database_url: str, mortal_temporal: EmbeddedTemporal
) -> None:
    async with staged(database_url, mortal_temporal.address, **SIGNALS) as stage, reconciling(stage.runtime):
        held = await begun(stage, setpoint("a", 1), waiting_for("first gate"), setpoint("a", 2))
        aborted = await begun(stage, setpoint("b", 1), waiting_for("second gate"), setpoint("b", 2))
        await written(stage, ("a", 1), ("b", 1))
        with away(mortal_temporal):
            assert (await stage.do(HoldProcedure(reason="shift change"), held)).status == 202
            assert (await stage.do(AbortProcedure(reason="smoke"), aborted)).status == 202
            assert (await stage.happened(held))[-1] == "ProcedureHoldRequested"
            assert (await stage.happened(aborted))[-1] == "ProcedureAbortRequested"
            new = await begun(stage, setpoint("a", 3))
            assert (await stage.happened(new))[-1] == "ProcedureStarted"
        assert (await ended(stage, aborted, ABORTED)).failure is not None
        assert (await ended(stage, new, COMPLETED)).succeeded
        await stage.plant.write("first gate", 1)
        assert (await ended(stage, held, HELD)).held
        assert sorted(stage.control.writes) == [("a", 1), ("a", 3), ("b", 1)]


async def test_without_postgres_an_action_stops_itself_and_everything_else_goes_on_when_it_is_back(
    mortal_postgres: EmbeddedPostgres, temporal: EmbeddedTemporal
) -> None:
    endless, finishing = Camera(), Camera()
    actions = ActionRegistry({"endless": endless.expose, "finishing": finishing.expose})
    async with staged(mortal_postgres.url, temporal.address, actions=actions, **SIGNALS) as stage:
        stopped = await begun(stage, action("endless"), setpoint("b", 1))
        finished = await begun(stage, action("finishing"), setpoint("b", 2))
        setting = await begun(stage, *(setpoint("a", number) for number in range(60)))

        async def all_are_under_way() -> bool:
            return endless.begun == finishing.begun == 1 and len(stage.control.writes) > 5

        async def stopped_itself() -> bool:
            return endless.cut_short == 1

        await until(all_are_under_way)
        kill(mortal_postgres)
        finishing.enough.set()
        await until(stopped_itself)
        await back(mortal_postgres)
        failure = (await ended(stage, stopped, ABORTED)).failure
        assert failure is not None
        assert (failure.step_index, failure.error_class) == (0, "ActionOutcomeUnknown")
        assert (await ended(stage, finished, COMPLETED)).succeeded, "what came of it was known, and waited to be stored"
        assert (await ended(stage, setting, COMPLETED)).completed_count == 60
        values = [value for address, value in stage.control.writes if address == "a"]
        assert (sorted(values), sorted(set(values))) == (values, list(range(60))), "each in its turn"
        assert len(values) <= 61, "only the step that was in progress is done again"
        assert [value for address, value in stage.control.writes if address == "b"] == [2]
        assert (endless.begun, finishing.begun, finishing.cut_short) == (1, 1, 0)
