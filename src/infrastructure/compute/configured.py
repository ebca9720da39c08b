"""The compute adapter that the settings name, and the user that its programs run as."""

import os
import pwd

from baton.application.conduct.compute import Compute
from baton.application.settings import ComputeSubstrate, Settings
from baton.infrastructure.compute.in_memory import SimulatedCompute
from baton.infrastructure.compute.local_process import LocalProcesses


class AccountUnusableError(Exception):
    """Programs cannot run as the configured user; the message says why and what to do."""


def configured_compute(settings: Settings) -> Compute:
    """Return the adapter that the settings name, or raise AccountUnusableError."""
    if settings.compute_substrate is ComputeSubstrate.IN_MEMORY:
        return SimulatedCompute()
    if settings.compute_job_directory is None:
        raise ValueError("COMPUTE_JOB_DIRECTORY is not set")
    return LocalProcesses(
        settings.compute_job_directory,
        programs=settings.compute_programs,
        user=None if settings.compute_user is None else find_user(settings.compute_user),
        output_limit=settings.compute_output_limit_bytes,
        timeout=settings.compute_timeout_seconds,
        environment=settings.compute_environment,
    )


def find_user(name: str) -> pwd.struct_passwd:
    """Return the user of this name, which this process can become, or raise AccountUnusableError."""
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        raise AccountUnusableError(f"COMPUTE_USER names {name}, whom this machine does not know; add that user.") from None
    if os.geteuid() != 0:
        raise AccountUnusableError("COMPUTE_USER takes a worker run by root, and this one is not; start it so, or unset it.")
    if user.pw_uid == 0:
        raise AccountUnusableError(f"COMPUTE_USER names {name}, who is root; name a user with no rights beyond its own.")
    return user
