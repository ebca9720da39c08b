"""Manifests: what an edition consists of, as one file in a published form. Equal contents give equal bytes, and no manifest
names a person: creators stand in it by their ids."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from baton.domain.data.citation import EditionContents, edition_citation
from baton.domain.data.dataset import Dataset
from baton.domain.data.distribution import Distribution
from baton.domain.data.values import ChecksumAlgorithm
from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.citation import DATACITE_JSON, SPDX_LICENSES, WITHHELD, CitedParty, datacite_json
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.writes import Record

RO_CRATE = "https://w3id.org/ro/crate/1.2"
JSON_LD = "application/ld+json"


class EditionKind(StrEnum):
    RO_CRATE = "ROCrate"
    DATACITE = "DataCite"
    CROISSANT = "Croissant"
    OAIS_AIP = "OAIS_AIP"
    OAIS_DIP = "OAIS_DIP"
    NEXUS = "NeXus"


class EditionSerializerError(Refusal, status=502, context="data"):
    """The manifest could not be written; nothing was recorded."""


class Serializer(NamedTuple):
    """How one kind of manifest is written: its media type, and the function that returns its content as plain data."""

    media_type: str
    content: Callable[[EditionContents], Mapping[str, Any]]


@dataclass(frozen=True)
class EditionManifest(Record):
    """A manifest as it was sealed or published, kept under the hash that the events have of it."""

    relation: ClassVar[str] = "edition_manifests"
    key: ClassVar[tuple[str, ...]] = ("content_hash",)
    content_hash: str
    edition_id: UUID
    media_type: str
    content: str


def manifest_text(kind: EditionKind, contents: EditionContents) -> str:
    """Return the manifest of an edition in canonical form."""
    try:
        return canonical_json(SERIALIZERS[kind].content(contents)).decode()
    except (KeyError, TypeError, ValueError) as error:
        detail = (
            f"The {kind} manifest cannot be written ({type(error).__name__}); correct the texts of the edition's members."
        )
        raise EditionSerializerError(detail, reason="not_serializable") from None


def ro_crate(contents: EditionContents) -> Mapping[str, object]:
    """Return an edition as an RO-Crate: a flat graph of the crate, its members, and whom and what they refer to."""
    license = None if contents.license is None else f"{SPDX_LICENSES}{contents.license}"
    publisher = f"#facility-{contents.publisher_facility_code}"
    creators = [f"urn:uuid:{id}" for id in contents.creator_ids]
    count = len(contents.members)
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": contents.title,
        "description": f"An edition of {count} dataset{'s' if count > 1 else ''}.",
        "datePublished": str(contents.publication_year),
        "identifier": contents.doi or f"edition:{contents.edition_id}",
        "publisher": {"@id": publisher},
        "creator": [{"@id": id} for id in creators],
        "hasPart": [{"@id": f"urn:uuid:{dataset.id}"} for dataset, _ in contents.members],
        **({} if license is None else {"license": {"@id": license}}),
    }
    profiles = sorted({uri for _, copy in contents.members for uri in copy.encoding.conforms_to})
    graph = [
        {"@id": "ro-crate-metadata.json", "@type": "CreativeWork", "about": {"@id": "./"}, "conformsTo": {"@id": RO_CRATE}},
        root,
        *(_member(dataset, copy) for dataset, copy in contents.members),
        {"@id": publisher, "@type": "Organization", "name": contents.publisher_facility_code},
        *(
            {"@id": f"urn:uuid:{id}", "@type": "Person", "identifier": str(id), "name": f"Creator {id}"}
            for id in contents.creator_ids
        ),
        *({"@id": uri, "@type": ["CreativeWork", "Profile"], "name": uri} for uri in profiles),
    ]
    if license is not None:
        described = {"name": contents.license, "description": f"The license {contents.license} of the SPDX list."}
        graph.append({"@id": license, "@type": "CreativeWork", **described})
    return {"@context": f"{RO_CRATE}/context", "@graph": graph}


def _member(dataset: Dataset, copy: Distribution) -> dict[str, object]:
    is_file = copy.checksum.algorithm is ChecksumAlgorithm.SHA256
    profiles = sorted(copy.encoding.conforms_to)
    return {
        "@id": f"urn:uuid:{dataset.id}",
        "@type": "File" if is_file else "Dataset",
        "name": dataset.name,
        "contentUrl": copy.uri,
        "sha256": copy.checksum.value,
        "contentSize": str(copy.byte_size),
        "encodingFormat": copy.encoding.media_type,
        **({"conformsTo": [{"@id": uri} for uri in profiles]} if profiles else {}),
    }


def datacite_manifest(contents: EditionContents) -> Mapping[str, object]:
    """Return an edition as the record that DataCite publishes of it, with creators by their ids instead of their names."""
    creators = tuple(
        CitedParty(name=WITHHELD, identifier=f"urn:uuid:{id}", identifier_type="URN", personal=True)
        for id in contents.creator_ids
    )
    return datacite_json(edition_citation(contents, creators), contents.doi)


SERIALIZERS: Mapping[EditionKind, Serializer] = {
    EditionKind.RO_CRATE: Serializer(JSON_LD, ro_crate),
    EditionKind.DATACITE: Serializer(DATACITE_JSON, datacite_manifest),
}
