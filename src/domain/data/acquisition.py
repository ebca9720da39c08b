"""An acquisition: the birth of a dataset, which asset captured it, when, and under which run. It is recorded once; a wrong
one is corrected by recording another."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar, NamedTuple
from uuid import UUID

from pydantic import Field, ValidationError

from baton.domain.data.dataset import Dataset
from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_tree import affordances_of
from baton.domain.kernel import Aggregate, Call, Event, JudgedCreation, Outcome, State, Value
from baton.domain.run.run import Run
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.reads import Reads, require, require_if_given
from baton.domain.shared.refusals import Conflict, Invalid, NotFound, Refusal
from baton.domain.shared.text import TextsMayContainPersonalData, writable
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Enlist

FRAMES = "frames"  # The key under which evidence tells the layout of the frames.
ACQUISITIONS = "dataset-acquisitions"  # Look-up kind: the acquisitions of a dataset.
CLOCK_LEAD = timedelta(seconds=60)  # How far an instrument's clock may be ahead of the service's.
MAX_DEPTH = 32


class AcquisitionStatus(StrEnum):
    RECORDED = "Recorded"


Particulars = Annotated[dict[str, Any], TextsMayContainPersonalData()]


class FrameLayout(Value):
    """Where the frames of a file are and what they are like, as the evidence of an acquisition tells under `frames`."""

    path: Annotated[str, Field(min_length=1, max_length=500)]
    """The path of the array inside the file."""
    count: Annotated[int, Field(ge=0, le=2**53)]
    """Number of frames in the array."""
    shape: Annotated[tuple[Annotated[int, Field(ge=1, le=2**31)], ...], Field(max_length=8)]
    """The lengths of the axes of one frame."""
    dtype: Annotated[str, Field(pattern=r"^[|<>][biufc][0-9]{1,2}$")]
    """The type of its numbers, as numpy writes it."""


def frame_layout(evidence: Mapping[str, object]) -> FrameLayout | None:
    """Return the layout of frames that the evidence of an acquisition tells, or None."""
    try:
        return FrameLayout.model_validate(evidence.get(FRAMES))
    except ValidationError:
        return None


@dataclass(frozen=True, kw_only=True)
class Acquisition(State):
    """An acquisition is the birth of a dataset: which asset captured it, when, and under which run."""

    dataset_id: UUID
    producing_asset_id: UUID
    producing_run_id: UUID | None
    captured_at: datetime  # By the instrument's clock.
    settings: Particulars
    evidence: Particulars
    """What shows that it was so, by key."""
    recorded_at: datetime
    recorded_by: UUID
    status: AcquisitionStatus = AcquisitionStatus.RECORDED


acquisition = Aggregate(Acquisition, "/acquisitions", context="data")


class AcquisitionRecorded(Event, of=acquisition):
    """It was recorded what captured a dataset, and when."""

    dataset_id: UUID
    producing_asset_id: UUID
    producing_run_id: UUID | None
    captured_at: datetime
    settings: Particulars
    evidence: Particulars
    recorded_by: UUID


class InvalidAcquisitionCapturedAtError(Invalid, context="data"):
    """Nothing was captured more than a minute from now."""


class InvalidAcquisitionSettingsError(Invalid, context="data"):
    """Settings are an object of plain values, at most 32 levels deep."""


class InvalidAcquisitionEvidenceError(Invalid, context="data"):
    """Evidence is an object of plain values, at most 32 levels deep."""


class AcquisitionAssetNotFoundError(NotFound, context="data"):
    """The asset that is said to have captured this does not exist."""


class AcquisitionRunNotFoundError(NotFound, context="data"):
    """The run that this is said to have been captured under does not exist."""


class AcquisitionCannotRecordWithoutCapturingError(Conflict, context="data"):
    """Only an asset of a family with the affordance Capturing captures data."""


class Capture(NamedTuple):
    """What a capture is said to involve: the asset with what it can do, and the run."""

    asset: Asset
    affordances: frozenset[Affordance]
    run_id: UUID | None


@acquisition.creation()
class RecordAcquisition(JudgedCreation[Capture]):
    """Record which asset captured a dataset, and when; nothing stands against several such records."""

    dataset_id: UUID
    producing_asset_id: UUID
    captured_at: Instant
    producing_run_id: UUID | None = None
    settings: Particulars = {}
    """The settings of the asset at that time, by name."""
    evidence: Particulars = {}
    """What shows that it was so, by key."""

    def gather(self, call: Call) -> Reads[Capture]:
        yield from require(Dataset, self.dataset_id)
        asset = yield from require(Asset, self.producing_asset_id, AcquisitionAssetNotFoundError)
        yield from require_if_given(Run, self.producing_run_id, AcquisitionRunNotFoundError)
        return (yield from capture_by(asset, self.producing_run_id))

    def decide(self, call: Call, capture: Capture) -> Outcome:
        return acquisition_record(self.dataset_id, capture, self.captured_at, self.settings, self.evidence, call)


def capture_by(asset: Asset, run_id: UUID | None) -> Reads[Capture]:
    """Return what a capture by this asset involves."""
    return Capture(asset, (yield from affordances_of([asset]))[asset.id], run_id)


def acquisition_record(
    dataset_id: UUID,
    capture: Capture,
    captured_at: datetime,
    settings: Mapping[str, object],
    evidence: Mapping[str, object],
    call: Call,
) -> Outcome:
    """Return what records an acquisition, or refuse values or an asset that cannot be right."""
    if captured_at > call.now + CLOCK_LEAD:
        detail = "It is said to be captured in the future; correct the time, or the instrument's clock."
        raise InvalidAcquisitionCapturedAtError(detail, reason="in_the_future")
    _check_particulars(settings, InvalidAcquisitionSettingsError)
    _check_particulars(evidence, InvalidAcquisitionEvidenceError)
    refuse_other_asset(capture)
    recorded = AcquisitionRecorded(
        dataset_id=dataset_id,
        producing_asset_id=capture.asset.id,
        producing_run_id=capture.run_id,
        captured_at=captured_at,
        settings=dict(settings),
        evidence=dict(evidence),
        recorded_by=call.principal_id,
    )
    return [recorded, Enlist(ACQUISITIONS, str(dataset_id))]


def refuse_other_asset(capture: Capture) -> None:
    """Refuse an asset that captures nothing; its lifecycle is not looked at."""
    if Affordance.CAPTURING not in capture.affordances:
        detail = "No family of this asset has the affordance Capturing; name the asset that captured the data."
        raise AcquisitionCannotRecordWithoutCapturingError(detail, reason="not_capturing")


def _check_particulars(given: Mapping[str, object], refusal: type[Refusal]) -> None:
    if _depth(given) > MAX_DEPTH:
        raise refusal(f"It is nested more than {MAX_DEPTH} levels deep; flatten it.", reason="too_deep")
    if not writable(given):
        raise refusal("It holds a character that cannot be stored; leave control characters out.", reason="unwritable")


def _depth(value: object) -> int:
    """Return how many levels of objects and lists a value has."""
    level, found = [value], 0
    while level := [part for part in level if isinstance(part, dict | list)]:
        found += 1
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
    return found


GetAcquisition = acquisition.get(hidden=["created_at"])


class AcquisitionSummary(Summary):
    time: ClassVar[str] = "recorded_at"
    acquisition_id: UUID
    dataset_id: UUID
    producing_asset_id: UUID
    producing_run_id: UUID | None
    captured_at: datetime
    settings: Particulars
    evidence: Particulars
    recorded_at: datetime
    recorded_by: UUID
    status: AcquisitionStatus


@acquisition.listing(AcquisitionSummary)
class ListAcquisitions(ListQuery[AcquisitionSummary]):
    """Acquisitions in order of their recording."""

    dataset_id: UUID | None = None
    producing_asset_id: UUID | None = None
    producing_run_id: UUID | None = None
