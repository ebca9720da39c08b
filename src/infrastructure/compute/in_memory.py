"""Simulated jobs: they run nowhere and end as they were scripted, each submission key once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from baton.application.conduct import compute
from baton.application.conduct.compute import JobSpec, JobStatus
from baton.application.control import Fence, always_open
from baton.domain.shared.canonical import canonical_json, content_hash
from baton.domain.step.results import ActuationKind, Artifact, Measured


@dataclass(frozen=True, kw_only=True)
class SimulatedOutcome:
    """How a job ends; `until` keeps it running that long. Without an artifact of its own it writes its specification."""

    status: JobStatus = JobStatus.SUCCEEDED
    measurements: tuple[Measured, ...] = ()
    artifact: Artifact | None = None
    writes_nothing: bool = False
    last_words: str = ""
    until: asyncio.Event | None = None


ScriptedOutcome = SimulatedOutcome | Callable[[JobSpec], SimulatedOutcome]


@dataclass(frozen=True)
class SimulatedJob:
    spec: JobSpec
    outcome: SimulatedOutcome
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def status(self) -> JobStatus:
        return JobStatus.CANCELLED if self.cancelled.is_set() else self.outcome.status


class SimulatedCompute(compute.Compute):
    """Jobs in memory, gone with the process. A command without a script succeeds and measures nothing."""

    actuation_kind = ActuationKind.SIMULATED

    def __init__(self) -> None:
        self.submissions: list[JobSpec] = []  # the jobs that were started, once for each key
        self._scripts: dict[tuple[str, ...], list[ScriptedOutcome]] = {}
        self._jobs: dict[str, SimulatedJob] = {}

    def seed(self, command: tuple[str, ...], *outcomes: ScriptedOutcome) -> None:
        """Script the jobs of a command: the first ends as the first outcome says and so on, all further ones as the last."""
        self._scripts[command] = list(outcomes)

    async def submit(self, job: JobSpec, fence: Fence = always_open) -> str:
        job_id = str(job.submission_key)
        if job_id not in self._jobs:
            fence()
            self.submissions.append(job)
            script = self._scripts.get(job.command, [SimulatedOutcome()])
            outcome = script.pop(0) if len(script) > 1 else script[0]
            self._jobs[job_id] = SimulatedJob(job, outcome if isinstance(outcome, SimulatedOutcome) else outcome(job))
        return job_id

    async def find(self, submission_key: UUID) -> str | None:
        return job_id if (job_id := str(submission_key)) in self._jobs else None

    async def await_terminal_state(self, job_id: str) -> JobStatus:
        job = self._job(job_id)
        if job.outcome.until is not None:
            waits = {asyncio.ensure_future(event.wait()) for event in (job.outcome.until, job.cancelled)}
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
        return job.status

    async def fetch_artifact_ref(self, job_id: str) -> Artifact:
        job = self._succeeded_job(job_id)
        spec = job.spec
        if job.outcome.writes_nothing or spec.output_uri is None:
            raise compute.ArtifactNotFoundError(f"{' '.join(spec.command)} wrote nothing to {spec.output_uri}.")
        content = [list(spec.command), list(spec.input_uris), dict(spec.parameters)]
        digest, size = content_hash(content), len(canonical_json(content))
        written = Artifact(uri=spec.output_uri, checksum_algorithm="sha256", checksum_value=digest, byte_size=size)
        return job.outcome.artifact or written

    async def fetch_measurements(self, job_id: str) -> tuple[Measured, ...]:
        return self._succeeded_job(job_id).outcome.measurements

    async def cancel(self, job_id: str) -> None:
        if (job := self._jobs.get(job_id)) and (until := job.outcome.until) is not None and not until.is_set():
            job.cancelled.set()

    def _job(self, job_id: str) -> SimulatedJob:
        if job_id not in self._jobs:
            raise compute.ComputeOutcomeUnknown(f"There is no job {job_id} in this process; look at what it was to do.")
        return self._jobs[job_id]

    def _succeeded_job(self, job_id: str) -> SimulatedJob:
        job = self._job(job_id)
        if job.status is not JobStatus.SUCCEEDED:
            words = f": {job.outcome.last_words}" if job.outcome.last_words else "."
            raise compute.ComputeJobFailedError(f"{' '.join(job.spec.command)} ended {job.status.value}{words}")
        return job
