"""The process that reads scan files, as a worker or the API sees it, and what is believed of its answers."""

from importlib.util import find_spec
from typing import Annotated, Any, Self

from pydantic import Base64Bytes, Field, ValidationError, model_validator

from baton.domain.data.scan import InvalidScanFileError, ScanDescription, ScanFileInvalidReason, ScanReaderMissingError
from baton.domain.kernel import Value
from baton.infrastructure.confined_reader import LATE, ConfinedReader, ReaderLostError
from baton.infrastructure.scans.png import LONGEST_SIDE

NEEDED = ("h5py", "numpy", "pint")
ENVIRONMENT = {
    "HDF5_USE_FILE_LOCKING": "FALSE",
    "HDF5_PLUGIN_PATH": "/nonexistent",
    "HDF5_PLUGIN_PRELOAD": "::",  # means that no plugin is ever loaded
    "OPENBLAS_NUM_THREADS": "1",
}
LONGEST_ANSWER = 144 * 1024  # bytes; the pixels of a picture take most of them
NOT_RUNNING = "The process that reads files does not run; look at the machine of the service, then try again."
UNREADABLE = ScanFileInvalidReason.UNREADABLE


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


class ReaderProcess(ConfinedReader):
    """Reads scan files in a process that may take so much memory and time for each."""

    module = "baton.infrastructure.scans.reader"
    environment = ENVIRONMENT
    longest_answer = LONGEST_ANSWER

    async def describe(self, file: int) -> ScanDescription:
        """Return what the file behind a descriptor says of itself as a scan, or refuse it."""
        description: ScanDescription = await self._read("description", file)
        return description

    async def take_picture(self, file: int) -> GreyPicture:
        """Return the picture of the file behind a descriptor, or refuse it."""
        picture: GreyPicture = await self._read("picture", file)
        return picture

    def require_libraries(self) -> None:
        if missing := [name for name in NEEDED if find_spec(name) is None]:
            detail = f"The worker lacks {', '.join(missing)}; install baton-facility[scans] where it runs."
            raise ScanReaderMissingError(detail, reason="not_installed")

    async def _read(self, wanted: str, file: int) -> Any:
        """Return what is wanted of a file, or refuse it."""
        try:
            answer = await self.ask(wanted, file)
        except ReaderLostError:
            raise _unreadable(NOT_RUNNING) from None
        return self._judge(wanted, answer)

    def _judge(self, wanted: str, answer: bytes) -> object:
        """Return what was wanted from an answer, as far as it is to be believed."""
        if answer is LATE:
            raise _unreadable(
                f"It takes longer than {self._seconds} s to read (SCAN_READER_SECONDS); look at what it holds."
            )
        if not answer.endswith(b"\n"):
            raise _unreadable("The HDF5 library fails on it; look at it with h5dump, and write it again.")
        try:
            report = ScanReport.model_validate_json(answer)
        except ValidationError:
            raise _unreadable("What was read of it makes no sense; look at what the file holds.") from None
        if (content := getattr(report, wanted)) is not None:
            return content
        fault = report.fault or ScanFault(reason=UNREADABLE, detail="Nothing could be read of it; look at what it holds.")
        raise InvalidScanFileError(fault.detail, reason=fault.reason)


def _unreadable(detail: str) -> InvalidScanFileError:
    return InvalidScanFileError(detail, reason=UNREADABLE)
