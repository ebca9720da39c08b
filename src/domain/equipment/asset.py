"""An asset: one piece of equipment, or one virtual axis, in a tree with a single parent for each. Its lifecycle and its
condition are two independent axes. Here are its state, its events, how they fold, and the verbs of both axes; the tree, the
parts with the settings, the external identifier and the views have modules of their own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, TypeVar, assert_never
from uuid import UUID

from baton.domain.equipment import values
from baton.domain.equipment.partition import PartitionRule
from baton.domain.equipment.values import AlternateIdentifier, Drawing, ExternalIdEvent, Owner, Port
from baton.domain.kernel import Aggregate, Call, Event, IdSet, Outcome, State, Verb, copy_with
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.text import FreeText, Reason


class AssetTier(StrEnum):
    UNIT = "Unit"
    COMPONENT = "Component"
    DEVICE = "Device"


class AssetLifecycle(StrEnum):
    COMMISSIONED = "Commissioned"
    ACTIVE = "Active"
    MAINTENANCE = "Maintenance"
    DECOMMISSIONED = "Decommissioned"


COMMISSIONED, ACTIVE, MAINTENANCE, DECOMMISSIONED = AssetLifecycle
IN_SERVICE = (COMMISSIONED, ACTIVE, MAINTENANCE)


class AssetCondition(StrEnum):
    NOMINAL = "Nominal"
    DEGRADED = "Degraded"
    FAULTED = "Faulted"


@dataclass(frozen=True, kw_only=True)
class Asset(State):
    """An asset is one piece of equipment, or one virtual axis, in a tree with a single parent for each."""

    name: str
    tier: AssetTier
    parent_id: UUID | None
    facility_code: str | None
    lifecycle: AssetLifecycle = COMMISSIONED
    condition: AssetCondition = AssetCondition.NOMINAL
    family_ids: IdSet
    settings: Mapping[str, Any] = field(default_factory=dict)
    schema_revisions: Mapping[UUID, int] = field(default_factory=dict)
    """The number of the settings schema's revision, by family, that the settings were checked against."""
    alternate_identifiers: tuple[AlternateIdentifier, ...]
    signal_limits: Mapping[str, values.SignalLimits] = field(default_factory=dict)  # By address.
    overview: values.Overview = values.NO_OVERVIEW
    located_in_enclosure_id: UUID | None
    ports: tuple[Port, ...] = ()
    owners: tuple[Owner, ...]
    model_id: UUID | None
    controller_id: UUID | None
    drawing: Drawing | None
    fixture_id: UUID | None = None
    external_id: str | None = None
    external_id_scheme: ExternalIdScheme | None = None
    partition_rule: PartitionRule | None = None
    commissioned_at: datetime
    decommissioned_at: datetime | None = None

    @property
    def virtual_axis(self) -> bool:
        return self.partition_rule is not None


asset = Aggregate(Asset, "/assets", axis="lifecycle", context="equipment")

ASSETS = "asset-tree"
"""Lock of verbs that could leave a retired asset in use, a child under a retired parent, or a fixture asset in no mount."""


class AssetRegistered(Event, of=asset):
    """The asset was registered, as a root of a facility or below a parent."""

    name: str
    tier: AssetTier
    parent_id: UUID | None
    facility_code: str | None
    family_ids: IdSet
    model_id: UUID | None
    controller_id: UUID | None
    located_in_enclosure_id: UUID | None
    drawing: Drawing | None
    alternate_identifiers: tuple[AlternateIdentifier, ...]
    owners: tuple[Owner, ...]


class AssetRenamed(Event, of=asset, overwrites=True):
    """The asset got another name."""

    name: str


class AssetActivated(Event, of=asset, leads_to=ACTIVE):
    """The asset was put into use."""


class AssetMaintenanceEntered(Event, of=asset, leads_to=MAINTENANCE, overwrites=True):
    """The asset was taken out of use to be worked on."""


class AssetMaintenanceExited(Event, of=asset, leads_to=ACTIVE, overwrites=True):
    """The asset was put back into use after maintenance."""


class AssetDecommissioned(Event, of=asset, leads_to=DECOMMISSIONED, dates="decommissioned_at"):
    """The asset was retired for good."""


class AssetRelocated(Event, of=asset, overwrites=True):
    """The asset was moved under another parent, into another enclosure, or both."""

    from_parent_id: UUID | None
    to_parent_id: UUID | None
    from_enclosure_id: UUID | None
    to_enclosure_id: UUID | None
    reason: FreeText


class AssetConditionReport(Event):
    """A change of the asset's condition, and why."""

    condition: ClassVar[AssetCondition]
    reason: FreeText


class AssetDegraded(AssetConditionReport, of=asset, overwrites=True):
    """The asset was found to work, but not as it should."""

    condition = AssetCondition.DEGRADED


class AssetFaulted(AssetConditionReport, of=asset, overwrites=True):
    """The asset was found not to work."""

    condition = AssetCondition.FAULTED


class AssetRestored(AssetConditionReport, of=asset, overwrites=True):
    """The asset was found to work as it should again."""

    condition = AssetCondition.NOMINAL


class AssetFamilyAdded(Event, of=asset):
    """The asset was said to be of a further family."""

    family_id: UUID


class AssetFamilyRemoved(Event, of=asset):
    """The asset was said not to be of a family any more."""

    family_id: UUID


class AssetSettingsUpdated(Event, of=asset, overwrites=True):
    """The settings were patched: these are all of them, with the revisions of the schemas they stand under."""

    settings: dict[str, Any]
    schema_revisions: dict[UUID, int]


class AssetPortAdded(Event, of=asset):
    """The asset got a port."""

    port_name: str
    direction: values.PortDirection
    signal_type: str


class AssetPortRemoved(Event, of=asset):
    """A port was taken from the asset."""

    port_name: str


class AssetAlternateIdentifierAdded(Event, of=asset):
    """The asset got another name to go by."""

    kind: values.AlternateIdentifierKind
    value: str


class AssetAlternateIdentifierRemoved(Event, of=asset):
    """Another name was taken from the asset."""

    kind: values.AlternateIdentifierKind
    value: str


class AssetSignalLimitsSet(Event, of=asset):
    """The values were limited that a signal of the asset may be set to; without a limit, it has none any more."""

    address: str
    low: float | None
    high: float | None
    reason: FreeText


class AssetOverviewSet(Event, of=asset, overwrites=True):
    """What people watch at a beamline was said, all of it; without a signal and a camera, nothing any more."""

    signals: tuple[values.OverviewSignal, ...]
    camera: str | None


class AssetOwnerAdded(Event, of=asset):
    """The asset got an owner."""

    name: str
    identifier: str | None
    identifier_type: str | None


class AssetOwnerRemoved(Event, of=asset):
    """An owner was taken from the asset."""

    name: str


class AssetPartitionRuleUpdated(Event, of=asset, overwrites=True):
    """The asset became a virtual axis by this rule or, where it is null, a plain asset again."""

    partition_rule: PartitionRule | None


class AssetAttachedToFixture(Event, of=asset):
    """The asset was noted to be bound into this fixture."""

    fixture_id: UUID


class AssetDetachedFromFixture(Event, of=asset):
    """The asset was freed from this fixture."""

    fixture_id: UUID


class AssetExternalIdAssigned(ExternalIdEvent, of=asset):
    """A persistent identifier was issued for the asset, which keeps it for good."""


PartEvent = AssetPortAdded | AssetPortRemoved | AssetOwnerAdded | AssetOwnerRemoved | AssetFamilyAdded | AssetFamilyRemoved
IdentifierEvent = AssetAlternateIdentifierAdded | AssetAlternateIdentifierRemoved | AssetExternalIdAssigned
PlaceEvent = AssetRelocated | AssetAttachedToFixture | AssetDetachedFromFixture
SignalEvent = AssetSignalLimitsSet | AssetOverviewSet
ValueEvent = AssetRenamed | AssetConditionReport | AssetSettingsUpdated | AssetPartitionRuleUpdated | SignalEvent
AssetEvent = PartEvent | IdentifierEvent | PlaceEvent | ValueEvent


@asset.evolve
def evolve(asset: Asset, event: AssetEvent) -> Asset:
    match event:
        case AssetRenamed() | AssetSettingsUpdated() | AssetPartitionRuleUpdated():
            return copy_with(asset, **dict(event))
        case AssetAttachedToFixture() | AssetExternalIdAssigned():
            return copy_with(asset, **dict(event))
        case AssetDetachedFromFixture():
            return copy_with(asset, fixture_id=None)
        case AssetRelocated():
            return copy_with(asset, parent_id=event.to_parent_id, located_in_enclosure_id=event.to_enclosure_id)
        case AssetConditionReport():
            return copy_with(asset, condition=event.condition)
        case AssetFamilyAdded():
            return copy_with(asset, family_ids=asset.family_ids | {event.family_id})
        case AssetFamilyRemoved():
            return copy_with(asset, family_ids=asset.family_ids - {event.family_id})
        case AssetPortAdded():
            port = Port(name=event.port_name, direction=event.direction, signal_type=event.signal_type)
            return copy_with(asset, ports=by_name((*asset.ports, port)))
        case AssetPortRemoved():
            return copy_with(asset, ports=tuple(port for port in asset.ports if port.name != event.port_name))
        case AssetAlternateIdentifierAdded():
            identifiers = (*asset.alternate_identifiers, AlternateIdentifier(**dict(event)))
            return copy_with(asset, alternate_identifiers=by_kind_and_value(identifiers))
        case AssetAlternateIdentifierRemoved():
            removed = AlternateIdentifier(**dict(event))
            left = tuple(identifier for identifier in asset.alternate_identifiers if identifier != removed)
            return copy_with(asset, alternate_identifiers=left)
        case AssetSignalLimitsSet():
            signal, limits = values.value_field(event.address), values.SignalLimits(low=event.low, high=event.high)
            others = {at: one for at, one in asset.signal_limits.items() if values.value_field(at) != signal}
            given = {} if limits == values.NO_LIMITS else {event.address: limits}
            return copy_with(asset, signal_limits={**others, **given})
        case AssetOverviewSet():
            return copy_with(asset, overview=values.Overview(signals=event.signals, camera=event.camera))
        case AssetOwnerAdded():
            return copy_with(asset, owners=by_name((*asset.owners, Owner(**dict(event)))))
        case AssetOwnerRemoved():
            return copy_with(asset, owners=tuple(owner for owner in asset.owners if owner.name != event.name))
        case _:
            assert_never(event)


N = TypeVar("N", Port, Owner)


def by_name(named: Iterable[N]) -> tuple[N, ...]:
    """Return ports or owners in the order they are shown."""
    return tuple(sorted(named, key=lambda item: item.name))


def by_kind_and_value(identifiers: Iterable[AlternateIdentifier]) -> tuple[AlternateIdentifier, ...]:
    """Return alternate identifiers in the order they are shown."""
    return tuple(sorted(identifiers, key=lambda identifier: (identifier.kind, identifier.value)))


AssetName = Annotated[str, asset.text("name", 200)]


@asset.command(post="/{asset_id}/rename", allowed=IN_SERVICE)
class RenameAsset(Verb[Asset]):
    """Give an asset another role label; the name is no key, so nothing else changes."""

    name: AssetName

    def decide(self, asset: Asset, call: Call) -> Outcome:
        return [] if self.name == asset.name else [AssetRenamed(name=self.name)]


@asset.command(post="/{asset_id}/activate", allowed=[COMMISSIONED], records=AssetActivated)
class ActivateAsset(Verb[Asset]):
    """Put a commissioned asset into use."""


@asset.command(post="/{asset_id}/enter-maintenance", allowed=[ACTIVE], records=AssetMaintenanceEntered)
class EnterAssetMaintenance(Verb[Asset]):
    """Take an active asset out of use to work on it."""


@asset.command(post="/{asset_id}/exit-maintenance", allowed=[MAINTENANCE], records=AssetMaintenanceExited)
class ExitAssetMaintenance(Verb[Asset]):
    """Put an asset back into use after maintenance."""


class AssetConditionVerb(Verb[Asset]):
    """A report of an asset's condition; nothing happens when it is in that condition already."""

    report: ClassVar[type[AssetConditionReport]]
    reason: Reason

    def decide(self, asset: Asset, call: Call) -> Outcome:
        return [] if asset.condition is self.report.condition else [self.report(reason=self.reason)]


@asset.command(post="/{asset_id}/degrade")
class DegradeAsset(AssetConditionVerb):
    """Record that the asset works, but not as it should; nothing happens when it is degraded already.

    So it is after a partial repair, too.
    """

    report = AssetDegraded


@asset.command(post="/{asset_id}/fault")
class FaultAsset(AssetConditionVerb):
    """Record that the asset does not work; nothing happens when it is faulted already."""

    report = AssetFaulted


@asset.command(post="/{asset_id}/restore")
class RestoreAsset(AssetConditionVerb):
    """Record that the asset works as it should again; nothing happens when it does already."""

    report = AssetRestored
