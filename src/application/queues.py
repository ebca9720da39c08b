"""A turn of a queue judges the first item, puts its start on the record, opens its conduct as the actor who added it,
and waits for its end. The record leads: everything may be repeated, killed anywhere, or run twice at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog

from baton.application.caller import Caller
from baton.application.commands import Commands, execute_with_retry
from baton.application.conduct.heartbeat import Attempt
from baton.application.launches import Launches, TargetLaunch
from baton.application.long_work import LookUpWork, Pace, carries_out
from baton.application.ports import EventRow, Job, Store
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
from baton.domain.queue.queue import HELD, Queue
from baton.domain.queue.turns import NextTurn, TurnAction, TurnFacts, next_action, refused_turn
from baton.domain.recipe.method import Method
from baton.domain.recipe.plan import Plan
from baton.domain.run import run as runs
from baton.domain.run.run import Run
from baton.domain.safety.clearance import Clearance
from baton.domain.shared.refusals import Refusal, Unavailable
from baton.domain.subject.subject import Subject
from baton.domain.supply.supply import Supply

log = structlog.get_logger()


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


@dataclass(frozen=True)
class QueueRunner(LookUpWork):
    """Queues: each is unfinished for as long as it has something to do, and nobody waits for an answer."""

    workflow = QUEUE
    reaction = "queues"
    wakes_on = (*OWN_EVENTS, *events_of(Supply, Enclosure, Clearance, Asset, Subject, Plan, Method), *ENDS)
    listens = True
    unfinished = queues.BUSY_QUEUES
    store: Store
    commands: Commands
    launches: Launches
    facility_code: str

    async def job(self, work_id: UUID) -> Job | None:
        queue = await load_state(self.store, Queue, work_id)
        if queue is None or not queue.busy:
            return None
        shown = {"BatonFacility": self.facility_code, "BatonAsset": str(queue.asset_id)}
        attributes, order = {**shown, "BatonState": ConductPhase.OPENED.value}, QueueOrder(queue_id=queue.id)
        return Job(QUEUE, queue_workflow_id(queue.id), order, attributes, f"Queue of asset {queue.asset_id}")

    async def concerned_ids(self, event: EventRow) -> Sequence[UUID]:
        """Return the queue that was changed or, where a gate may be open now, every queue that is blocked."""
        if event.stream_type == Queue.__name__:
            return (event.stream_id,)
        async with self.store.session() as session:
            return await session.all_members(queues.BLOCKED_QUEUES)

    @carries_out("take_turn")
    async def start_next(self, order: QueueOrder) -> TurnReport:
        """Open the item whose turn it is, or say why there is none; its start is on the queue's record before anything else
        is touched, so a move, an edit or a removal at the same time comes before it or is refused."""
        queue, now = await load_state(self.store, Queue, order.queue_id), self.commands.clock()
        facts = TurnFacts()
        if queue is not None and queue.running is not None:
            facts = TurnFacts(is_open=await self.launches.is_open(launch_of(queue, queue.running)))
        turn = next_action(queue, facts, now)
        if turn.action is TurnAction.JUDGE and turn.item is not None:
            turn = next_action(queue, TurnFacts(is_judged=True, refusal=await self._judge(turn.item)), now)
        if queue is None or (item := turn.item) is None:
            return TurnReport(verdict=TurnVerdict.IDLE)
        match turn.action:
            case TurnAction.WAIT:
                return TurnReport(verdict=TurnVerdict.EARLY, item_id=item.item_id, until=item.not_before)
            case TurnAction.START:
                try:
                    await self._record(queue, item, records.StartQueueItem)
                except records.StartQueueItem.Cannot:
                    return TurnReport(verdict=TurnVerdict.AGAIN)
                return await self.start_next(order)
            case TurnAction.OPEN if (refusal := await self._open(queue, item)) is not None:
                return await self._record_refusal(queue, refused_turn(item, refusal))
            case TurnAction.OPEN | TurnAction.FOLLOW:
                await self.launches.start_workflow(launch_of(queue, item))
                return TurnReport(verdict=TurnVerdict.OPENED, item_id=item.item_id, attempt=item.attempt)
            case _:
                return await self._record_refusal(queue, turn)

    async def _judge(self, item: QueueItem) -> Refusal | None:
        """Return the refusal that would meet an item now, as who added it, or None."""
        caller = caller_of(item)
        call = caller.call(self.commands.clock(), item.launch.id)
        judgement = await self.commands.read(judge_item(item, None, call), caller)
        for refusal in judgement.report.refusals:
            if isinstance(refusal, Unavailable):
                raise refusal
        return judgement.refusal

    async def _open(self, queue: Queue, item: QueueItem) -> Refusal | None:
        """Open the conduct of an item that is on record as started, or return what refuses it; a queue that is held at the
        same moment has it held, too."""
        launch = launch_of(queue, item)
        refusal = await self.launches.open(launch)
        now = await load_state(self.store, Queue, queue.id)
        if refusal is None and now is not None and now.status is HELD:
            await self.launches.hold(launch, now.last_status_reason, system_caller(item))
        return refusal

    async def _record_refusal(self, queue: Queue, turn: NextTurn) -> TurnReport:
        """Record what keeps an item from starting."""
        item, refusal, blocked = turn.item, turn.refusal, turn.action is TurnAction.BLOCK
        assert item is not None, "an item is refused"
        assert refusal is not None, "what is recorded is a refusal"
        kind = records.BlockQueueItem if blocked else records.RefuseQueueItem
        await self._record(queue, item, kind, code=refusal.code, detail=refusal.detail)
        verdict = TurnVerdict.BLOCKED if blocked else TurnVerdict.AGAIN
        return TurnReport(verdict=verdict, item_id=item.item_id, attempt=item.attempt)

    @carries_out("await_item", Pace.WAITING)
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
        end = await watch.early_end()
        if end and isinstance(watch.state, Procedure):
            end["asked"] = await self.commands.read(procedures.aborted_by(watch.state), system_caller(item)) is not None
        await self._record(queue, item, records.EndQueueItem, **end)

    async def _record(self, queue: Queue, item: QueueItem, kind: type[Command], **fields: object) -> None:
        """Record something about an attempt at an item, as the service itself."""
        command = kind.model_validate({"item_id": item.item_id, "attempt": item.attempt, **fields})
        await execute_with_retry(self.commands, command, system_caller(item), target_id=queue.id)


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
        self.state: Any = None

    async def has_ended(self) -> bool:
        """Return whether it has ended; a run that is stopped or aborted has when its phases have been closed too."""
        self.state = await self._watch.poll()
        return self.state.status in ENDED[self._kind] and self.state.live_conduct_id is None

    async def wait(self) -> None:
        await self._watch.wait()

    async def early_end(self) -> dict[str, Any]:
        """Return the code and the sentence of an end that is no completion, and whether a run was stopped; nothing of one
        that is."""
        if self.state.status is ENDED[self._kind][0]:
            return {}
        code = f"{self._kind.__name__}{self.state.status.value}"
        if self._kind is Run:
            ends: list[Any] = await load_events(self._store, self._id, runs.RunStopped, runs.RunAborted, runs.RunTruncated)
            return {"code": code, "detail": ends[-1].reason, "asked": self.state.status is runs.STOPPED}
        return {"code": code, "detail": self.state.last_status_reason or code}


ENDED: Mapping[Any, tuple[Any, ...]] = {
    Run: (runs.COMPLETED, runs.STOPPED, runs.ABORTED, runs.TRUNCATED),
    Procedure: (procedures.COMPLETED, procedures.ABORTED, procedures.TRUNCATED),
}  # The states in which a run or a procedure has ended; the first is that of a completed one.
