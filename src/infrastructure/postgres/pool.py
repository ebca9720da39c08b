"""Connections of the runtime role: autocommit, UTC, prepared statements, and no right to change the log."""

from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool

RUNTIME_ROLE = "baton_runtime"
RUNTIME_OPTIONS = f"-c role={RUNTIME_ROLE} -c timezone=UTC -c jit=off -c enable_seqscan=off"
"""Every runtime query has its index. Without the last setting, a plan prepared while a table is small reads all of it for
the life of the connection, however large it grows."""
OWNER_OPTIONS = "-c timezone=UTC -c jit=off"

LOST_LINE: dict[str, Any] = {"connect_timeout": 5, "tcp_user_timeout": 6000}
"""Seconds to reach a server, and milliseconds until one that says nothing any more counts as gone."""

Connection = psycopg.AsyncConnection[tuple[Any, ...]]
Pool = AsyncConnectionPool[Connection]


def runtime_pool(url: str, size: int) -> Pool:
    """A pool of runtime connections; open it before use."""
    return AsyncConnectionPool(
        url,
        min_size=min(4, size),
        max_size=size,
        open=False,
        kwargs={"autocommit": True, "prepare_threshold": 0, "options": RUNTIME_OPTIONS, **LOST_LINE},
        configure=_prepared,
        name="runtime",
        timeout=10,
    )


async def dedicated(url: str, *, owner: bool = False) -> Connection:
    """A connection outside the pool, for listening, leading and rebuilding."""
    return await psycopg.AsyncConnection.connect(
        url, autocommit=True, options=OWNER_OPTIONS if owner else RUNTIME_OPTIONS, prepare_threshold=None, **LOST_LINE
    )


async def _prepared(connection: Connection) -> None:
    connection.prepared_max = 300
