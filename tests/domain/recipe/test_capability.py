"""Capabilities: the code that is unique for ever, the contract that is replaced as a whole, deprecation."""

import json
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.contexts import REGISTRY
from baton.domain.equipment.affordance import Affordance
from baton.domain.recipe.capability import (
    Capability,
    CapabilityDefined,
    CapabilityDeprecated,
    CapabilitySummary,
    CapabilityVersioned,
    DefineCapability,
    DeprecateCapability,
    ExecutorShape,
    ListCapabilities,
    VersionCapability,
    capabilities_on_offer,
)
from baton.domain.recipe.lifecycle import DEFINED, DEPRECATED, VERSIONED
from baton.domain.shared.listing import Where
from tests.support.domain.templates import WITHOUT_DIALECT, acquisition, capability, contract
from tests.support.domain.world import World, expect_refusal, new_id
from tests.support.tables import for_each


@pytest.fixture
def world() -> World:
    return World()


def state(world: World, id: UUID) -> Capability:
    found: Capability = world.state(Capability, id)
    return found


def version_command(**fields: Any) -> VersionCapability:
    renewed = {"required_affordances": [], "executor_shapes": ["METHOD"], "description": None, "parameters_schema": None}
    return VersionCapability(**{"version_tag": "v2", **renewed, **fields})


def test_a_capability_begins_defined_and_without_a_version(world: World) -> None:
    (event,) = world.when(DefineCapability(**contract(description=" Takes frames. ")))
    assert event == CapabilityDefined(
        code="baton.capability.acquisition",
        name="Acquisition",
        description="Takes frames.",
        required_affordances={Affordance.IMAGEABLE, Affordance.TRIGGERABLE},
        executor_shapes={ExecutorShape.METHOD, ExecutorShape.PROCEDURE},
        parameters_schema=acquisition(),
    )
    begun = state(world, event.stream_id)
    assert (begun.status, begun.version_tag, begun.replaced_by_capability_id) == (DEFINED, None, None)
    assert (begun.created_at, begun.versioned_at, begun.deprecated_at) == (world.now, None, None)


@pytest.mark.parametrize(
    "code",
    [
        "acquisition",
        "baton.capability.",
        " baton.capability. ",
        "baton.capability",
        "Baton.capability.acquisition",
        "baton.method.acquisition",
        "my.baton.capability.acquisition",
    ],
)
def test_a_code_is_the_prefix_and_a_name_behind_it(world: World, code: str) -> None:
    with expect_refusal("InvalidCapabilityCodeError", "wrong_form"):
        capability(world, code=code)


def test_a_code_is_stored_trimmed(world: World) -> None:
    assert state(world, capability(world, code=" baton.capability.tomography ")).code == "baton.capability.tomography"


@for_each("field", ["code", "name"])
@for_each("length", [0, 201])
def test_a_text_out_of_bounds_is_malformed(field: str, length: int) -> None:
    with pytest.raises(ValidationError):
        DefineCapability(**contract(**{field: "a" * length}))


def test_blank_texts_are_refused_by_their_own_class(world: World) -> None:
    with expect_refusal("InvalidCapabilityCodeError", "blank"):
        capability(world, code="  ")
    with expect_refusal("InvalidCapabilityNameError", "blank"):
        capability(world, name="  ")
    id = capability(world)
    with expect_refusal("InvalidCapabilityVersionTagError", "blank"):
        world.when(version_command(version_tag=" "), on=id)
    with expect_refusal("InvalidReasonError", "blank"):
        world.when(DeprecateCapability(reason=" "), on=id)


@pytest.mark.parametrize("description", [None, "", "  "])
def test_a_blank_description_is_none(world: World, description: str | None) -> None:
    assert state(world, capability(world, description=description)).description is None


def test_a_description_has_at_most_two_thousand_characters() -> None:
    with pytest.raises(ValidationError):
        DefineCapability(**contract(description="a" * 2001))


@for_each("missing", ["required_affordances", "executor_shapes"])
def test_affordances_and_shapes_must_be_given(missing: str) -> None:
    fields = contract()
    del fields[missing]
    with pytest.raises(ValidationError):
        DefineCapability(**fields)


@for_each("unknown", [{"required_affordances": ["Flyable"]}, {"executor_shapes": ["AGENT"]}])
def test_an_unknown_affordance_or_shape_is_malformed(unknown: dict[str, list[str]]) -> None:
    with pytest.raises(ValidationError):
        DefineCapability(**contract(**unknown))


def test_a_capability_may_require_no_affordance(world: World) -> None:
    assert state(world, capability(world, required_affordances=[])).required_affordances == frozenset()


def test_something_must_be_allowed_to_realise_a_capability(world: World) -> None:
    with expect_refusal("InvalidExecutorShapesError", "empty"):
        capability(world, executor_shapes=[])
    with expect_refusal("InvalidExecutorShapesError", "empty"):
        world.when(version_command(executor_shapes=[]), on=capability(world))


def test_a_schema_that_may_not_be_declared_is_refused_wherever_it_is_given(world: World) -> None:
    with expect_refusal("InvalidCapabilityParametersSchemaError", "wrong_dialect"):
        capability(world, parameters_schema=WITHOUT_DIALECT)
    with expect_refusal("InvalidCapabilityParametersSchemaError", "wrong_dialect"):
        world.when(version_command(parameters_schema=WITHOUT_DIALECT), on=capability(world))


@pytest.mark.parametrize("schema", [None, {}])
def test_a_capability_may_declare_no_parameters_or_no_constraint(world: World, schema: dict[str, Any] | None) -> None:
    id = capability(world, parameters_schema=schema)
    assert state(world, id).parameters_schema == schema
    assert state(world, id).parameters_schema_present is (schema is not None)


def test_a_code_is_taken_for_ever(world: World) -> None:
    first = capability(world)
    with expect_refusal("CapabilityCodeAlreadyExistsError", "code_taken"):
        capability(world, name="Another")
    world.when(DeprecateCapability(), on=first)
    with expect_refusal("CapabilityCodeAlreadyExistsError", "code_taken"):
        capability(world)


def test_a_code_is_the_same_however_its_accents_are_encoded(world: World) -> None:
    capability(world, code="baton.capability.\u00e9clair")
    with expect_refusal("CapabilityCodeAlreadyExistsError"):
        capability(world, code="baton.capability.e\u0301clair")


def test_a_malformed_code_is_refused_before_a_taken_one_and_both_after_a_bad_schema(world: World) -> None:
    capability(world)
    with expect_refusal("InvalidCapabilityCodeError"):
        capability(world, code="acquisition", parameters_schema=WITHOUT_DIALECT)
    with expect_refusal("InvalidCapabilityParametersSchemaError"):
        capability(world, parameters_schema=WITHOUT_DIALECT)


def test_a_version_replaces_the_contract_and_keeps_code_and_name(world: World) -> None:
    id = capability(world, description="Takes frames.")
    assert world.when(version_command(required_affordances=["Imageable"]), on=id) == [
        CapabilityVersioned(
            version_tag="v2",
            description=None,
            required_affordances={Affordance.IMAGEABLE},
            executor_shapes={ExecutorShape.METHOD},
            parameters_schema=None,
        )
    ]
    now = state(world, id)
    assert (now.status, now.version_tag, now.versioned_at) == (VERSIONED, "v2", world.now)
    assert (now.code, now.name) == ("baton.capability.acquisition", "Acquisition")
    assert (now.description, now.parameters_schema) == (None, None)
    assert (now.required_affordances, now.executor_shapes) == ({"Imageable"}, {"METHOD"})


@for_each("missing", ["version_tag", "required_affordances", "executor_shapes", "description", "parameters_schema"])
def test_a_version_keeps_nothing_by_omission(missing: str) -> None:
    fields = {**version_command().model_dump()}
    del fields[missing]
    with pytest.raises(ValidationError):
        VersionCapability(**fields)


def test_the_same_tag_attests_again_and_another_replaces_it(world: World) -> None:
    id = capability(world)
    for tag in ("v2", "v2", "v3"):
        assert world.when(version_command(version_tag=tag), on=id)
    assert state(world, id).version_tag == "v3"


@pytest.mark.parametrize("reason", [None, "superseded; earlier use stands"])
def test_a_deprecated_capability_stays_readable_and_says_what_replaces_it(world: World, reason: str | None) -> None:
    id, other = capability(world), capability(world, code="baton.capability.imaging")
    world.when(version_command(version_tag="v2"), on=id)
    deprecated = DeprecateCapability(reason=reason, replaced_by_capability_id=other)
    assert world.when(deprecated, on=id) == [CapabilityDeprecated(reason=reason, replaced_by_capability_id=other)]
    now = state(world, id)
    assert (now.status, now.version_tag, now.replaced_by_capability_id) == (DEPRECATED, "v2", other)
    assert now.deprecated_at == world.now


def test_a_replacement_must_exist_and_be_another_one(world: World) -> None:
    id = capability(world)
    with expect_refusal("CapabilityNotFoundError"):
        world.when(DeprecateCapability(replaced_by_capability_id=new_id()), on=id)
    with expect_refusal("InvalidCapabilityReplacementError", "itself"):
        world.when(DeprecateCapability(replaced_by_capability_id=id), on=id)


def test_an_absent_replacement_is_refused_before_the_state_and_the_state_before_values(world: World) -> None:
    id = capability(world)
    world.when(DeprecateCapability(), on=id)
    with expect_refusal("CapabilityNotFoundError"):
        world.when(DeprecateCapability(replaced_by_capability_id=new_id(), reason=" "), on=id)
    with expect_refusal("CapabilityCannotDeprecateError", "deprecated"):
        world.when(DeprecateCapability(replaced_by_capability_id=id, reason=" "), on=id)


def test_only_capabilities_that_are_not_deprecated_are_on_offer_and_they_come_by_code(world: World) -> None:
    tomography, alignment, old = (
        capability(world, code=f"baton.capability.{name}") for name in ("tomography", "alignment", "old")
    )
    world.when(version_command(), on=tomography)
    world.when(DeprecateCapability(), on=old)
    assert [one.id for one in world.fulfil(capabilities_on_offer())] == [alignment, tomography]


def test_the_whole_state_is_shown_with_its_times(world: World) -> None:
    view = world.ask(REGISTRY.operations["get_capability"].input(), on=capability(world))
    shown = json.loads(view.model_dump_json())
    assert shown.keys() == {
        "id",
        "capability_id",
        "code",
        "name",
        "description",
        "required_affordances",
        "executor_shapes",
        "parameters_schema",
        "status",
        "version_tag",
        "replaced_by_capability_id",
        "created_at",
        "versioned_at",
        "deprecated_at",
    }
    assert shown["required_affordances"] == ["Imageable", "Triggerable"]
    assert shown["executor_shapes"] == ["METHOD", "PROCEDURE"]


def test_a_listed_capability_shows_whether_it_has_a_schema(world: World) -> None:
    row = CapabilitySummary.of(state(world, capability(world)))
    assert list(type(row).item_form().model_fields) == [
        "capability_id",
        "code",
        "name",
        "status",
        "version_tag",
        "description",
        "required_affordances",
        "executor_shapes",
        "parameters_schema_present",
        "replaced_by_capability_id",
        "created_at",
        "versioned_at",
        "deprecated_at",
    ]
    assert row.parameters_schema_present


def test_capabilities_are_listed_by_status_and_code() -> None:
    query = ListCapabilities(status="Defined", code="baton.capability.acquisition")
    assert list(query.where()) == [Where("status", "is", DEFINED), Where("code", "is", "baton.capability.acquisition")]
