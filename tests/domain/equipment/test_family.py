"""A family's life: affordances, settings schema and its revisions, the roles it presents; and the list of affordances."""

from typing import Any
from uuid import UUID

import pytest

from baton.domain.equipment.affordance import Affordance, AffordanceGroup, AffordanceKind
from baton.domain.equipment.family import (
    AddFamilyRole,
    DefineFamily,
    DeprecateFamily,
    Family,
    FamilyDeprecated,
    FamilySettingsSchemaUpdated,
    FamilyVersioned,
    ListAffordances,
    RemoveFamilyRole,
    UpdateFamilySettingsSchema,
    VersionFamily,
)
from baton.domain.equipment.role import DefineRole
from baton.domain.shared.schema import DIALECT, Schema
from tests.support.domain.world import World, expect_refusal, new_id

STAGE = ["Rotatable", "Homeable", "Limitable", "Marking", "Leading", "Reportable"]


def schema(unit: str | None = "degree", **more: Schema) -> Schema:
    position: Schema = {"type": "number"}
    if unit is not None:
        position["unit"] = {"system": "udunits", "code": unit}
    return {
        "$schema": DIALECT,
        "type": "object",
        "additionalProperties": False,
        "unevaluatedProperties": False,
        "properties": {"max_position": position, "serial_number": {"type": "string"}, **more},
    }


@pytest.fixture
def world() -> World:
    return World()


def define_family(world: World, **fields: Any) -> UUID:
    values: dict[str, Any] = {"name": "RotaryStage", "affordances": STAGE, "settings_schema": schema(), **fields}
    return world.create(DefineFamily(**values))


def positioner(world: World) -> UUID:
    return world.create(DefineRole(name="Positioner", description="Moves.", required_affordances=["Homeable", "Limitable"]))


def version_command(**fields: Any) -> VersionFamily:
    return VersionFamily(**{"version_tag": "v2", "affordances": STAGE, **fields})


@pytest.mark.parametrize("name", ["RotaryStage", " rotarystage ", "ROTARYSTAGE"])
def test_a_family_name_is_taken_whatever_its_case(world: World, name: str) -> None:
    define_family(world)
    with expect_refusal("FamilyAlreadyExistsError", "name_taken"):
        define_family(world, name=name)


def test_a_deprecated_family_keeps_its_name(world: World) -> None:
    world.when(DeprecateFamily(), on=define_family(world))
    with expect_refusal("FamilyAlreadyExistsError"):
        define_family(world)


def test_blank_texts_are_refused_by_their_own_class(world: World) -> None:
    with expect_refusal("InvalidFamilyNameError", "blank"):
        define_family(world, name="  ")
    stage = define_family(world)
    with expect_refusal("InvalidFamilyVersionTagError", "blank"):
        world.when(version_command(version_tag=" "), on=stage)
    with expect_refusal("InvalidReasonError", "blank"):
        world.when(DeprecateFamily(reason=" "), on=stage)


WITHOUT_DIALECT = {"type": "object", "properties": {}}


def test_a_schema_that_may_not_be_declared_is_refused_wherever_it_is_given(world: World) -> None:
    with expect_refusal("InvalidFamilySettingsSchemaError", "wrong_dialect") as caught:
        define_family(world, settings_schema=WITHOUT_DIALECT)
    assert caught.value.facts == {"path": "$.$schema"}
    stage = define_family(world)
    for command in (
        version_command(settings_schema=WITHOUT_DIALECT),
        UpdateFamilySettingsSchema(settings_schema=WITHOUT_DIALECT),
    ):
        with expect_refusal("InvalidFamilySettingsSchemaError", "wrong_dialect"):
            world.when(command, on=stage)


def test_a_version_replaces_the_affordances_and_keeps_a_schema_that_is_left_out(world: World) -> None:
    stage = define_family(world)
    assert world.when(version_command(affordances=["Rotatable"]), on=stage) == [
        FamilyVersioned(
            version_tag="v2", affordances={Affordance.ROTATABLE}, settings_schema=schema(), settings_schema_revision=0
        )
    ]
    state = world.state(Family, stage)
    assert (state.version_tag, state.versioned_at) == ("v2", world.now)
    assert (state.affordances, state.settings_schema) == ({"Rotatable"}, schema())


def test_a_version_may_give_a_new_schema_or_withdraw_it(world: World) -> None:
    stage = define_family(world)
    world.when(version_command(settings_schema=schema(extra={"type": "string"})), on=stage)
    assert world.state(Family, stage).settings_schema_revision == 1
    world.when(version_command(settings_schema=None), on=stage)
    state = world.state(Family, stage)
    assert (state.settings_schema, state.settings_schema_revision) == (None, 2)


def test_a_version_with_an_equal_schema_is_no_new_revision(world: World) -> None:
    stage = define_family(world)
    world.when(version_command(settings_schema=dict(reversed(schema().items()))), on=stage)
    assert world.state(Family, stage).settings_schema_revision == 0


def test_a_schema_update_counts_the_revision_and_touches_nothing_else(world: World) -> None:
    stage = define_family(world)
    wider = schema(firmware_version={"type": "string"})
    assert world.when(UpdateFamilySettingsSchema(settings_schema=wider), on=stage) == [
        FamilySettingsSchemaUpdated(settings_schema=wider, settings_schema_revision=1)
    ]
    state = world.state(Family, stage)
    assert (state.affordances, state.settings_schema, state.settings_schema_present) == (set(STAGE), wider, True)


def test_an_equal_schema_is_no_update(world: World) -> None:
    stage = define_family(world, settings_schema=schema(gain={"type": "number", "minimum": 25}))
    equal = schema(gain={"minimum": 25.0, "type": "number"})
    assert world.when(UpdateFamilySettingsSchema(settings_schema=equal), on=stage) == []


def test_a_schema_that_lists_true_instead_of_one_is_an_update(world: World) -> None:
    stage = define_family(world, settings_schema=schema(flag={"enum": [1]}))
    assert world.when(UpdateFamilySettingsSchema(settings_schema=schema(flag={"enum": [True]})), on=stage)


def test_an_update_may_withdraw_the_schema(world: World) -> None:
    stage = define_family(world)
    world.when(UpdateFamilySettingsSchema(settings_schema=None), on=stage)
    assert (world.state(Family, stage).settings_schema, world.state(Family, stage).settings_schema_present) == (None, False)


@pytest.mark.parametrize("unit", ["rad", None])
def test_an_update_cannot_alter_or_drop_a_unit_but_a_version_can(world: World, unit: str | None) -> None:
    stage = define_family(world)
    with expect_refusal("FamilyCannotUpdateSettingsSchemaError", "unit_changed") as caught:
        world.when(UpdateFamilySettingsSchema(settings_schema=schema(unit)), on=stage)
    assert caught.value.facts == {"keys": ["max_position"]}
    world.when(version_command(settings_schema=schema(unit)), on=stage)
    assert world.state(Family, stage).settings_schema == schema(unit)


def test_an_update_may_add_a_unit_or_drop_the_property_with_its_unit(world: World) -> None:
    stage = define_family(world, settings_schema=schema(None))
    world.when(UpdateFamilySettingsSchema(settings_schema=schema("rad")), on=stage)
    world.when(UpdateFamilySettingsSchema(settings_schema={}), on=stage)
    state = world.state(Family, stage)
    assert (state.settings_schema_revision, state.settings_schema_present) == (2, True)


def test_the_units_of_every_revision_are_remembered(world: World) -> None:
    stage = define_family(world)
    world.when(version_command(settings_schema=schema("rad")), on=stage)
    world.when(UpdateFamilySettingsSchema(settings_schema=None), on=stage)
    assert world.state(Family, stage).units_by_revision == {
        0: {"max_position": ("udunits", "degree")},
        1: {"max_position": ("udunits", "rad")},
        2: {},
    }


def test_a_family_presents_a_role_whose_contract_it_keeps(world: World) -> None:
    stage, role = define_family(world), positioner(world)
    world.when(AddFamilyRole(role_id=role), on=stage)
    assert world.state(Family, stage).presented_role_ids == {role}
    with expect_refusal("FamilyCannotAddRoleError", "already_present"):
        world.when(AddFamilyRole(role_id=role), on=stage)


def test_a_family_cannot_present_a_role_it_lacks_affordances_for(world: World) -> None:
    camera, role = define_family(world, name="Camera", affordances=["Imageable", "Homeable"]), positioner(world)
    with expect_refusal("FamilyCannotAddRoleError", "missing_affordances") as caught:
        world.when(AddFamilyRole(role_id=role), on=camera)
    assert caught.value.facts == {"missing_affordances": ["Limitable"]}


def test_a_role_must_exist_to_be_presented(world: World) -> None:
    stage = define_family(world)
    world.when(DeprecateFamily(), on=stage)
    with expect_refusal("RoleNotFoundError"):
        world.when(AddFamilyRole(role_id=new_id()), on=stage)


def test_a_version_cannot_shrink_below_a_presented_role(world: World) -> None:
    stage, role = define_family(world), positioner(world)
    world.when(AddFamilyRole(role_id=role), on=stage)
    with expect_refusal("FamilyCannotVersionError", "role_contract_broken") as caught:
        world.when(version_command(affordances=["Rotatable", "Homeable"]), on=stage)
    assert caught.value.facts == {"role_id": str(role), "missing_affordances": ["Limitable"]}
    world.when(version_command(affordances=["Homeable", "Limitable"]), on=stage)
    world.when(RemoveFamilyRole(role_id=role), on=stage)
    world.when(version_command(affordances=[]), on=stage)


def test_the_schema_is_judged_before_the_role_contract(world: World) -> None:
    stage, role = define_family(world), positioner(world)
    world.when(AddFamilyRole(role_id=role), on=stage)
    with expect_refusal("InvalidFamilySettingsSchemaError"):
        world.when(version_command(affordances=[], settings_schema=WITHOUT_DIALECT), on=stage)


def test_only_a_presented_role_can_be_removed(world: World) -> None:
    with expect_refusal("FamilyCannotRemoveRoleError", "not_present"):
        world.when(RemoveFamilyRole(role_id=new_id()), on=define_family(world))


def test_roles_stay_across_versions_schema_updates_and_deprecation(world: World) -> None:
    stage, role = define_family(world), positioner(world)
    world.when(AddFamilyRole(role_id=role), on=stage)
    world.when(version_command(), on=stage)
    world.when(UpdateFamilySettingsSchema(settings_schema={}), on=stage)
    world.when(DeprecateFamily(reason="superseded"), on=stage)
    assert world.state(Family, stage).presented_role_ids == {role}
    world.when(RemoveFamilyRole(role_id=role), on=stage)
    assert world.state(Family, stage).presented_role_ids == frozenset()


@pytest.mark.parametrize("reason", [None, "replaced by AirBearingStage"])
def test_a_family_is_deprecated_with_or_without_a_reason(world: World, reason: str | None) -> None:
    stage = define_family(world)
    assert world.when(DeprecateFamily(reason=reason), on=stage) == [FamilyDeprecated(reason=reason)]
    assert world.state(Family, stage).deprecated_at == world.now


def test_there_are_thirty_affordances_in_their_groups(world: World) -> None:
    rows = world.ask(ListAffordances()).items
    counts = {group: sum(row.group is group for row in rows) for group in AffordanceGroup}
    assert list(counts.values()) == [9, 3, 5, 4, 6, 2, 1]
    assert [row.affordance for row in rows if row.kind is AffordanceKind.LIFECYCLE] == [Affordance.CONSUMABLE]
    gerunds = {row.affordance for row in rows if row.affordance.endswith("ing")}
    assert gerunds == {"Marking", "Pulsing", "Following", "Leading", "Recording", "Capturing"}
    assert sum(row.affordance.endswith(("able", "ible")) for row in rows) == 24
    assert all(row.meaning for row in rows)
