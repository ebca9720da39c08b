"""Runs one job beside the worker, as a program of its own that outlives it and imports the standard library only. It holds
the job's lock while it lives; files say how the job began and ended, and without an outcome and a lock that is unknown."""

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
OUTPUT_LIMIT = 16 * 1024 * 1024  # bytes that are kept of each output stream unless the job sets another limit
PR_SET_CHILD_SUBREAPER = 36
HAS_DESCENDANTS = sys.platform == "linux" and Path("/proc/self/stat").exists()  # elsewhere: process groups only
Process = subprocess.Popen[bytes]


class JobOutput:
    """One output stream of a job: its beginning and its end go to a file, what lies between is dropped."""

    def __init__(self, path: Path, limit: int) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        self._file = path.open("ab", buffering=0)
        self._half = self._room = limit // 2
        self._tail = bytearray()
        self._dropped = 0
        self.open = True

    def drain(self) -> bool:
        """Take some of what was written, and return whether there was anything."""
        try:
            data = os.read(self.reading, 1 << 18)
        except BlockingIOError:
            return False
        self.open = bool(data)
        if self._room:
            self._write(data[: self._room])
            data, self._room = data[self._room :], max(0, self._room - len(data))
        self._tail += data
        if (excess := len(self._tail) - self._half) > 0:
            del self._tail[:excess]
            self._dropped += excess
        return self.open

    def finish(self) -> None:
        """Write the tail, and how much is missing before it."""
        while self.open and self.drain():
            pass
        if self._dropped:
            self._write(b"\n[%d bytes were left out here]\n" % self._dropped)
        self._write(self._tail)

    def _write(self, data: bytes | bytearray) -> None:
        """Write to the file as long as there is room on the disk; a job does not fail for lack of it."""
        with suppress(OSError):
            while data:
                data = data[self._file.write(data) :]


def main(directory: Path, lock: int) -> None:
    wakeups = _signal_pipe(signal.SIGCHLD, signal.SIGTERM)
    if HAS_DESCENDANTS:  # become the parent of the job's orphans, so that none is lost
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.pwrite(lock, b"%-10d\n" % os.getpid(), 0)
    job = json.loads((directory / JOB).read_bytes())
    limit = job.get("output_limit", OUTPUT_LIMIT)
    outputs = [JobOutput(directory / name, limit) for name in ("stdout", "stderr")]
    try:
        process = _launch(directory, job, *outputs)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        write_json(directory / OUTCOME, {"status": "Rejected", "detail": _error_text(error)})
        return
    for output in outputs:
        os.close(output.writing)
    _announce_start()
    cut_short = _wait_for_exit(process, outputs, wakeups, time.monotonic() + job["timeout"])
    if cut_short is not None:
        signal_tree(process.pid, os.getpid(), signal.SIGTERM)
        _wait_for_exit(process, outputs, wakeups, time.monotonic() + job["grace"], can_cancel=False)
    exit_status = _kill_all(process, outputs, wakeups)
    for output in outputs:
        output.finish()
    status = cut_short or ("Succeeded" if exit_status == 0 else "Failed")
    write_json(directory / OUTCOME, {"status": status, "exit_status": exit_status, "ended_at": time.time()})


def process_birth(pid: int | str) -> str | None:
    """Return what tells a process from any other that had or will have its number; None where the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{_stat_fields(pid)[19]}"
    except OSError:
        return None


def descendants_of(ancestor: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc") if HAS_DESCENDANTS else ():
        if entry.isdigit():
            with suppress(OSError):
                children.setdefault(int(_stat_fields(entry)[1]), []).append(int(entry))
    found = list(children.get(ancestor, ()))
    for pid in found:  # grows while it is walked
        found += children.get(pid, ())
    return found


def signal_tree(group: int, ancestor: int, number: signal.Signals) -> None:
    """Send a signal to a process group and, on Linux, to everything that descends from a process, in any session."""
    descendants = descendants_of(ancestor)
    for send, id in ((os.killpg, group), *((os.kill, pid) for pid in descendants)):
        with suppress(ProcessLookupError, PermissionError):
            send(id, number)


def _stat_fields(pid: int | str) -> list[str]:
    """Return the fields of /proc/<pid>/stat after the process name: state, parent, and so on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def write_json(path: Path, content: dict[str, object]) -> None:
    """Write a file completely or not at all, and sync it to disk."""
    draft = path.with_name(f".{path.name}")
    with draft.open("w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    parent = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def _launch(directory: Path, job: dict[str, Any], stdout: JobOutput, stderr: JobOutput) -> Process:
    """Start the job's process; its start is on disk before its program runs, and only then it becomes its user's."""
    user = job.get("user")

    def prepare() -> None:
        write_json(directory / STARTED, {"pid": os.getpid(), "birth": process_birth("self"), "started_at": time.time()})
        if user is not None:
            os.setgroups(user["groups"])
            os.setgid(user["gid"])
            os.setuid(user["uid"])

    command, cwd, env = job["command"], job["working_dir"], job["environment"]
    out, errors, null = stdout.writing, stderr.writing, subprocess.DEVNULL
    return subprocess.Popen(
        command, stdin=null, stdout=out, stderr=errors, cwd=cwd, env=env, start_new_session=True, preexec_fn=prepare
    )


def _wait_for_exit(
    process: Process, outputs: list[JobOutput], wakeups: int, deadline: float, can_cancel: bool = True
) -> str | None:
    while process.poll() is None:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return "TimedOut"
        if signal.SIGTERM in _drain_until_signal(outputs, wakeups, remaining) and can_cancel:
            return "Cancelled"
        _reap(process)
    return None


def _drain_until_signal(outputs: list[JobOutput], wakeups: int, seconds: float) -> bytes:
    reading = {output.reading: output for output in outputs if output.open}
    readable, _, _ = select.select([wakeups, *reading], [], [], seconds)
    for number in readable:
        if number in reading:
            reading[number].drain()
    return os.read(wakeups, 512) if wakeups in readable else b""


def _kill_all(process: Process, outputs: list[JobOutput], wakeups: int) -> int:
    signal_tree(process.pid, os.getpid(), signal.SIGKILL)
    exit_status = process.wait()
    while _reap(process):
        signal_tree(process.pid, os.getpid(), signal.SIGKILL)
        _drain_until_signal(outputs, wakeups, 0.05)
    return exit_status


def _reap(process: Process) -> bool:
    """Reap orphans of the job that have ended; return whether anything of it is left, its own process included."""
    if not HAS_DESCENDANTS:
        return False
    with suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid == process.pid:
                return True
            os.waitpid(ended.si_pid, 0)
        return True
    return False


def _signal_pipe(*numbers: signal.Signals) -> int:
    """Return a descriptor that becomes readable with each of these signals, also with those that came before a read."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return reading


def _announce_start() -> None:
    with suppress(BrokenPipeError):
        os.write(1, b"started\n")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _error_text(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
