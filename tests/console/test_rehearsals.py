"""Rehearsals on pages: beside Start while one types, of a held procedure and of an item; and their pictures."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from baton.console.rehearsal_pictures import AxisCourse, TimedPart, axis_picture, time_bar
from baton.console.rehearsals import coming_time
from tests.console.test_queue import open_queue, waiting_items
from tests.console.test_start import send
from tests.support.console.hall import Hall
from tests.support.console.page_source import PageSource, load
from tests.support.service import Api

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = datetime(2026, 11, 19, 21, 0, tzinfo=UTC)


def test_an_axis_is_drawn_between_its_limits_with_a_cross_where_it_would_stop() -> None:
    axis = AxisCourse("bl7:<rot>", "deg", [(0, 0.0), (1, 170.0)], (-180.0, 180.0), (2.0, 190.0))
    drawn = axis_picture(axis, 2)
    assert (drawn.count('class="edge"'), drawn.count('class="stops"')) == (2, 1)
    assert "would stop: 190 deg" in drawn
    assert 'aria-label="bl7:&lt;rot&gt; between 0 and 170 deg; lower limit -180; upper limit 180; it would stop at' in drawn
    free = axis_picture(AxisCourse("bl7:x", None, [(1, 5.0)]), 1)
    assert "edge" not in free
    assert "stops" not in free


def test_the_bar_shows_procedures_in_time_and_what_lapses_meanwhile() -> None:
    parts = [
        TimedPart("Darks", NIGHT, NIGHT + timedelta(minutes=5)),
        TimedPart("Scan <1>", NIGHT, NIGHT + timedelta(hours=2)),
    ]
    drawn = time_bar(parts, [(NIGHT + timedelta(hours=1), "Clearance active")], BERLIN, "two procedures")
    assert drawn.count("<rect") == 2
    assert drawn.count('class="mark"') == 1
    assert "Scan &lt;1&gt;" in drawn
    assert "23:00" in drawn


@pytest.mark.parametrize(
    ("text", "coming"),
    [
        ("23:30", datetime(2026, 11, 19, 22, 30, tzinfo=UTC)),
        ("22:00", datetime(2026, 11, 20, 21, 0, tzinfo=UTC)),
        ("soon", None),
        ("", None),
    ],
)
def test_a_time_of_day_is_the_next_one_on_the_clock_of_the_facility(text: str, coming: datetime | None) -> None:
    assert coming_time(text, NIGHT, BERLIN) == coming


async def test_what_is_typed_is_rehearsed_beside_its_start(api: Api, hall: Hall) -> None:
    page = await load(api, hall.path)
    form = hall.form(page)
    (judged,) = (one for one in page.all("form") if one.get("id") == "launch")
    assert judged.get("data-rehearse-at") == f"{hall.path}/rehearse"
    answer = await send(api, f"{hall.path}/rehearse", form, X_Fragment="1")
    assert answer.status_code == 200, answer.text
    found = PageSource.of(answer.text)
    assert "<!doctype" not in answer.text
    assert "rehearsal-title" in {one.get("id") for one in found.elements}
    assert "walked on a twin; nothing moved" in answer.text
    assert "What it asks for then" not in answer.text
    tonight = await send(api, f"{hall.path}/rehearse", {**form, "_at": "22:00"}, X_Fragment="1")
    assert "What it asks for then" in tonight.text
    assert "Enclosure permitted" in tonight.text
    wrong = await send(api, f"{hall.path}/rehearse", {**form, "parameters.exposure": "3"}, X_Fragment="1")
    assert "rehearsal-title" not in wrong.text


async def test_without_script_a_button_rehearses(api: Api, hall: Hall) -> None:
    form = hall.form(await load(api, hall.path), _do="walk", _at="22:00")
    page = PageSource.of((await send(api, hall.path, form)).text)
    assert "rehearsal-title" in {one.get("id") for one in page.elements}
    assert next(one for one in page.elements if one.get("id") == "launch-at").get("value") == "22:00"


async def test_an_item_of_a_queue_has_a_rehearsal(api: Api, hall: Hall) -> None:
    async with open_queue(api, hall, "a") as id:
        (item,) = await waiting_items(api, id)
        path = f"/console/queues/{id}/items/{item['item_id']}"
        assert path in {link.get("href") for link in (await load(api, f"/console/queues/{id}")).all("a")}
        assert "What it asks for then" in (await api.get(path, at="22:00")).text
    gone = await api.get(path)
    assert gone.status_code == 404
