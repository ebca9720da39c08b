"""An edition: a citable package over a frozen set of Production datasets. It is sealed with a manifest, published with a DOI
and, if need be, withdrawn; the DOI stays, and leads to the notice of the withdrawal."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, ClassVar, NamedTuple, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import Actor
from baton.domain.data.citation import EditionContents, Origins, cited_copies, origins_of, publisher_name
from baton.domain.data.dataset import Dataset, DatasetIntent, DatasetStatus
from baton.domain.data.distribution import Distribution
from baton.domain.data.manifest import SERIALIZERS, EditionKind, EditionManifest, EditionSerializerError, manifest_text
from baton.domain.kernel import (
    Aggregate,
    Call,
    Document,
    Event,
    IdSet,
    JudgedCreation,
    JudgedVerb,
    Outcome,
    Query,
    State,
    Value,
    copy_with,
)
from baton.domain.registry import OpenedWork
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.citation import LandingKind, landing_page, refuse_unminted
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.identifiers import ExternalIdScheme, FacilityCode, check_facility_code
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, ask, find_all, record_of, require, require_all
from baton.domain.shared.refusals import Conflict, Invalid, NotFound, Refusal
from baton.domain.shared.tasks import Task, Wait, begin_or_join_task
from baton.domain.shared.text import FreeText, Text
from baton.domain.shared.writes import Put

PUBLICATION, WITHDRAWAL = "edition-publication", "edition-withdrawal"  # Kinds of task.
MAX_MEMBERS = 1000
MAX_CREATORS = 100
FIRST_YEAR, YEARS_AHEAD = 1900, 5
SPDX_ID = re.compile(r"[A-Za-z0-9.+-]+")
LICENSED = (EditionKind.DATACITE, EditionKind.CROISSANT)  # The kinds whose manifest must name a license.


class EditionStatus(StrEnum):
    REGISTERED = "Registered"  # Its members may still change.
    SEALED = "Sealed"  # Its members and its manifest are fixed.
    PUBLISHED = "Published"  # It has its DOI.
    WITHDRAWN = "Withdrawn"  # Its DOI leads to the notice of the withdrawal.


REGISTERED, SEALED, PUBLISHED, WITHDRAWN = EditionStatus


@dataclass(frozen=True, kw_only=True)
class Edition(State):
    """An edition is a citable package over a frozen set of Production datasets."""

    kind: EditionKind
    title: FreeText
    dataset_ids: IdSet
    creator_ids: tuple[UUID, ...]  # In author order.
    publisher_facility_code: str | None
    publication_year: int | None
    license: str | None
    content_hash: str | None = None
    published_content_hash: str | None = None
    """The SHA-256 of the manifest as published, as 64 hex digits."""
    external_id: str | None = None
    external_id_scheme: str | None = None
    status: EditionStatus = REGISTERED
    registered_at: datetime
    registered_by: UUID
    sealed_at: datetime | None = None
    sealed_by: UUID | None = None
    published_at: datetime | None = None
    published_by: UUID | None = None
    withdrawn_at: datetime | None = None
    withdrawn_by: UUID | None = None
    withdrawal_reason: FreeText | None = None


edition = Aggregate(Edition, "/editions", context="data")


class EditionRegistered(Event, of=edition):
    """A package of datasets was begun."""

    kind: EditionKind
    title: FreeText
    dataset_ids: IdSet
    creator_ids: tuple[UUID, ...]
    publisher_facility_code: str | None
    publication_year: int | None
    license: str | None
    registered_by: UUID


class EditionDatasetAdded(Event, of=edition):
    """A dataset became a member."""

    dataset_id: UUID
    added_by: UUID


class EditionDatasetRemoved(Event, of=edition):
    """A dataset is no member any more."""

    dataset_id: UUID
    removed_by: UUID


class EditionSealed(Event, of=edition):
    """Members and manifest were fixed."""

    sealed_dataset_ids: IdSet
    publisher_facility_code: str
    publication_year: int
    license: str | None
    content_hash: str
    sealed_by: UUID


class EditionPublished(Event, of=edition):
    """The edition got its DOI, which it keeps for good."""

    external_id: str
    external_id_scheme: str
    published_content_hash: str
    published_by: UUID


class EditionWithdrawn(Event, of=edition):
    """The edition is not offered any more; its DOI leads to the notice of that."""

    withdrawal_reason: FreeText
    withdrawn_by: UUID


EditionEvent = EditionDatasetAdded | EditionDatasetRemoved | EditionSealed | EditionPublished | EditionWithdrawn


@edition.evolve
def evolve(edition: Edition, event: EditionEvent) -> Edition:
    at = event.occurred_at
    match event:
        case EditionDatasetAdded():
            return copy_with(edition, dataset_ids=edition.dataset_ids | {event.dataset_id})
        case EditionDatasetRemoved():
            return copy_with(edition, dataset_ids=edition.dataset_ids - {event.dataset_id})
        case EditionSealed():
            return copy_with(
                edition,
                status=SEALED,
                dataset_ids=event.sealed_dataset_ids,
                publisher_facility_code=event.publisher_facility_code,
                publication_year=event.publication_year,
                license=event.license,
                content_hash=event.content_hash,
                sealed_at=at,
                sealed_by=event.sealed_by,
            )
        case EditionPublished():
            return copy_with(
                edition,
                status=PUBLISHED,
                external_id=event.external_id,
                external_id_scheme=event.external_id_scheme,
                published_content_hash=event.published_content_hash,
                published_at=at,
                published_by=event.published_by,
            )
        case EditionWithdrawn():
            withdrawn = copy_with(edition, status=WITHDRAWN, withdrawn_at=at, withdrawn_by=event.withdrawn_by)
            return copy_with(withdrawn, withdrawal_reason=event.withdrawal_reason)
        case _:
            assert_never(event)


class InvalidEditionKindError(Invalid, context="data"):
    """No manifest of this kind is written here."""


class InvalidSpdxIdentifierError(Invalid, context="data"):
    """A license is named by its SPDX identifier: letters, digits, `.`, `-` and `+` only."""


class InvalidPublicationYearError(Invalid, context="data"):
    """A publication year is 1900 or later, and at most five years ahead."""


class InvalidCreatorsError(Invalid, context="data"):
    """An edition has 1 to 100 creators, each named once."""


class EmptyDatasetIdsAtRegistrationError(Invalid, context="data"):
    """An edition begins with at least one dataset."""


class EditionCreatorsNotFoundError(NotFound, context="data"):
    """A creator is not registered as an actor."""


class EditionDatasetNotMemberError(NotFound, context="data"):
    """The dataset is no member of the edition."""


class EditionPublisherNotFoundError(NotFound, context="data"):
    """No facility has the publisher's code, or no publisher is named."""


class EditionDatasetDistributionNotFoundError(NotFound, context="data"):
    """A member has no copy that could be cited: none that is Verified or Registered."""


class EditionManifestNotFoundError(NotFound, context="data"):
    """An edition has a manifest once it is sealed."""


class EditionCannotBindToDiscardedDatasetError(Conflict, context="data"):
    """No Discarded dataset becomes a member."""


class EditionDatasetAlreadyMemberError(Conflict, context="data"):
    """The dataset is a member already."""


class EditionCannotBeEmptyError(Conflict, context="data"):
    """An edition keeps at least one member."""


class EditionCannotSealOnDiscardedDatasetError(Conflict, context="data"):
    """No edition is sealed over a Discarded dataset."""


class EditionDatasetsNotAllProductionError(Conflict, context="data"):
    """Every member of a sealed edition is a Production dataset."""


class EditionLicenseRequiredForKindError(Conflict, context="data"):
    """Manifests of this kind must name a license."""


class PersistentIdentifierMintError(Refusal, status=502, context="data"):
    """The identifier registry did not issue the DOI; the edition stays Sealed."""


class PersistentIdentifierTombstoneError(Refusal, status=502, context="data"):
    """The identifier registry did not take the notice of the withdrawal; the edition stays Published."""


GivenPublisher = FacilityCode | None
GivenYear = Annotated[int | None, Field(description=f"A year from {FIRST_YEAR} on, at most {YEARS_AHEAD} years ahead.")]
GivenLicense = Annotated[str, Text(100, InvalidSpdxIdentifierError, "license")] | None


@edition.creation(gated=True)
class RegisterEdition(JudgedCreation[Mapping[UUID, Dataset]]):
    """Begin a package of datasets. Members may change until it is sealed; publisher, year and license may be given then."""

    kind: Annotated[EditionKind, Field(description=f"Written here are {' and '.join(SERIALIZERS)}.")]
    title: Annotated[str, edition.text("title", 500, personal=True)]
    dataset_ids: Annotated[IdSet, Field(max_length=MAX_MEMBERS)]
    creator_ids: Annotated[
        tuple[UUID, ...], Field(max_length=MAX_MEMBERS, description=f"Actors in author order, {MAX_CREATORS} at most.")
    ]
    publisher_facility_code: GivenPublisher = None
    publication_year: GivenYear = None
    license: GivenLicense = None

    def gather(self, call: Call) -> Reads[Mapping[UUID, Dataset]]:
        datasets = yield from require_all(Dataset, self.dataset_ids)
        yield from require_all(Actor, self.creator_ids, EditionCreatorsNotFoundError)
        return datasets

    def decide(self, call: Call, datasets: Mapping[UUID, Dataset]) -> Outcome:
        if self.kind not in SERIALIZERS:
            detail = f"No {self.kind} manifest is written here; choose {' or '.join(SERIALIZERS)}."
            raise InvalidEditionKindError(detail, reason="not_written_here", facts={"kinds": list(SERIALIZERS)})
        _check_imprint(self, call)
        _check_creators(self.creator_ids)
        if not datasets:
            raise EmptyDatasetIdsAtRegistrationError("No dataset is named; name at least one.", reason="empty")
        _refuse_discarded(datasets.values(), EditionCannotBindToDiscardedDatasetError)
        given = {name: getattr(self, name) for name in type(self).model_fields}
        return [EditionRegistered(**given, registered_by=call.principal_id)]


@edition.command(post="/{edition_id}/add-dataset", allowed=[REGISTERED], verb="AddDataset", gated=True)
class AddDatasetToEdition(JudgedVerb[Edition, Dataset]):
    """Make a dataset a member of an edition that is not sealed yet."""

    dataset_id: UUID

    def gather(self, edition: Edition, call: Call) -> Reads[Dataset]:
        return (yield from require(Dataset, self.dataset_id))

    def decide(self, edition: Edition, call: Call, dataset: Dataset) -> Outcome:
        _refuse_discarded([dataset], EditionCannotBindToDiscardedDatasetError)
        if dataset.id in edition.dataset_ids:
            raise EditionDatasetAlreadyMemberError("The dataset is a member already.", reason="already_member")
        if len(edition.dataset_ids) >= MAX_MEMBERS:
            raise self.cannot("full", f"An edition has at most {MAX_MEMBERS} members; begin another one.")
        return [EditionDatasetAdded(dataset_id=dataset.id, added_by=call.principal_id)]


@edition.command(post="/{edition_id}/remove-dataset", allowed=[REGISTERED], verb="RemoveDataset")
class RemoveDatasetFromEdition(JudgedVerb[Edition, None]):
    """Take a member out of an edition that is not sealed yet; one stays."""

    dataset_id: UUID

    def gather(self, edition: Edition, call: Call) -> Reads[None]:
        if self.dataset_id not in edition.dataset_ids:
            detail = f"The edition has no member {self.dataset_id}; check the id."
            raise EditionDatasetNotMemberError(detail, facts={"missing_ids": [self.dataset_id]})
        return None
        yield

    def decide(self, edition: Edition, call: Call, _: None) -> Outcome:
        if len(edition.dataset_ids) == 1:
            raise EditionCannotBeEmptyError("It is the only member; add another one first.", reason="last_member")
        return [EditionDatasetRemoved(dataset_id=self.dataset_id, removed_by=call.principal_id)]


class EditionFacts(NamedTuple):
    """What a manifest is written from, besides the edition itself."""

    datasets: Mapping[UUID, Dataset]
    copies: Mapping[UUID, Distribution]  # The copy to cite of each member that has a usable one.
    publisher: str | None  # The name of the facility, where there is one.
    origins: Origins
    landing_page: str


def edition_facts(edition: Edition, publisher_facility_code: str | None) -> Reads[EditionFacts]:
    """Return what the manifest of an edition is written from, as the record has it now."""
    ids = sorted(edition.dataset_ids)
    datasets = yield from find_all(Dataset, ids)
    copies = yield from cited_copies(ids)
    publisher = yield from publisher_name(publisher_facility_code)
    origins = yield from origins_of(datasets.values())
    page = landing_page((yield from ask(DeploymentPort.deployment)), LandingKind.EDITIONS, edition.id)
    return EditionFacts(datasets, copies, publisher, origins, page)


@edition.command(
    post="/{edition_id}/seal", allowed=[REGISTERED], leads_to=SEALED, gated=True, refuses=[EditionSerializerError]
)
class SealEdition(JudgedVerb[Edition, EditionFacts]):
    """Fix the members of an edition and write its manifest. All must be Production, each with a copy that is not Stale."""

    publisher_facility_code: GivenPublisher = None
    publication_year: GivenYear = None
    license: GivenLicense = None

    def gather(self, edition: Edition, call: Call) -> Reads[EditionFacts]:
        return (yield from edition_facts(edition, self._publisher(edition)))

    def decide(self, edition: Edition, call: Call, facts: EditionFacts) -> Outcome:
        _check_imprint(self, call)
        _refuse_discarded(facts.datasets.values(), EditionCannotSealOnDiscardedDatasetError)
        intents = {str(id): facts.datasets[id].intent for id in sorted(facts.datasets)}
        if doubtful := {id: intent for id, intent in intents.items() if intent is not DatasetIntent.PRODUCTION}:
            detail = "A member is not Production; promote it, or take it out."
            raise EditionDatasetsNotAllProductionError(detail, reason="not_production", facts={"intents": doubtful})
        refuse_uncitable(facts)
        publisher = self._publisher(edition)
        if facts.publisher is None or publisher is None:
            detail = "No facility has the publisher's code; name a registered facility as publisher."
            raise EditionPublisherNotFoundError(detail, reason="no_publisher")
        license = self.license or edition.license
        if license is None and edition.kind in LICENSED:
            detail = f"A {edition.kind} manifest names a license; give one by its SPDX identifier."
            raise EditionLicenseRequiredForKindError(detail, reason="license_missing")
        year = self.publication_year or edition.publication_year or call.now.astimezone(UTC).year
        imprinted = copy_with(edition, publisher_facility_code=publisher, publication_year=year, license=license)
        manifest = edition_manifest(imprinted, facts, None)
        sealed = EditionSealed(
            sealed_dataset_ids=edition.dataset_ids,
            publisher_facility_code=publisher,
            publication_year=year,
            license=license,
            content_hash=manifest.content_hash,
            sealed_by=call.principal_id,
        )
        return [sealed, Put(manifest)]

    def _publisher(self, edition: Edition) -> str | None:
        return self.publisher_facility_code or edition.publisher_facility_code


def refuse_uncitable(facts: EditionFacts) -> None:
    """Refuse an edition with members of which no copy can be cited."""
    if missing := sorted(set(facts.datasets) - set(facts.copies)):
        detail = "A member has no Verified or Registered copy; register one, or attest the copy that is Stale."
        raise EditionDatasetDistributionNotFoundError(detail, reason="no_usable_copy", facts={"dataset_ids": missing})


def edition_contents(edition: Edition, facts: EditionFacts, doi: str | None) -> EditionContents:
    """Return what an edition consists of, once publisher and year are settled."""
    assert edition.publisher_facility_code is not None, "a sealed edition has its publisher"
    assert edition.publication_year is not None, "a sealed edition has its year"
    return EditionContents(
        edition_id=edition.id,
        landing_page=facts.landing_page,
        title=edition.title,
        creator_ids=edition.creator_ids,
        publisher_facility_code=edition.publisher_facility_code,
        publisher=facts.publisher or edition.publisher_facility_code,
        publication_year=edition.publication_year,
        license=edition.license,
        doi=doi,
        members=tuple((facts.datasets[id], facts.copies[id]) for id in sorted(edition.dataset_ids) if id in facts.copies),
        origins=facts.origins,
    )


def edition_manifest(edition: Edition, facts: EditionFacts, doi: str | None) -> EditionManifest:
    """Return the manifest of an edition, to be kept under its hash."""
    text = manifest_text(edition.kind, edition_contents(edition, facts, doi))
    media_type = SERIALIZERS[edition.kind].media_type
    return EditionManifest(hashlib.sha256(text.encode()).hexdigest(), edition.id, media_type, text)


class PublishedEdition(Value):
    """An edition and the DOI that it got."""

    edition_id: UUID
    external_id: str
    external_id_scheme: str


class EditionWorkAccepted(Value):
    """Work on an edition that is still under way; `get_work` tells how it goes."""

    edition_id: UUID
    work_id: UUID


def publication_id(edition: Edition) -> UUID:
    """Return the id of the work that publishes a sealed edition; a repeated request has the same."""
    assert edition.sealed_at is not None, "only a sealed edition is published"
    return derived_uuid7(int(edition.sealed_at.timestamp() * 1000), PUBLICATION, str(edition.id))


def withdrawal_id(edition: Edition) -> UUID:
    """Return the id of the work that withdraws a published edition; a repeated request has the same."""
    assert edition.published_at is not None, "only a published edition is withdrawn"
    return derived_uuid7(int(edition.published_at.timestamp() * 1000), WITHDRAWAL, str(edition.id))


def _work_on_edition(kind: str, work_id: UUID, edition: Edition, earlier: Task | None, call: Call, **more: str) -> Outcome:
    """Return what begins work on an edition, or joins the same work that is under way."""
    ids = {"edition_id": str(edition.id)}
    return begin_or_join_task(kind, work_id, {**ids, **more}, ids, earlier, call)


@edition.command(
    post="/{edition_id}/publish",
    allowed=[SEALED],
    refuses=[PersistentIdentifierMintError, EditionSerializerError],
    status=200,
    returns=PublishedEdition,
    work=OpenedWork(PUBLICATION),
    accepted=EditionWorkAccepted,
)
class PublishEdition(JudgedVerb[Edition, Task | None]):
    """Have a DOI minted for a sealed edition, and keep it with the manifest that names it.

    The DOI follows from the edition's id, so a repeat after a failure mints the same one.
    """

    wait: Wait = 30

    def gather(self, edition: Edition, call: Call) -> Reads[Task | None]:
        self.operation.check(self, edition)
        yield from refuse_unminted(ExternalIdScheme.DOI)
        refuse_uncitable((yield from edition_facts(edition, edition.publisher_facility_code)))
        return (yield from record_of(Task, work_id=publication_id(edition)))

    def decide(self, edition: Edition, call: Call, task: Task | None) -> Outcome:
        return _work_on_edition(PUBLICATION, publication_id(edition), edition, task, call)


@edition.internal_command(command_name="PublishEdition", allowed=[SEALED], gated=True)
class RecordEditionPublication(JudgedVerb[Edition, EditionFacts]):
    """Record the DOI that was minted for an edition, and the manifest that names it."""

    external_id: str
    external_id_scheme: ExternalIdScheme

    def gather(self, edition: Edition, call: Call) -> Reads[EditionFacts]:
        return (yield from edition_facts(edition, edition.publisher_facility_code))

    def decide(self, edition: Edition, call: Call, facts: EditionFacts) -> Outcome:
        refuse_uncitable(facts)
        manifest = edition_manifest(edition, facts, self.external_id)
        published = EditionPublished(
            external_id=self.external_id,
            external_id_scheme=self.external_id_scheme,
            published_content_hash=manifest.content_hash,
            published_by=call.principal_id,
        )
        return [published, Put(manifest)]


@edition.command(
    post="/{edition_id}/withdraw",
    allowed=[PUBLISHED],
    refuses=[PersistentIdentifierTombstoneError],
    work=OpenedWork(WITHDRAWAL),
    accepted=EditionWorkAccepted,
    destructive=True,
)
class WithdrawEdition(JudgedVerb[Edition, Task | None]):
    """Offer a published edition no longer; its DOI stays, and leads to the notice of that.

    The DOI is taken out of the registry's catalog, and the reason is published with it.
    """

    withdrawal_reason: Annotated[str, edition.text("withdrawal_reason", 500, label="reason", personal=True)]
    wait: Wait = 30

    def gather(self, edition: Edition, call: Call) -> Reads[Task | None]:
        self.operation.check(self, edition)
        yield from refuse_unminted(ExternalIdScheme.DOI)
        return (yield from record_of(Task, work_id=withdrawal_id(edition)))

    def decide(self, edition: Edition, call: Call, task: Task | None) -> Outcome:
        reason = self.withdrawal_reason
        return _work_on_edition(WITHDRAWAL, withdrawal_id(edition), edition, task, call, withdrawal_reason=reason)


@edition.internal_command(command_name="WithdrawEdition", allowed=[PUBLISHED], records=EditionWithdrawn)
class RecordEditionWithdrawal(JudgedVerb[Edition, None]):
    """Record the withdrawal of an edition whose DOI is marked."""

    withdrawal_reason: FreeText


def _refuse_discarded(datasets: Iterable[Dataset], refusal: type[Refusal]) -> None:
    if discarded := sorted(one.id for one in datasets if one.status is DatasetStatus.DISCARDED):
        detail = "A dataset is Discarded; name one that still counts."
        raise refusal(detail, reason="dataset_discarded", facts={"dataset_ids": discarded})


def _check_imprint(given: RegisterEdition | SealEdition, call: Call) -> None:
    """Refuse a publisher's code, a license or a year that cannot be one."""
    if given.license is not None and not SPDX_ID.fullmatch(given.license):
        detail = "A license is named by its SPDX identifier, such as CC-BY-4.0; correct it."
        raise InvalidSpdxIdentifierError(detail, reason="pattern")
    last_year = call.now.astimezone(UTC).year + YEARS_AHEAD
    if given.publication_year is not None and not FIRST_YEAR <= given.publication_year <= last_year:
        detail = f"A publication year is from {FIRST_YEAR} to {last_year}; correct it."
        raise InvalidPublicationYearError(detail, reason="out_of_range")
    if given.publisher_facility_code is not None:
        check_facility_code(given.publisher_facility_code)


def _check_creators(creator_ids: tuple[UUID, ...]) -> None:
    if not 1 <= len(creator_ids) <= MAX_CREATORS:
        detail = f"An edition has 1 to {MAX_CREATORS} creators, and {len(creator_ids)} are named; correct the list."
        raise InvalidCreatorsError(detail, reason="count")
    if len(set(creator_ids)) < len(creator_ids):
        raise InvalidCreatorsError("A creator is named twice; name each once.", reason="repeated")


GetEdition = edition.get(hidden=["created_at"])


class EditionSummary(Summary):
    time: ClassVar[str] = "registered_at"
    edition_id: UUID
    kind: EditionKind
    title: FreeText
    dataset_ids: IdSet
    creator_ids: tuple[UUID, ...]
    license: str | None
    publication_year: int | None
    publisher_facility_code: str | None
    content_hash: str | None
    published_content_hash: str | None
    external_id: str | None
    external_id_scheme: str | None
    status: EditionStatus
    registered_at: datetime
    registered_by: UUID
    sealed_at: datetime | None
    sealed_by: UUID | None
    published_at: datetime | None
    published_by: UUID | None
    withdrawn_at: datetime | None
    withdrawn_by: UUID | None
    withdrawal_reason: FreeText | None


@edition.listing(EditionSummary)
class ListEditions(NamedListQuery[EditionSummary]):
    """Editions in order of registration; `dataset_id` lists those with this member."""

    status: EditionStatus | None = None
    kind: EditionKind | None = None
    dataset_id: UUID | None = None
    """Only editions with this member."""
    publisher_facility_code: str | None = None


@edition.query(
    get="/{edition_id}/manifest",
    media_types=[one.media_type for one in SERIALIZERS.values()],
    refuses=[EditionManifestNotFoundError],
)
class GetEditionManifest(Query[Document]):
    """The manifest of an edition: as published, or as sealed before that."""

    def answer(self, edition: Edition, call: Call) -> Reads[Document]:
        content_hash = edition.published_content_hash or edition.content_hash
        if content_hash is None:
            detail = "The edition has no manifest before it is sealed; seal it first."
            raise EditionManifestNotFoundError(detail, reason="not_sealed")
        manifest = yield from record_of(EditionManifest, content_hash=content_hash)
        assert manifest is not None, "a manifest is written together with the event that names it"
        return Document(manifest.media_type, manifest.content.encode())
