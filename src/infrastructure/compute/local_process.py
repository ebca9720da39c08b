"""Jobs as processes of this machine, each with a directory by which any worker finds it again."""

import asyncio
import json
import math
import os
import pwd
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import structlog
from pydantic import Field, ValidationError

from baton.application.conduct import compute as port
from baton.application.conduct.compute import JobSpec, JobStatus
from baton.application.conduct.conduct_work import ConductWork
from baton.application.control import Fence, Quality, ReadingKind, always_open
from baton.application.ports import Clock
from baton.application.telemetry import error_location
from baton.domain.kernel import Value
from baton.domain.operation.conduct.actuation import ActuationKind
from baton.domain.operation.conduct.results import Artifact, Measured
from baton.infrastructure.compute import job_runner
from baton.infrastructure.compute.job_directory import JobDirectory, job_name
from baton.infrastructure.compute.job_runner import JOB, OUTPUT_LIMIT
from baton.infrastructure.files import NothingToHashError, checksum

log = structlog.get_logger()

INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR")  # of the worker's environment, which holds secrets
SWEEP_SECONDS = 600.0


class PrintedMeasurement(Value):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    value: Any
    kind: ReadingKind = ReadingKind.SCALAR
    units: str | None = None
    quality: Quality = Quality.GOOD


class PrintedMeasurements(Value):
    """The last line of a program that measures."""

    measurements: tuple[PrintedMeasurement, ...]


class LocalProcesses:
    """Runs jobs under a directory that outlasts the workers. After `timeout` seconds a program is asked to end, after
    `grace` more it is killed with all it started, and `allowance` seconds later it is reported."""

    actuation_kind = ActuationKind.PHYSICAL

    def __init__(
        self,
        directory: Path,
        *,
        programs: Collection[str],
        user: pwd.struct_passwd | None = None,
        output_limit: int = OUTPUT_LIMIT,
        timeout: float = 3600,
        grace: float = 5,
        allowance: float = 60,
        environment: Mapping[str, str] | None = None,
        interpreter: str = sys.executable,
    ) -> None:
        self._directory = directory.absolute()
        self._programs = frozenset(programs)
        self._user = user
        self._limits = {"timeout": timeout, "grace": grace, "output_limit": output_limit}
        self._allowance = allowance
        own = {} if user is None else {"HOME": user.pw_dir, "USER": user.pw_name}
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self._environment = inherited | own | dict(environment or {})
        self._interpreter = interpreter

    async def submit(self, job: JobSpec, fence: Fence = always_open) -> str:
        if (program := job.command[0]) not in self._programs:
            raise port.ComputeSubmitRejectedError(
                f"{program} is not among COMPUTE_PROGRAMS of this worker, so it is not run."
            )
        if job.output_uri is not None:
            local_path(job.output_uri)
        try:
            return await asyncio.to_thread(self._submit, job, fence)
        except OSError as error:
            raise port.ComputeNotAvailableError(
                f"Jobs cannot be kept in {self._directory} ({error.strerror}); "
                "see that COMPUTE_JOB_DIRECTORY can be written."
            ) from error

    async def find(self, submission_key: UUID) -> str | None:
        job_id = str(submission_key)
        return job_id if await asyncio.to_thread(self._job(job_id).is_known) else None

    async def await_terminal_state(self, job_id: str) -> JobStatus:
        job, pause = self._job(job_id), 0.02
        while (status := await asyncio.to_thread(job.status, self._allowance)) is None:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.5)
        return status

    async def fetch_artifact_ref(self, job_id: str) -> Artifact:
        spec = await asyncio.to_thread(self._job(job_id).succeeded_spec)
        if (uri := spec["output_uri"]) is None:
            raise port.ArtifactNotFoundError(f"{job_name(spec)} was not asked to write anything.")
        try:
            algorithm, value, size, count = await asyncio.to_thread(checksum, local_path(uri))
        except NothingToHashError as nothing:
            raise port.ArtifactNotFoundError(f"{job_name(spec)} left nothing usable at {uri}: {nothing}.") from nothing
        return Artifact(uri=uri, checksum_algorithm=algorithm, checksum_value=value, byte_size=size, entry_count=count)

    async def fetch_measurements(self, job_id: str) -> tuple[Measured, ...]:
        job = self._job(job_id)
        spec = await asyncio.to_thread(job.succeeded_spec)
        try:
            line = await asyncio.to_thread(job.last_line)
            printed = PrintedMeasurements.model_validate(json.loads(line, parse_float=_finite, parse_constant=_finite))
        except (ValueError, RecursionError) as error:
            fault = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise port.MeasurementNotFoundError(
                f'{job_name(spec)} must print {{"measurements": [...]}} as its last line, as JSON: {fault[: port.TAIL]}.'
            ) from error
        return tuple(Measured(**item.model_dump(mode="json")) for item in printed.measurements)

    async def cancel(self, job_id: str) -> None:
        await asyncio.to_thread(self._job(job_id).stop)

    async def close(self) -> None:
        return

    async def ended_before(self, time: datetime) -> list[tuple[str, UUID]]:
        return await asyncio.to_thread(lambda: list(self._ended_before(time.timestamp())))

    async def remove(self, job_id: str) -> None:
        await asyncio.to_thread(self._job(job_id).remove)

    def _ended_before(self, time: float) -> Iterator[tuple[str, UUID]]:
        for path in self._directory.iterdir() if self._directory.is_dir() else ():
            job = JobDirectory(path)
            spec = None if path.name.startswith(".") else job.read(JOB)
            if spec and (conduct_id := spec.get("conduct_id")) and job.last_change() < time and not job.is_running():
                yield path.name, UUID(conduct_id)

    def _job(self, job_id: str) -> JobDirectory:
        return JobDirectory(self._directory / str(UUID(job_id)))

    def _submit(self, job: JobSpec, fence: Fence) -> str:
        job_id = str(job.submission_key)
        directory = self._job(job_id)
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._let_user_pass(self._directory)
        if (lock := directory.claim(self._spec(job))) is not None:
            try:
                self._start(directory, lock, fence)
            finally:
                os.close(lock)
        if (detail := directory.rejection()) is not None:
            raise port.ComputeSubmitRejectedError(f"{' '.join(job.command)} cannot be run: {detail}.")
        return job_id

    def _start(self, job: JobDirectory, lock: int, fence: Fence) -> None:
        work = job.path / "work"
        work.mkdir(exist_ok=True, mode=0o700)
        if self._user is not None:
            os.chown(work, self._user.pw_uid, self._user.pw_gid)
        self._let_user_pass(job.path)
        with (job.path / "stderr").open("ab") as errors:
            fence()
            process = subprocess.Popen(
                [self._interpreter, "-I", "-S", job_runner.__file__, str(job.path), str(lock)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                pass_fds=(lock,),
                env=self._environment,
            )
        assert process.stdout is not None
        with process.stdout:
            announced = process.stdout.readline()
        threading.Thread(target=process.wait, name=f"end of {job.path.name}", daemon=True).start()
        if not announced and not job.has_begun():
            raise port.ComputeNotAvailableError(f"Jobs cannot be started here: {job.last_words() or 'no reason was given'}.")

    def _let_user_pass(self, directory: Path) -> None:
        """Let another user's program reach its own directory below this one, without listing it."""
        if self._user is not None:
            directory.chmod(0o711)

    def _spec(self, job: JobSpec) -> dict[str, Any]:
        home = self._directory / str(job.submission_key) / "work"
        given = {
            "CONDUCT_PARAMETERS": json.dumps(dict(job.parameters)),
            "CONDUCT_INPUT_URIS": json.dumps(job.input_uris),
            "CONDUCT_OUTPUT_URI": job.output_uri or "",
        }
        user = self._user
        groups = None if user is None else os.getgrouplist(user.pw_name, user.pw_gid)
        return {
            "command": job.command,
            "output_uri": job.output_uri,
            "working_dir": str(job.working_dir or home),
            "environment": self._environment | dict(job.env) | given,
            **self._limits,
            "user": None if user is None else {"uid": user.pw_uid, "gid": user.pw_gid, "groups": groups},
            "conduct_id": None if job.conduct_id is None else str(job.conduct_id),
        }


class JobRetention:
    """Removes directories of jobs that ended long ago, unless a live conduct may still collect their results."""

    def __init__(self, compute: LocalProcesses, conducts: ConductWork, clock: Clock, retention: timedelta) -> None:
        self._compute, self._conducts, self._clock, self._retention = compute, conducts, clock, retention

    async def run(self) -> None:
        """Sweep now and at intervals for ever, and log failures."""
        while True:
            try:
                await self.sweep()
            except Exception as error:
                log.error("job directories were not removed", **error_location(error))
            await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> None:
        for job_id, conduct_id in await self._compute.ended_before(self._clock() - self._retention):
            if not await self._conducts.is_live(conduct_id):
                await self._compute.remove(job_id)


def local_path(uri: str) -> Path:
    """Return the file of this machine that an address means, or raise ComputeSubmitRejectedError."""
    parts = urlsplit(uri)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        path = Path(unquote(parts.path))
    elif not parts.scheme and not parts.netloc:
        path = Path(uri)
    else:
        raise port.ComputeSubmitRejectedError(f"A local process cannot write to {uri}; give a file:// address.")
    if not path.is_absolute() or "\0" in uri:
        raise port.ComputeSubmitRejectedError(f"{uri} does not say where; give a file:// address or an absolute path.")
    return path


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no number that JSON can hold")
    return number
