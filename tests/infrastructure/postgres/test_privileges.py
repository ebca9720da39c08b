"""What the runtime role may do to the database: the log and the entry relations take inserts and nothing else."""

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from baton.domain.contexts import REGISTRY
from baton.domain.shared.listing import ListQuery
from baton.infrastructure.postgres.pool import dedicated_connection
from tests.support.infrastructure.database_observer import Connection, insert_event, rows
from tests.support.tables import for_each

LISTED = {operation.input.summary.relation for operation in REGISTRY if issubclass(operation.input, ListQuery)}
VIEWS = {"model_calls", "run_reading_channels", "run_readings"}
"""What is seen of logbooks in another form."""
CHANGED_ROWS = {"catalogue_entries"}
"""What is listed and changes, without being derived from the log."""
INSERT_ONLY = ["events", *sorted(LISTED - REGISTRY.projections.keys() - VIEWS - CHANGED_ROWS)]
"""The log and every logbook."""


class TestTheRuntimeRole:
    @pytest.fixture(autouse=True)
    async def runtime_connection(self, database_url: str, owner: Connection) -> object:
        await insert_event(owner)
        async with await dedicated_connection(database_url) as self.runtime:
            yield

    @for_each(
        "change",
        [
            "UPDATE {} SET command_name = 'x'",
            "DELETE FROM {}",
            "TRUNCATE {}",
            "ALTER TABLE {} ADD COLUMN note text",
            "ALTER TABLE {} DISABLE TRIGGER ALL",
            "DROP TABLE {}",
            "CREATE TRIGGER t BEFORE INSERT ON {} FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "CREATE RULE r AS ON INSERT TO {} DO INSTEAD NOTHING",
            "SELECT * FROM {} FOR UPDATE",
        ],
    )
    async def test_it_cannot_change_what_was_recorded(self, change: str, owner: Connection) -> None:
        for relation in INSERT_ONLY:
            with pytest.raises(InsufficientPrivilege):
                await self.runtime.execute(change.format(relation))
        assert len(await rows(owner, "SELECT FROM events")) == 1

    async def test_it_can_read_and_insert(self, owner: Connection) -> None:
        position = await insert_event(self.runtime)
        assert (position,) in await rows(self.runtime, "SELECT position FROM events")

    async def test_it_cannot_choose_a_position(self) -> None:
        with pytest.raises(psycopg.errors.GeneratedAlways):
            await self.runtime.execute("INSERT INTO events (position) VALUES (7)")

    @for_each(
        "statement",
        [
            "CREATE TABLE mine (id int)",
            "CREATE SCHEMA mine",
            "CREATE ROLE mine",
            "ALTER SEQUENCE events_position_seq RESTART",
            "UPDATE projections SET definition = ''",
            "DELETE FROM projections",
            "UPDATE alembic_version SET version_num = ''",
        ],
    )
    async def test_it_cannot_change_the_form_of_the_database(self, statement: str) -> None:
        with pytest.raises(InsufficientPrivilege):
            await self.runtime.execute(statement)

    async def test_it_keeps_every_projection(self) -> None:
        granted = await rows(
            self.runtime,
            "SELECT table_name, string_agg(privilege_type, ',' ORDER BY privilege_type) "
            "FROM information_schema.role_table_grants WHERE grantee = 'baton_runtime' GROUP BY table_name",
        )
        privileges = dict(granted)
        assert {privileges[relation] for relation in REGISTRY.projections} == {"DELETE,INSERT,SELECT,UPDATE"}
        assert {privileges[relation] for relation in INSERT_ONLY} == {"INSERT,SELECT"}
        assert {privileges[view] for view in VIEWS} == {"SELECT"}


async def test_connections_of_the_service_are_of_that_role(database_url: str) -> None:
    async with await dedicated_connection(database_url) as connection:
        assert await rows(connection, "SELECT current_user, current_setting('TimeZone')") == [("baton_runtime", "UTC")]
