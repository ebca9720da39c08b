"""What is shown of assets: one asset, the list, and all that an integrator needs of one in a single answer."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self
from uuid import UUID

from pydantic import Field, model_validator

from baton.domain.caution.banner import cautions_in_scope, in_force
from baton.domain.caution.caution import Caution, CautionCategory, CautionSeverity
from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.asset import Asset, AssetCondition, AssetLifecycle, AssetTier, asset
from baton.domain.equipment.asset_tree import AncestorWalkDepthExceededError
from baton.domain.equipment.family import Family
from baton.domain.equipment.scope import asset_scope
from baton.domain.equipment.values import AlternateIdentifier, AlternateIdentifierKind, Drawing, Owner, Port
from baton.domain.kernel import Call, IdSet, LogPosition, Query, SortedSet, Value
from baton.domain.recipe.capability import Capability, capabilities_on_offer
from baton.domain.recipe.lifecycle import TemplateStatus
from baton.domain.shared.listing import Hidden, ListQuery, Summary, Where
from baton.domain.shared.reads import Reads, every
from baton.domain.shared.schema import Schema
from baton.domain.shared.text import FreeText

asset.get()


class AssetSummary(Summary):
    asset_id: UUID
    name: str
    tier: AssetTier
    lifecycle: AssetLifecycle
    condition: AssetCondition
    parent_id: UUID | None
    facility_code: str | None
    model_id: UUID | None
    fixture_id: UUID | None
    located_in_enclosure_id: UUID | None
    external_id: str | None
    created_at: datetime
    family_ids: Hidden[IdSet]
    drawing: Hidden[Drawing | None]
    owners: Hidden[tuple[Owner, ...]]
    alternate_identifiers: Hidden[tuple[AlternateIdentifier, ...]]
    controller_id: Hidden[UUID | None]
    virtual_axis: Hidden[bool]
    commissioned_at: Hidden[datetime]
    decommissioned_at: Hidden[datetime | None]


@asset.listing(AssetSummary, essential=True)
class ListAssets(ListQuery):
    """Assets in order of registration; a parent's id lists what is right below it."""

    indexed: ClassVar[tuple[str, ...]] = ("alternate_identifiers",)
    tier: AssetTier | None = None
    lifecycle: AssetLifecycle | None = None
    condition: AssetCondition | None = None
    parent_id: UUID | None = None
    family_id: UUID | None = None
    model_id: UUID | None = None
    facility_code: Annotated[str, Field(min_length=1, max_length=32)] | None = None
    located_in_enclosure_id: UUID | None = None
    alternate_identifier_kind: AlternateIdentifierKind | None = None
    alternate_identifier_value: Annotated[str, Field(min_length=1, max_length=200)] | None = None

    @model_validator(mode="after")
    def _identifier_is_whole(self) -> Self:
        if (self.alternate_identifier_kind is None) != (self.alternate_identifier_value is None):
            raise ValueError("give alternate_identifier_kind and alternate_identifier_value together")
        return self

    def where(self) -> Iterator[Where]:
        yield from super().where()
        if self.alternate_identifier_kind is not None:
            named = {"kind": self.alternate_identifier_kind.value, "value": self.alternate_identifier_value}
            yield Where("alternate_identifiers", "contains", [named])


class AssetFamilyView(Value):
    """A family of an asset, with what it brings along."""

    family_id: UUID
    name: str
    affordances: SortedSet[Affordance]
    settings_schema: Schema | None


class ActiveCaution(Value):
    """A caution in force on the asset."""

    caution_id: UUID
    category: CautionCategory
    severity: CautionSeverity
    text: FreeText


class ApplicableCapability(Value):
    """A capability whose affordances the asset has."""

    capability_id: UUID
    code: str
    name: str
    status: TemplateStatus


class AssetIntegrationView(Value):
    """Everything needed to put an asset to use; `incomplete` when a family could not be read."""

    asset_id: UUID
    name: str
    tier: AssetTier
    lifecycle: AssetLifecycle
    condition: AssetCondition
    parent_id: UUID | None
    located_in_enclosure_id: UUID | None
    enclosure_ids: IdSet
    families: tuple[AssetFamilyView, ...]
    ports: tuple[Port, ...]
    settings: Mapping[str, Any]
    alternate_identifiers: tuple[AlternateIdentifier, ...]
    active_cautions: tuple[ActiveCaution, ...]
    applicable_capabilities: tuple[ApplicableCapability, ...]
    incomplete: bool


@asset.query(
    get="/{asset_id}/integration-view",
    returns=AssetIntegrationView,
    refuses=[AncestorWalkDepthExceededError],
    essential=True,
)
class GetAssetIntegrationView(Query):
    """An asset with its families, ports, settings, enclosures, cautions and what can be done with it."""

    min_position: LogPosition | None = None

    def answer(self, asset: Asset, call: Call) -> Reads[AssetIntegrationView]:
        scope = yield from asset_scope([asset.id])
        families = yield from every(Family, sorted(asset.family_ids))
        candidates = yield from cautions_in_scope(scope.bound_ids, (), ())
        cautions = in_force(candidates, scope.bound_ids, (), (), call.now, CautionSeverity.NOTICE)
        affordances = frozenset(one for family in families.values() for one in family.affordances)
        offered = yield from capabilities_on_offer()
        return AssetIntegrationView(
            asset_id=asset.id,
            name=asset.name,
            tier=asset.tier,
            lifecycle=asset.lifecycle,
            condition=asset.condition,
            parent_id=asset.parent_id,
            located_in_enclosure_id=asset.located_in_enclosure_id,
            enclosure_ids=scope.enclosure_ids,
            families=tuple(map(_family, sorted(families.values(), key=lambda family: family.name))),
            ports=asset.ports,
            settings=asset.settings,
            alternate_identifiers=asset.alternate_identifiers,
            active_cautions=tuple(map(_caution, cautions)),
            applicable_capabilities=tuple(_capability(one) for one in offered if one.required_affordances <= affordances),
            incomplete=len(families) < len(asset.family_ids),
        )


def _family(family: Family) -> AssetFamilyView:
    return AssetFamilyView(
        family_id=family.id, name=family.name, affordances=family.affordances, settings_schema=family.settings_schema
    )


def _caution(caution: Caution) -> ActiveCaution:
    return ActiveCaution(caution_id=caution.id, category=caution.category, severity=caution.severity, text=caution.text)


def _capability(capability: Capability) -> ApplicableCapability:
    return ApplicableCapability(
        capability_id=capability.id, code=capability.code, name=capability.name, status=capability.status
    )
