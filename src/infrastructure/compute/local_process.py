"""Jobs as processes of this machine, each with a directory by which any worker finds it again."""

import asyncio
import errno
import fcntl
import json
import math
import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import structlog
from pydantic import Field, ValidationError

from baton.application.conduct import compute as port
from baton.application.conduct.compute import Compute, JobSpec, JobStatus
from baton.application.conduct.conduct_work import ConductWork
from baton.application.control import Fence, Quality, ReadingKind, always_open
from baton.application.ports import Clock
from baton.application.settings import ComputeSubstrate, Settings
from baton.application.telemetry import error_location
from baton.domain.kernel import Value
from baton.domain.step.results import ActuationKind, Artifact, Measured
from baton.infrastructure.compute import job_runner
from baton.infrastructure.compute.in_memory import SimulatedCompute
from baton.infrastructure.compute.job_runner import (
    JOB,
    OUTCOME,
    OUTPUT_LIMIT,
    STARTED,
    process_birth,
    signal_tree,
    write_json,
)
from baton.infrastructure.files import NothingToHashError, checksum

log = structlog.get_logger()

INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR")  # of the worker's environment, which holds secrets
SWEEP_SECONDS = 600.0
LONGEST_LINE = 1 << 20  # bytes that the line with the measurements may have


class JobDirectory:
    """One job on disk. Its lock is held as long as somebody runs the job or is about to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def claim(self, spec: dict[str, object]) -> int | None:
        """Return the lock of a job that is the caller's to start; None if it has begun, or another is about to start it. A
        job's directory appears complete and with its lock held, so there is never a moment at which it seems dead."""
        if not self.path.exists() and (lock := self._create(spec)) is not None:
            return lock
        lock = self._lock()
        if lock is not None and self.has_begun():
            os.close(lock)
            return None
        return lock

    def is_running(self) -> bool:
        try:
            lock = self._lock(fcntl.LOCK_SH)
        except FileNotFoundError:
            return False
        if lock is not None:
            os.close(lock)
        return lock is None

    def has_begun(self) -> bool:
        return any((self.path / name).exists() for name in (STARTED, OUTCOME))

    def read(self, name: str) -> dict[str, Any] | None:
        try:
            content: dict[str, object] = json.loads((self.path / name).read_bytes())
        except FileNotFoundError:
            return None
        return content

    def status(self, allowance: float) -> JobStatus | None:
        """Return how the job ended, or None while it runs; it may overrun its time limit by `allowance` seconds."""
        if (outcome := self._outcome(allowance)) is None:
            return None
        return JobStatus.FAILED if outcome["status"] == "Rejected" else JobStatus(outcome["status"])

    def rejection(self) -> str | None:
        outcome = self.read(OUTCOME)
        return outcome["detail"] if outcome is not None and outcome["status"] == "Rejected" else None

    def succeeded_spec(self) -> dict[str, Any]:
        """Return the job's specification, or raise when it did not succeed."""
        spec, outcome = self.read(JOB), self._outcome(0)
        if outcome is None or spec is None:
            raise port.ComputeTimeoutError(f"Job {self.path.name} has not ended; wait for its end first.")
        if outcome["status"] != "Succeeded":
            words = f": {detail}" if (detail := self.last_words()) else "."
            raise port.ComputeJobFailedError(f"{job_name(spec)} {_end_sentence(spec, outcome)}{words}")
        return spec

    def last_words(self) -> str:
        return _end_of(self.path / "stderr", 4 * port.TAIL).decode(errors="replace").strip()[-port.TAIL :]

    def last_line(self) -> str:
        """Return the last line of the output that is not blank, or raise ValueError."""
        lines = _end_of(self.path / "stdout", LONGEST_LINE + 1).rstrip().splitlines()
        if not lines:
            raise ValueError("it printed nothing")
        if len(lines[-1]) >= LONGEST_LINE:
            raise ValueError(f"the last line is longer than {LONGEST_LINE} bytes")
        return lines[-1].decode()

    def stop(self) -> None:
        """Ask the runner to stop the job; while the lock is held, the number in it is its holder's."""
        if self.is_running() and (holder := (self.path / "lock").read_text().strip()):
            with suppress(ProcessLookupError):
                os.kill(int(holder), signal.SIGTERM)

    def last_change(self) -> float:
        paths = (self.path / name for name in (JOB, STARTED, OUTCOME))
        return max(path.stat().st_mtime for path in paths if path.exists())

    def remove(self) -> None:
        """Remove the directory, unless the job runs; it disappears at once, even if its deletion takes long."""
        if (lock := self._lock()) is None:
            return
        try:
            removed = self.path.with_name(f".{self.path.name}.gone")
            self.path.rename(removed)
            shutil.rmtree(removed)
        finally:
            os.close(lock)

    def _create(self, spec: dict[str, object]) -> int | None:
        """Put the directory in its place and return its lock; None if another process did so first."""
        draft, lock = JobDirectory(Path(mkdtemp(dir=self.path.parent, prefix="."))), None
        try:
            write_json(draft.path / JOB, spec)
            lock = draft._lock()
            draft.path.rename(self.path)
        except OSError as error:
            if lock is not None:
                os.close(lock)
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return None
        finally:
            shutil.rmtree(draft.path, ignore_errors=True)
        return lock

    def _lock(self, mode: int = fcntl.LOCK_EX) -> int | None:
        lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        return lock

    def _outcome(self, allowance: float) -> dict[str, Any] | None:
        running = self.is_running()
        if (outcome := self.read(OUTCOME)) is not None:
            return outcome
        started = self.read(STARTED)
        if not running:
            # Kill a job whose runner is gone; a number that another process has by now is left alone.
            if started and started["birth"] is not None and process_birth(started["pid"]) == started["birth"]:
                signal_tree(started["pid"], started["pid"], signal.SIGKILL)
            raise port.ComputeOutcomeUnknown(
                f"What ran job {self.path.name} is gone without a word; look at what the job was to do, and at its "
                f"output in {self.path}."
            )
        spec = self.read(JOB)
        if started and spec and time.time() > started["started_at"] + spec["timeout"] + spec["grace"] + allowance:
            raise port.ComputeTimeoutError(f"Job {self.path.name} is past its time and does not end; look at it by hand.")
        return None


def job_name(spec: dict[str, Any]) -> str:
    return " ".join(spec["command"])[: port.TAIL]


def _end_sentence(spec: dict[str, Any], outcome: dict[str, Any]) -> str:
    match outcome["status"]:
        case "Rejected":
            return f"could not be run ({outcome['detail']})"
        case "TimedOut":
            return f"was stopped after {spec['timeout']:g} s"
        case "Cancelled":
            return "was cancelled"
    exit_status = outcome["exit_status"]
    return f"ended with exit status {exit_status}" if exit_status >= 0 else f"was killed by signal {-exit_status}"


def _end_of(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read()
    except FileNotFoundError:
        return b""


class PrintedMeasurement(Value):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    value: Any
    kind: ReadingKind = ReadingKind.SCALAR
    units: str | None = None
    quality: Quality = Quality.GOOD


class PrintedMeasurements(Value):
    """The last line of a program that measures."""

    measurements: tuple[PrintedMeasurement, ...]


class LocalProcesses(Compute):
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
        if (name := job.command[0]) not in self._programs:
            raise port.ComputeSubmitRejectedError(f"{name} is not among COMPUTE_PROGRAMS of this worker, so it is not run.")
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
        job = self._job(str(submission_key))
        return job.path.name if await asyncio.to_thread(lambda: job.is_running() or job.has_begun()) else None

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

    async def ended_before(self, end: datetime) -> list[tuple[str, UUID]]:
        return await asyncio.to_thread(lambda: list(self._ended_before(end.timestamp())))

    async def remove(self, job_id: str) -> None:
        await asyncio.to_thread(self._job(job_id).remove)

    def _ended_before(self, end: float) -> Iterator[tuple[str, UUID]]:
        for path in self._directory.iterdir() if self._directory.is_dir() else ():
            job = JobDirectory(path)
            spec = None if path.name.startswith(".") else job.read(JOB)
            if spec and (conduct_id := spec.get("conduct_id")) and job.last_change() < end and not job.is_running():
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
            command = [self._interpreter, "-I", "-S", job_runner.__file__, str(job.path), str(lock)]
            null, pipe, env = subprocess.DEVNULL, subprocess.PIPE, self._environment
            process = subprocess.Popen(
                command, stdin=null, stdout=pipe, stderr=errors, start_new_session=True, pass_fds=(lock,), env=env
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

    def _spec(self, job: JobSpec) -> dict[str, object]:
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
        self._compute = compute
        self._conducts = conducts
        self._clock = clock
        self._retention = retention

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
