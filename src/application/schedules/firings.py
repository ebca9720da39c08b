"""What a firing of a schedule does: it opens a conduct as the schedule's author, and waits for its end. It may be repeated:
every id follows from the schedule and the time, and the streams say what was done."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog

from baton.application.commands import Commands, execute_with_retry
from baton.application.conduct.conduct_work import ConductWork
from baton.application.conduct.heartbeat import Attempt
from baton.application.ports import Caller, Clock, Store
from baton.application.service import Service
from baton.application.unit_of_work import StreamWatch, load_state
from baton.domain.kernel import Command
from baton.domain.operation.conduct.messages import MAX_REASON_LENGTH
from baton.domain.operation.launch.arranged_conduct import arranged_command
from baton.domain.operation.launch.targets import ConductPlan, ConductRecipe, RecipeConduct, recipes_of
from baton.domain.operation.procedure.procedure import Procedure
from baton.domain.operation.schedule import schedule as schedules
from baton.domain.operation.schedule.messages import DueFiring, FiringVerdict
from baton.domain.operation.schedule.schedule import Schedule
from baton.domain.run.run import LIVE, AbortRun, Run
from baton.domain.shared.refusals import Refusal, Unavailable

log = structlog.get_logger()
IsDone = Callable[[], Awaitable[bool]]


@dataclass
class Firings:
    store: Store
    commands: Commands
    service: Service
    clock: Clock
    conducts: ConductWork
    run_conducts: ConductWork
    restart_limit: timedelta

    async def open(self, due: DueFiring) -> FiringVerdict:
        """Open the conduct of a firing, unless the schedule does not fire now; a refusal is recorded. Until its conduct is
        open a firing is judged anew at every try: none acts late, or for a schedule that is held."""
        schedule = await load_state(self.store, Schedule, due.schedule_id)
        if schedule is None or not await self._is_asked_for(due):  # the engine may know more than the record
            return FiringVerdict.IDLE
        aim = schedule.aim
        if await self._is_open(due, aim):
            return await self._record_opened(due, aim)
        if await self._is_recorded(due):
            return FiringVerdict.REFUSED
        if not fires(schedule, due):
            if not await self._is_begun(due, aim):
                return FiringVerdict.IDLE
            return await self._record_refused(schedule, due, withdrawal(schedule))
        if (missed := self._missed_refusal(schedule, due)) is not None:
            return await self._record_refused(schedule, due, missed)
        try:
            match aim:
                case ConductRecipe():
                    await self._conduct_recipe(schedule, due, aim)
                case ConductPlan():
                    await self._conduct_plan(schedule, due, aim)
        except Unavailable:
            raise
        except Refusal as refusal:
            return await self._record_refused(schedule, due, refusal)
        return await self._record_opened(due, aim)

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
        if schedule is None or not await self._is_begun(due, schedule.aim):  # the record was restored meanwhile
            return
        runs = isinstance(schedule.aim, ConductPlan)
        watched: tuple[Any, UUID] = (Run, due.run_id) if runs else (Procedure, due.procedure_id())
        watch = StreamWatch(self.store, *watched)
        while (await watch.look()).live_conduct_id == due.conduct_id:
            attempt.heartbeat()
            await watch.wait()

    async def _conduct_recipe(self, schedule: Schedule, due: DueFiring, aim: ConductRecipe) -> None:
        caller = caller_of(schedule, due)
        await self._register(schedule, due, aim)
        conduct = arranged_command(aim.arrangement.stored_form())
        await self._execute(conduct, caller, due.procedure_id(), due.conduct_id, lambda: self._is_open(due, aim))

    async def _conduct_plan(self, schedule: Schedule, due: DueFiring, aim: ConductPlan) -> None:
        caller = caller_of(schedule, due)
        if not await self._is_begun(due, aim):
            start = aim.start(due.scheduled_at, schedule.firing_count + 1)
            await self._execute(start, caller, None, due.run_id, lambda: self._is_begun(due, aim))
        for index, phase in enumerate(aim.phases):
            await self._register(schedule, due, phase, index, due.run_id)
        ids = tuple(due.procedure_id(index) for index in range(len(aim.phases)))
        await self._execute(aim.conduct(ids), caller, due.run_id, due.conduct_id, lambda: self._is_open(due, aim))

    async def _register(
        self, schedule: Schedule, due: DueFiring, what: RecipeConduct, index: int = 0, run_id: UUID | None = None
    ) -> None:
        id = due.procedure_id(index)

        async def is_registered() -> bool:
            return await load_state(self.store, Procedure, id) is not None

        if not await is_registered():
            command = what.registration(due.scheduled_at, schedule.firing_count + 1, run_id)
            await self._execute(command, caller_of(schedule, due), None, id, is_registered)

    async def _execute(
        self, command: Command, caller: Caller, target_id: UUID | None, new_id: UUID, done: IsDone | None = None
    ) -> None:
        try:
            await execute_with_retry(self.commands, command, caller, target_id=target_id, new_id=new_id)
        except Unavailable:
            raise
        except Refusal:
            if done is None or not await done():
                raise

    async def _record_opened(self, due: DueFiring, aim: ConductRecipe | ConductPlan) -> FiringVerdict:
        runs = isinstance(aim, ConductPlan)
        what = {"run_id": due.run_id} if runs else {"procedure_id": due.procedure_id()}
        await self._record(schedules.RecordScheduleFiring(firing_id=due.id, scheduled_at=due.scheduled_at, **what), due)
        await self.service.start_work(self.run_conducts if runs else self.conducts, due.conduct_id)
        return FiringVerdict.OPENED

    async def _record_refused(self, schedule: Schedule, due: DueFiring, refusal: Refusal) -> FiringVerdict:
        await self._abort_run(schedule, due, refusal)
        ids = tuple(due.procedure_id(index) for index in range(len(recipes_of(schedule.aim))))
        refused = schedules.RecordScheduleFiringRefusal(
            firing_id=due.id, scheduled_at=due.scheduled_at, code=refusal.code, detail=refusal.detail, procedure_ids=ids
        )
        await self._record(refused, due)
        return FiringVerdict.REFUSED

    async def _abort_run(self, schedule: Schedule, due: DueFiring, refusal: Refusal) -> None:
        """Abort a run that was started and cannot be conducted, so that nothing goes on of a refused firing."""
        run = await load_state(self.store, Run, due.run_id)
        if run is not None and run.status in LIVE:
            reason = f"The schedule {schedule.name} cannot go on with it: {refusal.detail}"
            await self._execute(AbortRun(reason=reason[:MAX_REASON_LENGTH]), system_caller(due), due.run_id, due.id)

    async def _record(self, command: Command, due: DueFiring) -> None:
        await self._execute(command, system_caller(due), due.schedule_id, due.id)

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

    async def _is_open(self, due: DueFiring, aim: ConductRecipe | ConductPlan) -> bool:
        conducts = self.run_conducts if isinstance(aim, ConductPlan) else self.conducts
        return await conducts.item(due.conduct_id) is not None

    async def _is_begun(self, due: DueFiring, aim: ConductRecipe | ConductPlan) -> bool:
        if isinstance(aim, ConductPlan):
            return await load_state(self.store, Run, due.run_id) is not None
        return await load_state(self.store, Procedure, due.procedure_id()) is not None

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


def caller_of(schedule: Schedule, due: DueFiring) -> Caller:
    """Return the caller of a firing: the schedule's author, through the surface of its definition."""
    work = (due.correlation_id or due.id, due.trigger_id or due.id)
    return Caller(schedule.run_as, schedule.surface_id, *work, conduit_id=schedule.conduit_id)


def system_caller(due: DueFiring) -> Caller:
    """Return the service itself as the caller of a firing's records."""
    return Caller.system(due.correlation_id or due.id)
