"""A conduct that the engine lost, at the terminal: it is said to be lost, with what to do about it, and never to run."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from baton.application.caller import Caller
from baton.domain.conduct.endings import LOST, RecordConductEnd, lost_result
from tests.support.api.rest_beamline import beamline
from tests.support.service import Api, running_api
from tests.support.stack import run_baton

STEP = {"kind": "setpoint", "address": "bl7:energy", "value": 25}


async def lose_conduct(api: Api, asset_id: str) -> str:
    """A procedure whose conduct is recorded as lost, once the lists show it."""
    procedure = await api.create("/procedures", {"name": "Align", "kind": "alignment", "target_asset_ids": [asset_id]})
    accepted = await api.post(f"/procedures/{procedure}/conduct", {"steps": [STEP], "wait": 0})
    result = lost_result(UUID(procedure), UUID(accepted.json()["conduct_id"]), "ConductProcedure", LOST)
    recorded = await api.runtime.service.execute(
        RecordConductEnd(result=result), Caller.system(uuid4()), target_id=UUID(procedure)
    )
    await api.get("/procedures", min_position=recorded.position)
    return procedure


@pytest.fixture
async def fresh_api(database_url: str) -> AsyncIterator[Api]:
    async with running_api(database_url) as api:
        yield api


async def test_a_lost_conduct_is_said_to_be_lost_with_what_to_do_about_it(fresh_api: Api) -> None:
    line = await beamline(fresh_api)
    lost = await lose_conduct(fresh_api, line.camera_id)

    async def baton(*arguments: str, **environment: str) -> Any:
        return await asyncio.to_thread(run_baton, *arguments, BATON_URL=fresh_api.base_url, **environment)

    (shown,) = json.loads((await baton("ps", "--json")).stdout)
    assert (shown["id"], shown["status"]) == (lost, "Lost")
    assert f"baton resume {lost}, or baton abort {lost}" in shown["progress"]
    screen = (await baton("status", line.unit_id)).stdout
    assert "Align: Lost since" in screen
    assert "Running" not in screen
    (waiting,) = json.loads((await baton("waiting", "--json")).stdout)
    assert (waiting["kind"], waiting["id"]) == ("lost_conduct", lost)
    doctor = await baton("doctor", "--only", "conducts", DATABASE_URL=fresh_api.database_url, TEMPORAL_ADDRESS="127.0.0.1:1")
    assert doctor.returncode == 1
    assert f"does not know of the conduct of procedure {lost} any more; look at the equipment" in doctor.stdout
