"""Runs as Bluesky's documents over REST, MCP and the client: valid, complete, in order, and the same bytes every time."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest
from event_model import DocumentNames, schema_validators

from baton.client import AsyncBaton
from baton.infrastructure.wall_clock import new_id
from tests.support.api.data_products import register_dataset
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.api.sample_parts.data import create_camera
from tests.support.service import Api

Documents = list[tuple[str, dict[str, Any]]]
BEGUN = datetime(2026, 10, 6, 8, 0, tzinfo=UTC)
LAYOUT = {"path": "/exchange/data", "count": 1500, "shape": [2160, 2560], "dtype": "<u2"}


@pytest.fixture(scope="module")
async def line(api: Api) -> Beamline:
    return await beamline(api)


def sample(channel: str, value: float, seconds: float, **over: Any) -> dict[str, Any]:
    """A reading as its producer sends it, some seconds into the run."""
    at = (BEGUN + timedelta(seconds=seconds)).isoformat()
    said = {"event_id": str(new_id()), "channel_name": channel, "value": value, "sampled_at": at}
    return {**said, "sampling_procedure": "monitor", **over}


async def append(api: Api, run_id: str, *entries: dict[str, Any]) -> None:
    answer = await api.post(f"/runs/{run_id}/observations", {"entries": entries})
    assert answer.status_code == 200, answer.text


async def pages(api: Api, run_id: str, **asked: Any) -> list[bytes]:
    """Return every page of a run's documents."""
    found: list[bytes] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await api.get(f"/runs/{run_id}/documents", **asked, **cursor)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/jsonl"
        found.append(answer.content)
        if (following := answer.headers.get("x-baton-next-cursor")) is None:
            return found
        cursor = {"cursor": following}


def read(*pages: bytes) -> Documents:
    """Return the documents in these pages, each of which passes the schema of its kind."""
    documents = [tuple(json.loads(line)) for page in pages for line in page.splitlines()]
    for name, document in documents:
        schema_validators[DocumentNames[name]].validate(document)
    return documents  # type: ignore[return-value]


def kinds(documents: Documents) -> Counter[str]:
    return Counter(name for name, _ in documents)


async def scan(line: Beamline) -> str:
    """A run that has ended, with readings told out of order, a change of unit, and two datasets, one of known layout."""
    run_id = await line.start_run(subject_id=line.subject_id, override_parameters={"energy": 30})
    await append(
        line.api,
        run_id,
        sample("ring current", 301.5, 2, units="mA"),
        sample("ring current", 300.5, 1, units="mA"),
        sample("ring current", 0.3, 3, units="A", simulated=True),
        sample("ring/current", 7, 1),
        sample("ring current", 299, 0, units="mA", sampling_procedure="baseline"),
    )
    camera = await create_camera(line.api, uuid4().hex)
    for evidence, mark in (({"frames": LAYOUT}, uuid4().hex), ({"projection_count": 12}, uuid4().hex)):
        dataset_id = await register_dataset(line.api, mark, producing_run_id=run_id, subject_id=line.subject_id)
        birth = {"dataset_id": dataset_id, "producing_asset_id": camera, "producing_run_id": run_id, "evidence": evidence}
        await line.api.create("/acquisitions", {**birth, "captured_at": BEGUN.isoformat(), "settings": {"exposure": 0.1}})
    return run_id


async def test_a_run_is_told_whole_and_the_same_every_time(line: Beamline) -> None:
    run_id = await scan(line)
    live = read(*(await pages(line.api, run_id)))
    assert "stop" not in kinds(live)
    position = await line.api.execute(f"/runs/{run_id}/complete")
    whole = b"".join(await pages(line.api, run_id, min_position=position))
    for limit in (1, 2, 3):
        assert b"".join(await pages(line.api, run_id, limit=limit)) == whole
    documents = read(whole)
    assert kinds(documents) == {"start": 1, "descriptor": 5, "event": 5, "stream_resource": 1, "stream_datum": 1, "stop": 1}
    assert (documents[0][0], documents[-1][0]) == ("start", "stop")
    start, stop = documents[0][1], documents[-1][1]
    assert (start["uid"], start["plan_name"], start["plan_args"]["energy"]) == (run_id, "Spring block", 30)
    assert start["sample"]["subject_id"] == line.subject_id
    assert (stop["run_start"], stop["exit_status"]) == (run_id, "success")
    uids = [document["uid"] for _, document in documents]
    assert len(set(uids)) == len(uids)


async def test_each_channel_is_a_stream_in_the_order_of_observation(line: Beamline) -> None:
    documents = read(*(await pages(line.api, await scan(line))))
    descriptors = {one["uid"]: one for name, one in documents if name == "descriptor"}
    events: dict[str, list[dict[str, Any]]] = {}
    for event in (one for name, one in documents if name == "event"):
        descriptor = descriptors[event["descriptor"]]
        assert event["data"].keys() == event["timestamps"].keys() == descriptor["data_keys"].keys()
        events.setdefault(descriptor["name"], []).append(event)
    for stream in events.values():
        assert [event["seq_num"] for event in stream] == list(range(1, len(stream) + 1))
        assert all(before["time"] < after["time"] for before, after in pairwise(stream))
    values = {name: [next(iter(event["data"].values())) for event in stream] for name, stream in events.items()}
    [current] = [name for name in values if name.startswith("ring_current") and len(values[name]) == 3]
    assert values[current] == [300.5, 301.5, 0.3]
    assert sorted(map(len, values.values())) == [1, 1, 3], "`ring current` and `ring/current` are two streams"
    told = [descriptors[event["descriptor"]]["data_keys"]["ring current"] for event in events[current]]
    assert [(key["units"], key["source"].partition(":")[0]) for key in told] == [
        *(("mA", "baton"), ("mA", "baton"), ("A", "sim"))
    ]


async def test_frames_whose_layout_is_known_are_told_and_others_are_not(line: Beamline) -> None:
    documents = read(*(await pages(line.api, await scan(line))))
    [resource] = [one for name, one in documents if name == "stream_resource"]
    [datum] = [one for name, one in documents if name == "stream_datum"]
    [descriptor] = [one for name, one in documents if one["uid"] == datum["descriptor"]]
    assert resource["parameters"]["dataset"] == "/exchange/data"
    assert (datum["indices"], datum["seq_nums"]) == ({"start": 0, "stop": 1500}, {"start": 1, "stop": 1501})
    key = descriptor["data_keys"][resource["data_key"]]
    assert (key["shape"], key["dtype_numpy"], key["external"]) == ([2160, 2560], "<u2", "STREAM:")
    assert descriptor["configuration"]["dataset"]["data"]["exposure"] == 0.1


@pytest.mark.parametrize(
    ("verb", "body", "status"),
    [
        ("stop", {"reason": "enough"}, "success"),
        ("abort", {"reason": "smoke"}, "abort"),
        ("truncate", {"reason": "dead"}, "fail"),
    ],
)
async def test_the_stop_says_how_the_run_ended(line: Beamline, verb: str, body: dict[str, Any], status: str) -> None:
    run_id = await line.start_run()
    adjusted = {"parameters_patch": {"energy": 20}, "reason": "lower"}
    await line.api.execute(f"/runs/{run_id}/adjust", adjusted)
    await line.api.execute(f"/runs/{run_id}/{verb}", body)
    [(_, start), (_, stop)] = read(*(await pages(line.api, run_id)))
    assert (start["plan_args"]["energy"], stop["baton"]["parameters"]["energy"]) == (25, 20)
    assert (stop["exit_status"], stop["reason"]) == (status, body["reason"])


async def test_a_witnessed_run_tells_its_own_start_and_stop_and_no_events(line: Beamline) -> None:
    witness = line.api.acting_as(await line.api.create("/actors", {"name": "Bluesky", "kind": "service_account"}))
    uid, at = str(uuid4()), datetime.now(UTC)
    hints = {"dimensions": [[["motor"], "primary"]]}
    strange = {"scan_id": "not a number", "a.b": 1, "sample": 7, "versions": {"ophyd/async": "0.21"}}
    said = {
        "document_uid": uid,
        "plan_id": line.plan_id,
        "plan_name": "count",
        "name": "count 7",
        "began_at": at.isoformat(),
    }
    metadata = {"metadata": {"num_points": 3, "hints": hints, **strange}}
    run_id = (await witness.post("/runs/witness", {**said, **metadata})).json()["run_id"]
    [(name, start)] = read(*(await pages(line.api, run_id)))
    assert (name, start["uid"], start["time"], start["hints"]) == ("start", uid, at.timestamp(), hints)
    assert not {*strange} & {*start} - {"num_points"}
    end = {"exit_status": "abort", "reason": "motor stalled", "streams": {"primary": {"announced": 2, "recorded": 2}}}
    await witness.post(f"/runs/{run_id}/witness", {"change": "ended", "at": at.isoformat(), "end": end})
    [_, (name, stop)] = read(*(await pages(line.api, run_id)))
    assert (name, stop["run_start"], stop["exit_status"], stop["num_events"]) == ("stop", uid, "abort", {"primary": 2})
    refused = await line.api.get(f"/runs/{run_id}/documents", events=True)
    assert (refused.status_code, refused.json()["reason"]) == (409, "documents_elsewhere")
    assert refused.json()["facts"] == {"uid": uid}


async def test_names_of_people_are_left_out(line: Beamline) -> None:
    person = await line.api.create("/actors", {"name": "Wilhelmina Quorn"})
    run_id = await line.start_run()
    await line.api.acting_as(person).execute(f"/runs/{run_id}/complete")
    [content] = await pages(line.api, run_id)
    assert b"Quorn" not in content
    assert person.encode() not in content


@pytest.mark.parametrize("cursor", ["x", "cmVhZGluZ3N8eA", "bm93aGVyZXx4", "ZGF0YXNldHN8eHx5"])
async def test_a_cursor_that_no_page_ended_with_is_refused(line: Beamline, cursor: str) -> None:
    run_id = await line.start_run()
    answer = await line.api.get(f"/runs/{run_id}/documents", cursor=cursor)
    assert (answer.status_code, answer.json()["code"]) == (422, "InvalidCursorError")


async def test_the_client_walks_through_the_pages(line: Beamline) -> None:
    run_id = await scan(line)
    async with AsyncBaton(line.api.base_url) as client:
        walked = [tuple(one) async for one in client.every("list_run_documents", run_id=run_id, limit=2)]
    assert walked == read(*(await pages(line.api, run_id)))
