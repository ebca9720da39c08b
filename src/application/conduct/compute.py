"""The compute port: programs that steps run, wherever they run, and their results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID, uuid5

from baton.application.control import Fence, always_open
from baton.domain.step.results import ActuationKind, Artifact, Measured

TAIL = 300  # characters of a failed program's output that are kept


class JobStatus(StrEnum):
    """How a job ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    TIMED_OUT = "TimedOut"


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """One job with everything resolved. With `output_uri` it writes an artifact, without one it returns measurements."""

    submission_key: UUID
    command: tuple[str, ...]
    conduct_id: UUID | None = None  # the conduct that the job is a step of; once that has ended nobody collects its results
    input_uris: tuple[str, ...] = ()
    output_uri: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    working_dir: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """The results of a job that succeeded, and whether it was real."""

    status: JobStatus
    measurements: tuple[Measured, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    actuation_kind: ActuationKind


class ComputeError(Exception):
    """A job did not deliver what was asked of it; the message is one sentence for the record."""


class ComputeSubmitRejectedError(ComputeError):
    """The job cannot run as it is; nothing was begun."""


class ComputeNotAvailableError(ComputeError):
    """No job can run now; nothing was begun."""


class ComputeTimeoutError(ComputeError):
    """The wait for a job was given up; the job may still run."""


class ComputeJobFailedError(ComputeError):
    """The job ended without success."""


class ArtifactNotFoundError(ComputeError):
    """The job succeeded, but its artifact is not there."""


class MeasurementNotFoundError(ComputeError):
    """The job succeeded, but its measurements cannot be read."""


class ComputeOutcomeUnknown(ComputeError):
    """The job may have run, and nobody can tell how it ended. The record uses this class name as its label."""


class Compute(Protocol):
    """Runs each submission once. Everything but the first submission of a key may be repeated, in any process."""

    @property
    def actuation_kind(self) -> ActuationKind:
        """Whether jobs really run."""

    async def submit(self, job: JobSpec, fence: Fence = always_open) -> str:
        """Return the id of the job that runs under this key: begun now, or found where the key was submitted before. The
        fence is checked right before the job begins; where it raises, nothing begins. Raises ComputeSubmitRejectedError and
        ComputeNotAvailableError."""

    async def find(self, submission_key: UUID) -> str | None:
        """Return the job begun under this key, running or ended; None where none is known, here and now, to have begun. A
        caller with a record of submitting the key that finds None must take the outcome for unknown."""

    async def await_terminal_state(self, job_id: str) -> JobStatus:
        """Return how the job ended, as soon as it has. Cancelling the wait does not end the job. Raises
        ComputeOutcomeUnknown where nobody will ever know, and ComputeTimeoutError."""

    async def fetch_artifact_ref(self, job_id: str) -> Artifact:
        """Return what an ended job wrote; raise ComputeJobFailedError or ArtifactNotFoundError."""

    async def fetch_measurements(self, job_id: str) -> tuple[Measured, ...]:
        """Return what an ended job measured; raise ComputeJobFailedError or MeasurementNotFoundError."""

    async def cancel(self, job_id: str) -> None:
        """Stop the job, if it still runs; its end is awaited as usual."""

    async def close(self) -> None:
        """Release everything but the jobs, which continue; by default there is nothing to release."""
        return


def submission_key(conduct_id: UUID, iteration_index: int | None, closing: bool, step_index: int) -> UUID:
    """Return the key of a step's one submission in a conduct. Attempts share it, so that a repeat finds the job."""
    return uuid5(conduct_id, f"compute:{iteration_index or 0}:{'closing' if closing else 'main'}:{step_index}")


async def provide_result(compute: Compute, job_id: str, *, writes_artifact: bool) -> JobResult:
    """Wait for the job and return its result: the artifact it was to write, or else its measurements."""
    status, kind = await compute.await_terminal_state(job_id), compute.actuation_kind
    if writes_artifact:
        return JobResult(status=status, artifacts=(await compute.fetch_artifact_ref(job_id),), actuation_kind=kind)
    return JobResult(status=status, measurements=await compute.fetch_measurements(job_id), actuation_kind=kind)
