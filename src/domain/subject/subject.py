"""A subject: the sample, specimen or part being measured, where it sits now and how it left the facility. It may serve many
runs, and keeps no list of them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, assert_never
from uuid import UUID

from baton.domain.equipment.asset import Asset, AssetLifecycle
from baton.domain.kernel import Aggregate, Call, Creation, Event, JudgedVerb, Outcome, State, Verb, copy_with
from baton.domain.shared.identifiers import checked_external_id
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, require
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.text import FreeText, Text


class SubjectStatus(StrEnum):
    RECEIVED = "Received"
    MOUNTED = "Mounted"
    MEASURED = "Measured"
    REMOVED = "Removed"
    RETURNED = "Returned"
    STORED = "Stored"
    DISCARDED = "Discarded"


RECEIVED, MOUNTED, MEASURED, REMOVED, RETURNED, STORED, DISCARDED = SubjectStatus
IN_PLACE = (MOUNTED, MEASURED)  # Where a subject sits on an asset, as a run that names it needs.


@dataclass(frozen=True, kw_only=True)
class Subject(State):
    """A subject is the sample, specimen or part being measured."""

    name: FreeText
    status: SubjectStatus = RECEIVED
    mounted_on_asset_id: UUID | None = None
    external_id: str | None = None
    external_id_scheme: str | None = None


subject = Aggregate(Subject, "/subjects", context="subject")


class SubjectRegistered(Event, of=subject):
    """The subject was taken in."""

    name: FreeText
    registered_by: UUID


class SubjectMounted(Event, of=subject):
    """The subject was put on an asset."""

    asset_id: UUID
    reason: FreeText
    mounted_by: UUID


class SubjectMeasured(Event, of=subject, leads_to=MEASURED):
    """The subject was measured since it was mounted."""

    measured_by: UUID


class SubjectDismounted(Event, of=subject):
    """The subject was taken off its asset, and may be mounted again."""

    from_asset_id: UUID
    reason: FreeText
    dismounted_by: UUID


class SubjectRemoved(Event, of=subject):
    """The subject was taken out of use for good."""

    removed_by: UUID


class SubjectReturned(Event, of=subject, leads_to=RETURNED):
    """The subject went back to its owner."""

    returned_by: UUID


class SubjectStored(Event, of=subject, leads_to=STORED):
    """The subject was put in store at the facility."""

    stored_by: UUID


class SubjectDiscarded(Event, of=subject, leads_to=DISCARDED):
    """The subject was disposed of."""

    reason: FreeText
    discarded_by: UUID


class SubjectExternalIdAssigned(Event, of=subject):
    """The subject got the identifier that a registry gave it, which it keeps for good."""

    external_id: str
    external_id_scheme: str
    assigned_by: UUID


SubjectEvent = SubjectMounted | SubjectDismounted | SubjectRemoved | SubjectExternalIdAssigned


@subject.evolve
def evolve(subject: Subject, event: SubjectEvent) -> Subject:
    match event:
        case SubjectMounted():
            return copy_with(subject, status=MOUNTED, mounted_on_asset_id=event.asset_id)
        case SubjectDismounted():
            return copy_with(subject, status=RECEIVED, mounted_on_asset_id=None)
        case SubjectRemoved():
            return copy_with(subject, status=REMOVED, mounted_on_asset_id=None)
        case SubjectExternalIdAssigned():
            return copy_with(subject, external_id=event.external_id, external_id_scheme=event.external_id_scheme)
        case _:
            assert_never(event)


class InvalidSubjectExternalIdError(Invalid, context="subject"):
    """An external identifier needs a value and a scheme that are not blank, the value without the scheme before it."""


class SubjectMountTargetUnavailableError(Conflict, context="subject"):
    """A subject is mounted on an Active asset only."""


@subject.creation(refuses=[subject.AlreadyExists])
class RegisterSubject(Creation):
    """Take in something that is to be measured."""

    name: Annotated[str, subject.text("name", 200, personal=True)]
    """What people call the sample."""

    def decide(self, call: Call) -> Outcome:
        return [SubjectRegistered(name=self.name, registered_by=call.principal_id)]


@subject.command(post="/{subject_id}/mount", allowed=[RECEIVED], leads_to=MOUNTED)
class MountSubject(JudgedVerb[Subject, Asset]):
    """Put a subject on an Active asset, which may hold several at once; the asset's condition is not looked at."""

    asset_id: UUID
    reason: Annotated[str, subject.text("mount_reason", 500, label="reason", personal=True)]

    def gather(self, subject: Subject, call: Call) -> Reads[Asset]:
        return (yield from require(Asset, self.asset_id))

    def decide(self, subject: Subject, call: Call, asset: Asset) -> Outcome:
        if asset.lifecycle is not AssetLifecycle.ACTIVE:
            detail = f"The asset is {asset.lifecycle.value}; mount the subject on an Active one."
            facts = {"asset_id": str(asset.id), "lifecycle": asset.lifecycle.value}
            raise SubjectMountTargetUnavailableError(detail, reason="asset_not_active", facts=facts)
        return [SubjectMounted(asset_id=asset.id, reason=self.reason, mounted_by=call.principal_id)]


@subject.command(post="/{subject_id}/measure", allowed=[MOUNTED], records=SubjectMeasured)
class MeasureSubject(Verb[Subject]):
    """Record that a subject was measured since it was mounted; nothing else records it."""


@subject.command(post="/{subject_id}/dismount", allowed=IN_PLACE, leads_to=RECEIVED)
class DismountSubject(Verb[Subject]):
    """Take a subject off its asset; it may be mounted again, there or elsewhere."""

    reason: Annotated[str, subject.text("dismount_reason", 500, label="reason", personal=True)]

    def decide(self, subject: Subject, call: Call) -> Outcome:
        asset_id = subject.mounted_on_asset_id
        assert asset_id is not None, "a subject in place sits on an asset"
        return [SubjectDismounted(from_asset_id=asset_id, reason=self.reason, dismounted_by=call.principal_id)]


@subject.command(post="/{subject_id}/remove", allowed=[RECEIVED, *IN_PLACE], records=SubjectRemoved, destructive=True)
class RemoveSubject(Verb[Subject]):
    """Take a subject out of use for good, mounted or not; only its return, storage or discarding follows."""


@subject.command(post="/{subject_id}/return", allowed=[REMOVED], records=SubjectReturned)
class ReturnSubject(Verb[Subject]):
    """Record that the subject went back to its owner."""


@subject.command(post="/{subject_id}/store", allowed=[REMOVED], records=SubjectStored)
class StoreSubject(Verb[Subject]):
    """Record that the subject stays at the facility, in store."""


@subject.command(post="/{subject_id}/discard", allowed=[REMOVED], records=SubjectDiscarded, destructive=True)
class DiscardSubject(Verb[Subject]):
    """Record that the subject was disposed of."""

    reason: Annotated[str, subject.text("discard_reason", 500, label="reason", personal=True)]


@subject.command(post="/{subject_id}/assign-external-id")
class AssignSubjectExternalId(Verb[Subject]):
    """Keep the identifier a registry gave the subject, once and for all, in whatever status it is."""

    external_id: Annotated[str, Text(200, InvalidSubjectExternalIdError, "external identifier")]
    external_id_scheme: Annotated[str, Text(50, InvalidSubjectExternalIdError, "scheme")] = "IGSN"

    def require(self, subject: Subject) -> None:
        if subject.external_id is not None:
            detail = "The subject has an external identifier already; it keeps that one."
            kept = {"external_id": subject.external_id, "external_id_scheme": subject.external_id_scheme}
            raise self.cannot("already_assigned", detail, **kept)

    def decide(self, subject: Subject, call: Call) -> Outcome:
        kept = checked_external_id(self.external_id, self.external_id_scheme, InvalidSubjectExternalIdError)
        return [SubjectExternalIdAssigned(**kept, assigned_by=call.principal_id)]


GetSubject = subject.get(hidden=["created_at"])


class SubjectSummary(Summary):
    subject_id: UUID
    name: FreeText
    status: SubjectStatus
    mounted_on_asset_id: UUID | None
    external_id: str | None
    external_id_scheme: str | None
    created_at: datetime


@subject.listing(SubjectSummary)
class ListSubjects(NamedListQuery[SubjectSummary]):
    """Subjects in order of registration; an asset's id lists what is mounted on it."""

    status: SubjectStatus | None = None
    mounted_on_asset_id: UUID | None = None
