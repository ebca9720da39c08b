"""Expansion: bindings put in by type and by name, in order, the same in every process, or refused."""

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.recipe.expansion import (
    MAX_STEPS,
    Expansion,
    InvalidProcedureBindingsError,
    UnitMismatchError,
    check_step_count,
    expand,
    expansion_of,
    steps_hash,
)
from baton.domain.recipe.step_checks import read_closing_steps, read_steps
from baton.domain.recipe.steps import (
    MAX_DEPTH,
    ActionStep,
    BindingRef,
    CaptureStep,
    CheckStep,
    ComputeStep,
    SetpointStep,
    binding_names,
    operands,
    wire_form,
)
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.schema import check_values
from tests.support.domain.flat_field import (
    BINDINGS,
    CLOSING_STEPS,
    SENTINELS,
    STEPS,
    Raw,
    action,
    capture,
    check,
    compute,
    documents,
    near,
    publishing_step,
    raw_steps,
    recipe_lists,
    resolved_lists,
    setpoint,
)
from tests.support.domain.templates import acquisition
from tests.support.domain.world import expect_refusal
from tests.support.tables import for_each

BOUND = {"__binding__": "x"}
INVALID = "InvalidProcedureBindingsError"


def expanded_steps(steps: list[Raw], **bindings: Any) -> list[Raw]:
    return wire_form(expand(read_steps(steps), bindings))


def example() -> Expansion:
    return expansion_of(read_steps(STEPS), read_closing_steps(CLOSING_STEPS), BINDINGS)


def test_the_worked_example_expands_with_its_bindings() -> None:
    check_values(acquisition(), BINDINGS, InvalidProcedureBindingsError)
    expansion = example()
    resolved = wire_form(expansion.steps)
    assert resolved[3] == {"kind": "setpoint", "address": "bl:sample:x", "value": 20.0, "verify": False}
    assert resolved[4]["criterion"] == {"kind": "within_tolerance", "expected": 20.0, "tolerance": 0.05}
    assert resolved[5]["params"] == {"detector": "bl:cam1", "trigger_mode": "Internal", "repetitions": 20, "dwell": 0.1}
    assert [resolved[index] for index in (0, 1, 2, 6)] == [STEPS[index] for index in (0, 1, 2, 6)]
    assert wire_form(expansion.closing_steps) == CLOSING_STEPS
    assert expansion.step_count == 9
    assert expansion.steps_hash == "578ce545737d6ecc0679b532e2bf1b3e1e2dde65e7b93d24232b9a7df15c5e2d"
    assert content_hash(BINDINGS) == "ac761902455af38bdf971cbc6703faea844e95ad2814430840aaf8dc21d6cc1b"


def test_an_arm_becomes_the_same_arm() -> None:
    steps = read_steps([setpoint(), action(), check(), near(), capture(), compute()])
    arms = [SetpointStep, ActionStep, CheckStep, CheckStep, CaptureStep, ComputeStep]
    assert [type(step) for step in expand(steps, {})] == arms


BINDABLE: dict[str, Callable[[Any], Raw]] = {
    "setpoint.value": setpoint,
    "check.criterion.expected": check,
    "check.criterion.expected-within-tolerance": near,
    "action.params": lambda it: action(a=1, x=it, z=None),
    "compute.parameters": lambda it: compute(parameters={"a": SENTINELS["CaptureRef"], "x": it}),
}
EVERYWHERE = set(BINDABLE)
PARAMETERS = {"action.params", "compute.parameters"}
VALUES = EVERYWHERE - {"check.criterion.expected-within-tolerance"}
SUBSTITUTIONS = [
    (25, EVERYWHERE),
    (25.0, EVERYWHERE),
    (-0.5, EVERYWHERE),
    (2**70, EVERYWHERE),
    (1e300, EVERYWHERE),
    (True, VALUES),
    (False, VALUES),
    ("open", VALUES),
    ("", VALUES),
    ("25", VALUES),
    ("${x}", VALUES),
    ([1, 2.0, "three", None, [True]], VALUES),
    ([], VALUES),
    ([{"roi": [0, 1]}], VALUES),
    (None, PARAMETERS),
    ({}, PARAMETERS),
    ({"roi": {"x": 1, "y": 2.0}}, PARAMETERS),
]


@for_each("place", BINDABLE)
@for_each(("value", "fitting"), SUBSTITUTIONS)
def test_a_value_is_put_in_as_it_is_or_refused_by_name(place: str, value: Any, fitting: set[str]) -> None:
    made = BINDABLE[place]
    if place in fitting:
        assert json.dumps(expanded_steps([made(BOUND)], x=value)) == json.dumps([made(value)])
    else:
        with expect_refusal(INVALID, "wrong_type") as caught:
            expanded_steps([made(BOUND)], x=value)
        assert caught.value.status == 400
        assert caught.value.facts == {"binding_name": "x"}
        assert "steps[0]." in caught.value.detail


@for_each("place", BINDABLE)
@for_each(
    ("value", "reason"),
    [
        ({"__binding__": "y"}, "misplaced_sentinel"),
        ({"__capture__": "home"}, "misplaced_sentinel"),
        ({"__steering__": "focus"}, "misplaced_sentinel"),
        ({"__output__": "recon"}, "misplaced_sentinel"),
        ([{"__capture__": "home"}], "misplaced_sentinel"),
        ({"deep": {"__capture__": "home", "other": 1}}, "misplaced_sentinel"),
        (BindingRef(name="y"), "misplaced_sentinel"),
        (float("nan"), "not_finite"),
        ([float("inf")], "not_finite"),
        (10**400, "not_finite"),
        (json.loads("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)), "too_deep"),
    ],
)
def test_a_binding_smuggles_nothing_in(place: str, value: Any, reason: str) -> None:
    with expect_refusal(INVALID, reason):
        expanded_steps([BINDABLE[place](BOUND)], x=value)


def test_a_name_that_nothing_is_bound_to_is_refused() -> None:
    steps = read_steps([setpoint({"__binding__": "bound"}), action(a={"__binding__": "y"}, b={"__binding__": "x"})])
    with expect_refusal("UnboundRecipeBindingError") as caught:
        expand(steps, {"bound": 1})
    assert (caught.value.status, caught.value.facts) == (422, {"binding_name": "y"})


def test_closing_steps_need_their_bindings_too() -> None:
    steps, closing_steps = read_steps([setpoint()]), read_closing_steps([setpoint(), near(BOUND)])
    with expect_refusal("UnboundRecipeBindingError"):
        expansion_of(steps, closing_steps, {})
    with expect_refusal(INVALID, "wrong_type") as caught:
        expansion_of(steps, closing_steps, {"x": "far"})
    assert "closing_steps[1].criterion.expected" in caught.value.detail
    assert expansion_of(steps, closing_steps, {"x": 3}).steps_hash == steps_hash(steps, read_steps([setpoint(), near(3)]))


def test_bindings_that_nobody_refers_to_are_ignored() -> None:
    steps = read_steps(STEPS)
    assert expand(steps, {**BINDINGS, "spare": {"__capture__": "home"}}) == expand(steps, BINDINGS)


def test_other_sentinels_pass_untouched() -> None:
    def steps(parameter: Any) -> list[Raw]:
        return [
            setpoint(SENTINELS["CaptureRef"]),
            check(SENTINELS["SteeringRef"], timeout=5.0),
            near(SENTINELS["CaptureRef"]),
            compute(parameters={"a": SENTINELS["SteeringRef"], "b": parameter}, input_uris=[SENTINELS["OutputRef"]]),
            publishing_step("volume", SENTINELS["OutputRef"], "file:///a"),
        ]

    assert expanded_steps(steps(BOUND), x=7, home=1, focus=2, recon=3) == steps(7)


def test_neither_steps_nor_bindings_are_touched() -> None:
    steps, bindings = read_steps([action(x=BOUND), setpoint(BOUND)]), {"x": [1, {"roi": [2, 3]}]}
    before = steps_hash(steps, ()), copy.deepcopy(bindings)
    resolved = expand(steps, bindings)
    bindings["x"].append(4)
    assert before[0] == steps_hash(steps, ())
    assert wire_form(resolved)[0]["params"] == {"x": before[1]["x"]}


@pytest.mark.slow
def test_a_procedure_has_at_most_ten_thousand_steps() -> None:
    step = read_steps([setpoint()])
    assert expansion_of(step * (MAX_STEPS - 1), step, {}).step_count == MAX_STEPS == 10_000
    for main, closing in ((MAX_STEPS, 1), (1, MAX_STEPS), (MAX_STEPS + 1, 0)):
        with expect_refusal("ProcedureExpansionOverflowError") as caught:
            expansion_of(step * main, step * closing, {})
        assert (caught.value.status, caught.value.facts) == (422, {"step_count": 10_001, "cap": 10_000})
    check_step_count(MAX_STEPS)


def test_a_missing_binding_is_said_before_too_many_steps() -> None:
    with expect_refusal("UnboundRecipeBindingError"):
        expansion_of(read_steps([setpoint(BOUND)]) * (MAX_STEPS + 1), (), {})


def test_the_hash_covers_order_both_lists_and_surviving_sentinels() -> None:
    one, other = read_steps([setpoint(1)])[0], read_steps([setpoint(2)])[0]
    ref = read_steps([setpoint(SENTINELS["CaptureRef"])])[0]
    hashes = [
        steps_hash(steps, closing)
        for steps, closing in [
            ((one, other), ()),
            ((other, one), ()),
            ((one,), (other,)),
            ((other,), (one,)),
            ((one, ref), ()),
            ((one,), (ref,)),
        ]
    ]
    assert len(set(hashes)) == len(hashes)


def test_numbers_that_are_equal_have_equal_hashes() -> None:
    for steps in ([setpoint(25), near(1, 2)], [setpoint(25.0), near(1.0, 2.0)]):
        assert steps_hash(read_steps(steps), ()) == steps_hash(read_steps([setpoint(25), near(1, 2)]), ())
    assert steps_hash(read_steps([setpoint(True)]), ()) != steps_hash(read_steps([setpoint(1)]), ())
    assert content_hash({"a": 25, "b": "é"}) == content_hash({"b": "é", "a": 25.0})


def test_a_deadline_that_is_not_set_is_not_hashed() -> None:
    assert steps_hash(read_steps([check(1, timeout=None)]), ()) == steps_hash(read_steps([check(1)]), ())


@st.composite
def bound_lists(draw: st.DrawFn) -> tuple[list[Raw], Raw]:
    """Steps whose bindings may be anything that fits wherever they stand."""
    steps = draw(recipe_lists)
    fitting = st.integers(-1000, 1000) | st.floats(-1000, 1000)
    return steps, {name: draw(fitting) for name in binding_names(read_steps(steps))}


def keys_in(value: Any) -> Iterator[str]:
    """Every key of every object in a JSON value."""
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys_in(item)


@given(made=bound_lists())
def test_expansion_leaves_no_binding_and_keeps_order_and_everything_else(made: tuple[list[Raw], Raw]) -> None:
    steps, bindings = read_steps(made[0]), made[1]
    resolved = expand(steps, bindings)
    assert binding_names(resolved) == ()
    assert "__binding__" not in set(keys_in(wire_form(resolved)))
    assert [step.kind for step in resolved] == [step.kind for step in steps]
    for before, after in zip(steps, resolved, strict=True):
        for (path, was), (same_path, became) in zip(operands(before), operands(after), strict=True):
            assert path == same_path
            wanted = bindings[was.name] if isinstance(was, BindingRef) else was
            assert (type(became), became) == (type(wanted), wanted)


@given(made=bound_lists())
def test_the_same_input_expands_to_the_same_bytes(made: tuple[list[Raw], Raw]) -> None:
    once, again = (expansion_of(read_steps(made[0]), (), copy.deepcopy(made[1])) for _ in range(2))
    assert once == again
    assert once.model_dump_json() == again.model_dump_json()
    assert once.steps_hash == again.steps_hash


@given(made=bound_lists())
def test_an_expansion_survives_json(made: tuple[list[Raw], Raw]) -> None:
    expansion = expansion_of(read_steps(made[0]), (), made[1])
    text = expansion.model_dump_json()
    again = Expansion.model_validate_json(text)
    assert again == expansion
    assert again.model_dump_json() == text
    assert again.steps_hash == expansion.steps_hash


@given(raw=resolved_lists)
def test_expanding_resolved_steps_changes_nothing(raw: list[Raw]) -> None:
    resolved = expand(read_steps(raw), {})
    assert expand(resolved, {}) == resolved
    assert json.dumps(wire_form(resolved), sort_keys=True) == json.dumps(raw, sort_keys=True)


@given(step=raw_steps("BindingRef"), value=documents)
def test_any_binding_is_put_in_or_refused(step: Raw, value: Any) -> None:
    steps = read_steps([step])
    with suppress(InvalidProcedureBindingsError):
        assert binding_names(expand(steps, dict.fromkeys(binding_names(steps), value))) == ()


def test_a_bound_value_counts_in_the_unit_of_its_parameter() -> None:
    steps = read_steps([setpoint(BOUND), near(BOUND), setpoint(4), {**setpoint(4), "unit": "um"}])
    expansion = expansion_of(steps, (), {"x": 3}, {"x": "mm"})
    assert [getattr(step, "unit", None) for step in expansion.steps] == ["mm", "mm", None, "um"]
    assert "unit" not in wire_form(expansion.steps)[2], "what declares none is hashed as before"
    assert expansion_of(steps, (), {"x": 3}).steps_hash != expansion.steps_hash


def test_a_step_and_its_parameter_count_in_one_unit() -> None:
    step = read_steps([{**setpoint(BOUND), "unit": "um"}])
    assert expansion_of(step, (), {"x": 3}, {"x": "micron"}).steps[0].unit == "um"
    with pytest.raises(UnitMismatchError) as refused:
        expansion_of(step, (), {"x": 3}, {"x": "mm"})
    assert refused.value.detail == ("steps[0] counts in um, and its binding x in mm; give the step the same unit, or none.")
