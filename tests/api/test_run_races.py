"""Many hands on one run or one campaign: every answer is a fact of the log, and nothing is written by half."""

import asyncio
from collections import Counter
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest

from baton.infrastructure.wall_clock import new_id
from tests.support.api.concurrent_requests import send_at_once
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.service import Api

RIVALS = 8
"""As many as the service has database connections in these tests, so that all can wait at once."""


@pytest.fixture
async def line(fresh_api: Api) -> Beamline:
    return await beamline(fresh_api)


def outcome(response: httpx.Response) -> tuple[int, str | None]:
    return response.status_code, response.json()["code"] if response.content and response.status_code >= 400 else None


async def streams(api: Api, *stream_types: str) -> list[dict[str, Any]]:
    """Everything the log holds of these streams, in order."""
    async with await psycopg.AsyncConnection.connect(api.database_url) as connection:
        cursor = connection.cursor(row_factory=psycopg.rows.dict_row)
        found = await cursor.execute(
            "SELECT transaction_id::text, stream_type, stream_id, version, event_type, payload FROM events "
            "WHERE stream_type = ANY(%s) ORDER BY position",
            (list(stream_types),),
        )
        return await found.fetchall()


async def check_membership(api: Api, campaign_ids: list[str]) -> dict[str, list[str]]:
    """The runs of each campaign; every membership stands in both streams, written by one transaction."""
    log = await streams(api, "Run", "Campaign")
    joining = {
        (event["transaction_id"], str(event["stream_id"]), event["payload"]["campaign_id"])
        for event in log
        if event["event_type"] in ("RunStarted", "RunAddedToCampaign") and event["payload"]["campaign_id"]
    }
    adding = {
        (event["transaction_id"], event["payload"]["run_id"], str(event["stream_id"]))
        for event in log
        if event["event_type"] == "CampaignRunAdded"
    }
    assert joining == adding
    members = {}
    for id in campaign_ids:
        members[id] = (await api.get(f"/campaigns/{id}")).json()["run_ids"]
        for run_id in members[id]:
            assert (await api.get(f"/runs/{run_id}")).json()["campaign_id"] == id
    for stream, versions in versions_by_stream(log).items():
        assert versions == list(range(1, len(versions) + 1)), stream
    return members


def versions_by_stream(log: list[dict[str, Any]]) -> dict[UUID, list[int]]:
    found: dict[UUID, list[int]] = {}
    for event in log:
        found.setdefault(event["stream_id"], []).append(event["version"])
    return found


def started_by(answers: list[httpx.Response]) -> list[str]:
    return sorted(answer.json()["run_id"] for answer in answers if answer.status_code == 201)


async def test_of_runs_that_join_a_campaign_at_the_same_moment_one_starts(line: Beamline) -> None:
    campaign = await line.campaign()
    answers = await send_at_once(line.api.database_url, *(line.start(campaign_id=campaign) for _ in range(RIVALS)))
    assert Counter(map(outcome, answers)) == {(201, None): 1, (409, "ConcurrencyError"): RIVALS - 1}
    assert await check_membership(line.api, [campaign]) == {campaign: started_by(answers)}
    assert len(versions_by_stream(await streams(line.api, "Run"))) == 1


async def test_of_many_runs_that_join_a_campaign_those_started_are_its_members(line: Beamline) -> None:
    campaign = await line.campaign()
    answers = await asyncio.gather(*(line.start(campaign_id=campaign) for _ in range(4 * RIVALS)))
    assert set(map(outcome, answers)) <= {(201, None), (409, "ConcurrencyError")}
    started = started_by(answers)
    assert await check_membership(line.api, [campaign]) == {campaign: started}
    assert sorted(map(str, versions_by_stream(await streams(line.api, "Run")))) == started


async def test_runs_of_no_campaign_do_not_get_in_each_others_way(line: Beamline) -> None:
    answers = await send_at_once(line.api.database_url, *(line.start() for _ in range(RIVALS)))
    assert {answer.status_code for answer in answers} == {201}
    assert len(set(started_by(answers))) == RIVALS


async def test_starts_under_one_key_are_one_run(line: Beamline) -> None:
    asked = {"name": "Load step 1", "plan_id": line.plan_id, "campaign_id": await line.campaign()}
    answers = await asyncio.gather(*(line.api.post("/runs", asked, Idempotency_Key="k1") for _ in range(RIVALS)))
    assert set(map(outcome, answers)) <= {(201, None), (409, "IdempotencyClaimLostError")}
    last = await line.api.post("/runs", asked, Idempotency_Key="k1")
    assert (last.status_code, last.headers["Idempotency-Replayed"]) == (201, "true")
    assert {*started_by(answers), last.json()["run_id"]} == {last.json()["run_id"]}
    assert await check_membership(line.api, [asked["campaign_id"]]) == {asked["campaign_id"]: [last.json()["run_id"]]}


VERBS: dict[str, dict[str, Any]] = {
    "hold": {"reason": "beam dump"},
    "complete": {},
    "stop": {"reason": "enough"},
    "abort": {"reason": "smoke"},
    "adjust": {"parameters_patch": {"exposure": 0.08}, "reason": "top-up"},
}
WRITTEN = {
    "hold": "RunHeld",
    "complete": "RunCompleted",
    "stop": "RunStopped",
    "abort": "RunAborted",
    "adjust": "RunAdjusted",
}
POSSIBLE = {
    "hold": {"RunCannotHoldError", "ConcurrencyError"},
    "complete": {"ConcurrencyError"},
    "stop": {"RunCannotStopError", "ConcurrencyError"},
    "abort": {"RunCannotAbortError", "ConcurrencyError"},
    "adjust": {"ConcurrencyError"},
}
"""What each verb may be refused with once all five have been decided on the same run: only some decide again."""
FOLLOWING = {
    "Running": {"RunHeld": "Held", "RunCompleted": "Completed", "RunStopped": "Stopped", "RunAborted": "Aborted"},
    "Held": {"RunStopped": "Stopped", "RunAborted": "Aborted"},
}


async def test_verbs_that_meet_on_a_run_leave_one_story(line: Beamline) -> None:
    for _ in range(5):
        run = await line.start_run()
        calls = (line.api.post(f"/runs/{run}/{verb}", body) for verb, body in VERBS.items())
        answers = dict(zip(VERBS, await send_at_once(line.api.database_url, *calls), strict=True))
        done = {verb for verb, answer in answers.items() if answer.status_code == 204}
        for verb in answers.keys() - done:
            status, code = outcome(answers[verb])
            assert (status, code in POSSIBLE[verb]) == (409, True), (verb, code)
        run_events = [event for event in await streams(line.api, "Run") if str(event["stream_id"]) == run]
        assert [event["version"] for event in run_events] == list(range(1, len(done) + 2))
        events = [event["event_type"] for event in run_events[1:]]
        assert sorted(events) == sorted(WRITTEN[verb] for verb in done)
        status = "Running"
        for event in events:
            status = status if event == "RunAdjusted" else FOLLOWING[status][event]
        assert (await line.api.get(f"/runs/{run}")).json()["status"] == status
        assert status not in FOLLOWING, f"nothing ended the run: {events}"


async def test_a_hold_that_lost_to_an_adjustment_decides_again(line: Beamline) -> None:
    run = await line.start_run()
    *adjusted, held = await send_at_once(
        line.api.database_url,
        *(line.api.post(f"/runs/{run}/adjust", VERBS["adjust"]) for _ in range(RIVALS - 1)),
        line.api.post(f"/runs/{run}/hold"),
    )
    assert held.status_code == 204
    shown = (await line.api.get(f"/runs/{run}")).json()
    assert (shown["status"], shown["adjustment_count"]) == ("Held", [answer.status_code for answer in adjusted].count(204))
    assert shown["adjustment_count"] <= 1
    assert {outcome(answer) for answer in adjusted} <= {(204, None), (409, "ConcurrencyError")}


async def test_a_run_joins_one_of_the_campaigns_that_want_it(line: Beamline) -> None:
    run = await line.start_run()
    campaigns = [await line.campaign() for _ in range(RIVALS)]
    joining = (line.api.post(f"/campaigns/{id}/runs/{run}/add") for id in campaigns)
    answers = await send_at_once(line.api.database_url, *joining)
    assert Counter(map(outcome, answers)) == {(204, None): 1, (409, "ConcurrencyError"): RIVALS - 1}
    [joined] = [id for id, answer in zip(campaigns, answers, strict=True) if answer.status_code == 204]
    members = await check_membership(line.api, campaigns)
    assert {id: runs for id, runs in members.items() if runs} == {joined: [run]}
    other = next(id for id in campaigns if id != joined)
    late = await line.api.post(f"/campaigns/{other}/runs/{run}/add")
    assert outcome(late) == (409, "RunAlreadyAssignedToCampaignError")
    assert late.json()["facts"] == {"campaign_id": joined}


async def test_a_run_that_leaves_and_joins_at_once_is_in_one_campaign(line: Beamline) -> None:
    first, second = [await line.campaign() for _ in range(2)]
    for _ in range(5):
        run = await line.start_run(campaign_id=first)
        answers = await asyncio.gather(
            line.api.post(f"/campaigns/{first}/runs/{run}/remove", {"reason": "wrong series"}),
            line.api.post(f"/campaigns/{second}/runs/{run}/add"),
        )
        assert {outcome(answer) for answer in answers} <= {
            (204, None),
            (409, "ConcurrencyError"),
            (409, "RunAlreadyAssignedToCampaignError"),
        }
        holding = [id for id in (first, second) if run in (await line.api.get(f"/campaigns/{id}")).json()["run_ids"]]
        assert holding == [id for id in [(await line.api.get(f"/runs/{run}")).json()["campaign_id"]] if id]
    await check_membership(line.api, [first, second])


def readings(count: int) -> list[dict[str, Any]]:
    taken = {"channel_name": "T_sample", "value": 293.1, "sampling_procedure": "monitor"}
    return [{"event_id": str(new_id()), **taken, "sampled_at": "2026-10-06T09:12:00Z"} for _ in range(count)]


async def test_first_readings_that_meet_open_one_logbook_and_are_all_kept(line: Beamline) -> None:
    run = await line.start_run()
    batches = [readings(5) for _ in range(RIVALS)]
    appends = (line.api.post(f"/runs/{run}/observations", {"entries": batch}) for batch in batches)
    answers = await send_at_once(line.api.database_url, *appends)
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {"event_count": 5})] * RIVALS
    assert [event["event_type"] for event in await streams(line.api, "Run")] == ["RunStarted", "RunObservationLogbookOpened"]
    items = (await line.api.get(f"/runs/{run}/observations", limit=100)).json()["items"]
    assert {item["event_id"] for item in items} == {entry["event_id"] for batch in batches for entry in batch}
    logbook = (await line.api.get(f"/runs/{run}")).json()["observation_logbook_id"]
    assert {item["logbook_id"] for item in items} == {logbook}


async def test_first_notes_that_meet_open_one_logbook_and_are_all_kept(line: Beamline) -> None:
    run = await line.start_run()
    notes = [{"event_id": str(new_id()), "text": f"Note {number}"} for number in range(RIVALS)]
    appends = (line.api.post(f"/runs/{run}/logbook", {"entries": [note]}) for note in notes)
    answers = await send_at_once(line.api.database_url, *appends)
    assert {answer.status_code for answer in answers} == {200}
    assert [event["event_type"] for event in await streams(line.api, "Run")] == ["RunStarted", "RunNarrativeLogbookOpened"]
    items = (await line.api.get(f"/runs/{run}/logbook", limit=100)).json()["items"]
    assert sorted(item["text"] for item in items) == sorted(note["text"] for note in notes)


async def test_a_batch_that_is_sent_twice_at_once_is_kept_once(line: Beamline) -> None:
    run, batch = await line.start_run(), readings(20)
    appends = (line.api.post(f"/runs/{run}/observations", {"entries": batch}) for _ in range(RIVALS))
    answers = await asyncio.gather(*appends)
    assert {answer.status_code for answer in answers} == {200}
    [channel] = (await line.api.get(f"/runs/{run}/channels")).json()["items"]
    assert channel["count"] == 20


async def test_the_list_agrees_with_the_streams_after_a_race(line: Beamline) -> None:
    campaign = await line.campaign()
    answers = await asyncio.gather(*(line.start(campaign_id=campaign) for _ in range(RIVALS)))
    started = started_by(answers)
    verbs = [line.api.post(f"/runs/{run}/{verb}", body) for run in started for verb, body in VERBS.items()]
    await asyncio.gather(*verbs)
    position = await line.api.execute("/zones", {"name": "Hall"})
    listed = (await line.api.get("/runs", campaign_id=campaign, min_position=position, limit=100)).json()["items"]
    assert sorted(item["run_id"] for item in listed) == started
    for item in listed:
        shown = (await line.api.get(f"/runs/{item['run_id']}")).json()
        assert (item["status"], item["adjustment_count"]) == (shown["status"], shown["adjustment_count"])
