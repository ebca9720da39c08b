"""Runs one job beside the worker that asked for it, and writes down how it began and how it ended.

It is a program of its own in a session of its own, so a job outlives its worker. It holds the lock it was given as long
as it lives; the job does not inherit it. The job's directory then says everything: no start and a free lock, it never
began; an outcome, it ended so; a start, a free lock and no outcome, nobody knows. Nothing but the standard library is
imported, and no other module of ours.
"""

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


def main(directory: Path, lock: int) -> None:
    """See one job through."""
    wakeups = _heard(signal.SIGCHLD, signal.SIGTERM)
    os.pwrite(lock, b"%-10d\n" % os.getpid(), 0)
    job = json.loads((directory / JOB).read_bytes())
    try:
        process = _begun(directory, job)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        write(directory / OUTCOME, {"status": "Rejected", "detail": _sentence(error)})
        return
    _tell(b"started\n")
    cut_short = _watched(process, wakeups, time.monotonic() + job["timeout"])
    if cut_short is not None:
        _signal(process, signal.SIGTERM)
        _watched(process, wakeups, time.monotonic() + job["grace"], deaf=True)
    _signal(process, signal.SIGKILL)
    exit_status = process.wait()
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


def _begun(directory: Path, job: dict[str, Any]) -> "subprocess.Popen[bytes]":
    """The job's process; that it begins is on disk before its program is."""

    def note() -> None:
        write(directory / STARTED, {"pid": os.getpid(), "birth": birth_of("self"), "started_at": time.time()})

    with (directory / "stdout").open("wb") as output:
        return subprocess.Popen(
            job["command"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            cwd=job["working_dir"],
            env=job["environment"],
            start_new_session=True,
            preexec_fn=note,
        )


def _watched(process: "subprocess.Popen[bytes]", wakeups: int, deadline: float, deaf: bool = False) -> str | None:
    """Wait for the process; why not any longer, if it still runs."""
    while process.poll() is None:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return "TimedOut"
        readable, _, _ = select.select([wakeups], [], [], remaining)
        if readable and signal.SIGTERM in os.read(wakeups, 512) and not deaf:
            return "Cancelled"
    return None


def _heard(*numbers: signal.Signals) -> int:
    """A descriptor that becomes readable with each of these signals, also with those that came before it was read."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return reading


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Send a signal to everything the job started and left in its group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


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
