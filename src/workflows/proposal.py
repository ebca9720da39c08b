"""The workflow of a proposal: it waits until somebody decides or its time is over, and has it settled. It knows its id."""

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from baton.workflows.activity_calls import call_short_activity
    from baton.workflows.activity_stubs import ProposalActivityStubs as Stubs


@workflow.defn(name="proposal")
class ProposalWorkflow:
    """Settles one proposal."""

    def __init__(self) -> None:
        self._news = False

    @workflow.signal
    def news(self) -> None:
        """Note that there is something new on the record."""
        self._news = True

    @workflow.run
    async def run(self, proposal_id: str) -> None:
        while True:
            self._news = False
            seconds = await call_short_activity(Stubs.settle_proposal, proposal_id)
            if seconds is None and not self._news:
                return
            if seconds is not None:
                await self._wait(seconds)

    async def _wait(self, seconds: float) -> None:
        """Wait for news, so many seconds at most."""
        try:
            await workflow.wait_condition(lambda: self._news, timeout=timedelta(seconds=seconds))
        except TimeoutError:
            workflow.logger.debug("nobody has decided")
