"""The engine fires when the record says, also where the clocks of a zone jump: asked of a real server."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import Client, Schedule, ScheduleActionStartWorkflow, ScheduleSpec, ScheduleState

from baton.application.ports import CalendarEntry, CalendarRefusedError
from baton.application.settings import Settings
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.schedule.calendar import Calendar, CronCalendar, EveryCalendar, next_firings
from baton.infrastructure.temporal.calendars import TemporalCalendars, schedule_spec
from baton.infrastructure.temporal.engine import TemporalEngine, connect
from baton.infrastructure.wall_clock import clock
from tests.support.domain.world import new_id
from tests.support.infrastructure.temporal_namespaces import new_namespace
from tests.support.tables import for_each

CHANGES = {
    "Europe/Berlin": (datetime(2027, 3, 28, 1), datetime(2027, 10, 31, 1)),
    "America/New_York": (datetime(2027, 3, 14, 7), datetime(2027, 11, 7, 6)),
    "Australia/Lord_Howe": (datetime(2027, 10, 2, 15, 30), datetime(2027, 4, 3, 15)),
    "Africa/Cairo": (datetime(2027, 4, 29, 22), datetime(2027, 10, 28, 21)),
    "Asia/Kathmandu": (datetime(2027, 3, 28, 1),),
    "UTC": (datetime(2027, 3, 28, 1),),
}
"""Where clocks jump forward and back, by an hour, by half an hour and at midnight; and where they never do."""
EXPRESSIONS = (
    "30 2 * * *",
    "15 1 * * *",
    "*/30 0-3 * * *",
    "0 * * * *",
    "7-59/13 * * * *",
    "0 0 * * *",
    "45 23 28-31 * *",
    "20 1,2 * * sun",
    "0 2 13 * sat,sun",
    "0 12 * * mon-fri",
)
TEN = 10


@pytest.fixture(scope="module")
async def client(temporal: EmbeddedTemporal) -> Client:
    return await connect(Settings(temporal_address=temporal.address, app_env="test"))


async def firing_times(client: Client, spec: ScheduleSpec, since: datetime) -> Sequence[datetime]:
    """When the engine would fire from a moment on."""
    action = ScheduleActionStartWorkflow("never", id="never", task_queue="nobody")
    later = replace(spec, start_at=since + timedelta(seconds=1))
    handle = await client.create_schedule(
        f"asked-{new_id()}", Schedule(action=action, spec=later, state=ScheduleState(paused=True))
    )
    try:
        return (await handle.describe()).info.next_action_times
    finally:
        await handle.delete()


@pytest.mark.parametrize(
    ("zone", "change"), [(zone, change) for zone, changes in CHANGES.items() for change in changes], ids=str
)
async def test_the_engine_and_the_record_agree_around_a_change_of_the_clocks(
    client: Client, zone: str, change: datetime
) -> None:
    change = change.replace(tzinfo=UTC)
    put = change - timedelta(days=30)

    since = change - timedelta(minutes=90)

    async def agrees(expression: str) -> None:
        calendar = CronCalendar(cron=(expression,))
        found = await firing_times(client, schedule_spec(calendar, zone, 0, put), since)
        assert tuple(found) == next_firings(calendar, zone, since, TEN), expression

    await asyncio.gather(*map(agrees, EXPRESSIONS))


async def test_several_expressions_agree_as_one_does(client: Client) -> None:
    calendar = CronCalendar(cron=EXPRESSIONS)
    since = datetime(2027, 10, 30, 22, tzinfo=UTC)
    spec = schedule_spec(calendar, "Europe/Berlin", 0, since - timedelta(days=3))
    assert tuple(await firing_times(client, spec, since)) == next_firings(calendar, "Europe/Berlin", since, TEN)


@for_each("every", [10, 45, 3600, 7 * 86400])
async def test_intervals_agree(client: Client, every: int) -> None:
    calendar, since = EveryCalendar(every=every), datetime(2027, 3, 28, 0, 0, 3, tzinfo=UTC)
    found = await firing_times(client, schedule_spec(calendar, "UTC", 0, since), since)
    assert tuple(found) == next_firings(calendar, "UTC", since, TEN)


@for_each(
    ("calendar", "zone"),
    [
        (CronCalendar(cron=("0 12 * * *",)), "Europe/Berlin"),
        (CronCalendar(cron=("30 2 * * mon-fri",)), "Europe/Berlin"),
        (CronCalendar(cron=("30 2 * * *",)), "UTC"),
        (CronCalendar(cron=("30 2 * * *",)), "Asia/Kathmandu"),
    ],
)
def test_a_calendar_that_no_change_touches_is_told_as_it_is(calendar: Calendar, zone: str) -> None:
    spec = schedule_spec(calendar, zone, 0, datetime(2027, 10, 1, tzinfo=UTC))
    assert (len(spec.calendars), len(spec.intervals)) == (1, 0)
    assert spec.calendars[0].comment == calendar.cron[0]  # type: ignore[union-attr]


async def test_a_calendar_that_the_engine_does_not_take_is_refused_and_not_taken_for_an_absent_engine(
    temporal: EmbeddedTemporal,
) -> None:
    engine = TemporalEngine(Settings(temporal_address=temporal.address, app_env="test"))
    entry = CalendarEntry("schedule:1", "schedule-firing", EveryCalendar(every=0))
    with pytest.raises(CalendarRefusedError, match="schedule:1"):
        await TemporalCalendars(engine.connected_client, clock).put(entry)


async def test_a_server_without_our_attributes_keeps_calendars_all_the_same(temporal: EmbeddedTemporal) -> None:
    bare = (await new_namespace(temporal.address)).namespace
    settings = Settings(temporal_address=temporal.address, temporal_namespace=bare, app_env="test")
    calendars = TemporalCalendars(TemporalEngine(settings).connected_client, clock)
    attributes = {"BatonFacility": "facility"}
    entry = CalendarEntry(f"schedule:{new_id()}", "schedule-firing", EveryCalendar(every=3600), attributes=attributes)
    await calendars.put(entry)
    view = await calendars.view(entry)
    assert view is not None
    assert view.as_defined
