"""Real programs of conducts: an end is on record when nothing of them runs, and their directories go in time."""

import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from baton.application.conduct.conduct_work import ProcedureConductWork
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.endings import AbortProcedure
from baton.domain.procedure.procedure import ABORTED
from baton.infrastructure.compute.local_process import JobRetention, LocalProcesses
from baton.infrastructure.wall_clock import clock
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack, open_conduct_stack
from tests.support.workflows.step_json import compute

SHELL = "/bin/sh"
STUBBORN = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > child; exec sleep 60' & echo $$ > parent; wait; sleep 60"
"""Does not listen, and has a child in a session of its own that does not either."""


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    return tmp_path / "jobs"


@pytest.fixture
def processes(jobs: Path) -> LocalProcesses:
    return LocalProcesses(jobs, programs=[SHELL], grace=1.5)


@pytest.fixture
async def stack(database_url: str, temporal: EmbeddedTemporal, processes: LocalProcesses) -> AsyncIterator[ConductStack]:
    async with open_conduct_stack(database_url, temporal.address, compute=processes, compute_programs=[SHELL]) as stack:
        yield stack


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def program_pids(jobs: Path) -> list[int]:
    """The processes of the program that runs, once it has said which they are."""
    found = [path.read_text().strip() for path in jobs.rglob("*") if path.name in ("child", "parent")]
    return [int(number) for number in found if number] if len(found) == 2 else []


async def start_program(stack: ConductStack, jobs: Path) -> UUID:
    procedure_id = await stack.register_from_recipe([compute(SHELL, "-c", STUBBORN)])
    await stack.do(ConductProcedure(wait=0), procedure_id)
    await until(lambda: len(program_pids(jobs)) == 2)
    return procedure_id


async def test_aborted_is_on_record_when_nothing_of_the_program_runs(stack: ConductStack, jobs: Path) -> None:
    procedure_id = await start_program(stack, jobs)
    assert all(is_alive(pid) for pid in program_pids(jobs))
    await stack.do(AbortProcedure(reason="smoke"), procedure_id)
    await stack.wait_for_status(procedure_id, ABORTED)
    assert not any(is_alive(pid) for pid in program_pids(jobs))


async def test_a_directory_is_kept_while_its_conduct_is_live_and_for_a_time_after(
    stack: ConductStack, jobs: Path, processes: LocalProcesses
) -> None:
    at_once, later = (
        JobRetention(
            processes, stack.runtime.works.of(ProcedureConductWork), lambda: clock() + timedelta(minutes=1), retention
        )
        for retention in (timedelta(0), timedelta(hours=1))
    )
    procedure_id = await start_program(stack, jobs)
    (job_id,) = os.listdir(jobs)
    await at_once.sweep()
    assert os.listdir(jobs) == [job_id], "it runs"
    await stack.stop_worker()
    await processes.cancel(job_id)
    await processes.await_terminal_state(job_id)
    await at_once.sweep()
    assert os.listdir(jobs) == [job_id], "nobody has collected what it brought"
    await stack.start_worker()
    await stack.wait_for_status(procedure_id, ABORTED)
    await later.sweep()
    assert os.listdir(jobs) == [job_id], "its time has not come"
    await at_once.sweep()
    assert os.listdir(jobs) == []
