"""What a plan touches is declared in a line of its docstring, which executors serve."""

from typing import Any

import pytest

from baton_bluesky import baton_touches
from baton_bluesky.touches import docstring_with


def plan_with(docstring: str | None) -> Any:
    """Return a plan with a docstring."""

    def plan(motor: str, num: int) -> None:
        """Replaced."""

    plan.__doc__ = docstring
    return plan


@pytest.mark.parametrize(
    ("docstring", "declared"),
    [
        (None, "Baton: writes=motor,shutter reads=detectors"),
        ("Scan.", "Scan.\nBaton: writes=motor,shutter reads=detectors"),
        ("""Scan a motor
        step by step.

        Parameters
        ----------
        motor: moved
        """, "Scan a motor\nstep by step.\nBaton: writes=motor,shutter reads=detectors\n\nParameters\n----------\nmotor: moved"),  # noqa: E501
        ("Scan.\n\nBaton: is not here.", "Scan.\nBaton: writes=motor,shutter reads=detectors\n\nBaton: is not here."),
        ("Scan.\nBaton: writes=other gated", "Scan.\nBaton: writes=motor,shutter gated reads=detectors"),
    ],
)  # fmt: skip
def test_the_line_ends_the_first_paragraph(docstring: str | None, declared: str) -> None:
    plan = plan_with(docstring)
    assert baton_touches(writes=["motor", "shutter"], reads=["detectors"])(plan) is plan
    assert plan.__doc__ == declared


def test_parameters_with_the_written_values_are_named_behind_the_device() -> None:
    plan = baton_touches(writes={"motor": ["start", "stop"], "shutter": []})(plan_with("Scan."))
    assert plan.__doc__ == "Scan.\nBaton: writes=motor:start:stop,shutter"


def test_a_docstring_that_has_its_line_stays_what_it_is() -> None:
    once = docstring_with("Scan.", "reads=det", "gated")
    assert docstring_with(once, "gated") == once


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({}, ValueError),
        ({"writes": "motor"}, TypeError),
        ({"writes": ["a b"]}, ValueError),
        ({"reads": ["x,y"]}, ValueError),
        ({"writes": {"motor": "start"}}, TypeError),
    ],
)
def test_what_is_no_name_is_refused_where_it_is_written(given: dict[str, Any], refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        baton_touches(**given)
