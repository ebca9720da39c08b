"""What an asset consists of and belongs to: families, ports, other identifiers, owners, partition rule, fixture."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from baton.domain.equipment.asset import (
    IN_SERVICE,
    TREE_LOCK,
    Asset,
    AssetAlternateIdentifierAdded,
    AssetAlternateIdentifierRemoved,
    AssetAttachedToFixture,
    AssetDetachedFromFixture,
    AssetFamilyAdded,
    AssetFamilyRemoved,
    AssetOwnerAdded,
    AssetOwnerRemoved,
    AssetPartitionRuleUpdated,
    AssetPortAdded,
    AssetPortRemoved,
    asset,
)
from baton.domain.equipment.family import Family, FamilyStatus
from baton.domain.equipment.fixture import Fixture
from baton.domain.equipment.model import Model
from baton.domain.equipment.mount import INSTALLED
from baton.domain.equipment.partition import PartitionRule, check_partition_rule
from baton.domain.equipment.values import (
    AlternateIdentifier,
    AlternateIdentifierKind,
    InvalidAssetPortError,
    Owner,
    PortDirection,
    check_owner,
)
from baton.domain.kernel import Call, JudgedVerb, Outcome, Verb
from baton.domain.shared.reads import Reads, existing, holder_of, required
from baton.domain.shared.text import Text


@asset.command(post="/{asset_id}/add-family", allowed=IN_SERVICE)
class AddAssetFamily(JudgedVerb[Asset, Family]):
    """Say that an asset is of a further family: it gains the family's affordances and settings schema."""

    family_id: UUID

    def gather(self, asset: Asset, call: Call) -> Reads[Family]:
        return (yield from required(Family, self.family_id))

    def decide(self, asset: Asset, call: Call, family: Family) -> Outcome:
        if family.id in asset.family_ids:
            raise self.cannot("already_present", f"The asset is of family {family.name} already; nothing to add.")
        if family.status is FamilyStatus.DEPRECATED:
            raise self.cannot(
                "family_deprecated", f"{family.name} is Deprecated and takes no new assets; choose its successor."
            )
        return [AssetFamilyAdded(family_id=family.id)]


@asset.command(post="/{asset_id}/remove-family", allowed=IN_SERVICE, destructive=True)
class RemoveAssetFamily(JudgedVerb[Asset, Model | None]):
    """Say that an asset is not of a family; settings only that family declares must go with the next settings patch."""

    family_id: UUID

    def gather(self, asset: Asset, call: Call) -> Reads[Model | None]:
        return (yield from existing(Model, asset.model_id))

    def decide(self, asset: Asset, call: Call, model: Model | None) -> Outcome:
        if self.family_id not in asset.family_ids:
            raise self.cannot("not_present", "The asset is not of this family; nothing to remove.")
        if model is not None and self.family_id in model.declared_family_ids:
            raise self.cannot(
                "declared_by_model",
                f"The asset's model {model.name} declares this family; remove it from the model first.",
                model_id=str(model.id),
            )
        return [AssetFamilyRemoved(family_id=self.family_id)]


@asset.command(post="/{asset_id}/add-port", allowed=IN_SERVICE)
class AddAssetPort(Verb[Asset]):
    """Declare a place where a signal enters or leaves the asset; one that does both is two ports."""

    port_name: Annotated[str, Text(100, InvalidAssetPortError, "port name")]
    direction: PortDirection
    signal_type: Annotated[str, Text(50, InvalidAssetPortError, "signal type")]

    def decide(self, asset: Asset, call: Call) -> Outcome:
        if any(port.name == self.port_name for port in asset.ports):
            raise self.cannot("already_present", f"The asset has a port {self.port_name} already; choose another name.")
        return [AssetPortAdded(**dict(self))]


@asset.command(post="/{asset_id}/remove-port", allowed=IN_SERVICE, destructive=True)
class RemoveAssetPort(Verb[Asset]):
    """Take a port away."""

    port_name: Annotated[str, Field(min_length=1, max_length=100)]

    def decide(self, asset: Asset, call: Call) -> Outcome:
        name = self.port_name.strip()
        if not any(port.name == name for port in asset.ports):
            raise self.cannot("not_present", f"The asset has no port {name}; read the asset for the ports it has.")
        return [AssetPortRemoved(port_name=name)]


@asset.command(post="/{asset_id}/add-alternate-identifier", allowed=IN_SERVICE)
class AddAssetAlternateIdentifier(AlternateIdentifier, Verb[Asset]):
    """Record another name the asset goes by, such as its process variable."""

    def decide(self, asset: Asset, call: Call) -> Outcome:
        if AlternateIdentifier(**dict(self)) in asset.alternate_identifiers:
            raise self.cannot("already_present", f"The asset has {self.kind} {self.value} already; nothing to add.")
        return [AssetAlternateIdentifierAdded(**dict(self))]


@asset.command(post="/{asset_id}/remove-alternate-identifier", allowed=IN_SERVICE, destructive=True)
class RemoveAssetAlternateIdentifier(Verb[Asset]):
    """Take another name away from the asset."""

    kind: AlternateIdentifierKind
    value: Annotated[str, Field(min_length=1, max_length=200)]

    def decide(self, asset: Asset, call: Call) -> Outcome:
        value = self.value.strip()
        if (self.kind, value) not in {(one.kind, one.value) for one in asset.alternate_identifiers}:
            raise self.cannot("not_present", f"The asset has no {self.kind} {value}; read the asset for what it has.")
        return [AssetAlternateIdentifierRemoved(kind=self.kind, value=value)]


@asset.command(post="/{asset_id}/add-owner", allowed=IN_SERVICE)
class AddAssetOwner(Owner, Verb[Asset]):
    """Record an institution that owns the asset."""

    def decide(self, asset: Asset, call: Call) -> Outcome:
        check_owner(self)
        if any(owner.name == self.name for owner in asset.owners):
            raise self.cannot("already_present", f"{self.name} owns the asset already; remove that entry to change it.")
        return [AssetOwnerAdded(**dict(self))]


@asset.command(post="/{asset_id}/remove-owner", allowed=IN_SERVICE, destructive=True)
class RemoveAssetOwner(Verb[Asset]):
    """Take an owner away; the last one may go too."""

    name: Annotated[str, Field(min_length=1, max_length=255)]

    def decide(self, asset: Asset, call: Call) -> Outcome:
        name = self.name.strip()
        if not any(owner.name == name for owner in asset.owners):
            raise self.cannot("not_present", f"{name} is no owner of the asset; read the asset for the owners it has.")
        return [AssetOwnerRemoved(name=name)]


@asset.command(put="/{asset_id}/partition-rule", allowed=IN_SERVICE)
class UpdateAssetPartitionRule(Verb[Asset]):
    """Make the asset a virtual axis, or with null a plain one again."""

    partition_rule: PartitionRule | None

    def decide(self, asset: Asset, call: Call) -> Outcome:
        if self.partition_rule is not None:
            check_partition_rule(self.partition_rule)
        if self.partition_rule == asset.partition_rule:
            return []
        return [AssetPartitionRuleUpdated(partition_rule=self.partition_rule)]


@asset.command(post="/{asset_id}/fixture/attach", allowed=IN_SERVICE, lock=TREE_LOCK)
class AttachAssetToFixture(JudgedVerb[Asset, tuple[Fixture, UUID | None]]):
    """Note on the asset the fixture it is bound into; from then on it stays in its mount."""

    fixture_id: UUID

    def gather(self, asset: Asset, call: Call) -> Reads[tuple[Fixture, UUID | None]]:
        fixture = yield from required(Fixture, self.fixture_id)
        return fixture, (yield from holder_of(INSTALLED, str(asset.id)))

    def decide(self, asset: Asset, call: Call, facts: tuple[Fixture, UUID | None]) -> Outcome:
        fixture, mount_id = facts
        if asset.fixture_id is not None:
            raise self.cannot(
                "already_attached",
                "The asset is attached to a fixture already; detach it first.",
                fixture_id=str(asset.fixture_id),
            )
        if all(binding.asset_id != asset.id for binding in fixture.slot_asset_bindings):
            raise self.cannot("not_in_bindings", "The fixture does not bind this asset; name the fixture that does.")
        if mount_id is None:
            raise self.cannot("not_installed", "The asset is in no mount any more; install it first.")
        return [AssetAttachedToFixture(fixture_id=fixture.id)]


@asset.command(post="/{asset_id}/fixture/detach", destructive=True)
class DetachAssetFromFixture(Verb[Asset]):
    """Free the asset from its fixture, named so that nobody detaches it from another."""

    fixture_id: UUID

    def decide(self, asset: Asset, call: Call) -> Outcome:
        if asset.fixture_id is None:
            raise self.cannot("not_attached", "The asset is attached to no fixture; nothing to detach.")
        if asset.fixture_id != self.fixture_id:
            raise self.cannot(
                "other_fixture", "The asset is attached to another fixture; name that one.", fixture_id=str(asset.fixture_id)
            )
        return [AssetDetachedFromFixture(fixture_id=self.fixture_id)]
