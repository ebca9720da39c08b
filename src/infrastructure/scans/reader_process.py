"""The reading process as a worker or the API sees it: started when it is first needed, asked for one file at a time from as
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Annotated, Any, Self

from pydantic import Base64Bytes, Field, ValidationError, model_validator

from baton.domain.data.scan import InvalidScanFileError, ScanDescription, ScanFileInvalidReason, ScanReaderMissingError
from baton.domain.kernel import Value
from baton.infrastructure.scans.png import LONGEST_SIDE

NEEDED = ("h5py", "numpy", "pint")
ENVIRONMENT = {
    "HDF5_USE_FILE_LOCKING": "FALSE",
    "HDF5_PLUGIN_PATH": "/nonexistent",
    "HDF5_PLUGIN_PRELOAD": "::",  # means that no plugin is ever loaded
    "OPENBLAS_NUM_THREADS": "1",
}
LONGEST_ANSWER = 144 * 1024  # bytes; the pixels of a picture take most of them
START_SECONDS = 60.0  # that the process may take until it has its libraries
UNREADABLE = ScanFileInvalidReason.UNREADABLE
LATE = b"late"  # stands for the answer of a reader that took too long


class ScanFault(Value):
    """What the reading process found wrong with a file."""

    reason: ScanFileInvalidReason
    detail: Annotated[str, Field(max_length=500)]


Side = Annotated[int, Field(ge=1, le=LONGEST_SIDE)]


class GreyPicture(Value):
    """A picture in shades of grey, its pixels line by line from the top."""

    width: Side
    height: Side
    pixels: Base64Bytes

    @model_validator(mode="after")
    def check_size(self) -> Self:
        """Refuse a picture that has more or fewer pixels than its sides say."""
        if len(self.pixels) != self.width * self.height:
            raise ValueError("the pixels do not fill the picture")
        return self


class ScanReport(Value):
    """What the reading process answers; it has looked at a hostile file, and is believed only as far as this form goes."""

    description: ScanDescription | None = None
    picture: GreyPicture | None = None
    fault: ScanFault | None = None


class ReaderProcess:
    """Reads scan files in a process that may take so much memory and time for each."""

    def __init__(self, memory_bytes: int, seconds: int) -> None:
        self._seconds = seconds
        self._limits = {"memory_bytes": memory_bytes, "seconds": seconds}
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._starting = threading.Lock()

    async def describe(self, file: int) -> ScanDescription:
        """Return what the file behind a descriptor says of itself as a scan, or refuse it."""
        description: ScanDescription = await self._read("description", file)
        return description

    async def take_picture(self, file: int) -> GreyPicture:
        """Return the picture of the file behind a descriptor, or refuse it."""
        picture: GreyPicture = await self._read("picture", file)
        return picture

    async def _read(self, wanted: str, file: int) -> Any:
        """Return what is wanted of a file, or refuse it; a reading process that has died is started again."""
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
                return self._judge(wanted, answer)
        raise _unreadable("The process that reads files does not run; look at the machine of the service, then try again.")

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
            while len(answer) <= LONGEST_ANSWER:
                answers.settimeout(max(0.01, deadline + 1 - time.monotonic()))
                if not (part := answers.recv(LONGEST_ANSWER)):
                    break
                answer += part
        return LATE if not answer and time.monotonic() >= deadline else answer

    def _judge(self, wanted: str, answer: bytes) -> object:
        """Return what was wanted from an answer, as far as it is to be believed."""
        if answer is LATE:
            raise _unreadable(
                f"It takes longer than {self._seconds} s to read (SCAN_READER_SECONDS); look at what it holds."
            )
        if not answer.endswith(b"\n"):
            raise _unreadable("The HDF5 library fails on it; look at it with h5dump, and write it anew.")
        try:
            report = ScanReport.model_validate_json(answer)
        except ValidationError:
            raise _unreadable("What was read of it makes no sense; look at what the file holds.") from None
        if (content := getattr(report, wanted)) is not None:
            return content
        fault = report.fault or ScanFault(reason=UNREADABLE, detail="Nothing could be read of it; look at what it holds.")
        raise InvalidScanFileError(fault.detail, reason=fault.reason)

    def _ensure_process(self) -> socket.socket:
        """Return the socket of the process, which is started where it does not run."""
        with self._starting:
            if self._requests is None:
                if missing := [name for name in NEEDED if find_spec(name) is None]:
                    detail = f"The worker lacks {', '.join(missing)}; install baton-facility[scans] where it runs."
                    raise ScanReaderMissingError(detail, reason="not_installed")
                self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    self._process = _start(theirs.fileno())
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


def _start(requests: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-m", "baton.infrastructure.scans.reader", str(requests)]
    null = subprocess.DEVNULL
    return subprocess.Popen(
        command, stdin=null, stdout=null, stderr=null, env=ENVIRONMENT, cwd="/", pass_fds=(requests,), start_new_session=True
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


def _unreadable(detail: str) -> InvalidScanFileError:
    return InvalidScanFileError(detail, reason=UNREADABLE)
