"""Roles: functional contracts with unique names."""

import json
from typing import Any

import pytest

from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.role import DefineRole, Role, RoleSummary
from tests.support.domain.world import World, expect_refusal


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
    assert json.loads(RoleSummary.of(state).model_dump_json())["produces"] == ["Frame", "Image"]


@pytest.mark.parametrize("name", ["Detector", " detector ", "DETECTOR"])
def test_a_role_name_is_taken_whatever_its_case(world: World, name: str) -> None:
    world.create(detector())
    with expect_refusal("RoleAlreadyExistsError", "name_taken"):
        world.create(detector(name=name))


@pytest.mark.parametrize("fields", [{"name": "  "}, {"description": " "}, {"produces": ["Image", " "]}, {"consumes": [" "]}])
def test_blank_texts_are_refused(world: World, fields: dict[str, Any]) -> None:
    with expect_refusal("InvalidRoleError", "blank"):
        world.create(detector(**fields))


def test_an_affordance_is_required_or_optional_but_not_both(world: World) -> None:
    with expect_refusal("InvalidRoleError", "overlap") as caught:
        world.create(detector(optional_affordances=["Imageable", "Binnable"]))
    assert caught.value.facts == {"affordances": ["Imageable"]}
    world.create(detector(required_affordances=[]))
