"""What an asset consists of and belongs to: families, ports, other identifiers, owners, partition rule, fixture, settings.
A stored number stands in the unit of the schema revision it was written under. Where a family has changed the unit since,
the number must be set again before anything else is written; nothing is ever converted."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from baton.domain.equipment import asset as events
from baton.domain.equipment import values
from baton.domain.equipment.asset import ASSETS, IN_SERVICE, Asset, asset
from baton.domain.equipment.family import Family, FamilyStatus
from baton.domain.equipment.fixture import Fixture
from baton.domain.equipment.model import Model
from baton.domain.equipment.mount import INSTALLED
from baton.domain.equipment.partition import PartitionRule, check_partition_rule
from baton.domain.equipment.signals import signal_entries, signal_removals
from baton.domain.equipment.values import AlternateIdentifier, Owner, check_owners
from baton.domain.kernel import Call, JudgedVerb, Outcome, Verb
from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.reads import Reads, find, find_all, holder_of, require
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.schema import check_union
from baton.domain.shared.stored_values import is_within, merge_patch, refuse_stale, units_changed
from baton.domain.shared.text import Text


@asset.command(post="/{asset_id}/add-family", allowed=IN_SERVICE)
class AddAssetFamily(JudgedVerb[Asset, Family]):
    """Say that an asset is of a further family: it gains the family's affordances and settings schema."""

    family_id: UUID

    def gather(self, asset: Asset, call: Call) -> Reads[Family]:
        return (yield from require(Family, self.family_id))

    def decide(self, asset: Asset, call: Call, family: Family) -> Outcome:
        if family.id in asset.family_ids:
            raise self.cannot("already_present", f"The asset is of family {family.name} already; nothing to add.")
        if family.status is FamilyStatus.DEPRECATED:
            detail = f"{family.name} is Deprecated and takes no new assets; choose its successor."
            raise self.cannot("family_deprecated", detail)
        return [events.AssetFamilyAdded(family_id=family.id)]


@asset.command(post="/{asset_id}/remove-family", allowed=IN_SERVICE, destructive=True)
class RemoveAssetFamily(JudgedVerb[Asset, Model | None]):
    """Say that an asset is not of a family; settings only that family declares must go with the next settings patch."""

    family_id: UUID

    def gather(self, asset: Asset, call: Call) -> Reads[Model | None]:
        return (yield from find(Model, asset.model_id))

    def decide(self, asset: Asset, call: Call, model: Model | None) -> Outcome:
        if self.family_id not in asset.family_ids:
            raise self.cannot("not_present", "The asset is not of this family; nothing to remove.")
        if model is not None and self.family_id in model.declared_family_ids:
            detail = f"The asset's model {model.name} declares this family; remove it from the model first."
            raise self.cannot("declared_by_model", detail, model_id=model.id)
        return [events.AssetFamilyRemoved(family_id=self.family_id)]


@asset.command(post="/{asset_id}/add-port", allowed=IN_SERVICE)
class AddAssetPort(Verb[Asset]):
    """Declare a place where a signal enters or leaves the asset; one that does both is two ports."""

    port_name: Annotated[str, Text(100, values.InvalidAssetPortError, "port name")]
    direction: values.PortDirection
    """Whether the signal enters (Input) or leaves (Output)."""
    signal_type: Annotated[str, Text(50, values.InvalidAssetPortError, "signal type")]

    def decide(self, asset: Asset, call: Call) -> Outcome:
        if any(port.name == self.port_name for port in asset.ports):
            raise self.cannot("already_present", f"The asset has a port {self.port_name} already; choose another name.")
        return [events.AssetPortAdded(**dict(self))]


@asset.command(post="/{asset_id}/remove-port", allowed=IN_SERVICE, destructive=True)
class RemoveAssetPort(Verb[Asset]):
    """Take a port away."""

    port_name: Annotated[str, Field(min_length=1, max_length=100)]

    def decide(self, asset: Asset, call: Call) -> Outcome:
        name = self.port_name.strip()
        if not any(port.name == name for port in asset.ports):
            raise self.cannot("not_present", f"The asset has no port {name}; read the asset for the ports it has.")
        return [events.AssetPortRemoved(port_name=name)]


@asset.command(post="/{asset_id}/add-alternate-identifier", allowed=IN_SERVICE)
class AddAssetAlternateIdentifier(AlternateIdentifier, Verb[Asset]):
    """Record another name the asset goes by, such as its process variable."""

    def decide(self, asset: Asset, call: Call) -> Outcome:
        added = AlternateIdentifier(**dict(self))
        if added in asset.alternate_identifiers:
            raise self.cannot("already_present", f"The asset has {self.kind} {self.value} already; nothing to add.")
        return [events.AssetAlternateIdentifierAdded(**dict(self)), *signal_entries([added])]


@asset.command(post="/{asset_id}/remove-alternate-identifier", allowed=IN_SERVICE, destructive=True)
class RemoveAssetAlternateIdentifier(Verb[Asset]):
    """Take another name away from the asset."""

    kind: values.AlternateIdentifierKind
    """Where the other name was used."""
    value: Annotated[str, Field(min_length=1, max_length=200)]
    """The other name, exactly as it was added."""

    def decide(self, asset: Asset, call: Call) -> Outcome:
        value = self.value.strip()
        removed = [one for one in asset.alternate_identifiers if (one.kind, one.value) == (self.kind, value)]
        if not removed:
            raise self.cannot("not_present", f"The asset has no {self.kind} {value}; read the asset for what it has.")
        return [events.AssetAlternateIdentifierRemoved(kind=self.kind, value=value), *signal_removals(removed)]


@asset.command(post="/{asset_id}/add-owner", allowed=IN_SERVICE)
class AddAssetOwner(Owner, Verb[Asset]):
    """Record an institution that owns the asset."""

    def decide(self, asset: Asset, call: Call) -> Outcome:
        check_owners([self])
        if any(owner.name == self.name for owner in asset.owners):
            raise self.cannot("already_present", f"{self.name} owns the asset already; remove that entry to change it.")
        return [events.AssetOwnerAdded(**dict(self))]


@asset.command(post="/{asset_id}/remove-owner", allowed=IN_SERVICE, destructive=True)
class RemoveAssetOwner(Verb[Asset]):
    """Take an owner away; the last one may go too."""

    name: Annotated[str, Field(min_length=1, max_length=255)]
    """What the institution is called, exactly as it was added."""

    def decide(self, asset: Asset, call: Call) -> Outcome:
        name = self.name.strip()
        if not any(owner.name == name for owner in asset.owners):
            raise self.cannot("not_present", f"{name} is no owner of the asset; read the asset for the owners it has.")
        return [events.AssetOwnerRemoved(name=name)]


@asset.command(put="/{asset_id}/partition-rule", allowed=IN_SERVICE)
class UpdateAssetPartitionRule(Verb[Asset]):
    """Make the asset a virtual axis, or with null a plain one again."""

    partition_rule: PartitionRule | None
    """How the axes share the commanded value; null makes it a plain axis again."""

    def decide(self, asset: Asset, call: Call) -> Outcome:
        if self.partition_rule is not None:
            check_partition_rule(self.partition_rule)
        if self.partition_rule == asset.partition_rule:
            return []
        return [events.AssetPartitionRuleUpdated(partition_rule=self.partition_rule)]


@asset.command(post="/{asset_id}/fixture/attach", allowed=IN_SERVICE, lock=ASSETS)
class AttachAssetToFixture(JudgedVerb[Asset, tuple[Fixture, UUID | None]]):
    """Note on the asset the fixture it is bound into; from then on it stays in its mount."""

    fixture_id: UUID

    def gather(self, asset: Asset, call: Call) -> Reads[tuple[Fixture, UUID | None]]:
        fixture = yield from require(Fixture, self.fixture_id)
        return fixture, (yield from holder_of(INSTALLED, str(asset.id)))

    def decide(self, asset: Asset, call: Call, facts: tuple[Fixture, UUID | None]) -> Outcome:
        fixture, mount_id = facts
        if asset.fixture_id is not None:
            detail = "The asset is attached to a fixture already; detach it first."
            raise self.cannot("already_attached", detail, fixture_id=asset.fixture_id)
        if all(binding.asset_id != asset.id for binding in fixture.slot_asset_bindings):
            raise self.cannot("not_in_bindings", "The fixture does not bind this asset; name the fixture that does.")
        if mount_id is None:
            raise self.cannot("not_installed", "The asset is in no mount any more; install it first.")
        return [events.AssetAttachedToFixture(fixture_id=fixture.id)]


@asset.command(post="/{asset_id}/fixture/detach", destructive=True)
class DetachAssetFromFixture(Verb[Asset]):
    """Free the asset from its fixture, named so that nobody detaches it from another."""

    fixture_id: UUID

    def decide(self, asset: Asset, call: Call) -> Outcome:
        if asset.fixture_id is None:
            raise self.cannot("not_attached", "The asset is attached to no fixture; nothing to detach.")
        if asset.fixture_id != self.fixture_id:
            detail = "The asset is attached to another fixture; name that one."
            raise self.cannot("other_fixture", detail, fixture_id=asset.fixture_id)
        return [events.AssetDetachedFromFixture(fixture_id=self.fixture_id)]


class InvalidAssetSettingsError(Invalid, context="equipment"):
    """The settings break a schema of the asset's families, or no family declares one, or a unit changed under a value."""


@asset.command(patch="/{asset_id}/settings", allowed=IN_SERVICE)
class UpdateAssetSettings(JudgedVerb[Asset, dict[UUID, Family]]):
    """Merge a patch into the settings: a value sets, null deletes, what is left out stays, objects merge."""

    settings_patch: dict[str, Any]

    def gather(self, asset: Asset, call: Call) -> Reads[dict[UUID, Family]]:
        return (yield from find_all(Family, sorted(asset.family_ids | asset.schema_revisions.keys())))

    def decide(self, asset: Asset, call: Call, families: dict[UUID, Family]) -> Outcome:
        merged = merge_patch(asset.settings, self.settings_patch)
        current = [families[id] for id in sorted(asset.family_ids) if id in families]
        restated = restated_keys(asset, families, current)
        refuse_stale(restated, self.settings_patch, InvalidAssetSettingsError)
        check_union({family.name: family.settings_schema for family in current}, merged, InvalidAssetSettingsError)
        if not restated and canonical_json(merged) == canonical_json(asset.settings):
            return []
        revisions = {family.id: family.settings_schema_revision for family in current}
        return [events.AssetSettingsUpdated(settings=merged, schema_revisions=revisions)]


def restated_keys(asset: Asset, families: Mapping[UUID, Family], current: Iterable[Family]) -> frozenset[str]:
    """Return the stored keys, as dotted paths, that are declared now in another unit than they were written in.
    Keys that no family declares any more, or that two families declare differently, are the schema check's business."""
    schemas = [family.settings_schema for family in current if family.settings_schema is not None]
    declared = {name for schema in schemas for name in schema.get("properties", {})}
    written: dict[str, tuple[str, str]] = {}
    for id, revision in asset.schema_revisions.items():
        if id in families:
            written |= families[id].units_by_revision[revision]
    now: dict[str, set[tuple[str, str]]] = {}
    for family in current:
        for path, unit in family.units_by_revision[family.settings_schema_revision].items():
            now.setdefault(path, set()).add(unit)
    undisputed = {path: next(iter(units)) for path, units in now.items() if len(units) == 1}
    before = {path: unit for path, unit in written.items() if len(now.get(path, ())) < 2}
    changed = units_changed(asset.settings, before, undisputed)
    return frozenset(path for path in changed if {} in schemas or any(is_within(path, name) for name in declared))
