"""A calibration: measured constants of one target at one operating point. Values are revisions that are only ever added:
a wrong one is superseded by another, and what was pinned stays as it was."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.calibration.quantities import QUANTITIES, CalibrationQuantity
from baton.domain.decision.decision import Decision
from baton.domain.kernel import (
    Aggregate,
    Call,
    Creation,
    Event,
    JudgedVerb,
    Outcome,
    State,
    Value,
    copy_with,
    instant,
    omittable,
)
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.listing import ListQuery, Summary, Where
from baton.domain.shared.reads import Reads, find_all, members_by_key, require_if_given
from baton.domain.shared.refusals import Conflict, Invalid, NotFound
from baton.domain.shared.text import FreeText, Remark, Text
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Answer, Claim, Enlist

REVISIONS = "calibration-revision"  # Look-up kind: the calibration that a revision belongs to.
IDENTITY = "calibration-identity"  # Claim kind: the calibration of one target, quantity and operating point.


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
SOURCE_IDS = {SourceKind.MEASURED: "procedure_id", SourceKind.COMPUTED: "dataset_id", SourceKind.ASSERTED: "asserted_by"}


@dataclass(frozen=True, kw_only=True)
class Publication:
    """One time a revision was sent to a peer."""

    peer_facility_id: UUID
    outbound_permit_id: UUID
    """The permit under which it was sent."""
    receipt_id: UUID
    published_at: datetime
    published_by: UUID


@dataclass(frozen=True, kw_only=True)
class Revision:
    """One value of a calibration, where it comes from and where it was sent."""

    revision_id: UUID
    value: dict[str, Any]
    """The value, by name, in the units that the quantity declares."""
    status: CalibrationStatus
    """Whether the value is provisional or verified."""
    source: Source
    """Where the value comes from."""
    established_at: datetime
    established_by: UUID
    decided_by_decision_id: UUID | None
    supersedes_revision_id: UUID | None
    valid_until: datetime | None = None
    """When the value lapses; null where no end is known."""
    superseded_by_revision_id: UUID | None = None  # The latest revision that names this one.
    content_hash: str
    publications: tuple[Publication, ...] = ()
    """The times it was sent to peers."""

    def is_valid(self, at: datetime) -> bool:
        """Return whether it has not lapsed at this moment."""
        return self.valid_until is None or self.valid_until > at


@dataclass(frozen=True, kw_only=True)
class Calibration(State):
    """A calibration keeps measured constants of one target at one operating point, as revisions that are only added."""

    target_id: UUID
    quantity: CalibrationQuantity
    operating_point: dict[str, Any]
    description: FreeText | None
    revisions: tuple[Revision, ...] = ()
    """The values of the calibration, oldest first."""
    defined_at: datetime
    defined_by: UUID
    last_revised_at: datetime | None = None
    """When the newest revision was added."""

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

    @property
    def latest_revision_valid_until(self) -> datetime | None:
        return self.latest_revision.valid_until if self.latest_revision else None


calibration = Aggregate(Calibration, "/calibrations", context="calibration")


class CalibrationDefined(Event, of=calibration):
    """It was said what is calibrated."""

    target_id: UUID
    quantity: CalibrationQuantity
    operating_point: dict[str, Any]
    description: FreeText | None
    defined_by: UUID


class CalibrationRevisionAppended(Event, of=calibration, version=2, upcasters={1: dict}):
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
    valid_until: datetime | None = None


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


@calibration.evolve
def evolve(calibration: Calibration, event: CalibrationRevisionAppended | CalibrationRevisionPublished) -> Calibration:
    match event:
        case CalibrationRevisionAppended():
            superseding = {"superseded_by_revision_id": event.revision_id}
            earlier = with_changed_revision(calibration, event.supersedes_revision_id, **superseding)
            return copy_with(
                calibration, revisions=(*earlier, Revision(**dict(event))), last_revised_at=event.established_at
            )
        case CalibrationRevisionPublished():
            sent = required_revision(calibration, event.revision_id).publications
            publication = Publication(**{field.name: getattr(event, field.name) for field in fields(Publication)})
            revisions = with_changed_revision(calibration, event.revision_id, publications=(*sent, publication))
            return copy_with(calibration, revisions=revisions)
        case _:
            assert_never(event)


def with_changed_revision(calibration: Calibration, revision_id: UUID | None, **values: object) -> tuple[Revision, ...]:
    """Return the revisions of a calibration, one of them with these values."""
    return tuple(copy_with(one, **values) if one.revision_id == revision_id else one for one in calibration.revisions)


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


class InvalidCalibrationValidityError(Invalid, context="calibration", reason="past"):
    """A value lapses after it was established, if at all."""


class CalibrationIdentityAlreadyExistsError(Conflict, context="calibration"):
    """The target has a calibration of this quantity at this operating point already."""


class CalibrationRevisionNotFoundError(NotFound, context="calibration"):
    """The calibration has no revision with this id."""


def required_revision(calibration: Calibration, revision_id: UUID) -> Revision:
    """Return the revision with this id, or refuse with 404."""
    revision = calibration.revision(revision_id)
    if revision is None:
        detail = f"This calibration has no revision {revision_id}; read it for the ones it has."
        raise CalibrationRevisionNotFoundError(detail, facts={"missing_ids": [revision_id]})
    return revision


def require_revisions(ids: Collection[UUID]) -> Reads[dict[UUID, UUID]]:
    """Return the calibration of each of these revisions, or refuse with 404 and all that are missing."""
    found = yield from members_by_key(REVISIONS, *sorted(ids))
    if missing := sorted(id for id in ids if str(id) not in found):
        detail = f"There is no calibration revision {missing[0]}; read the calibration for the ones it has."
        raise CalibrationRevisionNotFoundError(detail, facts={"missing_ids": missing})
    return {UUID(key): calibrations[0] for key, calibrations in found.items()}


def load_revisions(ids: Collection[UUID]) -> Reads[tuple[tuple[Calibration, Revision], ...]]:
    """Return these revisions by id, each with its calibration, or refuse with 404 and all that are missing."""
    homes = yield from require_revisions(ids)
    calibrations = yield from find_all(Calibration, sorted(set(homes.values())))
    found = ((calibrations[homes[id]], id) for id in sorted(homes))
    return tuple((one, required_revision(one, id)) for one, id in found)


@calibration.creation()
class DefineCalibration(Creation):
    """Say what is calibrated: a quantity of one target at one operating point; its values follow as revisions."""

    target_id: UUID
    """What is calibrated: an asset or another record."""
    quantity: Annotated[
        str,
        Text(100, InvalidCalibrationQuantityError, "quantity"),
        Field(description="What is calibrated; every quantity is among the examples.", examples=list(CalibrationQuantity)),
    ]
    operating_point: dict[str, Any]
    description: Annotated[str | None, Remark(2000, personal=True)] = None

    def decide(self, call: Call) -> Outcome:
        try:
            quantity = CalibrationQuantity(self.quantity)
        except ValueError:
            detail = f"There is no quantity {self.quantity!r}; choose one of {', '.join(CalibrationQuantity)}."
            known = {"quantities": list(CalibrationQuantity)}
            raise InvalidCalibrationQuantityError(detail, reason="unknown_quantity", facts=known) from None
        QUANTITIES[quantity].operating_point.check(self.operating_point, InvalidOperatingPointError)
        detail = f"The {quantity} of this target at this operating point is calibrated already; append a revision there."
        facts = {"target_id": self.target_id, "quantity": quantity}
        taken = CalibrationIdentityAlreadyExistsError(detail, reason="identity_taken", facts=facts)
        return [
            CalibrationDefined(**{**dict(self), "quantity": quantity}, defined_by=call.principal_id),
            Claim(IDENTITY, identity_key(self.target_id, quantity, self.operating_point), rival=taken),
        ]


def identity_key(target_id: UUID, quantity: CalibrationQuantity, operating_point: Mapping[str, object]) -> str:
    """Return the key under which two calibrations count as the same; 25 keV is 25.0 keV, in any order of keys."""
    return f"{target_id}/{quantity}/{content_hash(operating_point)}"


class GivenSource(Value):
    """Where a value comes from: its kind, and the one id that this kind asks for."""

    kind: SourceKind
    """Whether the value was measured, computed or asserted; each asks for one id."""
    procedure_id: UUID = omittable()
    dataset_id: UUID = omittable()
    asserted_by: UUID = omittable()

    def id_given(self) -> UUID:
        """Return the id that this kind of source names, or refuse unless exactly that one is given."""
        wanted = SOURCE_IDS[self.kind]
        if (given := sorted(self.model_fields_set - {"kind"})) != [wanted]:
            detail = f"A {self.kind} source names {wanted} and nothing else; correct it."
            raise InvalidCalibrationSourceError(detail, reason="wrong_arm", facts={"given": given, "required": wanted})
        id: UUID = getattr(self, wanted)
        return id


class AppendedRevision(Value):
    """The revision that was added."""

    revision_id: UUID


@calibration.command(
    post="/{calibration_id}/revisions", status=201, returns=AppendedRevision, refuses=[InvalidCalibrationSourceError]
)
class AppendCalibrationRevision(JudgedVerb[Calibration, Decision | None]):
    """Add a value; from now on it is the latest, and what pinned an earlier one keeps it."""

    value: dict[str, Any]
    """The value, by name, in the units that the quantity declares."""
    status: CalibrationStatus
    """Whether the value is provisional or verified."""
    source: GivenSource
    decided_by_decision_id: UUID | None = None
    supersedes_revision_id: UUID | None = None
    valid_until: Instant | None = None
    """When the value lapses; leave it out where no end is known."""

    def gather(self, calibration: Calibration, call: Call) -> Reads[Decision | None]:
        return (yield from require_if_given(Decision, self.decided_by_decision_id))

    def decide(self, calibration: Calibration, call: Call, cited: Decision | None) -> Outcome:
        QUANTITIES[calibration.quantity].value.check(self.value, InvalidCalibrationValueError)
        source_id = self.source.id_given()
        if self.supersedes_revision_id is not None and calibration.revision(self.supersedes_revision_id) is None:
            detail = "This calibration has no such revision to supersede; name one of its own, or none."
            facts = {"supersedes_revision_id": self.supersedes_revision_id}
            raise InvalidSupersedesRevisionError(detail, reason="not_of_this_calibration", facts=facts)
        if self.valid_until is not None and self.valid_until <= call.now:
            detail = "The value would have lapsed already; give a later valid_until, or leave it out."
            raise InvalidCalibrationValidityError(detail, facts={"valid_until": instant(self.valid_until)})
        hashed = {
            "value": self.value,
            "status": self.status,
            "source_kind": self.source.kind,
            "source_id": source_id,
            "decided_by_decision_id": self.decided_by_decision_id,
            "supersedes_revision_id": self.supersedes_revision_id,
        }
        appended = CalibrationRevisionAppended(
            **{**dict(self), "source": self.source.model_dump(exclude_unset=True)},
            revision_id=call.new_id,
            established_at=call.now,
            established_by=call.principal_id,
            content_hash=content_hash(hashed),
        )
        return [appended, Enlist(REVISIONS, str(call.new_id)), Answer({"revision_id": str(call.new_id)})]


GetCalibration = calibration.get(hidden=["created_at"])


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
    """Number of revisions."""
    latest_revision_id: UUID | None
    """The newest revision."""
    latest_revision_status: CalibrationStatus | None
    latest_revision_source_kind: SourceKind | None
    latest_revision_content_hash: str | None
    """The SHA-256 of the newest revision."""
    latest_revision_valid_until: datetime | None
    """When the newest revision lapses; null where no end is known."""


@calibration.listing(CalibrationSummary)
class ListCalibrations(ListQuery[CalibrationSummary]):
    """Calibrations in order of definition, with what is latest of each."""

    target_id: UUID | None = None
    """Only calibrations of this record."""
    quantity: CalibrationQuantity | None = None
    latest_revision_status: tuple[CalibrationStatus, ...] = ()
    latest_revision_source_kind: tuple[SourceKind, ...] = ()
    due_by: Instant | None = None
    """Only those whose newest revision is valid until then at most."""

    def where(self) -> Iterator[Where]:
        yield from super().where()
        if self.due_by is not None:
            yield Where("latest_revision_valid_until", "to", self.due_by)
