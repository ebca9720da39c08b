"""A client that gives commands as a dry run before it gives them, and compares what was said with what was recorded."""

from typing import Any

import httpx
import psycopg

from baton.api.edge import Routes
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from tests.support.service import Api

DRY_RUN = {"Prefer": "handling=dry-run"}
OTHERS = {"bookmarks", "leases", "projections", "entries_conduit_verdicts", "process_reports", "reactions"}
"""The tables that others than commands write: followers of the log, the authorizer, and the processes themselves."""
ROUTES: Routes[Operation] = Routes()
for _operation in REGISTRY:
    ROUTES.add(_operation.method, _operation.path, _operation)


GIVES_OTHERS = {"hold_everything"}
"""What records nothing itself: every command that it gives is recorded for itself."""


class RehearsingApi(Api):
    """Rehearses each command before it is given."""

    @classmethod
    def of(cls, api: Api) -> "RehearsingApi":
        return cls(**vars(api))

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        match = ROUTES.match(method, path.partition("?")[0])
        if not isinstance(match, tuple) or match[0].kind == "query":
            return await super().request(method, path, **options)
        operation = match[0]
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            before = contents(connection)
            dry = await super().request(method, path, **{**options, "headers": {**options.get("headers", {}), **DRY_RUN}})
            changed = dict(contents(connection).items() - before.items())
            assert not changed, f"a dry run of {operation.name} wrote into {', '.join(changed)}"
            (last,) = connection.execute("SELECT coalesce(max(position), 0) FROM events").fetchone() or (0,)
            real = await super().request(method, path, **options)
            if "Idempotency-Replayed" not in real.headers:
                compare(operation, dry, real, recorded_after(connection, last))
        return real


def contents(connection: psycopg.Connection[Any]) -> dict[str, tuple[int, int | None]]:
    """Return of each table that a command may write how many rows it has, and which transaction wrote the newest."""
    kept = {projection.summary.relation for projection in REGISTRY.projections.values()} | OTHERS
    tables = [
        name
        for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        if name not in kept
    ]
    each = " UNION ALL ".join(f"SELECT '{table}', count(*), max(xmin::text::bigint) FROM {table}" for table in tables)
    return {table: (count, newest) for table, count, newest in connection.execute(each.encode())}


def recorded_after(connection: psycopg.Connection[Any], position: int) -> list[tuple[str, str, set[str]]]:
    """Return type of stream, type of event and keys of the payload of every event behind a position."""
    query = "SELECT stream_type, event_type, payload FROM events WHERE position > %s ORDER BY position"
    return [(stream, event, set(payload)) for stream, event, payload in connection.execute(query, (position,))]


def compare(
    operation: Operation, dry: httpx.Response, real: httpx.Response, recorded: list[tuple[str, str, set[str]]]
) -> None:
    """Compare what a dry run said with what the command came to."""
    if not real.is_success:
        assert (dry.status_code, dry.json()["code"]) == (real.status_code, real.json()["code"]), operation.name
        return
    assert (dry.status_code, dry.headers.get("Preference-Applied")) == (200, "handling=dry-run"), (operation.name, dry.text)
    said = dry.json()
    would = [(event["stream"], event["event_type"], set(event["payload"])) for event in said["would"]]
    assert would == ([] if operation.name in GIVES_OTHERS else recorded), operation.name
    if not operation.opens_work and real.content:
        assert said["answer"].keys() == real.json().keys(), operation.name
