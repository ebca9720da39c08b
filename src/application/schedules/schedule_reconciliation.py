"""The record and the engine's calendars compared: the stream is the authority, and the engine is made to match it.

Only one thing is taken over from the engine: that somebody paused a schedule there, which then is Held on the record too.
Whose a pause is its note tells. Somebody's is first marked in the engine as taken over, then the schedule is held on the
record, and then the pause becomes ours: so none is lifted unanswered and none is answered twice, wherever the keeper dies.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from uuid import UUID
from weakref import WeakValueDictionary

import structlog

from baton.application.commands import Commands, execute_with_retry
from baton.application.ports import Batch, Caller, Clock, IdGenerator, Store
from baton.application.record_reader import load_row, require_state
from baton.application.schedules.calendars import CalendarEntry, CalendarRefusedError, Calendars, CalendarView
from baton.application.telemetry import error_location
from baton.domain.kernel import Call
from baton.domain.operation.conduct.progress import ConductPhase
from baton.domain.operation.schedule.arranged_conduct import COMMANDS
from baton.domain.operation.schedule.calendar_state import ScheduleChange, ScheduleStanding
from baton.domain.operation.schedule.messages import FiringOrder
from baton.domain.operation.schedule.schedule import ACTIVE, HELD, RETIRED, Schedule, TakeOverSchedulePause
from baton.domain.operation.schedule.schedule_action import ConductPlan
from baton.domain.run.conduct import ConductRun
from baton.domain.shared.refusals import Unavailable
from baton.domain.shared.writes import Drop, Put

log = structlog.get_logger()

PREFIX = "schedule:"
FIRING = "schedule-firing"
"""The workflow of a firing."""
ACTIVE_NOTE = "Kept by Baton as its record says. A pause made here holds the schedule; only resume_schedule resumes it."
HELD_NOTE = "Held on Baton's record; only resume_schedule resumes it."
TAKEN_NOTE = "This pause is being taken over by Baton, which holds the schedule; only resume_schedule resumes it."
OURS = frozenset({HELD_NOTE, TAKEN_NOTE})
"""Notes of pauses that the record has answered, or is about to."""
AT_ONCE = 8
"""Schedules that are compared at the same time."""
MOST_SILENCES = 3
"""Schedules in a row of which the engine tells nothing, until it counts as away."""


class ScheduleReconciler:
    """Keeps the engine's calendars as the record says; one at a time does."""

    def __init__(
        self, store: Store, commands: Commands, calendars: Calendars, clock: Clock, new_id: IdGenerator, facility_code: str
    ) -> None:
        self._store = store
        self._commands = commands
        self._calendars = calendars
        self._clock = clock
        self._new_id = new_id
        self._facility_code = facility_code
        self._turns: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()
        self._silent: set[UUID] = set()

    async def keep_changed(self) -> None:
        """Tell the engine what was changed on the record; raises EngineUnavailableError, and is then done later."""
        async with self._store.session() as session:
            changed = await session.records(ScheduleChange, {})
        changes = {change.schedule_id: change for change in changed}
        await self._each(changes, lambda id: self._told(changes[id]))

    async def keep_all(self) -> None:
        """Compare every schedule that is not gone with the engine; raises EngineUnavailableError."""
        await self._each(await self._kept(), self.keep)

    async def remove_unknown(self) -> None:
        """Remove what the record does not know: it may be restored from before the engine was told."""
        listed = await self._calendars.listed(PREFIX)
        known = {f"{PREFIX}{id}" for id in await self._kept()}
        for id in listed:
            if id not in known:
                log.warning("unknown_schedule_removed", calendar=id)
                await self._calendars.remove(id)

    async def _told(self, change: ScheduleChange) -> None:
        """Keep a schedule that was changed; a change that comes meanwhile is told next."""
        await self.keep(change.schedule_id)
        seen = {"schedule_id": change.schedule_id, "change_id": change.change_id}
        await self._write(Batch(self._call(), "KeepSchedule", drops=[Drop(ScheduleChange, seen)]))

    async def _each(self, ids: Iterable[UUID], keeping: Callable[[UUID], Awaitable[None]]) -> None:
        """Keep several at once; one that the engine does not take, or tells nothing of, keeps no other waiting.

        Those of which it told nothing come last the next time. Raises what the last of them raised.
        """
        waiting = iter(sorted(ids, key=self._silent.__contains__))
        silence: Unavailable | None = None
        in_a_row = 0

        async def work() -> None:
            nonlocal silence, in_a_row
            for id in waiting:
                if (error := await self._one(keeping(id), id)) is None:
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

    async def _one(self, keeping: Awaitable[None], schedule_id: UUID) -> Unavailable | None:
        """Keep one; answers why nothing could be learnt of it, where that was so."""
        try:
            await keeping
        except Unavailable as error:
            if schedule_id not in self._silent:
                log.warning("schedule_not_reached", schedule_id=str(schedule_id), error=type(error).__name__)
            self._silent.add(schedule_id)
            return error
        except CalendarRefusedError as error:
            log.error("schedule_not_kept", schedule_id=str(schedule_id), said=str(error))
        except Exception as error:
            log.error("schedule_not_kept", schedule_id=str(schedule_id), **error_location(error))
        self._silent.discard(schedule_id)
        return None

    async def keep(self, schedule_id: UUID) -> None:
        """Make the engine match one schedule, and note what it says of it; of each, once at a time."""
        turn = self._turns.setdefault(schedule_id, asyncio.Lock())
        async with turn:
            await self._keep(schedule_id)

    async def _keep(self, schedule_id: UUID) -> None:
        schedule, known = await self._known(schedule_id)
        if schedule.status is RETIRED:
            await self._calendars.remove(f"{PREFIX}{schedule_id}")
            await self._note(known, replace(known, removed=True))
            return
        view = await self._calendars.look(entry_of(schedule, self._facility_code))
        if view is not None and view.paused and schedule.status is ACTIVE and is_unanswered(view, known):
            await self._take_over(schedule, known, view)
            schedule, known = await self._known(schedule_id)
        entry = entry_of(schedule, self._facility_code)
        if view is None or not view.as_defined or view.paused != entry.paused or (entry.paused and view.note != HELD_NOTE):
            await self._calendars.put(entry)
        await self._note(known, replace(counted_on(known, view), paused=False))

    async def _take_over(self, schedule: Schedule, known: ScheduleStanding, view: CalendarView) -> None:
        """Hold a schedule that was paused in the engine, once."""
        log.info("schedule_paused_in_the_engine", schedule_id=str(schedule.id))
        if view.note not in OURS:
            await self._note(known, replace(known, paused=False))
            await self._calendars.put(replace(entry_of(schedule, self._facility_code), paused=True, note=TAKEN_NOTE))
        caller = Caller.system(self._new_id())
        await execute_with_retry(self._commands, TakeOverSchedulePause(), caller, target_id=schedule.id)

    async def _kept(self) -> tuple[UUID, ...]:
        """Every schedule that the engine may have."""
        async with self._store.session() as session:
            standings = await session.records(ScheduleStanding, {"removed": False})
        return tuple(kept.schedule_id for kept in standings)

    async def _known(self, schedule_id: UUID) -> tuple[Schedule, ScheduleStanding]:
        """A schedule, and what the engine said of it last."""
        schedule = await require_state(self._store, Schedule, schedule_id)
        kept = await load_row(self._store, ScheduleStanding, schedule_id=schedule_id)
        assert kept is not None, "what is kept is on record"
        return schedule, kept

    async def _note(self, known: ScheduleStanding, now: ScheduleStanding) -> None:
        """Write where a schedule stands, unless that is known."""
        if now != known:
            await self._write(Batch(self._call(), "KeepSchedule", puts=[Put(now)]))

    async def _write(self, batch: Batch) -> None:
        async with self._store.session() as session:
            await session.append(batch)

    def _call(self) -> Call:
        return Caller.system(self._new_id()).call(self._clock(), self._new_id())


def entry_of(schedule: Schedule, facility_code: str) -> CalendarEntry:
    """A schedule as the engine is to keep it."""
    return CalendarEntry(
        id=f"{PREFIX}{schedule.id}",
        workflow=FIRING,
        calendar=schedule.calendar,
        argument=FiringOrder(schedule_id=schedule.id),
        time_zone=schedule.time_zone,
        overlap=schedule.overlap,
        catchup_window=schedule.catchup_window,
        jitter=schedule.jitter,
        paused=schedule.status is HELD,
        note=HELD_NOTE if schedule.status is HELD else ACTIVE_NOTE,
        lifts=OURS,
        attributes=attributes_of(schedule, facility_code),
        summary=summary_of(schedule),
    )


def is_unanswered(view: CalendarView, known: ScheduleStanding) -> bool:
    """Whether a pause is somebody's that the record does not know of."""
    return view.note not in OURS or (view.note == TAKEN_NOTE and not known.paused)


def attributes_of(schedule: Schedule, facility_code: str) -> dict[str, str]:
    """What people find firings by in the engine; the command is the one that opens the conduct."""
    aim = schedule.aim
    command = ConductRun if isinstance(aim, ConductPlan) else COMMANDS[aim.arrangement.command]
    return {
        "BatonFacility": facility_code,
        "BatonCommand": command.operation.command_name,
        "BatonPrincipal": str(schedule.run_as),
        "BatonState": ConductPhase.OPENED.value,
    }


def summary_of(schedule: Schedule) -> str:
    """What people read of a firing in the engine."""
    return f"Firing of schedule {schedule.id}"


def counted_on(known: ScheduleStanding, view: CalendarView | None) -> ScheduleStanding:
    """A standing with what the engine has counted since it was last looked at; a calendar made anew counts from nought."""
    missed, skipped = (0, 0) if view is None else (view.missed_count, view.skipped_count)
    return replace(
        known,
        missed_count=known.missed_count + since(known.missed_seen, missed),
        skipped_count=known.skipped_count + since(known.skipped_seen, skipped),
        missed_seen=missed,
        skipped_seen=skipped,
    )


def since(seen: int, now: int) -> int:
    return now - seen if now >= seen else now
