"""The workflow of a proposal: it waits until somebody decides or its time is over, and has it settled. It knows its id."""

from datetime import timedelta
from uuid import UUID

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from baton.workflows.activity_calls import call_short_activity
    from baton.workflows.activity_stubs import ActivityStubs as Stubs
    from baton.workflows.following import FollowingWorkflow


@workflow.defn(name="proposal")
class ProposalWorkflow(FollowingWorkflow):
    """Settles one proposal."""

    @workflow.run
    async def run(self, proposal_id: UUID) -> None:
        async def settle() -> timedelta | None:
            seconds = await call_short_activity(Stubs.settle_proposal, proposal_id)
            return None if seconds is None else timedelta(seconds=seconds)

        await self.follow(proposal_id, settle)
