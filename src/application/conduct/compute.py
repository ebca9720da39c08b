"""The compute port: programs that steps run, wherever they run, and what they bring home."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID, uuid5

from baton.application.control import Fence, always_open
from baton.domain.operation.conduct.actuation import ActuationKind
from baton.domain.operation.conduct.results import Artifact, Measured

TAIL = 300
"""Characters of a failed program's last words that are kept."""


class JobStatus(StrEnum):
    """How a job ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    TIMED_OUT = "TimedOut"


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a job asks of a scheduler, memory in GB; a process on this machine takes what the machine has."""

    gpu_count: int = 0
    gpu_memory: float | None = None
    system_ram: float | None = None
    cpus: int | None = None


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """One job with everything resolved. With `output_uri` it writes an artifact, without one it returns measurements."""

    submission_key: UUID
    command: tuple[str, ...]
    conduct_id: UUID | None = None
    """The conduct that the job is a step of; once that has ended nobody comes for what the job brought."""
    input_uris: tuple[str, ...] = ()
    output_uri: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    resources: Resources = Resources()
    working_dir: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """What a job that succeeded brought home, and whether it was real."""

    job_id: str
    status: JobStatus
    measurements: tuple[Measured, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    actuation_kind: ActuationKind


class ComputeError(Exception):
    """A job did not bring home what was asked of it; the message is one sentence for whoever reads the record."""


class ComputeSubmitRejectedError(ComputeError):
    """The job cannot be run as it is; nothing was begun."""


class ComputeNotAvailableError(ComputeError):
    """Jobs cannot be run at all now; nothing was begun."""


class ComputeTimeoutError(ComputeError):
    """The wait for a job was given up; the job may still run."""


class ComputeJobFailedError(ComputeError):
    """The job ended without success."""


class ArtifactNotFoundError(ComputeError):
    """The job succeeded, but what it was to write is not there."""


class MeasurementNotFoundError(ComputeError):
    """The job succeeded, but what it measured cannot be read."""


class ComputeOutcomeUnknown(ComputeError):
    """The job may have run, and nobody can tell how it ended. Named as the record labels it."""


class Compute(Protocol):
    """Runs each submission once. Everything but the first submission of a key may be repeated, in any process."""

    @property
    def actuation_kind(self) -> ActuationKind:
        """Whether jobs really run."""
        ...

    async def submit(self, job: JobSpec, fence: Fence = always_open) -> str:
        """The id of the job that runs under this key: begun now, or found where the key was submitted before.

        The fence is asked right before the job is begun; where it raises, nothing is.

        Raises ComputeSubmitRejectedError and ComputeNotAvailableError.
        """
        ...

    async def find(self, submission_key: UUID) -> str | None:
        """The job begun under this key, running or ended; None where none is known, here and now, to have begun.

        Whoever has a record of submitting the key and finds None must take the outcome for unknown.
        """
        ...

    async def await_terminal_state(self, job_id: str) -> JobStatus:
        """How the job ended, as soon as it has. Giving up the wait does not end the job.

        Raises ComputeOutcomeUnknown where nobody will ever know, and ComputeTimeoutError.
        """
        ...

    async def fetch_artifact_ref(self, job_id: str) -> Artifact:
        """What an ended job wrote; raises ComputeJobFailedError, ArtifactNotFoundError."""
        ...

    async def fetch_measurements(self, job_id: str) -> tuple[Measured, ...]:
        """What an ended job measured; raises ComputeJobFailedError, MeasurementNotFoundError."""
        ...

    async def cancel(self, job_id: str) -> None:
        """Have the job stopped, if it still runs; how it ended is awaited as ever."""
        ...

    async def close(self) -> None:
        """Let go of everything but the jobs: they run on."""
        ...


def submission_key(conduct_id: UUID, iteration_index: int | None, closing: bool, step_index: int) -> UUID:
    """The key of a step's one submission in a conduct. Attempts share it, so that a repeat finds the job."""
    part = "closing" if closing else "main"
    return uuid5(conduct_id, f"compute:{iteration_index or 0}:{part}:{step_index}")


async def provide_result(compute: Compute, job_id: str, *, writes_artifact: bool) -> JobResult:
    """Wait for the job and fetch what it brought: the artifact it was to write, or else its measurements."""
    status = await compute.await_terminal_state(job_id)
    artifacts = (await compute.fetch_artifact_ref(job_id),) if writes_artifact else ()
    measurements = () if writes_artifact else await compute.fetch_measurements(job_id)
    return JobResult(
        job_id=job_id, status=status, measurements=measurements, artifacts=artifacts, actuation_kind=compute.actuation_kind
    )
