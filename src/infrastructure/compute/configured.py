"""Where this deployment runs its jobs."""

from application.conducting.compute import Compute
from application.settings import ComputeSubstrate, Settings
from infrastructure.compute.in_memory import SimulatedCompute
from infrastructure.compute.local_process import LocalProcesses


def configured_compute(settings: Settings) -> Compute:
    """The adapter that the settings name."""
    if settings.compute_substrate is ComputeSubstrate.IN_MEMORY:
        return SimulatedCompute()
    if settings.compute_job_directory is None:
        raise ValueError("COMPUTE_JOB_DIRECTORY is not set")
    return LocalProcesses(
        settings.compute_job_directory,
        timeout=settings.compute_timeout_seconds,
        environment=settings.compute_environment,
    )
