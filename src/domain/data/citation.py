"""How data products are cited: what a registry publishes of a dataset, an edition and a sample, and what of the record it
relates them to: parents, parts, the instruments that captured them and the samples that they show."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from typing import NamedTuple
from uuid import UUID

from baton.domain.access.actor import Actor, ActorKind, ActorProfile, names_of
from baton.domain.data.acquisition import ACQUISITIONS, Acquisition
from baton.domain.data.dataset import Dataset
from baton.domain.data.distribution import COPIES, Distribution, DistributionStatus
from baton.domain.equipment.asset import Asset
from baton.domain.facility.facility import Facility
from baton.domain.shared.citation import (
    WITHHELD,
    Citation,
    CitedDate,
    CitedIdentifier,
    CitedParty,
    CitedRelation,
    LandingKind,
    cited_identifier,
    landing_page,
    relations_to,
)
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.identifiers import FACILITY_CODE
from baton.domain.shared.reads import Reads, ask, find, find_all, holder_of, members_by_key, members_of, records_of
from baton.domain.subject.subject import Subject

SAMPLE = "Material sample"
ORCID = "ORCID"
CITED = (DistributionStatus.VERIFIED, DistributionStatus.REGISTERED)  # The copies that are cited, best first.


class Origins(NamedTuple):
    """What datasets come from: parents, captures, the assets that captured them, and the subjects that they show."""

    parents: Mapping[UUID, Dataset]
    acquisitions: Sequence[Acquisition]
    assets: Mapping[UUID, Asset]
    subjects: Mapping[UUID, Subject]


class EditionContents(NamedTuple):
    """What an edition consists of, as its manifest and its published record tell it."""

    edition_id: UUID
    landing_page: str
    title: str
    creator_ids: tuple[UUID, ...]
    publisher_facility_code: str
    publisher: str
    publication_year: int
    license: str | None
    doi: str | None
    members: tuple[tuple[Dataset, Distribution], ...]  # Each dataset with the copy that is cited, in order of the ids.
    origins: Origins


def origins_of(datasets: Iterable[Dataset]) -> Reads[Origins]:
    """Return what these datasets come from; five reads, however many they are."""
    known = tuple(datasets)
    parents = yield from find_all(Dataset, sorted({id for one in known for id in one.derived_from}))
    captures = yield from find_all(Acquisition, (yield from members_of(ACQUISITIONS, *(one.id for one in known))))
    assets = yield from find_all(Asset, sorted({one.producing_asset_id for one in captures.values()}))
    subjects = yield from find_all(Subject, sorted({one.subject_id for one in known if one.subject_id is not None}))
    return Origins(parents, tuple(captures.values()), assets, subjects)


def cited_copies(dataset_ids: Iterable[UUID]) -> Reads[dict[UUID, Distribution]]:
    """Return the copy that is cited of each dataset: a Verified one before a Registered one, then the lowest id."""
    listed = yield from members_by_key(COPIES, *dataset_ids)
    copies = yield from find_all(Distribution, [id for ids in listed.values() for id in ids])
    usable = sorted(
        (one for one in copies.values() if one.status in CITED), key=lambda one: (CITED.index(one.status), one.id)
    )
    return {one.dataset_id: one for one in reversed(usable)}


def dataset_citation(dataset: Dataset) -> Reads[Citation]:
    """Return what a registry publishes of a dataset."""
    deployment = yield from ask(DeploymentPort.deployment)
    origins = yield from origins_of([dataset])
    return Citation(
        landing_page=landing_page(deployment, LandingKind.DATASETS, dataset.id),
        resource_type="Dataset",
        title=dataset.name,
        publisher=deployment.publisher,
        publication_year=dataset.created_at.astimezone(UTC).year,
        dates=_dates(origins),
        related_identifiers=_relations_of(origins, ()),
        alternate_identifiers=(own_identifier(dataset.id),),
        sizes=(f"{dataset.byte_size} bytes",),
        formats=(dataset.encoding.media_type,),
    )


def edition_citation(contents: EditionContents, creators: tuple[CitedParty, ...]) -> Citation:
    """Return what a registry publishes of an edition."""
    copies = [copy for _, copy in contents.members]
    return Citation(
        landing_page=contents.landing_page,
        resource_type="Collection",
        title=contents.title,
        publisher=contents.publisher,
        publication_year=contents.publication_year,
        creators=creators,
        dates=_dates(contents.origins),
        related_identifiers=_relations_of(contents.origins, [dataset for dataset, _ in contents.members]),
        alternate_identifiers=(own_identifier(contents.edition_id),),
        sizes=(f"{sum(copy.byte_size for copy in copies)} bytes",),
        formats=tuple(sorted({copy.encoding.media_type for copy in copies})),
        license=contents.license,
    )


def subject_citation(subject: Subject) -> Reads[Citation]:
    """Return what a registry publishes of a sample under its IGSN."""
    deployment = yield from ask(DeploymentPort.deployment)
    received = subject.created_at.astimezone(UTC)
    return Citation(
        landing_page=landing_page(deployment, LandingKind.SUBJECTS, subject.id),
        resource_type="PhysicalObject",
        specific_type=SAMPLE,
        title=subject.name,
        publisher=deployment.publisher,
        publication_year=received.year,
        dates=(CitedDate(type="Other", date=received.date(), information="Received"),),
        alternate_identifiers=(own_identifier(subject.id),),
    )


def own_identifier(id: UUID) -> CitedIdentifier:
    """Return the identifier that something has in this service."""
    return CitedIdentifier(identifier=f"urn:uuid:{id}", identifier_type="URN")


def creators_of(creator_ids: Sequence[UUID], *, all_named: bool) -> Reads[tuple[CitedParty, ...]]:
    """Return creators in author order, by the names that their profiles have now; unless all are to be named, people whose
    names the caller may not read are withheld."""
    actors = yield from find_all(Actor, creator_ids)
    names = yield from names_of([(id, None) for id in creator_ids], own=all_named)
    profiles = yield from records_of(ActorProfile, actor_id=tuple(creator_ids))
    orcids = {one.actor_id: one.external_id for one in profiles if (one.external_id_scheme or "").upper() == ORCID}

    def cite(id: UUID) -> CitedParty:
        name, personal = names[id, None], actors[id].kind is ActorKind.HUMAN
        if name is None or id not in orcids:
            return CitedParty(name=name or WITHHELD, personal=personal)
        return CitedParty(name=name, identifier=orcids[id], identifier_type=ORCID, personal=personal)

    return tuple(cite(id) for id in creator_ids)


def publisher_name(facility_code: str | None) -> Reads[str | None]:
    """Return the name of the facility that holds a code; None where none does."""
    holder = None if facility_code is None else (yield from holder_of(FACILITY_CODE, facility_code))
    facility = yield from find(Facility, holder)
    return facility.display_name if facility else None if holder is None else facility_code


def _relations_of(origins: Origins, members: Sequence[Dataset]) -> tuple[CitedRelation, ...]:
    """Return what is related: all members and parents, and those instruments and samples that have an identifier."""
    within = {one.id for one in members}
    return (
        *relations_to(map(_identifier_of, members), "HasPart", "Dataset"),
        *relations_to(
            (_identifier_of(one) for id, one in origins.parents.items() if id not in within), "IsDerivedFrom", "Dataset"
        ),
        *relations_to(
            (_identifier_of(one) for one in origins.assets.values() if one.external_id), "IsCollectedBy", "Instrument"
        ),
        *relations_to(
            (_identifier_of(one) for one in origins.subjects.values() if one.external_id), "References", "PhysicalObject"
        ),
    )


def _identifier_of(thing: Dataset | Asset | Subject) -> CitedIdentifier:
    draft = isinstance(thing, Dataset) and thing.external_id_draft  # Nobody finds it under that one yet.
    return cited_identifier(thing.id, None if draft else thing.external_id, thing.external_id_scheme)


def _dates(origins: Origins) -> tuple[CitedDate, ...]:
    """Return when data were captured, from the first day to the last."""
    days = sorted({one.captured_at.astimezone(UTC).date() for one in origins.acquisitions})
    return (CitedDate(type="Collected", date=days[0], until=days[-1]),) if days else ()
