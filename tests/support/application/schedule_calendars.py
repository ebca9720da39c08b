"""Schedules on record and the engine's calendars of them, in memory, with ways to change either."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from baton.application.ports import CalendarEntry, CalendarRefusedError, CalendarView, Clock, EngineUnavailableError
from baton.application.schedules.schedule_reconciliation import ScheduleReconciler, entry_of
from baton.domain.recipe.capability import CODE_PREFIX, DefineCapability
from baton.domain.recipe.recipe import DefineRecipe
from baton.domain.schedule.calendar import EveryCalendar
from baton.domain.schedule.schedule import DefineSchedule, Schedule, ScheduleChange
from baton.testing.ports import MemoryCalendars
from baton.testing.store import MemoryStore
from tests.support.application.command_paths import CommandCaller, new_id
from tests.support.domain.conducts import STEPS
from tests.support.domain.lifecycle_table import command
from tests.support.domain.schedules import NIGHTLY, darks

FACILITY = "facility"


class ReconcilerDied(Exception):
    """The keeper's process ended here."""


class FailingCalendars(MemoryCalendars):
    """Calendars whose keeper may die just before or just after it tells them something, and that may be slow to answer."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.dies_before = self.dies_after = 0
        """At which of the next times that it tells them something."""
        self.meanwhile: Callable[[], None] | None = None
        """What somebody does there between the keeper's look and what it tells next."""
        self.silent: set[str] = set()
        self.asked: list[str] = []
        self.slow: dict[str, asyncio.Event] = {}

    async def view(self, entry: CalendarEntry) -> CalendarView | None:
        self.asked.append(entry.id)
        if entry.id in self.silent:
            raise EngineUnavailableError("no answer")
        if entry.id in self.slow:
            await self.slow[entry.id].wait()
        return await super().view(entry)

    async def put(self, entry: CalendarEntry) -> None:
        self.dies_before -= 1
        self.dies_after -= 1
        if self.dies_before == 0:
            raise ReconcilerDied
        if entry.summary is not None and entry.calendar == EveryCalendar(every=13):
            raise CalendarRefusedError("not this one")
        if self.meanwhile is not None:
            self.meanwhile()
        await super().put(entry)
        if self.dies_after == 0:
            raise ReconcilerDied


@dataclass
class ScheduleCalendars:
    """Schedules on record and the engine's calendars of them, in memory."""

    people: CommandCaller = field(default_factory=lambda: CommandCaller(MemoryStore()))
    calendars: FailingCalendars = field(init=False)
    keeper: ScheduleReconciler = field(init=False)

    def __post_init__(self) -> None:
        self.calendars = FailingCalendars(self.people.clock)
        self.reconciler = ScheduleReconciler(self.people.commands, self.calendars, FACILITY)

    @property
    def store(self) -> Any:
        return self.people.store

    async def define_schedule(self, **fields: Any) -> UUID:
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

    def event_types(self, id: UUID) -> list[str]:
        return [row.event_type for row in self.store.streams["Schedule", id]]

    def pending_changes(self) -> list[Any]:
        return [row for row in self.store.rows.values() if isinstance(row, ScheduleChange)]

    def as_recorded(self, id: UUID) -> bool:
        """Whether the engine has what the record says; what people note there is theirs."""
        entry, recorded = self.entry(id), entry_of(self.schedule(id), FACILITY)
        return entry is not None and replace(entry, note=recorded.note) == recorded
