"""Pictures of files under the data roots, as they are served: few are taken at a time, and the latest are kept."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from datetime import timedelta
from io import FileIO

from baton.domain.data.preview import DatasetPreviewUnavailableError, PreviewUnavailableReason, RegisteredFile
from baton.domain.data.scan import InvalidScanFileError, ScanFileInvalidReason, ScanReaderMissingError
from baton.domain.kernel import Document
from baton.infrastructure.data_files import DataFiles, FileUnreachableError
from baton.infrastructure.scans.png import grey_png
from baton.infrastructure.scans.reader_process import ReaderProcess
from baton.infrastructure.scans.scan_files import FileStamp

AT_ONCE = 2  # pictures that are taken side by side
KEPT = 256
CLOCK_LEAD = timedelta(seconds=2)  # by which the clock of the file's disk may be ahead of the record's
READER_MISSING = "The API reads no files here; install baton-facility[scans] where it runs."
NO_FILE = (
    "No copy of this dataset is a file that the API can read; put one under its directories of data files (DATA_ROOTS)."
)


CHANGED = "The file has changed since it was registered{how}; it is not shown. Have its bytes checked (record_attestation)."


class LocalPreviews:
    """Takes pictures of files that are as they were registered; of one that has not changed since, the kept picture is
    served."""

    def __init__(self, files: DataFiles, reader: ReaderProcess) -> None:
        self._files = files
        self._reader = reader
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._kept: OrderedDict[FileStamp, bytes] = OrderedDict()

    async def preview(self, files: Sequence[RegisteredFile]) -> Document:
        return Document("image/png", await self.picture(files))

    async def picture(self, files: Sequence[RegisteredFile]) -> bytes:
        """Return the picture of the first of these files that can be opened here and is as it was registered, as PNG."""
        detail, reason = NO_FILE, PreviewUnavailableReason.NO_FILE
        async with self._turns:
            for registered in files:
                try:
                    file = await asyncio.to_thread(self._open, registered.uri)
                except FileUnreachableError as error:
                    if reason is PreviewUnavailableReason.NO_FILE:
                        detail = f"{NO_FILE} {error}"
                    continue
                with file:
                    if (how := change_of(FileStamp.of(file.fileno()), registered)) is None:
                        return await self._picture_of(file.fileno())
                    detail, reason = CHANGED.format(how=how), PreviewUnavailableReason.CHANGED
        raise DatasetPreviewUnavailableError(detail, reason=reason)

    def _open(self, uri: str) -> FileIO:
        """Open a file; it is closed with its object where nobody waits for that any more."""
        return FileIO(self._files.open(uri))

    async def _picture_of(self, descriptor: int) -> bytes:
        stamp = FileStamp.of(descriptor)
        if stamp not in self._kept:
            taken = await self._take(descriptor)
            self._kept[stamp] = taken
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(stamp)
        return self._kept[stamp]

    async def _take(self, descriptor: int) -> bytes:
        reasons = PreviewUnavailableReason
        try:
            taken = await self._reader.take_picture(descriptor)
        except ScanReaderMissingError as error:
            raise DatasetPreviewUnavailableError(READER_MISSING, reason=reasons.READER_MISSING) from error
        except InvalidScanFileError as error:
            empty = error.reason == ScanFileInvalidReason.UNRECOGNIZED
            raise DatasetPreviewUnavailableError(
                error.detail, reason=reasons.NO_PICTURE if empty else reasons.UNREADABLE
            ) from error
        return await asyncio.to_thread(grey_png, taken.width, taken.height, taken.pixels)


def change_of(stamp: FileStamp, registered: RegisteredFile) -> str | None:
    """Return how a file differs from what was registered, by its size and its time, or None."""
    if stamp.size != registered.byte_size:
        return f" (it has {stamp.size} bytes, not {registered.byte_size})"
    if stamp.modified_at > (registered.known_at + CLOCK_LEAD).timestamp() * 1e9:
        return " (it was written to)"
    return None
