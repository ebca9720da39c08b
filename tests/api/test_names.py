"""Names beside ids: what answers refer to, one hop away, in one read for each kind, as far as the caller may know it; who
brought runs and procedures about, and when; the log with names, newest first, in pages of a size."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from baton.application.seeds import SYSTEM_ZONE
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import NamesOnRequest
from baton.infrastructure.postgres.store import PostgresSession
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.service import Api, running_api

STEPS = [{"kind": "setpoint", "address": f"bl7:m{number}", "value": number} for number in range(40)]


async def named_beamline(api: Api) -> tuple[Beamline, dict[str, str]]:
    """A beamline that can run, and the people who run it."""
    people = {name: await api.create("/actors", {"name": name}) for name in ("Ada", "Ben")}
    return await beamline(api), people


async def page_of(api: Api, path: str, **asked: Any) -> dict[str, Any]:
    response = await api.get(path, **asked)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def test_an_answer_names_what_it_refers_to_where_that_is_asked_for(api: Api) -> None:
    line, _ = await named_beamline(api)
    run = await line.start_run(name="Night scan")
    plan = await page_of(api, f"/plans/{line.plan_id}")
    plain = await page_of(api, f"/runs/{run}")
    assert "plan" not in plain
    named = await page_of(api, f"/runs/{run}", include="names")
    assert named["plan"] == {"id": line.plan_id, "name": plan["name"]}
    assert {name: named[name] for name in plain} == plain
    assert "run" not in named
    shown_plan = await page_of(api, f"/plans/{line.plan_id}", include="names")
    assets = {id: (await page_of(api, f"/assets/{id}"))["name"] for id in shown_plan["asset_ids"]}
    assert shown_plan["assets"] == [{"id": id, "name": name} for id, name in assets.items()]
    refused = await api.get(f"/runs/{run}", include="everything")
    assert refused.status_code == 422


async def test_histories_and_the_log_name_streams_surfaces_and_what_events_hold(api: Api) -> None:
    line, people = await named_beamline(api)
    run = await line.start_run(name="Night scan")
    await api.acting_as(people["Ada"]).execute(f"/runs/{run}/hold", {"reason": "beam lost"})
    plan = await page_of(api, f"/plans/{line.plan_id}")
    history = await page_of(api, f"/runs/{run}/history", include="names")
    assert history["run"] == {"id": run, "name": "Night scan"}
    started, held = history["items"]
    assert started["payload"]["plan"] == {"id": line.plan_id, "name": plan["name"]}
    assert (held["stream"], held["principal_name"]) == ({"id": run, "name": "Night scan"}, "Ada")
    assert held["surface"] == {"id": SYSTEM_HTTP, "name": (await page_of(api, f"/surfaces/{SYSTEM_HTTP}"))["name"]}
    (newest, *_) = (await page_of(api, "/events", include="names", order="desc", stream_type="Run"))["items"]
    assert newest == held


@pytest.fixture
def asked_statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement by which sessions of this process read, as it is sent."""
    asked: list[str] = []
    read = PostgresSession._rows

    async def count_read(session: PostgresSession, shape: Any, query: str, values: Any) -> list[Any]:
        asked.append(query)
        return await read(session, shape, query, values)

    monkeypatch.setattr(PostgresSession, "_rows", count_read)
    return asked


async def test_names_take_one_read_for_each_kind(api: Api, asked_statements: list[str]) -> None:
    line, _ = await named_beamline(api)
    position = 0
    for number in range(6):
        stage = await api.create("/assets", {"name": f"Stage {number}", "tier": "Device", "parent_id": line.unit_id})
        target = {"name": f"Phase {number}", "kind": "alignment", "target_asset_ids": [stage]}
        position = await api.execute("/procedures", target)

    async def reads_of(**asked: Any) -> int:
        asked_statements.clear()
        page = await page_of(api, "/procedures", min_position=position, **asked)
        assert page["items"]
        return len(asked_statements)

    plain, one, many = (
        await reads_of(limit=6),
        await reads_of(limit=1, include="names"),
        await reads_of(limit=6, include="names"),
    )
    assert (one, many) == (plain + 1, plain + 1)


async def as_reader(api: Api, admin: str, *commands: str) -> Api:
    """Somebody who may do these things and no others."""
    person = str(uuid4())
    grant = {"name": "Read", "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
    await api.acting_as(admin).create(
        "/policies", {**grant, "permitted_principal_ids": [person], "permitted_commands": list(commands)}
    )
    return api.acting_as(person)


async def test_a_name_that_the_caller_may_not_get_is_null(database_url: str) -> None:
    admin = str(uuid4())
    async with running_api(database_url, authorization_mode="policy", bootstrap_principal_id=admin) as api:
        blind = await as_reader(api, admin, "GetConduit")
        seeing = await as_reader(api, admin, "GetConduit", "GetZone")
        path, zone = f"/conduits/{SYSTEM_CONDUIT}", str(SYSTEM_ZONE)
        name = (await page_of(seeing, f"/zones/{zone}"))["name"]
        assert (await page_of(blind, path, include="names"))["source_zone"] == {"id": zone, "name": None}
        assert (await page_of(seeing, path, include="names"))["source_zone"] == {"id": zone, "name": name}


async def test_actors_are_found_by_name_by_those_who_may_get_them(database_url: str) -> None:
    admin = str(uuid4())
    async with running_api(database_url, authorization_mode="policy", bootstrap_principal_id=admin) as api:
        ada = await api.acting_as(admin).create("/actors", {"name": "Ada Lovelace"})
        position = await api.acting_as(admin).execute("/actors", {"name": "Ben"})
        lister = await as_reader(api, admin, "ListActors")
        getter = await as_reader(api, admin, "ListActors", "GetActor")
        for asked in ({"name": "Ada Lovelace"}, {"q": "LOVE"}):
            refused = await lister.get("/actors", **asked)
            assert (refused.status_code, refused.json()["code"]) == (403, "UnauthorizedError")
            assert "GetActor" in refused.json()["detail"]
            found = (await page_of(getter, "/actors", min_position=position, **asked))["items"]
            assert [one["actor_id"] for one in found] == [ada]
        assert (await page_of(getter, "/actors", name="Ada Lovelace", q="ben"))["items"] == []


async def test_a_run_says_who_started_held_resumed_and_ended_it_and_when(api: Api) -> None:
    line, people = await named_beamline(api)
    ada, ben = api.acting_as(people["Ada"]), api.acting_as(people["Ben"])
    started = await ada.post("/runs", {"name": "Night scan", "plan_id": line.plan_id})
    run = started.json()["run_id"]
    phase = {"name": "Flats", "kind": "alignment", "target_asset_ids": [line.unit_id], "parent_run_id": run}
    procedure = await ada.create("/procedures", phase)
    for path in ("hold", "resume", "hold"):
        await ben.execute(f"/runs/{run}/{path}", {"reason": "beam"} if path == "hold" else {})
    await api.execute(f"/runs/{run}/stop", {"reason": "no more beam"})
    shown = await page_of(api, f"/runs/{run}")
    events = (await page_of(api, f"/runs/{run}/history"))["items"]
    times = {kind: [one["occurred_at"] for one in events if one["event_type"] == kind] for kind in ("RunHeld", "RunResumed")}
    assert (shown["run_id"], shown["created_at"]) == (run, shown["started_at"])
    assert (shown["started_at"], shown["started_by"], shown["started_by_name"]) == (
        events[0]["occurred_at"],
        people["Ada"],
        "Ada",
    )
    assert (shown["held_at"], shown["held_by_name"]) == (times["RunHeld"][1], "Ben")
    assert (shown["resumed_at"], shown["resumed_by"]) == (times["RunResumed"][0], people["Ben"])
    assert (shown["ended_at"], shown["ended_by_name"]) == (events[-1]["occurred_at"], "not signed in")
    (only,) = shown["phases"]
    unbegun = {"status": "Defined", "lost": False, "started_at": None, "ended_at": None}
    assert only == {"procedure_id": procedure, "name": "Flats", **unbegun}
    then = await page_of(api, f"/runs/{run}", as_of_version=1)
    assert (then["held_at"], then["ended_by"], then["phases"], then["started_by_name"]) == (None, None, None, "Ada")


async def test_a_procedure_says_who_began_and_ended_it_and_what_it_belongs_to(api: Api) -> None:
    line, people = await named_beamline(api)
    ada, ben = api.acting_as(people["Ada"]), api.acting_as(people["Ben"])
    run = await line.start_run(name="Night scan")
    phase = {"name": "Flats", "kind": "alignment", "target_asset_ids": [line.unit_id], "parent_run_id": run}
    procedure = await ada.create("/procedures", phase)
    planned = await page_of(api, f"/procedures/{procedure}")
    assert (planned["registered_by_name"], planned["started_at"], planned["ended_by"]) == ("Ada", None, None)
    assert planned["parent_run"] == {"id": run, "name": "Night scan"}
    assert planned["recipe"] is None
    await ben.execute(f"/procedures/{procedure}/start")
    await ada.execute(f"/procedures/{procedure}/complete")
    done = await page_of(api, f"/procedures/{procedure}")
    assert (done["started_by_name"], done["ended_by_name"]) == ("Ben", "Ada")
    assert planned["registered_at"] < done["started_at"] < done["ended_at"] == done["last_status_changed_at"]
    ((phase_view),) = (await page_of(api, f"/runs/{run}"))["phases"]
    assert (phase_view["started_at"], phase_view["ended_at"]) == (done["started_at"], done["ended_at"])


async def log_pages(api: Api, **asked: Any) -> AsyncIterator[list[dict[str, Any]]]:
    """The pages of the log."""
    page = await page_of(api, "/events", **asked)
    while True:
        yield page["items"]
        if page["next_cursor"] is None:
            return
        page = await page_of(api, "/events", **asked, cursor=page["next_cursor"])


async def whole_log(api: Api, **asked: Any) -> list[dict[str, Any]]:
    return [one async for page in log_pages(api, **asked) for one in page]


async def test_the_log_is_read_from_its_end_as_from_its_beginning(api: Api) -> None:
    for number in range(7):
        last = await api.execute("/zones", {"name": f"Zone {number}"})
    forwards = await whole_log(api, limit=3, stream_type="Zone")
    assert len(forwards) > 7
    assert await whole_log(api, limit=3, stream_type="Zone", order="desc") == forwards[::-1]
    behind = await whole_log(api, limit=2, order="desc", after=forwards[-3]["position"])
    assert [one["position"] for one in behind if one["stream_type"] == "Zone"] == [last, forwards[-2]["position"]]
    cursor = (await page_of(api, "/events", limit=1))["next_cursor"]
    refused = await api.get("/events", order="desc", cursor=cursor)
    assert (refused.status_code, refused.json()["code"]) == (422, "InvalidCursorError")


async def test_a_page_of_the_log_ends_where_it_would_be_too_large(fresh_api: Api) -> None:
    for number in range(12):
        await fresh_api.execute("/zones", {"name": f"{number} {'z' * 150}"})
    everything = await whole_log(fresh_api, limit=100)
    for asked in ({}, {"order": "desc"}, {"include": "names"}):
        pages = [page async for page in log_pages(fresh_api, limit=100, max_bytes=4096, **asked)]
        assert len(pages) > 3
        found = [one["event_id"] for page in pages for one in page]
        assert sorted(found) == sorted(one["event_id"] for one in everything)
    for one in everything:
        page = await fresh_api.get("/events", limit=100, max_bytes=4096, after=one["position"])
        assert len(page.content) <= 4096 + 100


async def test_a_payload_is_left_out_where_it_is_not_asked_for(api: Api) -> None:
    await api.execute("/zones", {"name": "Hall"})
    plain = await whole_log(api, stream_type="Zone")
    without = await whole_log(api, stream_type="Zone", payloads="false")
    assert without == [{**one, "payload": None} for one in plain]


async def test_steps_are_referred_to_in_the_log_and_shown_where_it_says(api: Api) -> None:
    aligning = {"name": "Align", "code": "baton.capability.align", "required_affordances": []}
    capability = await api.create("/capabilities", {**aligning, "executor_shapes": ["PROCEDURE"]})
    recipe = await api.create("/recipes", {"name": "Home all", "capability_id": capability, "steps": STEPS})
    (defined,) = await whole_log(api, stream_type="Recipe")
    assert defined["payload"]["steps"]["count"] == len(STEPS)
    (whole,) = (await page_of(api, defined["payload"]["steps"]["at"]))["items"]
    assert (whole["event_id"], len(whole["payload"]["steps"])) == (defined["event_id"], len(STEPS))
    assert whole["stream_id"] == recipe


def test_every_query_that_shows_records_can_name_what_it_refers_to() -> None:
    shown = {one.name for one in REGISTRY if one.name.startswith("get_") and one.name.endswith("_history")}
    shown |= {f"get_{aggregate.label.replace(' ', '_')}" for aggregate in REGISTRY.aggregates.values()}
    assert shown == {one.name for one in REGISTRY if one.name in shown and issubclass(one.input, NamesOnRequest)}
