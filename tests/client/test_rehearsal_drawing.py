"""A rehearsal as a notebook draws it."""

from types import SimpleNamespace
from typing import Any

from baton.client.rehearsal_drawing import is_rehearsal, rehearsal_html


def rehearsal(**more: Any) -> dict[str, Any]:
    limits = SimpleNamespace(low=-180.0, high=None)
    turn = SimpleNamespace(address="bl7:<rot>", unit="deg", course=[(0, 0.0), (1, 90.0), (2, 90.0)])
    twin = SimpleNamespace(address="bl7:<rot>", limits=limits, control_limits=None)
    return {"travel": [turn], "twin": [twin], "walked_count": 3, "message": "It goes through < 3 steps.", **more}


def test_each_axis_is_a_line_between_its_limits() -> None:
    drawn = rehearsal_html(rehearsal())
    assert drawn.count("stroke-dasharray") == 1
    assert "<div>bl7:&lt;rot&gt;: 0 to 90 deg</div>" in drawn
    assert "<p>It goes through &lt; 3 steps.</p>" in drawn


def test_what_does_not_move_is_a_sentence_alone() -> None:
    members = rehearsal(travel=[], twin=[])
    assert is_rehearsal(members)
    assert "<svg" not in rehearsal_html(members)
    assert not is_rehearsal({"message": "no"})
