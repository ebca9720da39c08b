"""Whether the engine's calendars are as the schedules on record say, and agents have their turns."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from baton.cli.doctor.findings import Finding, ok, warning, wrong
from baton.cli.doctor.processes import how_to_lead
from baton.cli.doctor.unfinished_work import ids, listed
from baton.infrastructure.postgres.pool import Connection

if TYPE_CHECKING:
    from temporalio.client import Client

    from baton.application.agents.agent_schedules import AgentSchedule
    from baton.application.schedules.calendars import Calendars
    from baton.application.settings import Settings

KEPT = "SELECT schedule_id FROM schedule_standings WHERE NOT removed ORDER BY schedule_id"
READ = "look again in a moment, and if they stay so read the worker's log for `schedule_not_kept` and `schedules_not_kept`"
RESUME = "`temporal schedule toggle --unpause --schedule-id {}`"


async def examine_schedules(connection: Connection, client: "Client", settings: "Settings | None") -> Finding:
    """Whether somebody keeps the calendars, and each is as it should be."""
    from baton.application.agents.agent_schedules import agent_schedules
    from baton.infrastructure.postgres.leadership import SCHEDULES_LOCK, is_led
    from baton.infrastructure.temporal.attributes import missing

    kept = await ids(connection, KEPT)
    turns = [tick for tick in agent_schedules(settings) if tick.on] if settings else []
    if not kept and not turns:
        return ok("No schedule is defined, and no agent has turns.")
    calendars = calendars_of(client)
    facility_code = settings.self_facility_code if settings else "facility"
    lacking = set(await missing(client))
    differing = await differences(connection, calendars, kept, facility_code, lacking)
    paused, untold = await turns_amiss(calendars, turns)
    differing += untold
    what = " and ".join(counted(number, noun) for number, noun in ((len(kept), "schedule"), (len(turns), "agent")) if number)
    if not await is_led(connection, SCHEDULES_LOCK):
        told = f" (not as recorded: {listed(differing)})" if differing else ""
        remedy = await how_to_lead(connection, "schedules")
        return wrong(f"Nobody keeps the engine's calendars of {what}{told}; {remedy}.")
    if paused:
        resume = " and ".join(map(RESUME.format, paused))
        return warning(f"Somebody paused the turns of {' and '.join(paused)} in the engine; let them go on with {resume}.")
    if differing:
        return warning(f"The engine's calendars differ from the record: {listed(differing)}; {READ}.")
    return ok(f"{what}, the engine's calendar of each as recorded.")


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def calendars_of(client: "Client") -> "Calendars":
    """The calendars behind a client that answers."""
    from baton.infrastructure.runtime import clock
    from baton.infrastructure.temporal.calendars import TemporalCalendars

    @asynccontextmanager
    async def reaching() -> "AsyncIterator[Client]":
        yield client

    return TemporalCalendars(reaching, clock)


async def turns_amiss(calendars: "Calendars", turns: "list[AgentSchedule]") -> tuple[list[str], list[str]]:
    """The agents whose turns somebody paused, and those whose turns the engine does not have as they are, with why."""
    paused, untold = [], []
    for tick in turns:
        view = await calendars.look(tick.entry)
        if view is None or not view.as_defined:
            untold.append(f"{tick.entry.id} ({'missing' if view is None else 'edited'})")
        elif view.paused:
            paused.append(tick.entry.id)
    return paused, untold


async def differences(
    connection: Connection, calendars: "Calendars", kept: list[Any], facility_code: str, lacking: set[str]
) -> list[str]:
    """The schedules of which the engine has something else than the record, and what; attributes it lacks do not count."""
    from baton.application.schedules.schedule_reconciliation import entry_of
    from baton.domain.operation.schedule.schedule import RETIRED, Schedule
    from baton.infrastructure.postgres.projections import folded_streams

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
