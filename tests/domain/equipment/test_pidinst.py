"""PIDINST records of assets and fixtures, composed from stored facts."""

from datetime import date
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from baton.domain.equipment.asset_parts import UpdateAssetSettings
from baton.domain.equipment.asset_tree import DecommissionAsset
from baton.domain.equipment.family import Family
from baton.domain.equipment.fixture import Fixture
from baton.domain.equipment.model import Model
from baton.domain.equipment.pidinst import PidinstRecord, asset_record, fixture_record
from baton.domain.kernel import copy_with
from baton.domain.shared.identifiers import ExternalIdScheme
from tests.support.domain.assets import asset_of, facility_world, family, model, part, root, rotary_schema
from tests.support.domain.world import START, World, new_id

DEPLOYMENT = SimpleNamespace(
    base_url="https://baton.example/", landing_page_templates={"assets": "https://id.example/{id}.html"}, publisher="Lumen"
)


@pytest.fixture
def world() -> World:
    return facility_world()


def record_of(world: World, asset_id: UUID, **deployment: Any) -> PidinstRecord:
    asset = asset_of(world, asset_id)
    bound = None if asset.model_id is None else world.state(Model, asset.model_id)
    families = {id: world.state(Family, id) for id in asset.family_ids}
    parent = None if asset.parent_id is None else asset_of(world, asset.parent_id)
    return asset_record(asset, bound, families, parent, SimpleNamespace(**{**DEPLOYMENT.__dict__, **deployment}))


def identifiers(record: PidinstRecord) -> list[tuple[str, str, str | None]]:
    return [(one.kind, one.value, one.name) for one in record.alternate_identifiers]


def test_an_asset_is_described_by_itself_its_model_and_its_families(world: World) -> None:
    stage, axis = family(world, "RotaryStage"), family(world, "PseudoAxis")
    asset_id = part(
        world,
        root(world),
        model_id=model(world, stage),
        family_ids=[axis],
        owners=[{"name": "Zenith"}, {"name": "Lumen", "identifier": "https://ror.org/1", "identifier_type": "ROR"}],
    )
    record = record_of(world, asset_id)
    assert record.schema_version == "1.0"
    assert (record.name, record.publisher, record.publication_year) == ("Rotary", "Lumen", START.year)
    assert [(owner.name, owner.identifier_type) for owner in record.owners] == [("Lumen", "ROR"), ("Zenith", None)]
    assert [one.name for one in record.manufacturers] == ["Acme Motion"]
    assert record.model is not None
    assert (record.model.name, record.model.identifier, record.model.identifier_type) == (
        "acme_r250",
        "R-250-AS",
        "PartNumber",
    )
    assert [(one.name, one.identifier, one.identifier_type) for one in record.instrument_types] == [
        ("PseudoAxis", f"urn:baton:family:{axis}", "URN"),
        ("RotaryStage", f"urn:baton:family:{stage}", "URN"),
    ]
    assert (record.description, record.measured_variables, record.measurement_techniques) == (None, (), ())
    assert record.related_identifiers == ()


def test_the_landing_page_follows_the_template_or_is_the_address_of_the_asset(world: World) -> None:
    asset_id = root(world)
    assert record_of(world, asset_id).landing_page == f"https://id.example/{asset_id}.html"
    plain = record_of(world, asset_id, landing_page_templates={})
    assert plain.landing_page == f"https://baton.example/landing/assets/{asset_id}"


def test_the_dates_are_those_of_commissioning_and_decommissioning(world: World) -> None:
    asset_id = root(world)
    world.now = START.replace(month=12)
    world.when(DecommissionAsset(), on=asset_id)
    assert [(one.type, one.date) for one in record_of(world, asset_id).dates] == [
        ("Commissioned", date(2026, 10, 6)),
        ("DeCommissioned", date(2026, 12, 6)),
    ]


def test_process_variables_are_other_identifiers_and_the_serial_number_comes_from_the_settings(world: World) -> None:
    asset_id = root(
        world,
        family_ids=[family(world, "RotaryStage", rotary_schema())],
        alternate_identifiers=[
            {"kind": "EPICS_PV", "value": "lum:m102"},
            {"kind": "SerialNumber", "value": "SUB-7"},
            {"kind": "Other", "value": "m"},
            {"kind": "InventoryNumber", "value": "I-1"},
        ],
    )
    world.when(UpdateAssetSettings(settings_patch={"serial_number": "A-0042"}), on=asset_id)
    assert identifiers(record_of(world, asset_id)) == [
        ("InventoryNumber", "I-1", None),
        ("Other", "lum:m102", "EPICS_PV"),
        ("Other", "m", None),
        ("SerialNumber", "A-0042", None),
        ("SerialNumber", "SUB-7", None),
    ]


def test_a_serial_number_is_listed_once(world: World) -> None:
    asset_id = root(
        world,
        family_ids=[family(world, "RotaryStage", rotary_schema())],
        alternate_identifiers=[{"kind": "SerialNumber", "value": "A-0042"}],
    )
    world.when(UpdateAssetSettings(settings_patch={"serial_number": "A-0042"}), on=asset_id)
    assert identifiers(record_of(world, asset_id)) == [("SerialNumber", "A-0042", None)]


def test_a_fixture_is_what_its_assets_are_together(world: World) -> None:
    stage, camera = family(world, "RotaryStage"), family(world, "Camera")
    acme, orbis = model(world, stage), model(world, camera, name="orbis_cam5", manufacturer={"name": "Orbis"})
    twin = model(world, stage, name="acme_r300", part_number="R-300")
    beamline = root(world)
    ids = [
        part(world, beamline, model_id=acme, owners=[{"name": "Lumen"}]),
        part(world, beamline, model_id=twin, owners=[{"name": "Lumen"}, {"name": "Arc"}]),
        part(world, beamline, model_id=orbis),
        part(world, beamline),
    ]
    named = {"external_id": "10.5555/rotary", "external_id_scheme": ExternalIdScheme.DOI}
    assets = [copy_with(asset_of(world, ids[0]), **named), *(asset_of(world, id) for id in ids[1:])]
    models = {id: world.state(Model, id) for id in (acme, orbis, twin)}
    families = {id: world.state(Family, id) for id in (stage, camera)}
    fixture = Fixture(
        id=new_id(),
        created_at=START,
        registered_at=START,
        assembly_id=new_id(),
        assembly_content_hash="",
        surface_id=new_id(),
        slot_asset_bindings=(),
        parameter_overrides={},
    )
    record = fixture_record(fixture, None, assets, models, families, DEPLOYMENT)
    assert record.identifier.value == f"urn:uuid:{fixture.id}"
    assert record.landing_page == f"https://baton.example/landing/fixtures/{fixture.id}"
    assert [owner.name for owner in record.owners] == ["Arc", "Lumen"]
    assert [one.name for one in record.manufacturers] == ["Acme Motion", "Orbis"]
    assert [one.name for one in record.instrument_types] == ["Camera", "RotaryStage"]
    assert (record.model, record.publication_year) == (None, 2026)
    assert [(one.identifier, one.identifier_type, one.relation_type) for one in record.related_identifiers] == [
        ("10.5555/rotary", "DOI", "HasComponent")
    ]
    known = copy_with(fixture, external_id="20.1/f", external_id_scheme=ExternalIdScheme.HANDLE)
    kept = fixture_record(known, "Microscope", [], {}, {}, DEPLOYMENT)
    assert (kept.identifier.value, kept.identifier.scheme, kept.name) == ("20.1/f", "Handle", "Microscope")
