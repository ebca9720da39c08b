"""Where the time of a beamline went, over REST: each state once, the same sums however the range is cut, and a table."""

import csv
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest

from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.service import Api


@pytest.fixture(scope="module")
async def line(api: Api) -> Beamline:
    """A beamline on which a run was held, its beam was lost, and its hutch was opened."""
    made = await beamline(api)
    run_id = await made.start_run(name="=1+1")
    await api.execute(f"/runs/{run_id}/hold", {"reason": "look"})
    await api.execute(f"/supplies/{made.supply_id}/mark-unavailable", {"reason": "beam dump"})
    await api.execute(f"/supplies/{made.supply_id}/mark-recovering", {"reason": "injecting"})
    await api.execute(f"/supplies/{made.supply_id}/restore", {"reason": "100 mA"})
    await api.execute(f"/runs/{run_id}/resume")
    await api.execute(f"/runs/{run_id}/complete")
    await made.observe("NotPermitted")
    return made


async def ask(line: Beamline, **asked: Any) -> Any:
    position = await line.api.runtime.store.last_position()
    answer = await line.api.get(f"/assets/{line.unit_id}/beam-time", min_position=position, **asked)
    assert answer.status_code == 200, answer.text
    return answer


async def events(line: Beamline, path: str) -> dict[str, datetime]:
    """Return when each kind of event of a stream happened."""
    items = (await line.api.get(f"{path}/history")).json()["items"]
    return {one["event_type"]: datetime.fromisoformat(one["occurred_at"]) for one in items}


async def test_every_state_is_told_once_and_all_of_them_add_up(line: Beamline) -> None:
    told = (await ask(line)).json()
    [run] = (await line.api.get("/runs", name="=1+1")).json()["items"]
    run_events, beam = await events(line, f"/runs/{run['run_id']}"), await events(line, f"/supplies/{line.supply_id}")
    lost = (beam["SupplyRestored"] - beam["SupplyMarkedUnavailable"]).total_seconds()
    held = (run_events["RunResumed"] - run_events["RunHeld"]).total_seconds() - lost
    ran = run_events["RunCompleted"] - run_events["RunStarted"] - (run_events["RunResumed"] - run_events["RunHeld"])
    before = (beam["SupplyMarkedAvailable"] - beam["SupplyRegistered"]).total_seconds()
    states = {one["state"]: one["seconds"] for one in told["states"]}
    assert states["measuring"] == pytest.approx(ran.total_seconds(), abs=1e-3)
    assert states["beam"] == pytest.approx(lost + before, abs=1e-3)
    assert states["person"] == pytest.approx(held, abs=1e-3)
    assert sum(states.values()) == pytest.approx(86400, abs=1e-3)
    assert states["handling"] > 0
    for by in ("cause", "day", "week", "plan"):
        grouped = (await ask(line, by=by)).json()["groups"]
        assert sum(one["seconds"] for one in grouped) == pytest.approx(86400, abs=1e-3)
    assert {one["group"] for one in grouped} == {"Spring block", "no plan"}


async def test_a_stretch_leads_to_the_run_that_it_was(line: Beamline) -> None:
    told = (await ask(line)).json()
    [run] = (await line.api.get("/runs", name="=1+1")).json()["items"]
    assert {one["id"] for one in told["stretches"] if one["state"] == "measuring"} == {run["run_id"]}


async def test_the_table_has_no_formula(line: Beamline) -> None:
    answer = await ask(line, format="csv")
    assert answer.headers["content-type"] == "text/csv"
    rows = [*csv.DictReader(StringIO(answer.text))]
    assert sum(float(row["seconds"]) for row in rows) == pytest.approx(86400, abs=1e-3)
    assert not any(row["cause"].startswith("=") for row in rows)


async def test_time_that_is_not_over_is_refused(line: Beamline) -> None:
    now = datetime.now(UTC)
    ranges: list[tuple[Any, Any, str]] = [
        (now, now + timedelta(hours=1), "future"),
        (now - timedelta(hours=1), now - timedelta(hours=2), "empty"),
        (now - timedelta(days=401), now, "too_long"),
    ]
    for begins, ends, reason in ranges:
        asked = {"since": begins.isoformat(), "until": ends.isoformat()}
        answer = await line.api.get(f"/assets/{line.unit_id}/beam-time", **asked)
        assert (answer.status_code, answer.json()["code"]) == (400, "InvalidRangeError")
        assert answer.json()["reason"] == reason


async def test_a_part_of_a_beamline_has_no_time_of_its_own(line: Beamline) -> None:
    answer = await line.api.get(f"/assets/{line.camera_id}/beam-time")
    assert answer.json()["code"] == "NotABeamlineError"
