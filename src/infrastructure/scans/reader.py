"""The process that reads scan files, confined; it imports nothing of the service but its layouts.

`python -I -m baton.infrastructure.scans.reader FD`. The answer is what was wanted, or what is wrong with the file."""

import socket
import sys
from typing import Any

from baton.infrastructure.confinement import ReadingLimits, confine, serve
from baton.infrastructure.scans.hdf5 import Hdf5File
from baton.infrastructure.scans.layouts import ScanFaultError, describe
from baton.infrastructure.scans.pictures import draw

__all__ = ["ReadingLimits", "confine"]
READINGS = {"description": describe, "picture": draw}
"""What can be wanted of a file."""


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
    serve(socket.socket(fileno=int(sys.argv[1])), read)
