"""Requests that meet: all of them have decided, or wait for one that has, before one of them can write."""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from typing import Any
from uuid import UUID

import httpx
import psycopg

from tests.support.waiting import until


async def send_at_once(database_url: str, *requests: Any) -> list[httpx.Response]:
    """The answers to requests none of which could write before all had read, or waited for the lock of one that had."""
    async with await psycopg.AsyncConnection.connect(database_url) as gate, asyncio.TaskGroup() as rivals:
        await gate.execute("LOCK TABLE events IN SHARE MODE")
        sent = [rivals.create_task(request) for request in requests]

        async def all_requests_wait() -> bool:
            waiting = await gate.execute(
                "SELECT count(*) FROM pg_locks WHERE (relation = 'events'::regclass OR locktype = 'advisory') "
                "AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            return await waiting.fetchone() == (len(requests),)

        await until(all_requests_wait)
        await gate.rollback()
    return [task.result() for task in sent]


async def overtake(
    database_url: str, work: Coroutine[Any, Any, Any], stream_id: UUID | str, event_type: str, payload: Mapping[str, Any]
) -> Any:
    """Return the outcome of gated work while an event is appended to a stream after its decision and before its append."""
    async with (
        await psycopg.AsyncConnection.connect(database_url) as rival,
        await psycopg.AsyncConnection.connect(database_url, autocommit=True) as onlooker,
    ):
        await rival.execute("SELECT pg_advisory_xact_lock_shared(hashtextextended('gates', 0))")
        task = asyncio.create_task(work)

        async def has_decided() -> bool:
            assert not task.done(), "it was written past the gate"
            waiting = await onlooker.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND mode = 'ExclusiveLock' "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            return await waiting.fetchone() == (1,)

        await until(has_decided)
        appended = await rival.execute(
            "INSERT INTO events (event_id, stream_type, stream_id, version, event_type, schema_version, payload, "
            "principal_id, command_name, correlation_id, occurred_at) SELECT gen_random_uuid(), stream_type, stream_id, "
            "version + 1, %s, 1, %s, principal_id, command_name, correlation_id, occurred_at FROM events "
            "WHERE stream_id = %s ORDER BY version DESC LIMIT 1",
            [event_type, json.dumps(payload), stream_id],
        )
        assert appended.rowcount == 1
        await rival.commit()
        return await task
