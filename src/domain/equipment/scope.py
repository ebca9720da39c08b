"""The scope of every start and resume gate: the assets some work is bound to, and everything above them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_tree import ancestors_of
from baton.domain.shared.reads import Reads, required_all


@dataclass(frozen=True)
class AssetScope:
    """Bound assets and their ancestors, whatever their lifecycle; controllers are no part of it."""

    bound_ids: frozenset[UUID]
    assets: Mapping[UUID, Asset]

    @property
    def ancestor_ids(self) -> frozenset[UUID]:
        """The assets that are in scope without being bound."""
        return frozenset(self.assets) - self.bound_ids

    @property
    def facility_codes(self) -> frozenset[str]:
        """The facilities that the roots above the bound assets belong to."""
        roots = (one for one in self.assets.values() if one.parent_id is None)
        return frozenset(root.facility_code for root in roots if root.facility_code is not None)

    @property
    def enclosure_ids(self) -> frozenset[UUID]:
        """The enclosures that assets in scope stand in."""
        return frozenset(
            one.located_in_enclosure_id for one in self.assets.values() if one.located_in_enclosure_id is not None
        )


def asset_scope(asset_ids: Iterable[UUID]) -> Reads[AssetScope]:
    """The scope of these assets, read level by level; an unknown asset is 404, a damaged tree never a smaller scope."""
    bound_ids = frozenset(asset_ids)
    yield from required_all(Asset, bound_ids)
    assets = yield from ancestors_of(bound_ids)
    return AssetScope(bound_ids, assets)
