"""Simulated jobs: they run nowhere and end as they were told to, each submission key once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from baton.application.conduct.compute import (
    ArtifactNotFoundError,
    ComputeJobFailedError,
    ComputeOutcomeUnknown,
    JobSpec,
    JobStatus,
)
from baton.application.control import Fence, always_open
from baton.domain.operation.conduct.actuation import ActuationKind
from baton.domain.operation.conduct.results import Artifact, Measured
from baton.domain.shared.canonical import canonical_json, content_hash


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """How a job ends; `until` keeps it running that long. Without an artifact of its own it writes what it was asked."""

    status: JobStatus = JobStatus.SUCCEEDED
    measurements: tuple[Measured, ...] = ()
    artifact: Artifact | None = None
    writes_nothing: bool = False
    last_words: str = ""
    until: asyncio.Event | None = None


Answer = Simulated | Callable[[JobSpec], Simulated]


class SimulatedCompute:
    """Jobs in memory, gone with the process. A command nobody seeded succeeds and measures nothing."""

    actuation_kind = ActuationKind.SIMULATED

    def __init__(self) -> None:
        self.submissions: list[JobSpec] = []
        """The jobs that were begun; a key found again is not among them."""
        self._answers: dict[tuple[str, ...], list[Answer]] = {}
        self._jobs: dict[str, tuple[JobSpec, Simulated]] = {}
        self._cancelled: dict[str, asyncio.Event] = {}

    def seed(self, command: tuple[str, ...], *answers: Answer) -> None:
        """How jobs of this command end: the first as the first answer says and so on, all further ones as the last."""
        self._answers[command] = list(answers)

    async def submit(self, job: JobSpec, fence: Fence = always_open) -> str:
        job_id = str(job.submission_key)
        if job_id not in self._jobs:
            fence()
            self.submissions.append(job)
            self._jobs[job_id] = job, self._answer(job)
            self._cancelled[job_id] = asyncio.Event()
        return job_id

    async def find(self, submission_key: UUID) -> str | None:
        return job_id if (job_id := str(submission_key)) in self._jobs else None

    async def await_terminal_state(self, job_id: str) -> JobStatus:
        _, end = self._job(job_id)
        if end.until is not None:
            waits = {asyncio.ensure_future(event.wait()) for event in (end.until, self._cancelled[job_id])}
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
        return self._status(job_id)

    async def fetch_artifact_ref(self, job_id: str) -> Artifact:
        job, end = self._succeeded(job_id)
        if end.writes_nothing or job.output_uri is None:
            raise ArtifactNotFoundError(f"{' '.join(job.command)} wrote nothing to {job.output_uri}.")
        return end.artifact or _description(job, job.output_uri)

    async def fetch_measurements(self, job_id: str) -> tuple[Measured, ...]:
        return self._succeeded(job_id)[1].measurements

    async def cancel(self, job_id: str) -> None:
        if job_id in self._jobs and (until := self._jobs[job_id][1].until) is not None and not until.is_set():
            self._cancelled[job_id].set()

    async def close(self) -> None:
        return

    def _answer(self, job: JobSpec) -> Simulated:
        answers = self._answers.get(job.command, [Simulated()])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return answer if isinstance(answer, Simulated) else answer(job)

    def _job(self, job_id: str) -> tuple[JobSpec, Simulated]:
        if job_id not in self._jobs:
            raise ComputeOutcomeUnknown(f"There is no job {job_id} in this process; look at what it was to do.")
        return self._jobs[job_id]

    def _status(self, job_id: str) -> JobStatus:
        _, end = self._job(job_id)
        return JobStatus.CANCELLED if self._cancelled[job_id].is_set() else end.status

    def _succeeded(self, job_id: str) -> tuple[JobSpec, Simulated]:
        job, end = self._job(job_id)
        if (status := self._status(job_id)) is not JobStatus.SUCCEEDED:
            words = f": {end.last_words}" if end.last_words else "."
            raise ComputeJobFailedError(f"{' '.join(job.command)} ended {status.value}{words}")
        return job, end


def _description(job: JobSpec, uri: str) -> Artifact:
    """What a simulated job wrote: which command with which inputs, so that other inputs have another checksum."""
    content = [list(job.command), list(job.input_uris), dict(job.parameters)]
    return Artifact(
        uri=uri, checksum_algorithm="sha256", checksum_value=content_hash(content), byte_size=len(canonical_json(content))
    )
