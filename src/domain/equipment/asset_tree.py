"""The tree of assets: registration, relocation and retirement in it, what is above and below an asset, and gate scopes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, NamedTuple, Self
from uuid import UUID

from pydantic import Field, model_validator

from baton.domain.enclosure.enclosure import Enclosure
from baton.domain.equipment import asset as assets
from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.asset import ASSETS, DECOMMISSIONED, IN_SERVICE, Asset, AssetName, AssetTier, asset
from baton.domain.equipment.family import Family, FamilyStatus
from baton.domain.equipment.model import Model
from baton.domain.equipment.mount import INSTALLED
from baton.domain.equipment.signals import signal_entries, signal_removals
from baton.domain.equipment.values import AlternateIdentifier, Drawing, InvalidAlternateIdentifierError, Owner, check_owners
from baton.domain.kernel import Call, IdSet, JudgedCreation, JudgedVerb, LogPosition, Outcome, Query, Value, omittable
from baton.domain.shared.identifiers import FacilityCode, check_facility_code, require_facility
from baton.domain.shared.reads import (
    Descendants,
    Reads,
    find_all,
    holder_of,
    members_of,
    require,
    require_all,
    require_if_given,
)
from baton.domain.shared.refusals import Invalid, NotFound, Refusal, Unprocessable
from baton.domain.shared.text import Reason
from baton.domain.shared.writes import Delist, Enlist

CHILDREN = "asset-child"  # Look-up kind: the assets right below one asset.
MAX_DEPTH = 50  # How deep an asset may stand; a root stands at 0.


class AssetParentNotFoundError(NotFound, context="equipment"):
    """The parent asset does not exist."""


class AssetFacilityNotFoundError(NotFound, context="equipment"):
    """No facility has this code."""


class InvalidAssetParentError(Invalid, context="equipment"):
    """An asset has a parent, or it is a root of one facility: exactly one of both."""


class AncestorWalkDepthExceededError(Refusal, context="equipment"):
    """The tree of assets is damaged: a chain of parents is too long, goes in a circle or ends nowhere."""

    status = 500


class NotABeamlineError(Unprocessable, context="operation", reason="not_a_root"):
    """Only a root of the asset tree is a beamline, which has a queue and can be asked what is going on there."""


def ancestors_of(ids: Iterable[UUID]) -> Reads[dict[UUID, Asset]]:
    """Return these assets and everything above them, themselves first, then level by level; absent ids are left out.
    Gates rest on this, so a damaged chain is an error and never a shorter answer."""
    found: dict[UUID, Asset] = {}
    level = yield from find_all(Asset, ids)
    start = tuple(level)
    for _ in range(MAX_DEPTH + 1):
        found |= level
        above = dict.fromkeys(one.parent_id for one in level.values() if one.parent_id and one.parent_id not in found)
        if not above:
            break
        level = yield from find_all(Asset, above)
        if missing := [id for id in above if id not in level]:
            raise _damaged_record_error("ends nowhere", missing[0])
    for id in start:
        ancestor_chain(found, id)
    return found


def ancestor_chain(found: Mapping[UUID, Asset], id: UUID) -> tuple[Asset, ...]:
    """Return an asset and its ancestors in order, out of what `ancestors_of` found."""
    links = [found[id]]
    while (parent_id := links[-1].parent_id) is not None:
        if len(links) > MAX_DEPTH or parent_id not in found:
            raise _damaged_record_error("is longer than the tree may be deep, or goes in a circle", id)
        links.append(found[parent_id])
    return tuple(links)


def _damaged_record_error(how: str, id: UUID) -> AncestorWalkDepthExceededError:
    detail = f"The chain of parents at asset {id} {how}; the record is damaged, call an administrator."
    return AncestorWalkDepthExceededError(detail, facts={"asset_id": id})


def levels_below(id: UUID, max_depth: int = MAX_DEPTH) -> Reads[tuple[tuple[UUID, ...], ...]]:
    """Return the ids below an asset, level by level down to `max_depth` levels, ascending in each."""
    levels: tuple[tuple[UUID, ...], ...] = yield Descendants(CHILDREN, id, max_depth)
    return levels


def load_root_scope(root: Asset) -> Reads["AssetScope"]:
    """Return a root and everything below it as the scope of a gate."""
    ids = frozenset({root.id, *(id for level in (yield from levels_below(root.id)) for id in level)})
    return AssetScope(ids, (yield from find_all(Asset, ids)))


def refuse_part(asset: Asset, advice: str = "ask for that root") -> Reads[None]:
    """Refuse an asset that is a part of another one, and name the root."""
    if (refusal := (yield from refusal_of_part(asset, advice))) is not None:
        raise refusal


def refusal_of_part(asset: Asset, advice: str) -> Reads[NotABeamlineError | None]:
    """Return the refusal of an asset that is a part of another one, with the name of the root; None for a root."""
    if asset.parent_id is None:
        return None
    root = ancestor_chain((yield from ancestors_of([asset.id])), asset.id)[-1]
    detail = f"{asset.name} is a part of {root.name}; {advice}, {root.id}."
    return NotABeamlineError(detail, facts={"root_asset_id": root.id, "name": root.name})


def related_asset_ids(id: UUID) -> Reads[frozenset[UUID]]:
    """Return an asset, everything below it and everything it is a part of; an unknown asset is 404."""
    yield from require(Asset, id)
    above = yield from ancestors_of([id])
    return frozenset(above).union(*(yield from levels_below(id)))


def affordances_of(assets: Iterable[Asset]) -> Reads[dict[UUID, frozenset[Affordance]]]:
    """Return what each asset can do: the affordances of all its families together, deprecated ones included."""
    wanted = tuple(assets)
    families = yield from find_all(Family, sorted(frozenset[UUID]().union(*(one.family_ids for one in wanted))))
    return {
        one.id: frozenset[Affordance]().union(*(families[id].affordances for id in one.family_ids if id in families))
        for one in wanted
    }


@dataclass(frozen=True)
class AssetScope:
    """Bound assets and their ancestors, whatever their lifecycle; controllers are no part of it."""

    bound_ids: frozenset[UUID]
    assets: Mapping[UUID, Asset]

    @property
    def ancestor_ids(self) -> frozenset[UUID]:
        """Return the assets that are in scope without being bound."""
        return frozenset(self.assets) - self.bound_ids

    @property
    def facility_codes(self) -> frozenset[str]:
        """Return the facilities that the roots above the bound assets belong to."""
        roots = (one for one in self.assets.values() if one.parent_id is None)
        return frozenset(root.facility_code for root in roots if root.facility_code is not None)

    @property
    def enclosure_ids(self) -> frozenset[UUID]:
        """Return the enclosures that assets in scope stand in."""
        located = (one.located_in_enclosure_id for one in self.assets.values())
        return frozenset(id for id in located if id is not None)


def asset_scope(asset_ids: Iterable[UUID]) -> Reads[AssetScope]:
    """Return the scope of these assets for a gate; an unknown asset is 404, a damaged tree never a smaller scope."""
    bound_ids = frozenset(asset_ids)
    yield from require_all(Asset, bound_ids)
    return AssetScope(bound_ids, (yield from ancestors_of(bound_ids)))


class RegistrationFacts(NamedTuple):
    """What a registration refers to."""

    depth: int
    parent: Asset | None
    families: Mapping[UUID, Family]
    model: Model | None


@asset.creation(refuses=[Model.aggregate.NotFound, Enclosure.aggregate.NotFound], lock=ASSETS)
class RegisterAsset(JudgedCreation[RegistrationFacts]):
    """Register a piece of equipment: a root of a facility, or a part of another asset."""

    name: AssetName
    """What people call the asset, such as Rotation stage."""
    tier: AssetTier
    parent_id: UUID | None = None
    """The asset that this one is part of; none for the root of a facility."""
    facility_code: FacilityCode | None = None
    family_ids: Annotated[IdSet, Field(max_length=1000)] = frozenset()
    model_id: UUID | None = None
    controller_id: UUID | None = None
    located_in_enclosure_id: UUID | None = None
    drawing: Drawing | None = None
    alternate_identifiers: Annotated[tuple[AlternateIdentifier, ...], Field(max_length=1000)] = ()
    """Other names; one of kind EPICS_PV makes the asset own that process variable."""
    owners: Annotated[tuple[Owner, ...], Field(max_length=1000)] = ()

    def gather(self, call: Call) -> Reads[RegistrationFacts]:
        parent = yield from require_if_given(Asset, self.parent_id, AssetParentNotFoundError)
        depth = 0 if parent is None else len((yield from ancestors_of([parent.id])))
        if self.facility_code is not None:
            yield from require_facility(self.facility_code, AssetFacilityNotFoundError)
        families = yield from require_all(Family, self.family_ids)
        model = yield from require_if_given(Model, self.model_id)
        yield from require_if_given(Enclosure, self.located_in_enclosure_id)
        return RegistrationFacts(depth, parent, families, model)

    def decide(self, call: Call, facts: RegistrationFacts) -> Outcome:
        self.check_values()
        depth, parent, families, model = facts
        if parent is not None and parent.lifecycle is DECOMMISSIONED:
            raise self.cannot("parent_decommissioned", "The parent asset is Decommissioned; name one that is in service.")
        if depth > MAX_DEPTH:
            detail = f"The asset would stand {depth} levels deep; the tree has {MAX_DEPTH} at most."
            raise self.cannot("too_deep", detail, depth=depth)
        if deprecated := [id for id, family in families.items() if family.status is FamilyStatus.DEPRECATED]:
            detail = "A family is Deprecated and takes no new assets; choose its successor."
            raise self.cannot("family_deprecated", detail, family_ids=deprecated)
        derived = {
            "family_ids": self.family_ids if model is None else self.family_ids | model.declared_family_ids,
            "alternate_identifiers": assets.by_kind_and_value(self.alternate_identifiers),
            "owners": assets.by_name(self.owners),
        }
        enlisted = [] if parent is None else [Enlist(CHILDREN, str(parent.id))]
        return [assets.AssetRegistered(**{**dict(self), **derived}), *enlisted, *signal_entries(self.alternate_identifiers)]

    def check_values(self) -> None:
        """Refuse values that are wrong whatever is on record."""
        if (self.parent_id is None) == (self.facility_code is None):
            raise InvalidAssetParentError(
                "An asset hangs below a parent or is a root of a facility; give exactly one of parent_id and facility_code.",
                reason="two_anchors" if self.parent_id else "no_anchor",
            )
        if self.facility_code is not None:
            check_facility_code(self.facility_code)
        if len(set(self.alternate_identifiers)) < len(self.alternate_identifiers):
            detail = "An alternate identifier is given twice; give each kind and value once."
            raise InvalidAlternateIdentifierError(detail, reason="duplicate")
        check_owners(self.owners)


class Destination(NamedTuple):
    """Where an asset is to be moved, and how many levels are below it."""

    parent: Asset
    ancestors: Mapping[UUID, Asset]
    height: int


@asset.command(post="/{asset_id}/relocate", allowed=IN_SERVICE, refuses=[Enclosure.aggregate.NotFound], lock=ASSETS)
class RelocateAsset(JudgedVerb[Asset, Destination | None]):
    """Move an asset, with everything below it, under another parent, into another enclosure, or both.

    A key left out keeps what is; a null enclosure clears it.
    """

    to_parent_id: UUID = omittable()
    located_in_enclosure_id: UUID | None = omittable()
    reason: Reason

    @model_validator(mode="after")
    def _check_place_given(self) -> Self:
        if not self.model_fields_set & {"to_parent_id", "located_in_enclosure_id"}:
            raise ValueError("give to_parent_id, located_in_enclosure_id or both")
        return self

    def gather(self, asset: Asset, call: Call) -> Reads[Destination | None]:
        destination = (yield from self.destination(asset)) if "to_parent_id" in self.model_fields_set else None
        yield from require_if_given(Enclosure, self.located_in_enclosure_id)
        return destination

    def destination(self, asset: Asset) -> Reads[Destination]:
        """Return the new parent, what is above it, and how many levels the asset brings along."""
        parent = yield from require(Asset, self.to_parent_id, AssetParentNotFoundError)
        if asset.parent_id in (None, parent.id):
            return Destination(parent, {}, 0)
        ancestors = yield from ancestors_of([parent.id])
        levels = () if asset.id in ancestors else (yield from levels_below(asset.id))
        return Destination(parent, ancestors, len(levels))

    def decide(self, asset: Asset, call: Call, destination: Destination | None) -> Outcome:
        if destination is not None:
            self.check_destination(asset, destination)
        to_parent_id = asset.parent_id if destination is None else destination.parent.id
        moves = "located_in_enclosure_id" in self.model_fields_set
        to_enclosure_id = self.located_in_enclosure_id if moves else asset.located_in_enclosure_id
        if (to_parent_id, to_enclosure_id) == (asset.parent_id, asset.located_in_enclosure_id):
            raise self.cannot("no_change", "The asset is there already; name another parent or enclosure.")
        if destination is not None and destination.parent.lifecycle is DECOMMISSIONED:
            raise self.cannot("parent_decommissioned", "The new parent is Decommissioned; name one that is in service.")
        origin = {"from_parent_id": asset.parent_id, "from_enclosure_id": asset.located_in_enclosure_id}
        goal = {"to_parent_id": to_parent_id, "to_enclosure_id": to_enclosure_id}
        relocated = assets.AssetRelocated(**origin, **goal, reason=self.reason)
        if to_parent_id == asset.parent_id:
            return [relocated]
        return [relocated, Delist(CHILDREN, str(asset.parent_id)), Enlist(CHILDREN, str(to_parent_id))]

    def check_destination(self, asset: Asset, destination: Destination) -> None:
        """Refuse a parent under which the tree would be no tree, or too deep."""
        if asset.parent_id is None:
            raise self.cannot("root_has_no_parent", "A root stays a root of its facility; only its enclosure can change.")
        if destination.parent.id == asset.id:
            raise self.cannot("self_parent", "An asset cannot be its own parent; name another one.")
        if asset.id in destination.ancestors:
            raise self.cannot("cycle", "The new parent is below this asset; move it out from there first.")
        deepest = len(destination.ancestors) + destination.height
        if deepest > MAX_DEPTH:
            detail = f"An asset would stand {deepest} levels deep; the tree has {MAX_DEPTH} at most."
            raise self.cannot("too_deep", detail, depth=deepest)


@asset.command(
    post="/{asset_id}/decommission", allowed=IN_SERVICE, state_reason="already_decommissioned", lock=ASSETS, destructive=True
)
class DecommissionAsset(JudgedVerb[Asset, tuple[UUID | None, list[UUID]]]):
    """Retire an asset for good: detach it from its fixture, uninstall it, retire its parts, then this."""

    def gather(self, asset: Asset, call: Call) -> Reads[tuple[UUID | None, list[UUID]]]:
        mount_id = yield from holder_of(INSTALLED, str(asset.id))
        children = yield from find_all(Asset, (yield from members_of(CHILDREN, asset.id)))
        return mount_id, sorted(id for id, child in children.items() if child.lifecycle is not DECOMMISSIONED)

    def decide(self, asset: Asset, call: Call, facts: tuple[UUID | None, list[UUID]]) -> Outcome:
        mount_id, children = facts
        if asset.fixture_id is not None:
            detail = "The asset is attached to a fixture; detach it first."
            raise self.cannot("fixture_bound", detail, fixture_id=asset.fixture_id)
        if mount_id is not None:
            raise self.cannot("installed", "The asset is installed in a mount; uninstall it first.", mount_id=mount_id)
        if children:
            detail = "Assets below this one are in service; decommission or relocate them first."
            raise self.cannot("active_children", detail, asset_ids=children)
        return [assets.AssetDecommissioned(), *signal_removals(asset.alternate_identifiers)]


class TreeDirection(StrEnum):
    DESCENDANTS = "descendants"
    ANCESTORS = "ancestors"


class AssetNode(Value):
    """One asset of a tree; the asset asked about stands at depth 0."""

    asset_id: UUID
    name: str
    tier: AssetTier
    lifecycle: assets.AssetLifecycle
    condition: assets.AssetCondition
    parent_id: UUID | None
    depth: int
    """Number of levels between the asset asked about and this one."""
    located_in_enclosure_id: UUID | None


class AssetTree(Value):
    """Assets around one asset, by depth and then by id."""

    asset_id: UUID
    direction: TreeDirection
    """Whether the tree goes down (descendants) or up (ancestors)."""
    nodes: tuple[AssetNode, ...]


@asset.query(get="/{asset_id}/tree", returns=AssetTree, refuses=[AncestorWalkDepthExceededError])
class GetAssetTree(Query[AssetTree]):
    """What is below an asset, or above it, read from the streams themselves."""

    direction: TreeDirection = TreeDirection.DESCENDANTS
    """Whether to go down (descendants) or up (ancestors)."""
    max_depth: Annotated[int, Field(ge=1, le=MAX_DEPTH)] = MAX_DEPTH
    min_position: LogPosition | None = None

    def answer(self, asset: Asset, call: Call) -> Reads[AssetTree]:
        levels: list[tuple[UUID, ...]]
        if self.direction is TreeDirection.ANCESTORS:
            found = yield from ancestors_of([asset.id])
            levels = [(one.id,) for one in ancestor_chain(found, asset.id)[: self.max_depth + 1]]
        else:
            levels = [(asset.id,), *(yield from levels_below(asset.id, self.max_depth))]
            found = yield from find_all(Asset, (id for level in levels for id in level))
        copied = AssetNode.model_fields.keys() - {"asset_id", "depth"}
        nodes = tuple(
            AssetNode(asset_id=id, depth=depth, **{name: getattr(found[id], name) for name in copied})
            for depth, level in enumerate(levels)
            for id in level
        )
        return AssetTree(asset_id=asset.id, direction=self.direction, nodes=nodes)
