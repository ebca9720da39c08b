"""Capabilities: the code that is unique for ever, the contract that is replaced as a whole, deprecation."""

import json
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.contexts import REGISTRY
from baton.domain.equipment.affordance import Affordance
from baton.domain.kernel import Command
from baton.domain.recipe.capability import (
    Capability,
    CapabilityDeprecated,
    CapabilitySummary,
    CapabilityVersioned,
    DefineCapability,
    DeprecateCapability,
    ExecutorShape,
    VersionCapability,
    capabilities_on_offer,
)
from baton.domain.recipe.lifecycle import DEFINED, DEPRECATED, VERSIONED
from tests.support.domain.templates import WITHOUT_DIALECT, capability, contract
from tests.support.domain.world import World, expect_refusal, new_id
from tests.support.tables import for_each


def state(world: World, id: UUID) -> Capability:
    found: Capability = world.state(Capability, id)
    return found


def version_command(**fields: Any) -> VersionCapability:
    renewed = {"required_affordances": [], "executor_shapes": ["METHOD"], "description": None, "parameters_schema": None}
    return VersionCapability(**{"version_tag": "v2", **renewed, **fields})


def test_a_capability_begins_defined_and_without_a_version(world: World) -> None:
    begun = state(world, capability(world, description=" Takes frames. "))
    assert (begun.status, begun.version_tag, begun.replaced_by_capability_id) == (DEFINED, None, None)
    assert (begun.created_at, begun.versioned_at, begun.deprecated_at) == (world.now, None, None)
    assert begun.description == "Takes frames."


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


MALFORMED: list[dict[str, Any]] = [
    *({field: "a" * length} for field in ("code", "name") for length in (0, 201)),
    {"description": "a" * 2001},
    {"required_affordances": ["Flyable"]},
    {"executor_shapes": ["AGENT"]},
]


@for_each("fields", MALFORMED)
def test_a_contract_of_another_form_is_malformed(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DefineCapability(**contract(**fields))


@for_each(
    ("command", "missing"),
    [
        *((DefineCapability(**contract()), name) for name in ("required_affordances", "executor_shapes")),
        *((version_command(), name) for name in VersionCapability.model_fields),
    ],
)
def test_what_must_be_given_is_not_kept_by_omission(command: Command, missing: str) -> None:
    with pytest.raises(ValidationError):
        type(command)(**command.model_dump(exclude={missing}))


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


@pytest.mark.parametrize(
    ("field", "given", "kept"),
    [
        ("code", " baton.capability.tomography ", "baton.capability.tomography"),
        *(("description", blank, None) for blank in (None, "", "  ")),
        ("required_affordances", [], frozenset()),
    ],
)
def test_values_are_kept_trimmed_and_a_blank_description_is_none(world: World, field: str, given: Any, kept: Any) -> None:
    assert getattr(state(world, capability(world, **{field: given})), field) == kept


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
    assert CapabilitySummary.of(state(world, id)).parameters_schema_present is (schema is not None)


def test_a_code_is_taken_for_ever_however_its_accents_are_encoded(world: World) -> None:
    first = capability(world, code="baton.capability.\u00e9clair")
    with expect_refusal("CapabilityCodeAlreadyExistsError", "code_taken"):
        capability(world, code="baton.capability.e\u0301clair", name="Another")
    world.when(DeprecateCapability(), on=first)
    with expect_refusal("CapabilityCodeAlreadyExistsError", "code_taken"):
        capability(world, code="baton.capability.\u00e9clair")


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


@pytest.mark.parametrize("reason", [None, "superseded; earlier use stands"])
def test_a_deprecated_capability_stays_readable_and_says_what_replaces_it(world: World, reason: str | None) -> None:
    id, other = capability(world), capability(world, code="baton.capability.imaging")
    world.when(version_command(version_tag="v2"), on=id)
    deprecated = DeprecateCapability(reason=reason, replaced_by_capability_id=other)
    assert world.when(deprecated, on=id) == [CapabilityDeprecated(reason=reason, replaced_by_capability_id=other)]
    now = state(world, id)
    assert (now.status, now.version_tag, now.replaced_by_capability_id) == (DEPRECATED, "v2", other)
    assert now.deprecated_at == world.now


def test_a_replacement_exists_before_the_state_is_judged_and_is_another_one(world: World) -> None:
    id = capability(world)
    with expect_refusal("InvalidCapabilityReplacementError", "itself"):
        world.when(DeprecateCapability(replaced_by_capability_id=id), on=id)
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


def test_sets_are_shown_in_one_order(world: World) -> None:
    shown = json.loads(world.show(REGISTRY.operations["get_capability"].input(), on=capability(world)).model_dump_json())
    assert shown["required_affordances"] == ["Imageable", "Triggerable"]
    assert shown["executor_shapes"] == ["METHOD", "PROCEDURE"]
