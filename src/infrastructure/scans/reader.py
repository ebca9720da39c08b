"""The process that reads scan files: it waits for descriptors of files, and has each read by a child of its own that is
confined before it looks at the file. It never looks at a file itself, and imports nothing of the service but its layouts.

`python -I -m baton.infrastructure.scans.reader FD`, where FD is the socket on which requests come: what is wanted and the
limits as JSON, with two descriptors, of the file and of a socket for the answer. The answer is a descriptor by which the
child is killed, and, once the child was told to begin, one line of JSON: what was wanted, or what is wrong with the file."""

import json
import os
import resource
import signal
import socket
import sys
from typing import Any, NamedTuple

from baton.infrastructure.scans.hdf5 import Hdf5File
from baton.infrastructure.scans.layouts import ScanFaultError, describe
from baton.infrastructure.scans.pictures import draw

READINGS = {"description": describe, "picture": draw}
"""What can be wanted of a file."""


class ReadingLimits(NamedTuple):
    """What the reading of one file may take."""

    memory_bytes: int
    seconds: int


def serve(requests: socket.socket) -> None:
    """Have a child read each file that is handed over, until the socket is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that nobody has to wait for children
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1024, 2)
        if not message:
            return
        file, answer = descriptors
        with socket.socket(fileno=answer) as answers:
            if (child := os.fork()) == 0:
                requests.close()
                request = json.loads(message)
                read_confined(file, answers, request["wanted"], ReadingLimits(**request["limits"]))
            _hand_over(child, answers)
        os.close(file)


def _hand_over(child: int, answers: socket.socket) -> None:
    """Give the caller what the child can be killed by."""
    handle = os.pidfd_open(child)
    try:
        socket.send_fds(answers, [b"\0"], [handle])
    except OSError:
        signal.pidfd_send_signal(handle, signal.SIGKILL)  # the caller has given up
    finally:
        os.close(handle)


def read_confined(file: int, answers: socket.socket, wanted: str, limits: ReadingLimits) -> None:
    """Read one file in this process, which can do nothing else any more, and end it."""
    try:
        if answers.recv(1):
            confine(file, limits)
            answers.sendall(json.dumps(read(file, wanted, limits), allow_nan=False).encode() + b"\n")
    finally:
        os._exit(0)


def confine(file: int, limits: ReadingLimits) -> None:
    """Let this process open one descriptor more and none after it, write no file, start nothing, and not live long."""
    lowest_free = os.dup(file)
    os.close(lowest_free)
    for kind, limit in (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.seconds),
        (resource.RLIMIT_NOFILE, lowest_free + 1),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    signal.alarm(limits.seconds)


def read(file: int, wanted: str, limits: ReadingLimits) -> dict[str, Any]:
    """Return what is wanted of a file, or what is wrong with it."""
    try:
        return {wanted: READINGS[wanted](Hdf5File(f"/proc/self/fd/{file}"))}
    except ScanFaultError as fault:
        return _fault(fault.reason, fault.detail)
    except MemoryError:
        detail = f"Reading it takes more than {limits.memory_bytes >> 20} MiB of memory (SCAN_READER_MEMORY_BYTES)."
        return _fault("unreadable", detail)
    except Exception:
        return _fault("unreadable", "It is no HDF5 file, or is damaged or still being written; look at it, then try again.")


def _fault(reason: str, detail: str) -> dict[str, object]:
    return {"fault": {"reason": reason, "detail": detail}}


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
