"""A reading process as a worker or the API sees it: started when it is first needed, asked for one file at a time from as
many threads as there are files, and started again where it has died."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import ClassVar

START_SECONDS = 60.0  # that the process may take until it has its libraries
LATE = b"late"  # stands for the answer of a reader that took too long


class ReaderLostError(Exception):
    """The process that reads files does not run."""


class ConfinedReader:
    """Has files read in a process that may take so much memory and time for each, and can do nothing else."""

    module: ClassVar[str]  # that is run
    environment: ClassVar[Mapping[str, str]]  # all of it
    longest_answer: ClassVar[int]  # bytes

    def __init__(self, memory_bytes: int, seconds: int) -> None:
        self._seconds = seconds
        self._limits = {"memory_bytes": memory_bytes, "seconds": seconds}
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._starting = threading.Lock()

    def require_libraries(self) -> None:
        """Raise where the process could not read anything."""

    async def ask(self, wanted: str, file: int) -> bytes:
        """Return what the reader of a file answers: nothing where it died, LATE where it took too long; a reading process
        that has died is started again."""
        request = json.dumps({"wanted": wanted, "limits": self._limits}).encode()
        for _ in range(2):
            (answers, theirs), given_up = socket.socketpair(), threading.Event()
            try:
                answer = await asyncio.to_thread(self._exchange, request, file, answers, theirs, given_up)
            except asyncio.CancelledError:
                given_up.set()
                with suppress(OSError):
                    answers.shutdown(socket.SHUT_RDWR)  # the thread ends, and kills the reader
                raise
            if answer is not None:
                return answer
        raise ReaderLostError

    def close(self) -> None:
        """End the process; what it reads ends by its own limits."""
        with self._starting:
            self._forget()

    def _exchange(
        self, request: bytes, file: int, answers: socket.socket, theirs: socket.socket, given_up: threading.Event
    ) -> bytes | None:
        """Have a file read and return what is said of it; nothing where its reader died, None where none was started."""
        with answers:
            with theirs:
                requests = self._ensure_process()
                with suppress(OSError):
                    socket.send_fds(requests, [request], [file, theirs.fileno()])
            answers.settimeout(START_SECONDS)
            try:
                _, descriptors, _, _ = socket.recv_fds(answers, 1, 1)
            except OSError:
                descriptors = []
            if not descriptors:
                if not given_up.is_set():
                    self._replace_process(requests)
                return None
            with _kill_at_end(descriptors[0]):
                return self._receive(answers)

    def _receive(self, answers: socket.socket) -> bytes:
        """Tell a reader to begin and return its answer; nothing where it died, LATE where it took too long."""
        deadline, answer = time.monotonic() + self._seconds, b""
        with suppress(OSError):
            answers.sendall(b"\0")
            while len(answer) <= self.longest_answer:
                answers.settimeout(max(0.01, deadline + 1 - time.monotonic()))
                if not (part := answers.recv(self.longest_answer)):
                    break
                answer += part
        return LATE if not answer and time.monotonic() >= deadline else answer

    def _ensure_process(self) -> socket.socket:
        """Return the socket of the process, which is started where it does not run."""
        with self._starting:
            if self._requests is None:
                self.require_libraries()
                self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    self._process = self._start(theirs.fileno())
            return self._requests

    def _replace_process(self, died: socket.socket) -> None:
        """End a process that does not answer, unless another thread did; the next file starts another."""
        with self._starting:
            if self._requests is died:
                self._forget()

    def _forget(self) -> None:
        process, self._process = self._process, None
        requests, self._requests = self._requests, None
        if requests is not None:
            requests.close()
        if process is not None:
            process.kill()
            process.wait()

    def _start(self, requests: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-m", self.module, str(requests)]
        null = subprocess.DEVNULL
        return subprocess.Popen(
            command,
            stdin=null,
            stdout=null,
            stderr=null,
            env=self.environment,
            cwd="/",
            pass_fds=(requests,),
            start_new_session=True,
        )


@contextmanager
def _kill_at_end(child: int) -> Iterator[None]:
    """Kill a process at the end of the block, by its descriptor: its number may be another's by then."""
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(child, signal.SIGKILL)
        os.close(child)
