"""What people watch, drawn: the trend of a signal, the beam path, and the gates in groups; what becomes of chosen items."""

from collections.abc import Sequence
from xml.etree import ElementTree

import pytest

from baton.client.refusals import ClientError
from baton.console.beam_path import PathStation, beam_path
from baton.console.judgement import GROUPS, ClosedGate, Judgement, gate_words
from baton.console.pages.now import worst_first
from baton.console.pages.queue import changes_of
from baton.console.signal_readings import TREND_SECONDS, SignalBoard
from baton.console.spark_line import HEIGHT, WIDTH, spark_line
from baton.domain.start.procedure_start import GATES as PROCEDURE_GATES
from baton.domain.start.run_start import GATES
from tests.support.tables import for_each

NOW = 1_800_000_000.0


def path_of(points: Sequence[tuple[float, float]]) -> str:
    drawn = ElementTree.fromstring(str(spark_line(points, NOW, "Ring current")))
    return str(drawn.findall("path")[0].get("d"))


def test_a_trend_runs_to_the_right_edge_and_is_broken_where_nothing_was_read() -> None:
    points = [(NOW - 300, 1.0), (NOW - 290, 2.0), (NOW - 10, 2.0), (NOW, 1.5)]
    path = path_of(points)
    assert path.count("M") == 2
    xs = [float(part.split()[0].strip("ML")) for part in path.replace(" L", "|L").replace(" M", "|M").split("|")]
    assert xs == sorted(xs)
    assert WIDTH / 2 < xs[0] < xs[-1] <= WIDTH


@for_each("points", [(), ((NOW, 1.0),)])
def test_a_trend_of_less_than_two_numbers_is_not_drawn(points: Sequence[tuple[float, float]]) -> None:
    assert spark_line(points, NOW, "Ring current") == ""


def test_a_signal_that_hardly_moves_is_drawn_as_a_line_in_the_middle() -> None:
    path = path_of([(NOW - 20, 200.0), (NOW - 10, 200.001), (NOW, 200.0)])
    heights = [float(part.split()[1]) for part in path.replace("L", "|").replace("M", "|").split("|") if part]
    assert all(abs(height - HEIGHT / 2) < 1 for height in heights)


def test_a_board_keeps_numbers_for_half_an_hour_and_nothing_else() -> None:
    board = SignalBoard()
    for at, value in ((0.0, 1), (100.0, 2.5), (100.0, True), (100.0, "open"), (100.0, float("nan"))):
        board._continue_trends([{"address": f"{type(value).__name__}:x", "value": value}], NOW + at)
    assert [len(board.trend(f"{kind}:x")) for kind in ("int", "float", "bool", "str")] == [1, 1, 0, 0]
    board._continue_trends([], NOW + TREND_SECONDS + 50)
    assert board.trend("int:x") == ()
    assert board.trend("float:x") == ((NOW + 100.0, 2.5),)


def station(name: str, hutch: str = "", look: str = "good") -> PathStation:
    return PathStation(
        name, f"/console/assets/{name}", look, "Nominal", hutch, "good" if hutch else "", "Permitted" if hutch else ""
    )


def test_the_beam_path_has_each_station_once_and_one_frame_around_a_hutch() -> None:
    stations = [station("<Ring>"), station("Shutter"), station("Stage & co", "B"), station("Camera", "B", "stop")]
    drawn = ElementTree.fromstring(str(beam_path(stations, 2, "The beam path")))
    titles = [one.findtext("title") for one in drawn.findall("a")]
    assert titles == ["<Ring>: Nominal", "Shutter: Nominal", "Stage & co: Nominal", "Camera: Nominal"]
    assert len(drawn.findall("g/rect")) == 1
    assert [one.get("class") for one in drawn.findall("a")] == ["good", "good", "good", "stop"]
    assert "and 2 more below" in "".join(drawn.itertext())
    assert beam_path([], 0, "Nothing") == ""


def test_every_gate_is_in_a_group_and_a_closed_one_comes_first() -> None:
    known = {gate.rule.__name__ for gate in (*GATES, *PROCEDURE_GATES)}
    grouped = {name for names in GROUPS.values() for name in names}
    assert {"clearance_present", "supply_available", "subject_mounted", "assets_ready"} <= known & grouped
    closed = ClosedGate(gate_words("subject_mounted"), "The subject is Received; mount it first.")
    judgement = Judgement((closed,), (gate_words("clearance_present"), "Recipes chosen", gate_words("grants_present")))
    assert [(one.name, len(one.closed), len(one.open)) for one in judgement.groups] == [
        ("Sample", 1, 0),
        ("Safety", 0, 1),
        ("Parameters", 0, 1),
        ("Permissions", 0, 1),
    ]


def test_supplies_that_no_plan_needs_are_counted_and_the_worst_comes_first() -> None:
    kinds = (("photon_beam", "Available"), ("nitrogen", "Available"), ("vacuum", "Unavailable"), ("storage", "Unavailable"))
    supplies = [{"kind": kind, "status": status} for kind, status in kinds]
    beamline = {"permits": [], "supplies": supplies}
    shown = worst_first(beamline, frozenset({"photon_beam", "vacuum"}))
    assert ([one["kind"] for one in shown["supplies"]], shown["others"]) == (["vacuum", "photon_beam"], 2)
    assert (len(worst_first(beamline, None)["supplies"]), worst_first(beamline, None)["others"]) == (4, 0)


@for_each(
    ("do", "chosen", "changes"),
    [
        ("front", "cd", [("c", "a"), ("d", "a")]),
        ("front", "ac", [("a", "b"), ("c", "b")]),
        ("end", "ab", [("a", None), ("b", None)]),
    ],
)
def test_chosen_items_are_moved_in_their_order(do: str, chosen: str, changes: list[tuple[str, str | None]]) -> None:
    found = [(one["item_id"], one.get("before_item_id")) for _, one in changes_of({"do": do}, "abcd", chosen)]
    assert found == changes


def test_chosen_items_are_removed_for_a_reason_and_none_is_refused() -> None:
    removed = [one for _, one in changes_of({"do": "remove", "reason": "no beam"}, "ab", "a")]
    assert removed == [{"item_id": "a", "reason": "no beam"}]
    for typed, chosen in (({"do": "remove"}, ""), ({"do": "burn"}, "a"), ({}, "a")):
        with pytest.raises(ClientError, match="choose one or several"):
            list(changes_of(typed, "ab", chosen))
