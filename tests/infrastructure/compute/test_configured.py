"""Where a deployment runs its jobs, and the settings no process starts with."""

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from baton.application.boot_guards import boot_objections
from baton.application.conduct.compute import JobStatus
from baton.application.settings import HIDDEN, Settings, shown_settings
from baton.domain.steering.steering import DecideSubstrate, offered_deciders
from baton.infrastructure.compute.in_memory import SimulatedCompute
from baton.infrastructure.compute.local_process import configured_compute
from tests.infrastructure.compute.test_local_process import python
from tests.support.tables import for_each


def test_unless_told_otherwise_jobs_run_nowhere() -> None:
    assert isinstance(configured_compute(Settings()), SimulatedCompute)


async def test_local_processes_run_under_the_settings(tmp_path: Path) -> None:
    settings = Settings(
        compute_substrate="local_process",
        compute_job_directory=tmp_path,
        compute_programs=[sys.executable],
        compute_timeout_seconds=1,
        compute_environment={"SITE": "bl7"},
    )
    compute = configured_compute(settings)
    assert boot_objections(settings) == []
    job = python("import os, signal; assert os.environ['SITE'] == 'bl7'; signal.pause()")
    assert await compute.await_terminal_state(await compute.submit(job)) is JobStatus.TIMED_OUT


def test_local_processes_need_a_directory() -> None:
    settings = Settings(compute_substrate="local_process")
    assert any("COMPUTE_JOB_DIRECTORY" in sentence for sentence in boot_objections(settings))


def test_what_programs_find_in_their_environment_is_not_shown() -> None:
    settings = Settings(compute_environment={"LICENSE_KEY": "s3cret"})
    assert shown_settings(settings)["COMPUTE_ENVIRONMENT"] == {"LICENSE_KEY": HIDDEN}
    assert "s3cret" not in repr(settings)


def test_a_deployment_offers_what_it_lists_besides_what_everybody_may_choose() -> None:
    settings = Settings(decide_substrates=["sobol", "staged"])
    assert boot_objections(settings) == []
    assert {str(name) for name in offered_deciders(settings.decide_substrates)} == {
        *("in_memory", "grid_walk", "caller"),
        *("sobol", "staged"),
    }
    assert offered_deciders(()) < offered_deciders(settings.decide_substrates) < offered_deciders(DecideSubstrate)


@for_each(
    "settings", [{"compute_substrate": "slurm"}, {"compute_timeout_seconds": 0}, {"decide_substrates": ["Nelder-Mead"]}]
)
def test_what_there_is_no_adapter_for_cannot_be_set(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**settings)
