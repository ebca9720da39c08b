"""What `baton doctor --only control` says of devices that a RunEngine and a route of the service can both write."""

import json
from pathlib import Path
from uuid import UUID

import psycopg

from baton.application.plan_settings import PlanExecutorSettings
from baton.application.settings import Settings
from baton.cli.doctor import CheckStatus
from baton.cli.doctor.control import examine_control
from baton.domain.equipment.signals import SIGNALS
from baton.domain.run.witness import WITNESSED_ASSETS

ASSET, RUN = UUID(int=7), UUID(int=8)
ROUTE = {"prefix": "bl7:", "substrate": "epics_ca"}


async def test_a_device_that_two_can_write_is_named(database_url: str, tmp_path: Path) -> None:
    touches = tmp_path / "touches.json"
    touches.write_text(json.dumps({"devices": {"stage_x": ["bl7:x"], "far": ["bl8:x"]}}))
    executor = PlanExecutorSettings(
        name="qs",
        kind="queueserver",  # type: ignore[arg-type]
        address="tcp://bl7:60615",
        touches=touches,
        simulated=False,
    )

    def settings(**more: object) -> Settings:
        return Settings(database_url=database_url, **more)  # type: ignore[arg-type]

    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        assert (await examine_control(connection, settings(control_routes=[ROUTE]))).status is CheckStatus.OK
        for kind, key, stream_id in ((SIGNALS, "bl7:rotary", ASSET), (WITNESSED_ASSETS, str(ASSET), RUN)):
            await connection.execute("INSERT INTO lookups VALUES (%s, %s, %s)", (kind, key, stream_id))
        both = await examine_control(connection, settings(control_routes=[ROUTE], plan_executors=(executor,)))
        assert both.status is CheckStatus.WARNING
        assert "can both write bl7:rotary (a live witnessed run), bl7:x (stage_x of qs); make its route" in both.sentence
        kept = settings(control_routes=[{**ROUTE, "read_only": True}], plan_executors=(executor,))
        assert (await examine_control(connection, kept)).status is CheckStatus.OK
