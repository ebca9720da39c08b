"""The worker that watches a hutch is suspended, killed or cut off from the database at the very moment at which the permit
goes: no step begins later than ten seconds after, and what was under way is held.

What reaches the plant is noted by a Channel Access server in a process of its own. LOST_MONITORS=51 tries each of the three
ways seventeen times.
"""

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from uuid import UUID

import pytest

from baton.application.conduct.heartbeat import boot_time
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.enclosure.enclosure import NAMES, GetEnclosure, RegisterEnclosure, enclosure_key
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.procedure.procedure import HoldCause, ProcedureStatus
from baton.infrastructure.postgres.leadership import MONITOR_LOCK
from tests.support.chaos.cut_off import Cable, cable_to
from tests.support.forked_commands import forked_command
from tests.support.infrastructure.epics_servers import EpicsServer
from tests.support.stack import clean_environment
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import setpoint

TRIES = int(os.environ.get("LOST_MONITORS", "1"))
WAYS = ("suspended", "killed", "cut off")
HUTCH, PERMIT = "Imaging hutch B", "PSS:B"
MONITORED = {HUTCH: PERMIT}
STEPS, CONDUCTS = 4000, 3
LATEST_SECONDS = 10.0
PATIENCE = 180.0


class Workers:
    """Two workers, one of them behind a cable, and which of them leads."""

    def __init__(self, stack: ConductStack, environment: dict[str, str], directory: Path) -> None:
        self._stack = stack
        self._environment = environment
        self._directory = directory
        self._running = ExitStack()
        self._count = 0

    async def start(self, cable: Cable) -> ForkServerProcess:
        """Start the worker that comes to lead, behind the cable, and then another."""
        leader = self._start({"DATABASE_URL": cable.url})
        await until(self._is_led, PATIENCE)
        self._start({})
        return leader

    def _start(self, more: dict[str, str]) -> ForkServerProcess:
        self._count += 1
        log = self._directory / f"worker{self._count}.log"
        started = forked_command(("worker",), {**self._environment, **more}, log.with_suffix(".out"), log)
        return self._running.enter_context(started)

    async def _is_led(self) -> bool:
        async with self._stack.runtime.pool.connection() as connection:
            led = "SELECT FROM leases WHERE lock = %s AND renewed_at > clock_timestamp() - interval '2 s'"
            return await (await connection.execute(led, (MONITOR_LOCK,))).fetchone() is not None

    def stop(self) -> None:
        self._running.close()


@asynccontextmanager
async def running_workers(stack: ConductStack, environment: dict[str, str], directory: Path) -> AsyncIterator[Workers]:
    workers = Workers(stack, environment, directory)
    try:
        yield workers
    finally:
        workers.stop()


@pytest.mark.timeout(max(1200, 60 * TRIES))
async def test_no_step_begins_long_after_a_permit_has_gone_whatever_becomes_of_who_watches_it(
    database_url: str, temporal: EmbeddedTemporal, plant: EpicsServer, tmp_path: Path
) -> None:
    environment = clean_environment(
        DATABASE_URL=database_url,
        TEMPORAL_ADDRESS=temporal.address,
        APP_ENV="test",
        CONTROL_ROUTES=json.dumps([{"prefix": "", "substrate": "epics_ca"}]),
        MONITORED_ENCLOSURES=json.dumps(MONITORED),
    )
    latest: list[tuple[str, float]] = []
    async with open_conduct_stack(database_url, temporal.address, monitored_enclosures=MONITORED) as stack:
        await stack.stop_worker()
        for number in range(TRIES):
            way, directory = WAYS[number % len(WAYS)], tmp_path / str(number)
            directory.mkdir()
            async with running_workers(stack, environment, directory) as workers:
                latest.append((way, await lose_monitor(stack, way, workers, plant, directory, database_url)))
    print(f"last step begun after the permit had gone: {latest}")
    assert [one for one in latest if one[1] > LATEST_SECONDS] == []


async def lose_monitor(
    stack: ConductStack, way: str, workers: Workers, plant: EpicsServer, directory: Path, database_url: str
) -> float:
    """Withdraw the permit while its monitor is lost; return how many seconds later the last step reached the plant."""
    plant.tell("set", address=PERMIT, value=1)
    async with cable_to(database_url, directory) as cable:
        leader = await workers.start(cable)
        signals = [f"{directory.name}:{one}" for one in range(CONDUCTS)]
        conducts = [await start_writing(stack, plant, signal) for signal in signals]
        assert leader.pid is not None
        match way:
            case "suspended":
                os.kill(leader.pid, signal.SIGSTOP)
            case "killed":
                leader.kill()
            case _:
                cable.cut()
        gone_at = boot_time()
        plant.tell("set", address=PERMIT, value=0)
        await until(lambda: boot_time() - gone_at > LATEST_SECONDS, PATIENCE)
        if way == "suspended":
            os.kill(leader.pid, signal.SIGCONT)
        cable.mend()
        for procedure_id in conducts:
            await until(lambda id=procedure_id: is_held(stack, id), PATIENCE)
            assert (await stack.procedure(procedure_id)).hold_cause is HoldCause.GATE_CLOSED
        puts = [put for put in plant.tell("puts") if put[2] in signals]
        return max((at - gone_at for at, _, _ in puts), default=0.0)


async def permitted_hutch(stack: ConductStack) -> UUID | None:
    """Return the hutch as soon as its permit is on record."""
    key = enclosure_key(RegisterEnclosure(name=HUTCH, facility_code="facility"))
    async with stack.runtime.store.session() as session:
        id = (await session.holders(NAMES, [key])).get(key)
    if id is None:
        return None
    view = await stack.ask(GetEnclosure(), id)
    return id if view.permit_status == "Permitted" and view.observation_age < LATEST_SECONDS / 2 else None


async def start_writing(stack: ConductStack, plant: EpicsServer, signal_name: str) -> UUID:
    """Begin a scan and return its procedure once it has written; one that was held before, since a busy machine had not
    confirmed the permit in time, is followed by another."""
    has_written = lambda: any(put[2] == signal_name for put in plant.tell("puts"))  # noqa: E731
    while True:
        enclosure_id = await until(lambda: permitted_hutch(stack), PATIENCE)
        procedure_id = await start_conduct(stack, plant, enclosure_id, signal_name)
        await until(lambda id=procedure_id: has_written() or is_held(stack, id), PATIENCE)
        if has_written():
            return procedure_id


async def start_conduct(stack: ConductStack, plant: EpicsServer, enclosure_id: UUID, signal_name: str) -> UUID:
    """Begin a long scan of something that stands in the hutch."""
    plant.tell("set", address=signal_name, value=0)
    place = {"tier": "Unit", "facility_code": "facility", "located_in_enclosure_id": enclosure_id}
    asset = await stack.do(RegisterAsset(name=f"Stage {signal_name}", **place))
    targets = frozenset({UUID((asset.body or {})["asset_id"])})
    steps = [setpoint(signal_name, number % 2) for number in range(STEPS)]
    procedure_id = await stack.register_from_recipe(steps, target_asset_ids=targets)
    await stack.do(ConductProcedure(wait=0), procedure_id)
    return procedure_id


async def is_held(stack: ConductStack, procedure_id: UUID) -> bool:
    return (await stack.procedure(procedure_id)).status is ProcedureStatus.HELD
