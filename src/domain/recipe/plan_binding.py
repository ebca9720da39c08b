"""The binding of a plan: whether its assets cover what its practice, its method and their capability need.

Only the plan's own assets count, not those above or below them. The cover is judged once, when the plan is defined.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from uuid import UUID

from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.asset import DECOMMISSIONED, Asset
from baton.domain.equipment.asset_tree import affordances_of
from baton.domain.equipment.family import Family
from baton.domain.recipe.capability import Capability
from baton.domain.recipe.lifecycle import DEPRECATED
from baton.domain.recipe.method import Method
from baton.domain.recipe.practice import Practice
from baton.domain.shared.reads import Reads, required, required_all
from baton.domain.shared.refusals import Conflict


@dataclass(frozen=True)
class Binding:
    """A practice and the assets it is, or would be, bound to."""

    practice: Practice
    method: Method
    capability: Capability
    assets: Mapping[UUID, Asset]
    needed_family_ids: frozenset[UUID]  # The families that the method or the practice asks for.
    families: Mapping[UUID, Family]  # Those families, and all families of the assets.
    affordances: Mapping[UUID, frozenset[Affordance]]  # What each asset can do, by all its families together.

    @property
    def missing_family_ids(self) -> tuple[UUID, ...]:
        return missing_families(self.needed_family_ids, self.assets.values())

    @property
    def missing_affordances(self) -> tuple[Affordance, ...]:
        """What no asset can do; it does not matter which asset or family contributes what."""
        found = frozenset[Affordance]().union(*self.affordances.values())
        return tuple(sorted(self.capability.required_affordances - found))


def binding_of(practice_id: UUID, asset_ids: Iterable[UUID]) -> Reads[Binding]:
    """Return a practice with all that it needs, and assets with their families; refuse with 404 what is missing."""
    practice = yield from required(Practice, practice_id)
    method = yield from required(Method, practice.method_id)
    assets = yield from required_all(Asset, asset_ids)
    capability = yield from required(Capability, method.capability_id)
    needed = method.needed_family_ids | practice.family_ids
    families = yield from required_all(Family, needed.union(*(asset.family_ids for asset in assets.values())))
    affordances = yield from affordances_of(assets.values())
    return Binding(practice, method, capability, assets, needed, families, affordances)


def missing_families(needed: AbstractSet[UUID], assets: Iterable[Asset]) -> tuple[UUID, ...]:
    """Return the needed families that none of the assets is of, ascending."""
    return tuple(sorted(needed - frozenset[UUID]().union(*(asset.family_ids for asset in assets))))


class PlanBoundPracticeDeprecatedError(Conflict, context="recipe", reason="practice_deprecated"):
    """The practice is Deprecated and takes no new plans."""


class PlanBoundMethodDeprecatedError(Conflict, context="recipe", reason="method_deprecated"):
    """The practice's method is Deprecated and takes no new plans."""


class PlanAssetDecommissionedError(Conflict, context="recipe", reason="asset_decommissioned"):
    """An asset of the plan is Decommissioned."""


class PlanFamiliesNotSatisfiedError(Conflict, context="recipe", reason="families_missing"):
    """No asset of the plan is of a family that the method or the practice needs."""


class PlanAffordancesNotSatisfiedError(Conflict, context="recipe", reason="affordances_missing"):
    """No asset of the plan has an affordance that the capability requires."""


def check_binding(binding: Binding) -> None:
    """Refuse a binding that no plan may be made of."""
    if binding.practice.status is DEPRECATED:
        raise PlanBoundPracticeDeprecatedError(
            f"The practice {binding.practice.name} is Deprecated and takes no new plans; name its successor.",
            facts={"practice_id": str(binding.practice.id)},
        )
    if binding.method.status is DEPRECATED:
        raise PlanBoundMethodDeprecatedError(
            f"The method {binding.method.name} is Deprecated and takes no new plans; name a practice of its successor.",
            facts={"method_id": str(binding.method.id)},
        )
    if retired := [asset for asset in binding.assets.values() if asset.lifecycle is DECOMMISSIONED]:
        raise PlanAssetDecommissionedError(
            f"{', '.join(asset.name for asset in retired)} cannot be planned with, being Decommissioned; "
            "bind assets that are in service.",
            facts={"asset_ids": sorted(str(asset.id) for asset in retired)},
        )
    if family_ids := binding.missing_family_ids:
        names = ", ".join(binding.families[id].name for id in family_ids)
        raise PlanFamiliesNotSatisfiedError(
            f"No asset of the plan is of these families, which are needed: {names}; bind one of each.",
            facts={"missing_family_ids": [str(id) for id in family_ids]},
        )
    if affordances := [affordance.value for affordance in binding.missing_affordances]:
        raise PlanAffordancesNotSatisfiedError(
            f"No asset of the plan is {', '.join(affordances)}, which {binding.capability.code} requires; "
            "bind one that is, inspect_plan_binding names candidates.",
            facts={"missing_affordances": affordances},
        )
