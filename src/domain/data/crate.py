"""The crate of an edition, to be taken away: an RO-Crate as a zip, with files that can be read here and are small enough,
and the run, instrument, sample and datasets that they come from. It is made on request; the manifest is what is kept."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, date
from pathlib import PurePosixPath
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit
from uuid import UUID

from baton.domain.data.citation import EditionContents, creators_of
from baton.domain.data.dataset import Dataset
from baton.domain.data.distribution import Distribution
from baton.domain.data.edition import (
    PUBLISHED,
    SEALED,
    Edition,
    EditionManifestNotFoundError,
    edition,
    edition_contents,
    edition_facts,
)
from baton.domain.data.manifest import ro_crate
from baton.domain.kernel import Call, Document, Query
from baton.domain.run.run import Run
from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.citation import CitedParty
from baton.domain.shared.reads import AskPort, Reads, find_all

ZIP = "application/zip"
METADATA = "ro-crate-metadata.json"
Entity = dict[str, Any]


class CrateFile(NamedTuple):
    """A file of a crate: the dataset it holds, its name in the crate, and the copy that it is read from."""

    dataset_id: UUID
    path: str
    uri: str
    byte_size: int
    sha256: str


class CrateDraft(NamedTuple):
    """A crate before it is known which of its files can be packed."""

    contents: EditionContents
    published_on: date
    creators: tuple[CitedParty, ...]
    runs: Mapping[UUID, Run]
    files: tuple[CrateFile, ...]

    def metadata(self, packed: Collection[UUID]) -> bytes:
        """Return the metadata of the crate with the files of these datasets in it."""
        return canonical_json(crate_document(self, packed))


class CratePort(Protocol):
    """Packs crates."""

    async def pack(self, draft: CrateDraft) -> Document:
        """Return the crate as a zip. A file that cannot be read here, is not what was registered or is too large is named by
        its address."""


@edition.query(get="/{edition_id}/crate.zip", media_types=[ZIP], refuses=[EditionManifestNotFoundError])
class GetEditionCrate(Query[Document]):
    """A sealed or published edition as an RO-Crate to take away: its metadata, and its files that are small enough."""

    def answer(self, edition: Edition, call: Call) -> Reads[AskPort]:
        if edition.status not in (SEALED, PUBLISHED):
            detail = "Only a sealed or published edition has a crate; seal it first."
            raise EditionManifestNotFoundError(detail, reason="not_sealed")
        facts = yield from edition_facts(edition, edition.publisher_facility_code)
        contents = edition_contents(edition, facts, edition.external_id)
        run_ids = {one.producing_run_id for one, _ in contents.members if one.producing_run_id is not None}
        draft = CrateDraft(
            contents,
            published_on=(edition.published_at or edition.sealed_at or call.now).astimezone(UTC).date(),
            creators=(yield from creators_of(edition.creator_ids, all_named=False)),
            runs=(yield from find_all(Run, sorted(run_ids))),
            files=tuple(map(crate_file, contents.members)),
        )
        return AskPort(CratePort.pack, (draft,))


def crate_file(member: tuple[Dataset, Distribution]) -> CrateFile:
    """Return the file of a dataset, under its own name in a folder of its own."""
    dataset, copy = member
    name = PurePosixPath(unquote(urlsplit(copy.uri).path)).name or "data"
    return CrateFile(dataset.id, f"data/{dataset.id}/{name}", copy.uri, copy.byte_size, copy.checksum.value)


def crate_document(draft: CrateDraft, packed: Collection[UUID]) -> Entity:
    """Return the metadata of a crate: the manifest, with files by their place in the crate, and where they come from."""
    manifest = ro_crate(draft.contents)
    graph: Any = manifest["@graph"]
    places = {f"urn:uuid:{one.dataset_id}": one.path for one in draft.files if one.dataset_id in packed}
    named = {f"urn:uuid:{id}": party for id, party in zip(draft.contents.creator_ids, draft.creators, strict=True)}
    origins = dict(dataset_origins(draft, places))
    entities = [crate_entity(one, draft, places, named, origins) for one in graph]
    known = {one["@id"] for one in entities} | {f"urn:uuid:{dataset.id}" for dataset, _ in draft.contents.members}
    further = (one for one in origin_entities(draft, places) if one["@id"] not in known)
    return {**manifest, "@graph": [*entities, *further]}


def crate_entity(
    entity: Entity,
    draft: CrateDraft,
    places: Mapping[str, str],
    named: Mapping[str, CitedParty],
    origins: Mapping[str, Entity],
) -> Entity:
    """Return an entity of the manifest as the crate has it."""
    id = entity["@id"]
    if id == "./":
        parts = [{"@id": places.get(one["@id"], one["@id"])} for one in entity["hasPart"]]
        mentions = {"mentions": [{"@id": f"urn:uuid:{id}"} for id in sorted(draft.runs)]} if draft.runs else {}
        return {**entity, "datePublished": draft.published_on.isoformat(), "hasPart": parts, **mentions}
    if id in named:
        return {**entity, "name": named[id].name}
    if id not in origins:
        return entity
    local = entity["contentUrl"].lower().startswith("file:")
    own = {key: value for key, value in entity.items() if not (key == "contentUrl" and (id in places or local))}
    return {**own, "@id": places.get(id, id), "identifier": id, **origins[id]}


def dataset_origins(draft: CrateDraft, places: Mapping[str, str]) -> Iterator[tuple[str, Entity]]:
    """Yield what each member of an edition comes from, by its id."""
    for dataset, _ in draft.contents.members:
        known = [f"urn:uuid:{id}" for id in sorted(dataset.derived_from) if id in draft.contents.origins.parents]
        parents = references([places.get(one, one) for one in known])
        about = {"about": {"@id": f"urn:uuid:{dataset.subject_id}"}} if dataset.subject_id is not None else {}
        yield f"urn:uuid:{dataset.id}", {**({"isBasedOn": parents} if parents else {}), **about}


def origin_entities(draft: CrateDraft, places: Mapping[str, str]) -> Iterator[Entity]:
    """Yield the runs, instruments, samples and parents that the members of an edition come from."""
    origins = draft.contents.origins
    for id, run in sorted(draft.runs.items()):
        results = [f"urn:uuid:{one.id}" for one, _ in draft.contents.members if one.producing_run_id == id]
        tools = sorted({one.producing_asset_id for one in origins.acquisitions if one.producing_run_id == id})
        yield {
            "@id": f"urn:uuid:{id}",
            "@type": "CreateAction",
            "name": run.name,
            "startTime": run.created_at.astimezone(UTC).isoformat(),
            "result": references([places.get(one, one) for one in results]),
            **({"instrument": references([f"urn:uuid:{one}" for one in tools])} if tools else {}),
            **({"object": {"@id": f"urn:uuid:{run.subject_id}"}} if run.subject_id in origins.subjects else {}),
        }
    names = {
        "IndividualProduct": {id: one.name for id, one in origins.assets.items()},
        "Thing": {id: one.name for id, one in origins.subjects.items()},
        "Dataset": {id: one.name for id, one in origins.parents.items()},
    }
    for kind, named in names.items():
        yield from ({"@id": f"urn:uuid:{id}", "@type": kind, "name": name} for id, name in sorted(named.items()))


def references(ids: Sequence[str]) -> list[Entity]:
    """Return entities by their ids."""
    return [{"@id": id} for id in ids]
