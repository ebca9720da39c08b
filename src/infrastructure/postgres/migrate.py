"""Migration of a database to what this build needs: migrations for durable tables, creation of derived ones."""

from pathlib import Path

import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from baton.infrastructure.postgres.projection_tables import ensure_projections

MIGRATION_LOCK = 0x6261746F6E01


def migrate(url: str) -> None:
    """Apply migrations and create missing projections; any number of processes may call this at once."""
    engine = _engine(url)
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
    script = ScriptDirectory.from_config(alembic_configuration())
    with _engine(url).connect() as connection:
        applied = MigrationContext.configure(connection).get_current_revision()
    return [revision.revision for revision in script.iterate_revisions("head", applied or "base")]


def alembic_configuration() -> Config:
    configuration = Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return configuration


def alchemy_url(url: str) -> sqlalchemy.URL:
    return sqlalchemy.make_url(url).set(drivername="postgresql+psycopg")


def _engine(url: str) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(alchemy_url(url), poolclass=sqlalchemy.NullPool)
