"""Checks of a database's schema, without loading the migration tools: every process checks before it starts."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import LiteralString

import psycopg

from baton.infrastructure.postgres.adoption import IS_AHEAD, RecordAheadError
from baton.infrastructure.postgres.pool import OWNER_OPTIONS
from baton.infrastructure.postgres.projection_tables import definitions

CAN_REWRITE = """SELECT pg_has_role(current_user, relowner, 'MEMBER') OR has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE')
FROM pg_class WHERE oid = 'events'::regclass"""
"""True for superusers too, who are members of every role."""


class NewerDatabaseError(Exception):
    """The database was migrated by a later build than this one."""


def known_revisions() -> list[str]:
    """Return the migrations of this build, oldest first; their files are named after them."""
    versions = Path(__file__).parent / "migrations" / "versions"
    return sorted(path.name.partition("_")[0] for path in versions.glob("[0-9]*_*.py"))


@cache
def current_definitions() -> Mapping[str, str]:
    """Return how this build computes every projection; to find out takes longer than the rest of a start."""
    return definitions()


def may_migrate(url: str) -> bool:
    return _is_true(url, "SELECT has_schema_privilege('public', 'CREATE')")


def can_rewrite_log(url: str) -> bool:
    """Return whether the user of this URL can do more to the log than the runtime needs, in whatever way."""
    return _is_true(url, CAN_REWRITE)


def _is_true(url: str, query: LiteralString) -> bool:
    with psycopg.connect(url, options=OWNER_OPTIONS, connect_timeout=10) as connection:
        [(answer,)] = connection.execute(query).fetchall()
    return bool(answer)


def has_current_form(url: str) -> bool:
    """Return whether all migrations are applied and every projection is computed as this build does; raise where the
    database is none that this build may work on."""
    known = known_revisions()
    with psycopg.connect(url, options=OWNER_OPTIONS, connect_timeout=10) as connection:
        try:
            [(applied,)] = connection.execute("SELECT version_num FROM alembic_version").fetchall() or [(None,)]
            if applied is None:
                return False
            if applied not in known:
                raise NewerDatabaseError(
                    f"The database was migrated to {applied} by a later Baton, and this one knows migrations up to "
                    f"{known[-1]} only; install that Baton again, or restore a backup of before the upgrade."
                )
            if connection.execute(IS_AHEAD).fetchone() == (True,):
                raise RecordAheadError
            stored: dict[str, str] = dict(connection.execute("SELECT relation, definition FROM projections").fetchall())
            followed = connection.execute("SELECT count(*) FROM bookmarks").fetchone()
        except (psycopg.errors.UndefinedTable, psycopg.errors.InsufficientPrivilege):
            return False  # the runtime may not read these tables of an older schema
    return applied == known[-1] and followed != (0,) and current_definitions().items() <= stored.items()
