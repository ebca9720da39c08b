"""A family's life: affordances, settings schema and its revisions, the roles it presents; and the list of affordances."""

import json
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.equipment.affordance import Affordance, AffordanceGroup, AffordanceKind
from baton.domain.equipment.family import (
    AddFamilyRole,
    DefineFamily,
    DeprecateFamily,
    Family,
    FamilyDefined,
    FamilyDeprecated,
    FamilySettingsSchemaUpdated,
    FamilyStatus,
    FamilySummary,
    FamilyVersioned,
    ListAffordances,
    ListFamilies,
    RemoveFamilyRole,
    UpdateFamilySettingsSchema,
    VersionFamily,
    family,
)
from baton.domain.equipment.role import DefineRole
from baton.domain.kernel import Command
from baton.domain.registry import REGISTRY
from baton.domain.shared.listing import Where
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.schema import DIALECT, Schema, declared_units
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


def test_a_family_begins_defined_with_the_first_revision_of_its_schema(world: World) -> None:
    state = world.state(Family, define_family(world))
    assert (state.status, state.version_tag, state.settings_schema_revision) == (FamilyStatus.DEFINED, None, 0)
    assert state.affordances == set(STAGE)
    assert state.settings_schema == schema()


@pytest.mark.parametrize("name", ["RotaryStage", " rotarystage ", "ROTARYSTAGE"])
def test_a_family_name_is_taken_whatever_its_case(world: World, name: str) -> None:
    define_family(world)
    with expect_refusal("FamilyAlreadyExistsError", "name_taken"):
        define_family(world, name=name)


def test_a_deprecated_family_keeps_its_name(world: World) -> None:
    world.when(DeprecateFamily(), on=define_family(world))
    with expect_refusal("FamilyAlreadyExistsError"):
        define_family(world)


def test_a_family_may_have_no_affordance_and_no_schema(world: World) -> None:
    state = world.state(Family, define_family(world, affordances=[], settings_schema=None))
    assert (state.affordances, state.settings_schema, state.settings_schema_present) == (frozenset(), None, False)


def test_an_unknown_affordance_is_malformed() -> None:
    with pytest.raises(ValidationError):
        DefineFamily(name="Stage", affordances=["Flyable"])


def test_affordances_must_be_given() -> None:
    with pytest.raises(ValidationError):
        DefineFamily(name="Stage")


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
    assert (state.status, state.version_tag, state.versioned_at) == (FamilyStatus.VERSIONED, "v2", world.now)
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
    assert (state.status, state.affordances, state.settings_schema) == (FamilyStatus.DEFINED, set(STAGE), wider)


def test_an_equal_schema_is_no_update(world: World) -> None:
    stage = define_family(world, settings_schema=schema(gain={"type": "number", "minimum": 25}))
    equal = schema(gain={"minimum": 25.0, "type": "number"})
    assert world.when(UpdateFamilySettingsSchema(settings_schema=equal), on=stage) == []


def test_a_schema_that_lists_true_instead_of_one_is_an_update(world: World) -> None:
    stage = define_family(world, settings_schema=schema(flag={"enum": [1]}))
    assert world.when(UpdateFamilySettingsSchema(settings_schema=schema(flag={"enum": [True]})), on=stage)


def test_the_schema_must_be_sent_with_an_update_null_or_not(world: World) -> None:
    with pytest.raises(ValidationError):
        UpdateFamilySettingsSchema()
    stage = define_family(world)
    world.when(UpdateFamilySettingsSchema(settings_schema=None), on=stage)
    assert world.state(Family, stage).settings_schema is None


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
    assert world.state(Family, stage).settings_schema_revision == 2


def test_the_units_of_every_revision_are_remembered_and_not_shown(world: World) -> None:
    stage = define_family(world)
    world.when(version_command(settings_schema=schema("rad")), on=stage)
    world.when(UpdateFamilySettingsSchema(settings_schema=None), on=stage)
    assert world.state(Family, stage).units_by_revision == {
        0: {"max_position": ("udunits", "degree")},
        1: {"max_position": ("udunits", "rad")},
        2: {},
    }
    view = world.ask(REGISTRY.operations["get_family"].input(), on=stage)
    assert set(type(view).model_fields) == {
        "id",
        "family_id",
        "name",
        "status",
        "version_tag",
        "affordances",
        "settings_schema",
        "settings_schema_revision",
        "presented_role_ids",
        "created_at",
        "versioned_at",
        "deprecated_at",
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
    state = world.state(Family, stage)
    assert (state.status, state.deprecated_at) == (FamilyStatus.DEPRECATED, world.now)


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        (version_command(), "FamilyCannotVersionError"),
        (UpdateFamilySettingsSchema(settings_schema=None), "FamilyCannotUpdateSettingsSchemaError"),
        (DeprecateFamily(), "FamilyCannotDeprecateError"),
    ],
)
def test_a_deprecated_family_does_not_change(world: World, command: Command, refusal: str) -> None:
    stage = define_family(world)
    world.when(DeprecateFamily(), on=stage)
    with expect_refusal(refusal, "deprecated"):
        world.when(command, on=stage)


def test_a_listed_family_shows_whether_it_has_a_schema(world: World) -> None:
    row = FamilySummary.of(world.state(Family, define_family(world, settings_schema={})))
    assert (row.name, row.settings_schema_present, row.affordances) == ("RotaryStage", True, set(STAGE))


def test_families_are_listed_by_status_affordance_and_role() -> None:
    role = new_id()
    query = ListFamilies(status=FamilyStatus.DEFINED, affordance=Affordance.ROTATABLE, role_id=role)
    assert list(query.where()) == [
        Where("status", "is", FamilyStatus.DEFINED),
        Where("affordances", "has", Affordance.ROTATABLE),
        Where("presented_role_ids", "has", role),
    ]


def test_there_are_thirty_affordances_in_their_groups(world: World) -> None:
    rows = world.ask(ListAffordances()).items
    counts = {group: sum(row.group is group for row in rows) for group in AffordanceGroup}
    assert list(counts.values()) == [9, 3, 5, 4, 6, 2, 1]
    assert [row.affordance for row in rows if row.kind is AffordanceKind.LIFECYCLE] == [Affordance.CONSUMABLE]
    gerunds = {row.affordance for row in rows if row.affordance.endswith("ing")}
    assert gerunds == {"Marking", "Pulsing", "Following", "Leading", "Recording", "Capturing"}
    assert sum(row.affordance.endswith(("able", "ible")) for row in rows) == 24
    assert all(row.meaning for row in rows)


def test_the_affordances_are_asked_for_at_a_path_of_their_own() -> None:
    assert (ListAffordances.operation.method, ListAffordances.operation.path) == ("GET", "/affordances")


AFFORDANCES = st.frozensets(st.sampled_from([Affordance.HOMEABLE, Affordance.LIMITABLE, Affordance.ROTATABLE]))
SCHEMAS = st.none() | st.just({}) | st.builds(schema, st.sampled_from(["degree", "rad", None]))
TAGS = st.sampled_from(["v1", "v2"])
LIVES = st.lists(
    st.one_of(
        st.builds(VersionFamily, version_tag=TAGS, affordances=AFFORDANCES),
        st.builds(VersionFamily, version_tag=TAGS, affordances=AFFORDANCES, settings_schema=SCHEMAS),
        st.builds(UpdateFamilySettingsSchema, settings_schema=SCHEMAS),
        st.sampled_from([AddFamilyRole, RemoveFamilyRole]),
        st.builds(DeprecateFamily, reason=st.none() | st.just("old")),
    ),
    max_size=8,
)


@given(SCHEMAS, LIVES)
def test_every_life_folds_from_its_stored_events_and_remembers_its_units(first: Schema | None, life: list[Any]) -> None:
    world = World()
    role, stage = positioner(world), define_family(world, settings_schema=first)
    for step in life:
        with suppress(Refusal):
            world.when(step(role_id=role) if isinstance(step, type) else step, on=stage)
    events = world.streams["Family", stage]
    stored = [(type(event).__name__, event.payload(), event.occurred_at) for event in events]
    decoded = [family.decode(name, payload, stage, time) for name, payload, time in stored]
    assert decoded == events
    assert all(json.loads(payload)["family_id"] == str(stage) for _, payload, _ in stored)
    for length in range(1, len(events) + 1):
        state = family.fold(decoded[:length])
        assert state is not None
        assert state == family.fold(events[:length])
        assert list(state.units_by_revision) == list(range(state.settings_schema_revision + 1))
        assert state.units_by_revision[state.settings_schema_revision] == declared_units(state.settings_schema)
    assert isinstance(events[0], FamilyDefined)
