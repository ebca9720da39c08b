"""Requests that meet: all of them have decided, or wait for one that has, before one of them can write."""

import asyncio
from typing import Any

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
