"""What becomes of the files that a plan's runs leave: whether and how they are registered as datasets."""

from typing import NamedTuple
from uuid import UUID

from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_tree import affordances_of
from baton.domain.kernel import Call, JudgedVerb, Outcome
from baton.domain.recipe.lifecycle import CURRENT
from baton.domain.recipe.plan import DataRegistration, Plan, PlanDataRegistrationSet, plan
from baton.domain.shared.reads import Reads, require, require_if_given
from baton.domain.shared.refusals import Conflict
from baton.domain.supply.supply import STORAGE, Supply


class PlanDataSupplyNotStorageError(Conflict, context="recipe", reason="not_storage"):
    """Only a supply of the kind Storage keeps files."""


class PlanDataAssetNotBoundError(Conflict, context="recipe", reason="asset_not_bound"):
    """Raw data of a plan's runs is captured by an asset of the plan."""


class PlanDataAssetNotCapturingError(Conflict, context="recipe", reason="not_capturing"):
    """Raw data is captured by an asset that has the affordance Capturing."""


class DataPlaces(NamedTuple):
    """The supply that a plan would keep its files on, and what its capturing asset can do; none where it names none."""

    supply: Supply | None = None
    affordances: frozenset[Affordance] | None = None


@plan.command(post="/{plan_id}/set-data-registration", allowed=CURRENT)
class SetPlanDataRegistration(JudgedVerb[Plan, DataPlaces]):
    """Say how the files of the plan's runs become datasets at the end of each phase or, with null, that they do not."""

    data_registration: DataRegistration | None

    def gather(self, plan: Plan, call: Call) -> Reads[DataPlaces]:
        if self.data_registration is None:
            return DataPlaces()
        supply = yield from require(Supply, self.data_registration.supply_id)
        asset = yield from require_if_given(Asset, self.data_registration.capturing_asset_id)
        if asset is None:
            return DataPlaces(supply)
        return DataPlaces(supply, (yield from affordances_of([asset]))[asset.id])

    def decide(self, plan: Plan, call: Call, places: DataPlaces) -> Outcome:
        if self.data_registration == plan.data_registration:
            return []
        if places.supply is not None and places.supply.kind != STORAGE:
            detail = f"The supply is of the kind {places.supply.kind}; name one of the kind {STORAGE}."
            raise PlanDataSupplyNotStorageError(detail, facts={"kind": places.supply.kind})
        if (asset_id := self._unbound_asset(plan)) is not None:
            detail = f"The plan is not bound to asset {asset_id}; name one of its own assets."
            raise PlanDataAssetNotBoundError(detail, facts={"asset_id": str(asset_id)})
        if places.affordances is not None and Affordance.CAPTURING not in places.affordances:
            detail = "No family of this asset has the affordance Capturing; name the asset that captures the data."
            raise PlanDataAssetNotCapturingError(detail)
        return [PlanDataRegistrationSet(data_registration=self.data_registration)]

    def _unbound_asset(self, plan: Plan) -> UUID | None:
        asset_id = None if self.data_registration is None else self.data_registration.capturing_asset_id
        return None if asset_id in plan.asset_ids else asset_id
