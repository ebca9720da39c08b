"""A recipe on Tango and on ophyd devices, conducted to its end although its worker is killed while it writes."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("tango", reason="pytango is not installed (extra `tango`)")
pytest.importorskip("ophyd_async", reason="ophyd-async is not installed (extra `ophyd`)")

from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.procedure.procedure import ProcedureStatus
from tests.support.chaos.suspended_worker import run_suspended_worker
from tests.support.forked_commands import forked_process
from tests.support.infrastructure.scripted_server import ScriptedServer
from tests.support.stack import clean_environment
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import capture, setpoint

Written = Callable[[], list[list[object]]]


@asynccontextmanager
async def running_worker(name: str, directory: Path, environment: dict[str, str]) -> AsyncIterator[Callable[[], None]]:
    """A worker in a process of its own, and what kills it."""
    given = (run_suspended_worker, (json.dumps({}),), environment, directory / f"{name}.out", directory / f"{name}.log")
    with forked_process(*given) as process:

        def kill() -> None:
            process.kill()
            process.join()

        yield kill


async def conduct_with_a_killed_worker(
    stack: ConductStack, prefix: str, list_puts: Written, directory: Path, environment: dict[str, str]
) -> None:
    steps = [setpoint(f"{prefix}x", 1), setpoint(f"{prefix}slow", 2), setpoint(f"{prefix}y", 3), capture(f"{prefix}y", "y")]
    procedure_id = await stack.register_from_recipe(steps)
    await stack.do(ConductProcedure(wait=0), procedure_id)
    async with running_worker("first", directory, environment) as kill:
        await until(lambda: ["slow", 2.0] in list_puts(), 60)
        kill()
    async with running_worker("second", directory, environment):
        await stack.wait_until_over(procedure_id)
    assert (await stack.procedure(procedure_id)).status is ProcedureStatus.COMPLETED
    assert list_puts() == [["x", 1.0], ["slow", 2.0], ["slow", 2.0], ["y", 3.0]], "an absolute setpoint may repeat, no other"


@pytest.mark.timeout(180)
async def test_a_recipe_on_tango_is_done_although_its_worker_is_killed_in_a_write(
    database_url: str, temporal: EmbeddedTemporal, tmp_path: Path
) -> None:
    with ScriptedServer("tango_server") as server:
        prefix = f"tango:127.0.0.1:{server.ready['port']}/{server.ready['device']}/"
        for name in ("x", "slow", "y"):
            server.tell("set", address=name, value=0.0, seconds=1.5 if name == "slow" else 0)
        routes = [{"prefix": "tango:", "substrate": "tango"}]
        environment = worker_environment(database_url, temporal, CONTROL_ROUTES=json.dumps(routes))

        def list_puts() -> list[list[object]]:
            return [[name, value] for _, name, value in server.tell("puts")]

        async with open_conduct_stack(database_url, temporal.address, control_routes=routes) as stack:
            await stack.stop_worker()
            await conduct_with_a_killed_worker(stack, prefix, list_puts, tmp_path, environment)


@pytest.mark.timeout(180)
async def test_a_recipe_on_ophyd_devices_is_done_although_its_worker_is_killed_in_a_write(
    database_url: str, temporal: EmbeddedTemporal, tmp_path: Path
) -> None:
    puts = tmp_path / "puts"
    puts.touch()
    routes = [{"prefix": "ophyd:", "substrate": "ophyd"}]
    environment = worker_environment(
        database_url,
        temporal,
        CONTROL_ROUTES=json.dumps(routes),
        OPHYD_DEVICES="tests.support.infrastructure.site_devices:devices",
        SITE_PUTS=str(puts),
    )

    def list_puts() -> list[list[object]]:
        return [json.loads(line) for line in puts.read_text().splitlines()]

    async with open_conduct_stack(database_url, temporal.address, control_routes=routes) as stack:
        await stack.stop_worker()
        await conduct_with_a_killed_worker(stack, "ophyd:", list_puts, tmp_path, environment)


def worker_environment(database_url: str, temporal: EmbeddedTemporal, **settings: str) -> dict[str, str]:
    return clean_environment(DATABASE_URL=database_url, TEMPORAL_ADDRESS=temporal.address, APP_ENV="test", **settings)
