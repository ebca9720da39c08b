"""The log as outside readers see it: the feed, paged and live, the histories, and the past of every aggregate."""

import asyncio
import itertools
import json
import re
import socket
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from structlog.testing import capture_logs

from baton.api.http import Request
from baton.api.streams import EventStream, OpenStreams, StreamIntervals
from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate
from baton.domain.views.event_log import ASSET_NAMING
from tests.support.api.event_streams import open_feed
from tests.support.api.rest_beamline import beamline
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP, create_samples, visit_plan
from tests.support.databases import fresh_database
from tests.support.service import Api, running_api
from tests.support.tables import for_each
from tests.support.waiting import until

ENVELOPE = {
    "position",
    "transaction_id",
    "event_id",
    "stream_type",
    "stream_id",
    "version",
    "event_type",
    "schema_version",
    "payload",
    "principal_id",
    "command_name",
    "correlation_id",
    "causation_id",
    "occurred_at",
    "recorded_at",
    "surface_id",
    "approved_by",
    "principal_name",
}
ASSET = {"name": "Ring", "tier": "Unit", "facility_code": "facility"}
AGGREGATES = list(REGISTRY.aggregates.values())


async def read_pages(api: Api, path: str, **parameters: Any) -> AsyncIterator[list[dict[str, Any]]]:
    """Every page of a feed or a history."""
    page = (await api.get(path, **parameters)).json()
    while True:
        yield page["items"]
        if (cursor := page["next_cursor"]) is None:
            return
        page = (await api.get(path, **parameters, cursor=cursor)).json()
        assert page["next_cursor"] != cursor, "the feed does not move on"


async def read_all(api: Api, path: str, **parameters: Any) -> list[dict[str, Any]]:
    return [item async for page in read_pages(api, path, **parameters) for item in page]


def positions(events: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(event["transaction_id"], event["position"]) for event in events]


@for_each("limit", [1, 7, 50, 100])
async def test_pages_of_the_feed_hold_every_event_once_in_commit_order(past: tuple[Api, dict[str, str]], limit: int) -> None:
    api, _ = past
    pages = [page async for page in read_pages(api, "/events", limit=limit)]
    assert all(len(page) == limit for page in pages[:-1])
    events = list(itertools.chain(*pages))
    async with await psycopg.AsyncConnection.connect(api.database_url) as connection:
        stored = await (await connection.execute("SELECT event_id::text FROM events ORDER BY event_id")).fetchall()
    assert sorted(event["event_id"] for event in events) == [id for (id,) in stored]
    assert positions(events) == sorted(positions(events))
    assert all(event.keys() == ENVELOPE for event in events)


async def test_the_feed_goes_on_behind_a_position(api: Api) -> None:
    first = await api.execute("/zones", {"name": "Hall"})
    later = [await api.create("/zones", {"name": name}) for name in ("Hutch", "Roof")]
    assert [event["stream_id"] for event in await read_all(api, "/events", after=first)] == later
    assert len(await read_all(api, "/events", after=0)) == len(await read_all(api, "/events"))


async def test_the_feed_shows_what_is_asked_for(api: Api) -> None:
    ids = await create_samples(api)
    everything = await read_all(api, "/events", limit=100)
    for asked in (
        {"stream_type": ["Visit"]},
        {"stream_type": ["Visit", "Zone"]},
        {"event_type": ["VisitArrived", "AssetActivated"]},
        {"stream_type": ["Visit", "Asset"], "event_type": ["VisitArrived", "ZoneDefined"]},
        {"stream_type": ["Nothing"]},
    ):
        wanted = [event for event in everything if all(event[name] in values for name, values in asked.items())]
        assert await read_all(api, "/events", limit=3, **asked) == wanted
    assert ids["visit_id"] in {event["stream_id"] for event in everything}


async def test_the_log_is_searched_by_caller_request_time_and_asset(api: Api) -> None:
    principal, ring = str(uuid4()), await api.create("/assets", ASSET)
    other = await api.create("/assets", {**ASSET, "name": "Other"})
    await api.acting_as(principal).execute(f"/assets/{ring}/activate")
    await api.create("/queues", {"name": "Tonight", "asset_id": ring})
    everything = await read_all(api, "/events", limit=100)
    own = [event for event in everything if event["principal_id"] == principal]
    of_ring = [event for event in everything if ring in (event["stream_id"], event["payload"].get("asset_id"))]
    assert [event["event_type"] for event in of_ring] == ["AssetRegistered", "AssetActivated", "QueueOpened"]
    middle = next(event["recorded_at"] for event in everything if event["stream_id"] == other)
    for asked, wanted in (
        ({"principal_id": principal}, own),
        ({"correlation_id": own[0]["correlation_id"]}, own),
        ({"asset_id": ring}, of_ring),
        ({"asset_id": ring, "principal_id": principal}, own),
        ({"since": middle}, [event for event in everything if event["recorded_at"] >= middle]),
        ({"until": middle}, [event for event in everything if event["recorded_at"] < middle]),
        ({"since": middle, "until": middle}, []),
    ):
        assert await read_all(api, "/events", limit=2, **asked) == wanted, asked
        assert await read_all(api, "/events", limit=2, order="desc", **asked) == wanted[::-1], asked


def test_every_event_that_names_assets_is_found_by_them() -> None:
    events = {
        name: event for aggregate in AGGREGATES if aggregate.name != "Asset" for name, event in aggregate.events.items()
    }
    naming = {
        name
        for name, event in events.items()
        if re.search(
            r'"(\w+_)?asset_ids?": \{|"const": "Asset"|"enum": \[[^]]*"Asset"', json.dumps(event.model_json_schema())
        )
    }
    assert naming == set(ASSET_NAMING)


async def test_an_event_is_shown_with_its_whole_envelope(api: Api) -> None:
    principal, trace = str(uuid4()), uuid4()
    traced = {"traceparent": f"00-{trace.hex}-b7ad6b7169203331-01"}
    zone = (await api.acting_as(principal).post("/zones", {"name": "Hall"}, **traced)).json()["zone_id"]
    (event,) = await read_all(api, f"/zones/{zone}/history")
    assert {
        name: event[name] for name in ENVELOPE - {"position", "transaction_id", "event_id", "recorded_at", "occurred_at"}
    } == {
        "stream_type": "Zone",
        "stream_id": zone,
        "version": 1,
        "event_type": "ZoneDefined",
        "schema_version": 1,
        "payload": {"zone_id": zone, "name": "Hall", "occurred_at": event["payload"]["occurred_at"]},
        "principal_id": principal,
        "command_name": "DefineZone",
        "correlation_id": str(trace),
        "causation_id": None,
        "surface_id": str(SYSTEM_HTTP),
        "approved_by": None,
        "principal_name": "not registered",
    }
    assert UUID(event["event_id"]).version == UUID(zone).version == 7
    assert event["occurred_at"] == event["payload"]["occurred_at"]
    assert event["recorded_at"].endswith("Z")
    assert event in await read_all(api, "/events")


async def test_a_stream_tells_what_was_and_what_comes(api: Api) -> None:
    first = await api.execute("/zones", {"name": "Roof"})
    before = await api.create("/zones", {"name": "Hall"})
    async with open_feed(api, stream_type="Zone", after=first) as reader:
        assert reader.response.headers["content-type"] == "text/event-stream"
        assert reader.response.headers["cache-control"] == "no-store"
        frame = await reader.frame()
        assert (frame.event, frame.data["stream_id"], frame.id) == ("ZoneDefined", before, frame.data["position"])
        assert frame.data["occurred_at"] == frame.data["payload"]["occurred_at"]
        after = await api.create("/zones", {"name": "Hutch"})
        assert (await reader.frame()).data["stream_id"] == after


async def test_a_reader_that_comes_back_again_and_again_misses_nothing(api: Api) -> None:
    async def write(writer: int) -> list[str]:
        return [await api.create("/zones", {"name": f"Zone {writer}.{number}"}) for number in range(25)]

    last = await api.execute("/zones", {"name": "Hall"})
    writing = asyncio.gather(*map(write, range(4)))
    seen, patience = [], itertools.cycle([1, 2, 5, 11])
    while len(seen) < 100:
        async with open_feed(api, stream_type="Zone", last_event_id=last) as reader:
            for frame in await reader.frames(min(next(patience), 100 - len(seen))):
                seen.append(frame.data)
                last = frame.id
    written = set(itertools.chain(*await writing))
    assert {event["stream_id"] for event in seen} == written
    assert len({event["event_id"] for event in seen}) == 100
    assert positions(seen) == sorted(positions(seen))


async def test_a_reader_may_be_sent_on_by_header_or_by_parameter(api: Api) -> None:
    first = await api.execute("/zones", {"name": "Hall"})
    second = await api.execute("/zones", {"name": "Hutch"})
    async with open_feed(api, after=first) as reader:
        assert (await reader.frame()).id == second
    async with open_feed(api, after=second, last_event_id=first) as reader:
        assert (await reader.frame()).id == second


@pytest.mark.parametrize("mark", ["seven", "-1", "1.5", str(2**63), "9" * 5000, "²"])
async def test_a_mark_nobody_handed_out_is_malformed(api: Api, mark: str) -> None:
    response = await api.request("GET", "/events/stream", headers={"Last-Event-ID": mark.encode()})  # type: ignore[dict-item]
    assert (response.status_code, response.json()["errors"][0]["loc"]) == (422, ["header", "Last-Event-ID"])


async def test_a_reader_that_stops_reading_holds_back_nobody(api: Api) -> None:
    host, port = api.base_url.removeprefix("http://").split(":")
    with socket.socket() as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.setblocking(False)
        await asyncio.get_running_loop().sock_connect(stalled, (host, int(port)))
        request = b"GET /events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
        await asyncio.get_running_loop().sock_sendall(stalled, request)
        long = {"external_refs": {f"{number:050}": "x" * 200 for number in range(100)}}
        plan = {**visit_plan(str(uuid4()), str(uuid4())), **long}
        for _ in range(300):
            await api.create("/visits", plan)
        async with open_feed(api, stream_type="Visit") as reader:
            assert len(await reader.frames(300)) == 300


async def test_a_stream_that_fails_is_logged_without_what_the_error_says(
    fresh_api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        open_feed(fresh_api) as reader,
        await psycopg.AsyncConnection.connect(fresh_api.database_url, autocommit=True) as connection,
    ):
        await reader.frame()
        with capture_logs() as lines:
            await connection.execute("ALTER TABLE events RENAME TO mislaid")
            with pytest.raises(httpx.RemoteProtocolError):
                await reader.frames(1000)
    assert [line["error"] for line in lines if line["event"] == "request_failed"] == ["UndefinedTable"]
    assert "Traceback" not in caplog.text


async def test_a_reader_that_leaves_leaves_nothing_behind(api: Api) -> None:
    async with open_feed(api) as reader:
        await reader.frame()
        assert waiting_for_readers()
    await until(lambda: not waiting_for_readers())
    await api.create("/zones", {"name": "Hall"})


def waiting_for_readers() -> list[str]:
    """The tasks of this process's service that watch whether a reader is still there."""
    return [task.get_name() for task in asyncio.all_tasks() if "Request.wait_for_disconnect" in repr(task.get_coro())]


@pytest.fixture
async def enforced_apis(database_url: str) -> AsyncIterator[tuple[Api, Api]]:
    """A service that enforces policies, as a person who may do everything on it, and as its administrator."""
    admin, person = str(uuid4()), str(uuid4())
    async with running_api(database_url, authorization_mode="policy", bootstrap_principal_id=admin) as api:
        await permit(api.acting_as(admin), person, sets=["all"])
        yield api.acting_as(person), api.acting_as(admin)


async def permit(admin: Api, person: str, *commands: str, sets: list[str] | None = None) -> str:
    grant = {"name": "Grant", "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
    what = {"permitted_commands": list(commands), "permitted_command_sets": sets or []}
    return await admin.create("/policies", {**grant, **what, "permitted_principal_ids": [person]})


async def test_a_reader_sees_only_what_it_may_get(database_url: str, enforced_apis: tuple[Api, Api]) -> None:
    everybody, admin = enforced_apis
    async with running_api(database_url, projecting=False) as api:
        ids = await create_samples(api)
    person = str(uuid4())
    await permit(admin, person, "ListEvents", "StreamEvents", "GetZone", "ListVisits")
    reader = everybody.acting_as(person)
    seen = await read_all(reader, "/events")
    assert {event["stream_type"] for event in seen} == {"Zone"}
    assert ids["zone_id"] in {event["stream_id"] for event in seen}
    assert await read_all(reader, "/events", stream_type="Visit") == []
    async with open_feed(reader) as stream:
        assert [frame.data for frame in await stream.frames(len(seen))] == seen


async def test_free_texts_are_for_those_who_may_read_them(enforced_apis: tuple[Api, Api]) -> None:
    everybody, admin = enforced_apis
    asset = await everybody.create("/assets", {"name": "Tomography", "tier": "Unit", "facility_code": "facility"})
    await everybody.execute(f"/assets/{asset}/degrade", {"reason": "Mira dropped it"})
    person = str(uuid4())
    await permit(admin, person, "ListEvents", "StreamEvents", "GetAsset", "GetAssetHistory")
    reader = everybody.acting_as(person)
    for api, text in ((everybody, "Mira dropped it"), (reader, None)):
        shown = [
            (await read_all(api, f"/assets/{asset}/history"))[-1],
            (await read_all(api, "/events", stream_type="Asset"))[-1],
        ]
        async with open_feed(api, event_type="AssetDegraded") as stream:
            shown.append((await stream.frame()).data)
        assert [event["payload"]["reason"] for event in shown] == [text] * 3
    await permit(admin, person, "ReadEventTexts")
    assert (await read_all(reader, f"/assets/{asset}/history"))[-1]["payload"]["reason"] == "Mira dropped it"


async def test_the_reason_of_a_state_is_read_by_those_who_may_see_the_state(
    database_url: str, enforced_apis: tuple[Api, Api]
) -> None:
    """Reasons of holds, stops and a supply's status need no ReadEventTexts; notes and names in the same streams do."""
    everybody, admin = enforced_apis
    async with running_api(database_url, projecting=False) as api:
        line = await beamline(api)
        held, stopped = [await line.start_run(name=name) for name in ("Bar 7", "Bar 8")]
        await api.execute(f"/runs/{held}/hold", {"reason": "The shutter stuck."})
        changed = {"parameters_patch": {"projections": 900}, "reason": "The beam goes at four."}
        await api.execute(f"/runs/{held}/adjust", changed)
        await api.execute(f"/runs/{stopped}/stop", {"reason": "enough for tonight"})
        supply = await api.create("/supplies", {"kind": "Water", "name": "Cooling", "facility_code": "facility"})
        await api.execute(f"/supplies/{supply}/mark-available", {"reason": "It flows."})
        await api.execute(f"/supplies/{supply}/mark-unavailable", {"reason": "The pump leaks."})
    person = str(uuid4())
    await permit(admin, person, "ListEvents", "GetRun", "GetRunHistory", "GetSupply", "GetSupplyHistory")
    reader = everybody.acting_as(person)
    expected = {"RunHeld": "The shutter stuck.", "RunAdjusted": None, "RunStopped": "enough for tonight"}
    streams = [f"/runs/{held}/history", f"/runs/{stopped}/history", f"/supplies/{supply}/history"]
    histories = [event for path in streams for event in await read_all(reader, path)]
    for events in (histories, await read_all(reader, "/events")):
        reasons = {event["event_type"]: event["payload"]["reason"] for event in events if "reason" in event["payload"]}
        assert reasons.items() >= {**expected, "SupplyMarkedUnavailable": "The pump leaks."}.items()
        assert {event["payload"]["name"] for event in events if event["event_type"] == "RunStarted"} == {None}
    seen = (await reader.get(f"/runs/{stopped}")).json()
    assert (seen["status"], seen["end_reason"]) == ("Stopped", "enough for tonight")
    assert (await reader.get(f"/runs/{held}")).json()["last_hold_reason"] == "The shutter stuck."
    shown = (await reader.get(f"/supplies/{supply}")).json()
    assert (shown["status"], shown["last_status_reason"]) == ("Unavailable", "The pump leaks.")


@pytest.mark.parametrize("withdrawn", ["StreamEvents", "GetZone"])
async def test_an_open_feed_ends_when_what_it_needs_is_withdrawn(
    enforced_apis: tuple[Api, Api], database_url: str, withdrawn: str
) -> None:
    everybody, admin = enforced_apis
    person = uuid4()
    policies = {name: await permit(admin, str(person), name) for name in ("StreamEvents", "GetZone")}
    await everybody.create("/zones", {"name": "Hall"})
    settings = Settings(database_url=database_url, app_env="test", authorization_mode="policy")
    never = asyncio.Event()

    async def receive() -> Any:
        await never.wait()

    async with Runtime(settings) as runtime:
        streams = OpenStreams(1, 8)
        feed = EventStream(runtime.feed, runtime.authorizer, runtime.listener, streams, StreamIntervals(sight=0.05))
        request = Request({"headers": [], "query_string": b"stream_type=Zone"}, receive, {}, 0)
        answer = await feed(request, Caller(person, UUID(SYSTEM_HTTP), uuid4()))
        assert answer.stream is not None
        assert b"ZoneDefined" in await anext(aiter(answer.stream)) + await anext(answer.stream)
        revoked = {"permitted_principal_id": str(person), "reason": "over"}
        await admin.execute(f"/policies/{policies[withdrawn]}/revoke-grant", revoked)
        async with asyncio.timeout(60):
            assert [part async for part in answer.stream if not part.startswith(b":")] == []


async def test_a_feed_that_would_stay_empty_is_refused(enforced_apis: tuple[Api, Api]) -> None:
    everybody, admin = enforced_apis
    person = str(uuid4())
    await permit(admin, person, "StreamEvents")
    refused = await everybody.acting_as(person).get("/events/stream")
    assert (refused.status_code, refused.json()["reason"]) == (403, "nothing_to_see")


async def test_the_feed_needs_a_permission_of_its_own(enforced_apis: tuple[Api, Api]) -> None:
    everybody, admin = enforced_apis
    person = str(uuid4())
    await permit(admin, person, "GetZone")
    for path in ("/events", "/events/stream"):
        assert (await everybody.acting_as(person).get(path)).status_code == 403


@pytest.fixture(scope="module")
async def past(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[tuple[Api, dict[str, str]]]:
    """A service with one of everything, each with a past."""
    with fresh_database(postgres, template) as url:
        async with running_api(url, projecting=False) as api:
            yield api, await create_samples(api)


@for_each("aggregate", AGGREGATES)
async def test_a_history_tells_a_stream_from_its_first_version(
    past: tuple[Api, dict[str, str]], aggregate: Aggregate[Any]
) -> None:
    api, ids = past
    path = f"{aggregate.path}/{ids[aggregate.id_name]}/history"
    first = (await api.get(path, limit=1)).json()
    assert first.keys() == {aggregate.id_name, "items", "next_cursor"}
    assert first[aggregate.id_name] == ids[aggregate.id_name]
    events = await read_all(api, path, limit=2)
    assert [event["version"] for event in events] == list(range(1, len(events) + 1))
    assert all(event.keys() == ENVELOPE for event in events)
    for event in events:
        assert (event["stream_type"], event["stream_id"]) == (aggregate.name, ids[aggregate.id_name])
        assert event["payload"][aggregate.id_name] == ids[aggregate.id_name]
        assert event["event_type"] in aggregate.events
    missing = await api.get(f"{aggregate.path}/{uuid4()}/history")
    assert (missing.status_code, missing.json()["code"]) == (404, f"{aggregate.name}NotFoundError")


COUNTED = ("missed_count", "skipped_count", "phases", "cost_in_month", "tokens_on_day", "forecast")
"""What the engine counts of a schedule, what an agent has spent, what a queue expects; the past has none of it."""


def without_estimates(view: dict[str, Any]) -> dict[str, Any]:
    """Return a view without what is expected of its items."""
    return view | {"items": [one | {"estimate": None} for one in view["items"]]} if "items" in view else view


OF_NOW = (*COUNTED, "request", "rehearsal", "digest", "may_approve", "may_reject")
"""The same, and what a proposal asks for while it can be decided."""


@for_each("aggregate", AGGREGATES)
async def test_every_aggregate_can_be_seen_as_it_was(past: tuple[Api, dict[str, str]], aggregate: Aggregate[Any]) -> None:
    api, ids = past
    path = f"{aggregate.path}/{ids[aggregate.id_name]}"
    events = await read_all(api, f"{path}/history")
    now = (await api.get(path)).json()
    then = (await api.get(path, as_of_version=len(events))).json()
    lasting = {name: value for name, value in then.items() if name not in OF_NOW}
    assert without_estimates(now | lasting) == without_estimates(now)
    assert (await api.get(path, as_of_version=2**31 - 1)).json() == (await api.get(path, as_of_version=len(events))).json()
    for event in events:
        last = max(other["version"] for other in events if other["occurred_at"] == event["occurred_at"])
        then = (await api.get(path, as_of=event["occurred_at"])).json()
        assert then == (await api.get(path, as_of_version=last)).json()
    birth = datetime.fromisoformat(events[0]["occurred_at"])
    unborn = await api.get(path, as_of=(birth - timedelta(microseconds=1)).isoformat())
    assert (unborn.status_code, unborn.json()["code"]) == (404, f"{aggregate.name}NotFoundError")


@for_each("aggregate", AGGREGATES)
async def test_one_past_is_asked_for_at_a_time(past: tuple[Api, dict[str, str]], aggregate: Aggregate[Any]) -> None:
    api, ids = past
    path = f"{aggregate.path}/{ids[aggregate.id_name]}"
    for asked in ({"as_of": "2026-10-06T08:00:00Z", "as_of_version": 1}, {"as_of_version": 0}, {"as_of": "yesterday"}):
        assert (await api.get(path, **asked)).status_code == 422


async def test_each_version_shows_what_was_true_then(api: Api) -> None:
    asset = await api.create("/assets", {"name": "Tomography", "tier": "Unit", "facility_code": "facility"})
    shown = [(await api.get(f"/assets/{asset}")).json()]
    for verb, body in (
        ("activate", {}),
        ("degrade", {"reason": "runout"}),
        ("rename", {"name": "Imaging"}),
        ("enter-maintenance", {}),
        ("add-owner", {"name": "Lumen Light Source"}),
        ("restore", {"reason": "new bearing"}),
        ("exit-maintenance", {}),
        ("decommission", {}),
    ):
        await api.execute(f"/assets/{asset}/{verb}", body)
        shown.append((await api.get(f"/assets/{asset}")).json())
    travelled = [(await api.get(f"/assets/{asset}", as_of_version=version)).json() for version in range(1, 10)]
    assert travelled == shown
    assert [(view["lifecycle"], view["condition"]) for view in shown][2::3] == [
        ("Active", "Degraded"),
        ("Maintenance", "Degraded"),
        ("Decommissioned", "Nominal"),
    ]


async def test_a_person_has_no_name_in_the_past(api: Api) -> None:
    actor = await api.create("/actors", {"name": "Mira Okafor"})
    await api.execute(f"/actors/{actor}/deactivate")
    then = (await api.get(f"/actors/{actor}", as_of_version=1)).json()
    registered = (await api.get(f"/actors/{actor}")).json()["created_at"]
    assert then == {"id": actor, "actor_id": actor, "created_at": registered, "kind": "human", "active": True}
