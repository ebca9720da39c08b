"""Whether a database has the form this build needs, asked without loading the tools that would give it that form.

Every process asks before it starts, and nearly always there is nothing to do.
"""

from pathlib import Path

import psycopg

from domain.contexts import REGISTRY
from infrastructure.postgres.pool import OWNER_OPTIONS
from infrastructure.postgres.projections import definition

VERSIONS = Path(__file__).parent / "migrations" / "versions"


class NewerDatabaseError(Exception):
    """The database was migrated by a later build than this one."""


def known_revisions() -> list[str]:
    """The migrations of this build, oldest first; their files are named after them."""
    return sorted(path.name.partition("_")[0] for path in VERSIONS.glob("[0-9]*_*.py"))


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
        except psycopg.errors.UndefinedTable:
            return False
    declared = {relation: definition(projection.summary) for relation, projection in REGISTRY.projections.items()}
    return applied == known[-1] and declared.items() <= made.items() and followed != (0,)
