"""Curves of points in a terminal."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from baton.client.plotted_points import chosen_columns
from baton.client.terminal_plot import HEIGHT, WIDTH, curve_lines, row_line

AT = datetime(2026, 3, 4, 9, 5, 6, tzinfo=UTC)


def point(x: float, y: float, value: Any) -> Any:
    return SimpleNamespace(at=AT, axes={"y": y, "x": x}, values={"label": "good", "flux": value}, units={"flux": "nA"})


POINTS = [point(x, y, x * 2.0) for y in range(2) for x in range(5)]


def test_the_first_number_is_drawn_over_the_axis_that_changes_most_often() -> None:
    assert chosen_columns(POINTS[:5], "") == ("x", ["flux"], None)
    assert chosen_columns(POINTS, "y:flux") == ("y", ["flux"], None)
    addressed = [SimpleNamespace(**{**vars(one), "axes": {"bl7:x": one.axes["x"]}}) for one in POINTS]
    assert chosen_columns(addressed, "bl7:x:flux") == ("bl7:x", ["flux"], None)
    assert chosen_columns(addressed, "bl7:x") == ("bl7:x", ["flux"], None)


def test_a_curve_goes_from_corner_to_corner() -> None:
    head, *lines, foot = curve_lines(POINTS[:5], "", braille=False)
    assert (head, foot) == ("flux 0 to 8 nA", "x 0 to 4")
    assert (len(lines), lines[0], lines[-1]) == (HEIGHT, "*".rjust(WIDTH), "*")
    braille = curve_lines(POINTS[:5], "", braille=True)[1:-1]
    assert (braille[0][-1], braille[-1][0]) == (chr(0x2808), chr(0x2840))


def test_gaps_and_texts_are_not_drawn_and_nothing_is_no_curve() -> None:
    assert curve_lines([point(0, 0, None), point(1, 0, "off")], "x:flux", braille=True) == []
    assert curve_lines([], "", braille=True) == []


def test_a_point_is_a_line() -> None:
    assert row_line(POINTS[4]) == "09:05:06  y 0  x 4  label good  flux 8 nA"


def two_values(x: float) -> Any:
    units = {"x": "mm", "left": "nA", "right": "nA", "level": "mm"}
    values = {"left": x, "right": 4 - x, "level": 7.0}
    return SimpleNamespace(at=AT, axes={"x": x}, values=values, units=units)


def test_values_of_one_unit_are_drawn_together_each_with_its_own_mark() -> None:
    points = [two_values(x) for x in range(5)]
    head, *lines, foot = curve_lines(points, "", braille=True)
    assert (head, foot) == ("o left, x right 0 to 4 nA", "x 0 to 4 mm")
    assert (lines[0], lines[-1]) == ("x".ljust(WIDTH - 1) + "o", "o".ljust(WIDTH - 1) + "x")
    assert curve_lines(points, "x:right,left", braille=True)[0] == "o right, x left 0 to 4 nA"
    assert curve_lines(points, "x:level", braille=True)[0] == "level 7 to 7 mm"


def test_a_grid_is_a_map() -> None:
    points = [point(x, y, x + 2.0 * y) for y in range(2) for x in range(3)]
    assert curve_lines(points, "", braille=True) == [
        "flux 0 (░) to 4 (█) nA",
        "▓▓▓▓████████",
        "░░░░▒▒▒▒▓▓▓▓",
        "x 0 to 2 across, y 0 to 1 up",
    ]
    assert curve_lines(points[:5], "", braille=False)[1] == "**####"[:2] * 2 + "####"
    assert curve_lines(points, "x:flux", braille=False)[0] == "flux 0 to 4 nA"
