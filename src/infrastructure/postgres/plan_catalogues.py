"""The rows of executors of Bluesky plans, on PostgreSQL."""

from baton.application.unit_of_work import load_row
from baton.domain.recipe.offered_plans import PlanExecutorCatalogue
from baton.domain.shared.writes import Put
from baton.infrastructure.postgres.statements import put_statement
from baton.infrastructure.postgres.store import PostgresStore


class PostgresPlanCatalogues:
    """Stores and loads one row for each executor."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def put(self, row: PlanExecutorCatalogue) -> None:
        statement, values = put_statement(Put(row))
        async with self._store.connection(writing=True) as connection:
            await connection.execute(statement, values)

    async def catalogue(self, executor: str) -> PlanExecutorCatalogue | None:
        return await load_row(self._store, PlanExecutorCatalogue, executor=executor)
