"""Methods: what they need, the schema within that of their capability, the roles played in them, versions."""

from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.contexts import REGISTRY
from baton.domain.equipment.role import DefineRole
from baton.domain.equipment.values import PortDirection
from baton.domain.recipe.capability import DeprecateCapability, VersionCapability
from baton.domain.recipe.lifecycle import DEFINED, DEPRECATED, VERSIONED
from baton.domain.recipe.method import (
    AddMethodRequiredRole,
    DefineMethod,
    DeprecateMethod,
    Method,
    MethodDeprecated,
    MethodParametersSchemaUpdated,
    MethodRequiredRoleAdded,
    MethodRequiredRoleRemoved,
    MethodSummary,
    MethodVersioned,
    PortRequirement,
    RemoveMethodRequiredRole,
    UpdateMethodParametersSchema,
    VersionMethod,
)
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.schema import Schema, declared_units
from tests.support.domain.assets import family
from tests.support.domain.templates import MILLISECOND, SECOND, WITHOUT_DIALECT, acquisition, capability, method
from tests.support.domain.world import World, expect_refusal, new_id
from tests.support.tables import for_each


@pytest.fixture
def camera(world: World) -> UUID:
    return family(world, "Camera", None, "Imageable")


@pytest.fixture
def detector_role(world: World) -> UUID:
    return world.create(DefineRole(name="Detector", description="Sees.", required_affordances=["Imageable"]))


def state(world: World, id: UUID) -> Method:
    found: Method = world.state(Method, id)
    return found


def update(schema: Schema | None) -> UpdateMethodParametersSchema:
    return UpdateMethodParametersSchema(parameters_schema=schema)


def role(role_name: str = "detector", **fields: Any) -> AddMethodRequiredRole:
    return AddMethodRequiredRole(requirement={"role_name": role_name, **fields})


def capability_version(schema: Schema | None, **fields: Any) -> VersionCapability:
    contract = {"required_affordances": [], "executor_shapes": ["METHOD"], "description": None}
    return VersionCapability(**{"version_tag": "v2", **contract, "parameters_schema": schema, **fields})


def test_a_method_begins_defined_with_the_first_revision_of_its_schema(world: World, camera: UUID) -> None:
    needs = {"needed_family_ids": [camera, camera], "needed_supplies": [" photon_beam ", "photon_beam"]}
    begun = state(world, method(world, name=" flat_field ", **needs, parameters_schema=acquisition(maximum=1)))
    assert (begun.name, begun.needed_family_ids, begun.needed_supplies) == ("flat_field", {camera}, {"photon_beam"})
    assert (begun.status, begun.version_tag, begun.parameters_schema_revision) == (DEFINED, None, 0)
    assert (begun.required_roles, begun.created_at) == ((), world.now)


def test_a_method_may_need_nothing_and_have_no_parameters(world: World) -> None:
    begun = state(world, method(world))
    assert (begun.needed_family_ids, begun.needed_supplies) == (frozenset(), frozenset())
    assert (begun.parameters_schema, begun.parameters_schema_present) == (None, False)


@for_each("kind", ["", "a" * 51])
def test_a_supply_kind_out_of_bounds_is_malformed(kind: str) -> None:
    with pytest.raises(ValidationError):
        DefineMethod(name="flat_field", capability_id=new_id(), needed_supplies=[kind])


def test_blank_texts_are_refused_by_their_own_class(world: World, camera: UUID) -> None:
    with expect_refusal("InvalidMethodNameError", "blank"):
        method(world, name=" ")
    realised = capability(world, code="baton.capability.alignment")
    with expect_refusal("InvalidMethodNeededSuppliesError", "blank"):
        method(world, realised, needed_supplies=["photon_beam", " "])
    id = method(world, realised)
    with expect_refusal("InvalidRoleNameError", "blank"):
        world.when(role(" ", family_id=camera), on=id)
    for port in ({"port_name": " ", "signal_type": "TTL"}, {"port_name": "trigger_in", "signal_type": " "}):
        with expect_refusal("InvalidPortRequirementError", "blank"):
            world.when(role(family_id=camera, required_ports=[{**port, "direction": "Input"}]), on=id)
    with expect_refusal("InvalidMethodVersionTagError", "blank"):
        world.when(VersionMethod(version_tag=" "), on=id)
    with expect_refusal("InvalidReasonError", "blank"):
        world.when(DeprecateMethod(reason=" "), on=id)


def test_capability_and_families_must_exist_in_this_order(world: World) -> None:
    with expect_refusal("CapabilityNotFoundError"):
        method(world, new_id(), needed_family_ids=[new_id()], name=" ")
    with expect_refusal("FamilyNotFoundError") as caught:
        method(world, needed_family_ids=[new_id()], name=" ")
    assert caught.value.status == 404


def test_a_method_is_judged_by_its_schema_then_the_shapes_then_the_schema_of_its_capability(world: World) -> None:
    realised = capability(world, executor_shapes=["PROCEDURE"])
    with expect_refusal("InvalidMethodParametersSchemaError", "wrong_dialect"):
        method(world, realised, parameters_schema=WITHOUT_DIALECT)
    with expect_refusal("MethodCapabilityExecutorMismatchError") as caught:
        method(world, realised, parameters_schema=acquisition(maximum=20))
    assert caught.value.status == 409
    assert caught.value.facts == {"capability_id": str(realised), "executor_shapes": ["PROCEDURE"]}


def test_methods_are_defined_on_a_deprecated_capability_too(world: World) -> None:
    realised = capability(world)
    world.when(DeprecateCapability(), on=realised)
    assert state(world, method(world, realised)).capability_id == realised


def test_a_schema_beyond_the_capability_is_refused_wherever_it_is_given(world: World) -> None:
    realised = capability(world)
    id = method(world, realised)
    wider = acquisition(maximum=20)
    beyond = {"capability_id": str(realised), "rule": "6", "path": "$.properties.dwell.maximum"}
    with expect_refusal("MethodParametersNotSubsetError") as caught:
        method(world, realised, parameters_schema=wider)
    assert (caught.value.status, caught.value.facts) == (409, {"method_id": None, **beyond})
    for command in (update(wider), VersionMethod(version_tag="v2", parameters_schema=wider)):
        with expect_refusal("MethodParametersNotSubsetError") as caught:
            world.when(command, on=id)
        assert caught.value.facts == {"method_id": str(id), **beyond}


@pytest.mark.parametrize("outer", [None, {}])
def test_a_capability_that_constrains_nothing_takes_any_schema(world: World, outer: Schema | None) -> None:
    id = method(world, capability(world, parameters_schema=outer), parameters_schema=acquisition())
    assert state(world, id).parameters_schema == acquisition()


def test_a_schema_update_counts_the_revision_in_every_status(world: World) -> None:
    id = method(world)
    for revision, command in enumerate([None, VersionMethod(version_tag="v2"), DeprecateMethod()], start=1):
        if command is not None:
            world.when(command, on=id)
        schema = acquisition(maximum=10 - revision)
        assert world.when(update(schema), on=id) == [
            MethodParametersSchemaUpdated(parameters_schema=schema, parameters_schema_revision=revision)
        ]
    now = state(world, id)
    assert (now.parameters_schema, now.status) == (acquisition(maximum=7), DEPRECATED)


def test_an_equal_schema_is_no_update_even_where_the_capability_has_narrowed_since(world: World) -> None:
    realised = capability(world)
    id = method(world, realised, parameters_schema=acquisition(maximum=5))
    world.when(capability_version(acquisition(maximum=2)), on=realised)
    assert world.when(update(dict(reversed(acquisition(maximum=5.0).items()))), on=id) == []
    assert state(world, id).parameters_schema == acquisition(maximum=5)
    with expect_refusal("MethodParametersNotSubsetError"):
        world.when(update(acquisition(maximum=4)), on=id)


def test_a_schema_may_be_withdrawn_but_not_opened_under_a_closed_capability(world: World) -> None:
    id = method(world, parameters_schema=acquisition())
    with expect_refusal("MethodParametersNotSubsetError"):
        world.when(update({}), on=id)
    world.when(update(None), on=id)
    assert state(world, id).parameters_schema is None


def test_the_schema_must_be_sent_with_an_update(world: World) -> None:
    with pytest.raises(ValidationError):
        UpdateMethodParametersSchema()


@pytest.mark.parametrize("unit", [MILLISECOND, None])
def test_an_update_cannot_alter_or_drop_a_unit_but_a_version_can(world: World, unit: dict[str, str] | None) -> None:
    realised = capability(world, parameters_schema=None)
    id = method(world, realised, parameters_schema=acquisition())
    with expect_refusal("InvalidMethodParametersSchemaError", "unit_changed") as caught:
        world.when(update(acquisition(unit=unit)), on=id)
    assert (caught.value.status, caught.value.facts) == (400, {"keys": ["dwell"]})
    world.when(VersionMethod(version_tag="v2", parameters_schema=acquisition(unit=unit)), on=id)
    assert state(world, id).parameters_schema == acquisition(unit=unit)


def test_a_changed_unit_is_refused_before_a_schema_beyond_the_capability(world: World) -> None:
    id = method(world, parameters_schema=acquisition())
    with expect_refusal("InvalidMethodParametersSchemaError", "unit_changed"):
        world.when(update(acquisition(maximum=20, unit=MILLISECOND)), on=id)


def test_an_update_may_give_a_unit_to_what_had_none(world: World) -> None:
    id = method(world, capability(world, parameters_schema={}), parameters_schema=acquisition(unit=None))
    world.when(update(acquisition()), on=id)
    assert state(world, id).parameters_schema_revision == 1


def test_the_units_of_every_revision_are_remembered_and_not_shown(world: World) -> None:
    id = method(world, capability(world, parameters_schema={}), parameters_schema=acquisition())
    world.when(VersionMethod(version_tag="v2", parameters_schema=acquisition(unit=MILLISECOND)), on=id)
    world.when(update(None), on=id)
    millimetre = ("udunits", "mm")
    now = state(world, id)
    assert now.units_at(0) == {"dwell": ("udunits", "s"), "retract_position": millimetre}
    assert now.units_at(1) == {"dwell": ("udunits", "ms"), "retract_position": millimetre}
    assert (now.units_at(2), now.units_at(None)) == ({}, {})
    view = world.show(REGISTRY.operations["get_method"].input(), on=id)
    assert not [name for name in type(view).model_fields if "unit" in name]


def test_a_role_names_a_family_and_the_ports_it_needs(world: World, camera: UUID) -> None:
    id = method(world)
    trigger = {"port_name": " trigger_in ", "direction": "Input", "signal_type": "TTL"}
    busy = {"port_name": "busy_out", "direction": "Output", "signal_type": "TTL"}
    ports = [trigger, busy, {**trigger, "port_name": "trigger_in"}]
    assert world.when(role(" detector ", family_id=camera, required_ports=ports), on=id) == [
        MethodRequiredRoleAdded(
            role_name="detector",
            family_id=camera,
            role_id=None,
            required_ports=(
                PortRequirement(port_name="busy_out", direction=PortDirection.OUTPUT, signal_type="TTL"),
                PortRequirement(port_name="trigger_in", direction=PortDirection.INPUT, signal_type="TTL"),
            ),
            optional=False,
        )
    ]


def test_roles_are_kept_in_the_order_of_their_names(world: World, camera: UUID, detector_role: UUID) -> None:
    id = method(world)
    world.when(role("shutter", family_id=camera), on=id)
    world.when(role("detector", role_id=detector_role, optional=True), on=id)
    kept = state(world, id).required_roles
    assert [(one.role_name, one.family_id, one.role_id, one.optional) for one in kept] == [
        ("detector", None, detector_role, True),
        ("shutter", camera, None, False),
    ]


def test_role_names_differ_by_case_and_are_declared_once(world: World, camera: UUID) -> None:
    id = method(world)
    world.when(role("detector", family_id=camera), on=id)
    world.when(role("Detector", family_id=camera), on=id)
    with expect_refusal("MethodRoleNameAlreadyDeclaredError") as caught:
        world.when(role(" detector", family_id=camera), on=id)
    assert (caught.value.status, caught.value.facts) == (409, {"role_name": "detector"})


def test_a_role_names_one_target(world: World, camera: UUID, detector_role: UUID) -> None:
    id = method(world)
    for targets in ({}, {"family_id": camera, "role_id": detector_role}):
        with expect_refusal("InvalidRoleRequirementTargetError") as caught:
            world.when(role(**targets), on=id)
        assert caught.value.status == 400


def test_the_target_of_a_role_must_exist_whatever_else_is_wrong(world: World, camera: UUID) -> None:
    id = method(world)
    world.when(VersionMethod(version_tag="v2"), on=id)
    with expect_refusal("FamilyNotFoundError"):
        world.when(role(" ", family_id=new_id(), role_id=new_id()), on=id)
    with expect_refusal("RoleNotFoundError"):
        world.when(role(" ", family_id=camera, role_id=new_id()), on=id)
    with expect_refusal("MethodCannotAddRequiredRoleError", "versioned"):
        world.when(role(" ", family_id=camera), on=id)


def test_an_unknown_port_direction_is_malformed() -> None:
    port = {"port_name": "trigger_in", "direction": "Sideways", "signal_type": "TTL"}
    with pytest.raises(ValidationError):
        role(family_id=new_id(), required_ports=[port])


def test_a_declared_role_can_be_removed_and_no_other(world: World, camera: UUID) -> None:
    id = method(world)
    world.when(role("detector", family_id=camera), on=id)
    world.when(role("shutter", family_id=camera), on=id)
    assert world.when(RemoveMethodRequiredRole(role_name=" detector "), on=id) == [
        MethodRequiredRoleRemoved(role_name="detector")
    ]
    assert [one.role_name for one in state(world, id).required_roles] == ["shutter"]
    with expect_refusal("MethodRoleNameNotFoundError") as caught:
        world.when(RemoveMethodRequiredRole(role_name="detector"), on=id)
    assert (caught.value.status, caught.value.facts) == (404, {"role_name": "detector"})


def test_a_version_without_a_schema_only_labels(world: World, camera: UUID) -> None:
    id = method(world, parameters_schema=acquisition())
    world.when(role(family_id=camera), on=id)
    before = state(world, id)
    assert world.when(VersionMethod(version_tag=" v2 "), on=id) == [
        MethodVersioned(version_tag="v2", parameters_schema=acquisition(), parameters_schema_revision=0)
    ]
    now = state(world, id)
    assert (now.status, now.version_tag, now.versioned_at) == (VERSIONED, "v2", world.now)
    assert (now.parameters_schema, now.required_roles) == (before.parameters_schema, before.required_roles)


def test_a_version_that_only_labels_is_not_judged_by_a_capability_narrowed_since(world: World) -> None:
    realised = capability(world)
    id = method(world, realised, parameters_schema=acquisition(maximum=5))
    world.when(capability_version(acquisition(maximum=2)), on=realised)
    world.when(VersionMethod(version_tag="v2"), on=id)
    with expect_refusal("MethodParametersNotSubsetError"):
        world.when(VersionMethod(version_tag="v3", parameters_schema=acquisition(maximum=5)), on=id)


def test_a_version_may_give_a_schema_an_equal_one_or_none(world: World) -> None:
    id = method(world)
    for schema, revision in ((acquisition(), 1), (acquisition(), 1), (None, 2)):
        assert world.when(VersionMethod(version_tag="v2", parameters_schema=schema), on=id) == [
            MethodVersioned(version_tag="v2", parameters_schema=schema, parameters_schema_revision=revision)
        ]
    assert state(world, id).parameters_schema is None


def test_a_version_with_a_bad_schema_is_refused(world: World) -> None:
    with expect_refusal("InvalidMethodParametersSchemaError", "wrong_dialect"):
        world.when(VersionMethod(version_tag="v2", parameters_schema=WITHOUT_DIALECT), on=method(world))


@pytest.mark.parametrize("reason", [None, "superseded; earlier use stands"])
def test_a_deprecated_method_stays_readable(world: World, reason: str | None) -> None:
    id = method(world, parameters_schema=acquisition())
    world.when(VersionMethod(version_tag="v2"), on=id)
    assert world.when(DeprecateMethod(reason=reason), on=id) == [MethodDeprecated(reason=reason)]
    now = state(world, id)
    assert (now.status, now.version_tag, now.deprecated_at) == (DEPRECATED, "v2", world.now)
    assert now.parameters_schema == acquisition()


def test_the_state_is_judged_before_tag_and_schema(world: World) -> None:
    id = method(world)
    world.when(DeprecateMethod(), on=id)
    with expect_refusal("MethodCannotVersionError", "deprecated"):
        world.when(VersionMethod(version_tag=" ", parameters_schema=WITHOUT_DIALECT), on=id)


def test_a_listed_method_shows_its_roles_and_whether_it_has_a_schema(world: World, camera: UUID) -> None:
    id = method(world, parameters_schema={}, capability_id=capability(world, parameters_schema=None))
    world.when(role(family_id=camera), on=id)
    row = MethodSummary.of(state(world, id))
    assert (row.parameters_schema_present, [one.role_name for one in row.required_roles]) == (True, ["detector"])


SCHEMAS = st.none() | st.just({}) | st.builds(lambda unit: acquisition(unit=unit), st.sampled_from([SECOND, MILLISECOND]))
STEPS = st.one_of(
    SCHEMAS.map(update),
    st.just(VersionMethod(version_tag="v2")),
    SCHEMAS.map(lambda schema: VersionMethod(version_tag="v3", parameters_schema=schema)),
    st.just(DeprecateMethod()),
)


@given(SCHEMAS, st.lists(STEPS, max_size=8))
def test_the_units_a_value_was_stored_in_are_known_for_every_revision(first: Schema | None, life: list[Any]) -> None:
    world = World()
    id = method(world, capability(world, parameters_schema=None), parameters_schema=first)
    schemas = [first]
    for step in life:
        with suppress(Refusal):
            world.when(step, on=id)
        if state(world, id).parameters_schema_revision == len(schemas):
            schemas.append(state(world, id).parameters_schema)
    now = state(world, id)
    assert now.parameters_schema_revision == len(schemas) - 1
    assert now.parameters_schema == schemas[-1]
    assert [now.units_at(revision) for revision in range(len(schemas))] == [declared_units(schema) for schema in schemas]
