"""Scan ingest: one finished file of an instrument is recorded as a dataset, its first copy and its acquisition, all three or
none. What the file says is read by a process of its own; here it is judged and turned into events."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, NamedTuple
from urllib.parse import unquote, urlsplit
from uuid import UUID

from pydantic import Field, TypeAdapter, ValidationError

from baton.domain.data import acquisition, distribution
from baton.domain.data.acquisition import (
    Acquisition,
    AcquisitionAssetNotFoundError,
    Capture,
    FrameLayout,
    capture_by,
    refuse_other_asset,
)
from baton.domain.data.dataset import (
    CONTENT_REFUSALS,
    Origin,
    ProducingRunNotFoundError,
    actuation_kind_now,
    dataset,
    first_with_bytes,
    refuse_duplicate,
    registration,
)
from baton.domain.data.distribution import (
    Distribution,
    DistributionSupplyNotFoundError,
    marked_overwritten,
    other_bytes_at,
    refuse_other_supply,
)
from baton.domain.data.values import ChecksumAlgorithm, Content, GivenChecksum, GivenEncoding, GivenUri
from baton.domain.equipment.asset import Asset
from baton.domain.kernel import Call, JudgedCreation, Outcome, Value
from baton.domain.registry import OpenedWork
from baton.domain.run.run import Run
from baton.domain.shared.reads import Reads, require, require_if_given
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.tasks import Wait, begin_task
from baton.domain.shared.text import unnameable_character
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Also
from baton.domain.supply.supply import Supply

SCAN_INGEST = "scan-ingest"  # The kind of task.
MEDIA_TYPE = "application/x-hdf5"
CHECKSUM_COMPUTER = "PosixChecksum"
MAX_NAME = 200
MAX_COUNT = 1_000_000  # Frames that a file may have.
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]


class ScanLayout(StrEnum):
    DATA_EXCHANGE = "DataExchange"
    NXTOMO = "NXtomo"


PROFILES = {
    ScanLayout.DATA_EXCHANGE: "https://doi.org/10.1107/S160057751401604X",
    ScanLayout.NXTOMO: "https://manual.nexusformat.org/classes/applications/NXtomo",
}


class ScanFileInvalidReason(StrEnum):
    UNREADABLE = "unreadable"  # It cannot be opened here, or is no HDF5 file.
    UNRECOGNIZED = "unrecognized"  # It has neither layout.
    STRUCTURALLY_INCOMPLETE = "structurally_incomplete"  # Its angles are missing.
    CAPTURED_AT_AMBIGUOUS = "captured_at_ambiguous"  # Both the file and the caller say when.
    CAPTURED_AT_MISSING = "captured_at_missing"  # Neither of them does.
    DIGEST_UNREACHABLE = "digest_unreachable"  # Its bytes could not be read to the end.
    CHANGED_WHILE_READING = "changed_while_reading"
    LOCATOR_MISSING_FILENAME = "locator_missing_filename"


class MeasuredQuantity(Value):
    """A number with its unit, as a file has it beyond its counts and angles."""

    value: float
    unit: Annotated[str, Field(min_length=1, max_length=20)]


class UncheckedPart(StrEnum):
    FRAME_VALUES = "frame_values"  # The frames are counted, and never read.
    ANGLE_UNIT = "angle_unit"  # The angles have no unit; they are taken for degrees.
    COMMANDED_COUNTS = "commanded_counts"  # The file does not say how many projections were asked for.
    ENERGY = "energy"  # It is there without a usable value and unit, and is left out.
    PIXEL_SIZE = "pixel_size"  # Likewise.
    PIXEL_SIZE_X = "pixel_size_x"
    PIXEL_SIZE_Y = "pixel_size_y"


UncheckedParts = Annotated[
    tuple[UncheckedPart, ...],
    Field(
        max_length=len(UncheckedPart), description="What of the file was not checked, or is not said clearly enough in it."
    ),
]


class ScanDescription(Value):
    """What a scan file says of itself; None means that it does not tell, 0 that there is none."""

    layout: ScanLayout
    projection_count: Count
    flat_count: Count
    dark_count: Count
    invalid_count: Count
    projection_angle_count: Count
    projection_angle_first: float | None = None  # In degrees.
    projection_angle_last: float | None = None
    commanded_projection_count: Count | None = None
    commanded_flat_count: Annotated[int, Field(ge=0, le=2 * MAX_COUNT)] | None = None
    commanded_dark_count: Annotated[int, Field(ge=0, le=2 * MAX_COUNT)] | None = None
    start_date_raw: Annotated[str, Field(max_length=4096)] | None = None
    quantities: Annotated[dict[str, MeasuredQuantity], Field(max_length=10)] = {}
    unchecked: UncheckedParts = ()
    frames: FrameLayout | None = None


class InvalidScanFileError(Invalid, context="data"):
    """The file cannot be ingested as it is; the reason says what is wrong with it, or with what is said about it."""


class ScanReaderMissingError(Conflict, context="data"):
    """This deployment reads no scan files: what reads them is not installed."""


class ScanRecords(Value):
    """The three records of a scan file."""

    dataset_id: UUID
    distribution_id: UUID
    acquisition_id: UUID


class ScanIngested(ScanRecords):
    """The records that a scan file became, and what of it was not checked."""

    unchecked: UncheckedParts = ()
    duplicate_of: UUID | None = None


class ScanIngestAccepted(ScanRecords):
    """The records that a scan file is to become; `get_work` tells how it goes."""

    work_id: UUID


class ScanParts(NamedTuple):
    """What an ingest refers to, as the record has it."""

    capture: Capture
    supply: Supply
    run: Run | None


class GivenScan(Value):
    """What is said about a scan file: where it is, what captured it and what keeps it."""

    locator: GivenUri
    producing_asset_id: UUID
    supply_id: UUID
    access_protocol: distribution.GivenAccessProtocol
    producing_run_id: UUID | None = None
    captured_at: Annotated[Instant | None, Field(description="Only where the file does not say when.")] = None
    allow_duplicate: bool = False

    def parts(self) -> Reads[ScanParts]:
        """Return what the ingest refers to, or refuse what cannot have captured or cannot keep it."""
        asset = yield from require(Asset, self.producing_asset_id, AcquisitionAssetNotFoundError)
        supply = yield from require(Supply, self.supply_id, DistributionSupplyNotFoundError)
        run = yield from require_if_given(Run, self.producing_run_id, ProducingRunNotFoundError)
        refuse_other_supply(supply)
        capture = yield from capture_by(asset, self.producing_run_id)
        refuse_other_asset(capture)
        return ScanParts(capture, supply, run)


def file_name(locator: str) -> str:
    """Return the name of the file that a locator leads to, or refuse one that leads to a folder."""
    try:
        path = urlsplit(locator.strip()).path
    except ValueError:
        path = locator
    name = unquote(path.rpartition("/")[2]).strip()
    if name in ("", ".", ".."):
        detail = "The locator names a folder; name the file in it."
        raise InvalidScanFileError(detail, reason=ScanFileInvalidReason.LOCATOR_MISSING_FILENAME)
    return name


def time_of_capture(scan: GivenScan, description: ScanDescription) -> tuple[datetime, str]:
    """Return when a scan was captured and who says so; the time of the ingest is never taken for it."""
    written = start_time(description.start_date_raw)
    if written is not None and scan.captured_at is not None:
        detail = "The file says when it was captured; leave captured_at out."
        raise InvalidScanFileError(detail, reason=ScanFileInvalidReason.CAPTURED_AT_AMBIGUOUS)
    if written is not None:
        return written, "start_date"
    if scan.captured_at is not None:
        return scan.captured_at, "operator"
    detail = "The file has no start time with a UTC offset; give captured_at."
    raise InvalidScanFileError(detail, reason=ScanFileInvalidReason.CAPTURED_AT_MISSING)


def start_time(text: str | None) -> datetime | None:
    """Return the moment that a file names as its start; None where it names none, or one without its UTC offset."""
    try:
        return None if text is None else _MOMENT.validate_python(text.strip())
    except ValidationError:
        return None


_MOMENT: TypeAdapter[datetime] = TypeAdapter(Instant)


def evidence_of(description: ScanDescription, captured_at_source: str) -> dict[str, object]:
    """Return what is kept of a file's description; what the file does not tell has no key."""
    captured, commanded = description.projection_count, description.commanded_projection_count
    told = description.model_dump(mode="json", exclude={"layout", "quantities", "unchecked"}, exclude_none=True)
    dropped = None if commanded is None or commanded < captured else commanded - captured
    return {
        "reader_kind": description.layout.value,
        "checksum_computer_kind": CHECKSUM_COMPUTER,
        "captured_at_source": captured_at_source,
        **told,
        **({} if dropped is None else {"dropped_frame_count": dropped}),
        **({"unchecked": [part.value for part in description.unchecked]} if description.unchecked else {}),
        **{name: quantity.model_dump() for name, quantity in description.quantities.items()},
    }


class ScanFacts(NamedTuple):
    """What the record of a scan is judged by: what it refers to, its origin, and the copies that were at its address."""

    parts: ScanParts
    origin: Origin
    overwritten: tuple[Distribution, ...]


@dataset.internal_command(creates=True, command_name="IngestScan", gated=True, refuses=[*CONTENT_REFUSALS])
class RecordScan(GivenScan, JudgedCreation[ScanFacts]):
    """Record a scan file that was read: a dataset, its first copy and its acquisition."""

    distribution_id: UUID
    acquisition_id: UUID
    description: ScanDescription
    digest: str
    byte_size: int

    def gather(self, call: Call) -> Reads[ScanFacts]:
        parts = yield from self.parts()
        subject_id = None if parts.run is None else parts.run.subject_id
        kind = yield from actuation_kind_now(parts.run)
        origin = Origin(parts.run, None, subject_id, {}, kind, (yield from first_with_bytes(self.digest)))
        return ScanFacts(parts, origin, (yield from other_bytes_at(self.locator.strip(), self.digest)))

    def decide(self, call: Call, facts: ScanFacts) -> Outcome:
        captured_at, source = time_of_capture(self, self.description)
        refuse_duplicate(facts.origin, allowed=self.allow_duplicate)
        id, (capture, supply, _), content = call.new_id, facts.parts, self._content()
        registered = registration(checked_name(file_name(self.locator)), content, facts.origin, (), call)
        protocol = distribution.checked_protocol(self.access_protocol)
        copied = distribution.registration(id, supply.id, content, protocol, facts.overwritten, call)
        evidence = evidence_of(self.description, source)
        captured = acquisition.acquisition_record(id, capture, captured_at, {}, evidence, call)
        return [
            *registered,
            Also(Distribution, self.distribution_id, copied),
            Also(Acquisition, self.acquisition_id, captured),
            *marked_overwritten(facts.overwritten, self.distribution_id, call),
        ]

    def _content(self) -> Content:
        checksum = GivenChecksum(algorithm=ChecksumAlgorithm.SHA256, value=self.digest)
        encoding = GivenEncoding(media_type=MEDIA_TYPE, conforms_to=frozenset({PROFILES[self.description.layout]}))
        return Content.from_given(self.locator, checksum, self.byte_size, encoding, CONTENT_REFUSALS)


def checked_name(name: str) -> str:
    """Return a file's name as the name of a dataset, or refuse it."""
    if len(name) > MAX_NAME or unnameable_character(name):
        detail = f"The file's name is longer than {MAX_NAME} characters or holds one that no name has; rename the file."
        raise InvalidDatasetNameError(detail, reason="file_name")
    return name


InvalidDatasetNameError = dataset.invalid("name")


@dataset.command(
    post="",
    path="/scans/ingest",
    status=201,
    returns=ScanIngested,
    work=OpenedWork(SCAN_INGEST),
    accepted=ScanIngestAccepted,
    refuses=[RecordScan, ScanReaderMissingError],
)
class IngestScan(GivenScan, JudgedCreation[ScanParts]):
    """Read a finished scan file in Data Exchange or NXtomo layout, and record its dataset, copy and acquisition at once."""

    wait: Wait = 30

    def gather(self, call: Call) -> Reads[ScanParts]:
        return (yield from self.parts())

    def decide(self, call: Call, parts: ScanParts) -> Outcome:
        file_name(self.locator)
        ids = {name: call.id_for(name) for name in ScanRecords.model_fields}
        request = self.model_dump(mode="json", exclude={"wait"})
        return [*begin_task(SCAN_INGEST, call.new_id, request, ids, call)]
