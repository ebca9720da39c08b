"""Whether the engine's calendars are as the schedules on record say."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cli.findings import Finding, ok, warning, wrong
from cli.unfinished import ids, listed
from infrastructure.postgres.pool import Connection

if TYPE_CHECKING:
    from temporalio.client import Client

KEPT = "SELECT schedule_id FROM schedule_standings WHERE NOT removed ORDER BY schedule_id"
START = "start `python worker.py`, or `baton up`"
READ = "look again in a moment, and if they stay so read the worker's log for `schedule_not_kept`"


async def examine_schedules(connection: Connection, client: "Client", facility_code: str) -> Finding:
    """Whether somebody keeps the calendars, and each is as recorded."""
    from infrastructure.postgres.leadership import SCHEDULES_LOCK, is_led

    if not (kept := await ids(connection, KEPT)):
        return ok("No schedule is defined.")
    count = f"{len(kept)} schedule{'' if len(kept) == 1 else 's'}"
    differing = await differences(connection, client, kept, facility_code)
    if not await is_led(connection, SCHEDULES_LOCK):
        told = f" (not as recorded: {listed(differing)})" if differing else ""
        return wrong(f"Nobody keeps the engine's calendars of {count}{told}; {START}.")
    if differing:
        return warning(f"The engine's calendars differ from the record: {listed(differing)}; {READ}.")
    return ok(f"{count}, the engine's calendar of each as recorded.")


async def differences(connection: Connection, client: "Client", kept: list[Any], facility_code: str) -> list[str]:
    """The schedules of which the engine has something else than the record, and what."""
    from application.schedule_keeping import entry_of
    from domain.operation.schedule import RETIRED, Schedule
    from infrastructure.postgres.projections import folded_streams
    from infrastructure.runtime import clock
    from infrastructure.temporal.attributes import missing
    from infrastructure.temporal.calendars import TemporalCalendars

    @asynccontextmanager
    async def reaching() -> "AsyncIterator[Client]":
        yield client

    calendars, lacking = TemporalCalendars(reaching, clock), set(await missing(client))
    found = []
    async for id, _, schedule in folded_streams(connection, Schedule.__name__, kept):
        assert isinstance(schedule, Schedule)
        entry = entry_of(schedule, facility_code)
        if lacking & set(entry.attributes):  # then it was put without any
            entry = replace(entry, attributes={})
        view = await calendars.look(entry)
        if schedule.status is RETIRED:
            why = None if view is None else "retired, and still there"
        elif view is None:
            why = "missing"
        elif not view.as_defined:
            why = "edited"
        else:
            why = None if view.paused == entry.paused else "paused" if view.paused else "not paused"
        if why is not None:
            found.append(f"{id} ({why})")
    return found
