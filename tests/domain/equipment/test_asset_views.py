"""The list's conditions and the integrator's view."""

import pytest
from pydantic import ValidationError

from domain.equipment.asset_settings import UpdateAssetSettings
from domain.equipment.asset_views import AssetSummary, GetAssetIntegrationView, ListAssets
from domain.shared.listing import Where
from tests.domain.equipment.assets import asset_of, facility_world, family, part, root, rotary_schema
from tests.domain.world import World, new_id


@pytest.fixture
def world() -> World:
    return facility_world()


def test_a_row_shows_the_columns_of_the_list_and_hides_the_rest(world: World) -> None:
    asset_id = part(world, root(world), owners=[{"name": "Lumen"}], drawing={"system": "DOI", "number": "10.1/2"})
    row = AssetSummary.of(asset_of(world, asset_id))
    assert row.asset_id == asset_id
    assert list(AssetSummary.shown().model_fields) == [
        "asset_id",
        "name",
        "tier",
        "lifecycle",
        "condition",
        "parent_id",
        "facility_code",
        "model_id",
        "fixture_id",
        "located_in_enclosure_id",
        "external_id",
        "created_at",
    ]
    assert row.model_validate_json(row.model_dump_json()) == row


def test_every_filter_becomes_a_condition() -> None:
    parent, family_id, model_id, hutch = (new_id() for _ in range(4))
    query = ListAssets(
        tier="Device",
        lifecycle="Active",
        condition="Faulted",
        parent_id=parent,
        family_id=family_id,
        model_id=model_id,
        facility_code="lumen",
        located_in_enclosure_id=hutch,
        alternate_identifier_kind="EPICS_PV",
        alternate_identifier_value="lum:m102",
    )
    assert list(query.where()) == [
        Where("tier", "is", "Device"),
        Where("lifecycle", "is", "Active"),
        Where("condition", "is", "Faulted"),
        Where("parent_id", "is", parent),
        Where("family_ids", "has", family_id),
        Where("model_id", "is", model_id),
        Where("facility_code", "is", "lumen"),
        Where("located_in_enclosure_id", "is", hutch),
        Where("alternate_identifiers", "contains", [{"kind": "EPICS_PV", "value": "lum:m102"}]),
    ]
    assert list(ListAssets().where()) == []


@pytest.mark.parametrize("half", [{"alternate_identifier_kind": "Other"}, {"alternate_identifier_value": "lum:m102"}])
def test_kind_and_value_of_an_identifier_are_asked_for_together(half: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        ListAssets(**half)


def test_the_integration_view_gathers_what_an_integrator_needs(world: World) -> None:
    hutch, cabinet = sorted([new_id(), new_id()])
    stage, housing = family(world, "RotaryStage", rotary_schema(), "Rotatable", "Homeable"), family(world, "Housing")
    beamline = root(world, located_in_enclosure_id=cabinet)
    table = part(world, beamline, located_in_enclosure_id=hutch)
    asset_id = part(world, table, family_ids=[stage, housing], located_in_enclosure_id=hutch)
    world.when(UpdateAssetSettings(settings_patch={"max_position": 360}), on=asset_id)
    view = world.ask(GetAssetIntegrationView(), on=asset_id)
    assert view.enclosure_ids == {hutch, cabinet}
    assert [(one.name, sorted(one.affordances)) for one in view.families] == [
        ("Housing", []),
        ("RotaryStage", ["Homeable", "Rotatable"]),
    ]
    assert view.families[1].settings_schema == rotary_schema()
    assert view.settings == {"max_position": 360}
    assert (view.active_cautions, view.applicable_capabilities, view.incomplete) == ((), (), False)
    assert f'"enclosure_ids":["{hutch}","{cabinet}"]' in view.model_dump_json()


def test_the_integration_view_says_when_a_family_cannot_be_read(world: World) -> None:
    stage = family(world)
    asset_id = root(world, family_ids=[stage])
    del world.streams["Family", stage]
    assert world.ask(GetAssetIntegrationView(), on=asset_id).incomplete
