"""What an observation says of its objective, and which coordinates an axis admits."""

from typing import Any

from tests.support.domain.searches import SHARPNESS, choices, interval, observation
from tests.support.tables import for_each


@for_each(
    ("value", "fields", "good"),
    [
        (1.5, {}, 1.5),
        (3, {}, 3.0),
        (0, {}, 0.0),
        (1.5, {"quality": "Uncertain"}, None),
        (1.5, {"quality": "Bad"}, None),
        (1.5, {"succeeded": False}, None),
        (True, {}, None),
        ("1.5", {}, None),
        ([1.5], {}, None),
        (None, {}, None),
        (float("nan"), {}, None),
        (float("inf"), {}, None),
        (10**400, {}, None),
    ],
)
def test_only_a_good_finite_number_of_a_pass_that_succeeded_counts(
    value: Any, fields: dict[str, Any], good: float | None
) -> None:
    assert observation({"focus": 0.0}, value, **fields).good(SHARPNESS) == good


def test_another_measurement_says_nothing_of_the_objective() -> None:
    assert observation({"focus": 0.0}).good("offset") is None
    assert observation({"focus": 0.0}).good(None) is None


def test_of_two_measurements_of_a_name_the_last_one_counts() -> None:
    first, last = observation({}, 1.0), observation({}, 2.0, quality="Bad")
    both = (*first.measurements, *last.measurements)
    assert first.model_copy(update={"measurements": both}).good(SHARPNESS) is None
    assert first.model_copy(update={"measurements": both[::-1]}).good(SHARPNESS) == 1.0


@for_each(
    ("coordinate", "admitted"),
    [
        (-2, True),
        (2.0, True),
        (0.5, True),
        (-2.0000001, False),
        (2.5, False),
        (True, False),
        ("0", False),
        (None, False),
        ([0], False),
        (float("nan"), False),
        (float("inf"), False),
        (10**400, False),
    ],
)
def test_an_interval_admits_the_numbers_between_its_ends(coordinate: Any, admitted: bool) -> None:
    assert interval("focus", -2, 2).admits(coordinate) is admitted


@for_each(
    ("coordinate", "admitted"),
    [("Al", True), ("al", False), (1, True), (1.0, True), (True, False), (None, False), ([], False)],
)
def test_choices_admit_themselves(coordinate: Any, admitted: bool) -> None:
    assert choices("filter", "Al", 1).admits(coordinate) is admitted
