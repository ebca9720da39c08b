"""A calibration: measured constants of one target at one operating point.

Values are revisions that are only ever added: a wrong one is superseded by another, and what was pinned stays as it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.calibration.quantities import CalibrationQuantity, check_operating_point, check_value
from baton.domain.kernel import Aggregate, Call, Creation, Event, Outcome, State, Value, Verb, changed, omitted
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.refusals import Conflict, Invalid, NotFound
from baton.domain.shared.text import FreeText, Remark, Text
from baton.domain.shared.writes import Answer, Claim

IDENTITY = "calibration-identity"
"""Claim kind: the calibration of one target, quantity and operating point."""


class CalibrationStatus(StrEnum):
    PROVISIONAL = "Provisional"
    VERIFIED = "Verified"


class SourceKind(StrEnum):
    MEASURED = "Measured"
    COMPUTED = "Computed"
    ASSERTED = "Asserted"


class MeasuredSource(Value):
    """A value that a procedure measured."""

    kind: Literal[SourceKind.MEASURED]
    procedure_id: UUID


class ComputedSource(Value):
    """A value that was computed from a dataset."""

    kind: Literal[SourceKind.COMPUTED]
    dataset_id: UUID


class AssertedSource(Value):
    """A value that somebody vouches for."""

    kind: Literal[SourceKind.ASSERTED]
    asserted_by: UUID


Source = Annotated[MeasuredSource | ComputedSource | AssertedSource, Field(discriminator="kind")]


@dataclass(frozen=True, kw_only=True)
class Publication:
    """One time a revision was sent to a peer."""

    peer_facility_id: UUID
    outbound_permit_id: UUID
    receipt_id: UUID
    published_at: datetime
    published_by: UUID


@dataclass(frozen=True, kw_only=True)
class Revision:
    """One value of a calibration, where it comes from and where it was sent."""

    revision_id: UUID
    value: dict[str, Any]
    status: CalibrationStatus
    source: Source
    established_at: datetime
    established_by: UUID
    decided_by_decision_id: UUID | None
    supersedes_revision_id: UUID | None
    superseded_by_revision_id: UUID | None = None
    """The latest revision that names this one."""
    content_hash: str
    publications: tuple[Publication, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Calibration(State):
    """A calibration keeps measured constants of one target at one operating point, as revisions that are only added."""

    target_id: UUID
    quantity: CalibrationQuantity
    operating_point: dict[str, Any]
    description: FreeText | None
    revisions: tuple[Revision, ...] = ()
    defined_at: datetime
    defined_by: UUID
    last_revised_at: datetime | None = None

    def revision(self, revision_id: UUID) -> Revision | None:
        return next((revision for revision in self.revisions if revision.revision_id == revision_id), None)

    @property
    def revision_count(self) -> int:
        return len(self.revisions)

    @property
    def latest_revision(self) -> Revision | None:
        return self.revisions[-1] if self.revisions else None

    @property
    def latest_revision_id(self) -> UUID | None:
        return self.latest_revision.revision_id if self.latest_revision else None

    @property
    def latest_revision_status(self) -> CalibrationStatus | None:
        return self.latest_revision.status if self.latest_revision else None

    @property
    def latest_revision_source_kind(self) -> SourceKind | None:
        return self.latest_revision.source.kind if self.latest_revision else None

    @property
    def latest_revision_content_hash(self) -> str | None:
        return self.latest_revision.content_hash if self.latest_revision else None


calibration = Aggregate(Calibration, "/calibrations", context="calibration")


class CalibrationDefined(Event, of=calibration):
    """It was said what is calibrated."""

    target_id: UUID
    quantity: CalibrationQuantity
    operating_point: dict[str, Any]
    description: FreeText | None
    defined_by: UUID


class CalibrationRevisionAppended(Event, of=calibration):
    """A value was added, and is the latest from then on."""

    revision_id: UUID
    value: dict[str, Any]
    status: CalibrationStatus
    source: Source
    established_at: datetime
    established_by: UUID
    decided_by_decision_id: UUID | None
    supersedes_revision_id: UUID | None
    content_hash: str


class CalibrationRevisionPublished(Event, of=calibration):
    """A revision was signed and sent to a peer."""

    revision_id: UUID
    peer_facility_id: UUID
    outbound_permit_id: UUID
    receipt_id: UUID
    signature_envelope_kind: str
    signing_version: int
    signature_bytes_hex: str
    signature_kid: str
    published_at: datetime
    published_by: UUID


CalibrationEvent = CalibrationRevisionAppended | CalibrationRevisionPublished


@calibration.begin
def begin(event: CalibrationDefined) -> Calibration:
    return Calibration(id=event.stream_id, created_at=event.occurred_at, defined_at=event.occurred_at, **dict(event))


@calibration.evolve
def evolve(calibration: Calibration, event: CalibrationEvent) -> Calibration:
    match event:
        case CalibrationRevisionAppended():
            earlier = tuple(
                changed(revision, superseded_by_revision_id=event.revision_id)
                if revision.revision_id == event.supersedes_revision_id
                else revision
                for revision in calibration.revisions
            )
            return changed(calibration, revisions=(*earlier, Revision(**dict(event))), last_revised_at=event.established_at)
        case CalibrationRevisionPublished():
            publication = Publication(
                peer_facility_id=event.peer_facility_id,
                outbound_permit_id=event.outbound_permit_id,
                receipt_id=event.receipt_id,
                published_at=event.published_at,
                published_by=event.published_by,
            )
            revisions = tuple(
                changed(revision, publications=(*revision.publications, publication))
                if revision.revision_id == event.revision_id
                else revision
                for revision in calibration.revisions
            )
            return changed(calibration, revisions=revisions)
        case _:
            assert_never(event)


class InvalidCalibrationQuantityError(Invalid, context="calibration"):
    """The quantity is not in the catalog of what can be calibrated."""


class InvalidOperatingPointError(Invalid, context="calibration"):
    """The operating point does not have the form its quantity asks for."""


class InvalidCalibrationValueError(Invalid, context="calibration"):
    """The value does not have the form its quantity asks for."""


class InvalidCalibrationSourceError(Invalid, context="calibration"):
    """A source names exactly what its kind asks for: a procedure, a dataset or the actor who asserts it."""


class InvalidSupersedesRevisionError(Invalid, context="calibration"):
    """A revision can supersede only an earlier one of the same calibration."""


class CalibrationIdentityAlreadyExistsError(Conflict, context="calibration"):
    """The target has a calibration of this quantity at this operating point already."""


class CalibrationRevisionNotFoundError(NotFound, context="calibration"):
    """The calibration has no revision with this id."""


def required_revision(calibration: Calibration, revision_id: UUID) -> Revision:
    """The revision with this id; refused with 404 where there is none."""
    revision = calibration.revision(revision_id)
    if revision is None:
        raise CalibrationRevisionNotFoundError(
            f"This calibration has no revision {revision_id}; read it for the ones it has.",
            facts={"missing_ids": [str(revision_id)]},
        )
    return revision


@calibration.creation()
class DefineCalibration(Creation):
    """Say what is calibrated: a quantity of one target at one operating point; its values follow as revisions."""

    target_id: UUID
    quantity: Annotated[
        str,
        Text(100, InvalidCalibrationQuantityError, "quantity"),
        Field(description=f"One of {', '.join(CalibrationQuantity)}."),
    ]
    operating_point: dict[str, Any]
    description: Annotated[str | None, Remark(2000, personal=True)] = None

    def decide(self, call: Call) -> Outcome:
        quantity = quantity_named(self.quantity)
        check_operating_point(quantity, self.operating_point, InvalidOperatingPointError)
        taken = CalibrationIdentityAlreadyExistsError(
            f"The {quantity} of this target at this operating point is calibrated already; append a revision there.",
            reason="identity_taken",
            facts={"target_id": str(self.target_id), "quantity": quantity},
        )
        return [
            CalibrationDefined(**{**dict(self), "quantity": quantity}, defined_by=call.principal_id),
            Claim(IDENTITY, identity_key(self.target_id, quantity, self.operating_point), rival=taken),
        ]


def quantity_named(name: str) -> CalibrationQuantity:
    """The quantity of this name."""
    try:
        return CalibrationQuantity(name)
    except ValueError:
        raise InvalidCalibrationQuantityError(
            f"There is no quantity {name!r}; choose one of {', '.join(CalibrationQuantity)}.",
            reason="unknown_quantity",
            facts={"quantities": list(CalibrationQuantity)},
        ) from None


def identity_key(target_id: UUID, quantity: CalibrationQuantity, operating_point: Mapping[str, Any]) -> str:
    """The form under which two calibrations count as the same; 25 keV is 25.0 keV, in whatever order keys are given."""
    return f"{target_id}/{quantity}/{content_hash(operating_point)}"


class GivenSource(Value):
    """Where a value comes from: its kind, and the one id that this kind asks for."""

    kind: SourceKind
    procedure_id: UUID = omitted()
    dataset_id: UUID = omitted()
    asserted_by: UUID = omitted()

    def read(self) -> MeasuredSource | ComputedSource | AssertedSource:
        """The source that is meant; refused unless exactly its own id is given."""
        wanted = ID_OF_SOURCE[self.kind]
        if (given := sorted(self.model_fields_set - {"kind"})) != [wanted]:
            raise InvalidCalibrationSourceError(
                f"A {self.kind} source names {wanted} and nothing else; correct it.",
                reason="wrong_arm",
                facts={"given": given, "required": wanted},
            )
        match self.kind:
            case SourceKind.MEASURED:
                return MeasuredSource(kind=self.kind, procedure_id=self.procedure_id)
            case SourceKind.COMPUTED:
                return ComputedSource(kind=self.kind, dataset_id=self.dataset_id)
            case SourceKind.ASSERTED:
                return AssertedSource(kind=self.kind, asserted_by=self.asserted_by)


ID_OF_SOURCE = {SourceKind.MEASURED: "procedure_id", SourceKind.COMPUTED: "dataset_id", SourceKind.ASSERTED: "asserted_by"}


class AppendedRevision(Value):
    """The revision that was added."""

    revision_id: UUID


@calibration.command(
    post="/{calibration_id}/revisions", status=201, returns=AppendedRevision, refuses=[InvalidCalibrationSourceError]
)
class AppendCalibrationRevision(Verb[Calibration]):
    """Add a value; from now on it is the latest, and what pinned an earlier one keeps it."""

    value: dict[str, Any]
    status: CalibrationStatus
    source: GivenSource
    decided_by_decision_id: UUID | None = None
    supersedes_revision_id: UUID | None = None

    def decide(self, calibration: Calibration, call: Call) -> Outcome:
        check_value(calibration.quantity, self.value, InvalidCalibrationValueError)
        source = self.source.read()
        if self.supersedes_revision_id is not None and calibration.revision(self.supersedes_revision_id) is None:
            raise InvalidSupersedesRevisionError(
                "This calibration has no such revision to supersede; name one of its own, or none.",
                reason="not_of_this_calibration",
                facts={"supersedes_revision_id": str(self.supersedes_revision_id)},
            )
        hashed = hashed_content(self.value, self.status, source, self.decided_by_decision_id, self.supersedes_revision_id)
        appended = CalibrationRevisionAppended(
            **{**dict(self), "source": source},
            revision_id=call.new_id,
            established_at=call.now,
            established_by=call.principal_id,
            content_hash=content_hash(hashed),
        )
        return [appended, Answer({"revision_id": str(call.new_id)})]


def hashed_content(
    value: Mapping[str, Any],
    status: CalibrationStatus,
    source: MeasuredSource | ComputedSource | AssertedSource,
    decided_by_decision_id: UUID | None,
    supersedes_revision_id: UUID | None,
) -> dict[str, Any]:
    """What the content hash of a revision is over."""
    return {
        "value": value,
        "status": status,
        "source_kind": source.kind,
        "source_id": getattr(source, ID_OF_SOURCE[source.kind]),
        "decided_by_decision_id": decided_by_decision_id,
        "supersedes_revision_id": supersedes_revision_id,
    }


calibration.get(
    "id",
    "target_id",
    "quantity",
    "operating_point",
    "description",
    "revisions",
    "defined_at",
    "defined_by",
    "last_revised_at",
)


class CalibrationSummary(Summary):
    time: ClassVar[str] = "defined_at"
    calibration_id: UUID
    target_id: UUID
    quantity: CalibrationQuantity
    operating_point: dict[str, Any]
    description: FreeText | None
    defined_at: datetime
    defined_by: UUID
    last_revised_at: datetime | None
    revision_count: int
    latest_revision_id: UUID | None
    latest_revision_status: CalibrationStatus | None
    latest_revision_source_kind: SourceKind | None
    latest_revision_content_hash: str | None


@calibration.listing(CalibrationSummary)
class ListCalibrations(ListQuery):
    """Calibrations in order of definition, with what is latest of each."""

    target_id: UUID | None = None
    quantity: CalibrationQuantity | None = None
    latest_revision_status: tuple[CalibrationStatus, ...] = ()
    latest_revision_source_kind: tuple[SourceKind, ...] = ()
