"""Jobs as processes of this machine. Each has a directory of its own, by which any worker finds it again."""

import asyncio
import errno
import fcntl
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

from pydantic import Field, ValidationError

from baton.application.conduct.compute import (
    TAIL,
    ArtifactNotFoundError,
    ComputeJobFailedError,
    ComputeNotAvailableError,
    ComputeOutcomeUnknown,
    ComputeSubmitRejectedError,
    ComputeTimeoutError,
    JobSpec,
    JobStatus,
    MeasurementNotFoundError,
)
from baton.application.control import Fence, Quality, ReadingKind, always_open
from baton.domain.kernel import Value
from baton.domain.operation.conduct.actuation import ActuationKind
from baton.domain.operation.conduct.results import Artifact, Measured
from baton.infrastructure.checksums import NothingToHash, checksum
from baton.infrastructure.compute import job_runner
from baton.infrastructure.compute.accounts import Account
from baton.infrastructure.compute.job_runner import JOB, OUTCOME, OUTPUT_LIMIT, STARTED, birth_of, descendants_of, write

INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR")
"""What a job sees of the worker's own environment, which holds secrets."""
LOOKS = (0.02, 0.5)
"""Seconds between two looks at a job, at first and in the long run."""
LONGEST_LINE = 1 << 20
"""Bytes that the line with the measurements may have."""


class Printed(Value):
    """A measurement as a program prints it."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    value: Any
    kind: ReadingKind = ReadingKind.SCALAR
    units: str | None = None
    quality: Quality = Quality.GOOD


class PrintedMeasurements(Value):
    """The last line of a program that measures."""

    measurements: tuple[Printed, ...]


class LocalProcesses:
    """Runs jobs under a directory that outlasts the workers; those who share it find each other's jobs.

    A job's program must be one of `programs`, by its exact name, and runs as `user` where one is given. It is stopped after
    `timeout` seconds: it is asked to end, and after `grace` seconds killed with all it started.
    """

    actuation_kind = ActuationKind.PHYSICAL

    def __init__(
        self,
        directory: Path,
        *,
        programs: Collection[str],
        user: Account | None = None,
        output_limit: int = OUTPUT_LIMIT,
        timeout: float = 3600,
        grace: float = 5,
        patience: float = 60,
        environment: Mapping[str, str] | None = None,
        interpreter: str = sys.executable,
    ) -> None:
        self._directory = directory.absolute()
        self._programs = frozenset(programs)
        self._user = user
        self._output_limit = output_limit
        self._timeout = timeout
        self._grace = grace
        self._patience = patience
        own = {} if user is None else {"HOME": user.home, "USER": user.name}
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self._environment = inherited | own | dict(environment or {})
        self._interpreter = interpreter

    async def submit(self, job: JobSpec, fence: Fence = always_open) -> str:
        if (program := job.command[0]) not in self._programs:
            raise ComputeSubmitRejectedError(f"{program} is not among COMPUTE_PROGRAMS of this worker, so it is not run.")
        if job.output_uri is not None:
            local_path(job.output_uri)
        try:
            return await asyncio.to_thread(self._submit, job, fence)
        except OSError as error:
            raise ComputeNotAvailableError(
                f"Jobs cannot be kept in {self._directory} ({error.strerror}); "
                "see that COMPUTE_JOB_DIRECTORY can be written."
            ) from error

    async def find(self, submission_key: UUID) -> str | None:
        job_id = str(submission_key)
        return job_id if await asyncio.to_thread(self._job(job_id).is_known) else None

    async def await_terminal_state(self, job_id: str) -> JobStatus:
        job, (pause, longest) = self._job(job_id), LOOKS
        while (outcome := await asyncio.to_thread(job.outcome, self._patience)) is None:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, longest)
        return _status(outcome)

    async def fetch_artifact_ref(self, job_id: str) -> Artifact:
        job = self._job(job_id)
        spec = await asyncio.to_thread(job.succeeded)
        if (uri := spec["output_uri"]) is None:
            raise ArtifactNotFoundError(f"{_named(spec)} was not asked to write anything.")
        try:
            found = await asyncio.to_thread(checksum, local_path(uri))
        except NothingToHash as nothing:
            raise ArtifactNotFoundError(f"{_named(spec)} left nothing usable at {uri}: {nothing}.") from nothing
        return Artifact(
            uri=uri,
            checksum_algorithm=found.algorithm,
            checksum_value=found.value,
            byte_size=found.byte_size,
            entry_count=found.entry_count,
        )

    async def fetch_measurements(self, job_id: str) -> tuple[Measured, ...]:
        job = self._job(job_id)
        spec = await asyncio.to_thread(job.succeeded)
        try:
            line = await asyncio.to_thread(job.last_line)
            printed = PrintedMeasurements.model_validate(json.loads(line, parse_float=_finite, parse_constant=_finite))
        except (ValueError, RecursionError) as error:
            fault = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise MeasurementNotFoundError(
                f'{_named(spec)} must print {{"measurements": [...]}} as its last line, as JSON: {fault[:TAIL]}.'
            ) from error
        return tuple(Measured(**item.model_dump(mode="json")) for item in printed.measurements)

    async def cancel(self, job_id: str) -> None:
        await asyncio.to_thread(self._job(job_id).stop)

    async def close(self) -> None:
        return

    async def ended_before(self, time: datetime) -> list[tuple[str, UUID]]:
        """The jobs that ended before this time, each with the conduct that it was a step of."""
        return await asyncio.to_thread(lambda: list(self._ended_before(time.timestamp())))

    async def remove(self, job_id: str) -> None:
        """Remove the directory of a job, unless it runs."""
        await asyncio.to_thread(self._job(job_id).remove)

    def _ended_before(self, time: float) -> Iterator[tuple[str, UUID]]:
        for directory in self._directory.iterdir() if self._directory.is_dir() else ():
            job = _Job(directory)
            spec = None if directory.name.startswith(".") else job.read(JOB)
            if spec and (conduct_id := spec.get("conduct_id")) and job.last_change() < time and not job.runs():
                yield directory.name, UUID(conduct_id)

    def _job(self, job_id: str) -> "_Job":
        return _Job(self._directory / str(UUID(job_id)))

    def _submit(self, job: JobSpec, fence: Fence) -> str:
        job_id = str(job.submission_key)
        known = self._job(job_id)
        if (lock := self._claimed(known, self._plain(job))) is not None:
            try:
                self._start(known, lock, fence)
            finally:
                os.close(lock)
        if (detail := known.rejection()) is not None:
            raise ComputeSubmitRejectedError(f"{' '.join(job.command)} cannot be run: {detail}.")
        return job_id

    def _claimed(self, job: "_Job", spec: dict[str, Any]) -> int | None:
        """The lock of a job that is ours to start; None where it was begun, or another is about to.

        A job's directory appears complete and with its lock held, so there is never a moment at which it seems dead.
        """
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._let_through(self._directory)
        if not job.directory.exists() and (lock := self._placed(job, spec)) is not None:
            return lock
        lock = job.locked()
        if lock is not None and job.has_begun():
            os.close(lock)
            return None
        return lock

    def _placed(self, job: "_Job", spec: dict[str, Any]) -> int | None:
        """The lock of a directory just put in its place; None where another was put there first."""
        draft, lock = _Job(Path(mkdtemp(dir=self._directory, prefix="."))), None
        try:
            write(draft.directory / JOB, spec)
            lock = draft.locked()
            draft.directory.rename(job.directory)
        except OSError as error:
            if lock is not None:
                os.close(lock)
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return None
        finally:
            shutil.rmtree(draft.directory, ignore_errors=True)
        return lock

    def _start(self, job: "_Job", lock: int, fence: Fence) -> None:
        work = job.directory / "work"
        work.mkdir(exist_ok=True, mode=0o700)
        if self._user is not None:
            os.chown(work, self._user.uid, self._user.gid)
        self._let_through(job.directory)
        with (job.directory / "stderr").open("ab") as errors:
            fence()
            process = subprocess.Popen(
                [self._interpreter, "-I", "-S", job_runner.__file__, str(job.directory), str(lock)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                pass_fds=(lock,),
                env=self._environment,
            )
        assert process.stdout is not None
        with process.stdout:
            said = process.stdout.readline()
        threading.Thread(target=process.wait, name=f"end of {job.directory.name}", daemon=True).start()
        if not said and not job.has_begun():
            raise ComputeNotAvailableError(f"Jobs cannot be started here: {job.last_words() or 'no reason was given'}.")

    def _let_through(self, directory: Path) -> None:
        """Let another user's program reach its own directory below this one, and see nothing on the way."""
        if self._user is not None:
            directory.chmod(0o711)

    def _plain(self, job: JobSpec) -> dict[str, Any]:
        home = self._directory / str(job.submission_key) / "work"
        given = {
            "CONDUCT_PARAMETERS": json.dumps(dict(job.parameters)),
            "CONDUCT_INPUT_URIS": json.dumps(job.input_uris),
            "CONDUCT_OUTPUT_URI": job.output_uri or "",
        }
        return {
            "command": job.command,
            "output_uri": job.output_uri,
            "working_dir": str(job.working_dir or home),
            "environment": self._environment | dict(job.env) | given,
            "timeout": self._timeout,
            "grace": self._grace,
            "output_limit": self._output_limit,
            "user": None if self._user is None else self._user.plain,
            "conduct_id": None if job.conduct_id is None else str(job.conduct_id),
        }


class _Job:
    """The directory of one job, and what it says."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def read(self, name: str) -> dict[str, Any] | None:
        try:
            content: dict[str, Any] = json.loads((self.directory / name).read_bytes())
        except FileNotFoundError:
            return None
        return content

    def locked(self, how: int = fcntl.LOCK_EX) -> int | None:
        """The lock, unless another holds it who does not share it."""
        lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, how | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        return lock

    def runs(self) -> bool:
        """Whether somebody sees to this job: it runs, or is about to."""
        try:
            lock = self.locked(fcntl.LOCK_SH)
        except FileNotFoundError:
            return False
        if lock is not None:
            os.close(lock)
        return lock is None

    def has_begun(self) -> bool:
        """Whether the directory says that the job ran or was tried."""
        return any((self.directory / name).exists() for name in (STARTED, OUTCOME))

    def is_known(self) -> bool:
        """Whether the job began, or is about to."""
        return self.runs() or self.has_begun()

    def outcome(self, patience: float) -> dict[str, Any] | None:
        """How the job ended, if it has."""
        runs = self.runs()
        if (outcome := self.read(OUTCOME)) is not None:
            return outcome
        started = self.read(STARTED)
        if not runs:
            self._end_what_is_left(started)
            raise ComputeOutcomeUnknown(
                f"What ran job {self.directory.name} is gone without a word; look at what the job was to do, and at its "
                f"output in {self.directory}."
            )
        spec = self.read(JOB)
        if started and spec and time.time() > started["started_at"] + spec["timeout"] + spec["grace"] + patience:
            raise ComputeTimeoutError(f"Job {self.directory.name} is past its time and does not end; look at it by hand.")
        return None

    def rejection(self) -> str | None:
        """Why the job could not be begun, if it could not."""
        outcome = self.read(OUTCOME)
        return outcome["detail"] if outcome is not None and outcome["status"] == "Rejected" else None

    def succeeded(self) -> dict[str, Any]:
        """The job as it was asked for, if it ended well."""
        spec, outcome = self.read(JOB), self.outcome(0)
        if outcome is None or spec is None:
            raise ComputeTimeoutError(f"Job {self.directory.name} has not ended; wait for its end first.")
        if outcome["status"] != "Succeeded":
            words = self.last_words()
            raise ComputeJobFailedError(f"{_named(spec)} {_ending(spec, outcome)}{': ' if words else '.'}{words}")
        return spec

    def last_words(self) -> str:
        return _end_of(self.directory / "stderr", 4 * TAIL).decode(errors="replace").strip()[-TAIL:]

    def last_line(self) -> str:
        """The last line of the output that is not blank."""
        lines = _end_of(self.directory / "stdout", LONGEST_LINE + 1).rstrip().splitlines()
        if not lines:
            raise ValueError("it printed nothing")
        if len(lines[-1]) >= LONGEST_LINE:
            raise ValueError(f"the last line is longer than {LONGEST_LINE} bytes")
        return lines[-1].decode()

    def stop(self) -> None:
        """Ask for the end of the job; while the lock is held, the number in it is its holder's."""
        if self.runs() and (holder := (self.directory / "lock").read_text().strip()):
            with suppress(ProcessLookupError):
                os.kill(int(holder), signal.SIGTERM)

    def last_change(self) -> float:
        """When the job began or ended, or was asked for, whichever came last."""
        paths = (self.directory / name for name in (JOB, STARTED, OUTCOME))
        return max(path.stat().st_mtime for path in paths if path.exists())

    def remove(self) -> None:
        """Remove the directory, unless the job runs; it is gone at once, whatever of it takes long."""
        if (lock := self.locked()) is None:
            return
        try:
            gone = self.directory.with_name(f".{self.directory.name}.gone")
            self.directory.rename(gone)
            shutil.rmtree(gone)
        finally:
            os.close(lock)

    def _end_what_is_left(self, started: dict[str, Any] | None) -> None:
        """Nobody sees to the job any more, so it must not go on; a number given to another process is left alone."""
        if started and started["birth"] is not None and birth_of(started["pid"]) == started["birth"]:
            left = descendants_of(started["pid"])
            with suppress(ProcessLookupError):
                os.killpg(started["pid"], signal.SIGKILL)
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def local_path(uri: str) -> Path:
    """The file of this machine that an address means; raises ComputeSubmitRejectedError."""
    parts = urlsplit(uri)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        path = Path(unquote(parts.path))
    elif not parts.scheme and not parts.netloc:
        path = Path(uri)
    else:
        raise ComputeSubmitRejectedError(f"A local process cannot write to {uri}; give a file:// address.")
    if not path.is_absolute() or "\0" in uri:
        raise ComputeSubmitRejectedError(f"{uri} does not say where; give a file:// address or an absolute path.")
    return path


def _status(outcome: Mapping[str, Any]) -> JobStatus:
    return JobStatus.FAILED if outcome["status"] == "Rejected" else JobStatus(outcome["status"])


def _named(spec: Mapping[str, Any]) -> str:
    return " ".join(spec["command"])[:TAIL]


def _ending(spec: Mapping[str, Any], outcome: Mapping[str, Any]) -> str:
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


def _finite(word: str) -> float:
    if not math.isfinite(number := float(word)):
        raise ValueError(f"{word} is no number that JSON can hold")
    return number
