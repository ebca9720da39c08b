"""Gates hold when something starts, not only when they were judged: what closes between the two keeps it from starting."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import psycopg
import pytest

from baton.domain.contexts import REGISTRY
from baton.domain.shared.gates import GATE_STREAMS
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.service import Api
from tests.support.waiting import until
from tests.support.workflows.step_json import setpoint

LAST_EVENT = "FROM events WHERE stream_id = %s ORDER BY version DESC LIMIT 1"
COLUMNS = "event_type, schema_version, payload, principal_id, command_name, correlation_id, occurred_at"
NEXT_EVENT = f"""INSERT INTO events (event_id, stream_type, stream_id, version, {COLUMNS})
SELECT gen_random_uuid(), stream_type, stream_id, version + 1, {COLUMNS} {LAST_EVENT}"""


def test_the_streams_that_can_close_a_gate_exist() -> None:
    assert REGISTRY.aggregates.keys() >= GATE_STREAMS
    assert {name for name, one in REGISTRY.operations.items() if one.gated} == {
        *("start_run", "resume_run", "start_procedure", "resume_procedure"),
        *("conduct_procedure", "conduct_or_hold_procedure", "conduct_from_procedure"),
        *("conduct_until_converged", "conduct_until_advised", "conduct_until_advised_from", "launch"),
        *("recheck_received_artifact", "adopt_received_artifact"),
        *("register_dataset", "promote_dataset", "register_distribution", "discard_distribution"),
        *("register_edition", "add_dataset_to_edition", "seal_edition"),
        *("initialize_seal", "sign_seal_pointer", "rotate_seal_online_key", "complete_seal_republishing"),
    }


@pytest.fixture
async def line(api: Api) -> Beamline:
    """A beamline whose rotary stage owns a signal."""
    found = await beamline(api)
    await own_signal(found, found.rotary_id, signal_of(found))
    return found


def signal_of(line: Beamline) -> str:
    return f"{line.unit_id}:rot"


async def own_signal(line: Beamline, asset_id: str, value: str) -> None:
    await line.api.execute(f"/assets/{asset_id}/add-alternate-identifier", {"kind": "EPICS_PV", "value": value})


async def count_waiting(connection: psycopg.AsyncConnection[Any], locktype: str) -> int:
    query = "SELECT count(*) FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE locktype = %s AND NOT granted"
    found = await connection.execute(query + " AND datname = current_database()", [locktype])
    return int((await found.fetchone() or (0,))[0])


@asynccontextmanager
async def kept_from_writing(line: Beamline, stream_id: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Nothing is appended to a stream inside; what is yielded waits until somebody has decided and would append to it."""
    async with await psycopg.AsyncConnection.connect(line.api.database_url) as rival:
        await rival.execute(NEXT_EVENT, [stream_id])

        async def wait() -> None:
            async def has_decided() -> bool:
                return await count_waiting(rival, "transactionid") == 1

            await until(has_decided)

        yield wait
        await rival.rollback()


async def register(line: Beamline, **task: Any) -> str:
    return await line.api.create("/procedures", {"name": "Turn", "kind": "turn", **task})


Start = tuple[str, Awaitable[httpx.Response]]  # The stream that a start is written to, and the request.


async def start_run(line: Beamline) -> Start:
    campaign = await line.campaign()
    return campaign, line.start(campaign_id=campaign)


async def resume_run(line: Beamline) -> Start:
    run = await line.start_run()
    await line.api.execute(f"/runs/{run}/hold")
    return run, line.api.post(f"/runs/{run}/resume")


async def start_procedure(line: Beamline) -> Start:
    id = await register(line, target_asset_ids=[line.rotary_id])
    return id, line.api.post(f"/procedures/{id}/start")


async def resume_procedure(line: Beamline) -> Start:
    id, started = await start_procedure(line)
    assert (await started).status_code == 204
    await line.api.execute(f"/procedures/{id}/hold", {"reason": "look"})
    return id, line.api.post(f"/procedures/{id}/resume")


async def conduct_procedure(line: Beamline) -> Start:
    id = await register(line)
    return id, line.api.post(f"/procedures/{id}/conduct", {"wait": 0, "steps": [setpoint(signal_of(line), 1)]})


STARTS = [start_run, resume_run, start_procedure, resume_procedure, conduct_procedure]


@pytest.mark.parametrize("prepare", STARTS)
async def test_a_permit_withdrawn_between_the_look_and_the_write_refuses(
    line: Beamline, prepare: Callable[[Beamline], Awaitable[Start]]
) -> None:
    stream_id, request = await prepare(line)
    async with kept_from_writing(line, stream_id) as decided:
        answer = asyncio.ensure_future(request)
        await decided()
        await line.observe("NotPermitted")
    body = (await answer).json()
    assert (await answer).status_code == 409, body
    assert body["code"] in ("RunRequiresPermittedEnclosureError", "ProcedureRequiresPermittedEnclosureError")


@pytest.mark.parametrize("prepare", [start_run, conduct_procedure])
async def test_a_start_waits_for_a_withdrawal_that_is_being_written(
    line: Beamline, prepare: Callable[[Beamline], Awaitable[Start]]
) -> None:
    _, request = await prepare(line)
    async with await psycopg.AsyncConnection.connect(line.api.database_url) as rival, asyncio.TaskGroup() as tasks:
        await rival.execute("SELECT FROM enclosure_contact WHERE enclosure_id = %s FOR UPDATE", [line.enclosure_id])
        withdrawal = tasks.create_task(line.observe("NotPermitted"))

        async def is_being_written() -> bool:
            return await count_waiting(rival, "transactionid") == 1

        await until(is_being_written)
        answer = asyncio.ensure_future(request)

        async def is_awaited() -> bool:
            return await count_waiting(rival, "advisory") == 1

        await until(is_awaited)
        assert not withdrawal.done()
        await rival.rollback()
    body = (await answer).json()
    assert body["code"] in ("RunRequiresPermittedEnclosureError", "ProcedureRequiresPermittedEnclosureError"), body


async def test_a_signal_that_gets_an_owner_meanwhile_is_judged_by_it(line: Beamline) -> None:
    stage = await line.api.create("/assets", {"name": "Second stage", "tier": "Device", "parent_id": line.unit_id})
    id = await register(line)
    async with kept_from_writing(line, id) as decided:
        body = {"wait": 0, "steps": [setpoint(f"{signal_of(line)}:fine", 1)]}
        answer = asyncio.ensure_future(line.api.post(f"/procedures/{id}/conduct", body))
        await decided()
        await own_signal(line, stage, f"{signal_of(line)}:fine")
    assert (await answer).status_code == 202, (await answer).text
    assert (await line.api.get(f"/procedures/{id}")).json()["judged_asset_ids"] == [stage]


async def test_what_no_gate_rests_on_changes_without_a_second_look(line: Beamline) -> None:
    """A change elsewhere leaves the first decision standing: the conduct id that it was given is the one that opens."""
    other = await line.api.create("/assets", {"name": "Table", "tier": "Device", "parent_id": line.unit_id})
    id, request = await conduct_procedure(line)
    async with kept_from_writing(line, id) as decided:
        answer = asyncio.ensure_future(request)
        await decided()
        await line.api.execute(f"/assets/{other}/fault", {"reason": "loose"})
    assert (await answer).status_code == 202, (await answer).text
