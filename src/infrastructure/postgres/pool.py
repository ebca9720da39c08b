"""Database connections of the runtime role: autocommit, UTC, prepared statements, and no right to change the log."""

from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool

RUNTIME_ROLE = "baton_runtime"
RUNTIME_OPTIONS = f"-c role={RUNTIME_ROLE} -c timezone=UTC -c jit=off -c enable_seqscan=off"
"""Every runtime query has its index. Without the last setting, a plan prepared while a table is small reads all of it for
the life of the connection, however large it grows."""
OWNER_OPTIONS = "-c timezone=UTC -c jit=off"

TIMEOUTS: dict[str, Any] = {"connect_timeout": 5, "tcp_user_timeout": 6000}  # seconds to connect, milliseconds of silence

Connection = psycopg.AsyncConnection[tuple[Any, ...]]
Pool = AsyncConnectionPool[Connection]


def runtime_pool(url: str, size: int) -> Pool:
    options = {"autocommit": True, "prepare_threshold": 0, "options": RUNTIME_OPTIONS, **TIMEOUTS}
    return AsyncConnectionPool(
        url,
        min_size=min(4, size),
        max_size=size,
        open=False,
        kwargs=options,
        configure=_configure,
        name="runtime",
        timeout=10,
    )


async def dedicated_connection(url: str, *, owner: bool = False) -> Connection:
    """Open a connection outside the pool, for listening, leading and rebuilding."""
    return await psycopg.AsyncConnection.connect(
        url, autocommit=True, options=OWNER_OPTIONS if owner else RUNTIME_OPTIONS, prepare_threshold=None, **TIMEOUTS
    )


async def _configure(connection: Connection) -> None:
    connection.prepared_max = 300
