"""What a registry publishes of a thing beside its persistent identifier, in the terms of DataCite's metadata 4.6; what is
minted and exported is its form as JSON."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Literal, Protocol
from uuid import UUID

from baton.domain.kernel import Value
from baton.domain.shared.deployment import Deployment, DeploymentPort
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.reads import Reads, ask
from baton.domain.shared.refusals import ExternalIdMintingNotConfiguredError

SCHEMA_VERSION = "http://datacite.org/schema/kernel-4"
DATACITE_JSON = "application/vnd.datacite.datacite+json"
UNKNOWN, WITHHELD = ":unav", ":unal"  # DataCite's values for what is not known, and for what may not be told.
SPDX_LICENSES = "https://spdx.org/licenses/"
WEB = ("https://", "http://")
DOI = re.compile(r"10\.\d{4,9}/\S+")
RELATED_TYPES = (
    *("ARK", "arXiv", "bibcode", "CSTR", "DOI", "EAN13", "EISSN", "Handle", "IGSN", "ISBN", "ISSN", "ISTC", "LISSN", "LSID"),
    *("PMID", "PURL", "RRID", "UPC", "URL", "URN", "w3id"),
)  # The types that DataCite 4.6 knows identifiers of related things by.


class LandingKind(StrEnum):
    """What has pages that identifiers lead to."""

    ASSETS = "assets"
    DATASETS = "datasets"
    EDITIONS = "editions"
    FIXTURES = "fixtures"
    SUBJECTS = "subjects"


PublicPages = LandingKind | Literal["minted"]
"""The pages that everybody may read: those of a kind, or of whatever has a persistent identifier."""
Day = date
ResourceType = Literal["Collection", "Dataset", "Instrument", "PhysicalObject"]


class CitedParty(Value):
    """Somebody who made or holds the thing: an institution, unless it is said to be a person."""

    name: str
    identifier: str | None = None
    identifier_type: str | None = None
    personal: bool = False


class CitedIdentifier(Value):
    """Another identifier, of the thing itself or of one that it is related to."""

    identifier: str
    identifier_type: str


class CitedRelation(CitedIdentifier):
    """The identifier of a related thing, how the two are related, and what kind of thing it is."""

    relation_type: str
    resource_type: ResourceType | None = None


class CitedDate(Value):
    """When something became of the thing; `information` says what, where the type is Other."""

    type: Literal["Collected", "Other"]
    date: Day
    until: Day | None = None  # The last day, where it took several.
    information: str | None = None


class CitedDescription(Value):
    """A text about the thing."""

    type: Literal["Abstract", "Methods", "TechnicalInfo", "Other"]
    text: str


class Citation(Value):
    """The published metadata of one identifier; `landing_page` is where the identifier leads."""

    landing_page: str
    findable: bool = True  # A registry only reserves the identifier of one that is not.
    resource_type: ResourceType
    specific_type: str | None = None  # A word for the thing that is narrower than its type.
    title: str
    publisher: str
    publication_year: int
    creators: tuple[CitedParty, ...] = ()
    hosts: tuple[CitedParty, ...] = ()
    subjects: tuple[str, ...] = ()
    dates: tuple[CitedDate, ...] = ()
    related_identifiers: tuple[CitedRelation, ...] = ()
    alternate_identifiers: tuple[CitedIdentifier, ...] = ()
    sizes: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    license: str | None = None  # By its SPDX identifier.
    descriptions: tuple[CitedDescription, ...] = ()


def landing_page(deployment: Deployment, kind: LandingKind, id: UUID) -> str:
    """Return the address that the identifier of something here leads to."""
    template = deployment.landing_page_templates.get(kind)
    template = template or f"{deployment.base_url.rstrip('/')}/landing/{kind}/{{id}}"
    return template.replace("{id}", str(id))


def datacite_json(citation: Citation, doi: str | None = None) -> dict[str, object]:
    """Return the record of DataCite 4.6 as its API takes it; without a DOI, it is one that awaits its registration."""
    specific = {} if citation.specific_type is None else {"resourceType": citation.specific_type}
    creators = citation.creators or (CitedParty(name=UNKNOWN),)
    return {
        **({} if doi is None else {"doi": doi}),
        "schemaVersion": SCHEMA_VERSION,
        **({"url": citation.landing_page} if citation.landing_page.startswith(WEB) else {}),
        "types": {"resourceTypeGeneral": citation.resource_type, **specific},
        "titles": [{"title": citation.title}],
        "publisher": {"name": citation.publisher},
        "publicationYear": citation.publication_year,
        "creators": [_party(one) for one in creators],
        "contributors": [{**_party(one), "contributorType": "HostingInstitution"} for one in citation.hosts],
        "subjects": [{"subject": subject} for subject in citation.subjects],
        "dates": [_date(one) for one in citation.dates],
        "relatedIdentifiers": [_relation(one) for one in citation.related_identifiers],
        "alternateIdentifiers": [
            {"alternateIdentifier": one.identifier, "alternateIdentifierType": one.identifier_type}
            for one in citation.alternate_identifiers
        ],
        "sizes": list(citation.sizes),
        "formats": list(citation.formats),
        "rightsList": [] if citation.license is None else [_rights(citation.license)],
        "descriptions": [{"description": one.text, "descriptionType": one.type} for one in citation.descriptions],
    }


def _party(cited: CitedParty) -> dict[str, object]:
    identifier = {"nameIdentifier": cited.identifier, "nameIdentifierScheme": cited.identifier_type}
    identifiers = [] if cited.identifier is None else [identifier]
    return {
        "name": cited.name,
        "nameType": "Personal" if cited.personal else "Organizational",
        "nameIdentifiers": identifiers,
    }


def _date(cited: CitedDate) -> dict[str, str]:
    information = {} if cited.information is None else {"dateInformation": cited.information}
    until = "" if cited.until in (None, cited.date) else f"/{cited.until.isoformat()}"
    return {"dateType": cited.type, "date": f"{cited.date.isoformat()}{until}", **information}


def _relation(cited: CitedRelation) -> dict[str, str]:
    return {
        "relatedIdentifier": cited.identifier,
        "relatedIdentifierType": cited.identifier_type,
        "relationType": cited.relation_type,
        **({} if cited.resource_type is None else {"resourceTypeGeneral": cited.resource_type}),
    }


def _rights(license: str) -> Mapping[str, str]:
    return {
        "rights": license,
        "rightsUri": f"{SPDX_LICENSES}{license}.html",
        "rightsIdentifier": license,
        "rightsIdentifierScheme": "SPDX",
        "schemeUri": SPDX_LICENSES,
    }


def doi_in(external_id: str | None) -> str | None:
    """Return an external identifier that is a DOI, whatever its scheme is called; an IGSN is one since 2022."""
    return external_id if external_id is not None and DOI.fullmatch(external_id) else None


def cited_identifier(id: UUID, external_id: str | None, scheme: str | None) -> CitedIdentifier:
    """Return how a related thing is cited: by its external identifier where DataCite knows such, else by its own id."""
    types = {one.lower(): one for one in RELATED_TYPES}
    known = "DOI" if doi_in(external_id) else types.get((scheme or "").lower())
    if external_id is not None and known is not None:
        return CitedIdentifier(identifier=external_id, identifier_type=known)
    return CitedIdentifier(identifier=f"urn:uuid:{id}", identifier_type="URN")


def relations_to(
    cited: Iterable[CitedIdentifier], relation_type: str, resource_type: ResourceType
) -> tuple[CitedRelation, ...]:
    """Return these identifiers as related in one way, each once and in order."""
    distinct = sorted({(one.identifier, one.identifier_type) for one in cited})
    return tuple(
        CitedRelation(identifier=id, identifier_type=type, relation_type=relation_type, resource_type=resource_type)
        for id, type in distinct
    )


@dataclass(frozen=True)
class MintedIdentifier:
    """An identifier that a registry issued."""

    scheme: ExternalIdScheme
    value: str


class IdentifierPort(Protocol):
    """Issues persistent identifiers."""

    async def mint(self, scheme: ExternalIdScheme, suffix: str, metadata: Citation) -> MintedIdentifier:
        """Have the registry issue an identifier; raise ExternalIdMintError where it does not."""


def refuse_unminted(scheme: ExternalIdScheme) -> Reads[None]:
    """Refuse to mint where no registry is configured that issues identifiers of this scheme."""
    deployment = yield from ask(DeploymentPort.deployment)
    if not deployment.minted_schemes:
        detail = "No identifier registry is configured here; set PID_MINTER, or ask the operator of the service to."
        raise ExternalIdMintingNotConfiguredError(detail, reason="no_minter")
    if scheme not in deployment.minted_schemes:
        schemes = sorted(deployment.minted_schemes)
        issued = ", ".join(schemes)
        detail = f"The configured registry issues {issued} and no {scheme.value}; ask for {issued}."
        facts = {"external_id_schemes": schemes}
        raise ExternalIdMintingNotConfiguredError(detail, reason="scheme_not_minted", facts=facts)
