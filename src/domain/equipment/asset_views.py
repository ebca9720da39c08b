"""What is shown of assets: one asset, and the list."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, ClassVar, Self
from uuid import UUID

from pydantic import Field, model_validator

from baton.domain.equipment.asset import AssetCondition, AssetLifecycle, AssetTier, asset
from baton.domain.equipment.values import AlternateIdentifier, AlternateIdentifierKind, Drawing, Owner
from baton.domain.kernel import IdSet
from baton.domain.shared.listing import Hidden, NamedListQuery, Summary, Where

GetAsset = asset.get()


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


@asset.listing(AssetSummary)
class ListAssets(NamedListQuery[AssetSummary]):
    """Assets in order of registration; a parent's id lists what is right below it, and `root` those below none."""

    indexed: ClassVar[tuple[str, ...]] = ("alternate_identifiers",)
    tier: AssetTier | None = None
    lifecycle: AssetLifecycle | None = None
    condition: AssetCondition | None = None
    parent_id: UUID | None = None
    root: bool | None = None
    family_id: UUID | None = None
    model_id: UUID | None = None
    facility_code: Annotated[str, Field(min_length=1, max_length=32)] | None = None
    located_in_enclosure_id: UUID | None = None
    alternate_identifier_kind: AlternateIdentifierKind | None = None
    alternate_identifier_value: Annotated[str, Field(min_length=1, max_length=200)] | None = None

    @model_validator(mode="after")
    def _check_identifier_filter(self) -> Self:
        if (self.alternate_identifier_kind is None) != (self.alternate_identifier_value is None):
            raise ValueError("give alternate_identifier_kind and alternate_identifier_value together")
        return self

    def where(self) -> Iterator[Where]:
        yield from super().where()
        if self.root is not None:
            yield Where("parent_id", "is_null", self.root)
        if self.alternate_identifier_kind is not None:
            named = {"kind": self.alternate_identifier_kind.value, "value": self.alternate_identifier_value}
            yield Where("alternate_identifiers", "contains", [named])
