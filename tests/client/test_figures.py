"""The figure of points in a notebook: curves or a map, in one place that is drawn again."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from baton.client.progress_display import show_work
from baton.client.svg_plot import figure_of
from baton.client.watched_work import WatchedConduct
from tests.client.test_terminal_plot import POINTS, point, two_values


def test_values_of_one_unit_are_curves_of_one_figure_with_names_and_units() -> None:
    figure = figure_of([two_values(x) for x in range(5)], "")
    assert figure.count('stroke-width="2"') == 4, "two lines, each with its sample"
    assert figure.count("<circle") == 10
    for text in (">left 4 nA<", ">right 0 nA<", ">x (mm)<", 'aria-label="left, right over x"'):
        assert text in figure, text


def test_a_grid_is_a_map_of_its_places_with_a_scale() -> None:
    figure = figure_of(POINTS, "")
    assert figure.count("<rect") == 10 + 5
    assert ">flux 0 to 8 nA<" in figure
    assert "rotate(-90)" in figure


def test_names_are_text_and_nothing_is_said_so() -> None:
    odd = SimpleNamespace(at=None, axes={"<b>": 1.0}, values={"<i>": 1.0}, units={})
    assert "<b>" not in figure_of([odd], "")
    assert "<i>" not in figure_of([odd], "")
    assert figure_of([point(0, 0, None)], "") == "<p>Nothing was measured yet.</p>"


def test_a_notebook_has_one_figure_that_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def display(figure: Any, display_id: bool = False) -> Any:
        shown.append(figure)
        return SimpleNamespace(update=lambda again: shown.__setitem__(0, again))

    notebook = SimpleNamespace(display=display, HTML=str)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    work = WatchedConduct()
    with show_work(work, Console(force_jupyter=True, quiet=True), lines=False, plot=True) as update:
        assert shown == ["<p>Nothing was measured yet.</p>"]
        for number, one in enumerate(POINTS[:5]):
            work.points[number] = one
            update(False)
    assert shown == [figure_of(POINTS[:5], "")]
