"""Roles: functional contracts with unique names."""

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.role import DefineRole, Role, RoleDefined, RoleSummary
from baton.domain.registry import REGISTRY
from tests.support.domain.world import World, expect_refusal
from tests.support.tables import for_each


@pytest.fixture
def world() -> World:
    return World()


def detector(**fields: Any) -> DefineRole:
    values = {"name": "Detector", "description": "Takes images.", "required_affordances": ["Imageable"], **fields}
    return DefineRole(**values)


def test_a_role_is_what_was_defined(world: World) -> None:
    role = world.create(
        detector(optional_affordances=["Binnable", "Coolable"], produces=[" Image ", "Frame"], consumes=["TriggerIn"])
    )
    state = world.state(Role, role)
    assert state.required_affordances == {Affordance.IMAGEABLE}
    assert state.optional_affordances == {Affordance.BINNABLE, Affordance.COOLABLE}
    assert (state.produces, state.consumes) == ({"Image", "Frame"}, {"TriggerIn"})


@pytest.mark.parametrize("name", ["Detector", " detector ", "DETECTOR"])
def test_a_role_name_is_taken_whatever_its_case(world: World, name: str) -> None:
    world.create(detector())
    with expect_refusal("RoleAlreadyExistsError", "name_taken"):
        world.create(detector(name=name))


@pytest.mark.parametrize("fields", [{"name": "  "}, {"description": " "}, {"produces": ["Image", " "]}, {"consumes": [" "]}])
def test_blank_texts_are_refused(world: World, fields: dict[str, Any]) -> None:
    with expect_refusal("InvalidRoleError", "blank"):
        world.create(detector(**fields))


@for_each("fields", [{"name": "x" * 201}, {"description": "x" * 2001}, {"produces": ["x" * 51]}])
def test_texts_out_of_bounds_are_malformed(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        detector(**fields)


def test_an_affordance_is_required_or_optional_but_not_both(world: World) -> None:
    with expect_refusal("InvalidRoleError", "overlap") as caught:
        world.create(detector(optional_affordances=["Imageable", "Binnable"]))
    assert caught.value.facts == {"affordances": ["Imageable"]}


def test_a_role_may_require_nothing(world: World) -> None:
    assert world.state(Role, world.create(detector(required_affordances=[]))).required_affordances == frozenset()


def test_a_role_is_read_and_listed_whole(world: World) -> None:
    role = world.create(detector(produces=["Image", "Frame"]))
    view = world.ask(REGISTRY.operations["get_role"].input(), on=role)
    listed = RoleSummary.of(world.state(Role, role))
    shown = {"name", "description", "required_affordances", "optional_affordances", "produces", "consumes", "created_at"}
    assert set(type(view).model_fields) == shown | {"id", "role_id"}
    assert set(RoleSummary.item_form().model_fields) == shown | {"role_id"}
    assert (view.id, listed.role_id) == (role, role)
    assert json.loads(listed.model_dump_json())["produces"] == ["Frame", "Image"]


@given(st.frozensets(st.sampled_from(Affordance)), st.frozensets(st.text(min_size=1, max_size=50)))
def test_a_stored_definition_comes_back_as_it_was(required: frozenset[Affordance], labels: frozenset[str]) -> None:
    event = RoleDefined(
        name="Any",
        description="Any role.",
        required_affordances=required,
        optional_affordances=frozenset(Affordance) - required,
        produces=labels,
        consumes=frozenset(),
    ).stamp(UUID(int=1), World().now)
    payload = event.payload()
    assert RoleDefined.aggregate.decode("RoleDefined", payload, event.stream_id, event.occurred_at) == event
    assert json.loads(payload)["required_affordances"] == sorted(required)
