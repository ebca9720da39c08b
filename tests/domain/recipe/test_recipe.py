"""Recipes: what they say and said, under which tag, and how they are refused."""

import json
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.conduct.step_drafts import DraftSteps
from baton.domain.recipe.capability import Capability, DeprecateCapability, VersionCapability
from baton.domain.recipe.lifecycle import DEFINED, DEPRECATED, VERSIONED
from baton.domain.recipe.plots import RecipePlot
from baton.domain.recipe.recipe import (
    DefineRecipe,
    DeprecateRecipe,
    GetRecipe,
    ListRecipeVersions,
    Recipe,
    RecipeDeprecated,
    RecipeSummary,
    RecipeVersion,
    RecipeVersioned,
    RecipeView,
    VersionRecipe,
    version_of,
)
from baton.domain.recipe.steps import wire_form
from baton.domain.shared.listing import Order
from tests.support.domain.assets import facility_world
from tests.support.domain.flat_field import CLOSING_STEPS, STEPS, Raw, capture, recipe, recipe_fields, setpoint
from tests.support.domain.templates import capability
from tests.support.domain.world import World, expect_refusal, new_id
from tests.support.tables import for_each


def state(world: World, id: UUID) -> Recipe:
    found: Recipe = world.state(Recipe, id)
    return found


def version_recipe(world: World, id: UUID, tag: str, steps: list[Raw] = STEPS[:4], **fields: Any) -> RecipeVersioned:
    (event,) = world.when(VersionRecipe(version_tag=tag, steps=steps, **fields), on=id)
    assert isinstance(event, RecipeVersioned)
    return event


def recipe_view(world: World, id: UUID, **fields: Any) -> RecipeView:
    view = world.ask(GetRecipe(**fields), on=id)
    assert isinstance(view, RecipeView)
    return view


def rows(world: World, id: UUID, order: Order = Order.ASC) -> list[RecipeVersion]:
    page = world.ask(ListRecipeVersions(order=order), on=id)
    assert page.next_cursor is None
    return list(page.items)


def test_the_worked_example_is_defined_and_versioned_payload_for_payload(world: World) -> None:
    c1 = capability(world)
    (defined,) = world.when(DefineRecipe(**recipe_fields(capability_id=c1)))
    r1 = defined.stream_id
    unchosen = {"watch": None, "on_unknown_outcome": None, "pattern": None, "plot": None}
    assert json.loads(defined.payload()) == {
        "recipe_id": str(r1),
        "name": "flat_field_recipe",
        "capability_id": str(c1),
        "steps": STEPS,
        "closing_steps": CLOSING_STEPS,
        **unchosen,
        "occurred_at": "2026-10-06T08:00:02Z",
    }
    misspelt = [*STEPS[:3], setpoint({"__binding__": "dwel"})]
    with expect_refusal("RecipeBindingReferencesUnknownParameterError") as caught:
        recipe(world, c1, steps=misspelt)
    assert caught.value.facts == {"binding_name": "dwel", "declared_names": ["dwell", "repetitions", "retract_position"]}
    renewed = [*STEPS[:6], {**STEPS[6], "command": ["flatstats", "--median"]}]
    event = version_recipe(world, r1, "2026-Q2", renewed, closing_steps=CLOSING_STEPS)
    assert json.loads(event.payload()) == {
        "recipe_id": str(r1),
        "version_tag": "2026-Q2",
        "steps": renewed,
        "closing_steps": CLOSING_STEPS,
        **unchosen,
        "occurred_at": "2026-10-06T08:00:04Z",
    }
    view = json.loads(recipe_view(world, r1).model_dump_json())
    assert (view["version_tag"], view["steps"], view["closing_steps"]) == ("2026-Q2", renewed, CLOSING_STEPS)
    listed = [json.loads(row.model_dump_json()) for row in rows(world, r1)]
    contents = [(None, STEPS, "2026-10-06T08:00:02Z"), ("2026-Q2", renewed, "2026-10-06T08:00:04Z")]
    assert listed == [
        {"version_tag": tag, "steps": steps, "closing_steps": CLOSING_STEPS, **unchosen, "occurred_at": at}
        for tag, steps, at in contents
    ]


def test_a_recipe_begins_defined_and_without_a_version(world: World) -> None:
    begun = state(world, recipe(world, name=" flat_field_recipe "))
    assert begun.name == "flat_field_recipe"
    assert (begun.status, begun.version_tag, begun.replaced_by_recipe_id) == (DEFINED, None, None)
    assert (begun.created_at, begun.versioned_at, begun.deprecated_at) == (world.now, None, None)


def test_closing_steps_left_out_are_none(world: World) -> None:
    id = recipe(world)
    version_recipe(world, id, "v2")
    assert state(world, id).closing_steps == ()


def test_a_version_replaces_everything_but_name_and_capability(world: World) -> None:
    id = recipe(world)
    before = state(world, id)
    version_recipe(world, id, " v2 ", [setpoint(1)], closing_steps=[setpoint(2)])
    after = state(world, id)
    assert (after.status, after.version_tag, after.versioned_at) == (VERSIONED, "v2", world.now)
    assert wire_form(after.steps + after.closing_steps) == [setpoint(1), setpoint(2)]
    assert (after.name, after.capability_id, after.created_at) == (before.name, before.capability_id, before.created_at)


def test_a_tag_names_one_content_for_ever(world: World) -> None:
    id = recipe(world)
    version_recipe(world, id, "v2", [setpoint(25)], closing_steps=[setpoint(0)])
    version_recipe(world, id, "v3", [setpoint(26)])
    for steps, closing in (
        ([setpoint(27)], [setpoint(0)]),
        ([setpoint(25)], []),
        ([setpoint(25), setpoint(0)], []),
        ([setpoint("25")], [setpoint(0)]),
    ):
        with expect_refusal("RecipeVersionTagConflictError") as caught:
            version_recipe(world, id, "v2", steps, closing_steps=closing)
        assert (caught.value.status, caught.value.facts) == (409, {"version_tag": "v2"})


def test_a_tag_may_attest_the_same_content_again(world: World) -> None:
    id = recipe(world)
    version_recipe(world, id, "v2", [setpoint(25)])
    version_recipe(world, id, "v3", [setpoint(26)])
    version_recipe(world, id, "v2", [{**setpoint(25.0), "verify": False}])
    assert [row.version_tag for row in rows(world, id)] == [None, "v2", "v3", "v2"]
    assert recipe_view(world, id).version_tag == "v2"
    assert recipe_view(world, id, version_tag="v2").versioned_at == rows(world, id)[1].occurred_at


def test_one_content_may_have_several_tags(world: World) -> None:
    id = recipe(world)
    version_recipe(world, id, "v2")
    version_recipe(world, id, "v3")
    assert recipe_view(world, id, version_tag="v2").steps == recipe_view(world, id, version_tag="v3").steps


def test_every_version_stays_readable_by_its_tag(world: World) -> None:
    id = recipe(world)
    version_recipe(world, id, "v2", [setpoint(2)], closing_steps=[setpoint(0)])
    written_at = world.now
    version_recipe(world, id, "v3", [setpoint(3)])
    world.when(DeprecateRecipe(), on=id)
    past, now = recipe_view(world, id, version_tag="v2"), recipe_view(world, id)
    assert (past.version_tag, wire_form(past.steps), wire_form(past.closing_steps)) == ("v2", [setpoint(2)], [setpoint(0)])
    assert past.versioned_at == written_at
    assert (now.version_tag, wire_form(now.steps), now.closing_steps) == ("v3", [setpoint(3)], ())
    assert past.status is now.status is DEPRECATED
    assert past.deprecated_at == now.deprecated_at == world.now


def test_a_tag_nobody_gave_is_not_found(world: World) -> None:
    id = recipe(world)
    version_recipe(world, id, "v2")
    for tag in ("v3", "V2"):
        with expect_refusal("RecipeVersionNotFoundError") as caught:
            recipe_view(world, id, version_tag=tag)
        assert (caught.value.status, caught.value.facts) == (404, {"version_tag": tag})


def test_no_tag_names_the_definition(world: World) -> None:
    id = recipe(world)
    version_recipe(world, id, "v2")
    definition = version_of(state(world, id), None)
    assert (definition.version_tag, wire_form(definition.steps)) == (None, STEPS)


def test_versions_are_listed_from_either_end(world: World) -> None:
    id = recipe(world)
    version_recipe(world, id, "v2")
    oldest_first = rows(world, id)
    assert [row.version_tag for row in oldest_first] == [None, "v2"]
    assert rows(world, id, Order.DESC) == oldest_first[::-1]


def test_a_deprecated_recipe_names_its_successor_and_stays_readable(world: World) -> None:
    c1 = capability(world)
    id, successor = recipe(world, c1), recipe(world, c1, name="flat_field_fast")
    (event,) = world.when(DeprecateRecipe(reason=" superseded ", replaced_by_recipe_id=successor), on=id)
    assert event == RecipeDeprecated(reason="superseded", replaced_by_recipe_id=successor)
    after = state(world, id)
    assert (after.status, after.deprecated_at, after.replaced_by_recipe_id) == (DEPRECATED, world.now, successor)
    assert wire_form(after.steps) == STEPS


def test_a_recipe_is_replaced_by_another_that_is_looked_for_before_the_state(world: World) -> None:
    id = recipe(world)
    with expect_refusal("InvalidRecipeReplacementError", "itself"):
        world.when(DeprecateRecipe(replaced_by_recipe_id=id), on=id)
    with expect_refusal("InvalidReasonError"):
        world.when(DeprecateRecipe(reason="  "), on=id)
    world.when(DeprecateRecipe(), on=id)
    with expect_refusal("RecipeNotFoundError"):
        world.when(DeprecateRecipe(replaced_by_recipe_id=new_id()), on=id)
    with expect_refusal("RecipeCannotDeprecateError", "deprecated"):
        world.when(DeprecateRecipe(replaced_by_recipe_id=id, reason="  "), on=id)


def test_a_deprecated_capability_still_takes_recipes(world: World) -> None:
    c1 = capability(world)
    world.when(DeprecateCapability(), on=c1)
    id = recipe(world, c1)
    version_recipe(world, id, "v2")
    assert state(world, id).status is VERSIONED


def test_a_version_is_judged_by_the_schema_the_capability_has_now(world: World) -> None:
    c1 = capability(world)
    id = recipe(world, c1)
    narrowed: dict[str, Any] = {"required_affordances": [], "executor_shapes": ["PROCEDURE"], "description": None}
    world.when(VersionCapability(version_tag="v2", parameters_schema={}, **narrowed), on=c1)
    assert world.state(Capability, c1).parameters_schema == {}
    with expect_refusal("RecipeBindingReferencesUnknownParameterError"):
        version_recipe(world, id, "v2", STEPS)
    world.when(VersionCapability(version_tag="v3", parameters_schema=None, **narrowed), on=c1)
    with expect_refusal("RecipeRequiresCapabilityParametersSchemaError") as caught:
        version_recipe(world, id, "v2", STEPS)
    assert caught.value.facts == {"binding_names": ["dwell", "repetitions", "retract_position"]}
    version_recipe(world, id, "v2", [setpoint(1)])


def test_defining_is_refused_by_reference_then_texts_then_steps(world: World) -> None:
    faulty: dict[str, Any] = {"name": "  ", "steps": [], "closing_steps": [None]}
    with expect_refusal("CapabilityNotFoundError"):
        recipe(world, new_id(), **faulty)
    c1 = capability(world)
    with expect_refusal("InvalidRecipeNameError"):
        recipe(world, c1, **faulty)
    with expect_refusal("EmptyRecipeStepsError") as caught:
        recipe(world, c1, **{**faulty, "name": "n"})
    assert caught.value.status == 400
    with expect_refusal("InvalidRecipeStepShapeError") as caught:
        recipe(world, c1, **{**faulty, "name": "n", "steps": [capture(), capture()]})
    assert caught.value.facts["list"] == "closing_steps"
    with expect_refusal("DuplicateRecipeCaptureError"):
        recipe(world, c1, name="n", steps=[capture(), capture()], closing_steps=[])


def test_versioning_is_refused_by_state_then_texts_then_steps_then_the_tag(world: World) -> None:
    id = recipe(world)
    version_recipe(world, id, "v2", [setpoint(2)])
    with expect_refusal("InvalidRecipeVersionTagError"):
        version_recipe(world, id, "  ", [])
    with expect_refusal("EmptyRecipeStepsError"):
        version_recipe(world, id, "v2", [])
    with expect_refusal("InvalidRecipeStepShapeError"):
        version_recipe(world, id, "v2", [setpoint(None)])
    with expect_refusal("RecipeVersionTagConflictError"):
        version_recipe(world, id, "v2", [setpoint(3)])
    world.when(DeprecateRecipe(), on=id)
    with expect_refusal("RecipeCannotVersionError", "deprecated"):
        version_recipe(world, id, "  ", [])


@for_each(
    "fields",
    [
        {"steps": None},
        {"steps": "setpoint"},
        {"steps": {"0": setpoint()}},
        {"closing_steps": None},
        {"name": ""},
        {"name": "x" * 201},
        {"description": "none"},
    ],
)
def test_a_malformed_body_is_refused_at_the_edge(fields: Raw) -> None:
    body = json.dumps(recipe_fields(capability_id=str(new_id()), **fields))
    with pytest.raises(ValidationError):
        DefineRecipe.model_validate_json(body, strict=True)


def test_any_list_of_steps_passes_the_edge() -> None:
    body = recipe_fields(capability_id=str(new_id()), steps=[None, 1, "x", {}], closing_steps=[[]])
    command = DefineRecipe.model_validate_json(json.dumps(body), strict=True)
    assert command.steps == (None, 1, "x", {})


def test_a_recipe_is_listed_by_its_counts_and_not_its_steps(world: World) -> None:
    id = recipe(world)
    version_recipe(world, id, "v2", STEPS[:4], closing_steps=CLOSING_STEPS)
    assert RecipeSummary.of(state(world, id)) == RecipeSummary(
        recipe_id=id,
        name="flat_field_recipe",
        capability_id=state(world, id).capability_id,
        status=VERSIONED,
        version_tag="v2",
        step_count=4,
        closing_step_count=2,
        replaced_by_recipe_id=None,
        created_at=state(world, id).created_at,
        versioned_at=world.now,
        deprecated_at=None,
    )


def test_a_stored_recipe_is_read_back_with_every_type(world: World) -> None:
    steps = [setpoint(1), setpoint(1.0), setpoint(True), setpoint([1, 1.0, [None, {"deep": [2.0]}]]), setpoint("1")]
    (event,) = world.when(DefineRecipe(**recipe_fields(capability_id=capability(world), steps=steps, closing_steps=[])))
    again = Recipe.aggregate.decode("RecipeDefined", event.payload(), event.stream_id, event.occurred_at)
    assert json.dumps(json.loads(again.payload())["steps"]) == json.dumps(steps)


LINE: Raw = {"kind": "line", "axes": [{"address": "bl:m1", "start": 0, "stop": 1}], "num": 2, "returns": True}
HOME = {"kind": "setpoint", "address": "bl:m1", "value": {"__capture__": "return_i"}, "verify": False}


def test_a_recipe_has_the_steps_of_its_pattern_and_keeps_the_pattern(world: World) -> None:
    id = recipe(world, steps=[], pattern=LINE, closing_steps=[setpoint(9)])
    made = state(world, id)
    assert wire_form(made.steps) == [capture("return_i"), setpoint(0.0), setpoint(1.0)]
    assert wire_form(made.closing_steps) == [setpoint(9), HOME]
    shown = json.loads(recipe_view(world, id).model_dump_json())["pattern"]
    assert (shown["kind"], shown["num"], shown["returns"], shown["axes"][0]["stop"]) == ("line", 2, True, 1.0)


def test_a_version_may_take_a_pattern_or_drop_it(world: World) -> None:
    id = recipe(world)
    event = version_recipe(world, id, "v2", [], pattern=LINE)
    assert event.pattern is not None
    version_recipe(world, id, "v3", [setpoint(1)])
    assert (recipe_view(world, id).pattern, recipe_view(world, id, version_tag="v2").pattern) == (None, event.pattern)


def test_a_recipe_says_what_is_drawn_and_a_version_says_it_anew(world: World) -> None:
    plot = {"x": "bl:m1", "y": ["level"]}
    id = recipe(world, steps=[setpoint(1), capture("level_1"), setpoint(2), capture("level_2")], closing_steps=[], plot=plot)
    assert recipe_view(world, id).plot == RecipePlot(x="bl:m1", y=("level",))
    version_recipe(world, id, "v2", [setpoint(1), capture("level")], plot={**plot, "kind": "line"})
    with expect_refusal("RecipeVersionTagConflictError"):
        version_recipe(world, id, "v2", [setpoint(1), capture("level")], plot=plot)
    version_recipe(world, id, "v3", [setpoint(1), capture("level")])
    assert recipe_view(world, id).plot is None


@pytest.mark.parametrize(
    ("plot", "reason"),
    [({"x": "bl:elsewhere", "y": ["level"]}, "not_an_axis"), ({"x": "bl:m1", "y": ["level", "gone"]}, "not_captured")],
)
def test_a_plot_names_what_the_steps_set_and_capture(world: World, plot: Raw, reason: str) -> None:
    with expect_refusal("InvalidRecipePlotError", reason):
        recipe(world, steps=[setpoint(1), capture("level")], closing_steps=[], plot=plot)


def test_a_recipe_has_steps_or_a_pattern(world: World) -> None:
    c1 = capability(world)
    with expect_refusal("RecipeStepsBesidePatternError", "both_given"):
        recipe(world, c1, pattern=LINE)
    with expect_refusal("EmptyRecipeStepsError"):
        recipe(world, c1, steps=[])


@for_each(
    ("code", "fields"),
    [
        ("DuplicateRecipeCaptureError", {"at_point": [capture("signal")]}),
        ("UnboundRecipeCaptureError", {"at_point": [setpoint({"__capture__": "peak"})]}),
        ("ProcedureExpansionOverflowError", {"num": 10_000}),
        ("InvalidRecipeStepShapeError", {"at_point": [capture("{n}" * 20 + "x" * 40)], "num": 1200}),
    ],
)
def test_a_pattern_is_refused_as_its_draft_is(code: str, fields: Raw) -> None:
    world, pattern = facility_world(), LINE | fields
    with expect_refusal(code):
        world.ask(DraftSteps(pattern=pattern))
    with expect_refusal(code):
        recipe(world, steps=[], pattern=pattern)
