"""When a signal reads what was written to it, in the forms that control systems hold values in."""

from typing import Any

from baton.domain.step.step_values import is_reached
from tests.support.tables import for_each


@for_each(
    ("asked", "read", "index"),
    [
        (3, 3, None),
        (3, 3.0, None),
        (0.1, 0.10000000149011612, None),  # as a record of single precision holds it
        (16777217, 16777216.0, None),  # likewise
        (0, 0.0, None),
        (True, 1, None),
        (1, True, None),
        ("Open", "Open", 1),
        (1, "Open", 1),
        (True, "Open", 1),
        (1.0, "Open", 1),
        (5.0, "5", None),
        (2.5, "2.5", None),
        ([1, 2], (1.0, 2.0), None),
        ([3], 3.0, None),
        (3, [3.0], None),
        ("ab", [97, 98], None),
        ("ab", [97, 98, 0, 0], None),
    ],
)
def test_it_reads_what_was_written(asked: Any, read: Any, index: int | None) -> None:
    assert is_reached(asked, read, index)


@for_each(
    ("asked", "read", "index"),
    [
        (500, 100.0, None),
        (3, 3.001, None),
        (0, 1e-9, None),
        (1, "Open", 0),
        ("Open", "Closed", 0),
        (3, "three", None),
        (3, float("nan"), None),
        (3, None, None),
        ([1, 2], [1, 2, 3], None),
        ([1, 2], [1, 3], None),
        ([1, 2], 1, None),
        ("ab", [97, 98, 99], None),
        ("ab", "abc", None),
    ],
)
def test_it_reads_something_else(asked: Any, read: Any, index: int | None) -> None:
    assert not is_reached(asked, read, index)


def test_a_tolerance_is_for_numbers_and_includes_its_ends() -> None:
    assert is_reached(10, 10.5, tolerance=0.5)
    assert is_reached([10, 20], [9.5, 20.5], tolerance=0.5)
    assert not is_reached(10, 10.51, tolerance=0.5)
    assert not is_reached("10", "10.1", tolerance=0.5)
