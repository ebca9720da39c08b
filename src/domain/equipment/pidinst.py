"""PIDINST: the record under which an instrument's persistent identifier is published, composed from what is on record.
Here, too, is how such an identifier is issued: by which registries, and to whom."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal
from uuid import UUID

from baton.domain.equipment.asset import Asset
from baton.domain.equipment.family import Family
from baton.domain.equipment.model import Manufacturer, Model
from baton.domain.equipment.values import AlternateIdentifierKind, ExternalIdEvent, Owner
from baton.domain.kernel import Call, Command, Outcome, Value
from baton.domain.shared.citation import (
    Citation,
    CitedDate,
    CitedDescription,
    CitedIdentifier,
    CitedParty,
    CitedRelation,
    IdentifierPort,
    LandingKind,
    MintedIdentifier,
    landing_page,
    refuse_unminted,
)
from baton.domain.shared.deployment import Deployment
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.reads import Reads, ask
from baton.domain.shared.refusals import Invalid, Refusal
from baton.domain.shared.text import Word
from baton.domain.shared.writes import Answer

if TYPE_CHECKING:
    from baton.domain.equipment.fixture import Fixture

Families = Mapping[UUID, Family]
Models = Mapping[UUID, Model]


class PidinstIdentifier(Value):
    """The identifier of an instrument."""

    value: str
    scheme: str


class PidinstParty(Value):
    """An institution: an owner or a manufacturer."""

    name: str
    identifier: str | None
    identifier_type: str | None


class PidinstTerm(Value):
    """A named thing with an identifier of its own: the model, an instrument type."""

    name: str
    identifier: str
    identifier_type: str


class PidinstDateType(StrEnum):
    COMMISSIONED = "Commissioned"
    DE_COMMISSIONED = "DeCommissioned"


class PidinstDate(Value):
    """When an instrument was taken into service or out of it."""

    type: PidinstDateType
    date: date
    """The day."""


class PidinstRelation(StrEnum):
    IS_COMPONENT_OF = "IsComponentOf"
    HAS_COMPONENT = "HasComponent"


class PidinstRelatedIdentifier(Value):
    """The identifier of an instrument that this one is part of, or consists of."""

    identifier: str
    identifier_type: str
    relation_type: PidinstRelation
    """How the other instrument relates to this one."""


class PidinstAlternateIdentifier(Value):
    """Another identifier; `name` says which kind one of kind Other is, where that is known."""

    kind: str
    value: str
    name: str | None


class PidinstRecord(Value):
    """An instrument as PIDINST describes it."""

    schema_version: Literal["1.0"] = "1.0"
    identifier: PidinstIdentifier
    landing_page: str
    """The address of the page about the instrument."""
    name: str
    """What the instrument is called."""
    publisher: str
    """Who publishes the record."""
    publication_year: int
    owners: tuple[PidinstParty, ...]
    manufacturers: tuple[PidinstParty, ...]
    """Who made it."""
    model: PidinstTerm | None
    """The vendor's model."""
    description: None = None
    instrument_types: tuple[PidinstTerm, ...]
    """The kinds of instrument that it is."""
    measured_variables: tuple[str, ...] = ()
    """The quantities that the instrument measures."""
    measurement_techniques: tuple[str, ...] = ()
    """The techniques that the instrument is made for."""
    dates: tuple[PidinstDate, ...] = ()
    """When the instrument was taken into service, and out of it."""
    related_identifiers: tuple[PidinstRelatedIdentifier, ...]
    """The instruments that this one is part of, or consists of."""
    alternate_identifiers: tuple[PidinstAlternateIdentifier, ...] = ()


def asset_record(
    asset: Asset, model: Model | None, families: Families, parent: Asset | None, deployment: Deployment
) -> PidinstRecord:
    """Return the record of one asset; its families are taken from those given."""
    times = {PidinstDateType.COMMISSIONED: asset.commissioned_at, PidinstDateType.DE_COMMISSIONED: asset.decommissioned_at}
    return PidinstRecord(
        **_shared_fields(asset, [asset], [] if model is None else [model], families, deployment),
        landing_page=landing_page(deployment, LandingKind.ASSETS, asset.id),
        name=asset.name,
        model=PidinstTerm(name=model.name, identifier=model.part_number, identifier_type="PartNumber") if model else None,
        dates=tuple(
            PidinstDate(type=type, date=time.astimezone(UTC).date()) for type, time in times.items() if time is not None
        ),
        related_identifiers=related_identifiers([] if parent is None else [parent], PidinstRelation.IS_COMPONENT_OF),
        alternate_identifiers=alternate_identifiers(asset),
    )


def fixture_record(
    fixture: "Fixture", name: str | None, assets: Sequence[Asset], models: Models, families: Families, deployment: Deployment
) -> PidinstRecord:
    """Return the record of a fixture: what its bound assets are, together; it has no name of its own unless one is given."""
    used = [models[id] for id in (asset.model_id for asset in assets) if id is not None and id in models]
    return PidinstRecord(
        **_shared_fields(fixture, assets, used, families, deployment),
        landing_page=landing_page(deployment, LandingKind.FIXTURES, fixture.id),
        name=name or f"Fixture {fixture.id}",
        model=None,
        related_identifiers=related_identifiers(assets, PidinstRelation.HAS_COMPONENT),
    )


def _shared_fields(
    holder: "Asset | Fixture", assets: Sequence[Asset], models: Sequence[Model], families: Families, deployment: Deployment
) -> dict[str, Any]:
    identifier = PidinstIdentifier(value=f"urn:uuid:{holder.id}", scheme="URN")
    if holder.external_id is not None and holder.external_id_scheme is not None:
        identifier = PidinstIdentifier(value=holder.external_id, scheme=holder.external_id_scheme)
    family_ids = frozenset[UUID]().union(*(asset.family_ids for asset in assets))
    return {
        "identifier": identifier,
        "publisher": deployment.publisher,
        "publication_year": holder.created_at.astimezone(UTC).year,
        "owners": _distinct_parties(owner for asset in assets for owner in asset.owners),
        "manufacturers": _distinct_parties(model.manufacturer for model in models),
        "instrument_types": tuple(
            PidinstTerm(name=family.name, identifier=f"urn:baton:family:{family.id}", identifier_type="URN")
            for family in sorted((families[id] for id in family_ids if id in families), key=lambda family: family.name)
        ),
    }


def citation_of(record: PidinstRecord) -> Citation:
    """Return what a registry publishes of an instrument, as DataCite 4.6 maps the PIDINST record to its own."""
    model = record.model
    technical = [] if model is None else [f"Model: {model.name} ({model.identifier_type} {model.identifier})"]
    related = {PidinstRelation.IS_COMPONENT_OF: "IsPartOf", PidinstRelation.HAS_COMPONENT: "HasPart"}
    return Citation(
        landing_page=record.landing_page,
        resource_type="Instrument",
        title=record.name,
        publisher=record.publisher,
        publication_year=record.publication_year,
        creators=tuple(CitedParty(**dict(maker)) for maker in record.manufacturers),
        hosts=tuple(CitedParty(**dict(owner)) for owner in record.owners),
        subjects=tuple(term.name for term in record.instrument_types),
        dates=tuple(CitedDate(type="Other", date=one.date, information=one.type.capitalize()) for one in record.dates),
        related_identifiers=tuple(
            CitedRelation(**{**dict(one), "relation_type": related[one.relation_type]}, resource_type="Instrument")
            for one in record.related_identifiers
        ),
        alternate_identifiers=tuple(
            CitedIdentifier(identifier=one.value, identifier_type=one.name or one.kind)
            for one in record.alternate_identifiers
        ),
        descriptions=tuple(CitedDescription(type="TechnicalInfo", text=text) for text in technical),
    )


def exportable(record: PidinstRecord, refusal: type[Refusal], no_owner: str, no_manufacturer: str) -> PidinstRecord:
    """Return a record that is complete enough to be exported, or refuse it by what it lacks first."""
    if not record.owners:
        raise refusal(no_owner, reason="owner_missing")
    if not record.manufacturers:
        raise refusal(no_manufacturer, reason="manufacturer_missing")
    return record


def _distinct_parties(parties: Iterable[Owner | Manufacturer]) -> tuple[PidinstParty, ...]:
    """Return these institutions by name, each once."""
    first: dict[tuple[str, str], PidinstParty] = {}
    for party in parties:
        first.setdefault((party.name, party.identifier or ""), PidinstParty(**dict(party)))
    return tuple(first[key] for key in sorted(first))


def related_identifiers(assets: Iterable[Asset], relation: PidinstRelation) -> tuple[PidinstRelatedIdentifier, ...]:
    """Return the persistent identifiers of the assets that have one."""
    assigned = {(one.external_id, one.external_id_scheme) for one in assets if one.external_id and one.external_id_scheme}
    return tuple(
        PidinstRelatedIdentifier(identifier=identifier, identifier_type=scheme, relation_type=relation)
        for identifier, scheme in sorted(assigned)
    )


def alternate_identifiers(asset: Asset) -> tuple[PidinstAlternateIdentifier, ...]:
    """Return the asset's other identifiers: its serial number comes from its settings, process variables count as Other."""
    known = {(one.kind, one.value) for one in asset.alternate_identifiers}
    if (serial_number := asset.settings.get("serial_number")) not in (None, ""):
        known.add((AlternateIdentifierKind.SERIAL_NUMBER, str(serial_number)))
    renamed = {AlternateIdentifierKind.EPICS_PV: AlternateIdentifierKind.OTHER}
    emitted = sorted((renamed.get(kind, kind), value, kind if kind in renamed else "") for kind, value in known)
    return tuple(PidinstAlternateIdentifier(kind=kind, value=value, name=name or None) for kind, value, name in emitted)


class InvalidExternalIdSuffixError(Invalid, context="equipment"):
    """A suffix has letters of a to z, digits, and -._;()/:*~$= only."""


class ExternalIdAssignment(Command):
    """A command that has a persistent identifier minted for what it is about, which keeps it for good."""

    assignment: ClassVar[type[ExternalIdEvent]]
    external_id_scheme: ExternalIdScheme
    suffix: Annotated[str, Word(200)] | None = None  # The part behind the registrant's prefix.

    def refuse_second(self, holder: "Asset | Fixture") -> None:
        """Refuse to replace an identifier."""
        if holder.external_id is not None:
            detail = f"The {holder.aggregate.label} has a persistent identifier already; it keeps that one."
            assigned = {"external_id_scheme": holder.external_id_scheme, "external_id": holder.external_id}
            raise self.cannot("already_assigned", detail, **assigned)

    def mint(self, holder: "Asset | Fixture", record: PidinstRecord) -> Reads[MintedIdentifier]:
        """Have the registry issue an identifier and publish the record with it; the suffix defaults to the holder's id."""
        yield from refuse_unminted(self.external_id_scheme)
        suffix = self.suffix or str(holder.id)
        if not re.fullmatch(r"[-._;()/:*~$=a-zA-Z0-9]+", suffix):
            raise InvalidExternalIdSuffixError(
                "The suffix has characters that no registry accepts; use letters of a to z, digits, and -._;()/:*~$= only."
            )
        return (yield from ask(IdentifierPort.mint, self.external_id_scheme, suffix, citation_of(record)))

    def decide(self, holder: object, call: Call, minted: MintedIdentifier) -> Outcome:
        assigned = self.assignment(external_id_scheme=minted.scheme, external_id=minted.value)
        return [assigned, Answer(assigned.model_dump(mode="json"))]
