"""A fixture: one assembly made real, each of its slots bound to concrete, installed assets. It is never edited."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from pydantic import Field

from baton.domain.equipment.assembly import Assembly, AssemblyStatus, ContentHash, SlotName, leaf_slots, stale_pins
from baton.domain.equipment.asset import ASSETS, Asset, AssetLifecycle
from baton.domain.equipment.family import Family
from baton.domain.equipment.model import Model
from baton.domain.equipment.mount import INSTALLED
from baton.domain.equipment.pidinst import ExternalIdAssignment, PidinstRecord, exportable, fixture_record
from baton.domain.equipment.values import AssignedExternalId, ExternalIdEvent
from baton.domain.kernel import Aggregate, Call, Event, JudgedCreation, JudgedVerb, Outcome, Query, State, Value, copy_with
from baton.domain.shared.citation import MintedIdentifier
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.reads import Holders, Reads, ask, find, find_all, require, require_all
from baton.domain.shared.refusals import Conflict, ExternalIdMintError, Invalid
from baton.domain.shared.schema import check_values


class SlotBinding(Value):
    """An asset in a slot of the assembly."""

    slot_name: SlotName
    asset_id: UUID


@dataclass(frozen=True, kw_only=True)
class Fixture(State):
    """A fixture is one assembly made real: concrete, installed assets are bound to its slots."""

    assembly_id: UUID
    assembly_content_hash: str
    surface_id: UUID
    slot_asset_bindings: tuple[SlotBinding, ...]
    parameter_overrides: dict[str, Any]
    external_id: str | None = None
    external_id_scheme: ExternalIdScheme | None = None
    registered_at: datetime

    @property
    def binding_count(self) -> int:
        return len(self.slot_asset_bindings)

    @property
    def override_count(self) -> int:
        return len(self.parameter_overrides)


fixture = Aggregate(Fixture, "/fixtures", context="equipment")


class FixtureRegistered(Event, of=fixture):
    """The assembly was made real with these assets."""

    assembly_id: UUID
    assembly_content_hash: str
    surface_id: UUID
    slot_asset_bindings: tuple[SlotBinding, ...]
    parameter_overrides: dict[str, Any]


class FixtureExternalIdAssigned(ExternalIdEvent, of=fixture):
    """A persistent identifier was issued for the fixture, which keeps it for good."""


@fixture.evolve
def evolve(fixture: Fixture, event: FixtureExternalIdAssigned) -> Fixture:
    return copy_with(fixture, **dict(event))


class InvalidFixtureBindingsError(Invalid, context="equipment"):
    """A binding names no slot of the assembly, a slot has too few or too many assets, or an asset of no fitting family."""


class InvalidFixtureParameterOverridesError(Invalid, context="equipment"):
    """The parameter overrides do not stand under the schema the assembly declares."""


class Materials(NamedTuple):
    """What a fixture is made of, and where its assets are installed."""

    assembly: Assembly
    children: dict[UUID, Assembly]
    assets: dict[UUID, Asset]
    mounts: dict[str, UUID]


@fixture.creation(path="/assemblies/{assembly_id}/fixtures", lock=ASSETS)
class RegisterFixture(JudgedCreation[Materials]):
    """Make an assembly real: bind installed assets to its slots and to those of the assemblies it includes."""

    assembly_id: UUID
    slot_asset_bindings: Annotated[tuple[SlotBinding, ...], Field(max_length=1000)]
    parameter_overrides: dict[str, Any] = {}

    def gather(self, call: Call) -> Reads[Materials]:
        assembly = yield from require(Assembly, self.assembly_id)
        children = yield from require_all(Assembly, (sub.sub_assembly_id for sub in assembly.required_sub_assemblies))
        assets = yield from require_all(Asset, (binding.asset_id for binding in self.slot_asset_bindings))
        mounts: dict[str, UUID] = yield Holders(INSTALLED, tuple(str(id) for id in assets))
        return Materials(assembly, children, assets, mounts)

    def decide(self, call: Call, materials: Materials) -> Outcome:
        assembly = materials.assembly
        self.check_blueprint(materials)
        check_bindings(self.slot_asset_bindings, materials)
        check_values(assembly.parameter_overrides_schema, self.parameter_overrides, InvalidFixtureParameterOverridesError)
        self.check_assets(materials)
        bindings = sorted(set(self.slot_asset_bindings), key=lambda binding: (binding.slot_name, binding.asset_id))
        made = {**dict(self), "slot_asset_bindings": tuple(bindings), "surface_id": call.surface_id}
        return [FixtureRegistered(**made, assembly_content_hash=assembly.content_hash)]

    def check_blueprint(self, materials: Materials) -> None:
        """Refuse a blueprint no fixture may be made from; before the bindings, which it could not judge."""
        if materials.assembly.status is AssemblyStatus.DEPRECATED:
            raise self.cannot("assembly_deprecated", "The assembly is Deprecated; make the fixture from its successor.")
        if stale := stale_pins(materials.assembly, materials.children):
            detail = "An included assembly has changed since it was pinned; version the assembly with the current pin first."
            raise self.cannot("sub_assembly_hash_mismatch", detail, current_content_hashes=stale)

    def check_assets(self, materials: Materials) -> None:
        """Refuse assets that are retired or in no mount."""
        bound = materials.assets
        if retired := [id for id, asset in bound.items() if asset.lifecycle is AssetLifecycle.DECOMMISSIONED]:
            detail = "An asset is Decommissioned; bind one that is in service."
            raise self.cannot("asset_decommissioned", detail, asset_ids=retired)
        if loose := [id for id in bound if str(id) not in materials.mounts]:
            raise self.cannot("asset_not_installed", "An asset is in no mount; install it first.", asset_ids=loose)


def check_bindings(bindings: tuple[SlotBinding, ...], materials: Materials) -> None:
    """Refuse bindings that do not fill the slots of the assembly and its children as the blueprint asks."""
    slots = {slot.slot_name: slot for slot in leaf_slots(materials.assembly, materials.children)}
    bound = set(bindings)
    if unknown := sorted({binding.slot_name for binding in bound} - slots.keys()):
        detail = f"{unknown[0]!r} is no slot of this assembly; use its slot names."
        raise InvalidFixtureBindingsError(detail, reason="unknown_slot", facts={"slot_names": unknown})
    counts = Counter(binding.slot_name for binding in bound)
    if wrong := sorted(name for name, slot in slots.items() if not slot.cardinality.takes(counts[name])):
        wanted = slots[wrong[0]].cardinality.value
        detail = f"The slot {wrong[0]} takes {wanted}, not {counts[wrong[0]]}; correct its bindings."
        raise InvalidFixtureBindingsError(detail, reason="cardinality", facts={"slot_names": wrong})
    ordered = sorted(bound, key=lambda binding: (binding.slot_name, str(binding.asset_id)))
    families = {binding: materials.assets[binding.asset_id].family_ids for binding in ordered}
    if strangers := [one for one in ordered if not families[one] & slots[one.slot_name].required_family_ids]:
        name = strangers[0].slot_name
        detail = f"The asset in slot {name} has none of the families the slot asks for; bind one that has."
        raise InvalidFixtureBindingsError(detail, reason="family_mismatch", facts={"bindings": strangers})


@fixture.command(
    post="/{fixture_id}/assign-external-id", status=201, returns=AssignedExternalId, refuses=[ExternalIdMintError]
)
class AssignFixtureExternalId(ExternalIdAssignment, JudgedVerb[Fixture, MintedIdentifier]):
    """Have a persistent identifier minted for the fixture and keep it, once and for all.

    The suffix defaults to the fixture's id, so a repeat after a lost answer mints the same identifier.
    """

    assignment = FixtureExternalIdAssigned

    def gather(self, fixture: Fixture, call: Call) -> Reads[MintedIdentifier]:
        self.refuse_second(fixture)
        return (yield from self.mint(fixture, (yield from published_record(fixture))))


GetFixture = fixture.get(hidden=["created_at"])


class FixtureSummary(Summary):
    fixture_id: UUID
    assembly_id: UUID
    assembly_content_hash: str
    surface_id: UUID
    binding_count: int
    """Number of assets in slots."""
    override_count: int
    """Number of parameters that were overridden."""
    created_at: datetime


@fixture.listing(FixtureSummary)
class ListFixtures(ListQuery[FixtureSummary]):
    """Fixtures in order of registration."""

    assembly_id: UUID | None = None
    surface_id: UUID | None = None
    assembly_content_hash: ContentHash | None = None


class FixtureCannotExportPidinstError(Conflict, context="equipment"):
    """The record needs a bound asset with an owner, and one whose model names the manufacturer."""


@fixture.query(get="/{fixture_id}/pidinst", returns=PidinstRecord, refuses=[FixtureCannotExportPidinstError])
class GetFixturePidinst(Query[PidinstRecord]):
    """The fixture as a PIDINST record, with the owners and manufacturers of all its assets."""

    def answer(self, fixture: Fixture, call: Call) -> Reads[PidinstRecord]:
        return exportable(
            (yield from published_record(fixture)),
            FixtureCannotExportPidinstError,
            "No bound asset has an owner; add one to an asset first.",
            "No bound asset has a model, hence there is no manufacturer; bind one registered with a model.",
        )


def published_record(fixture: Fixture) -> Reads[PidinstRecord]:
    """Return the fixture's record, with everything it refers to; it goes by the name of its assembly."""
    assembly = yield from find(Assembly, fixture.assembly_id)
    found = yield from find_all(Asset, sorted({binding.asset_id for binding in fixture.slot_asset_bindings}))
    assets = list(found.values())
    models = yield from find_all(Model, sorted({asset.model_id for asset in assets if asset.model_id is not None}))
    families = yield from find_all(Family, sorted({id for asset in assets for id in asset.family_ids}))
    deployment = yield from ask(DeploymentPort.deployment)
    return fixture_record(fixture, None if assembly is None else assembly.name, assets, models, families, deployment)
