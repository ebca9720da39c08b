"""Settings: the patch, the schemas of all families at once, and units that changed under a stored value."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.equipment.asset import AssetSettingsUpdated
from baton.domain.equipment.asset_parts import AddAssetFamily, RemoveAssetFamily, UpdateAssetSettings
from baton.domain.equipment.family import UpdateFamilySettingsSchema, VersionFamily
from baton.domain.kernel import Event
from tests.support.domain.assets import (
    DEGREE,
    RADIAN,
    asset_of,
    facility_world,
    family,
    root,
    rotary_schema,
    settings_schema,
)
from tests.support.domain.world import World, expect_refusal

NUMBER = {"type": "number"}
TEXT = {"type": "string"}


@pytest.fixture
def world() -> World:
    return facility_world()


@pytest.fixture
def stage(world: World) -> UUID:
    return family(world, "RotaryStage", rotary_schema())


@pytest.fixture
def rotary(world: World, stage: UUID) -> UUID:
    return root(world, family_ids=[stage])


def patch(world: World, asset_id: UUID, **settings_patch: Any) -> list[Event]:
    return world.when(UpdateAssetSettings(settings_patch=settings_patch), on=asset_id)


def version_family(world: World, family_id: UUID, schema: dict[str, Any] | None) -> None:
    world.when(VersionFamily(version_tag="next", affordances=[], settings_schema=schema), on=family_id)


def test_settings_are_stored_whole_with_the_revision_of_each_family(world: World, rotary: UUID, stage: UUID) -> None:
    (event,) = patch(world, rotary, min_position=-360, max_position=360, serial_number="A-0042")
    stored = {"min_position": -360, "max_position": 360, "serial_number": "A-0042"}
    assert event == AssetSettingsUpdated(settings=stored, schema_revisions={stage: 0})
    (event,) = patch(world, rotary, min_position=None, max_position=180)
    assert event == AssetSettingsUpdated(
        settings={"max_position": 180, "serial_number": "A-0042"}, schema_revisions={stage: 0}
    )


def test_a_key_no_family_declares_is_refused_with_its_path(world: World, rotary: UUID) -> None:
    with expect_refusal("InvalidAssetSettingsError", "undeclared_key") as refusal:
        patch(world, rotary, speed=5)
    assert refusal.value.facts["path"] == "speed"


def test_the_first_violation_is_reported_with_a_dotted_path(world: World) -> None:
    pose = {"type": "object", "properties": {"x": {"type": "number", "maximum": 5}}, "additionalProperties": False}
    hexapod = root(world, family_ids=[family(world, "Hexapod", settings_schema(pose=pose))])
    with expect_refusal("InvalidAssetSettingsError") as refusal:
        patch(world, hexapod, pose={"x": 7})
    assert refusal.value.facts["path"] == "pose.x"
    with expect_refusal("InvalidAssetSettingsError"):
        patch(world, hexapod, pose={"y": 1})


def test_without_any_schema_only_empty_settings_are_accepted(world: World) -> None:
    housing = root(world, family_ids=[family(world, "Housing")])
    bare = root(world)
    for asset_id in (housing, bare):
        assert patch(world, asset_id) == []
        with expect_refusal("InvalidAssetSettingsError") as refusal:
            patch(world, asset_id, colour="grey")
        assert refusal.value.facts == {"keys": ["colour"]}


def test_empty_settings_are_accepted_whatever_is_required(world: World) -> None:
    camera = root(world, family_ids=[family(world, "Camera", settings_schema(("width",), width=NUMBER))])
    assert patch(world, camera, width=None) == []
    with expect_refusal("InvalidAssetSettingsError"):
        patch(world, camera, height=1)
    patch(world, camera, width=2448)
    (event,) = patch(world, camera, width=None)
    assert event.settings == {}


def test_all_families_hold_at_once_and_each_may_use_the_others_keys(world: World) -> None:
    wide = family(world, "Wide", settings_schema(position={"type": "number", "maximum": 100}))
    narrow = family(world, "Narrow", settings_schema(("speed",), position={"type": "number", "maximum": 10}, speed=NUMBER))
    stage = root(world, family_ids=[wide, narrow])
    patch(world, stage, position=10, speed=1)
    with expect_refusal("InvalidAssetSettingsError"):
        patch(world, stage, position=11)
    with expect_refusal("InvalidAssetSettingsError"):
        patch(world, stage, speed=None)


def test_an_open_family_leaves_the_root_open(world: World, rotary: UUID) -> None:
    world.when(AddAssetFamily(family_id=family(world, "Anything", {})), on=rotary)
    patch(world, rotary, **{"acme.servo_gain": 3})
    with expect_refusal("InvalidAssetSettingsError"):
        patch(world, rotary, min_position="low")


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [(NUMBER, TEXT, "type_clash"), ({**NUMBER, "unit": DEGREE}, {**NUMBER, "unit": RADIAN}, "unit_clash")],
)
def test_families_that_mean_different_things_by_one_key_clash(
    world: World, one: dict[str, Any], other: dict[str, Any], reason: str
) -> None:
    ids = [family(world, name, settings_schema(angle=declared)) for name, declared in (("A", one), ("B", other))]
    with expect_refusal("InvalidAssetSettingsError", reason) as refusal:
        patch(world, root(world, family_ids=ids), angle=1)
    assert refusal.value.facts == {"key": "angle", "families": ["A", "B"]}


def test_a_dotted_key_is_one_key_and_no_path(world: World) -> None:
    schema = settings_schema(**{"acme.servo_gain": NUMBER, "acme": {"type": "object", "properties": {"gain": NUMBER}}})
    drive = root(world, family_ids=[family(world, "Drive", schema)])
    patch(world, drive, **{"acme.servo_gain": 3, "acme": {"gain": 1}})
    (event,) = patch(world, drive, acme={"gain": None})
    assert event.settings == {"acme.servo_gain": 3, "acme": {}}


def test_nothing_happens_when_nothing_changes(world: World, rotary: UUID) -> None:
    patch(world, rotary, max_position=360)
    assert patch(world, rotary, max_position=360.0, min_position=None) == []
    assert patch(world, rotary) == []


def test_true_is_not_one(world: World) -> None:
    asset_id = root(world, family_ids=[family(world, "Anything", {})])
    patch(world, asset_id, invert=1)
    (event,) = patch(world, asset_id, invert=True)
    assert event.settings == {"invert": True}


def test_a_value_must_be_set_again_after_its_unit_changed(world: World, rotary: UUID, stage: UUID) -> None:
    patch(world, rotary, max_position=360, serial_number="A-0042")
    version_family(world, stage, rotary_schema(RADIAN))
    with expect_refusal("InvalidAssetSettingsError", "unit_changed") as refusal:
        patch(world, rotary, serial_number="A-0043")
    assert refusal.value.facts == {"keys": ["max_position"]}
    patch(world, rotary, serial_number="A-0043", max_position=6.28)
    assert asset_of(world, rotary).schema_revisions == {stage: 1}
    patch(world, rotary, serial_number="A-0044")


def test_a_value_whose_unit_changed_may_be_dropped_instead(world: World, rotary: UUID, stage: UUID) -> None:
    patch(world, rotary, max_position=360)
    version_family(world, stage, rotary_schema(RADIAN))
    (event,) = patch(world, rotary, max_position=None)
    assert event == AssetSettingsUpdated(settings={}, schema_revisions={stage: 1})


def test_the_same_number_in_a_new_unit_is_a_change(world: World, rotary: UUID, stage: UUID) -> None:
    patch(world, rotary, max_position=6)
    version_family(world, stage, rotary_schema(RADIAN))
    (event,) = patch(world, rotary, max_position=6)
    assert event == AssetSettingsUpdated(settings={"max_position": 6}, schema_revisions={stage: 1})


def test_a_unit_changed_in_depth_is_found(world: World) -> None:
    def schema(unit: dict[str, str]) -> dict[str, Any]:
        inner = {"type": "object", "properties": {"tilt": {**NUMBER, "unit": unit}, "label": TEXT}}
        return settings_schema(pose=inner, marks={"type": "array", "items": {**NUMBER, "unit": unit}})

    hexapod = family(world, "Hexapod", schema(DEGREE))
    asset_id = root(world, family_ids=[hexapod])
    patch(world, asset_id, pose={"tilt": 1, "label": "a"}, marks=[1, 2])
    version_family(world, hexapod, schema(RADIAN))
    for settings_patch, stale in (({"marks": [0.1]}, "pose.tilt"), ({"pose": {"tilt": 0.1}}, "marks")):
        with expect_refusal("InvalidAssetSettingsError", "unit_changed") as refusal:
            patch(world, asset_id, **settings_patch)
        assert refusal.value.facts == {"keys": [stale]}
    patch(world, asset_id, pose={"tilt": 0.1}, marks=[0.1])


def test_a_value_keeps_the_unit_of_a_family_that_left(world: World, rotary: UUID, stage: UUID) -> None:
    patch(world, rotary, max_position=360)
    world.when(RemoveAssetFamily(family_id=stage), on=rotary)
    world.when(AddAssetFamily(family_id=family(world, "Goniometer", rotary_schema(RADIAN))), on=rotary)
    with expect_refusal("InvalidAssetSettingsError", "unit_changed"):
        patch(world, rotary, serial_number="A-0042")


def test_a_value_passes_to_a_family_that_declares_it_in_the_same_unit(world: World, rotary: UUID, stage: UUID) -> None:
    patch(world, rotary, max_position=360)
    world.when(RemoveAssetFamily(family_id=stage), on=rotary)
    successor = family(world, "Goniometer", rotary_schema())
    world.when(AddAssetFamily(family_id=successor), on=rotary)
    (event,) = patch(world, rotary, serial_number="A-0042")
    assert event.schema_revisions == {successor: 0}


@pytest.mark.parametrize("name", ["Aperture", "Zoom"])
def test_a_clash_of_units_is_reported_before_a_changed_one(world: World, rotary: UUID, name: str) -> None:
    patch(world, rotary, max_position=360)
    world.when(AddAssetFamily(family_id=family(world, name, rotary_schema(RADIAN))), on=rotary)
    with expect_refusal("InvalidAssetSettingsError", "unit_clash"):
        patch(world, rotary, serial_number="A-0042")


def test_a_tightened_schema_is_felt_at_the_next_write_only(world: World, rotary: UUID, stage: UUID) -> None:
    patch(world, rotary, serial_number="A-0042")
    tightened = rotary_schema()
    tightened["properties"]["serial_number"]["maxLength"] = 3
    world.when(UpdateFamilySettingsSchema(settings_schema=tightened), on=stage)
    assert asset_of(world, rotary).settings == {"serial_number": "A-0042"}
    with expect_refusal("InvalidAssetSettingsError"):
        patch(world, rotary, max_position=1)


def test_keys_of_a_removed_family_must_be_nulled(world: World, rotary: UUID, stage: UUID) -> None:
    axis = family(world, "PseudoAxis", settings_schema(quantity=TEXT))
    world.when(AddAssetFamily(family_id=axis), on=rotary)
    patch(world, rotary, quantity="energy", max_position=360)
    world.when(RemoveAssetFamily(family_id=stage), on=rotary)
    with expect_refusal("InvalidAssetSettingsError", "undeclared_key"):
        patch(world, rotary, quantity="angle")
    (event,) = patch(world, rotary, quantity="angle", max_position=None)
    assert event == AssetSettingsUpdated(settings={"quantity": "angle"}, schema_revisions={axis: 0})


KEYS = st.sampled_from(["a", "b", "a.b"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["x", "y"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(patches=st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=5))
def test_patching_twice_with_the_same_patch_is_patching_once(patches: list[dict[str, Any]]) -> None:
    world = facility_world()
    asset_id = root(world, family_ids=[family(world, "Anything", {})])
    for one in patches:
        patch(world, asset_id, **one)
        assert patch(world, asset_id, **one) == []
        assert None not in asset_of(world, asset_id).settings.values()
