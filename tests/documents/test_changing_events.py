"""What `docs/changing-events.md` shows is run: a database of the older version of an event is opened by the newer one."""

from pathlib import Path

from baton.infrastructure.postgres.migrate import migrate
from tests.support.documents.fenced_blocks import code_of
from tests.support.documents.shift_aggregate import aggregate_source, declared_aggregate
from tests.support.service import running_api
from tests.support.waiting import until

BLOCKS = code_of(Path("docs/changing-events.md"))


def test_every_block_is_run_below() -> None:
    assert {heading: len(blocks) for heading, blocks in BLOCKS.items()} == {"An example": 2}


async def test_an_older_database_is_opened_by_a_newer_version_of_an_event(database_url: str, tmp_path: Path) -> None:
    before, after = BLOCKS["An example"]
    older = aggregate_source()
    assert before in older
    first, last = older.split(before)
    newer = "".join((first.replace("hours", "minutes"), after, last.replace("hours", "minutes")))

    with declared_aggregate(older, tmp_path / "older"):
        migrate(database_url)
        async with running_api(database_url) as api:
            leader_id = await api.create("/actors", {"name": "Mira Okafor"})
            night = await api.create("/shifts", {"name": "Night", "leader_id": leader_id, "hours": 8})
            position = await api.execute(f"/shifts/{night}/begin")
            assert (await api.get("/shifts", min_position=position)).json()["items"][0]["hours"] == 8

    with declared_aggregate(newer, tmp_path / "newer"):
        migrate(database_url)
        async with running_api(database_url) as api:
            late = await api.create("/shifts", {"name": "Late", "leader_id": leader_id, "minutes": 90})
            shown = (await api.get(f"/shifts/{night}")).json()
            assert (shown["minutes"], shown["status"]) == (480, "On")
            assert (await api.get(f"/shifts/{night}", as_of_version=1)).json()["minutes"] == 480
            for path in (f"/shifts/{night}/history", "/events"):
                events = (await api.get(path, limit=100)).json()["items"]
                planned = next(one for one in events if one["event_type"] == "ShiftPlanned" and one["stream_id"] == night)
                assert (planned["schema_version"], planned["payload"]["minutes"]) == (2, 480)
                assert "hours" not in planned["payload"]

            async def listed_minutes() -> dict[str, int]:
                items = (await api.get("/shifts")).json()["items"]
                return {item["shift_id"]: item.get("minutes") for item in items}

            async def is_rebuilt() -> bool:
                return await listed_minutes() == {night: 480, late: 90}

            await until(is_rebuilt)
