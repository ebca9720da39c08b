"""What an integrator needs of an asset, in one answer: families, ports, settings, enclosures, cautions and capabilities."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from baton.domain.caution.caution import CautionCategory, CautionSeverity, cautions_in_force, cautions_in_scope
from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.asset import Asset, AssetCondition, AssetLifecycle, AssetTier, asset
from baton.domain.equipment.asset_tree import AncestorWalkDepthExceededError, asset_scope
from baton.domain.equipment.family import Family
from baton.domain.equipment.values import AlternateIdentifier, Port
from baton.domain.kernel import Call, IdSet, LogPosition, Query, SortedSet, State, Value
from baton.domain.recipe.capability import capabilities_on_offer
from baton.domain.recipe.lifecycle import TemplateStatus
from baton.domain.shared.reads import Reads, find_all
from baton.domain.shared.schema import Schema
from baton.domain.shared.text import FreeText

V = TypeVar("V", bound=Value)


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
    """The hutches that count for the asset."""
    families: tuple[AssetFamilyView, ...]
    ports: tuple[Port, ...]
    settings: Mapping[str, Any]
    alternate_identifiers: tuple[AlternateIdentifier, ...]
    active_cautions: tuple[ActiveCaution, ...]
    """The cautions in force on the asset."""
    applicable_capabilities: tuple[ApplicableCapability, ...]
    """The capabilities whose affordances the asset has."""
    incomplete: bool


@asset.query(get="/{asset_id}/integration-view", returns=AssetIntegrationView, refuses=[AncestorWalkDepthExceededError])
class GetAssetIntegrationView(Query[AssetIntegrationView]):
    """An asset with its families, ports, settings, enclosures, cautions and what can be done with it."""

    min_position: LogPosition | None = None

    def answer(self, asset: Asset, call: Call) -> Reads[AssetIntegrationView]:
        scope = yield from asset_scope([asset.id])
        families = yield from find_all(Family, sorted(asset.family_ids))
        candidates = yield from cautions_in_scope(scope.bound_ids, (), ())
        cautions = cautions_in_force(candidates, scope.bound_ids, (), (), call.now, CautionSeverity.NOTICE)
        ordered = sorted(families.values(), key=lambda family: family.name)
        affordances = frozenset(one for family in ordered for one in family.affordances)
        applicable = [one for one in (yield from capabilities_on_offer()) if one.required_affordances <= affordances]
        return AssetIntegrationView(
            asset_id=asset.id,
            **{name: getattr(asset, name) for name in AssetIntegrationView.model_fields if hasattr(asset, name)},
            enclosure_ids=scope.enclosure_ids,
            families=views_of(AssetFamilyView, ordered),
            active_cautions=views_of(ActiveCaution, cautions),
            applicable_capabilities=views_of(ApplicableCapability, applicable),
            incomplete=len(families) < len(asset.family_ids),
        )


def views_of(form: type[V], states: Iterable[State]) -> tuple[V, ...]:
    """Return views of states: the first field is a state's id, each other its attribute of that name."""
    id_field, *names = form.model_fields
    return tuple(form(**{id_field: one.id, **{name: getattr(one, name) for name in names}}) for one in states)
