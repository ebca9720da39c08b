"""A worker suspended at any point of a step: nothing it has begun reaches the plant after others have gone on without it.

What reaches the plant is noted by a Channel Access server in a process of its own. SUSPENSIONS=100 suspends a hundred steps.
"""

import itertools
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from baton.application.conduct.heartbeat import STOP_AFTER_SECONDS, boot_time
from baton.application.control import READ_TIMEOUT
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.endings import TruncateProcedure
from baton.domain.procedure.procedure import ProcedureStatus
from tests.support.chaos.suspended_worker import SuspensionPoint, run_suspended_worker
from tests.support.forked_commands import forked_process
from tests.support.infrastructure.epics_servers import EpicsServer
from tests.support.stack import clean_environment
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import action, capture, check, setpoint

WANTED = int(os.environ.get("SUSPENSIONS", "0"))
TIMEOUT_SECONDS = 120.0
SLEEPER, OTHER = "sleeper", "other"
BEFORE = "before"
"""The signal that conducts write whose closing step is suspended."""
ACTION_POINTS = (
    SuspensionPoint.BEFORE_MARK,
    SuspensionPoint.AFTER_MARK,
    SuspensionPoint.FIRST_WRITE,
    SuspensionPoint.BETWEEN,
    SuspensionPoint.SLEEP,
)
SETPOINT_POINTS = (
    SuspensionPoint.BEFORE_MARK,
    SuspensionPoint.AFTER_MARK,
    SuspensionPoint.BEFORE_CONNECT,
    SuspensionPoint.AFTER_CONNECT,
)


def verified_setpoint(address: str, value: float) -> dict[str, Any]:
    return {**setpoint(address, value), "verify": True}


@dataclass(frozen=True)
class Suspended:
    """A step to be suspended at a point: of the main list or closing, and whether another worker continues its conduct."""

    kind: str
    point: SuspensionPoint
    closing: bool
    taken_over: bool
    """Whether another worker goes on with the conduct; otherwise there is none, and it is truncated."""

    def steps(self, signal_name: str) -> tuple[list[Any], list[Any]]:
        step = setpoint(signal_name, 1) if self.kind == "setpoint" else action("write_twice", address=signal_name)
        return ([setpoint(BEFORE, 1)], [step]) if self.closing else ([step], [])


TRUNCATED = [
    *(Suspended("action", point, False, False) for point in ACTION_POINTS),
    *(Suspended("setpoint", point, False, False) for point in SETPOINT_POINTS),
    Suspended("action", SuspensionPoint.SLEEP, True, False),
    Suspended("setpoint", SuspensionPoint.AFTER_CONNECT, True, False),
]
TAKEN_OVER = [
    *(Suspended("action", point, False, True) for point in ACTION_POINTS),
    *(Suspended("setpoint", point, False, True) for point in SETPOINT_POINTS),
    Suspended("action", SuspensionPoint.BETWEEN, True, True),
    Suspended("setpoint", SuspensionPoint.BEFORE_CONNECT, True, True),
]
STRETCH = 9
PLACES = {"first": 0, "middle": STRETCH // 2, "last": STRETCH - 1}


def case_rounds() -> Iterator[list[Suspended]]:
    """The steps to suspend, as many at a time as one worker has at hand."""
    wanted = WANTED or len(TRUNCATED) + len(TAKEN_OVER)
    everything = itertools.cycle([*TRUNCATED, *TAKEN_OVER])
    while wanted > 0:
        yield list(itertools.islice(everything, min(wanted, len(TRUNCATED) + len(TAKEN_OVER))))
        wanted -= len(TRUNCATED) + len(TAKEN_OVER)


def stretch_cases() -> list[tuple[tuple[str, int], SuspensionPoint]]:
    """Places in a stretch, each with a point of its step; each with each where many are suspended."""
    if WANTED:
        return list(itertools.product(PLACES.items(), SETPOINT_POINTS))
    return list(zip(itertools.cycle(PLACES.items()), SETPOINT_POINTS, strict=False))


class SuspendableWorker:
    """A worker in a process of its own, and what it says."""

    def __init__(self, process: ForkServerProcess, output: Path, log: Path) -> None:
        self._process = process
        self._output = output
        self._log = log

    async def wait_for(self, word: str) -> float:
        """Wait for a word, and return the time that comes with it."""

        def said_time() -> str | None:
            assert self._process.is_alive(), f"the worker ended by itself: {self._log.read_text()}"
            lines = self._output.read_text().splitlines() if self._output.exists() else []
            return next((line.split()[1] for line in lines if line.startswith(word)), None)

        return float(await until(said_time, TIMEOUT_SECONDS))

    def wake(self) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


@contextmanager
def running_worker(
    name: str, plan: dict[str, str], directory: Path, environment: dict[str, str]
) -> Iterator[SuspendableWorker]:
    """A worker whose conducts are suspended as planned; by its name the plant knows it."""
    output, log = directory / f"{name}.out", directory / f"{name}.log"
    output.unlink(missing_ok=True)
    given = (run_suspended_worker, (json.dumps(plan),), {**environment, "LOGNAME": name}, output, log)
    with forked_process(*given) as process:
        yield SuspendableWorker(process, output, log)


@pytest.mark.timeout(1200)
async def test_a_worker_that_was_suspended_writes_nothing_of_what_it_had_begun(
    database_url: str, temporal: EmbeddedTemporal, plant: EpicsServer, tmp_path: Path
) -> None:
    environment = worker_environment(database_url, temporal)
    late: list[tuple[str, float]] = []
    suspended = 0
    async with open_conduct_stack(database_url, temporal.address) as stack:
        await stack.stop_worker()
        for number, cases in enumerate(case_rounds()):
            named = {f"round{number}:step{index}": case for index, case in enumerate(cases)}
            late += await suspend(stack, named, plant, tmp_path, environment)
            suspended += len(cases)
    print(f"{suspended} steps suspended, {len(late)} late writes, the latest {max((s for _, s in late), default=0):.4f} s")
    assert late == [], "these were written after others had gone on, so many seconds after the worker woke"


@pytest.mark.parametrize("end", ["killed", "suspended"])
async def test_a_stretch_goes_on_where_its_worker_was_lost_and_only_what_was_under_way_is_written_again(
    end: str, database_url: str, temporal: EmbeddedTemporal, plant: EpicsServer, tmp_path: Path
) -> None:
    environment, plan, stretches = worker_environment(database_url, temporal), {}, {}
    async with open_conduct_stack(database_url, temporal.address) as stack:
        await stack.stop_worker()
        for (place, index), point in stretch_cases():
            signals = [f"{end}:{place}:{point.name}:{number}" for number in range(STRETCH)]
            for signal_name in signals:
                plant.tell("set", address=signal_name, value=0)
            procedure_id = await stack.register_from_recipe([setpoint(signal_name, 1) for signal_name in signals])
            await stack.do(ConductProcedure(wait=0), procedure_id)
            plan[signals[index]] = point.value
            stretches[procedure_id] = (index, signals)
        with running_worker(SLEEPER, plan, tmp_path, environment) as sleeper:
            stopped_at = await sleeper.wait_for("stopped")
            if end == "killed":
                sleeper.kill()
            with running_worker(OTHER, {}, tmp_path, environment):
                await until(lambda: are_all_over(stack, list(stretches)), TIMEOUT_SECONDS)
            over_at = boot_time()
            if end == "suspended":
                await until(lambda: boot_time() - stopped_at > STOP_AFTER_SECONDS)
                sleeper.wake()
                await sleeper.wait_for("idle")
        puts = plant.tell("puts")
        for procedure_id, (index, signals) in stretches.items():
            assert (await stack.procedure(procedure_id)).status is ProcedureStatus.COMPLETED
            written = [signals.index(address) for _, _, address in puts if address in signals]
            assert written == sorted(written), f"in turn: {signals[index]}"
            counted = Counter(written)
            assert set(counted) == set(range(STRETCH)), f"none is left out: {signals[index]}"
            assert {number for number, count in counted.items() if count > 1} <= {index - 1, index}, signals[index]
            assert max(counted.values()) <= 2, signals[index]
    assert [put for put in puts if put[1] == SLEEPER and put[0] >= over_at] == [], "it was too late for these"


READINGS = {
    "a check": (check, SuspensionPoint.GET),
    "a check that connects": (check, SuspensionPoint.BEFORE_CONNECT),
    "a capture": (capture, SuspensionPoint.GET),
    "a capture of a signal that says its unit": (capture, SuspensionPoint.LIMITS),
    "limits": (setpoint, SuspensionPoint.LIMITS),
    "a connection": (setpoint, SuspensionPoint.BEFORE_CONNECT),
    "what was written": (verified_setpoint, SuspensionPoint.GET),
}


async def test_a_suspension_in_any_reading_fails_and_skips_nothing(
    database_url: str, temporal: EmbeddedTemporal, plant: EpicsServer, tmp_path: Path
) -> None:
    environment, plan, conducts = worker_environment(database_url, temporal), {}, {}
    async with open_conduct_stack(database_url, temporal.address) as stack:
        await stack.stop_worker()
        plant.tell("set", address=BEFORE, value=0)
        for (name, (make, point)), closing in itertools.product(READINGS.items(), (False, True)):
            signal_name = f"{name}{' to close' * closing}".replace(" ", ":")
            plant.tell("set", address=signal_name, value=1)
            steps = ([setpoint(BEFORE, 1)], [make(signal_name, "c" if make is capture else 1)])
            conducts[signal_name] = await stack.register_from_recipe(*(steps if closing else steps[::-1]))
            await stack.do(ConductProcedure(wait=0), conducts[signal_name])
            plan[signal_name] = point.value
        with running_worker(SLEEPER, plan, tmp_path, environment) as only:
            stopped_at = await only.wait_for("stopped")
            await until(lambda: boot_time() - stopped_at > READ_TIMEOUT + 1, TIMEOUT_SECONDS)
            only.wake()
            await until(lambda: are_all_over(stack, list(conducts.values())), TIMEOUT_SECONDS)
        for signal_name, procedure_id in conducts.items():
            procedure = await stack.procedure(procedure_id)
            told = (signal_name, procedure.last_status_reason)
            assert (procedure.status, procedure.closing_failures) == (ProcedureStatus.COMPLETED, ()), told
        written = {address for _, _, address in plant.tell("puts")}
        assert {name for name in plan if name.startswith(("limits", "a:connection", "what"))} <= written


def worker_environment(database_url: str, temporal: EmbeddedTemporal) -> dict[str, str]:
    return clean_environment(
        DATABASE_URL=database_url,
        TEMPORAL_ADDRESS=temporal.address,
        APP_ENV="test",
        CONTROL_ROUTES=json.dumps([{"prefix": "", "substrate": "epics_ca"}]),
    )


async def suspend(
    stack: ConductStack, named: dict[str, Suspended], plant: EpicsServer, directory: Path, environment: dict[str, str]
) -> list[tuple[str, float]]:
    """Suspend a worker at the point of each step, wake it when all conducts are over; return what it wrote afterwards."""
    conducts: dict[str, UUID] = {}
    plant.tell("set", address=BEFORE, value=0)
    for signal_name, case in named.items():
        plant.tell("set", address=signal_name, value=0)
        conducts[signal_name] = await stack.register_from_recipe(*case.steps(signal_name))
        await stack.do(ConductProcedure(wait=0), conducts[signal_name])
    plan = {signal_name: case.point.value for signal_name, case in named.items()}
    with running_worker(SLEEPER, plan, directory, environment) as sleeper:
        stopped_at = await sleeper.wait_for("stopped")
        for signal_name, case in named.items():
            if not case.taken_over:
                await truncate(stack, conducts[signal_name])
        with running_worker(OTHER, {}, directory, environment):
            await until(lambda: are_all_over(stack, list(conducts.values())), TIMEOUT_SECONDS)
        await until(lambda: boot_time() - stopped_at > STOP_AFTER_SECONDS)
        woken_at = boot_time()
        sleeper.wake()
        await sleeper.wait_for("idle")
    for signal_name, case in named.items():
        status = (await stack.procedure(conducts[signal_name])).status
        assert case.taken_over or status is ProcedureStatus.TRUNCATED, (case, status)
    puts = [put for put in plant.tell("puts") if put[2] in named]
    assert any(by == SLEEPER for _, by, _ in puts), "some had written before"
    return [(str(named[address]), at - woken_at) for at, by, address in puts if by == SLEEPER and at >= woken_at]


async def truncate(stack: ConductStack, procedure_id: UUID) -> None:
    """Close the books on a conduct as if its worker had been silent for longer than a minute."""
    async with stack.runtime.pool.connection() as connection:
        await connection.execute(
            "UPDATE conduct_progress SET heartbeat_at = heartbeat_at - interval '2 minutes' WHERE procedure_id = %s",
            [procedure_id],
        )
    await stack.do(TruncateProcedure(reason="its worker is gone"), procedure_id)


async def are_all_over(stack: ConductStack, procedure_ids: list[UUID]) -> bool:
    async with stack.runtime.pool.connection() as connection:
        live = await connection.execute(
            "SELECT FROM conduct_progress WHERE phase <> 'Ended' AND procedure_id = ANY(%s) LIMIT 1", [procedure_ids]
        )
        return await live.fetchone() is None
