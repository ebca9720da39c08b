"""Fixtures: which bindings make an assembly real, the identifier of the whole, and the record it is published under."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from baton.domain.equipment.assembly import Assembly, DefineAssembly, DeprecateAssembly, VersionAssembly
from baton.domain.equipment.asset import ActivateAsset
from baton.domain.equipment.asset_external_id import AssignAssetExternalId
from baton.domain.equipment.asset_parts import AddAssetOwner, AttachAssetToFixture
from baton.domain.equipment.asset_tree import DecommissionAsset, RegisterAsset
from baton.domain.equipment.family import DefineFamily
from baton.domain.equipment.fixture import (
    AssignFixtureExternalId,
    Fixture,
    FixtureExternalIdAssigned,
    FixtureSummary,
    GetFixturePidinst,
    RegisterFixture,
    SlotBinding,
)
from baton.domain.equipment.frame import RegisterFrame
from baton.domain.equipment.model import DefineModel
from baton.domain.equipment.mount import InstallAsset, RegisterMount
from baton.domain.facility.facility import RegisterFacility
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.refusals import ExternalIdMintError
from tests.domain.equipment.test_placement import form
from tests.support.domain.world import LENIENT, World, expect_refusal, new_id

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {"distance": {"type": "number", "minimum": 0, "unit": {"system": "udunits", "code": "mm"}}},
}


class Beamline:
    """A microscope's blueprint (camera and scintillator of its own, objectives of the optics it includes) and its parts."""

    def __init__(self) -> None:
        self.world = World()
        self.world.ports["deployment"] = SimpleNamespace(
            **LENIENT,
            base_url="https://baton.lumen.example",
            landing_page_templates={},
            publisher="Lumen Light Source",
            minted_schemes=frozenset(ExternalIdScheme),
        )
        self.world.ports["mint"] = lambda scheme, suffix, metadata: SimpleNamespace(scheme=scheme, value=f"10.5072/{suffix}")
        self.world.create(RegisterFacility(code="lumen", display_name="Lumen Light Source", kind="Site"))
        self.frame = self.world.create(RegisterFrame(name="centerline"))
        self.families = {
            name: self.world.create(DefineFamily(name=name, affordances=[]))
            for name in ("Camera", "Scintillator", "Objective")
        }
        self.optics = self.world.create(DefineAssembly(**self.optics_with("objectives", "OneOrMore")))
        self.microscope = self.world.create(
            DefineAssembly(
                name="Microscope",
                required_slots=[self.slot("camera", "Camera", "ZeroOrOne"), self.slot("scintillator", "Scintillator")],
                required_sub_assemblies=[self.pin()],
                parameter_overrides_schema=SCHEMA,
            )
        )

    def slot(self, name: str, family: str, cardinality: str = "Exactly1") -> dict[str, Any]:
        return {"slot_name": name, "required_family_ids": [self.families[family]], "cardinality": cardinality}

    def optics_with(self, slot_name: str, cardinality: str) -> dict[str, Any]:
        return {"name": "Optics", "required_slots": [self.slot(slot_name, "Objective", cardinality)]}

    def pin(self) -> dict[str, Any]:
        content_hash = self.world.state(Assembly, self.optics).content_hash
        return {"slot_name": "optics", "sub_assembly_id": self.optics, "content_hash": content_hash}

    def asset(self, family: str, *, installed: bool = True, **fields: Any) -> UUID:
        registration = RegisterAsset(
            name=family, tier="Device", facility_code="lumen", family_ids=[self.families[family]], **fields
        )
        asset = self.world.create(registration)
        if installed:
            self.world.when(ActivateAsset(), on=asset)
            mount = self.world.create(RegisterMount(slot_code=f"B-{asset}", placement=form(parent_frame_id=self.frame)))
            self.world.when(InstallAsset(asset_id=asset), on=mount)
        return asset

    def model(self) -> UUID:
        return self.world.create(
            DefineModel(
                name="acme_luag",
                manufacturer={"name": "Acme Crystals"},
                part_number="LUAG-100",
                declared_family_ids=[self.families["Scintillator"]],
            )
        )

    def register(self, overrides: dict[str, Any] | None = None, **assets: UUID | list[UUID]) -> UUID:
        for name, family in (("scintillator", "Scintillator"), ("objectives", "Objective")):
            if name not in assets:
                assets[name] = self.asset(family)
        bindings = [
            {"slot_name": name, "asset_id": id}
            for name, bound in assets.items()
            for id in (bound if isinstance(bound, list) else [bound])
        ]
        return self.world.create(
            RegisterFixture(assembly_id=self.microscope, slot_asset_bindings=bindings, parameter_overrides=overrides or {})
        )

    def fixture(self, id: UUID) -> Fixture:
        state: Fixture = self.world.state(Fixture, id)
        return state


@pytest.fixture
def beamline() -> Beamline:
    return Beamline()


def test_a_fixture_binds_installed_assets_to_all_slots_of_both_levels(beamline: Beamline) -> None:
    scintillator, objective = beamline.asset("Scintillator"), beamline.asset("Objective")
    fixture = beamline.fixture(beamline.register({"distance": 40}, scintillator=scintillator, objectives=objective))
    assert fixture.slot_asset_bindings == (
        SlotBinding(slot_name="objectives", asset_id=objective),
        SlotBinding(slot_name="scintillator", asset_id=scintillator),
    )
    assert fixture.assembly_content_hash == beamline.world.state(Assembly, beamline.microscope).content_hash
    assert (fixture.surface_id, fixture.registered_at) == (beamline.world.surface_id, beamline.world.now)
    assert fixture.parameter_overrides == {"distance": 40}


def test_a_fixture_does_not_write_on_its_assets_but_lets_them_attach(beamline: Beamline) -> None:
    scintillator = beamline.asset("Scintillator")
    before = len(beamline.world.streams["Asset", scintillator])
    fixture = beamline.register(scintillator=scintillator)
    assert len(beamline.world.streams["Asset", scintillator]) == before
    beamline.world.when(AttachAssetToFixture(fixture_id=fixture), on=scintillator)


def test_assembly_and_assets_must_exist(beamline: Beamline) -> None:
    with expect_refusal("AssemblyNotFoundError"):
        beamline.world.create(RegisterFixture(assembly_id=new_id(), slot_asset_bindings=[]))
    missing = sorted([new_id(), new_id()])
    with expect_refusal("AssetNotFoundError") as caught:
        beamline.register(objectives=missing)
    assert caught.value.facts == {"missing_ids": [str(id) for id in missing]}


def test_a_binding_names_a_slot_of_the_assembly(beamline: Beamline) -> None:
    for unknown in ("filter", "optics"):
        with expect_refusal("InvalidFixtureBindingsError", "unknown_slot") as caught:
            beamline.register(**{unknown: beamline.asset("Camera")})
        assert caught.value.facts == {"slot_names": [unknown]}


def test_every_slot_has_as_many_assets_as_it_takes(beamline: Beamline) -> None:
    scintillators = [beamline.asset("Scintillator") for _ in range(2)]
    for wrong in ({"scintillator": []}, {"scintillator": scintillators}, {"objectives": []}):
        with expect_refusal("InvalidFixtureBindingsError", "cardinality") as caught:
            beamline.register(**wrong)
        assert caught.value.facts == {"slot_names": list(wrong)}
    beamline.register(objectives=[beamline.asset("Objective") for _ in range(3)])


def test_a_binding_given_twice_counts_once(beamline: Beamline) -> None:
    scintillator = beamline.asset("Scintillator")
    fixture = beamline.fixture(beamline.register(scintillator=[scintillator, scintillator]))
    assert fixture.binding_count == 2


def test_an_asset_has_a_family_its_slot_asks_for(beamline: Beamline) -> None:
    camera = beamline.asset("Camera")
    with expect_refusal("InvalidFixtureBindingsError", "family_mismatch") as caught:
        beamline.register(scintillator=camera)
    assert caught.value.facts == {"bindings": [{"slot_name": "scintillator", "asset_id": str(camera)}]}


@pytest.mark.parametrize("overrides", [{"distance": -1}, {"distance": "far"}, {"speed": 1}])
def test_overrides_stand_under_the_assemblys_schema(beamline: Beamline, overrides: dict[str, Any]) -> None:
    with expect_refusal("InvalidFixtureParameterOverridesError"):
        beamline.register(overrides)


def test_an_assembly_without_a_schema_takes_no_overrides(beamline: Beamline) -> None:
    objective = {"slot_name": "objectives", "asset_id": beamline.asset("Objective")}
    bare = RegisterFixture(assembly_id=beamline.optics, slot_asset_bindings=[objective], parameter_overrides={"distance": 1})
    with expect_refusal("InvalidFixtureParameterOverridesError"):
        beamline.world.create(bare)


def test_no_fixture_is_made_from_a_deprecated_assembly(beamline: Beamline) -> None:
    beamline.world.when(DeprecateAssembly(), on=beamline.microscope)
    with expect_refusal("FixtureCannotRegisterError", "assembly_deprecated"):
        beamline.register()


def test_a_child_that_changed_since_it_was_pinned_is_told_before_the_bindings(beamline: Beamline) -> None:
    beamline.world.when(VersionAssembly(**beamline.optics_with("lenses", "Exactly1"), version_tag="v2"), on=beamline.optics)
    with expect_refusal("FixtureCannotRegisterError", "sub_assembly_hash_mismatch") as caught:
        beamline.register()
    assert caught.value.facts == {"current_content_hashes": {str(beamline.optics): beamline.pin()["content_hash"]}}


def test_assets_are_in_service_and_installed(beamline: Beamline) -> None:
    loose = beamline.asset("Scintillator", installed=False)
    with expect_refusal("FixtureCannotRegisterError", "asset_not_installed") as caught:
        beamline.register(scintillator=loose)
    assert caught.value.facts == {"asset_ids": [str(loose)]}
    beamline.world.when(DecommissionAsset(), on=loose)
    with expect_refusal("FixtureCannotRegisterError", "asset_decommissioned"):
        beamline.register(scintillator=loose)


def test_a_fixture_is_given_one_identifier_for_good(beamline: Beamline) -> None:
    fixture = beamline.register()
    [event] = beamline.world.when(AssignFixtureExternalId(external_id_scheme="DOI"), on=fixture)
    assert event == FixtureExternalIdAssigned(external_id_scheme="DOI", external_id=f"10.5072/{fixture}")
    assert beamline.world.answer == {"external_id_scheme": "DOI", "external_id": f"10.5072/{fixture}"}
    del beamline.world.ports["mint"]  # no registry is asked again
    with expect_refusal("FixtureCannotAssignExternalIdError", "already_assigned"):
        beamline.world.when(AssignFixtureExternalId(external_id_scheme="Handle", suffix="other"), on=fixture)
    assert beamline.fixture(fixture).external_id == f"10.5072/{fixture}"


def test_a_chosen_suffix_and_the_record_reach_the_registry(beamline: Beamline) -> None:
    asked: dict[str, Any] = {}

    def mint(scheme: str, suffix: str, metadata: Any) -> SimpleNamespace:
        asked.update({"scheme": scheme, "suffix": suffix, "metadata": metadata})
        return SimpleNamespace(scheme=scheme, value="20.500/microscope-1")

    beamline.world.ports["mint"] = mint
    fixture = beamline.register()
    beamline.world.when(AssignFixtureExternalId(external_id_scheme="Handle", suffix=" microscope-1 "), on=fixture)
    assert (asked["scheme"], asked["suffix"], asked["metadata"].title) == ("Handle", "microscope-1", "Microscope")


def test_a_registry_that_fails_or_is_not_configured_leaves_no_event(beamline: Beamline) -> None:
    def fail_minting(*arguments: Any) -> Any:
        raise ExternalIdMintError("The registry is down.")

    beamline.world.ports["mint"] = fail_minting
    fixture = beamline.register()
    with expect_refusal("ExternalIdMintError"):
        beamline.world.when(AssignFixtureExternalId(external_id_scheme="DOI"), on=fixture)
    beamline.world.ports["deployment"].minted_schemes = frozenset()
    with expect_refusal("ExternalIdMintingNotConfiguredError", "no_minter"):
        beamline.world.when(AssignFixtureExternalId(external_id_scheme="DOI"), on=fixture)
    assert len(beamline.world.streams["Fixture", fixture]) == 1


def test_a_published_fixture_joins_what_its_assets_are(beamline: Beamline) -> None:
    scintillator = beamline.asset("Scintillator", model_id=beamline.model())
    objective = beamline.asset("Objective")
    fixture = beamline.register(scintillator=scintillator, objectives=objective)
    with expect_refusal("FixtureCannotExportPidinstError", "owner_missing"):
        beamline.world.ask(GetFixturePidinst(), on=fixture)
    for asset in (scintillator, objective):
        beamline.world.when(AddAssetOwner(name="Lumen Light Source"), on=asset)
    record = beamline.world.ask(GetFixturePidinst(), on=fixture)
    assert (record.name, record.model, record.publication_year) == ("Microscope", None, 2026)
    assert record.identifier.value == f"urn:uuid:{fixture}"
    assert [owner.name for owner in record.owners] == ["Lumen Light Source"]
    assert [maker.name for maker in record.manufacturers] == ["Acme Crystals"]
    assert [type.name for type in record.instrument_types] == ["Objective", "Scintillator"]
    assert record.related_identifiers == ()


def test_a_published_fixture_names_the_identified_assets_it_is_made_of(beamline: Beamline) -> None:
    objective = beamline.asset("Objective", owners=[{"name": "Lumen Light Source"}])
    scintillator = beamline.asset("Scintillator", model_id=beamline.model())
    fixture = beamline.register(scintillator=scintillator, objectives=objective)
    beamline.world.when(AssignAssetExternalId(external_id_scheme="DOI"), on=scintillator)
    beamline.world.when(AssignFixtureExternalId(external_id_scheme="Handle", suffix="m1"), on=fixture)
    record = beamline.world.ask(GetFixturePidinst(), on=fixture)
    assert (record.identifier.scheme, record.identifier.value) == ("Handle", "10.5072/m1")
    [component] = record.related_identifiers
    assert (component.identifier, component.relation_type) == (f"10.5072/{scintillator}", "HasComponent")


def test_a_fixture_of_unknown_make_is_not_published(beamline: Beamline) -> None:
    objective = beamline.asset("Objective", owners=[{"name": "Lumen Light Source"}])
    with expect_refusal("FixtureCannotExportPidinstError", "manufacturer_missing"):
        beamline.world.ask(GetFixturePidinst(), on=beamline.register(objectives=objective))


def test_a_listed_fixture_shows_how_much_is_bound_and_overridden(beamline: Beamline) -> None:
    row = FixtureSummary.of(beamline.fixture(beamline.register({"distance": 40})))
    assert (row.binding_count, row.override_count, row.assembly_id) == (2, 1, beamline.microscope)
