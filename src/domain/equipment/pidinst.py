"""PIDINST: the record under which an instrument's persistent identifier is published, composed from what is stored.

Nothing here refuses; `pidinst_gap` says what a record lacks to be exported.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from baton.domain.equipment.asset import Asset
from baton.domain.equipment.family import Family
from baton.domain.equipment.model import Model
from baton.domain.equipment.values import AlternateIdentifierKind, ExternalIdScheme
from baton.domain.kernel import Value
from baton.domain.shared.citation import Citation, CitedDate, CitedIdentifier, CitedParty, CitedRelation
from baton.domain.shared.ports import Deployment

if TYPE_CHECKING:
    from baton.domain.equipment.fixture import Fixture

URN = "URN"


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


class PidinstRelation(StrEnum):
    IS_COMPONENT_OF = "IsComponentOf"
    HAS_COMPONENT = "HasComponent"


class PidinstRelatedIdentifier(Value):
    """The identifier of an instrument that this one is part of, or consists of."""

    identifier: str
    identifier_type: str
    relation_type: PidinstRelation


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
    name: str
    publisher: str
    publication_year: int
    owners: tuple[PidinstParty, ...]
    manufacturers: tuple[PidinstParty, ...]
    model: PidinstTerm | None
    description: None = None
    instrument_types: tuple[PidinstTerm, ...]
    measured_variables: tuple[str, ...] = ()
    measurement_techniques: tuple[str, ...] = ()
    dates: tuple[PidinstDate, ...] = ()
    related_identifiers: tuple[PidinstRelatedIdentifier, ...]
    alternate_identifiers: tuple[PidinstAlternateIdentifier, ...] = ()


def asset_record(
    asset: Asset, model: Model | None, families: Mapping[UUID, Family], parent: Asset | None, deployment: Deployment
) -> PidinstRecord:
    """The record of one asset; its families are taken from those given."""
    return PidinstRecord(
        identifier=identifier_of(asset.id, asset.external_id, asset.external_id_scheme),
        landing_page=asset_page(asset.id, deployment),
        name=asset.name,
        publisher=deployment.publisher,
        publication_year=asset.commissioned_at.astimezone(UTC).year,
        owners=owners_of([asset]),
        manufacturers=manufacturers_of([] if model is None else [model]),
        model=None
        if model is None
        else PidinstTerm(name=model.name, identifier=model.part_number, identifier_type="PartNumber"),
        instrument_types=instrument_types(families[id] for id in asset.family_ids if id in families),
        dates=tuple(
            PidinstDate(type=type, date=time.astimezone(UTC).date())
            for type, time in (
                (PidinstDateType.COMMISSIONED, asset.commissioned_at),
                (PidinstDateType.DE_COMMISSIONED, asset.decommissioned_at),
            )
            if time is not None
        ),
        related_identifiers=related([] if parent is None else [parent], PidinstRelation.IS_COMPONENT_OF),
        alternate_identifiers=alternate_identifiers(asset),
    )


def fixture_record(
    fixture: "Fixture",
    name: str | None,
    assets: Sequence[Asset],
    models: Mapping[UUID, Model],
    families: Mapping[UUID, Family],
    deployment: Deployment,
) -> PidinstRecord:
    """The record of a fixture: what its bound assets are, together. It has no name of its own unless one is given."""
    family_ids = frozenset[UUID]().union(*(asset.family_ids for asset in assets))
    model_ids = (asset.model_id for asset in assets if asset.model_id is not None)
    return PidinstRecord(
        identifier=identifier_of(fixture.id, fixture.external_id, fixture.external_id_scheme),
        landing_page=f"{deployment.base_url.rstrip('/')}/console/fixtures/{fixture.id}",
        name=name or f"Fixture {fixture.id}",
        publisher=deployment.publisher,
        publication_year=fixture.registered_at.astimezone(UTC).year,
        owners=owners_of(assets),
        manufacturers=manufacturers_of(models[id] for id in model_ids if id in models),
        model=None,
        instrument_types=instrument_types(families[id] for id in family_ids if id in families),
        related_identifiers=related(assets, PidinstRelation.HAS_COMPONENT),
    )


def citation_of(record: PidinstRecord) -> Citation:
    """What a registry publishes of an instrument, as the PIDINST working group maps its record to DataCite."""
    dated = {PidinstDateType.COMMISSIONED: "Available", PidinstDateType.DE_COMMISSIONED: "Withdrawn"}
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
        dates=tuple(CitedDate.model_validate({"type": dated[one.type], "date": one.date}) for one in record.dates),
        related_identifiers=tuple(
            CitedRelation(**{**dict(one), "relation_type": related[one.relation_type]}) for one in record.related_identifiers
        ),
        alternate_identifiers=tuple(
            CitedIdentifier(identifier=one.value, identifier_type=one.name or one.kind)
            for one in record.alternate_identifiers
        ),
    )


def pidinst_gap(owners: Sequence[Any], manufacturers: Sequence[Any]) -> str | None:
    """The first thing that keeps a record from being exported, as a machine cause."""
    if not owners:
        return "owner_missing"
    return None if manufacturers else "manufacturer_missing"


def identifier_of(id: UUID, external_id: str | None, scheme: ExternalIdScheme | None) -> PidinstIdentifier:
    """The persistent identifier, or the service's own as long as there is none."""
    if external_id is None or scheme is None:
        return PidinstIdentifier(value=f"urn:uuid:{id}", scheme=URN)
    return PidinstIdentifier(value=external_id, scheme=scheme)


def asset_page(asset_id: UUID, deployment: Deployment) -> str:
    """Where a reader of the record finds the asset."""
    template = deployment.landing_page_template or f"{deployment.base_url.rstrip('/')}/console/assets/{{asset_id}}"
    return template.replace("{asset_id}", str(asset_id))


def owners_of(assets: Iterable[Asset]) -> tuple[PidinstParty, ...]:
    """The owners of these assets, by name."""
    return _distinct(
        PidinstParty(name=owner.name, identifier=owner.identifier, identifier_type=owner.identifier_type)
        for asset in assets
        for owner in asset.owners
    )


def manufacturers_of(models: Iterable[Model]) -> tuple[PidinstParty, ...]:
    """The makers of these models, by name."""
    return _distinct(
        PidinstParty(
            name=model.manufacturer.name,
            identifier=model.manufacturer.identifier,
            identifier_type=model.manufacturer.identifier_type,
        )
        for model in models
    )


def _distinct(parties: Iterable[PidinstParty]) -> tuple[PidinstParty, ...]:
    first: dict[tuple[str, str], PidinstParty] = {}
    for party in parties:
        first.setdefault((party.name, party.identifier or ""), party)
    return tuple(first[key] for key in sorted(first))


def instrument_types(families: Iterable[Family]) -> tuple[PidinstTerm, ...]:
    """One type for each family, by name."""
    return tuple(
        PidinstTerm(name=family.name, identifier=f"urn:baton:family:{family.id}", identifier_type=URN)
        for family in sorted(families, key=lambda family: family.name)
    )


def related(assets: Iterable[Asset], relation: PidinstRelation) -> tuple[PidinstRelatedIdentifier, ...]:
    """The persistent identifiers of these assets, of those that have one."""
    found = (
        PidinstRelatedIdentifier(
            identifier=asset.external_id, identifier_type=asset.external_id_scheme, relation_type=relation
        )
        for asset in assets
        if asset.external_id is not None and asset.external_id_scheme is not None
    )
    return tuple(sorted(set(found), key=lambda one: one.identifier))


def alternate_identifiers(asset: Asset) -> tuple[PidinstAlternateIdentifier, ...]:
    """The asset's other identifiers; its own serial number comes from its settings, process variables count as Other."""
    known = {(one.kind, one.value) for one in asset.alternate_identifiers}
    if (serial_number := asset.settings.get("serial_number")) not in (None, ""):
        known.add((AlternateIdentifierKind.SERIAL_NUMBER, str(serial_number)))
    emitted = (
        PidinstAlternateIdentifier(kind=AlternateIdentifierKind.OTHER, value=value, name=kind)
        if kind is AlternateIdentifierKind.EPICS_PV
        else PidinstAlternateIdentifier(kind=kind, value=value, name=None)
        for kind, value in known
    )
    return tuple(sorted(emitted, key=lambda one: (one.kind, one.value, one.name or "")))
