"""Many assets whole in one answer, for clients that compare a record with a file."""

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from baton.domain.equipment import values
from baton.domain.equipment.asset import Asset, AssetCondition, AssetLifecycle, AssetTier, asset
from baton.domain.equipment.partition import PartitionRule
from baton.domain.kernel import Call, IdSet, Query, Value
from baton.domain.shared.reads import Reads, require_all

MOST_ASSETS = 500  # of one answer


class AssetContent(Value):
    """Everything an asset consists of and belongs to."""

    asset_id: UUID
    name: str
    tier: AssetTier
    parent_id: UUID | None
    facility_code: str | None
    lifecycle: AssetLifecycle
    condition: AssetCondition
    family_ids: IdSet
    settings: Mapping[str, Any]
    alternate_identifiers: tuple[values.AlternateIdentifier, ...]
    signal_limits: Mapping[str, values.SignalLimits]
    overview: values.Overview
    located_in_enclosure_id: UUID | None
    ports: tuple[values.Port, ...]
    owners: tuple[values.Owner, ...]
    model_id: UUID | None
    controller_id: UUID | None
    drawing: values.Drawing | None
    partition_rule: PartitionRule | None


class AssetContents(Value):
    """Assets in the order in which they were asked for."""

    items: tuple[AssetContent, ...]


OWN = tuple(name for name in AssetContent.model_fields if name != "asset_id")


@asset.query(post="/read", returns=AssetContents, mcp=False, refuses=[asset.NotFound])
class ReadAssets(Query[AssetContents]):
    """Up to 500 assets whole, each folded from its stream."""

    asset_ids: Annotated[tuple[UUID, ...], Field(min_length=1, max_length=MOST_ASSETS)]
    """The assets to read."""

    def answer(self, call: Call) -> Reads[AssetContents]:
        found = yield from require_all(Asset, self.asset_ids)
        items = (content_of(found[id]) for id in dict.fromkeys(self.asset_ids))
        return AssetContents.model_construct(items=tuple(items))


def content_of(asset: Asset) -> AssetContent:
    """Return everything an asset consists of."""
    return AssetContent.model_construct(asset_id=asset.id, **{name: getattr(asset, name) for name in OWN})
