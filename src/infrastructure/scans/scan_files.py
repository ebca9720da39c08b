"""Scan files under the data roots: each is opened once, described by the reading process and digested by this one."""

import asyncio
import hashlib
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import FileIO
from typing import NamedTuple

from baton.domain.data.scan import InvalidScanFileError, ScanDescription, ScanFileInvalidReason
from baton.infrastructure.data_files import DataFiles, DirectoryNamedError, FileUnreachableError
from baton.infrastructure.scans.reader_process import ReaderProcess

BLOCK = 1 << 20  # bytes that are read at a time


class FileStamp(NamedTuple):
    """What tells a file from another, and from itself once it has changed."""

    device: int
    inode: int
    size: int
    modified_at: int

    @classmethod
    def of(cls, descriptor: int) -> "FileStamp":
        """Return the stamp of an open file."""
        status = os.fstat(descriptor)
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class LocalScanFile:
    """One file that is open for reading; whatever is put in its place meanwhile, this one is read."""

    def __init__(self, files: DataFiles, reader: ReaderProcess, uri: str, descriptor: int) -> None:
        self._files = files
        self._reader = reader
        self._uri = uri
        self._descriptor = descriptor
        self._stamp = FileStamp.of(descriptor)
        self.byte_size = self._stamp.size
        self.digested_bytes = 0

    async def describe(self) -> ScanDescription:
        """Return what the file says of itself, or refuse it."""
        return await self._reader.describe(self._descriptor)

    async def digest(self) -> str:
        """Return the SHA-256 of all bytes as hexadecimal digits; `digested_bytes` tells how far it is."""
        stop, own = threading.Event(), FileIO(os.dup(self._descriptor))  # the thread may outlast a cancelled wait
        try:
            return await asyncio.to_thread(self._digest, own, stop)
        except OSError as error:
            detail = "The file could not be read to its end; look at the disk it is on, then try again."
            raise InvalidScanFileError(detail, reason=ScanFileInvalidReason.DIGEST_UNREACHABLE) from error
        finally:
            stop.set()

    async def refuse_changed(self) -> None:
        """Refuse a file that was written to or replaced since it was opened."""
        if await asyncio.to_thread(self._current_stamp) != self._stamp or self.digested_bytes != self.byte_size:
            detail = "The file changed while it was read; wait until nothing writes to it, then try again."
            raise InvalidScanFileError(detail, reason=ScanFileInvalidReason.CHANGED_WHILE_READING)

    def _digest(self, file: FileIO, stop: threading.Event) -> str:
        digest, buffer = hashlib.sha256(), memoryview(bytearray(BLOCK))
        with file:
            file.seek(0)
            while not stop.is_set() and (count := file.readinto(buffer)):
                digest.update(buffer[:count])
                self.digested_bytes += count
        return digest.hexdigest()

    def _current_stamp(self) -> FileStamp | None:
        """Return the stamp of what the file's address leads to now."""
        try:
            descriptor = self._files.open(self._uri)
        except FileUnreachableError:
            return None
        try:
            return FileStamp.of(descriptor)
        finally:
            os.close(descriptor)


class LocalScanFiles:
    """The scan files under the data roots of this machine."""

    def __init__(self, files: DataFiles, reader: ReaderProcess) -> None:
        self._files = files
        self._reader = reader

    @asynccontextmanager
    async def open(self, uri: str) -> AsyncIterator[LocalScanFile]:
        """Open the file under a `file:` URI, or refuse it."""
        try:
            descriptor = await asyncio.to_thread(self._files.open, uri)
        except FileUnreachableError as error:
            folder, faults = isinstance(error, DirectoryNamedError), ScanFileInvalidReason
            reason = faults.LOCATOR_MISSING_FILENAME if folder else faults.UNREADABLE
            raise InvalidScanFileError(str(error), reason=reason) from error
        try:
            yield LocalScanFile(self._files, self._reader, uri, descriptor)
        finally:
            os.close(descriptor)
