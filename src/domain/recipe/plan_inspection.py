"""The inspection of a binding: what a practice would lack on these assets, and which others could provide it."""

from collections.abc import Sequence
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any, ClassVar, Self
from uuid import UUID

from pydantic import Field

from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.asset import Asset, AssetCondition, AssetLifecycle
from baton.domain.equipment.asset_views import ListAssets
from baton.domain.equipment.family import Family, ListFamilies
from baton.domain.kernel import Call, IdSet, LogPosition, Query, SortedSet, Value
from baton.domain.recipe.capability import Capability
from baton.domain.recipe.method import Method
from baton.domain.recipe.plan import AssetIds, PlanAssetsRequiredError, binding_of, check_assets_given, plan
from baton.domain.recipe.practice import Practice
from baton.domain.shared.listing import ListQuery, Page, Where
from baton.domain.shared.reads import Reads, Rows, find_all

MOST_CANDIDATES = 100  # Assets shown for one affordance, as many as on the longest page of a list.


class BindingStatus(StrEnum):
    SATISFIED = "Satisfied"
    MISSING_FAMILIES = "MissingFamilies"
    MISSING_AFFORDANCES = "MissingAffordances"


class InspectedAsset(Value):
    """An asset as an inspection shows it."""

    asset_id: UUID
    asset_name: str
    """What the asset is called."""
    condition: AssetCondition
    lifecycle: AssetLifecycle

    @classmethod
    def show(cls, asset: Asset, **own: Any) -> Self:
        return cls(asset_id=asset.id, asset_name=asset.name, condition=asset.condition, lifecycle=asset.lifecycle, **own)


class WiredAsset(InspectedAsset):
    """An asset that was named, and what it brings along."""

    family_ids: IdSet
    contributed_affordances: SortedSet[Affordance]
    """What the asset lets one do."""


class AffordanceCandidate(InspectedAsset):
    """Another asset that has an affordance, and the families it has it by."""

    contributing_family_ids: IdSet
    """The families that the asset has the affordance by."""


class AffordanceCandidates(Value):
    """What could provide one affordance, ascending by id; of more assets than are ever shown, the first."""

    affordance: Affordance
    candidates: Annotated[tuple[AffordanceCandidate, ...], Field(max_length=MOST_CANDIDATES)]
    """The assets that could provide it."""


class PlanBinding(Value):
    """How far a practice is covered by these assets; the needed families include those of the practice."""

    practice_id: UUID
    method_id: UUID
    capability_id: UUID
    method_needed_family_ids: IdSet
    """The families that the method and the practice need."""
    capability_required_affordances: SortedSet[Affordance]
    """What equipment must let one do for the capability."""
    wired_assets: tuple[WiredAsset, ...]
    """The assets that were named, and what each brings along."""
    missing_family_ids: tuple[UUID, ...]
    """The families that none of the assets is of."""
    missing_affordances: tuple[Affordance, ...]
    """What none of the assets lets one do."""
    missing_affordance_candidates: tuple[AffordanceCandidates, ...]
    """For each missing affordance, the assets that could provide it."""
    binding_status: BindingStatus
    """Whether the assets have all that the practice needs."""


REFUSALS = [*(kind.aggregate.NotFound for kind in (Practice, Method, Asset, Capability, Family)), PlanAssetsRequiredError]


@plan.query(post="/inspect-binding", returns=PlanBinding, refuses=REFUSALS)
class InspectPlanBinding(Query[PlanBinding]):
    """What a plan of this practice on these assets would lack, and who could provide it; nothing is written."""

    reads_projections: ClassVar[bool] = True
    practice_id: UUID
    """The practice that a plan would bind to equipment."""
    asset_ids: AssetIds
    """The assets that a plan would use."""
    min_position: LogPosition | None = None

    def answer(self, call: Call) -> Reads[PlanBinding]:
        binding = yield from binding_of(self.practice_id, self.asset_ids)
        check_assets_given(self.asset_ids)
        status = BindingStatus.MISSING_AFFORDANCES if binding.missing_affordances else BindingStatus.SATISFIED
        return PlanBinding(
            practice_id=binding.practice.id,
            method_id=binding.method.id,
            capability_id=binding.capability.id,
            method_needed_family_ids=binding.needed_family_ids,
            capability_required_affordances=binding.capability.required_affordances,
            wired_assets=tuple(
                WiredAsset.show(asset, family_ids=asset.family_ids, contributed_affordances=binding.affordances[asset.id])
                for _, asset in sorted(binding.assets.items())
            ),
            missing_family_ids=binding.missing_family_ids,
            missing_affordances=binding.missing_affordances,
            missing_affordance_candidates=(yield from candidates_for(binding.missing_affordances, self.asset_ids)),
            binding_status=BindingStatus.MISSING_FAMILIES if binding.missing_family_ids else status,
        )


def candidates_for(affordances: Sequence[Affordance], asset_ids: IdSet) -> Reads[tuple[AffordanceCandidates, ...]]:
    """Return for each affordance the other assets of a family with it, ascending by id, whatever their state."""
    if not affordances:
        return ()
    families = yield from rows_of(ListFamilies(limit=100), Where("affordances", "has_any", affordances))
    family_ids = tuple(sorted(row.family_id for row in families))
    rows = (yield from rows_of(ListAssets(limit=100), Where("family_ids", "has_any", family_ids))) if family_ids else []
    others = yield from find_all(Asset, sorted({row.asset_id for row in rows} - asset_ids))
    listed = []
    for affordance in affordances:
        providing = frozenset(row.family_id for row in families if affordance in row.affordances)
        candidates = (
            AffordanceCandidate.show(asset, contributing_family_ids=contributing)
            for asset in others.values()
            if (contributing := asset.family_ids & providing)
        )
        listed.append(AffordanceCandidates(affordance=affordance, candidates=tuple(islice(candidates, MOST_CANDIDATES))))
    return tuple(listed)


def rows_of(query: ListQuery, *conditions: Where) -> Reads[list[Any]]:
    """Return every row of a list, read page by page."""
    rows: list[object] = []
    while True:
        page: Page[object] = yield Rows(query.summary, query, (*query.where(), *conditions))
        rows += page.items
        if page.next_cursor is None:
            return rows
        query = query.model_copy(update={"cursor": page.next_cursor})
