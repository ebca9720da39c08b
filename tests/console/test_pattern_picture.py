"""The path of a pattern, drawn where its recipe is tried before it is defined."""

from typing import Any
from zoneinfo import ZoneInfo

from baton.api.schemas import input_schema
from baton.console.forms import FormReader
from baton.console.pattern_picture import pattern_picture
from baton.domain.contexts import REGISTRY
from tests.support.console.page_source import PageSource
from tests.support.service import Api

GRID: dict[str, Any] = {
    "kind": "grid",
    "axes": [
        {"address": "bl7:<y>", "start": 0, "stop": 2, "num": 3, "unit": "mm"},
        {"address": "bl7:x", "start": 0, "stop": 9, "num": 4},
    ],
    "snaked": True,
    "at_point": [{"kind": "capture", "address": "bl7:diode", "capture_name": "diode_{n}"}],
    "returns": True,
}


def test_the_path_goes_through_every_point_over_the_last_axis_and_the_first() -> None:
    drawn = pattern_picture(GRID)
    assert drawn.count("<circle") == 12
    assert "The path of 12 points: bl7:&lt;y&gt; in mm upwards, bl7:x to the right." in drawn
    assert "<y>" not in drawn


def test_one_axis_is_drawn_over_its_points() -> None:
    drawn = pattern_picture({"kind": "list", "axes": [{"address": "bl7:x", "positions": [5, 1, 3]}]})
    assert (drawn.count("<circle"), "bl7:x upwards, point to the right" in drawn) == (3, True)


def test_of_a_long_path_the_beginning_is_drawn() -> None:
    line = {"kind": "line", "axes": [{"address": "bl7:x", "start": 0, "stop": 1}], "num": 5000}
    drawn = pattern_picture(line)
    assert (drawn.count("<circle"), "the first 2000 of 5000 points" in drawn) == (2000, True)


async def test_steps_and_pattern_are_shown_at_once_in_the_form_of_a_recipe(api: Api) -> None:
    shown, more = (await api.get("/console/do/define_recipe")).text.split("<details", 1)
    assert all(f'id="field-{name}"' in shown for name in ("name", "steps", "pattern"))
    assert 'id="field-closing_steps"' in more


async def test_a_recipe_that_is_tried_shows_the_path_and_is_not_defined(api: Api) -> None:
    contract = {"name": "Map", "required_affordances": [], "executor_shapes": ["PROCEDURE"]}
    capability_id = await api.create("/capabilities", {"code": "baton.capability.map", **contract})
    schema = input_schema(REGISTRY.operations["define_recipe"])
    reader = FormReader(schema.get("$defs", {}), ZoneInfo("UTC"))
    typed = reader.type_in(schema, {"name": "Map it", "capability_id": capability_id, "pattern": GRID})
    form = "/console/do/define_recipe"
    page = PageSource.of((await api.get(form)).text)
    sent = {**typed, "form_token": page.value("form_token"), "_check": "1"}
    tried = await api.client.post(form, data=sent, headers=api.headers)
    assert (tried.status_code, "Nothing was done" in tried.text) == (200, True), tried.text
    assert "The path of 12 points: bl7:&lt;y&gt; in mm upwards" in tried.text
    assert [*PageSource.of(tried.text).faults()] == []
    assert (await api.get("/recipes")).json()["items"] == []
