"""A turn of a queue judges the first item, puts its start on the record, opens its conduct as the actor who added it,
and waits for its end. The record leads: everything may be repeated, killed anywhere, or run twice at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import structlog

from baton.application.caller import Caller
from baton.application.commands import Commands, execute_with_retry
from baton.application.conduct.heartbeat import Attempt
from baton.application.launches import Launches, TargetLaunch
from baton.application.ports import EventRow, Job, Store, WorkItem, WorkProgress
from baton.application.reactions import event_memo
from baton.application.unit_of_work import StreamWatch, load_events, load_state
from baton.domain.conduct.progress import ConductPhase
from baton.domain.enclosure.enclosure import Enclosure
from baton.domain.equipment.asset import Asset
from baton.domain.kernel import Command, Event, State
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import Procedure
from baton.domain.queue import item_records as records
from baton.domain.queue import queue as queues
from baton.domain.queue.forecast import judge_item
from baton.domain.queue.items import QueueItem
from baton.domain.queue.messages import QUEUE, ItemRequest, QueueOrder, TurnReport, TurnVerdict, queue_workflow_id
from baton.domain.queue.queue import ACTIVE, HELD, Queue
from baton.domain.recipe.method import Method
from baton.domain.recipe.plan import Plan
from baton.domain.run import run as runs
from baton.domain.run.run import Run
from baton.domain.safety.clearance import Clearance
from baton.domain.shared.refusals import Refusal, Unavailable
from baton.domain.subject.subject import Subject
from baton.domain.supply.supply import Supply

log = structlog.get_logger()


@dataclass(frozen=True)
class QueueTurns:
    store: Store
    commands: Commands
    launches: Launches

    async def take(self, order: QueueOrder) -> TurnReport:
        """Open the item whose turn it is, or say why there is none; its start is on the queue's record before anything else
        is touched, so a move, an edit or a removal at the same time comes before it or is refused."""
        queue = await load_state(self.store, Queue, order.queue_id)
        if queue is None:  # the engine may know more than the record
            return TurnReport(verdict=TurnVerdict.IDLE)
        if queue.running is not None:
            return await self._open(queue, queue.running)
        if queue.status is not ACTIVE or not queue.ahead:
            return TurnReport(verdict=TurnVerdict.IDLE)
        item = queue.ahead[0]
        if item.not_before is not None and item.not_before > self.commands.clock():
            return TurnReport(verdict=TurnVerdict.EARLY, item_id=item.item_id, until=item.not_before)
        if (refusal := await self._judge(queue, item)) is not None:
            return await self._record_refusal(queue, item, refusal)
        try:
            await self._record(queue, item, records.StartQueueItem)
        except records.StartQueueItem.Cannot:
            return TurnReport(verdict=TurnVerdict.AGAIN)
        return await self.take(order)

    async def _judge(self, queue: Queue, item: QueueItem) -> Refusal | None:
        """Return the refusal that would meet an item now, as who added it, or None."""
        caller = caller_of(item)
        call = caller.call(self.commands.clock(), item.launch.id)
        judgement = await self.commands.read(judge_item(item, None, call), caller)
        for refusal in judgement.report.refusals:
            if isinstance(refusal, Unavailable):
                raise refusal
        return judgement.refusal

    async def _open(self, queue: Queue, item: QueueItem) -> TurnReport:
        """Open the conduct of an item that is on record as started, unless the queue was held before that; one that is held
        at the same moment has it held, too."""
        launch = launch_of(queue, item)
        if not await self.launches.is_open(launch):
            try:
                refuse_held(queue)
                await self.launches.open(launch)
            except Unavailable:
                raise
            except Refusal as refusal:
                return await self._record_refusal(queue, item, refusal)
            now = await load_state(self.store, Queue, queue.id)
            if now is not None and now.status is HELD:
                await self.launches.hold(launch, now.last_status_reason, system_caller(item))
        await self.launches.start_workflow(launch)
        return TurnReport(verdict=TurnVerdict.OPENED, item_id=item.item_id, attempt=item.attempt)

    async def _record_refusal(self, queue: Queue, item: QueueItem, refusal: Refusal) -> TurnReport:
        """Record what keeps an item from starting: it waits for what may pass, and is refused for anything else."""
        kind = records.BlockQueueItem if refusal.passing else records.RefuseQueueItem
        await self._record(queue, item, kind, code=refusal.code, detail=refusal.detail)
        verdict = TurnVerdict.BLOCKED if refusal.passing else TurnVerdict.AGAIN
        return TurnReport(verdict=verdict, item_id=item.item_id, attempt=item.attempt)

    async def await_end(self, request: ItemRequest, attempt: Attempt) -> None:
        """Wait until the run or procedure of an item has ended, and record that; a held one has not ended."""
        queue = await load_state(self.store, Queue, request.queue_id)
        item = None if queue is None else queue.running
        if queue is None or item is None or (item.item_id, item.attempt) != (request.item_id, request.attempt):
            return  # its end is on record
        if not await self.launches.is_begun(launch_of(queue, item)):
            return  # the record was restored meanwhile
        watch = EndWatch(self.store, item)
        while not await watch.has_ended():
            attempt.heartbeat()
            await watch.wait()
        await self._record(queue, item, records.EndQueueItem, **await watch.failure())

    async def _record(self, queue: Queue, item: QueueItem, kind: type[Command], **fields: object) -> None:
        """Record something about an attempt at an item, as the service itself."""
        command = kind.model_validate({"item_id": item.item_id, "attempt": item.attempt, **fields})
        await execute_with_retry(self.commands, command, system_caller(item), target_id=queue.id)


def refuse_held(queue: Queue) -> None:
    """Refuse to open the conduct of an item where the queue is held; the item waits until somebody resumes it."""
    if queue.status is HELD:
        detail = "The queue was held before the item had opened its conduct; it starts when somebody resumes the queue."
        raise queues.QueueItemWithdrawnError(detail)


def launch_of(queue: Queue, item: QueueItem) -> TargetLaunch:
    """Return what an item launches, as who added it."""
    return TargetLaunch(item.launch, records.arranged_item(queue, item), caller_of(item))


def caller_of(item: QueueItem) -> Caller:
    """Return the caller of an item's commands: who added it or gave it its target, through the surface that came by."""
    return Caller(item.added_by, item.surface_id, item.launch.id, item.item_id, conduit_id=item.conduit_id)


def system_caller(item: QueueItem) -> Caller:
    """Return the service itself as the caller of an item's records."""
    return Caller.system(item.launch.id)


class EndWatch:
    """Watches the run or procedure of an item until it has ended, and its conduct with it."""

    def __init__(self, store: Store, item: QueueItem) -> None:
        self._store = store
        kinds: tuple[Any, UUID] = (Run, item.launch.run_id) if item.run_id else (Procedure, item.launch.procedure_id())
        self._kind, self._id = kinds
        self._watch: StreamWatch[Any] = StreamWatch(store, *kinds)
        self._state: Any = None

    async def has_ended(self) -> bool:
        """Return whether it has ended; a run that is stopped or aborted has when its phases have been closed too."""
        self._state = await self._watch.look()
        return self._state.status in ENDED[self._kind] and self._state.live_conduct_id is None

    async def wait(self) -> None:
        await self._watch.wait()

    async def failure(self) -> dict[str, str]:
        """Return the code and the sentence of an end that is no completion; nothing of one that is."""
        if self._state.status is ENDED[self._kind][0]:
            return {}
        code = f"{self._kind.__name__}{self._state.status.value}"
        if self._kind is Run:
            ends: list[Any] = await load_events(self._store, self._id, runs.RunStopped, runs.RunAborted, runs.RunTruncated)
            return {"code": code, "detail": ends[-1].reason}
        return {"code": code, "detail": self._state.last_status_reason or code}


ENDED: Mapping[Any, tuple[Any, ...]] = {
    Run: (runs.COMPLETED, runs.STOPPED, runs.ABORTED, runs.TRUNCATED),
    Procedure: (procedures.COMPLETED, procedures.ABORTED, procedures.TRUNCATED),
}  # The states in which a run or a procedure has ended; the first is that of a completed one.


def queue_job(queue: Queue, facility_code: str, **options: Any) -> Job:
    """Return the workflow of a queue."""
    attributes = {"BatonFacility": facility_code, "BatonAsset": str(queue.asset_id), "BatonState": ConductPhase.OPENED.value}
    order, summary = QueueOrder(queue_id=queue.id), f"Queue of asset {queue.asset_id}"
    return Job(QUEUE, queue_workflow_id(queue.id), order, attributes, summary, **options)


@dataclass
class QueueWork:
    """Queues as work that the worker starts where the engine does not know of it; nobody waits for an answer."""

    store: Store
    facility_code: str
    workflow: str = QUEUE

    async def job(self, work_id: UUID) -> Job | None:
        queue = await load_state(self.store, Queue, work_id)
        return queue_job(queue, self.facility_code) if queue is not None and queue.busy else None

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        return None

    async def unfinished_ids(self) -> Sequence[UUID]:
        async with self.store.session() as session:
            return await session.all_members(queues.BUSY_QUEUES)

    async def item(self, work_id: UUID) -> WorkItem | None:
        return None

    async def progress(self, work_id: UUID) -> WorkProgress | None:
        return None


def events_of(*states: type[State]) -> tuple[type[Event], ...]:
    """Return every event of these aggregates."""
    return tuple(event for state in states for event in state.aggregate.events.values())


OWN_EVENTS: tuple[type[Event], ...] = (
    *(queues.QueueItemsAdded, queues.QueueItemMoved, queues.QueueItemEdited, queues.QueueItemRemoved),
    queues.QueueResumed,
)  # What people do to a queue that can give it something to do.
ENDS: tuple[type[Event], ...] = (
    *(runs.RunConducted, runs.RunCompleted, runs.RunStopped, runs.RunAborted, runs.RunTruncated),
    *(procedures.ProcedureConducted, procedures.ProcedureCompleted, procedures.ProcedureAborted),
    procedures.ProcedureTruncated,
)  # What can free an asset.


def concerning_events() -> tuple[type[Event], ...]:
    """Return what gives a queue something to do, or can let a blocked one go on."""
    return (*OWN_EVENTS, *events_of(Supply, Enclosure, Clearance, Asset, Subject, Plan, Method), *ENDS)


@dataclass
class QueueSubscriber:
    """Tells the workflow of a queue what was changed in it and, where it is blocked, that a gate may be open now."""

    store: Store
    facility_code: str
    name: str = "queues"
    workflows: tuple[str, ...] = (QUEUE,)
    events: tuple[type[Event], ...] = field(default_factory=concerning_events)
    enabled: bool = True

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        memo = event_memo(event)
        found = [await load_state(self.store, Queue, id) for id in await self._concerned_ids(event)]
        return [
            queue_job(queue, self.facility_code, news=True, memo=memo) for queue in found if queue is not None and queue.busy
        ]

    async def _concerned_ids(self, event: EventRow) -> Sequence[UUID]:
        if event.stream_type == Queue.__name__:
            return (event.stream_id,)
        async with self.store.session() as session:
            return await session.all_members(queues.BLOCKED_QUEUES)
