"""Runs one job beside the worker that asked for it, and writes down how it began and how it ended.

It is a program of its own in a session of its own, so a job outlives its worker. It holds the lock it was given as long
as it lives; the job does not inherit it. The job's directory then says everything: no start and a free lock, it never
began; an outcome, it ended so and nothing of it runs any more; a start, a free lock and no outcome, nobody knows. Nothing
but the standard library is imported, and no other module of ours.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

JOB, STARTED, OUTCOME = "job.json", "started.json", "outcome.json"
OUTPUT_LIMIT = 16 * 1024 * 1024
"""Bytes that are kept of a stream where the job does not say."""
CHUNK = 1 << 18
PR_SET_CHILD_SUBREAPER = 36
LOOK_AGAIN = 0.05
"""Seconds between two looks for processes that are still to be killed."""
HAS_DESCENDANTS = sys.platform == "linux" and Path("/proc/self/stat").exists()
"""Whether a process can be told from others by whom it descends from; elsewhere there are only process groups."""


class Output:
    """One stream of a job: its beginning goes to a file, its end is kept until it is known, what lies between is dropped."""

    def __init__(self, path: Path, limit: int) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        self._file = path.open("ab", buffering=0)
        self._half = limit // 2
        self._room = self._half
        self._end = bytearray()
        self._dropped = 0
        self.open = True

    def take(self) -> bool:
        """Take some of what was written; whether there was anything."""
        try:
            data = os.read(self.reading, CHUNK)
        except BlockingIOError:
            return False
        self.open = bool(data)
        self._keep(data)
        return self.open

    def finish(self) -> None:
        """Write the end down, and how much is missing before it."""
        while self.open and self.take():
            pass
        if self._dropped:
            self._write(b"\n[%d bytes were left out here]\n" % self._dropped)
        self._write(self._end)

    def _keep(self, data: bytes) -> None:
        if self._room:
            self._write(data[: self._room])
            data, self._room = data[self._room :], max(0, self._room - len(data))
        self._end += data
        if (excess := len(self._end) - self._half) > 0:
            del self._end[:excess]
            self._dropped += excess

    def _write(self, data: bytes | bytearray) -> None:
        """Write to the file as long as there is room on the disk; a job does not end for want of it."""
        with suppress(OSError):
            while data:
                data = data[self._file.write(data) :]


def main(directory: Path, lock: int) -> None:
    """See one job through."""
    wakeups = _heard(signal.SIGCHLD, signal.SIGTERM)
    _adopt_orphans()
    os.pwrite(lock, b"%-10d\n" % os.getpid(), 0)
    job = json.loads((directory / JOB).read_bytes())
    limit = job.get("output_limit", OUTPUT_LIMIT)
    outputs = [Output(directory / name, limit) for name in ("stdout", "stderr")]
    try:
        process = _begun(directory, job, *outputs)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        write(directory / OUTCOME, {"status": "Rejected", "detail": _sentence(error)})
        return
    for output in outputs:
        os.close(output.writing)
    _tell(b"started\n")
    cut_short = _watched(process, outputs, wakeups, time.monotonic() + job["timeout"])
    if cut_short is not None:
        _signal(process, signal.SIGTERM)
        _watched(process, outputs, wakeups, time.monotonic() + job["grace"], deaf=True)
    exit_status = _end_all(process, outputs, wakeups)
    for output in outputs:
        output.finish()
    status = cut_short or ("Succeeded" if exit_status == 0 else "Failed")
    write(directory / OUTCOME, {"status": status, "exit_status": exit_status, "ended_at": time.time()})


def birth_of(pid: int | str) -> str | None:
    """What tells this process from any other that had or will have its number; None where the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return f"{boot}:{fields[19]}"


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a file whole or not at all, and see it safely to disk."""
    draft = path.with_name(f".{path.name}")
    with draft.open("w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    names = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(names)
    finally:
        os.close(names)


def _begun(directory: Path, job: dict[str, Any], stdout: Output, stderr: Output) -> "subprocess.Popen[bytes]":
    """The job's process; that it begins is on disk before its program is, and then it becomes its user's."""
    user = job.get("user")

    def prepare() -> None:
        write(directory / STARTED, {"pid": os.getpid(), "birth": birth_of("self"), "started_at": time.time()})
        if user is not None:
            os.setgroups(user["groups"])
            os.setgid(user["gid"])
            os.setuid(user["uid"])

    return subprocess.Popen(
        job["command"],
        stdin=subprocess.DEVNULL,
        stdout=stdout.writing,
        stderr=stderr.writing,
        cwd=job["working_dir"],
        env=job["environment"],
        start_new_session=True,
        preexec_fn=prepare,
    )


def _watched(
    process: "subprocess.Popen[bytes]", outputs: list[Output], wakeups: int, deadline: float, deaf: bool = False
) -> str | None:
    """Wait for the process while its output is taken; why not any longer, if it still runs."""
    while process.poll() is None:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return "TimedOut"
        if signal.SIGTERM in _wait(outputs, wakeups, remaining) and not deaf:
            return "Cancelled"
        _reap(process)
    return None


def _wait(outputs: list[Output], wakeups: int, seconds: float) -> bytes:
    """Take output, and answer the signals that came, until there is one of both or the time is over."""
    reading = {output.reading: output for output in outputs if output.open}
    readable, _, _ = select.select([wakeups, *reading], [], [], seconds)
    for number in readable:
        if number in reading:
            reading[number].take()
    return os.read(wakeups, 512) if wakeups in readable else b""


def _end_all(process: "subprocess.Popen[bytes]", outputs: list[Output], wakeups: int) -> int:
    """Kill what is left of the job until nothing is, and answer how its own process ended."""
    _signal(process, signal.SIGKILL)
    exit_status = process.wait()
    while _reap(process):
        _signal(process, signal.SIGKILL)
        _wait(outputs, wakeups, LOOK_AGAIN)
    return exit_status


def _reap(process: "subprocess.Popen[bytes]") -> bool:
    """Take leave of orphans of the job that have ended; whether there is anything left of it besides its own process."""
    if not HAS_DESCENDANTS:
        return False
    with suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid == process.pid:
                return True
            os.waitpid(ended.si_pid, 0)
        return True
    return False


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Send a signal to everything the job started, in whatever session it is; elsewhere to what is in its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
    for pid in descendants_of(os.getpid()):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _adopt_orphans() -> None:
    """Become the parent of every process of the job whose own parent ends, so that none is lost sight of."""
    if HAS_DESCENDANTS:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants_of(ancestor: int) -> list[int]:
    """The processes that descend from one, as far as they can be seen now."""
    if not HAS_DESCENDANTS:
        return []
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry))
    found: list[int] = []
    pending = [ancestor]
    while pending:
        born = children.get(pending.pop(), [])
        pending += born
        found += born
    return found


def _heard(*numbers: signal.Signals) -> int:
    """A descriptor that becomes readable with each of these signals, also with those that came before it was read."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return reading


def _tell(word: bytes) -> None:
    """Say it to the worker, if it is still there, and nothing more."""
    with suppress(BrokenPipeError):
        os.write(1, word)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
