"""The points of conducts on the simulator: a line, a grid, a loop, a search and a conduct without axes."""

from typing import Any
from uuid import UUID

from baton.application.control import Reading
from tests.support.api.conduct_streams import ConductFrame, open_conduct_stream, read_conduct_stream
from tests.support.workflows.conduct_service import PAUSE, ConductService
from tests.support.workflows.step_json import capture, criterion, setpoint, steered_value

LINE = [step for n in range(4) for step in (setpoint("a", n), capture("a", f"height_{n}"))]
GRID = [
    step
    for row in range(2)
    for step in (
        setpoint("c", row),
        *(one for n in range(3) for one in (setpoint("a", n), capture("a", f"height_{row}{n}"))),
    )
]


async def list_points(service: ConductService, procedure_id: UUID, **query: Any) -> dict[str, Any]:
    """Return the points of a procedure."""
    answer = await service.operator.get(f"/procedures/{procedure_id}/points", **query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def conducted_points(service: ConductService, *steps: Any, **fields: Any) -> tuple[UUID, dict[str, Any]]:
    """Conduct steps to their end, and return their points."""
    procedure_id, conduct_id = await service.start_conduct(*steps, **fields)
    await service.result(conduct_id)
    return procedure_id, await list_points(service, procedure_id)


async def streamed_points(service: ConductService, procedure_id: UUID, conduct_id: str, behind: int = 0) -> list[Any]:
    """Return the frames of points behind a place of a conduct that has ended."""
    frames = await read_conduct_stream(service.operator, procedure_id, f"{conduct_id}:{behind}")
    return [frame for frame in frames if frame.event == "point"]


def closed_frames(frames: list[ConductFrame]) -> list[ConductFrame]:
    """Return the frames of points that nothing more is added to."""
    return [frame for frame in frames if frame.event == "point" and not frame.data["is_open"]]


async def assert_streamed(service: ConductService, procedure_id: UUID, points: dict[str, Any]) -> None:
    """The stream tells the points of the list, each once, wherever a reader comes back."""
    conduct_id = points["conduct_id"]
    told = await streamed_points(service, procedure_id, conduct_id)
    listed = [
        (one["ordinal"], one["axes"], [value for value in one["values"] if value is not None]) for one in points["items"]
    ]
    said = [frame.data for frame in told]
    assert [(one["ordinal"], [*one["axes"].values()], [*one["values"].values()]) for one in said] == listed
    every = await read_conduct_stream(service.operator, procedure_id, f"{conduct_id}:0")
    for index, frame in enumerate(every[:-1]):
        if frame.event != "snapshot":
            rest = await streamed_points(service, procedure_id, conduct_id, frame.ordinal)
            assert [one.id for one in rest] == [one.id for one in every[index + 1 :] if one.event == "point"], frame


def table(points: dict[str, Any]) -> list[list[Any]]:
    return [[*one["axes"], *one["values"]] for one in points["items"]]


def briefly(points: dict[str, Any]) -> dict[str, Any]:
    return {name: points[name] for name in ("shape", "x", "second", "y", "objective")}


async def test_a_line_scan_is_one_curve(conduct_service: ConductService) -> None:
    procedure_id, points = await conducted_points(conduct_service, *LINE)
    assert table(points) == [[n, n] for n in range(4)]
    assert briefly(points) == {"shape": "line", "x": "a", "second": None, "y": ["height"], "objective": None}
    assert [one["is_open"] for one in points["items"]] == [False] * 4
    page = await list_points(conduct_service, procedure_id, limit=3)
    assert page["items"] == points["items"][:3]
    rest = await list_points(conduct_service, procedure_id, limit=3, after=page["next_after"])
    assert (rest["items"], rest["next_after"]) == (points["items"][3:], None)
    assert (await list_points(conduct_service, procedure_id, thin=50))["items"] == points["items"]
    assert (await list_points(conduct_service, procedure_id, names="other"))["values"] == []
    await assert_streamed(conduct_service, procedure_id, points)


async def test_a_grid_knows_its_places(conduct_service: ConductService) -> None:
    procedure_id, points = await conducted_points(conduct_service, *GRID)
    await assert_streamed(conduct_service, procedure_id, points)
    assert table(points) == [[row, n, n] for row in range(2) for n in range(3)]
    assert (points["shape"], points["grid"], points["x"], points["second"]) == (
        "grid",
        {"columns": 3, "rows": 2, "block": 1},
        "a",
        "c",
    )
    for one, other in zip(points["items"], points["items"][1:], strict=False):
        page = await list_points(conduct_service, procedure_id, limit=1, after=one["ordinal"])
        assert page["items"] == [other], "a page that begins anywhere knows where the slow axis is"


async def test_a_loop_has_a_point_for_each_pass_and_its_band(conduct_service: ConductService) -> None:
    loop = {"convergence_capture_name": "offset", "criterion": criterion(9, 0.1)}
    steps = [setpoint("c", 1), capture("b", "offset")]
    fields = {"max_consecutive_unconverged_iterations": 3}
    procedure_id, points = await conducted_points(conduct_service, *steps, how="converge", **loop, **fields)
    await assert_streamed(conduct_service, procedure_id, points)
    assert [(one["iteration_index"], one["values"]) for one in points["items"]] == [(n, [1.5]) for n in (1, 2, 3)]
    assert briefly(points) == {"shape": "passes", "x": None, "second": None, "y": ["offset"], "objective": "offset"}
    assert points["band"] == {"low": 8.9, "high": 9.1}


async def test_a_search_shows_where_it_measured_and_the_best(conduct_service: ConductService) -> None:
    procedure_id = await conduct_service.stack.register_from_recipe(
        [setpoint("a", steered_value("focus")), capture("a", "sharpness")]
    )
    search = {
        "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
        "space": {"axes": [{"name": "focus", "lower": -2, "upper": 2}]},
        "objective_capture_name": "sharpness",
        "decide": {"substrate": "grid_walk", "points_per_axis": 3},
    }
    conduct_id = await conduct_service.conduct(procedure_id, "steering/conduct", **search)
    await conduct_service.result(conduct_id)
    points = await list_points(conduct_service, procedure_id)
    assert table(points) == [[-2.0, -2.0], [0.0, 0.0], [2.0, 2.0]]
    assert briefly(points) == {"shape": "scatter", "x": "a", "second": None, "y": ["sharpness"], "objective": "sharpness"}
    await assert_streamed(conduct_service, procedure_id, points)
    assert (points["best"]["value"], points["best"]["iteration_index"]) == (2.0, 3)


async def test_a_conduct_without_axes_has_points_in_time(conduct_service: ConductService) -> None:
    steps = [setpoint("c", 1), capture("b", "first"), capture("b", "last")]
    procedure_id, points = await conducted_points(conduct_service, *steps)
    await assert_streamed(conduct_service, procedure_id, points)
    assert (briefly(points)["shape"], points["x"], points["axes"]) == ("line", None, [])
    assert table(points) == [[1.5, None], [None, 1.5]]


async def test_a_point_is_open_until_its_axis_moves_on(conduct_service: ConductService) -> None:
    procedure_id, conduct_id = await conduct_service.start_conduct(*LINE[:2], PAUSE, *LINE[2:])
    await conduct_service.pauses.wait_until_reached()
    points = await list_points(conduct_service, procedure_id)
    assert [(one["axes"], one["values"], one["is_open"]) for one in points["items"]] == [([0], [0.0], True)]
    conduct_service.pauses.end()
    await conduct_service.result(conduct_id)
    after = await list_points(conduct_service, procedure_id)
    assert after["items"][0] == {**points["items"][0], "is_open": False}


async def test_a_procedure_that_was_never_conducted_has_no_points(conduct_service: ConductService) -> None:
    procedure_id = await conduct_service.stack.register_procedure()
    points = await list_points(conduct_service, procedure_id)
    assert (points["items"], points["axes"], points["conduct_id"]) == ([], [], None)


async def test_a_reader_who_watches_is_told_each_point_once_and_as_it_is_listed(conduct_service: ConductService) -> None:
    procedure_id = await conduct_service.stack.register_procedure()
    async with open_conduct_stream(conduct_service.operator, procedure_id) as reader:
        await reader.next_frame()
        conduct_id = await conduct_service.conduct(procedure_id, steps=[*LINE[:4], PAUSE, *LINE[4:]])
        await conduct_service.pauses.wait_until_reached()
        early = await reader.until("4 started")
        assert [frame.data["values"] for frame in closed_frames(early)] == [{"height": 0.0}], "one is closed"
        conduct_service.pauses.end()
        frames = [*early, *await reader.rest()]
    told = [frame.data for frame in closed_frames(frames)]
    await conduct_service.result(conduct_id)
    points = await list_points(conduct_service, procedure_id)
    assert [one["ordinal"] for one in told] == [one["ordinal"] for one in points["items"]]
    assert [[*one["values"].values()] for one in told] == [one["values"] for one in points["items"]]


async def test_a_conduct_that_was_held_in_a_point_neither_doubles_nor_loses_it(conduct_service: ConductService) -> None:
    steps = [*LINE[:3], PAUSE, *LINE[3:]]
    procedure_id, conduct_id = await conduct_service.start_conduct(*steps)
    await conduct_service.pauses.wait_until_reached()
    await conduct_service.operator.post(f"/procedures/{procedure_id}/hold", {"reason": "lunch"})
    conduct_service.pauses.end()
    await conduct_service.result(conduct_id)
    assert table(await list_points(conduct_service, procedure_id)) == [[0, 0]], "at the second place nothing was read"
    await conduct_service.result(await conduct_service.conduct(procedure_id, "reconduct"))
    points = await list_points(conduct_service, procedure_id)
    assert table(points) == [[n, n] for n in range(4)]
    assert (await list_points(conduct_service, procedure_id, thin=50))["items"] == points["items"]


async def test_a_unit_that_changes_in_mid_course_splits_the_series(conduct_service: ConductService) -> None:
    plant = conduct_service.stack.plant
    plant.set_reading("u", Reading(value=1.5, units="mm"))
    steps = [setpoint("a", 0), capture("u", "gap_0"), PAUSE, setpoint("a", 1), capture("u", "gap_1")]
    procedure_id, conduct_id = await conduct_service.start_conduct(*steps)
    await conduct_service.pauses.wait_until_reached()
    plant.set_reading("u", Reading(value=1600, units="um"))
    conduct_service.pauses.end()
    await conduct_service.result(conduct_id)
    points = await list_points(conduct_service, procedure_id)
    assert points["values"] == [{"name": "gap", "unit": "mm"}, {"name": "gap", "unit": "um"}]
    assert table(points) == [[0, 1.5, None], [1, None, 1600]]
    assert points["y"] == ["gap"]


async def test_points_are_the_same_from_the_list_and_the_stream_while_they_come_and_afterwards(
    conduct_service: ConductService,
) -> None:
    procedure_id, conduct_id = await conduct_service.start_conduct(*LINE[:5], PAUSE, *LINE[5:])
    await conduct_service.pauses.wait_until_reached()
    live = await list_points(conduct_service, procedure_id)
    async with open_conduct_stream(conduct_service.operator, procedure_id, f"{conduct_id}:0") as reader:
        told = await reader.until("5 started")
        conduct_service.pauses.end()
        told += await reader.rest()
    await conduct_service.result(conduct_id)
    after = await list_points(conduct_service, procedure_id)
    assert [frame.data["ordinal"] for frame in closed_frames(told)] == [one["ordinal"] for one in after["items"]]
    assert live["items"] == after["items"][: len(live["items"])]
    assert len(live["items"]) == 2
    await assert_streamed(conduct_service, procedure_id, after)


async def test_a_reader_is_told_of_the_open_point_and_then_of_the_same_closed(conduct_service: ConductService) -> None:
    procedure_id, conduct_id = await conduct_service.start_conduct(*LINE[:2], PAUSE, *LINE[2:])
    await conduct_service.pauses.wait_until_reached()
    async with open_conduct_stream(conduct_service.operator, procedure_id, f"{conduct_id}:0") as reader:
        frame = await reader.next_frame()
        while frame.event != "point":
            frame = await reader.next_frame()
        conduct_service.pauses.end()
        told = [one for one in await reader.rest() if one.event == "point" and one.data["ordinal"] == frame.data["ordinal"]]
    assert (frame.data["values"], frame.data["is_open"]) == ({"height": 0.0}, True)
    assert [one.data for one in told] == [{**frame.data, "is_open": False}]
    again = await streamed_points(conduct_service, procedure_id, str(conduct_id), frame.ordinal)
    assert [one.id for one in again][:1] == [told[0].id], "a reader who comes back is told of it closed"


async def test_points_are_drawn_as_their_recipe_wants_it(conduct_service: ConductService) -> None:
    steps = [one for n in range(2) for one in (setpoint("a", n), capture("a", f"height_{n}"), capture("b", f"level_{n}"))]
    stack = conduct_service.stack
    procedure_id = await stack.register_from_recipe(steps, plot={"x": "a", "y": ("level_0", "height")})
    await conduct_service.result(await conduct_service.conduct(procedure_id))
    points = await list_points(conduct_service, procedure_id)
    assert briefly(points) == {"shape": "line", "x": "a", "second": None, "y": ["level", "height"], "objective": None}
