"""Steps: five shapes, four sentinels each only where it may stand, and what steps owe each other."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter, ValidationError

from baton.domain.recipe.recipe import DefineRecipe
from baton.domain.recipe.step_checks import check_steps, read_closing_steps, read_steps
from baton.domain.recipe.steps import (
    MAX_DEPTH,
    BindingRef,
    CaptureRef,
    OutputRef,
    RecipeComputeStep,
    RecipeStep,
    SteeringRef,
    Step,
    binding_names,
    located_steps,
    wire_form,
)
from baton.domain.shared.refusals import Refusal
from tests.support.domain.flat_field import (
    CLOSING_STEPS,
    SENTINELS,
    STEPS,
    Raw,
    action,
    capture,
    check,
    compute,
    near,
    publishing_step,
    recipe_lists,
    resolved_lists,
    setpoint,
)
from tests.support.domain.templates import acquisition
from tests.support.domain.world import expect_refusal
from tests.support.tables import for_each

SHAPE = "InvalidRecipeStepShapeError"
RESOLVED: TypeAdapter[tuple[Step, ...]] = TypeAdapter(tuple[Step, ...])
RECIPE: TypeAdapter[tuple[RecipeStep, ...]] = TypeAdapter(tuple[RecipeStep, ...])


def test_the_wire_example_is_written_as_it_was_read() -> None:
    assert wire_form(read_steps(STEPS)) == STEPS
    assert wire_form(read_closing_steps(CLOSING_STEPS)) == CLOSING_STEPS


@for_each(
    ("sent", "written"),
    [
        ({"kind": "setpoint", "address": "bl:m1", "value": 1}, setpoint(1)),
        ({"kind": "action", "name": "collect"}, action()),
        (check(1, timeout=None), check(1)),
        (check(1, timeout=10), check(1, timeout=10.0)),
        ({"kind": "compute", "command": ["recon"]}, compute()),
    ],
)
def test_every_field_is_written_with_its_default_except_a_deadline_that_is_not_set(sent: Raw, written: Raw) -> None:
    assert json.dumps(wire_form(read_steps([sent]))) == json.dumps([written])


def test_the_order_of_fields_does_not_matter() -> None:
    backwards = [dict(reversed(step.items())) for step in STEPS]
    assert read_steps(backwards) == read_steps(STEPS)


def test_a_sentinel_goes_by_its_own_field() -> None:
    (step,) = read_steps([compute(parameters=SENTINELS | {"OutputRef": 0}, input_uris=[SENTINELS["OutputRef"]])])
    assert isinstance(step, RecipeComputeStep)
    assert step.parameters == {
        "BindingRef": BindingRef(name="dwell"),
        "CaptureRef": CaptureRef(capture_name="home"),
        "SteeringRef": SteeringRef(steering_axis_name="focus"),
        "OutputRef": 0,
    }
    assert step.input_uris == (OutputRef(output_name="recon"),)


def test_what_looks_like_a_template_is_text() -> None:
    steps = [setpoint("${dwell}"), setpoint("dwell"), action(note="{{dwell}}", name={"name": "dwell"})]
    assert binding_names(read_steps(steps)) == ()
    assert wire_form(read_steps(steps)) == steps


POSITIONS: dict[str, tuple[Callable[[Any], Raw], str]] = {
    "setpoint.address": (lambda it: setpoint(address=it), ""),
    "setpoint.value": (setpoint, "BindingRef CaptureRef SteeringRef"),
    "setpoint.value[0]": (lambda it: setpoint([it]), ""),
    "setpoint.value[0].x": (lambda it: setpoint([{"x": it}]), ""),
    "setpoint.verify": (lambda it: setpoint(verify=it), ""),
    "action.name": (lambda it: {**action(), "name": it}, ""),
    "action.params": (lambda it: {**action(), "params": it}, ""),
    "action.params.x": (lambda it: action(x=it), "BindingRef"),
    "action.params.x.y": (lambda it: action(x={"y": it}), ""),
    "action.params.x[0]": (lambda it: action(x=[it]), ""),
    "check.address": (lambda it: check(address=it), ""),
    "check.criterion": (lambda it: check(criterion=it), ""),
    "check.criterion.expected": (check, "BindingRef CaptureRef SteeringRef"),
    "check.criterion.expected[0]": (lambda it: check([it]), ""),
    "check.criterion.expected within tolerance": (near, "BindingRef CaptureRef SteeringRef"),
    "check.criterion.tolerance": (lambda it: near(tolerance=it), ""),
    "check.timeout": (lambda it: check(timeout=it), ""),
    "capture.address": (lambda it: capture(address=it), ""),
    "capture.capture_name": (capture, ""),
    "compute.command": (lambda it: compute(command=it), ""),
    "compute.command[0]": (lambda it: compute(command=[it]), ""),
    "compute.input_uris": (lambda it: compute(input_uris=it), ""),
    "compute.input_uris[0]": (lambda it: compute(input_uris=[it]), "OutputRef"),
    "compute.input_uris[0][0]": (lambda it: compute(input_uris=[[it]]), ""),
    "compute.output_uri": (lambda it: compute(output_uri=it), ""),
    "compute.parameters": (lambda it: compute(parameters=it), ""),
    "compute.parameters.x": (lambda it: compute(parameters={"x": it}), "BindingRef CaptureRef SteeringRef"),
    "compute.parameters.x.y": (lambda it: compute(parameters={"x": {"y": it}}), ""),
    "compute.parameters.x[0]": (lambda it: compute(parameters={"x": [it]}), ""),
    "compute.capture_name": (lambda it: compute(capture_name=it), ""),
    "compute.output_ref_name": (lambda it: compute(output_uri="file:///a", output_ref_name=it), ""),
    "the step": (lambda it: it, ""),
}
"""Every position of every arm: the step with something there, and the sentinels that may stand there."""
CELLS = [(place, kind) for place in POSITIONS for kind in SENTINELS]


@for_each(("place", "kind"), CELLS)
def test_a_sentinel_stands_only_where_it_may(place: str, kind: str) -> None:
    made, admitted = POSITIONS[place]
    step = made(SENTINELS[kind])
    if kind in admitted.split():
        assert wire_form(read_steps([step])) == [step]
    else:
        with expect_refusal(SHAPE, "misplaced_sentinel") as caught:
            read_steps([step])
        assert kind in caught.value.detail


@for_each(("place", "kind"), CELLS)
def test_closing_steps_know_neither_loop_nor_artifacts(place: str, kind: str) -> None:
    made, admitted = POSITIONS[place]
    step = made(SENTINELS[kind])
    if kind in admitted.split() and kind in ("BindingRef", "CaptureRef"):
        assert wire_form(read_closing_steps([step])) == [step]
    else:
        with expect_refusal(SHAPE, "misplaced_sentinel") as caught:
            read_closing_steps([step])
        assert caught.value.facts["list"] == "closing_steps"


@for_each(("place", "kind"), CELLS)
def test_resolved_steps_hold_no_binding_and_every_other_sentinel_where_it_was(place: str, kind: str) -> None:
    made, admitted = POSITIONS[place]
    step = made(SENTINELS[kind])
    if kind in admitted.split() and kind != "BindingRef":
        (resolved,) = RESOLVED.validate_python([step])
        assert wire_form([resolved]) == [step]
    else:
        with pytest.raises(ValidationError):
            RESOLVED.validate_python([step])


@for_each(
    "sentinel",
    [
        {"__binding__": ""},
        {"__binding__": "x" * 101},
        {"__binding__": 1},
        {"__binding__": None},
        {"__binding__": {"__binding__": "dwell"}},
        {"__binding__": "dwell", "unit": "s"},
        {"__binding__": "dwell", "__capture__": "home"},
        {"__capture__": ["home"]},
        {"__steering__": "", "axis": 1},
    ],
)
@for_each("made", [setpoint, check, near, lambda it: action(x=it), lambda it: compute(parameters={"x": it})])
def test_a_reserved_key_stands_alone_and_names_something(made: Callable[[Any], Raw], sentinel: Raw) -> None:
    with expect_refusal(SHAPE, "malformed_sentinel"):
        read_steps([made(sentinel)])


def nested_list(depth: int) -> Any:
    """A list in a list, so many of them."""
    return [nested_list(depth - 1)] if depth > 1 else []


def step_without(key: str, step: Raw) -> Raw:
    return {name: value for name, value in step.items() if name != key}


MISSHAPEN: list[tuple[str, Any, str, str]] = [
    ("a number", 5, "", "wrong_type"),
    ("null", None, "", "wrong_type"),
    ("a list", [], "", "wrong_type"),
    ("an empty object", {}, "", "unknown_kind"),
    ("an unknown kind", {"kind": "branch"}, "", "unknown_kind"),
    ("a kind in other letters", setpoint(kind="Setpoint"), "", "unknown_kind"),
    ("a kind that is no text", setpoint(kind=["setpoint"]), "", "unknown_kind"),
    ("a kind that is a sentinel", setpoint(kind={"__binding__": "x"}), "", "unknown_kind"),
    ("a setpoint without address", step_without("address", setpoint()), "address", "missing_field"),
    ("a setpoint without value", step_without("value", setpoint()), "value", "missing_field"),
    ("an unknown field", setpoint(tolerance=1), "tolerance", "unknown_field"),
    ("a reserved key beside fields", setpoint(__binding__="x"), "__binding__", "unknown_field"),
    ("an empty address", setpoint(address=""), "address", "out_of_bounds"),
    ("a long address", setpoint(address="x" * 301), "address", "out_of_bounds"),
    ("an address of one tab", setpoint(address="\t"), "address", "blank"),
    ("an address with a margin", check(address=" bl:m1"), "address", "untrimmed"),
    ("an address with a line break behind it", capture(address="bl:m1\n"), "address", "untrimmed"),
    ("an address that is a number", setpoint(address=1), "address", "wrong_type"),
    ("a value of null", setpoint(None), "value", "wrong_type"),
    ("a value of object", setpoint({"x": 1}), "value", "wrong_type"),
    ("a value like a field of a sentinel", setpoint({"name": "dwell"}), "value", "wrong_type"),
    ("a value of infinity", setpoint(float("inf")), "value", "not_finite"),
    ("a value beyond a double", setpoint(10**400), "value", "not_finite"),
    ("a list with not-a-number", setpoint([1, float("nan")]), "value", "not_finite"),
    ("a list too deep", setpoint(nested_list(MAX_DEPTH + 1)), "value", "too_deep"),
    ("verify as a number", setpoint(verify=1), "verify", "wrong_type"),
    ("verify as text", setpoint(verify="true"), "verify", "wrong_type"),
    ("verify as null", setpoint(verify=None), "verify", "wrong_type"),
    ("an action without name", step_without("name", action()), "name", "missing_field"),
    ("an action with an empty name", {**action(), "name": ""}, "name", "out_of_bounds"),
    ("an action with a blank name", {**action(), "name": "  "}, "name", "blank"),
    ("an action with a margin", {**action(), "name": "collect "}, "name", "untrimmed"),
    ("an action with a long name", {**action(), "name": "x" * 101}, "name", "out_of_bounds"),
    ("params as a list", {**action(), "params": []}, "params", "wrong_type"),
    ("params as null", {**action(), "params": None}, "params", "wrong_type"),
    ("a parameter too deep", action(x=nested_list(MAX_DEPTH + 1)), "params.x", "too_deep"),
    ("a check without criterion", step_without("criterion", check()), "criterion", "missing_field"),
    ("a criterion of text", check(criterion="equals"), "criterion", "wrong_type"),
    ("a criterion without kind", check(criterion={"expected": 1}), "criterion", "unknown_kind"),
    ("an unknown criterion", check(criterion={"kind": "above", "expected": 1}), "criterion", "unknown_kind"),
    ("a criterion without expected", check(criterion={"kind": "equals"}), "criterion.expected", "missing_field"),
    ("an expected null", check(None), "criterion.expected", "wrong_type"),
    ("an expected object", check({"x": 1}), "criterion.expected", "wrong_type"),
    (
        "equality with a tolerance",
        check(criterion={**near()["criterion"], "kind": "equals"}),
        "criterion.tolerance",
        "unknown_field",
    ),
    ("a tolerance of a text", near(tolerance="0.5"), "criterion.tolerance", "wrong_type"),
    ("a negative tolerance", near(tolerance=-0.1), "criterion.tolerance", "out_of_bounds"),
    ("an infinite tolerance", near(tolerance=float("inf")), "criterion.tolerance", "not_finite"),
    ("a tolerance around a text", near("open"), "criterion.expected", "wrong_type"),
    ("a tolerance around true", near(True), "criterion.expected", "wrong_type"),
    ("a tolerance around a list", near([1]), "criterion.expected", "wrong_type"),
    ("a deadline of zero", check(timeout=0), "timeout", "out_of_bounds"),
    ("a deadline beyond an hour", check(timeout=3600.5), "timeout", "out_of_bounds"),
    ("a deadline of true", check(timeout=True), "timeout", "wrong_type"),
    ("a deadline of text", check(timeout="10"), "timeout", "wrong_type"),
    ("a deadline that never comes", check(timeout=float("inf")), "timeout", "not_finite"),
    ("a deadline on a setpoint", setpoint(timeout=5), "timeout", "unknown_field"),
    ("a capture without a slot", step_without("capture_name", capture()), "capture_name", "missing_field"),
    ("a capture into null", capture(None), "capture_name", "wrong_type"),
    ("a capture into an empty name", capture(""), "capture_name", "out_of_bounds"),
    ("a capture into a blank name", capture("\u2003"), "capture_name", "blank"),
    ("a capture into a name with a margin", capture("home "), "capture_name", "untrimmed"),
    ("a program's slot with a margin", compute(capture_name="\thome"), "capture_name", "untrimmed"),
    ("an output with a margin", publishing_step("recon\n"), "output_ref_name", "untrimmed"),
    ("a blank slot that is used", setpoint({"__capture__": " "}), "value", "blank"),
    ("a slot that is used with a margin", check({"__capture__": "home "}), "criterion.expected", "untrimmed"),
    ("an axis with a margin", setpoint({"__steering__": " focus"}), "value", "untrimmed"),
    ("an output that is read with a margin", compute(input_uris=[{"__output__": "recon "}]), "input_uris.0", "untrimmed"),
    ("a capture into a long name", capture("x" * 101), "capture_name", "out_of_bounds"),
    ("a compute step without command", step_without("command", compute()), "command", "missing_field"),
    ("a command line", compute(command="recon --fast"), "command", "wrong_type"),
    ("an empty command", compute(command=[]), "command", "out_of_bounds"),
    ("an empty argument", compute(command=["recon", ""]), "command.1", "out_of_bounds"),
    ("an argument that is a number", compute(command=["recon", 3]), "command.1", "wrong_type"),
    ("inputs of null", compute(input_uris=None), "input_uris", "wrong_type"),
    ("an input that is a number", compute(input_uris=["a", 1]), "input_uris.1", "wrong_type"),
    ("an output that is a list", compute(output_uri=[]), "output_uri", "wrong_type"),
    ("parameters of a list", compute(parameters=[]), "parameters", "wrong_type"),
    ("a slot beside an artifact", compute(output_uri="file:///a", capture_name="mean"), "", "wrong_arm"),
    ("an output without an artifact", compute(output_ref_name="recon"), "", "wrong_arm"),
]


@for_each(("step", "path", "reason"), [row[1:] for row in MISSHAPEN])
def test_a_misshapen_step_is_refused_where_it_is_wrong(step: Any, path: str, reason: str) -> None:
    with expect_refusal(SHAPE, reason) as caught:
        read_steps([setpoint(), step])
    assert caught.value.facts == {"list": "steps", "step_index": 1, "path": path}
    assert caught.value.detail.startswith(f"steps[1].{path} " if path else "steps[1] ")
    assert caught.value.detail.endswith("; correct the step.")


@for_each(
    "step",
    [
        setpoint(address="x" * 300),
        setpoint(""),
        setpoint([]),
        setpoint(nested_list(MAX_DEPTH)),
        setpoint(-(2**1000)),
        {**action(), "name": "x" * 100},
        action(**{"": None}),
        near(tolerance=0.0),
        check(timeout=3600.0),
        check(timeout=1e-9),
        capture("x" * 100),
        setpoint({"__binding__": "x" * 100}),
        setpoint({"__binding__": " dwell "}),
        capture("the way home"),
        compute(output_uri="file:///a"),
        publishing_step("x" * 100),
    ],
)
def test_a_step_at_its_bounds_is_taken(step: Raw) -> None:
    assert wire_form(read_steps([step])) == [step]


def test_a_closing_step_publishes_nothing() -> None:
    with expect_refusal(SHAPE, "closing_output") as caught:
        read_closing_steps([setpoint(), publishing_step("recon")])
    assert caught.value.facts == {"list": "closing_steps", "step_index": 1, "path": "output_ref_name"}
    assert len(read_closing_steps([compute(output_uri="file:///a")])) == 1


def check_wire_steps(steps: list[Raw], closing_steps: list[Raw], schema: Any = None) -> None:
    check_steps(read_steps(steps), read_closing_steps(closing_steps), schema)


DWELL, HOME, RECON = SENTINELS["BindingRef"], SENTINELS["CaptureRef"], SENTINELS["OutputRef"]
UNKNOWN = "RecipeBindingReferencesUnknownParameterError"
UNBOUND_CAPTURE, TWICE = "UnboundRecipeCaptureError", "DuplicateRecipeCaptureError"
UNBOUND_OUTPUT, TWICE_PUBLISHED = "UnboundRecipeOutputError", "DuplicateRecipeOutputError"


def undeclared_parameter(name: str) -> Raw:
    return {"binding_name": name, "declared_names": ["dwell", "repetitions", "retract_position"]}


def home_at(step_index: int, in_list: str = "steps") -> Raw:
    return {"list": in_list, "step_index": step_index, "capture_name": "home"}


def recon_at(step_index: int) -> Raw:
    return {"list": "steps", "step_index": step_index, "output_name": "recon"}


DWEL, ZETA, ALPHA = ({"__binding__": name} for name in ("dwel", "zeta", "alpha"))
UNRULY: dict[str, tuple[list[Raw], list[Raw], str, Raw]] = {
    "a parameter nobody declares": ([setpoint(DWEL)], [], UNKNOWN, undeclared_parameter("dwel")),
    "the first in the alphabet": ([setpoint(ZETA)], [action(x=ALPHA)], UNKNOWN, undeclared_parameter("alpha")),
    "a slot filled twice": ([capture(), capture()], [], TWICE, home_at(1)),
    "a slot filled by a reading and a program": ([capture(), compute(capture_name="home")], [], TWICE, home_at(1)),
    "a slot filled again while closing": ([capture()], [setpoint(), capture()], TWICE, home_at(1, "closing_steps")),
    "a slot nobody fills": ([check(HOME)], [], UNBOUND_CAPTURE, home_at(0)),
    "a slot used before it is filled": ([setpoint(HOME), capture()], [], UNBOUND_CAPTURE, home_at(0)),
    "a slot of the step itself": ([compute(parameters={"x": HOME}, capture_name="home")], [], UNBOUND_CAPTURE, home_at(0)),
    "a slot that only closing fills": ([setpoint(), setpoint(), setpoint(HOME)], [capture()], UNBOUND_CAPTURE, home_at(2)),
    "an output published twice": ([publishing_step("recon")] * 2, [], TWICE_PUBLISHED, recon_at(1)),
    "an output nobody publishes": ([compute(input_uris=[RECON])], [], UNBOUND_OUTPUT, recon_at(0)),
    "an output read too early": ([compute(input_uris=[RECON]), publishing_step("recon")], [], UNBOUND_OUTPUT, recon_at(0)),
    "an output of the step itself": ([publishing_step("recon", RECON)], [], UNBOUND_OUTPUT, recon_at(0)),
    "two unread": ([publishing_step("prep"), publishing_step("recon")], [], SHAPE, {"output_names": ["prep", "recon"]}),
    "no output left of record": ([publishing_step("recon"), compute(input_uris=[RECON])], [], SHAPE, {"output_names": []}),
}


@for_each(("steps", "closing", "refusal", "facts"), UNRULY.values())
def test_steps_that_do_not_hold_together_are_refused(steps: list[Raw], closing: list[Raw], refusal: str, facts: Raw) -> None:
    with expect_refusal(refusal) as caught:
        check_wire_steps(steps, closing, acquisition())
    assert caught.value.status == 422
    assert caught.value.facts == facts


ORDERLY: dict[str, tuple[list[Raw], list[Raw]]] = {
    "a slot used later and while closing": ([capture(), setpoint(HOME)], [setpoint(HOME)]),
    "a slot of closing used while closing": ([setpoint()], [capture(), setpoint(HOME)]),
    "a slot of the main list used while closing at a lower index": ([setpoint(), capture()], [setpoint(HOME)]),
    "a slot filled by a program": ([compute(capture_name="home"), check(HOME)], []),
    "a slot that nobody uses": ([capture()], []),
    "a slot and an output of one name": ([capture("recon"), publishing_step("recon")], []),
    "a coordinate without a declaring step": ([setpoint(SENTINELS["SteeringRef"])], []),
    "a chain of artifacts": ([publishing_step("recon"), publishing_step("volume", RECON)], []),
    "several artifacts read by one program": (
        [publishing_step("recon"), publishing_step("other"), publishing_step("volume", RECON, {"__output__": "other"})],
        [],
    ),
    "one artifact read twice": (
        [publishing_step("recon"), compute(input_uris=[RECON]), publishing_step("volume", RECON)],
        [],
    ),
    "an artifact without a name": ([compute(output_uri="file:///a"), publishing_step("recon")], []),
}


@for_each(("steps", "closing"), ORDERLY.values())
def test_steps_that_hold_together_are_taken(steps: list[Raw], closing: list[Raw]) -> None:
    check_wire_steps(steps, closing)


def test_parameters_need_a_schema_that_declares_them() -> None:
    steps = [setpoint({"__binding__": "zeta"}), action(x=DWELL, y=DWELL)]
    with expect_refusal("RecipeRequiresCapabilityParametersSchemaError") as caught:
        check_wire_steps(steps, [])
    assert caught.value.facts == {"binding_names": ["dwell", "zeta"]}
    with expect_refusal(UNKNOWN) as caught:
        check_wire_steps(steps, [], {})
    assert caught.value.facts == {"binding_name": "dwell", "declared_names": []}


def test_only_parameters_at_the_top_of_the_schema_can_be_bound() -> None:
    grouped = {"properties": {"camera": {"type": "object", "properties": {"dwell": {"type": "number"}}}}}
    with expect_refusal(UNKNOWN):
        check_wire_steps([setpoint(DWELL)], [], grouped)
    check_wire_steps([action(camera={"__binding__": "camera"})], [], grouped)


def test_shape_is_judged_before_bindings_captures_and_outputs_in_that_order() -> None:
    faults: list[tuple[str, list[Raw]]] = [
        (UNKNOWN, [setpoint({"__binding__": "dwel"})]),
        (TWICE, [capture("twice"), capture("twice")]),
        (UNBOUND_CAPTURE, [setpoint(HOME)]),
        (TWICE_PUBLISHED, [publishing_step("twice"), publishing_step("twice")]),
        (UNBOUND_OUTPUT, [compute(input_uris=[RECON])]),
        (SHAPE, [publishing_step("one"), publishing_step("other")]),
    ]
    for first in range(len(faults)):
        steps = [step for _, wrong in reversed(faults[first:]) for step in wrong]
        with expect_refusal(faults[first][0]):
            check_wire_steps(steps, [], acquisition())
        with expect_refusal(SHAPE, "wrong_type"):
            check_wire_steps(steps, [None], acquisition())  # type: ignore[list-item]


def test_both_lists_are_one_sequence() -> None:
    sequence = located_steps(read_steps(STEPS), read_closing_steps(CLOSING_STEPS))
    assert [str(place) for place, _ in sequence][-3:] == ["steps[6]", "closing_steps[0]", "closing_steps[1]"]
    assert wire_form([step for _, step in sequence]) == STEPS + CLOSING_STEPS


@given(raw=recipe_lists)
def test_any_steps_are_written_as_they_were_read_in_their_order_and_with_their_types(raw: list[Raw]) -> None:
    assert json.dumps(wire_form(read_steps(raw)), sort_keys=True) == json.dumps(raw, sort_keys=True)


def test_steps_that_are_kept_already_are_read_as_they_are() -> None:
    kept = [setpoint(address="\t"), capture("home "), setpoint({"__capture__": "home "})]
    assert wire_form(RECIPE.validate_python(kept)) == kept


@given(recipe_lists.map(lambda raw: (RECIPE, raw)) | resolved_lists.map(lambda raw: (RESOLVED, raw)))
def test_any_steps_survive_json(case: tuple[TypeAdapter[tuple[Any, ...]], list[Raw]]) -> None:
    form, raw = case
    steps = form.validate_python(raw)
    text = form.dump_json(steps)
    again = form.validate_json(text)
    assert again == steps
    assert form.dump_json(again) == text
    assert [type(step) for step in again] == [type(step) for step in steps]


@cache
def documented_form() -> Any:
    """The JSON schema of a recipe's definition."""
    return DefineRecipe.model_json_schema()


@given(raw=recipe_lists)
def test_the_documented_form_admits_whatever_is_taken(raw: list[Raw]) -> None:
    form = Draft202012Validator(documented_form())
    body = {"name": "n", "capability_id": "0197a100-0000-7000-8000-00000000000a", "steps": raw, "closing_steps": raw}
    read_steps(raw)
    assert next(form.iter_errors(body), None) is None


BEYOND_A_SCHEMA = {"misplaced_sentinel", "not_finite", "too_deep", "wrong_arm"}


@for_each("step", [row[1] for row in MISSHAPEN if row[3] not in BEYOND_A_SCHEMA])
def test_the_documented_form_excludes_what_a_schema_can(step: Any) -> None:
    form = documented_form()
    steps = {"$defs": form["$defs"], **form["properties"]["steps"]}
    assert not Draft202012Validator(steps).is_valid([step])


def test_a_deadline_is_documented_in_seconds() -> None:
    deadline = documented_form()["$defs"]["RecipeCheckStep"]["properties"]["timeout"]["anyOf"][0]
    assert deadline["unit"] == {"system": "udunits", "code": "s"}


def test_a_refusal_says_one_thing_in_one_sentence() -> None:
    with pytest.raises(Refusal) as caught:
        read_steps([setpoint(address="", value=None, verify=3, extra=1)])
    assert caught.value.detail == "steps[0].address must not be empty; correct the step."
