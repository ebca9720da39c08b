"""The workflow of a queue: it takes turn after turn, waits for what each opens, and ends when there is nothing to do.
It knows only ids and times; what there is to do is on the record."""

from contextlib import suppress
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from baton.domain.conduct.progress import ConductPhase
    from baton.domain.queue.messages import ItemRequest, QueueOrder, TurnReport, TurnVerdict
    from baton.workflows.activity_calls import StatusDisplay, call_short_activity, call_waiting_activity
    from baton.workflows.activity_stubs import QueueActivityStubs as Stubs

BLOCKED_SECONDS = timedelta(seconds=15)  # before a blocked item is judged again although nothing was heard


@workflow.defn(name="queue")
class QueueWorkflow:
    """One queue, for as long as it has something to do."""

    def __init__(self) -> None:
        self._has_news = False
        self._status = StatusDisplay()

    @workflow.signal(name="news")
    def tell_news(self) -> None:
        """Have the record looked at again."""
        self._has_news = True

    @workflow.run
    async def run(self, order: QueueOrder) -> None:
        while True:
            self._has_news = False
            report = await call_short_activity(Stubs.take_turn, order)
            if report.verdict is TurnVerdict.IDLE and not self._has_news:
                self._status.show(ConductPhase.ENDED, report.verdict.value)
                return
            await self._follow(order, report)
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(order)

    async def _follow(self, order: QueueOrder, report: TurnReport) -> None:
        """Wait for the end of what a turn opened, or for something that lets the next one come to more."""
        place = f"{report.verdict.value}, item {report.item_id}, attempt {report.attempt}"
        match report.verdict:
            case TurnVerdict.OPENED:
                assert report.item_id is not None, "what is opened has an id"
                self._status.show(ConductPhase.WALKING, place)
                request = ItemRequest(queue_id=order.queue_id, item_id=report.item_id, attempt=report.attempt)
                await call_waiting_activity(Stubs.await_item, request, f"item {report.item_id}")
            case TurnVerdict.BLOCKED:
                self._status.show(ConductPhase.WAITING, place)
                await self._await_news(BLOCKED_SECONDS)
            case TurnVerdict.EARLY:
                assert report.until is not None, "what is early has a time"
                self._status.show(ConductPhase.WAITING, place)
                await self._await_news(max(timedelta(), report.until - workflow.now()))
            case TurnVerdict.AGAIN | TurnVerdict.IDLE:
                pass

    async def _await_news(self, limit: timedelta) -> None:
        with suppress(TimeoutError):
            await workflow.wait_condition(lambda: self._has_news, timeout=limit)
