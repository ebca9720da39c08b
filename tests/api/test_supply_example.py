"""A nitrogen drop from its registration through an outage, over REST; and rivals for one address."""

import asyncio
from collections import Counter

import pytest

from tests.support.api.callers import OPERATOR, open_service_callers
from tests.support.api.example_reads import payloads, refusal
from tests.support.api.rest_beamline import create_clearance, create_plan
from tests.support.infrastructure.identity_provider import Issuer
from tests.support.service import Api

LEVEL = {"source_kind": "ProcessVariable", "source_id": "LN:DEWAR:LEVEL"}


@pytest.mark.parametrize("mode", ["permissive", "policy"])
async def test_a_nitrogen_drop_through_an_outage(database_url: str, issuer: Issuer, mode: str) -> None:
    async with open_service_callers(
        database_url, issuer, authorization_mode=mode, self_facility_code="north-ring"
    ) as callers:
        operator, sensor = callers.operator, callers.bridge
        beamline = await operator.create("/assets", {"name": "Beamline", "tier": "Unit", "facility_code": "north-ring"})
        drop = {"kind": "cryogen", "name": "Station B nitrogen drop", "facility_code": "north-ring"}
        created = await operator.post("/supplies", {**drop, "containing_asset_id": beamline})
        assert created.status_code == 201
        assert list(created.json()) == ["supply_id"]
        supply_id = created.json()["supply_id"]
        supply = f"/supplies/{supply_id}"
        shown = (await operator.get(supply)).json()
        assert shown == {
            "id": supply_id,
            "supply_id": supply_id,
            "created_at": shown["created_at"],
            **drop,
            "containing_asset_id": beamline,
            "status": "Unknown",
            **dict.fromkeys(("last_status_changed_at", "last_status_reason", "last_trigger")),
            "observation_age": None,
            "monitored": False,
            "last_contact_at": None,
        }

        await create_clearance(operator, beamline, facility_code="north-ring")
        run = {"name": "Cold scan", "plan_id": (await create_plan(operator, beamline, supplies=("cryogen",))).plan_id}
        unseen = await operator.post("/runs", run)
        assert refusal(unseen) == (409, "RunSupplyCoverageMismatchError")
        unknown = {"supply_id": supply_id, "status": "Unknown", "observation_age": None, "monitored": False}
        assert unseen.json()["facts"] == {"kind": "cryogen", "supplies": [unknown]}
        marked = await operator.post(f"{supply}/mark-available", {"reason": "walkdown, flow nominal"})
        assert (marked.status_code, marked.content) == (204, b"")
        assert (await operator.post("/runs", run)).status_code == 201

        low = {"new_status": "Unavailable", "monitor_ref": LEVEL, "reason": "level below limit"}
        first = await sensor.post(f"{supply}/observe-status", low)
        again = await sensor.post(f"{supply}/observe-status", low)
        assert (first.status_code, again.status_code) == (204, 204)
        assert again.headers["X-Baton-Position"] == first.headers["X-Baton-Position"]
        assert 0 <= (await operator.get(supply)).json()["observation_age"] < 60
        for other in ("operator", "agent"):
            barred = await callers.as_subject(other).post(f"{supply}/observe-status", low)
            assert refusal(barred) == (403, "UnauthorizedError")

        clear = {**low, "new_status": "Recovering", "reason": "level clear"}
        assert (await sensor.post(f"{supply}/observe-status", clear)).status_code == 204
        good = await sensor.post(f"{supply}/observe-status", {**low, "new_status": "Available"})
        assert refusal(good) == (400, "MonitorTriggerNotPermittedError")

        restored = await operator.post(f"{supply}/restore", {"reason": "refilled, stable 15 min"})
        assert restored.status_code == 204
        assert (await operator.get(supply)).json()["status"] == "Available"
        twice = await operator.post(f"{supply}/restore", {"reason": "refilled, stable 15 min"})
        assert refusal(twice) == (409, "SupplyCannotRestoreError")

        by_hand = {"supply_id": supply_id, "trigger": "Operator", "triggered_by": str(OPERATOR)}
        by_sensor = {"supply_id": supply_id, "trigger": "Monitor", "triggered_by": callers.bridge_id}
        unsaid = {"monitor_ref": None}
        said = {"monitor_ref": "ProcessVariable:LN:DEWAR:LEVEL"}
        assert await payloads(operator, supply) == [
            ("SupplyRegistered", {**by_hand, **drop, "containing_asset_id": beamline}),
            ("SupplyMarkedAvailable", {**by_hand, **unsaid, "from_status": "Unknown", "reason": "walkdown, flow nominal"}),
            ("SupplyMarkedUnavailable", {**by_sensor, **said, "from_status": "Available", "reason": "level below limit"}),
            ("SupplyMarkedRecovering", {**by_sensor, **said, "from_status": "Unavailable", "reason": "level clear"}),
            ("SupplyRestored", {**by_hand, **unsaid, "from_status": "Recovering", "reason": "refilled, stable 15 min"}),
        ]
        position = int(restored.headers["X-Baton-Position"])
        [row] = (await operator.get("/supplies", kind="cryogen", min_position=position)).json()["items"]
        last = {"last_status_reason": "refilled, stable 15 min", "last_trigger": "Operator", "status": "Available"}
        assert row.items() >= {"supply_id": supply_id, **drop, "containing_asset_id": beamline, **last}.items()
        assert row["registered_at"] < row["last_status_changed_at"]


async def test_a_key_used_again_answers_the_first_observation(database_url: str, issuer: Issuer) -> None:
    async with open_service_callers(database_url, issuer) as callers:
        air = {"kind": "compressed_air", "name": "Ring main", "facility_code": "facility"}
        supply = f"/supplies/{await callers.operator.create('/supplies', air)}"
        low = {"new_status": "Degraded", "monitor_ref": LEVEL, "reason": "pressure low"}
        first = await callers.bridge.post(f"{supply}/observe-status", low, Idempotency_Key="reading-1")
        await callers.operator.execute(f"{supply}/restore", {"reason": "compressor back"})
        again = await callers.bridge.post(f"{supply}/observe-status", low, Idempotency_Key="reading-1")
        assert (first.status_code, again.status_code) == (204, 204)
        assert (await callers.operator.get(supply)).json()["status"] == "Available"


RIVALS = 8


async def test_of_rivals_for_one_live_address_one_wins(api: Api) -> None:
    air = {"kind": "compressed_air", "name": 'Ring "main", north', "facility_code": "facility"}
    for _ in range(3):
        answers = await asyncio.gather(*(api.post("/supplies", air) for _ in range(RIVALS)))
        assert Counter(answer.status_code for answer in answers) == {201: 1, 409: RIVALS - 1}
        for answer in answers:
            if answer.status_code == 409:
                assert (answer.json()["code"], answer.json()["reason"]) == ("SupplyAlreadyExistsError", "address_taken")
        [winner] = [answer.json()["supply_id"] for answer in answers if answer.status_code == 201]
        assert (await api.get(f"/supplies/{winner}")).status_code == 200
        await api.execute(f"/supplies/{winner}/deregister", {"reason": "line removed"})


async def test_rivals_for_different_addresses_all_win(api: Api) -> None:
    beamline = await api.create("/assets", {"name": "Beamline", "tier": "Unit", "facility_code": "facility"})
    common = {"kind": "cryogen", "name": "Drop", "facility_code": "facility"}
    addresses = [common, {**common, "containing_asset_id": beamline}, {**common, "kind": "vacuum"}, {**common, "name": "D"}]
    answers = await asyncio.gather(*(api.post("/supplies", address) for address in addresses))
    assert {answer.status_code for answer in answers} == {201}
