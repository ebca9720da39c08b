"""What a firing of a schedule does: it opens a conduct as whoever defined the schedule, and waits for its end.

Everything here may be repeated: every id follows from the schedule and the time the firing was due, and the streams say
what was done already. Each command is authorized anew.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog

from baton.application.commands import Commands, execute_with_retry
from baton.application.conduct.conduct_work import ConductWork
from baton.application.conduct.heartbeat import Attempt
from baton.application.ports import Caller, Clock, Store
from baton.application.record_reader import FIRST_LOOK, StreamWatch, load_state, wait_longer
from baton.application.service import Service
from baton.domain.kernel import Command
from baton.domain.operation.conduct.messages import MAX_REASON_LENGTH
from baton.domain.operation.procedure.procedure import Procedure
from baton.domain.operation.schedule.arranged_conduct import arranged
from baton.domain.operation.schedule.messages import DueFiring, FiringVerdict
from baton.domain.operation.schedule.schedule import (
    ACTIVE,
    FIRINGS,
    RETIRED,
    RecordScheduleFiring,
    RecordScheduleFiringRefusal,
    Schedule,
    ScheduleFiringMissedError,
    ScheduleFiringWithdrawnError,
    ScheduleTriggered,
    firing_key,
)
from baton.domain.operation.schedule.schedule_action import ConductPlan, ConductRecipe, RecipeConduct, recipes_of
from baton.domain.run.endings import AbortRun
from baton.domain.run.run import LIVE, Run
from baton.domain.shared.refusals import Refusal, Unavailable

log = structlog.get_logger()


class Firings:
    """Acts for firings through the command path."""

    def __init__(
        self,
        store: Store,
        commands: Commands,
        service: Service,
        clock: Clock,
        conducts: ConductWork,
        run_conducts: ConductWork,
        restart_limit: timedelta,
    ) -> None:
        self._store = store
        self._commands = commands
        self._service = service
        self._clock = clock
        self._conducts = conducts
        self._run_conducts = run_conducts
        self._restart_limit = restart_limit

    async def open(self, due: DueFiring) -> FiringVerdict:
        """Open the conduct of a firing, unless the schedule does not fire now; what refuses it is put on record.

        Until its conduct is open a firing is judged anew at every try: none acts late, or for a schedule that is held.
        """
        schedule = await load_state(self._store, Schedule, due.schedule_id)
        if schedule is None or not await self._is_asked_for(due):  # the engine may know more than the record
            return FiringVerdict.IDLE
        aim = schedule.aim
        if await self._is_open(due, aim):
            return await self._opened(due, aim)
        if await self._is_recorded(due):
            return FiringVerdict.REFUSED
        if not fires(schedule, due):
            if not await self._is_begun(due, aim):
                return FiringVerdict.IDLE
            return await self._refused(schedule, due, withdrawn(schedule))
        if (missed := self._missed(schedule, due)) is not None:
            return await self._refused(schedule, due, missed)
        try:
            match aim:
                case ConductRecipe():
                    await self._conduct_recipe(schedule, due, aim)
                case ConductPlan():
                    await self._conduct_plan(schedule, due, aim)
        except Unavailable:
            raise
        except Refusal as refusal:
            return await self._refused(schedule, due, refusal)
        return await self._opened(due, aim)

    async def _is_asked_for(self, due: DueFiring) -> bool:
        """Whether a firing that somebody is said to have triggered is on the schedule's stream, as it is said to be."""
        if due.trigger_id is None:
            return True
        row = await self._store.event(due.trigger_id)
        known = row is not None and (row.event_type, row.stream_id, row.occurred_at, row.correlation_id) == (
            ScheduleTriggered.__name__,
            due.schedule_id,
            due.scheduled_at,
            due.correlation_id,
        )
        if not known:
            log.warning("trigger_not_on_record", schedule_id=str(due.schedule_id), trigger_id=str(due.trigger_id))
        return known

    async def await_end(self, due: DueFiring, attempt: Attempt) -> None:
        """Wait until the conduct of a firing has come to its end; one that is held has."""
        schedule = await load_state(self._store, Schedule, due.schedule_id)
        if schedule is None or not await self._is_begun(due, schedule.aim):  # the record was restored meanwhile
            return
        runs = isinstance(schedule.aim, ConductPlan)
        watch: StreamWatch[Any] = (
            StreamWatch(self._store, Run, due.run_id) if runs else StreamWatch(self._store, Procedure, due.procedure_id())
        )
        pause = FIRST_LOOK
        while (await watch.look()).live_conduct_id == due.conduct_id:
            attempt.alive()
            pause = await wait_longer(pause)

    async def _conduct_recipe(self, schedule: Schedule, due: DueFiring, aim: ConductRecipe) -> None:
        caller = caller_of(schedule, due)
        await self._register(schedule, due, aim, caller)
        conduct = arranged(aim.arrangement.written())
        await self._give(conduct, caller, due.procedure_id(), due.conduct_id, lambda: self._is_open(due, aim))

    async def _conduct_plan(self, schedule: Schedule, due: DueFiring, aim: ConductPlan) -> None:
        caller = caller_of(schedule, due)
        if not await self._is_begun(due, aim):
            start = aim.start(due.scheduled_at, schedule.firing_count + 1)
            await self._give(start, caller, None, due.run_id, lambda: self._is_begun(due, aim))
        for index, phase in enumerate(aim.phases):
            await self._register(schedule, due, phase, caller, index, due.run_id)
        ids = tuple(due.procedure_id(index) for index in range(len(aim.phases)))
        await self._give(aim.conduct(ids), caller, due.run_id, due.conduct_id, lambda: self._is_open(due, aim))

    async def _register(
        self,
        schedule: Schedule,
        due: DueFiring,
        what: RecipeConduct,
        caller: Caller,
        index: int = 0,
        run_id: UUID | None = None,
    ) -> None:
        """Register a procedure, once."""
        id = due.procedure_id(index)

        async def registered() -> bool:
            return await load_state(self._store, Procedure, id) is not None

        if not await registered():
            command = what.registration(due.scheduled_at, schedule.firing_count + 1, run_id)
            await self._give(command, caller, None, id, registered)

    async def _give(
        self,
        command: Command,
        caller: Caller,
        target_id: UUID | None,
        new_id: UUID,
        done: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """Give a command until nobody else comes first; raises what refuses it, unless another try has done it."""
        try:
            await execute_with_retry(self._commands, command, caller, target_id=target_id, new_id=new_id)
        except Unavailable:
            raise
        except Refusal:
            if done is None or not await done():
                raise

    async def _opened(self, due: DueFiring, aim: ConductRecipe | ConductPlan) -> FiringVerdict:
        """Put on record what the firing set going, and have the engine take it up."""
        runs = isinstance(aim, ConductPlan)
        what = {"run_id": due.run_id} if runs else {"procedure_id": due.procedure_id()}
        await self._record(RecordScheduleFiring(firing_id=due.id, scheduled_at=due.scheduled_at, **what), due)
        await self._service.wake(self._run_conducts if runs else self._conducts, due.conduct_id)
        return FiringVerdict.OPENED

    async def _refused(self, schedule: Schedule, due: DueFiring, refusal: Refusal) -> FiringVerdict:
        """Put on record why a firing came to nothing, once nothing of it goes on."""
        await self._give_up_run(schedule, due, refusal)
        registered = tuple(due.procedure_id(index) for index in range(len(recipes_of(schedule.aim))))
        refused = RecordScheduleFiringRefusal(
            firing_id=due.id,
            scheduled_at=due.scheduled_at,
            code=refusal.code,
            detail=refusal.detail,
            procedure_ids=registered,
        )
        await self._record(refused, due)
        return FiringVerdict.REFUSED

    async def _give_up_run(self, schedule: Schedule, due: DueFiring, refusal: Refusal) -> None:
        """Abort a run that was started and cannot be conducted, so that nothing goes on of a firing that was refused."""
        run = await load_state(self._store, Run, due.run_id)
        if run is not None and run.status in LIVE:
            reason = f"The schedule {schedule.name} cannot go on with it: {refusal.detail}"
            await self._give(AbortRun(reason=reason[:MAX_REASON_LENGTH]), system(due), due.run_id, due.id)

    async def _record(self, command: Command, due: DueFiring) -> None:
        await self._give(command, system(due), due.schedule_id, due.id)

    def _missed(self, schedule: Schedule, due: DueFiring) -> Refusal | None:
        """The refusal of a firing that nobody took up in time.

        What a person asked for waits since they did, and as long as a conduct that they ask for.
        """
        since, limit = due.started_at, timedelta(seconds=schedule.catchup_window)
        if due.trigger_id is not None:
            since, limit = due.scheduled_at, max(limit, self._restart_limit)
        late = self._clock() - since
        if late <= limit:
            return None
        return ScheduleFiringMissedError(
            f"No worker took the firing up for {late.total_seconds():.0f} s, and it may wait for "
            f"{limit.total_seconds():.0f} s; see that one runs, or trigger the schedule."
        )

    async def _is_open(self, due: DueFiring, aim: ConductRecipe | ConductPlan) -> bool:
        conducts = self._run_conducts if isinstance(aim, ConductPlan) else self._conducts
        return await conducts.item(due.conduct_id) is not None

    async def _is_begun(self, due: DueFiring, aim: ConductRecipe | ConductPlan) -> bool:
        if isinstance(aim, ConductPlan):
            return await load_state(self._store, Run, due.run_id) is not None
        return await load_state(self._store, Procedure, due.procedure_id()) is not None

    async def _is_recorded(self, due: DueFiring) -> bool:
        async with self._store.session() as session:
            return bool(await session.holders(FIRINGS, [firing_key(due.schedule_id, due.id)]))


def fires(schedule: Schedule, due: DueFiring) -> bool:
    """Whether a schedule fires as it stands: by its calendar while it is Active, on request unless it is Retired."""
    return schedule.status is not RETIRED if due.trigger_id is not None else schedule.status is ACTIVE


def withdrawn(schedule: Schedule) -> Refusal:
    """The refusal of a firing that was begun before its schedule was held or retired."""
    return ScheduleFiringWithdrawnError(
        f"The schedule was {schedule.status} before the firing had opened its conduct; nothing goes on of it."
    )


def caller_of(schedule: Schedule, due: DueFiring) -> Caller:
    """As whom a firing acts: as whoever defined the schedule, through what they defined it."""
    return Caller(
        principal_id=schedule.run_as,
        surface_id=schedule.surface_id,
        conduit_id=schedule.conduit_id,
        correlation_id=due.correlation_id or due.id,
        causation_id=due.trigger_id or due.id,
    )


def system(due: DueFiring) -> Caller:
    """The service itself, in the matter of a firing."""
    return Caller.system(due.correlation_id or due.id)
