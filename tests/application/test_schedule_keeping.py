"""The engine's calendars kept as the record says: whatever either side does meanwhile, and whenever the keeper dies."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from application.calendars import CalendarEntry, CalendarRefusedError
from application.ports import EngineUnavailableError, EventRow
from application.schedule_keeping import ScheduleKeeper, entry_of
from application.schedule_triggers import ScheduleTriggers
from domain.kernel import NIL
from domain.operation.calendar import EveryCalendar
from domain.operation.firing import FiringOrder
from domain.operation.schedule import DefineSchedule, Schedule, ScheduleTriggered
from domain.operation.schedule_standing import ScheduleChange, ScheduleStanding
from domain.operation.schedule_views import GetSchedule
from domain.recipe.capability import CODE_PREFIX, DefineCapability
from domain.recipe.recipe import DefineRecipe
from infrastructure.memory.calendars import MemoryCalendars
from infrastructure.memory.store import MemoryStore
from tests.application.calling import Calling, new_id
from tests.domain.lives import command
from tests.domain.operation.conducts import STEPS
from tests.domain.operation.schedules import NIGHTLY, darks

FACILITY = "facility"


class Died(Exception):
    """The keeper's process ended here."""


class MortalCalendars(MemoryCalendars):
    """Calendars whose keeper may die just before or just after it tells them something."""

    dies_before = dies_after = False

    async def put(self, entry: CalendarEntry) -> None:
        if self.dies_before:
            raise Died
        if entry.summary is not None and entry.calendar == EveryCalendar(every=13):
            raise CalendarRefusedError("not this one")
        await super().put(entry)
        if self.dies_after:
            raise Died


@dataclass
class Office:
    """Schedules on record and the engine's calendars of them, in memory."""

    people: Calling = field(default_factory=lambda: Calling(MemoryStore()))
    calendars: MortalCalendars = field(init=False)
    keeper: ScheduleKeeper = field(init=False)

    def __post_init__(self) -> None:
        self.calendars = MortalCalendars(self.people.clock)
        self.keeper = ScheduleKeeper(self.store, self.people.commands, self.calendars, self.people.clock, new_id, FACILITY)

    @property
    def store(self) -> Any:
        return self.people.store

    async def defined(self, **fields: Any) -> UUID:
        shapes = {"required_affordances": [], "executor_shapes": ["PROCEDURE"]}
        realised = DefineCapability(code=f"{CODE_PREFIX}{new_id()}", name="Darks", **shapes)
        asked = {"name": "darks", "capability_id": await self.people.create(realised), "steps": STEPS}
        target = darks(await self.people.create(DefineRecipe(**asked)))
        return await self.people.create(DefineSchedule(**{"name": "Darks", "calendar": NIGHTLY, "target": target, **fields}))

    async def give(self, verb: str, id: UUID) -> None:
        fields = {"reason": "beam dump"} if verb in ("hold_schedule", "retire_schedule") else {}
        await self.people.do(command(verb, fields), on=id)

    def somebody(self, id: UUID, **changes: Any) -> None:
        """Somebody changes the calendar in the engine."""
        key = f"schedule:{id}"
        self.calendars.entries[key] = replace(self.calendars.entries[key], **changes)

    def entry(self, id: UUID) -> CalendarEntry | None:
        return self.calendars.entries.get(f"schedule:{id}")

    def schedule(self, id: UUID) -> Schedule:
        state: Schedule = self.store.state(("Schedule", id))
        return state

    def happened(self, id: UUID) -> list[str]:
        return [row.event_type for row in self.store.streams["Schedule", id]]

    def pending(self) -> list[Any]:
        return [row for row in self.store.rows.values() if isinstance(row, ScheduleChange)]

    def as_recorded(self, id: UUID) -> bool:
        """Whether the engine has what the record says; what people note there is theirs."""
        entry, recorded = self.entry(id), entry_of(self.schedule(id), FACILITY)
        return entry is not None and replace(entry, note=recorded.note) == recorded


@pytest.fixture
def office() -> Office:
    return Office()


async def test_what_is_defined_held_resumed_and_retired_reaches_the_engine(office: Office) -> None:
    id = await office.defined()
    await office.keeper.keep_changed()
    assert office.as_recorded(id)
    for verb, paused in (("hold_schedule", True), ("resume_schedule", False)):
        await office.give(verb, id)
        await office.keeper.keep_changed()
        assert office.as_recorded(id)
        entry = office.entry(id)
        assert entry is not None
        assert entry.paused is paused
        assert office.pending() == []
    await office.give("retire_schedule", id)
    await office.keeper.keep_changed()
    assert office.entry(id) is None
    office.calendars.reachable = False
    await office.keeper.keep_all()
    assert office.pending() == [], "nobody asks the engine for what is gone"


async def test_the_engine_is_told_of_who_fires_and_what(office: Office) -> None:
    id = await office.defined(overlap="BufferOne", catchup_window=120, jitter=5, time_zone="Europe/Berlin")
    entry = entry_of(office.schedule(id), FACILITY)
    assert (entry.id, entry.workflow, entry.argument) == (f"schedule:{id}", "schedule-firing", FiringOrder(schedule_id=id))
    assert (entry.overlap, entry.catchup_window, entry.jitter, entry.time_zone) == ("BufferOne", 120, 5, "Europe/Berlin")
    assert entry.workflow_id == f"schedule-firing:{id}"
    assert entry.attributes == {
        "BatonFacility": FACILITY,
        "BatonCommand": "ConductProcedure",
        "BatonPrincipal": str(office.people.caller.principal_id),
        "BatonState": "Opened",
    }


async def test_an_engine_that_is_away_is_told_when_it_is_back(office: Office) -> None:
    id = await office.defined()
    office.calendars.reachable = False
    for asked in (office.keeper.keep_changed(), office.keeper.keep_all()):
        with pytest.raises(EngineUnavailableError):
            await asked
    office.calendars.reachable = True
    await office.keeper.keep_changed()
    assert office.as_recorded(id)


async def test_a_schedule_that_the_engine_does_not_take_keeps_no_other_from_being_told(office: Office) -> None:
    refused, taken = await office.defined(calendar={"every": 13}), await office.defined()
    await office.keeper.keep_changed()
    assert (office.entry(refused), office.as_recorded(taken)) == (None, True)
    assert [change.schedule_id for change in office.pending()] == [refused], "it is tried again"


async def test_a_change_that_comes_while_another_is_told_is_told_next(office: Office) -> None:
    id = await office.defined()
    seen = office.pending()
    await office.give("hold_schedule", id)
    for change in seen:
        await office.keeper._told(change)
    assert len(office.pending()) == 1


@pytest.mark.parametrize("change", [{"jitter": 7}, {"calendar": EveryCalendar(every=10)}, None])
async def test_an_edit_or_a_deletion_in_the_engine_is_put_right(office: Office, change: dict[str, Any] | None) -> None:
    id = await office.defined()
    await office.keeper.keep_all()
    if change is None:
        del office.calendars.entries[f"schedule:{id}"]
    else:
        office.somebody(id, **change)
    await office.keeper.keep_all()
    assert office.as_recorded(id)
    assert office.happened(id) == ["ScheduleDefined"]


async def test_a_pause_is_taken_over_by_the_service_itself_and_once(office: Office) -> None:
    id = await office.defined()
    await office.keeper.keep_all()
    office.somebody(id, paused=True, note="by hand")
    for _ in range(3):
        await office.keeper.keep_all()
    assert office.happened(id) == ["ScheduleDefined", "ScheduleHeld"]
    held = office.store.streams["Schedule", id][-1]
    assert (held.principal_id, office.schedule(id).last_status_reason) == (NIL, "paused in the engine")
    office.somebody(id, paused=False)
    await office.keeper.keep_all()
    entry = office.entry(id)
    assert entry is not None
    assert (entry.paused, office.schedule(id).status) == (True, "Held")


async def test_a_resume_that_the_engine_has_not_heard_of_is_not_taken_for_a_pause(office: Office) -> None:
    id = await office.defined()
    await office.give("hold_schedule", id)
    await office.keeper.keep_all()
    await office.give("resume_schedule", id)
    await office.keeper.keep_all()
    assert office.as_recorded(id)
    assert office.happened(id) == ["ScheduleDefined", "ScheduleHeld", "ScheduleResumed"]


@pytest.mark.parametrize("when", ["dies_before", "dies_after"])
async def test_a_keeper_that_dies_while_it_takes_over_a_pause_takes_over_no_other(office: Office, when: str) -> None:
    id = await office.defined()
    await office.keeper.keep_all()
    office.somebody(id, paused=True, note="by hand", jitter=3)
    setattr(office.calendars, when, True)
    await office.keeper.keep_all()
    setattr(office.calendars, when, False)
    await office.give("resume_schedule", id)
    await office.keeper.keep_all()
    assert office.happened(id) == ["ScheduleDefined", "ScheduleHeld", "ScheduleResumed"]
    assert office.as_recorded(id)


async def test_what_the_engine_counts_is_added_up_also_over_a_calendar_made_anew(office: Office) -> None:
    id = await office.defined()
    await office.keeper.keep_all()
    key = f"schedule:{id}"
    office.calendars.missed[key], office.calendars.skipped[key] = 2, 1
    await office.keeper.keep_all()
    await office.keeper.keep_all()
    await office.calendars.remove(key)
    await office.keeper.keep_all()
    office.calendars.missed[key] = 3
    await office.keeper.keep_all()
    view = await office.people.ask(GetSchedule(), on=id)
    assert (view.missed_count, view.skipped_count) == (5, 1)


async def test_nothing_is_written_where_nothing_has_changed(office: Office) -> None:
    id = await office.defined()
    await office.keeper.keep_changed()
    await office.keeper.keep_all()
    before = dict(office.store.rows)
    await office.keeper.keep_all()
    assert office.store.rows == before
    assert [row for row in before.values() if isinstance(row, ScheduleStanding)] == [ScheduleStanding(id)]


STEPS_OF_A_LIFE = (
    "hold_schedule",
    "resume_schedule",
    "pause",
    "unpause",
    "edit",
    "delete",
    "keep",
    "die before",
    "die after",
)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(STEPS_OF_A_LIFE), max_size=14))
def test_whatever_happens_in_the_end_the_engine_is_as_recorded_and_nobody_s_pause_is_doubled(life: list[str]) -> None:
    asyncio.run(lived(life))


async def lived(life: list[str]) -> None:
    """Any order of what people do on either side, of looks of the keeper, and of its deaths."""
    office = Office()
    id = await office.defined()
    await office.keeper.keep_all()
    pauses = 0
    for step in life:
        entry, status = office.entry(id), office.schedule(id).status
        if (step, status) in (("hold_schedule", "Active"), ("resume_schedule", "Held")):
            await office.give(step, id)
        elif step == "pause" and entry is not None and not entry.paused:
            office.somebody(id, paused=True)
            pauses += 1
        elif step == "unpause" and entry is not None:
            office.somebody(id, paused=False)
        elif step == "edit" and entry is not None:
            office.somebody(id, jitter=9)
        elif step == "delete":
            office.calendars.entries.pop(f"schedule:{id}", None)
        elif step in ("keep", "die before", "die after"):
            office.calendars.dies_before, office.calendars.dies_after = step == "die before", step == "die after"
            await office.keeper.keep_all()
            office.calendars.dies_before = office.calendars.dies_after = False
    for _ in range(2):
        await office.keeper.keep_all()
    assert office.as_recorded(id)
    taken = [row for row in office.store.streams["Schedule", id] if row.principal_id == NIL]
    assert len(taken) <= pauses


async def test_a_trigger_is_started_once_under_an_id_that_follows_from_it(office: Office) -> None:
    id = await office.defined()
    await office.give("trigger_schedule", id)
    row: EventRow = office.store.streams["Schedule", id][-1]
    triggers = ScheduleTriggers(office.store, FACILITY)
    assert (triggers.name, triggers.events, await triggers.enabled()) == ("schedule_triggers", (ScheduleTriggered,), True)
    (job,) = await triggers.jobs(row)
    assert (job.workflow, job.id, job.once) == ("schedule-firing", f"schedule-trigger:{row.event_id}", True)
    assert job.argument == FiringOrder(
        schedule_id=id, trigger_id=row.event_id, triggered_at=row.occurred_at, correlation_id=row.correlation_id
    )
    assert (job.attributes["BatonCommand"], job.summary) == ("ConductProcedure", f"Firing of schedule {id}")
