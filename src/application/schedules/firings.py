"""What a firing of a schedule does: it opens a conduct as the schedule's author, and waits for its end. It may be repeated:
every id follows from the schedule and the time, and the streams say what was done."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog

from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.conduct.conduct_work import search_attributes
from baton.application.conduct.heartbeat import Attempt
from baton.application.launches import Launches, TargetLaunch
from baton.application.long_work import LongWork, Pace, carries_out, event_memo
from baton.application.ports import EventRow, Job, Store
from baton.application.settings import Settings
from baton.application.unit_of_work import StreamWatch, load_state, require_state
from baton.domain.conduct.arranged_conduct import COMMANDS
from baton.domain.conduct.run_conduct import ConductRun
from baton.domain.kernel import Command
from baton.domain.procedure.procedure import Procedure
from baton.domain.run.run import Run
from baton.domain.schedule import schedule as schedules
from baton.domain.schedule.firing_decision import FiringAction, FiringFacts, fires, next_action
from baton.domain.schedule.messages import DueFiring, FiringOrder, FiringVerdict
from baton.domain.schedule.schedule import Schedule
from baton.domain.shared.refusals import Refusal
from baton.domain.target.targets import ConductPlan

log = structlog.get_logger()


@dataclass
class Firings(LongWork):
    """Firings of schedules: a calendar of the engine starts one, or the event by which a person asked for it."""

    workflow = "schedule-firing"
    reaction = "schedule_triggers"
    wakes_on = (schedules.ScheduleTriggered,)
    store: Store
    commands: Commands
    launches: Launches
    settings: Settings

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        schedule = await require_state(self.store, Schedule, event.stream_id)
        id, at, work = event.event_id, event.occurred_at, event.correlation_id
        order = FiringOrder(schedule_id=event.stream_id, trigger_id=id, triggered_at=at, correlation_id=work)
        attributes, summary = attributes_of(schedule, self.settings.self_facility_code), f"Firing of schedule {schedule.id}"
        return [Job(self.workflow, f"schedule-trigger:{id}", order, attributes, summary, once=True, memo=event_memo(event))]

    @carries_out("open_firing")
    async def open(self, due: DueFiring) -> FiringVerdict:
        """Open the conduct of a firing, unless the schedule does not fire now; a refusal is recorded. Where the schedule is
        held at the same moment, so is what was opened."""
        schedule = await load_state(self.store, Schedule, due.schedule_id)
        if schedule is None:
            return FiringVerdict.IDLE
        launch = launch_of(schedule, due, follows=await self._follows(schedule, due))
        next_firing = next_action(schedule, due, await self._facts(launch, due), self.commands.clock())
        match next_firing.action:
            case FiringAction.REST:
                return FiringVerdict.IDLE
            case FiringAction.ENDED:
                return FiringVerdict.REFUSED
            case FiringAction.REFUSE:
                assert next_firing.refusal is not None, "what is recorded is a refusal"
                return await self._record_refused(due, next_firing.refusal)
            case FiringAction.OPEN if (refusal := await self._open(launch, due)) is not None:
                return await self._record_refused(due, refusal)
        what = {"run_id": due.run_id} if launch.runs else {"procedure_id": due.procedure_id()}
        await self._record(schedules.RecordScheduleFiring, due, **what)
        await self.launches.start_workflow(launch)
        return FiringVerdict.OPENED

    async def _open(self, launch: TargetLaunch, due: DueFiring) -> Refusal | None:
        """Open the conduct, or return what refuses it."""
        refusal = await self.launches.open(launch)
        now = await load_state(self.store, Schedule, due.schedule_id)
        if refusal is None and now is not None and not fires(now, due):
            await self.launches.hold(launch, now.last_status_reason, system_caller(due))
        return refusal

    async def _facts(self, launch: TargetLaunch, due: DueFiring) -> FiringFacts:
        return FiringFacts(
            is_asked_for=await self._is_asked_for(due),
            is_open=await self.launches.is_open(launch),
            is_begun=await self.launches.is_begun(launch),
            is_recorded=await self._is_recorded(due),
            restart_limit=timedelta(seconds=self.settings.conduct_restart_limit_seconds),
        )

    async def _follows(self, schedule: Schedule, due: DueFiring) -> bool:
        """Return whether a schedule continues with other versions than it was defined with: where that is wanted, and its
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

    @carries_out("await_firing", Pace.WAITING)
    async def await_end(self, due: DueFiring, attempt: Attempt) -> None:
        """Wait until the conduct of a firing has ended; a held one has."""
        schedule = await load_state(self.store, Schedule, due.schedule_id)
        if schedule is None or not await self.launches.is_begun(launch := launch_of(schedule, due)):
            return  # the record was restored meanwhile
        watched: tuple[Any, UUID] = (Run, due.run_id) if launch.runs else (Procedure, due.procedure_id())
        watch = StreamWatch(self.store, *watched)
        while (await watch.poll()).live_conduct_id == due.conduct_id:
            attempt.heartbeat()
            await watch.wait()

    async def _record_refused(self, due: DueFiring, refusal: Refusal) -> FiringVerdict:
        await self._record(schedules.RecordScheduleFiringRefusal, due, code=refusal.code, detail=refusal.detail)
        return FiringVerdict.REFUSED

    async def _record(self, kind: type[Command], due: DueFiring, **outcome: Any) -> None:
        command = kind.model_validate({"firing_id": due.id, "scheduled_at": due.scheduled_at, **outcome})
        await self.launches.execute(command, system_caller(due), due.schedule_id, due.id)

    async def _is_recorded(self, due: DueFiring) -> bool:
        async with self.store.session() as session:
            return bool(await session.holders(schedules.FIRINGS, [schedules.firing_key(due.schedule_id, due.id)]))


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


def attributes_of(schedule: Schedule, facility_code: str) -> dict[str, str]:
    """Return what people find firings by in the engine; the command is the one that opens the conduct."""
    aim = schedule.aim
    command = ConductRun if isinstance(aim, ConductPlan) else COMMANDS[aim.arrangement.command]
    return search_attributes(facility_code, command.operation.command_name, schedule.run_as)
