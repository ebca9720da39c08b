"""Where this deployment runs its jobs."""

from baton.application.conduct.compute import Compute
from baton.application.settings import ComputeSubstrate, Settings
from baton.infrastructure.compute.accounts import account_named
from baton.infrastructure.compute.in_memory import SimulatedCompute
from baton.infrastructure.compute.local_process import LocalProcesses


def configured_compute(settings: Settings) -> Compute:
    """The adapter that the settings name."""
    if settings.compute_substrate is ComputeSubstrate.IN_MEMORY:
        return SimulatedCompute()
    if settings.compute_job_directory is None:
        raise ValueError("COMPUTE_JOB_DIRECTORY is not set")
    return LocalProcesses(
        settings.compute_job_directory,
        programs=settings.compute_programs,
        user=None if settings.compute_user is None else account_named(settings.compute_user),
        output_limit=settings.compute_output_limit_bytes,
        timeout=settings.compute_timeout_seconds,
        environment=settings.compute_environment,
    )
