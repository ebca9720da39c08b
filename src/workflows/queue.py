"""The workflow of a queue: it takes turn after turn, waits for what each opens, and ends when there is nothing to do.
It knows only ids and times; what there is to do is on the record."""

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from baton.domain.conduct.progress import ConductPhase
    from baton.domain.queue.messages import ItemRequest, QueueOrder, TurnVerdict
    from baton.workflows.activity_calls import StatusDisplay, call_short_activity, call_waiting_activity
    from baton.workflows.activity_stubs import ActivityStubs as Stubs
    from baton.workflows.following import AT_ONCE, FollowingWorkflow

BLOCKED_SECONDS = timedelta(seconds=15)  # before a blocked item is judged again although nothing was heard


@workflow.defn(name="queue")
class QueueWorkflow(FollowingWorkflow):
    """One queue, for as long as it has something to do."""

    def __init__(self) -> None:
        self._status = StatusDisplay()

    @workflow.run
    async def run(self, order: QueueOrder) -> None:
        await self.follow(order, lambda: self._take_turn(order))
        self._status.show(ConductPhase.ENDED, TurnVerdict.IDLE.value)

    async def _take_turn(self, order: QueueOrder) -> timedelta | None:
        """Take a turn and wait for the end of what it opened; return how long to wait for news before the next one."""
        report = await call_short_activity(Stubs.take_turn, order)
        place = f"{report.verdict.value}, item {report.item_id}, attempt {report.attempt}"
        match report.verdict:
            case TurnVerdict.OPENED:
                assert report.item_id is not None, "what is opened has an id"
                self._status.show(ConductPhase.WALKING, place)
                request = ItemRequest(queue_id=order.queue_id, item_id=report.item_id, attempt=report.attempt)
                await call_waiting_activity(Stubs.await_item, request, f"item {report.item_id}")
                return AT_ONCE
            case TurnVerdict.BLOCKED:
                self._status.show(ConductPhase.WAITING, place)
                return BLOCKED_SECONDS
            case TurnVerdict.EARLY:
                assert report.until is not None, "what is early has a time"
                self._status.show(ConductPhase.WAITING, place)
                return max(AT_ONCE, report.until - workflow.now())
            case TurnVerdict.AGAIN:
                return AT_ONCE
            case TurnVerdict.IDLE:
                return None
