"""What `verify` of a setpoint step may be, and that recipes without its new form are hashed as they were."""

from typing import Any

import pytest

from baton.domain.recipe.expansion import expansion_of, steps_hash
from baton.domain.recipe.step_checks import InvalidRecipeStepShapeError, read_closing_steps, read_steps
from baton.domain.recipe.steps import wait_seconds, wire_form
from tests.support.tables import for_each
from tests.support.workflows.step_json import check, setpoint


def read_one(**more: Any) -> Any:
    return read_steps([setpoint("bl7:x", 1, **more)])[0]


@for_each("verify", [False, True, {"tolerance": 0.5}, {"tolerance": 0.0, "address": "bl7:x.RBV", "timeout": 30.0}])
def test_it_is_written_as_it_was_read(verify: Any) -> None:
    assert wire_form([read_one(verify=verify)]) == [setpoint("bl7:x", 1, verify=verify)]
    assert wire_form(read_closing_steps([setpoint("bl7:x", 1, verify=verify)])) == [setpoint("bl7:x", 1, verify=verify)]
    bound = read_steps([setpoint("bl7:x", {"__binding__": "at"}, verify=verify)])
    assert wire_form(expansion_of(bound, (), {"at": 1}).steps) == [setpoint("bl7:x", 1, verify=verify)]


def test_steps_without_a_tolerance_are_hashed_as_they_were() -> None:
    steps = read_steps([setpoint("bl7:x", 1), setpoint("bl7:y", 2.5, verify=True)])
    assert steps_hash(steps, ()) == "ee8a375a0a8a4cbff64fd6f9edf8513edb341010349e002c96cc03ee0fd4e67c"


@for_each(
    ("verify", "path", "reason"),
    [
        ("yes", "verify", "wrong_type"),
        (None, "verify", "wrong_type"),
        ({}, "verify.tolerance", "missing_field"),
        ({"tolerance": -1}, "verify.tolerance", "out_of_bounds"),
        ({"tolerance": True}, "verify.tolerance", "wrong_type"),
        ({"tolerance": 1, "address": ""}, "verify.address", "out_of_bounds"),
        ({"tolerance": 1, "address": " a"}, "verify.address", "untrimmed"),
        ({"tolerance": 1, "timeout": 0}, "verify.timeout", "out_of_bounds"),
        ({"tolerance": 1, "timeout": 3601}, "verify.timeout", "out_of_bounds"),
        ({"tolerance": 1, "wait": 1}, "verify.wait", "unknown_field"),
        ({"__binding__": "at"}, "verify", "misplaced_sentinel"),
        ({"tolerance": {"__binding__": "at"}}, "verify.tolerance", "misplaced_sentinel"),
    ],
)
def test_what_it_may_not_be(verify: Any, path: str, reason: str) -> None:
    with pytest.raises(InvalidRecipeStepShapeError) as refused:
        read_one(verify=verify)
    assert (refused.value.reason, (refused.value.facts or {})["path"]) == (reason, path)


def test_a_step_says_how_long_it_may_wait() -> None:
    waits = [read_one(), read_one(verify=True), read_one(verify={"tolerance": 1})]
    assert [wait_seconds(step) for step in waits] == [0, 0, 0]
    assert wait_seconds(read_one(verify={"tolerance": 1, "timeout": 30})) == 30
    assert [wait_seconds(step) for step in read_steps([check("a", 1), check("a", 1, timeout=5)])] == [0, 5]
