"""Brings a database to the form this build needs: migrations for what is durable, fresh tables for what is derived."""

from pathlib import Path

import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from baton.infrastructure.postgres.projections import ensure_projections

MIGRATION_LOCK = 0x6261746F6E01


def migrate(url: str) -> None:
    """Apply migrations and create missing projections; any number of processes may call this at once."""
    engine = sqlalchemy.create_engine(alchemy_url(url), poolclass=sqlalchemy.NullPool)
    with engine.connect() as guard:
        guard.execute(sqlalchemy.text(f"SELECT pg_advisory_lock({MIGRATION_LOCK})"))
        guard.commit()
        with engine.connect() as connection:
            configuration = alembic_configuration()
            configuration.attributes["connection"] = connection
            command.upgrade(configuration, "head")
            connection.commit()
        with engine.begin() as connection:
            ensure_projections(connection)
        guard.execute(sqlalchemy.text(f"SELECT pg_advisory_unlock({MIGRATION_LOCK})"))
        guard.commit()
    engine.dispose()


def pending_migrations(url: str) -> list[str]:
    """The migrations this build has and the database lacks."""
    script = ScriptDirectory.from_config(alembic_configuration())
    engine = sqlalchemy.create_engine(alchemy_url(url), poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        applied = MigrationContext.configure(connection).get_current_revision()
    return [revision.revision for revision in script.iterate_revisions("head", applied or "base")]


def alembic_configuration() -> Config:
    configuration = Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return configuration


def alchemy_url(url: str) -> str:
    """The same database for SQLAlchemy's psycopg dialect."""
    scheme, _, rest = url.partition("://")
    return f"{scheme.split('+')[0].replace('postgres', 'postgresql').replace('postgresqlql', 'postgresql')}+psycopg://{rest}"
