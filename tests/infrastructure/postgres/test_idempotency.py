"""How long finished requests are remembered, and that an unfinished one is never forgotten."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from baton.application.ports import KeyClaim
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.domain.trust.zone import DefineZone
from baton.infrastructure.postgres.pool import Pool
from baton.infrastructure.postgres.store import PostgresStore, Pruner
from tests.support.application.command_paths import OPERATOR, CommandCaller, HandSetClock
from tests.support.infrastructure.database_observer import Connection, rows

HOUR = timedelta(hours=1)


@pytest.fixture
async def keys(pool: Pool) -> CommandCaller:
    """Requests of 25 hours and of one hour ago, and one of 25 hours ago that never finished."""
    now = datetime.now(UTC)
    client = CommandCaller(PostgresStore(pool), clock=HandSetClock(now - 25 * HOUR))
    await client.do(DefineZone(name="Old"), key="old")
    unfinished = KeyClaim(OPERATOR, "unfinished", SYSTEM_HTTP, "DefineZone", "a" * 64, now - 25 * HOUR)
    assert await client.store.claim_key(unfinished, now - 26 * HOUR) is None
    client.clock.now = now - HOUR
    await client.do(DefineZone(name="Young"), key="young")
    return client


async def remembered_keys(owner: Connection) -> list[str]:
    return [row[0] for row in await rows(owner, "SELECT key FROM idempotency ORDER BY created_at, key DESC")]


async def test_finished_requests_are_forgotten_after_their_life_and_locked_ones_never(
    keys: CommandCaller, pool: Pool, owner: Connection
) -> None:
    assert await Pruner(pool, 24 * HOUR).prune() == 1
    assert await remembered_keys(owner) == ["unfinished", "young"]
    assert await Pruner(pool, timedelta(minutes=1)).prune() == 1
    assert await remembered_keys(owner) == ["unfinished"]


async def test_a_forgotten_key_may_be_used_anew(keys: CommandCaller, pool: Pool) -> None:
    assert (await keys.do(DefineZone(name="Old"), key="old")).replayed
    await Pruner(pool, 24 * HOUR).prune()
    assert not (await keys.do(DefineZone(name="Something else"), key="old")).replayed


async def test_a_life_of_zero_keeps_everything(keys: CommandCaller, pool: Pool, owner: Connection) -> None:
    await Pruner(pool, timedelta(0)).run()
    assert len(await remembered_keys(owner)) == 3


async def test_the_events_of_a_forgotten_request_stay(keys: CommandCaller, pool: Pool, owner: Connection) -> None:
    await Pruner(pool, timedelta(0)).prune()
    assert len(await rows(owner, "SELECT FROM events")) == 2


@pytest.mark.parametrize("row", ["now(), '{}'", "NULL, NULL"])
async def test_a_key_is_either_in_flight_or_finished(pool: Pool, row: str) -> None:
    insert = (
        "INSERT INTO idempotency (principal_id, key, surface_id, command_name, command_hash, created_at, locked_at, result) "
        f"VALUES (gen_random_uuid(), 'k', gen_random_uuid(), 'C', 'h', now(), {row})"
    )
    async with pool.connection() as connection:
        with pytest.raises(psycopg.errors.CheckViolation):
            await connection.execute(insert)
