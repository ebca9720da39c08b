"""The verdict log between a decision and the database."""

import asyncio

import psycopg

from baton.application.caller import Caller
from baton.application.seeds import Seeds
from baton.domain.trust.authorization import AuthzResult
from baton.domain.trust.conduit import AccessDecision
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.postgres.authorization_log import PostgresVerdictLog
from baton.infrastructure.postgres.pool import Pool
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.application.command_paths import CommandCaller
from tests.support.domain.world import OPERATOR, new_id
from tests.support.infrastructure.database_observer import Connection, rows, until_waiting


async def test_verdicts_that_are_being_written_when_the_process_stops_are_written(
    database_url: str, pool: Pool, store: PostgresStore, client: CommandCaller, owner: Connection
) -> None:
    await Seeds(store, client.clock, new_id).plant(facility_code="site", bootstrap_principal_id=OPERATOR)
    verdicts = PostgresVerdictLog(pool)
    for name in ("DefineZone", "GetZone"):
        verdicts.record(Caller(OPERATOR, SYSTEM_HTTP, new_id()), SYSTEM_HTTP, name, AuthzResult(AccessDecision.ALLOW))
    writing = asyncio.create_task(verdicts.run())
    async with await psycopg.AsyncConnection.connect(database_url) as rival:
        await rival.execute("LOCK TABLE entries_conduit_verdicts IN EXCLUSIVE MODE")
        await until_waiting(owner)
        writing.cancel()
        await asyncio.sleep(0)
        await rival.rollback()
    await asyncio.gather(writing, return_exceptions=True)
    found = await rows(owner, "SELECT command_name FROM entries_conduit_verdicts ORDER BY occurred_at")
    assert [name for (name,) in found] == ["DefineZone", "GetZone"]
