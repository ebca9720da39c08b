"""Makes the engine's calendars match the record, and takes over one thing only: a pause that somebody made in the engine.
The note of such a pause is marked first, then the schedule held, so none is lifted unanswered or answered twice."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from uuid import UUID
from weakref import WeakValueDictionary

import structlog

from baton.application import ports
from baton.application.caller import Caller
from baton.application.commands import Commands, execute_with_retry, system_batch
from baton.application.ports import CalendarEntry, Calendars, CalendarView
from baton.application.schedules.firings import Firings, attributes_of
from baton.application.telemetry import error_location
from baton.application.unit_of_work import load_row, require_state
from baton.domain.schedule import schedule as schedules
from baton.domain.schedule.messages import FiringOrder
from baton.domain.schedule.schedule import Schedule, ScheduleEngineState
from baton.domain.shared.refusals import Unavailable
from baton.domain.shared.writes import Drop, Put

log = structlog.get_logger()
PREFIX = "schedule:"
ACTIVE_NOTE = "Kept by Baton as its record says. A pause made here holds the schedule; only resume_schedule resumes it."
HELD_NOTE = "Held on Baton's record; only resume_schedule resumes it."
TAKEN_NOTE = "This pause is being taken over by Baton, which holds the schedule; only resume_schedule resumes it."
OURS = frozenset({HELD_NOTE, TAKEN_NOTE})  # notes of pauses that the record has answered, or is about to answer
AT_ONCE = 8  # schedules that are compared at the same time
MOST_SILENCES = 3  # schedules in a row of which the engine says nothing, until it counts as unreachable


@dataclass
class ScheduleReconciler:
    """Keeps the engine's calendars as the record says; one process at a time does."""

    commands: Commands
    calendars: Calendars
    facility_code: str
    _locks: WeakValueDictionary[UUID, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    _silent: set[UUID] = field(default_factory=set)  # those the engine last said nothing of

    async def reconcile_changed(self) -> None:
        """Put what was changed on the record into the engine; raise EngineUnavailableError, then it is tried again."""
        async with self.commands.store.session() as session:
            changed = await session.records(schedules.ScheduleChange, {})
        changes = {change.schedule_id: change for change in changed}
        await self._each(changes, lambda id: self.reconcile_change(changes[id]))

    async def reconcile_all(self) -> None:
        """Compare every schedule that is not removed with the engine; raise EngineUnavailableError."""
        await self._each(await self._schedule_ids(), self.reconcile)

    async def remove_unknown(self) -> None:
        """Remove calendars that the record does not know: it may have been restored from an older backup."""
        listed = await self.calendars.list_ids(PREFIX)
        for id in sorted(set(listed) - {f"{PREFIX}{id}" for id in await self._schedule_ids()}):
            log.warning("unknown_schedule_removed", calendar=id)
            await self.calendars.remove(id)

    async def reconcile_change(self, change: schedules.ScheduleChange) -> None:
        """Reconcile a schedule that was changed, and drop the change unless another one came meanwhile."""
        await self.reconcile(change.schedule_id)
        done = {"schedule_id": change.schedule_id, "change_id": change.change_id}
        await self._write(Drop(schedules.ScheduleChange, done))

    async def _each(self, ids: Iterable[UUID], reconcile: Callable[[UUID], Awaitable[None]]) -> None:
        """Reconcile several at once, silent ones last, so that none delays another; raise what the last silence raised."""
        waiting, in_a_row = iter(sorted(ids, key=self._silent.__contains__)), 0
        silence: Unavailable | None = None

        async def work() -> None:
            nonlocal silence, in_a_row
            for id in waiting:
                if (error := await self._one(reconcile(id), id)) is None:
                    in_a_row = 0
                    continue
                silence, in_a_row = error, in_a_row + 1
                if in_a_row >= MOST_SILENCES:
                    return

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work())
        if silence is not None:
            raise silence

    async def _one(self, reconciliation: Awaitable[None], schedule_id: UUID) -> Unavailable | None:
        try:
            await reconciliation
        except Unavailable as error:
            if schedule_id not in self._silent:
                log.warning("schedule_not_reached", schedule_id=str(schedule_id), error=type(error).__name__)
            self._silent.add(schedule_id)
            return error
        except ports.CalendarRefusedError as error:
            log.error("schedule_not_kept", schedule_id=str(schedule_id), message=str(error))
        except Exception as error:
            log.error("schedule_not_kept", schedule_id=str(schedule_id), **error_location(error))
        self._silent.discard(schedule_id)
        return None

    async def reconcile(self, schedule_id: UUID) -> None:
        """Make the engine match one schedule, and record what the engine says of it; of each, once at a time."""
        async with self._locks.setdefault(schedule_id, asyncio.Lock()):
            await self._reconcile(schedule_id)

    async def _reconcile(self, schedule_id: UUID) -> None:
        schedule, known = await self._load(schedule_id)
        if schedule.status is schedules.RETIRED:
            await self.calendars.remove(f"{PREFIX}{schedule_id}")
            await self._save(known, replace(known, removed=True))
            return
        view = await self.calendars.view(entry_of(schedule, self.facility_code))
        if view is not None and view.paused and schedule.status is schedules.ACTIVE and is_unanswered(view, known):
            await self._take_over(schedule, known, view)
            schedule, known = await self._load(schedule_id)
        entry = entry_of(schedule, self.facility_code)
        if view is None or not view.as_defined or view.paused != entry.paused or (entry.paused and view.note != HELD_NOTE):
            await self.calendars.put(entry)
        await self._save(known, replace(counted_on(known, view), paused=False))

    async def _take_over(self, schedule: Schedule, known: ScheduleEngineState, view: CalendarView) -> None:
        log.info("schedule_paused_in_the_engine", schedule_id=str(schedule.id))
        if view.note not in OURS:
            await self._save(known, replace(known, paused=False))
            await self.calendars.put(replace(entry_of(schedule, self.facility_code), paused=True, note=TAKEN_NOTE))
        caller = Caller.system(self.commands.new_id())
        await execute_with_retry(self.commands, schedules.TakeOverSchedulePause(), caller, target_id=schedule.id)

    async def _schedule_ids(self) -> tuple[UUID, ...]:
        async with self.commands.store.session() as session:
            rows = await session.records(ScheduleEngineState, {"removed": False})
        return tuple(row.schedule_id for row in rows)

    async def _load(self, schedule_id: UUID) -> tuple[Schedule, ScheduleEngineState]:
        schedule = await require_state(self.commands.store, Schedule, schedule_id)
        row = await load_row(self.commands.store, ScheduleEngineState, schedule_id=schedule_id)
        assert row is not None, "every schedule has a row"
        return schedule, row

    async def _save(self, known: ScheduleEngineState, now: ScheduleEngineState) -> None:
        if now != known:
            await self._write(Put(now))

    async def _write(self, row: Put | Drop) -> None:
        async with self.commands.store.session() as session:
            await session.append(system_batch("KeepSchedule", self.commands.clock, self.commands.new_id, row))


def entry_of(schedule: Schedule, facility_code: str) -> CalendarEntry:
    """Return a schedule as the engine is to keep it."""
    return CalendarEntry(
        id=f"{PREFIX}{schedule.id}",
        workflow=Firings.workflow,
        calendar=schedule.calendar,
        argument=FiringOrder(schedule_id=schedule.id),
        time_zone=schedule.time_zone,
        overlap=schedule.overlap,
        catchup_window=schedule.catchup_window,
        jitter=schedule.jitter,
        paused=schedule.status is schedules.HELD,
        note=HELD_NOTE if schedule.status is schedules.HELD else ACTIVE_NOTE,
        lifts=OURS,
        attributes=attributes_of(schedule, facility_code),
        summary=f"Firing of schedule {schedule.id}",
    )


def is_unanswered(view: CalendarView, known: ScheduleEngineState) -> bool:
    """Return whether somebody made a pause that the record does not know of."""
    return view.note not in OURS or (view.note == TAKEN_NOTE and not known.paused)


def counted_on(known: ScheduleEngineState, view: CalendarView | None) -> ScheduleEngineState:
    """Return the row with what the engine has counted since; a calendar that was made again counts from zero."""
    missed, skipped = (0, 0) if view is None else (view.missed_count, view.skipped_count)
    newly_missed = missed - known.missed_seen if missed >= known.missed_seen else missed
    newly_skipped = skipped - known.skipped_seen if skipped >= known.skipped_seen else skipped
    counted = replace(known, missed_seen=missed, skipped_seen=skipped, missed_count=known.missed_count + newly_missed)
    return replace(counted, skipped_count=known.skipped_count + newly_skipped)
