"""The workflow that reads signals for a question: one activity, never repeated, because nobody waits for a late answer."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from baton.domain.conduct.control_signals import ReadSignalsRequest, SignalSamples
    from baton.workflows.activity_stubs import ActivityStubs as Stubs

ONCE = RetryPolicy(maximum_attempts=1)


@workflow.defn(name="read-signals")
class ReadSignalsWorkflow:
    """Returns what a worker reads now."""

    @workflow.run
    async def run(self, request: ReadSignalsRequest) -> SignalSamples:
        return await workflow.execute_activity_method(
            Stubs.read_signals,
            request,
            start_to_close_timeout=timedelta(seconds=5),
            retry_policy=ONCE,
            summary=f"read {len(request.addresses)} signals",
        )
