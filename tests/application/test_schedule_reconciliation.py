"""The engine's calendars kept as the record says: whatever either side does meanwhile, and whenever the keeper dies."""

import asyncio
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from baton.application.agents.agent_schedules import AgentSchedules
from baton.application.ports import CalendarEntry, EngineUnavailableError, EventRow
from baton.application.schedules.firings import Firings
from baton.application.schedules.schedule_reconciliation import AT_ONCE, MOST_SILENCES, entry_of
from baton.application.settings import Settings
from baton.cli.worker import keep_schedules
from baton.domain.kernel import NIL
from baton.domain.schedule.calendar import EveryCalendar
from baton.domain.schedule.messages import FiringOrder
from baton.domain.schedule.schedule import ScheduleEngineState, ScheduleTriggered
from baton.domain.schedule.views import GetSchedule
from baton.infrastructure.background import Supervisor
from tests.support.application.command_paths import new_id
from tests.support.application.schedule_calendars import FACILITY, ScheduleCalendars
from tests.support.waiting import until


@pytest.fixture
def site() -> ScheduleCalendars:
    return ScheduleCalendars()


async def test_what_is_defined_held_resumed_and_retired_reaches_the_engine(site: ScheduleCalendars) -> None:
    id = await site.define_schedule()
    await site.reconciler.reconcile_changed()
    assert site.as_recorded(id)
    for verb, paused in (("hold_schedule", True), ("resume_schedule", False)):
        await site.give(verb, id)
        await site.reconciler.reconcile_changed()
        assert site.as_recorded(id)
        entry = site.entry(id)
        assert entry is not None
        assert entry.paused is paused
        assert site.pending_changes() == []
    await site.give("retire_schedule", id)
    await site.reconciler.reconcile_changed()
    assert site.entry(id) is None
    site.calendars.reachable = False
    await site.reconciler.reconcile_all()
    assert site.pending_changes() == [], "nobody asks the engine for what is gone"


async def test_the_engine_knows_who_fires_and_what(site: ScheduleCalendars) -> None:
    id = await site.define_schedule(overlap="BufferOne", catchup_window=120, jitter=5, time_zone="Europe/Berlin")
    entry = entry_of(site.schedule(id), FACILITY)
    assert (entry.id, entry.workflow, entry.argument) == (f"schedule:{id}", "schedule-firing", FiringOrder(schedule_id=id))
    assert (entry.overlap, entry.catchup_window, entry.jitter, entry.time_zone) == ("BufferOne", 120, 5, "Europe/Berlin")
    assert entry.workflow_id == f"schedule-firing:{id}"
    assert entry.attributes == {
        "BatonFacility": FACILITY,
        "BatonCommand": "ConductProcedure",
        "BatonPrincipal": str(site.people.caller.principal_id),
        "BatonState": "Opened",
    }


async def test_an_engine_that_is_away_is_told_when_it_is_back(site: ScheduleCalendars) -> None:
    id = await site.define_schedule()
    site.calendars.reachable = False
    for asked in (site.reconciler.reconcile_changed(), site.reconciler.reconcile_all()):
        with pytest.raises(EngineUnavailableError):
            await asked
    site.calendars.reachable = True
    await site.reconciler.reconcile_changed()
    assert site.as_recorded(id)


async def test_a_schedule_that_the_engine_does_not_take_keeps_no_other_from_being_told(site: ScheduleCalendars) -> None:
    refused, taken = await site.define_schedule(calendar={"every": 13}), await site.define_schedule()
    await site.reconciler.reconcile_changed()
    assert (site.entry(refused), site.as_recorded(taken)) == (None, True)
    assert [change.schedule_id for change in site.pending_changes()] == [refused], "it is tried again"


async def test_what_the_engine_says_of_a_calendar_that_it_does_not_take_is_in_the_log(site: ScheduleCalendars) -> None:
    id = await site.define_schedule(calendar={"every": 13})
    with capture_logs() as said:
        await site.reconciler.reconcile_all()
    assert said == [{"event": "schedule_not_kept", "log_level": "error", "schedule_id": str(id), "message": "not this one"}]


async def test_a_schedule_of_which_the_engine_tells_nothing_keeps_no_other_from_being_kept(site: ScheduleCalendars) -> None:
    ids = [await site.define_schedule() for _ in range(5)]
    site.calendars.silent = {f"schedule:{ids[0]}", f"schedule:{ids[2]}"}
    for keep in (site.reconciler.reconcile_changed, site.reconciler.reconcile_all):
        with capture_logs() as said, pytest.raises(EngineUnavailableError):
            await keep()
        assert [site.entry(id) is not None for id in ids] == [False, True, False, True, True]
        site.calendars.entries.clear()
        if keep == site.reconciler.reconcile_changed:
            assert {line["schedule_id"] for line in said} == {str(ids[0]), str(ids[2])}


async def test_an_engine_that_is_away_is_not_asked_for_every_schedule_and_the_silent_ones_come_last(
    site: ScheduleCalendars,
) -> None:
    ids = sorted([await site.define_schedule() for _ in range(3 * AT_ONCE)])
    site.calendars.silent = {f"schedule:{id}" for id in ids[: AT_ONCE + MOST_SILENCES]}
    with pytest.raises(EngineUnavailableError):
        await site.reconciler.reconcile_all()
    assert len(site.calendars.asked) < AT_ONCE + MOST_SILENCES
    assert site.calendars.entries == {}
    for _ in range(2):
        with pytest.raises(EngineUnavailableError):
            await site.reconciler.reconcile_all()
    assert len(site.calendars.entries) == len(ids) - len(site.calendars.silent)


async def test_several_schedules_are_compared_at_once_and_each_once_at_a_time(site: ScheduleCalendars) -> None:
    ids = [await site.define_schedule() for _ in range(AT_ONCE)]
    site.calendars.slow = dict.fromkeys((f"schedule:{id}" for id in ids), asyncio.Event())
    keeping = [asyncio.create_task(site.reconciler.reconcile_all()) for _ in range(2)]
    await until(lambda: len(site.calendars.asked) == AT_ONCE)
    assert len(set(site.calendars.asked)) == AT_ONCE
    next(iter(site.calendars.slow.values())).set()
    await asyncio.gather(*keeping)
    assert len(site.calendars.asked) == 2 * AT_ONCE
    assert all(site.as_recorded(id) for id in ids)


async def test_the_worker_tells_of_changes_while_it_still_compares_all(site: ScheduleCalendars) -> None:
    slow = await site.define_schedule()
    await site.reconciler.reconcile_changed()
    site.calendars.slow = {f"schedule:{slow}": asyncio.Event()}
    wired: Any = SimpleNamespace(schedule_reconciler=site.reconciler, agent_schedules=AgentSchedules(site.calendars, ()))
    leading: Any = SimpleNamespace(check=lambda: None)
    async with Supervisor().supervise("schedules", lambda: keep_schedules(wired, leading)):
        await until(lambda: site.calendars.asked.count(f"schedule:{slow}") == 2)
        id = await site.define_schedule()
        await until(lambda: site.entry(id) is not None)


async def test_a_calendar_that_the_record_does_not_know_is_removed(site: ScheduleCalendars) -> None:
    id, other = await site.define_schedule(), await site.define_schedule()
    await site.reconciler.reconcile_all()
    await site.give("retire_schedule", other)
    await site.reconciler.reconcile_all()
    lost = {f"schedule:{new_id()}", f"schedule:{other}"}
    for key in lost:
        await site.calendars.put(replace(entry_of(site.schedule(id), FACILITY), id=key))
    tick = CalendarEntry("run-supervisor", "supervise-runs", EveryCalendar(every=10))
    await site.calendars.put(tick)
    with capture_logs() as said:
        await site.reconciler.remove_unknown()
    assert set(site.calendars.entries) == {f"schedule:{id}", tick.id}
    assert {(line["event"], line["calendar"]) for line in said} == {("unknown_schedule_removed", key) for key in lost}


async def test_a_schedule_that_is_gone_before_its_retirement_is_told_leaves_nothing_to_tell(site: ScheduleCalendars) -> None:
    id = await site.define_schedule()
    await site.reconciler.reconcile_changed()
    await site.give("retire_schedule", id)
    await site.reconciler.reconcile_all()
    await site.reconciler.reconcile_changed()
    assert (site.entry(id), site.pending_changes()) == (None, [])


async def test_a_change_that_comes_while_another_is_told_is_told_next(site: ScheduleCalendars) -> None:
    id = await site.define_schedule()
    seen = site.pending_changes()
    await site.give("hold_schedule", id)
    for change in seen:
        await site.reconciler.reconcile_change(change)
    assert len(site.pending_changes()) == 1


@pytest.mark.parametrize("change", [{"jitter": 7}, {"calendar": EveryCalendar(every=10)}, None])
async def test_an_edit_or_a_deletion_in_the_engine_is_put_right(
    site: ScheduleCalendars, change: dict[str, Any] | None
) -> None:
    id = await site.define_schedule()
    await site.reconciler.reconcile_all()
    if change is None:
        del site.calendars.entries[f"schedule:{id}"]
    else:
        site.somebody(id, **change)
    await site.reconciler.reconcile_all()
    assert site.as_recorded(id)
    assert site.event_types(id) == ["ScheduleDefined"]


async def test_a_pause_is_taken_over_by_the_service_itself_and_once(site: ScheduleCalendars) -> None:
    id = await site.define_schedule()
    await site.reconciler.reconcile_all()
    site.somebody(id, paused=True, note="by hand")
    for _ in range(3):
        await site.reconciler.reconcile_all()
    assert site.event_types(id) == ["ScheduleDefined", "ScheduleHeld"]
    held = site.store.streams["Schedule", id][-1]
    assert (held.principal_id, site.schedule(id).last_status_reason) == (NIL, "paused in the engine")
    site.somebody(id, paused=False)
    await site.reconciler.reconcile_all()
    entry = site.entry(id)
    assert entry is not None
    assert (entry.paused, site.schedule(id).status) == (True, "Held")


async def test_a_resume_that_the_engine_has_not_heard_of_is_not_taken_for_a_pause(site: ScheduleCalendars) -> None:
    id = await site.define_schedule()
    await site.give("hold_schedule", id)
    await site.reconciler.reconcile_all()
    await site.give("resume_schedule", id)
    await site.reconciler.reconcile_all()
    assert site.as_recorded(id)
    assert site.event_types(id) == ["ScheduleDefined", "ScheduleHeld", "ScheduleResumed"]


@pytest.mark.parametrize("when", ["dies_before", "dies_after"])
@pytest.mark.parametrize("at", [1, 2])
async def test_a_keeper_that_dies_while_it_takes_over_a_pause_takes_it_over_once(
    site: ScheduleCalendars, when: str, at: int
) -> None:
    id = await site.define_schedule()
    await site.reconciler.reconcile_all()
    site.somebody(id, paused=True, note="by hand", jitter=3)
    setattr(site.calendars, when, at)
    await site.reconciler.reconcile_all()
    if at == 1:
        assert site.event_types(id) == ["ScheduleDefined"]
        await site.reconciler.reconcile_all()
    await site.give("resume_schedule", id)
    await site.reconciler.reconcile_all()
    assert site.event_types(id) == ["ScheduleDefined", "ScheduleHeld", "ScheduleResumed"]
    assert site.as_recorded(id)


async def test_a_pause_made_after_a_reconciler_died_while_it_reported_a_resume_is_taken_over(
    site: ScheduleCalendars,
) -> None:
    id = await site.define_schedule()
    await site.give("hold_schedule", id)
    await site.reconciler.reconcile_all()
    await site.give("resume_schedule", id)
    site.calendars.dies_after = 1
    await site.reconciler.reconcile_all()
    site.somebody(id, paused=True, note="by hand")
    await site.reconciler.reconcile_all()
    assert site.schedule(id).status == "Held"


async def test_a_pause_made_while_an_edit_is_put_right_is_taken_over(site: ScheduleCalendars) -> None:
    id = await site.define_schedule()
    await site.reconciler.reconcile_all()
    site.somebody(id, jitter=3)
    site.calendars.meanwhile = lambda: site.somebody(id, paused=True, note="by hand")
    await site.reconciler.reconcile_all()
    site.calendars.meanwhile = None
    await site.reconciler.reconcile_all()
    assert site.event_types(id) == ["ScheduleDefined", "ScheduleHeld"]
    assert site.as_recorded(id)


async def test_what_the_engine_counts_is_added_up_also_over_a_calendar_made_anew(site: ScheduleCalendars) -> None:
    id = await site.define_schedule()
    await site.reconciler.reconcile_all()
    key = f"schedule:{id}"
    site.calendars.missed[key], site.calendars.skipped[key] = 2, 1
    await site.reconciler.reconcile_all()
    await site.reconciler.reconcile_all()
    await site.calendars.remove(key)
    await site.reconciler.reconcile_all()
    site.calendars.missed[key] = 3
    await site.reconciler.reconcile_all()
    view = await site.people.ask(GetSchedule(), on=id)
    assert (view.missed_count, view.skipped_count) == (5, 1)


async def test_nothing_is_written_where_nothing_has_changed(site: ScheduleCalendars) -> None:
    id = await site.define_schedule()
    await site.reconciler.reconcile_changed()
    await site.reconciler.reconcile_all()
    before = dict(site.store.rows)
    await site.reconciler.reconcile_all()
    assert site.store.rows == before
    assert [row for row in before.values() if isinstance(row, ScheduleEngineState)] == [ScheduleEngineState(id)]


STEPS_OF_A_LIFE = (
    *("hold_schedule", "resume_schedule"),
    *("pause", "unpause", "edit", "delete", "pause meanwhile"),
    *("keep", "dies_before 1", "dies_before 2", "dies_after 1", "dies_after 2"),
)


@example(["pause", "dies_after 2", "resume_schedule", "unpause", "pause", "keep"])
@given(st.lists(st.sampled_from(STEPS_OF_A_LIFE), max_size=14))
def test_whatever_happens_nobody_s_pause_is_lifted_or_doubled_and_in_the_end_the_engine_is_as_recorded(
    life: list[str],
) -> None:
    asyncio.run(Life(ScheduleCalendars()).live(life))


@dataclass
class Life:
    """Any order of what people do on either side, of looks of the keeper, and of its deaths."""

    site: ScheduleCalendars
    id: UUID = NIL
    pauses: int = 0
    unanswered: bool = False
    """Whether somebody's pause of an Active schedule stands, and the record does not know."""

    async def live(self, life: list[str]) -> None:
        self.id = await self.site.define_schedule()
        await self.site.reconciler.reconcile_all()
        for step in life:
            await self.step(step)
            self.unanswered = self.unanswered and self.status != "Held"
            entry = self.site.entry(self.id)
            assert not self.unanswered or (entry is not None and entry.paused), "a pause was lifted"
        for _ in range(3):
            await self.site.reconciler.reconcile_all()
        assert self.site.as_recorded(self.id)
        assert self.status == "Held" or not self.unanswered
        taken = [row for row in self.site.store.streams["Schedule", self.id] if row.principal_id == NIL]
        assert len(taken) <= self.pauses

    @property
    def status(self) -> str:
        return self.site.schedule(self.id).status

    async def step(self, step: str) -> None:
        calendars, there = self.site.calendars, self.site.entry(self.id) is not None
        match step.split():
            case ["hold_schedule" | "resume_schedule"]:
                if (step, self.status) in (("hold_schedule", "Active"), ("resume_schedule", "Held")):
                    await self.site.give(step, self.id)
            case ["pause"]:
                self.pause()
            case ["unpause"] if there:
                self.site.somebody(self.id, paused=False, note="by hand")
                self.unanswered = False
            case ["edit"] if there:
                self.site.somebody(self.id, jitter=9)
            case ["delete"]:
                calendars.entries.pop(f"schedule:{self.id}", None)
                self.unanswered = False
            case ["pause", "meanwhile"]:
                calendars.meanwhile = self.pause
                await self.site.reconciler.reconcile_all()
                calendars.meanwhile = None
            case ["keep"]:
                await self.site.reconciler.reconcile_all()
            case [("dies_before" | "dies_after") as when, at]:
                setattr(calendars, when, int(at))
                await self.site.reconciler.reconcile_all()
                calendars.dies_before = calendars.dies_after = 0

    def pause(self) -> None:
        entry = self.site.entry(self.id)
        if entry is not None and not entry.paused:
            self.site.somebody(self.id, paused=True, note="by hand")
            self.pauses += 1
            self.unanswered = self.status == "Active"


async def test_a_trigger_is_started_once_under_an_id_that_follows_from_it(site: ScheduleCalendars) -> None:
    id = await site.define_schedule()
    await site.give("trigger_schedule", id)
    row: EventRow = site.store.streams["Schedule", id][-1]
    unused: Any = None
    triggers = Firings(site.store, site.people.commands, unused, Settings(database_url="postgresql://nowhere"))
    assert (triggers.reaction, triggers.wakes_on, triggers.enabled) == ("schedule_triggers", (ScheduleTriggered,), True)
    (job,) = await triggers.jobs(row)
    assert (job.workflow, job.id, job.once) == ("schedule-firing", f"schedule-trigger:{row.event_id}", True)
    assert job.argument == FiringOrder(
        schedule_id=id, trigger_id=row.event_id, triggered_at=row.occurred_at, correlation_id=row.correlation_id
    )
    assert (job.attributes["BatonCommand"], job.summary) == ("ConductProcedure", f"Firing of schedule {id}")
