"""Check of the schedules: whether the engine's calendars are as recorded, for schedules and agents."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from temporalio.client import Client

from baton.application.agents.subscribers import AgentSchedule, agent_schedules
from baton.application.schedules.calendars import Calendars
from baton.application.schedules.schedule_reconciliation import entry_of
from baton.application.settings import Settings
from baton.cli.doctor.findings import CheckResult, ok, warning, wrong
from baton.cli.doctor.tasks import remedy_for_unled
from baton.cli.doctor.unfinished_work import load_ids, shorten
from baton.domain.operation.schedule.schedule import RETIRED, Schedule
from baton.infrastructure.postgres.leadership import SCHEDULES_LOCK, is_led
from baton.infrastructure.postgres.pool import Connection
from baton.infrastructure.postgres.projections import read_states
from baton.infrastructure.temporal.attributes import missing_attributes
from baton.infrastructure.temporal.calendars import TemporalCalendars
from baton.infrastructure.wall_clock import clock

SCHEDULE_IDS = "SELECT schedule_id FROM schedule_standings WHERE NOT removed ORDER BY schedule_id"
READ = "look again in a moment, and if they stay so read the worker's log for `schedule_not_kept` and `schedules_not_kept`"
RESUME = "`temporal schedule toggle --unpause --schedule-id {}`"


async def examine_schedules(connection: Connection, client: Client, settings: Settings | None) -> CheckResult:
    """Check that somebody keeps the calendars, and each is as recorded."""
    schedule_ids = await load_ids(connection, SCHEDULE_IDS)
    turns = [tick for tick in agent_schedules(settings) if tick.on] if settings else []
    if not schedule_ids and not turns:
        return ok("No schedule is defined, and no agent has turns.")
    calendars = calendars_of(client)
    facility_code = settings.self_facility_code if settings else "facility"
    lacking = set(await missing_attributes(client))
    differing = await differences(connection, calendars, schedule_ids, facility_code, lacking)
    paused, edited = await differing_turns(calendars, turns)
    differing += edited
    counts = ((len(schedule_ids), "schedule"), (len(turns), "agent"))
    what = " and ".join(f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in counts if number)
    if not await is_led(connection, SCHEDULES_LOCK):
        differences_text = f" (not as recorded: {shorten(differing)})" if differing else ""
        remedy = await remedy_for_unled(connection, "schedules")
        return wrong(f"Nobody keeps the engine's calendars of {what}{differences_text}; {remedy}.")
    if paused:
        resume = " and ".join(map(RESUME.format, paused))
        return warning(f"Somebody paused the turns of {' and '.join(paused)} in the engine; let them go on with {resume}.")
    if differing:
        return warning(f"The engine's calendars differ from the record: {shorten(differing)}; {READ}.")
    return ok(f"{what}, the engine's calendar of each as recorded.")


def calendars_of(client: Client) -> Calendars:
    """Return the calendars of the engine that a client is connected to."""

    @asynccontextmanager
    async def connected_client() -> AsyncIterator[Client]:
        yield client

    return TemporalCalendars(connected_client, clock)


async def differing_turns(calendars: Calendars, turns: list[AgentSchedule]) -> tuple[list[str], list[str]]:
    """Return the agent schedules that somebody paused, and those that the engine does not have as defined, with why."""
    paused, edited = [], []
    for tick in turns:
        view = await calendars.look(tick.entry)
        if view is None or not view.as_defined:
            edited.append(f"{tick.entry.id} ({'missing' if view is None else 'edited'})")
        elif view.paused:
            paused.append(tick.entry.id)
    return paused, edited


async def differences(
    connection: Connection, calendars: Calendars, schedule_ids: list[Any], facility_code: str, lacking: set[str]
) -> list[str]:
    """Return the schedules whose calendar differs from the record, with how; attributes the engine lacks are ignored."""
    found = []
    async for id, _, schedule in read_states(connection, Schedule.__name__, schedule_ids):
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
