"""Fresh databases for tests, copied from one that is migrated."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from baton.cli.embedded.postgres import EmbeddedPostgres
from tests.support.stored_events import collect_events

_numbers = itertools.count(1)


@contextmanager
def fresh_database(postgres: EmbeddedPostgres, template: str) -> Iterator[str]:
    """Yield the address of a migrated database that exists until the block ends."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    url = with_database(postgres.url, name)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        yield url
        collect_events(url)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def with_database(url: str, name: str) -> str:
    """Return the address of another database on the same server."""
    base, _, query = url.partition("?")
    return base.rsplit("/", 1)[0] + f"/{name}" + (f"?{query}" if query else "")
