"""Readings at the edge: what is no finite number does not get in, whatever it is spelled like; what does is listed."""

import asyncio
import json
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

import psycopg
import pytest

from baton.infrastructure.wall_clock import new_id
from tests.support.api.mcp_clients import agent, refusal, tool_result
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.infrastructure.database_observer import until_waiting, value
from tests.support.service import Api

HERE = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"


@pytest.fixture
async def line(api: Api) -> Beamline:
    return await beamline(api)


def reading(**fields: Any) -> dict[str, Any]:
    taken = {"event_id": str(new_id()), "channel_name": "T_sample", "value": 293.1, "sampling_procedure": "monitor"}
    return {**taken, "sampled_at": "2026-10-06T09:12:00Z", **fields}


UNREADABLE = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", '"NaN"', '"Infinity"', "null", "true", "1" * 400]
"""Values as they would stand in a body."""


@pytest.mark.parametrize("spelled", UNREADABLE, ids=[text[:8] for text in UNREADABLE])
async def test_a_value_that_is_no_finite_number_is_malformed(line: Beamline, spelled: str) -> None:
    run = await line.start_run()
    body = json.dumps({"entries": [reading(), reading(value="?")]}).replace('"?"', spelled)
    headers = {"Content-Type": "application/json"}
    answer = await line.api.request("POST", f"/runs/{run}/observations", content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "RequestValidationError")

    called = {"name": "append_observations", "arguments": {"run_id": run, "entries": [reading(value="?")]}}
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}).replace('"?"', spelled)
    answer = await line.api.request("POST", "/mcp", content=frame, headers={**headers, "Accept": "application/json"})
    assert answer.status_code >= 400 or "RequestValidationError" in answer.text, answer.text
    assert (await line.api.get(f"/runs/{run}/observations")).json()["items"] == []
    assert (await line.api.get(f"/runs/{run}")).json()["observation_logbook_id"] is None


async def test_an_agent_appends_and_reads_as_over_rest(line: Beamline) -> None:
    run, one = await line.start_run(), reading(units="K", simulated=True)
    async with agent(line.api) as client:
        for _ in range(2):
            assert await tool_result(client, "append_observations", run_id=run, entries=[one]) == {"event_count": 1}
        over_mcp = await tool_result(client, "list_run_observations", run_id=run)
        wrong = await refusal(client, "append_observations", run_id=run, entries=[reading(value="NaN")])
        blank = await refusal(client, "append_observations", run_id=run, entries=[reading(channel_name="  ")])
    assert over_mcp == (await line.api.get(f"/runs/{run}/observations")).json()
    assert (wrong["code"], blank["code"]) == ("RequestValidationError", "InvalidChannelNameError")
    [channel] = (await line.api.get(f"/runs/{run}/channels")).json()["items"]
    assert (channel["count"], channel["simulated"]) == (1, True)


async def test_readings_are_listed_in_the_order_they_were_recorded(line: Beamline) -> None:
    run = await line.start_run()
    sent = [reading(channel_name=f"channel_{number % 2}", value=float(number)) for number in range(12)]
    for start in range(0, 12, 4):
        await line.api.execute(f"/runs/{run}/observations", {"entries": sent[start : start + 4]})
    path = f"/runs/{run}/observations"
    everything = (await line.api.get(path)).json()["items"]
    assert {item["event_id"] for item in everything} == {one["event_id"] for one in sent}
    places = [(item["recorded_at"], item["event_id"]) for item in everything]
    assert places == sorted(places)
    paged, cursor = [], None
    while True:
        page = (await line.api.get(path, limit=5, **({"cursor": cursor} if cursor else {}))).json()
        paged += page["items"]
        if (cursor := page["next_cursor"]) is None:
            break
    assert paged == everything
    odd = (await line.api.get(path, channel_name="channel_1", sampling_procedure="monitor")).json()["items"]
    assert odd == [item for item in everything if item["channel_name"] == "channel_1"]
    later = (await line.api.get(path, since=everything[3]["recorded_at"])).json()["items"]
    assert later == everything[4:]
    assert (await line.api.get(path, sampling_procedure="baseline")).json()["items"] == []


@pytest.mark.parametrize(
    "fields",
    [
        {"entries": []},
        {"entries": [reading()] * 501},
        {"entries": [reading(units="x" * 65)]},
        {"entries": [reading(units=" ")]},
        {"entries": [reading(unit="K")]},
    ],
    ids=["none", "too many", "long units", "blank units", "unknown key"],
)
async def test_a_batch_of_the_wrong_shape_is_malformed(api: Api, fields: dict[str, Any]) -> None:
    assert (await api.post(f"/runs/{uuid4()}/observations", fields)).status_code == 422


async def test_one_bad_reading_fails_its_batch(line: Beamline) -> None:
    run = await line.start_run()
    path = f"/runs/{run}/observations"
    for bad, code in (
        (reading(channel_name="   "), "InvalidChannelNameError"),
        (reading(sampling_procedure="weekly"), "InvalidSamplingProcedureError"),
    ):
        answer = await line.api.post(path, {"entries": [reading(), bad]})
        assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert (await line.api.get(path)).json()["items"] == []
    missing = await line.api.post(f"/runs/{uuid4()}/observations", {"entries": [reading()]})
    assert (missing.status_code, missing.json()["code"]) == (404, "RunNotFoundError")


@pytest.mark.parametrize("event_id", [str(uuid4()), str(uuid5(NAMESPACE_URL, "x"))], ids=["version 4", "version 5"])
async def test_what_a_producer_sends_carries_an_id_that_is_ordered_by_time(line: Beamline, event_id: str) -> None:
    run = await line.start_run()
    for path, entry in (("observations", reading()), ("logbook", {"text": "Sample slipped."})):
        answer = await line.api.post(f"/runs/{run}/{path}", {"entries": [{**entry, "event_id": event_id}]})
        assert (answer.status_code, answer.json()["code"]) == (422, "RequestValidationError")
        assert (await line.api.get(f"/runs/{run}/{path}")).json()["items"] == []


async def test_large_requests_take_turns_and_keep_nobody_else_waiting(line: Beamline) -> None:
    """The store is made to wait: of two large batches one has reached it, and a small one that came later too."""
    run = await line.start_run()
    await line.api.execute(f"/runs/{run}/observations", {"entries": [reading()]})

    def append(count: int) -> asyncio.Task[Any]:
        return asyncio.create_task(
            line.api.post(f"/runs/{run}/observations", {"entries": [reading() for _ in range(count)]})
        )

    async with await psycopg.AsyncConnection.connect(line.api.database_url) as connection:
        await connection.execute("LOCK TABLE entries_run_observations IN EXCLUSIVE MODE")
        async with await psycopg.AsyncConnection.connect(line.api.database_url, autocommit=True) as observer:
            first = append(400)
            await until_waiting(observer)
            second, small = append(400), append(1)
            await until_waiting(observer, 2)
            assert await value(observer, f"SELECT count(*) FROM pg_locks WHERE NOT granted AND {HERE}") == 2
        await connection.rollback()
    answers = await asyncio.gather(first, second, small)
    assert [answer.json() for answer in answers] == [{"event_count": count} for count in (400, 400, 1)]
    [channel] = (await line.api.get(f"/runs/{run}/channels")).json()["items"]
    assert channel["count"] == 802
