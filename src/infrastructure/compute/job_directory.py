"""The directory of one local job: who holds its lock, how it began and ended, and what it printed."""

import errno
import fcntl
import json
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from baton.application.conduct import compute
from baton.application.conduct.compute import JobStatus
from baton.infrastructure.compute.job_runner import JOB, OUTCOME, STARTED, process_birth, signal_tree, write_json

LONGEST_LINE = 1 << 20  # bytes that the line with the measurements may have


class JobDirectory:
    """One job on disk. Its lock is held as long as somebody runs the job or is about to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def claim(self, spec: dict[str, Any]) -> int | None:
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

    def is_known(self) -> bool:
        return self.is_running() or self.has_begun()

    def read(self, name: str) -> dict[str, Any] | None:
        try:
            content: dict[str, Any] = json.loads((self.path / name).read_bytes())
        except FileNotFoundError:
            return None
        return content

    def status(self, allowance: float) -> JobStatus | None:
        """Return how the job ended, or None while it runs; it may overrun its time limit by `allowance` seconds."""
        outcome = self._outcome(allowance)
        if outcome is None:
            return None
        return JobStatus.FAILED if outcome["status"] == "Rejected" else JobStatus(outcome["status"])

    def rejection(self) -> str | None:
        outcome = self.read(OUTCOME)
        return outcome["detail"] if outcome is not None and outcome["status"] == "Rejected" else None

    def succeeded_spec(self) -> dict[str, Any]:
        """Return the job's specification, or raise when it did not succeed."""
        spec, outcome = self.read(JOB), self._outcome(0)
        if outcome is None or spec is None:
            raise compute.ComputeTimeoutError(f"Job {self.path.name} has not ended; wait for its end first.")
        if outcome["status"] != "Succeeded":
            words = self.last_words()
            raise compute.ComputeJobFailedError(
                f"{job_name(spec)} {_end_sentence(spec, outcome)}{': ' if words else '.'}{words}"
            )
        return spec

    def last_words(self) -> str:
        return _end_of(self.path / "stderr", 4 * compute.TAIL).decode(errors="replace").strip()[-compute.TAIL :]

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

    def _create(self, spec: dict[str, Any]) -> int | None:
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
            self._kill_leftovers(started)
            raise compute.ComputeOutcomeUnknown(
                f"What ran job {self.path.name} is gone without a word; look at what the job was to do, and at its "
                f"output in {self.path}."
            )
        spec = self.read(JOB)
        if started and spec and time.time() > started["started_at"] + spec["timeout"] + spec["grace"] + allowance:
            raise compute.ComputeTimeoutError(f"Job {self.path.name} is past its time and does not end; look at it by hand.")
        return None

    def _kill_leftovers(self, started: dict[str, Any] | None) -> None:
        """Kill a job whose runner is gone; a number that another process has by now is left alone."""
        if started and started["birth"] is not None and process_birth(started["pid"]) == started["birth"]:
            signal_tree(started["pid"], started["pid"], signal.SIGKILL)


def job_name(spec: dict[str, Any]) -> str:
    return " ".join(spec["command"])[: compute.TAIL]


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
