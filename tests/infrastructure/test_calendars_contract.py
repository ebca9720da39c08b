"""What every engine's calendars promise, asked of those in memory and of Temporal's alike."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.client import Client, ScheduleUpdate, ScheduleUpdateInput

from baton.application.ports import CalendarEntry, Calendars, EngineUnavailableError
from baton.application.settings import Settings
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.schedule.calendar import CronCalendar, EveryCalendar, next_firings
from baton.domain.schedule.messages import FiringOrder
from baton.domain.schedule.schedule import Overlap
from baton.infrastructure.temporal.calendars import TemporalCalendars
from baton.infrastructure.temporal.engine import TemporalEngine, connect
from baton.infrastructure.wall_clock import clock
from baton.testing.ports import MemoryCalendars
from tests.support.domain.world import new_id
from tests.support.infrastructure.epics_servers import free_ports
from tests.support.waiting import until

YEARLY = CronCalendar(cron=("0 3 1 1 *", "30 4 * 7 mon-fri", "0 0 13 * fri"))
FOUND_BY = {"BatonFacility": "facility", "BatonCommand": "ConductProcedure", "BatonState": "Opened"}


@dataclass
class CalendarsUnderTest:
    """Calendars under test, and ways to change them past the service."""

    calendars: Calendars
    unreachable: Calendars
    pause: Callable[[str], Awaitable[None]]
    unpause: Callable[[str], Awaitable[None]]
    edit: Callable[[str], Awaitable[None]]


@pytest.fixture(scope="module")
async def temporal_machine(temporal: EmbeddedTemporal) -> CalendarsUnderTest:
    settings = Settings(temporal_address=temporal.address, app_env="test")
    client = await connect(settings)
    (nowhere,) = free_ports(1)
    away = TemporalEngine(Settings(temporal_address=f"127.0.0.1:{nowhere}", app_env="test"))
    return CalendarsUnderTest(
        TemporalCalendars(TemporalEngine(settings).connected_client, clock),
        TemporalCalendars(away.connected_client, clock),
        lambda id: client.get_schedule_handle(id).pause(note="by hand"),
        lambda id: client.get_schedule_handle(id).unpause(note="by hand"),
        lambda id: edit_calendar(client, id),
    )


async def edit_calendar(client: Client, id: str) -> None:
    """Somebody makes a calendar fire at other times."""

    def change(known: ScheduleUpdateInput) -> ScheduleUpdate:
        known.description.schedule.spec.jitter = timedelta(seconds=7)
        return ScheduleUpdate(schedule=known.description.schedule)

    await client.get_schedule_handle(id).update(change)


@pytest.fixture
def memory_machine() -> CalendarsUnderTest:
    calendars, away = MemoryCalendars(clock), MemoryCalendars(clock)
    away.reachable = False

    async def change_entry(id: str, **fields: Any) -> None:
        calendars.entries[id] = replace(calendars.entries[id], **fields)

    return CalendarsUnderTest(
        calendars,
        away,
        lambda id: change_entry(id, paused=True, note="by hand"),
        lambda id: change_entry(id, paused=False, note="by hand"),
        lambda id: change_entry(id, jitter=7),
    )


@pytest.fixture(params=["memory_machine", "temporal_machine"])
def machine(request: pytest.FixtureRequest) -> CalendarsUnderTest:
    found: CalendarsUnderTest = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def entry() -> CalendarEntry:
    """A schedule as the record would have it."""
    id = new_id()
    return CalendarEntry(
        id=f"schedule:{id}",
        workflow="schedule-firing",
        calendar=YEARLY,
        argument=FiringOrder(schedule_id=id),
        time_zone="Europe/Berlin",
        overlap=Overlap.BUFFER_ONE,
        catchup_window=90,
        note="kept",
        attributes=FOUND_BY,
        summary="Firing of a schedule",
    )


@pytest.fixture
def tick() -> CalendarEntry:
    """What an agent is woken by: a workflow that is told nothing, every so many seconds."""
    return CalendarEntry(
        id=f"run-supervisor-{new_id()}",
        workflow="supervise-runs",
        calendar=EveryCalendar(every=3600),
        overlap=Overlap.SKIP,
        catchup_window=2,
    )


async def test_what_was_put_is_there_as_it_was_put(
    machine: CalendarsUnderTest, entry: CalendarEntry, tick: CalendarEntry
) -> None:
    for one in (entry, tick):
        assert await machine.calendars.view(one) is None
        await machine.calendars.put(one)
        view = await machine.calendars.view(one)
        assert view is not None
        assert (view.as_defined, view.paused, view.missed_count, view.skipped_count) == (True, False, 0, 0)
        coming = next_firings(one.calendar, one.time_zone, datetime.now(UTC), 3)
        assert view.next_times[:3] == coming
        await machine.calendars.remove(one.id)


@pytest.mark.parametrize(
    "change",
    [
        {"calendar": EveryCalendar(every=7200)},
        {"calendar": CronCalendar(cron=("0 3 1 2 *",))},
        {"time_zone": "America/New_York"},
        {"overlap": Overlap.ALLOW_ALL},
        {"catchup_window": 91},
        {"jitter": 5},
        {"argument": FiringOrder(schedule_id=new_id())},
        {"workflow": "another"},
        {"attributes": {**FOUND_BY, "BatonCommand": "ConductRun"}},
        {"summary": "another"},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_whatever_differs_is_seen_and_put_right(
    machine: CalendarsUnderTest, entry: CalendarEntry, change: dict[str, Any]
) -> None:
    await machine.calendars.put(replace(entry, **change))
    view = await machine.calendars.view(entry)
    assert view is not None
    assert not view.as_defined
    await machine.calendars.put(entry)
    assert (await calendar_view(machine, entry)).as_defined
    await machine.calendars.remove(entry.id)


async def calendar_view(machine: CalendarsUnderTest, entry: CalendarEntry) -> Any:
    view = await machine.calendars.view(entry)
    assert view is not None
    return view


async def test_an_edit_in_the_engine_is_seen_and_put_right(machine: CalendarsUnderTest, entry: CalendarEntry) -> None:
    await machine.calendars.put(entry)
    await machine.edit(entry.id)
    assert not (await calendar_view(machine, entry)).as_defined
    await machine.calendars.put(entry)
    assert (await calendar_view(machine, entry)).as_defined
    await machine.calendars.remove(entry.id)


async def test_a_pause_is_told_by_itself_and_is_no_change_of_what_was_put(
    machine: CalendarsUnderTest, entry: CalendarEntry
) -> None:
    await machine.calendars.put(entry)
    await machine.pause(entry.id)
    view = await calendar_view(machine, entry)
    assert (view.as_defined, view.paused, view.note) == (True, True, "by hand")
    await machine.calendars.put(replace(entry, jitter=3))
    view = await calendar_view(machine, replace(entry, jitter=3))
    assert (view.as_defined, view.paused, view.note) == (True, True, "by hand"), "it is not ours to lift"
    await machine.calendars.put(replace(entry, lifts=frozenset({"by hand"})))
    view = await calendar_view(machine, entry)
    assert (view.as_defined, view.paused, view.note) == (True, False, "kept")
    await machine.calendars.put(replace(entry, paused=True, note="ours"))
    view = await calendar_view(machine, entry)
    assert (view.paused, view.note) == (True, "ours")
    await machine.unpause(entry.id)
    assert not (await calendar_view(machine, entry)).paused
    await machine.calendars.remove(entry.id)


async def test_what_is_removed_is_gone_and_may_be_removed_again(machine: CalendarsUnderTest, entry: CalendarEntry) -> None:
    await machine.calendars.put(entry)
    await machine.calendars.remove(entry.id)
    assert await machine.calendars.view(entry) is None
    await machine.calendars.remove(entry.id)
    await machine.calendars.put(entry)
    assert (await calendar_view(machine, entry)).as_defined, "deleted, it comes back as recorded"
    await machine.calendars.remove(entry.id)


async def test_entries_are_listed_by_how_their_ids_begin(
    machine: CalendarsUnderTest, entry: CalendarEntry, tick: CalendarEntry
) -> None:
    for one in (entry, tick):
        await machine.calendars.put(one)

    async def is_listed() -> bool:
        return entry.id in await machine.calendars.list_ids("schedule:")

    await until(is_listed)
    assert tick.id not in await machine.calendars.list_ids("schedule:")
    for one in (entry, tick):
        await machine.calendars.remove(one.id)


async def test_nothing_is_done_without_an_engine(machine: CalendarsUnderTest, entry: CalendarEntry) -> None:
    for asked in (
        machine.unreachable.put(entry),
        machine.unreachable.view(entry),
        machine.unreachable.remove(entry.id),
        machine.unreachable.list_ids("schedule:"),
    ):
        with pytest.raises(EngineUnavailableError):
            await asked
