"""A hutch from its registration through a lost gateway to its rebuilding, over REST; and rivals for one name."""

import asyncio
import re
from collections import Counter
from typing import Any

import httpx
import pytest

from tests.support.api.callers import OPERATOR, open_service_callers
from tests.support.api.example_reads import payloads, refusal
from tests.support.api.rest_beamline import beamline, create_clearance, create_plan
from tests.support.infrastructure.identity_provider import Issuer
from tests.support.service import Api, running_api
from tests.support.waiting import until

PERMIT = {"source_kind": "ProcessVariable", "source_id": "PSS:HUTCH-B:PERMIT"}


@pytest.mark.parametrize("mode", ["permissive", "policy"])
async def test_a_hutch_from_its_registration_to_its_rebuilding(database_url: str, issuer: Issuer, mode: str) -> None:
    async with open_service_callers(
        database_url, issuer, authorization_mode=mode, self_facility_code="north-ring"
    ) as callers:
        operator, monitor = callers.operator, callers.bridge
        created = await operator.post("/enclosures", {"name": "Imaging hutch B", "facility_code": "north-ring"})
        assert created.status_code == 201
        enclosure_id = created.json()["enclosure_id"]
        hutch = f"/enclosures/{enclosure_id}"
        new = (await operator.get(hutch)).json()
        assert (new["lifecycle"], new["permit_status"], new["observation_age"]) == ("Active", "Unknown", None)

        at_north = {"name": "Station", "tier": "Unit", "facility_code": "north-ring"}
        station = await operator.create("/assets", {**at_north, "located_in_enclosure_id": enclosure_id})
        detector = await operator.create("/assets", {"name": "Detector", "tier": "Device", "parent_id": station})
        view = (await operator.get(f"/assets/{detector}/integration-view")).json()
        assert view["enclosure_ids"] == [enclosure_id]
        await create_clearance(operator, station, facility_code="north-ring")
        run = {"name": "Overview scan", "plan_id": (await create_plan(operator, detector)).plan_id}
        unsearched = await operator.post("/runs", run)
        assert refusal(unsearched) == (409, "RunRequiresPermittedEnclosureError")

        searched = {"new_status": "Permitted", "monitor_ref": PERMIT, "reason": "search complete"}
        timed = {**searched, "observed_at": "2026-06-01T12:00:00+02:00"}
        first = await monitor.post(f"{hutch}/observe-status", timed)
        assert (first.status_code, first.content) == (204, b"")
        [row] = (await operator.get("/enclosures", min_position=first.headers["X-Baton-Position"])).json()["items"]
        before = row["last_contact_at"]
        again = await monitor.post(f"{hutch}/observe-status", searched)
        assert (again.status_code, again.headers["X-Baton-Position"]) == (204, first.headers["X-Baton-Position"])
        [row] = (await operator.get("/enclosures", permit_status="Permitted")).json()["items"]
        assert row["last_contact_at"] > before
        assert row["last_contact_at"] > row["last_permit_status_changed_at"]
        permitted = (await operator.get(hutch)).json()
        assert permitted["permit_status"] == "Permitted"
        assert 0 <= permitted["observation_age"] < 60
        past = (await operator.get(hutch, as_of_version=1)).json()
        assert past["permit_status"] == "Unknown"
        assert "observation_age" not in past
        assert (await operator.post("/runs", run)).status_code == 201

        lost = {"new_status": "Unknown", "monitor_ref": {**PERMIT, "source_kind": "Gateway"}, "reason": "gateway lost"}
        assert (await monitor.post(f"{hutch}/observe-status", lost)).status_code == 204
        unknown = await operator.post("/runs", run)
        assert refusal(unknown) == (409, "RunRequiresPermittedEnclosureError")

        gone = await operator.post(f"{hutch}/decommission", {"reason": "hutch rebuilt"})
        assert gone.status_code == 204
        twice = await operator.post(f"{hutch}/decommission", {"reason": "hutch rebuilt"})
        assert refusal(twice) == (409, "EnclosureCannotDecommissionError")
        late = await monitor.post(f"{hutch}/observe-status", searched)
        assert refusal(late) == (409, "EnclosureCannotObserveError")
        anew = await operator.create("/enclosures", {"name": "Imaging hutch B", "facility_code": "north-ring"})
        assert anew != enclosure_id

        by_monitor = {"enclosure_id": enclosure_id, "trigger": "Monitor", "triggered_by": callers.bridge_id}
        named = {"name": "Imaging hutch B", "facility_code": "north-ring", "registered_by": str(OPERATOR)}
        assert await payloads(operator, hutch) == [
            ("EnclosureRegistered", {"enclosure_id": enclosure_id, **named}),
            (
                "EnclosurePermitObserved",
                {
                    **by_monitor,
                    "from_status": "Unknown",
                    "to_status": "Permitted",
                    "reason": "search complete",
                    "monitor_ref": "ProcessVariable:PSS:HUTCH-B:PERMIT",
                    "observed_at": "2026-06-01T10:00:00Z",
                },
            ),
            (
                "EnclosurePermitObserved",
                {
                    **by_monitor,
                    "from_status": "Permitted",
                    "to_status": "Unknown",
                    "reason": "gateway lost",
                    "monitor_ref": "Gateway:PSS:HUTCH-B:PERMIT",
                    "observed_at": None,
                },
            ),
            (
                "EnclosureDecommissioned",
                {"enclosure_id": enclosure_id, "reason": "hutch rebuilt", "triggered_by": str(OPERATOR)},
            ),
        ]


async def test_a_bridge_that_dies_without_a_word_keeps_runs_from_starting_and_resuming(api: Api) -> None:
    line = await beamline(api)
    running = await line.start_run()
    await api.execute(f"/runs/{running}/hold")
    async with running_api(api.database_url, projecting=False, enclosure_observation_ttl_seconds=1) as impatient:

        async def silence_refusal() -> httpx.Response | None:
            answer = await impatient.post("/runs", {"name": "Load step 2", "plan_id": line.plan_id})
            return answer if answer.status_code == 409 else None

        late: Any = await until(silence_refusal)
        assert refusal(late) == (409, "RunRequiresPermittedEnclosureError")
        assert re.search(r"was last observed \d+ s ago, not within 1 s", late.json()["detail"])
        [failing] = late.json()["facts"]["enclosures"]
        assert (failing["enclosure_id"], failing["permit_status"]) == (line.enclosure_id, "Permitted")
        assert failing["observation_age"] >= 1
        assert refusal(await impatient.post(f"/runs/{running}/resume")) == (409, "RunRequiresPermittedEnclosureError")
    await api.execute(f"/runs/{running}/resume")


async def test_one_hutch_that_is_not_permitted_is_enough_and_is_named(api: Api) -> None:
    line = await beamline(api)
    hutch_c = await api.create("/enclosures", {"name": "Hutch C", "facility_code": "facility"})
    await line.observe("NotPermitted", hutch_c)
    at_c = {"name": "Optics", "tier": "Device", "parent_id": line.unit_id, "located_in_enclosure_id": hutch_c}
    both = await create_plan(api, line.camera_id, await api.create("/assets", at_c))
    half = await line.start(plan_id=both.plan_id)
    assert refusal(half) == (409, "RunEnclosureCoverageMismatchError")
    [failing] = half.json()["facts"]["enclosures"]
    assert (failing["enclosure_id"], failing["permit_status"], failing["lifecycle"]) == (hutch_c, "NotPermitted", "Active")
    await line.observe("Permitted", hutch_c)
    assert (await line.start(plan_id=both.plan_id)).status_code == 201


async def test_an_asset_is_put_only_where_an_enclosure_is(api: Api) -> None:
    hutch = await api.create("/enclosures", {"name": "Hutch", "facility_code": "facility"})
    nowhere = "0197a100-0000-7000-8000-0000000000ff"
    unit = {"name": "Beamline", "tier": "Unit", "facility_code": "facility"}
    lost = await api.post("/assets", {**unit, "located_in_enclosure_id": nowhere})
    assert refusal(lost) == (404, "EnclosureNotFoundError")
    asset = await api.create("/assets", {**unit, "located_in_enclosure_id": hutch})
    moved = await api.post(f"/assets/{asset}/relocate", {"located_in_enclosure_id": nowhere, "reason": "moved"})
    assert refusal(moved) == (404, "EnclosureNotFoundError")
    await api.execute(f"/enclosures/{hutch}/decommission", {"reason": "hutch rebuilt"})
    await api.execute(f"/assets/{asset}/relocate", {"located_in_enclosure_id": None, "reason": "moved"})


RIVALS = 8


async def test_of_rivals_for_one_name_one_wins(api: Api) -> None:
    hutch = {"name": 'Hutch "B", north', "facility_code": "facility"}
    for _ in range(3):
        answers = await asyncio.gather(*(api.post("/enclosures", hutch) for _ in range(RIVALS)))
        assert Counter(answer.status_code for answer in answers) == {201: 1, 409: RIVALS - 1}
        for answer in answers:
            if answer.status_code == 409:
                assert (answer.json()["code"], answer.json()["reason"]) == ("EnclosureAlreadyExistsError", "name_taken")
        [winner] = [answer.json()["enclosure_id"] for answer in answers if answer.status_code == 201]
        await api.execute(f"/enclosures/{winner}/decommission", {"reason": "hutch rebuilt"})


async def test_observations_that_meet_are_all_taken(database_url: str, issuer: Issuer) -> None:
    async with open_service_callers(database_url, issuer) as callers:
        hutch = f"/enclosures/{await callers.operator.create('/enclosures', {'name': 'Hutch', 'facility_code': 'facility'})}"
        reading = {"monitor_ref": PERMIT, "reason": "read"}
        answers = await asyncio.gather(
            *(callers.bridge.post(f"{hutch}/observe-status", {**reading, "new_status": "Permitted"}) for _ in range(4))
        )
        assert {answer.status_code for answer in answers} == {204}
        assert [event for event, _ in await payloads(callers.operator, hutch)] == [
            "EnclosureRegistered",
            "EnclosurePermitObserved",
        ]
