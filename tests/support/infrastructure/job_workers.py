"""Workers as processes of their own that submit a job and wait for it, forked from one that has the imports behind it."""

import asyncio
import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

FORKER = [sys.executable, "-m", "tests.support.infrastructure.job_workers"]


class JobWorkers:
    """Starts workers; each is killed by its pid."""

    def __init__(self, forker: Any) -> None:
        self._forker = forker

    async def start(self, jobs: Path, key: UUID, command: tuple[str, ...], submitted: Path) -> int:
        """Start a worker that submits a job, and writes the job's id to `submitted`; return its pid."""
        request = {"jobs": str(jobs), "key": str(key), "command": command, "submitted": str(submitted)}
        self._forker.stdin.write(json.dumps(request) + "\n")
        self._forker.stdin.flush()
        return int(await asyncio.to_thread(self._forker.stdout.readline))


async def submit(jobs: str, key: str, command: list[str], submitted: str) -> None:
    """Submit a job, say so in a file, and wait for its end, as a worker does."""
    from baton.application.conduct.compute import JobSpec
    from baton.infrastructure.compute.local_process import LocalProcesses

    compute = LocalProcesses(Path(jobs), programs=[command[0]])
    job_id = await compute.submit(JobSpec(submission_key=UUID(key), command=tuple(command)))
    await asyncio.to_thread(write_whole, Path(submitted), job_id)
    await compute.await_terminal_state(job_id)


def write_whole(path: Path, text: str) -> None:
    """Write a file that appears with its content."""
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.rename(path)


def fork_workers() -> None:
    """Fork a worker for each request that is read, and print its pid."""
    import baton.infrastructure.compute.local_process  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if pid := os.fork():
            print(pid, flush=True)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        asyncio.run(submit(**json.loads(line)))
        hangup = select.poll()
        hangup.register(sys.stdin, 0)
        hangup.poll()  # a worker outlives its job, until it is killed, or nobody asks for workers any more
        os._exit(0)


if __name__ == "__main__":
    fork_workers()
