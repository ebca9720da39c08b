"""What a firing of a schedule does: it opens a conduct as the schedule's author, and waits for its end. It may be repeated:
every id follows from the schedule and the time, and the streams say what was done."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog

from baton.application.caller import Caller
from baton.application.conduct.heartbeat import Attempt
from baton.application.launches import Launches, TargetLaunch
from baton.application.ports import Clock, Store
from baton.application.unit_of_work import StreamWatch, load_state
from baton.domain.kernel import Command
from baton.domain.procedure.procedure import Procedure
from baton.domain.run.run import Run
from baton.domain.schedule import schedule as schedules
from baton.domain.schedule.messages import DueFiring, FiringVerdict
from baton.domain.schedule.schedule import Schedule
from baton.domain.shared.refusals import Refusal, Unavailable

log = structlog.get_logger()


@dataclass
class Firings:
    store: Store
    launches: Launches
    clock: Clock
    restart_limit: timedelta

    async def open(self, due: DueFiring) -> FiringVerdict:
        """Open the conduct of a firing, unless the schedule does not fire now; a refusal is recorded. Until its conduct is
        open a firing is judged again at every try: none acts late, or for a schedule that is held; where that is held at the
        same moment, so is what was opened."""
        schedule = await load_state(self.store, Schedule, due.schedule_id)
        if schedule is None or not await self._is_asked_for(due):  # the engine may know more than the record
            return FiringVerdict.IDLE
        launch = launch_of(schedule, due, follows=await self._follows(schedule, due))
        if await self.launches.is_open(launch):
            return await self._record_opened(launch, due)
        if await self._is_recorded(due):
            return FiringVerdict.REFUSED
        if not fires(schedule, due):
            if not await self.launches.is_begun(launch):
                return FiringVerdict.IDLE
            return await self._record_refused(due, withdrawal(schedule))
        if (missed := self._missed_refusal(schedule, due)) is not None:
            return await self._record_refused(due, missed)
        try:
            await self.launches.open(launch)
        except Unavailable:
            raise
        except Refusal as refusal:
            return await self._record_refused(due, refusal)
        now = await load_state(self.store, Schedule, due.schedule_id)
        if now is not None and not fires(now, due):
            await self.launches.hold(launch, now.last_status_reason, system_caller(due))
        return await self._record_opened(launch, due)

    async def _follows(self, schedule: Schedule, due: DueFiring) -> bool:
        """Return whether a schedule goes on with other versions than it was defined with: where that is wanted, and its
        author may still define recipes."""
        if schedule.on_change is not schedules.OnChange.FOLLOW:
            return False
        permitted = await self.launches.commands.authorizer.permitted_commands(caller_of(schedule, due))
        return permitted >= schedules.FOLLOWING

    async def _is_asked_for(self, due: DueFiring) -> bool:
        if due.trigger_id is None:
            return True
        row = await self.store.event(due.trigger_id)
        named = (schedules.ScheduleTriggered.__name__, due.schedule_id, due.scheduled_at, due.correlation_id)
        known = row is not None and (row.event_type, row.stream_id, row.occurred_at, row.correlation_id) == named
        if not known:
            log.warning("trigger_not_on_record", schedule_id=str(due.schedule_id), trigger_id=str(due.trigger_id))
        return known

    async def await_end(self, due: DueFiring, attempt: Attempt) -> None:
        """Wait until the conduct of a firing has ended; a held one has."""
        schedule = await load_state(self.store, Schedule, due.schedule_id)
        if schedule is None or not await self.launches.is_begun(launch := launch_of(schedule, due)):
            return  # the record was restored meanwhile
        watched: tuple[Any, UUID] = (Run, due.run_id) if launch.runs else (Procedure, due.procedure_id())
        watch = StreamWatch(self.store, *watched)
        while (await watch.look()).live_conduct_id == due.conduct_id:
            attempt.heartbeat()
            await watch.wait()

    async def _record_opened(self, launch: TargetLaunch, due: DueFiring) -> FiringVerdict:
        what = {"run_id": due.run_id} if launch.runs else {"procedure_id": due.procedure_id()}
        await self._record(schedules.RecordScheduleFiring(firing_id=due.id, scheduled_at=due.scheduled_at, **what), due)
        await self.launches.start_workflow(launch)
        return FiringVerdict.OPENED

    async def _record_refused(self, due: DueFiring, refusal: Refusal) -> FiringVerdict:
        why = {"code": refusal.code, "detail": refusal.detail}
        await self._record(
            schedules.RecordScheduleFiringRefusal(firing_id=due.id, scheduled_at=due.scheduled_at, **why), due
        )
        return FiringVerdict.REFUSED

    async def _record(self, command: Command, due: DueFiring) -> None:
        await self.launches.execute(command, system_caller(due), due.schedule_id, due.id)

    def _missed_refusal(self, schedule: Schedule, due: DueFiring) -> Refusal | None:
        """Return the refusal of a firing that no worker took up in time. A triggered firing counts from its trigger, and may
        wait as long as a conduct that a person asks for."""
        since, limit = due.started_at, timedelta(seconds=schedule.catchup_window)
        if due.trigger_id is not None:
            since, limit = due.scheduled_at, max(limit, self.restart_limit)
        if (late := self.clock() - since) <= limit:
            return None
        limits = f"for {late.total_seconds():.0f} s, and it may wait for {limit.total_seconds():.0f} s"
        detail = f"No worker took the firing up {limits}; see that one runs, or trigger the schedule."
        return schedules.ScheduleFiringMissedError(detail)

    async def _is_recorded(self, due: DueFiring) -> bool:
        async with self.store.session() as session:
            return bool(await session.holders(schedules.FIRINGS, [schedules.firing_key(due.schedule_id, due.id)]))


def fires(schedule: Schedule, due: DueFiring) -> bool:
    """Return whether a schedule fires now: by its calendar while it is Active, on request unless it is Retired."""
    return schedule.status is not schedules.RETIRED if due.trigger_id is not None else schedule.status is schedules.ACTIVE


def withdrawal(schedule: Schedule) -> Refusal:
    """Return the refusal of a firing that was begun before its schedule was held or retired."""
    detail = f"The schedule was {schedule.status} before the firing had opened its conduct; nothing goes on of it."
    return schedules.ScheduleFiringWithdrawnError(detail)


def launch_of(schedule: Schedule, due: DueFiring, *, follows: bool = False) -> TargetLaunch:
    """Return what a firing launches, as the schedule's author."""
    arranged = schedules.arranged_firing(schedule, due.scheduled_at, follows=follows)
    return TargetLaunch(due, arranged, caller_of(schedule, due))


def caller_of(schedule: Schedule, due: DueFiring) -> Caller:
    """Return the caller of a firing: the schedule's author, through the surface of its definition."""
    work = (due.correlation_id or due.id, due.trigger_id or due.id)
    return Caller(schedule.run_as, schedule.surface_id, *work, conduit_id=schedule.conduit_id)


def system_caller(due: DueFiring) -> Caller:
    """Return the service itself as the caller of a firing's records."""
    return Caller.system(due.correlation_id or due.id)
