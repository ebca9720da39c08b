"""Shift: which time it is about, what is told of the log, and what becomes of its text where no logbook is configured."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from baton.console.shift_story import happenings_in, states_in
from baton.console.stretch import last_night
from tests.support.console.page_source import PageSource, load
from tests.support.console.page_text import text_of
from tests.support.service import Api

BERLIN, DAWN = ZoneInfo("Europe/Berlin"), datetime(2026, 11, 19, 5, tzinfo=UTC)


def event(kind: str, minute: int, **payload: Any) -> dict[str, Any]:
    """An event of one stream, as the log shows it."""
    at = (DAWN + timedelta(minutes=minute)).isoformat()
    stream = {"stream_type": "Supply", "stream_id": "ring", "stream": {"id": "ring", "name": "Storage ring"}}
    named = {"event_type": kind, "position": minute, "occurred_at": at, "principal_name": "Mira Okafor"}
    return {**stream, **named, "payload": payload}


def test_what_is_said_again_is_told_once_and_lasts_until_it_ends() -> None:
    dumped = {"reason": "The ring was dumped.", "from_status": "Available"}
    events = [
        event("SupplyMarkedUnavailable", 10, **dumped),
        event("SupplyMarkedUnavailable", 12, **dumped),
        event("SupplyMarkedRecovering", 20, reason="Injecting.", from_status="Unavailable"),
        event("SupplyRestored", 25, reason="Stored.", from_status="Recovering"),
    ]
    [loss] = happenings_in(reversed(events), {"ring": "photon_beam"})
    assert (loss.words, loss.name, loss.why, loss.times) == ("Beam lost", "Storage ring", "The ring was dumped", 2)
    assert loss.seconds(DAWN + timedelta(hours=1)) == 15 * 60
    states = states_in([events[0], *events[2:]], DAWN, DAWN + timedelta(hours=1))
    minutes = [(one.ends - one.begins) / timedelta(minutes=1) for one in states]
    assert [one.words for one in states] == ["Available", "Unavailable", "Recovering", "Available"]
    assert minutes == [10, 10, 5, 35]


def test_a_night_is_as_long_as_it_is_where_the_clock_is_changed() -> None:
    night = last_night(datetime(2026, 10, 25, 11, tzinfo=UTC), BERLIN)
    assert (night.length, night.lasts) == (timedelta(hours=13), False)
    assert last_night(DAWN, BERLIN).lasts


async def test_without_a_logbook_the_page_says_so_and_offers_the_text(api: Api) -> None:
    html = (await api.get("/console/shift")).text
    assert "No logbook of the facility is configured here" in text_of(html)
    [text] = PageSource.of(html).all("textarea")
    assert text.text.startswith("Shift from ")
    assert "readonly" in text.attributes
    form = {"form_token": (await load(api, "/console/shift")).value("form_token"), "text": "All well."}
    refused = await api.request("POST", "/console/shift/hand-over", data=form)
    assert (refused.status_code, "nothing was handed over" in refused.text) == (409, True)


async def test_a_time_that_cannot_be_is_refused(api: Api) -> None:
    for times in (
        {"from": "yesterday"},
        {"from": "2026-11-18T22:00", "to": "2026-11-18T21:00"},
        {"from": "2026-01-01T00:00"},
    ):
        assert (await api.get("/console/shift", **times)).status_code == 422, times
