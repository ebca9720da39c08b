"""Readiness with monitored enclosures: nothing is served from a permit that an earlier life left behind."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from baton.application.settings import Settings
from baton.cli.doctor import CheckStatus
from baton.cli.doctor.database import examine_processes
from baton.cli.doctor.examination import examine_actuation
from baton.domain.enclosure.enclosure import ObserveEnclosureStatus, RegisterEnclosure
from baton.domain.step.results import actuation_of
from baton.infrastructure.control.simulator import Simulator
from baton.infrastructure.postgres.leadership import clock_skew
from baton.infrastructure.wall_clock import new_id
from tests.support.application.monitored_plant import (
    HUTCH,
    PERMIT,
    QUICK,
    MonitoredRecord,
    monitored_service,
    running_service,
)
from tests.support.service import Api, running_api
from tests.support.tables import for_each
from tests.support.waiting import until

SETTINGS = {"monitored_enclosures": {HUTCH: PERMIT}}


async def ready(api: Api) -> bool:
    return (await api.get("/readyz")).status_code == 200


async def test_it_waits_for_the_configured_permits_and_says_so(database_url: str) -> None:
    async with running_api(database_url, **SETTINGS) as api:
        answer = await api.get("/readyz")
        assert (answer.status_code, answer.json()) == (
            503,
            {
                "status": "settling",
                "because": "No worker has settled the permits of these enclosures since its start; see that one runs.",
                "enclosures": [HUTCH],
                "actuation": "inert",
            },
        )
        async with monitored_service(database_url, Simulator({PERMIT: 1})):
            await until(lambda: ready(api))
            expected = {"status": "ready", "unled_tasks": ["reactions", "schedules"], "actuation": "inert"}
            assert (await api.get("/readyz")).json() == expected


async def test_a_process_that_was_ready_stays_so_and_a_new_one_waits(database_url: str) -> None:
    async with running_api(database_url, **SETTINGS) as api:
        async with monitored_service(database_url, Simulator({PERMIT: 1})):
            await until(lambda: ready(api))
        assert await ready(api)
        async with running_api(database_url, projecting=False, **SETTINGS) as later:
            assert not await ready(later)


async def test_it_waits_for_every_single_one(database_url: str) -> None:
    both = {"monitored_enclosures": {HUTCH: PERMIT, "Hutch C": "PSS:C"}}
    plant = Simulator({PERMIT: 1})
    plant.simulate_connect("PSS:C")
    patient = replace(QUICK, first_reading=60)
    async with running_api(database_url, **both) as api, monitored_service(database_url, plant, patient, **both):
        await until(lambda: _waits_for(api, ["Hutch C"]))


async def test_without_configured_enclosures_nothing_is_waited_for(api: Api) -> None:
    await until(lambda: ready(api))


async def test_what_a_killed_service_left_permitted_is_unknown_before_it_is_ready(database_url: str) -> None:
    """As after a kill: the permit stands in the log, and the signal is gone when the next life begins."""
    async with running_service(database_url) as record:
        await _left_permitted(record)
        async with running_api(database_url, **SETTINGS) as api:
            assert not await ready(api)
            async with monitored_service(database_url, Simulator()):
                await until(lambda: ready(api))
                assert await record.permit() == "Unknown"


async def _left_permitted(record: MonitoredRecord) -> None:
    id = await record.do(RegisterEnclosure(name=HUTCH, facility_code="facility"))
    bridge = {"source_kind": "Script", "source_id": "test"}
    await record.do(ObserveEnclosureStatus(new_status="Permitted", reason="searched", monitor_ref=bridge), id)
    assert await record.permit() == "Permitted"


async def _waits_for(api: Api, names: list[str]) -> bool:
    answer = (await api.get("/readyz")).json()
    return bool(answer.get("enclosures") == names)


IN_MEMORY = {"prefix": "bl7:", "substrate": "in_memory"}
RING = {"prefix": "SR:", "substrate": "epics_ca"}


@for_each(
    ("settings", "actuation"),
    [
        ({}, "inert"),
        ({"control_routes": [{**IN_MEMORY, "read_only": True}]}, "inert"),
        ({"control_routes": [IN_MEMORY], "control_writes_enabled": False}, "inert"),
        ({"control_routes": [{**IN_MEMORY, "simulated": True}]}, "simulated"),
        (
            {
                "control_routes": [
                    {**IN_MEMORY, "simulated": True},
                    {"prefix": "S:", "substrate": "epics_ca", "read_only": True},
                ]
            },
            "simulated",
        ),
        ({"control_routes": [{**IN_MEMORY, "simulated": True}, RING]}, "reachable"),
    ],
)
def test_what_writes_can_reach_follows_from_the_routes(settings: dict[str, Any], actuation: str) -> None:
    chosen = Settings(**settings)
    assert actuation_of(chosen.control_routes, chosen.control_writes_enabled) == actuation
    assert f"Actuation is {actuation}:" in examine_actuation(chosen).sentence


async def test_it_says_what_writes_can_reach(database_url: str) -> None:
    routes = [{**IN_MEMORY, "simulated": True}]
    async with running_api(database_url, projecting=False, control_routes=routes) as api:
        assert (await api.get("/readyz")).json()["actuation"] == "simulated"


async def test_a_process_whose_clock_is_wrong_is_named_to_whoever_asks(api: Api) -> None:
    """As a worker on a machine without the network's time reports itself."""
    await until(lambda: ready(api))
    report = "INSERT INTO process_reports VALUES (%s, 'worker', 'bl7', 7, now(), 'infinity', '{}', 0, %s)"
    async with await psycopg.AsyncConnection.connect(api.database_url, autocommit=True) as connection:
        for skew in (3600.0, -1.9):
            await connection.execute(report, (new_id(), skew))
        expected = [{"process": "worker 7 on bl7", "seconds": 3600.0}]
        assert (await api.get("/readyz")).json()["clock_skew"] == expected
        assert 'baton_clock_skew_seconds{process="worker 7 on bl7"}' in (await api.get("/metrics")).text
        found = await examine_processes(connection)
        assert (found.status, "(+3600 s)" in found.sentence) == (CheckStatus.WRONG, True)


@for_each(
    ("sent", "told", "answered", "skew"), [(0, 0, 0, 0.0), (0, 1, 3, 0.0), (5, 0, 6, 5.0), (-7, 0, -6, -6.0), (0, 3, 3, 0.0)]
)
def test_a_clock_is_wrong_by_what_no_delay_explains(sent: int, told: int, answered: int, skew: float) -> None:
    at = [datetime(2026, 10, 6, tzinfo=UTC) + timedelta(seconds=seconds) for seconds in (sent, told, answered)]
    assert clock_skew(*at) == skew
