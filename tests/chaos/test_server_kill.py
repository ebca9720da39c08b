"""The API, PostgreSQL and Temporal killed or away while procedures are conducted: nothing is lost, nothing is done twice."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psutil
import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.cli.up import SEARCH_ATTRIBUTES
from baton.cli.worker import reconcile_in_background
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.messages import conduct_workflow_id
from baton.domain.conduct.progress import ConductProgress
from baton.domain.procedure.procedure import ProcedureConducted, ProcedureStatus
from baton.domain.step.results import ConductResult
from baton.infrastructure.plugins import ActionRegistry
from baton.infrastructure.postgres.migrate import migrate
from tests.conftest import UNSAFE_BUT_FAST
from tests.support.forked_commands import forked_command
from tests.support.service import running_api
from tests.support.stack import clean_environment
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import action, check, setpoint

RUNNING, HELD, COMPLETED, ABORTED = (
    ProcedureStatus.RUNNING,
    ProcedureStatus.HELD,
    ProcedureStatus.COMPLETED,
    ProcedureStatus.ABORTED,
)
SIGNALS = {"simulated_signals": {"a": 0, "b": 0, "first gate": 0, "second gate": 0}}


def gate_check(gate: str) -> dict[str, Any]:
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


async def restart(server: EmbeddedPostgres | EmbeddedTemporal) -> None:
    """Start a killed server again, on the same files and at the same address."""
    await asyncio.to_thread(server.stop)
    await asyncio.to_thread(server.start)


@contextmanager
def suspended_server(server: EmbeddedTemporal) -> Iterator[None]:
    """Nobody answers until the end of the block."""
    process = psutil.Process(server.pid)
    process.suspend()
    try:
        yield
    finally:
        process.resume()


async def start_conduct(stack: ConductStack, *steps: Any) -> UUID:
    """A procedure that is being conducted."""
    id = await stack.register_procedure()
    executed = await stack.do(ConductProcedure(steps=steps, wait=0), id)
    assert executed.status == 202
    return id


async def wait_for_writes(stack: ConductStack, *writes: tuple[str, Any]) -> None:
    """Wait until just this was written."""

    async def are_all_written() -> bool:
        return sorted(stack.control.writes) == sorted(writes)

    await until(are_all_written)


async def wait_for_result(stack: ConductStack, id: UUID, status: ProcedureStatus) -> ConductResult:
    """What came of the conduct, which leaves the procedure so."""
    await stack.wait_until_over(id)
    assert (await stack.procedure(id)).status is status
    (result,) = [event.result for event in await stack.events(id) if isinstance(event, ProcedureConducted)]
    return result


async def test_a_conduct_goes_on_without_the_api_and_a_repeat_attaches_to_it(
    database_url: str, temporal: EmbeddedTemporal, tmp_path: Path
) -> None:
    settings = {"database_url": database_url, "temporal_address": temporal.address}
    async with open_conduct_stack(**settings, **SIGNALS) as stack:
        id = await stack.register_procedure()
        asked = {"steps": [setpoint("a", 1), gate_check("first gate"), setpoint("a", 2)], "wait": 60}
        sent = {"url": f"/procedures/{id}/conduct", "json": asked, "headers": {"Idempotency-Key": "once"}, "timeout": 70}
        environment = clean_environment(**{name.upper(): value for name, value in settings.items()})
        output, log = tmp_path / "api.out", tmp_path / "api.log"
        with forked_command(("api", "--port=0"), environment, output, log) as api:

            def read_output() -> str:
                assert api.is_alive(), log.read_text()
                return output.read_text() if output.exists() else ""

            said = await until(read_output)
            async with httpx.AsyncClient(base_url=said.split()[-1], verify=False) as client:
                waiting = asyncio.create_task(client.post(**sent))
                await wait_for_writes(stack, ("a", 1))
                api.kill()
                with pytest.raises(httpx.TransportError):
                    await waiting
        await stack.plant.write("first gate", 1)
        async with running_api(projecting=False, **settings) as another:
            answer = await another.client.post(**sent)
        assert (answer.status_code, answer.headers.get("Idempotency-Replayed")) == (200, "true"), answer.text
        assert answer.json() == (await wait_for_result(stack, id, COMPLETED)).model_dump(mode="json")
        assert stack.control.writes == [("a", 1), ("a", 2)]


async def test_a_conduct_goes_on_when_temporal_is_back(database_url: str, mortal_temporal: EmbeddedTemporal) -> None:
    camera = Camera()
    actions = ActionRegistry({"expose": camera.expose})
    async with open_conduct_stack(database_url, mortal_temporal.address, actions=actions, **SIGNALS) as stack:
        exposing = await start_conduct(stack, action("expose"), setpoint("a", 1))
        waiting = await start_conduct(stack, gate_check("first gate"), setpoint("b", 1))

        async def are_both_under_way() -> bool:
            return camera.begun == 1 and stack.plant.subscriptions("first gate") == 1

        async def is_tried_or_heard_of_again() -> bool:
            """Whichever comes first when the engine is back: that it counts the worker as lost, or that it hears of it."""
            described = await stack.client.get_workflow_handle(conduct_workflow_id(exposing)).describe()
            return any(
                activity.attempt > 1 or activity.last_heartbeat_time.ToDatetime(UTC) > killed_at + timedelta(seconds=1)
                for activity in described.raw_description.pending_activities
            )

        async def has_engine_been_blind() -> bool:
            """Whether the worker has been heard of in the record for longer than the engine lets it be silent."""
            async with stack.runtime.store.session() as session:
                (progress,) = await session.records(ConductProgress, {"procedure_id": exposing})
            heard: datetime = progress.heartbeat_at  # type: ignore[attr-defined]
            return heard > killed_at + timedelta(seconds=8)

        await until(are_both_under_way)
        kill(mortal_temporal)
        killed_at = datetime.now(UTC)
        await stack.plant.write("first gate", 1)
        await until(has_engine_been_blind)
        await restart(mortal_temporal)
        assert (await wait_for_result(stack, waiting, COMPLETED)).succeeded
        await until(is_tried_or_heard_of_again, 60)
        camera.enough.set()
        assert (await wait_for_result(stack, exposing, COMPLETED)).succeeded
        assert (camera.begun, camera.cut_short, sorted(stack.control.writes)) == (1, 0, [("a", 1), ("b", 1)])


async def test_what_is_asked_for_while_temporal_is_away_is_recorded_at_once_and_served_when_it_is_back(
    database_url: str, mortal_temporal: EmbeddedTemporal
) -> None:
    async with (
        open_conduct_stack(database_url, mortal_temporal.address, **SIGNALS) as stack,
        reconcile_in_background(stack.runtime),
    ):
        held = await start_conduct(stack, setpoint("a", 1), gate_check("first gate"), setpoint("a", 2))
        aborted = await start_conduct(stack, setpoint("b", 1), gate_check("second gate"), setpoint("b", 2))
        await wait_for_writes(stack, ("a", 1), ("b", 1))
        with suspended_server(mortal_temporal):
            assert (await stack.do(HoldProcedure(reason="shift change"), held)).status == 202
            assert (await stack.do(AbortProcedure(reason="smoke"), aborted)).status == 202
            assert (await stack.event_types(held))[-1] == "ProcedureHoldRequested"
            assert (await stack.event_types(aborted))[-1] == "ProcedureAbortRequested"
            new = await start_conduct(stack, setpoint("a", 3))
            assert (await stack.event_types(new))[-1] == "ProcedureStarted"
        assert (await wait_for_result(stack, aborted, ABORTED)).failure is not None
        assert (await wait_for_result(stack, new, COMPLETED)).succeeded
        await stack.plant.write("first gate", 1)
        assert (await wait_for_result(stack, held, HELD)).held
        assert sorted(stack.control.writes) == [("a", 1), ("a", 3), ("b", 1)]


async def test_without_postgres_an_action_stops_itself_and_everything_else_goes_on_when_it_is_back(
    mortal_postgres: EmbeddedPostgres, temporal: EmbeddedTemporal
) -> None:
    endless, finishing = Camera(), Camera()
    actions = ActionRegistry({"endless": endless.expose, "finishing": finishing.expose})
    async with open_conduct_stack(mortal_postgres.url, temporal.address, actions=actions, **SIGNALS) as stack:
        stopped = await start_conduct(stack, action("endless"), setpoint("b", 1))
        finished = await start_conduct(stack, action("finishing"), setpoint("b", 2))
        setting = await start_conduct(stack, *(setpoint("a", number) for number in range(60)))

        async def are_all_under_way() -> bool:
            return endless.begun == finishing.begun == 1 and len(stack.control.writes) > 5

        async def has_stopped_itself() -> bool:
            return endless.cut_short == 1

        await until(are_all_under_way)
        kill(mortal_postgres)
        finishing.enough.set()
        await until(has_stopped_itself)
        await restart(mortal_postgres)
        failure = (await wait_for_result(stack, stopped, ABORTED)).failure
        assert failure is not None
        assert (failure.step_index, failure.error_class) == (0, "ActionOutcomeUnknown")
        assert (await wait_for_result(stack, finished, COMPLETED)).succeeded, (
            "what came of it was known, and waited to be stored"
        )
        assert (await wait_for_result(stack, setting, COMPLETED)).completed_count == 60
        values = [value for address, value in stack.control.writes if address == "a"]
        assert (sorted(values), sorted(set(values))) == (values, list(range(60))), "each in its turn"
        assert len(values) <= 61, "only the step that was in progress is done again"
        assert [value for address, value in stack.control.writes if address == "b"] == [2]
        assert (endless.begun, finishing.begun, finishing.cut_short) == (1, 1, 0)
