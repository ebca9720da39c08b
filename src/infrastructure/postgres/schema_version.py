"""Whether a database has the form this build needs, asked without loading the tools that would give it that form.

Every process asks before it starts, and nearly always there is nothing to do.
"""

from pathlib import Path

import psycopg

from baton.domain.contexts import REGISTRY
from baton.infrastructure.postgres.pool import OWNER_OPTIONS
from baton.infrastructure.postgres.projections import definition

VERSIONS = Path(__file__).parent / "migrations" / "versions"
CAN_REWRITE = """
SELECT pg_has_role(current_user, relowner, 'MEMBER') OR has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE')
FROM pg_class WHERE oid = 'events'::regclass
"""
"""A superuser is a member of every role."""


class NewerDatabaseError(Exception):
    """The database was migrated by a later build than this one."""


def known_revisions() -> list[str]:
    """The migrations of this build, oldest first; their files are named after them."""
    return sorted(path.name.partition("_")[0] for path in VERSIONS.glob("[0-9]*_*.py"))


def may_migrate(url: str) -> bool:
    """Whether the user of this URL can make tables."""
    with psycopg.connect(url, options=OWNER_OPTIONS, connect_timeout=10) as connection:
        [(may,)] = connection.execute("SELECT has_schema_privilege('public', 'CREATE')").fetchall()
    return bool(may)


def can_rewrite_log(url: str) -> bool:
    """Whether the user of this URL can do more to the log than the runtime needs, however it gets there."""
    with psycopg.connect(url, options=OWNER_OPTIONS, connect_timeout=10) as connection:
        [(can,)] = connection.execute(CAN_REWRITE).fetchall()
    return bool(can)


def has_current_form(url: str) -> bool:
    """Whether all migrations are applied and every projection is declared as it was made."""
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
            made: dict[str, str] = dict(connection.execute("SELECT relation, definition FROM projections").fetchall())
            followed = connection.execute("SELECT count(*) FROM bookmarks").fetchone()
        except (psycopg.errors.UndefinedTable, psycopg.errors.InsufficientPrivilege):
            return False  # an older form does not let the runtime's login look
    declared = {relation: definition(projection.summary) for relation, projection in REGISTRY.projections.items()}
    return applied == known[-1] and declared.items() <= made.items() and followed != (0,)
