"""Actions of steps: one that no worker has, and parameters that one does not accept, are refused before anything moves."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from baton.application.conduct.actions import InvalidActionParametersError, touches
from baton.application.conduct.actions import declared_signals as signals_of
from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.preflight import PreflightProcedure
from baton.domain.recipe.offered_plans import PlanExecutorCatalogue
from baton.domain.recipe.recipe import DefineRecipe, VersionRecipe
from baton.domain.recipe.step_actions import OWN_ACTIONS, ListActions, StepActions, offered_action
from baton.domain.shared.action_signals import ActionForecast, ActionSignals
from baton.domain.start.registration import RegisterProcedureFromRecipe
from baton.infrastructure.actions.acquisition import BUILT_IN
from tests.support.domain.run_beamline import Beamline
from tests.support.domain.templates import capability, parameters
from tests.support.domain.world import World, expect_refusal, new_id
from tests.support.workflows.step_json import action, setpoint

HEARD_AT = datetime(2026, 10, 6, 7, 59, tzinfo=UTC)
OWN = {name: signals_of(body) for name, body in BUILT_IN.items()}
SETTLE = action("settle", seconds=1.0)
NOT_OFFERED, INVALID = "ActionNotOfferedError", "ActionParametersInvalidError"


def bake_forecast(params: Mapping[str, Any]) -> ActionForecast:
    """What the oven would do."""
    raise InvalidActionParametersError("Give a temperature up to 200 degC.")


@touches(writes=("heater",), rehearse=bake_forecast, parameters=lambda: {"properties": {"heater": {"type": "string"}}})
async def bake(control: Any, time: Any, params: Any) -> dict[str, Any]:
    """Warm the oven."""
    return {}


def report(world: World, **actions: ActionSignals | None) -> None:
    """Have a worker report these actions."""
    rows = {name: offered_action(signals).model_dump(mode="json") for name, signals in actions.items()}
    fields = {"executor": OWN_ACTIONS, "asked_at": HEARD_AT, "heard_at": HEARD_AT, "trouble": None, "version": "1"}
    world.records[PlanExecutorCatalogue, OWN_ACTIONS] = PlanExecutorCatalogue(
        **fields, environment=None, plans=rows, devices=[]
    )


def define(world: World, *steps: dict[str, Any]) -> UUID:
    code = f"baton.capability.{new_id()}"
    return world.create(DefineRecipe(name="Flats", capability_id=capability(world, code=code), steps=steps))


@pytest.fixture
def equipped_world(line: Beamline) -> World:
    """A beamline whose own process has the built-in actions."""
    world = line.world
    world.ports["deployment"].action_signals = OWN
    world.ports["deployment"].compute_programs = frozenset({"recon"})
    return world


def test_an_action_that_no_worker_has_is_refused_with_those_that_there_are(equipped_world: World) -> None:
    report(equipped_world, bake=None, **OWN)
    with expect_refusal(NOT_OFFERED, "action_unknown") as caught:
        define(equipped_world, SETTLE, action("colect"))
    assert "there are bake, collect, continuous, discrete, settle, stream" in caught.value.detail
    assert (caught.value.facts or {})["step_index"] == 1
    id = define(equipped_world, SETTLE, action("bake"))
    with expect_refusal(NOT_OFFERED):
        equipped_world.when(VersionRecipe(version_tag="b", steps=(SETTLE,), closing_steps=(action("colect"),)), on=id)


def test_an_action_that_nobody_can_tell_of_is_remarked_on(equipped_world: World) -> None:
    id = register(equipped_world, define(equipped_world, SETTLE, action("bake")))
    gate = gates(equipped_world, id)["actions_known"]
    assert gate.passed
    assert "whether it has bake" in gate.detail
    report(equipped_world, bake=None)
    assert gates(equipped_world, id)["actions_known"].detail is None
    report(equipped_world)
    closed = gates(equipped_world, id)["actions_known"]
    assert (closed.passed, closed.code) == (False, NOT_OFFERED)
    with expect_refusal(NOT_OFFERED):
        equipped_world.when(ConductProcedure(), on=id)


def test_parameters_that_the_action_would_refuse_are_refused_with_those_it_has(equipped_world: World) -> None:
    with expect_refusal(INVALID, "action_parameters") as caught:
        define(equipped_world, action("collect", detector="bl7:cam1", dwell=0.1, trigger_mode="Internal", exposures=3))
    detail = caught.value.detail
    assert detail.startswith("steps[0]: collect does not accept its parameters. The parameters cannot be used: exposures:")
    assert "It has detector, dwell, trigger_mode, polarity (optional), source (optional), repetitions (optional)" in detail


def test_parameters_are_judged_by_the_schema_that_a_worker_reports(equipped_world: World) -> None:
    report(equipped_world, bake=signals_of(bake))
    with expect_refusal(INVALID) as caught:
        define(equipped_world, action("bake", heater=7))
    assert 'Its parameter heater must be of type "string"' in caught.value.detail
    define(equipped_world, action("bake", heater="bl7:heater"))


def test_what_a_schema_says_beyond_what_is_judged_here_accepts_anything(equipped_world: World) -> None:
    either = {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    schema = {"properties": {"heater": either, "hours": {"type": "number", "default": 1}}, "required": ["hours"]}
    report(equipped_world, bake=ActionSignals(parameters=lambda: schema))
    assert define(equipped_world, action("bake", heater=7, hours=1))
    with expect_refusal(INVALID):
        define(equipped_world, action("bake", heater=7))


def test_what_bindings_make_of_parameters_is_judged_when_they_are_given(equipped_world: World) -> None:
    schema = parameters("seconds", seconds={"type": "number"})
    bound = action("settle", seconds={"__binding__": "seconds"})
    recipe_id = equipped_world.create(
        DefineRecipe(
            name="Wait",
            capability_id=capability(equipped_world, code="baton.capability.wait", parameters_schema=schema),
            steps=(bound,),
        )
    )
    with expect_refusal(INVALID):
        register(equipped_world, recipe_id, seconds=-1.0)
    assert register(equipped_world, recipe_id, seconds=1.0)


def test_lists_are_given_to_an_action_as_it_takes_them(equipped_world: World) -> None:
    picture = {"detector": "bl7:cam1", "dwell": 0.1, "trigger_mode": "Internal", "repetitions": 1}
    assert define(equipped_world, action("discrete", axis="bl7:rot", points=[0.0, 90.0], wait=0.0, **picture))


def test_a_recipe_without_actions_asks_for_none(world: World) -> None:
    report(world)
    assert define(world, setpoint("bl7:rot", 1))


def test_all_actions_are_listed_with_their_parameters_and_the_programs(equipped_world: World) -> None:
    told: StepActions = equipped_world.ask(ListActions())
    assert [one.name for one in told.items] == ["collect", "continuous", "discrete", "settle", "stream"]
    assert {one.offered for one in told.items} == {None}
    report(equipped_world, bake=signals_of(bake), **OWN)
    told = equipped_world.ask(ListActions())
    known = {one.name: one for one in told.items}
    assert (told.programs, told.heard_at, known["bake"].offered) == (("recon",), HEARD_AT, True)
    assert (known["bake"].description, known["bake"].writes) == ("Warm the oven.", ("heater",))
    assert known["discrete"].writes == ("axis", "detector")
    schema = known["settle"].parameters_schema or {}
    assert (schema["required"], known["settle"].description) == (["seconds"], "Wait, and touch nothing.")
    assert [one.name for one in equipped_world.ask(ListActions(name="settle")).items] == ["settle"]


def register(world: World, recipe_id: UUID, **bindings: Any) -> UUID:
    task = {"name": "Flats", "kind": "acquisition", "recipe_id": recipe_id, "bindings": bindings}
    return world.create(RegisterProcedureFromRecipe(**task))


def gates(world: World, id: UUID) -> dict[str, Any]:
    return {gate.gate: gate for gate in world.ask(PreflightProcedure(), on=id).gates}
