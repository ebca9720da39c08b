"""Pictures of files under the data roots, as they are served: few are taken at a time, and the latest are kept."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from io import FileIO

from baton.domain.data.preview import DatasetPreviewUnavailableError, PreviewUnavailableReason
from baton.domain.data.scan import InvalidScanFileError, ScanFileInvalidReason, ScanReaderMissingError
from baton.infrastructure.data_files import DataFiles, FileUnreachableError
from baton.infrastructure.scans.png import grey_png
from baton.infrastructure.scans.reader_process import ReaderProcess
from baton.infrastructure.scans.scan_files import FileStamp

AT_ONCE = 2  # pictures that are taken side by side
KEPT = 256
READER_MISSING = "The API reads no files here; install baton-facility[scans] where it runs."
NO_FILE = (
    "No copy of this dataset is a file that the API can read; put one under its directories of data files (DATA_ROOTS)."
)


class LocalPreviews:
    """Takes pictures of files; of one that has not changed since, the kept picture is served."""

    def __init__(self, files: DataFiles, reader: ReaderProcess) -> None:
        self._files = files
        self._reader = reader
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._kept: OrderedDict[FileStamp, bytes] = OrderedDict()

    async def picture(self, uris: Sequence[str]) -> bytes:
        """Return the picture of the first of these files that can be opened here, as PNG."""
        detail = NO_FILE
        async with self._turns:
            for uri in uris:
                try:
                    file = await asyncio.to_thread(self._open, uri)
                except FileUnreachableError as error:
                    detail = f"{NO_FILE} {error}"
                    continue
                with file:
                    return await self._picture_of(file.fileno())
        raise DatasetPreviewUnavailableError(detail, reason=PreviewUnavailableReason.NO_FILE)

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
