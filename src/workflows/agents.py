"""Workflows of agents: those that conclude about the end of a run, and those that follow rules.
The model's answer does not pass through a workflow: it is on the record when its activity returns."""

from uuid import UUID

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from baton.domain.agent.caution_proposal import ProposalOrder
    from baton.domain.agent.conclusions import ConclusionOrder, LeaseResult
    from baton.workflows.activity_calls import HEARTBEAT, RETRY, SHORT, call_short_activity, call_waiting_activity
    from baton.workflows.activity_stubs import ActivityStubs as Stubs


@workflow.defn(name="debrief")
class DebriefWorkflow:
    """One agent's debrief of one run."""

    @workflow.run
    async def run(self, order: ConclusionOrder) -> None:
        if await conclude(order):
            await call_waiting_activity(Stubs.write_up_debrief, order, "into the logbook")


@workflow.defn(name="draft-caution")
class DraftCautionWorkflow:
    """One agent's proposal after one run."""

    @workflow.run
    async def run(self, order: ConclusionOrder) -> None:
        await conclude(order)


async def conclude(order: ConclusionOrder) -> bool:
    """Return whether this agent had the lease and its conclusion is on the record."""
    if await call_short_activity(Stubs.take_lease, order) is not LeaseResult.HELD:
        return False
    return await call_waiting_activity(Stubs.conclude, order, "ask the model")


@workflow.defn(name="regenerate-debrief")
class RegenerateDebriefWorkflow:
    """A debrief that a person asked for."""

    @workflow.run
    async def run(self, decision_id: UUID) -> None:
        await call_waiting_activity(Stubs.regenerate_debrief, decision_id, "ask the model")


@workflow.defn(name="promote-caution")
class PromoteCautionWorkflow:
    """Judges one proposal."""

    @workflow.run
    async def run(self, order: ProposalOrder) -> None:
        await call_short_activity(Stubs.promote_caution, order)


@workflow.defn(name="supervise-runs")
class SuperviseRunsWorkflow:
    """Looks at every run once."""

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity_method(
            Stubs.supervise_runs, start_to_close_timeout=SHORT, heartbeat_timeout=HEARTBEAT, retry_policy=RETRY
        )


@workflow.defn(name="expire-clearances")
class ExpireClearancesWorkflow:
    """Looks once for clearances that have run out, and starts a workflow for each."""

    @workflow.run
    async def run(self) -> None:
        after: str | None = None
        while True:
            page = await call_short_activity(Stubs.due_clearances, after)
            for clearance_id in page.clearance_ids:
                await start_expiry(clearance_id)
            if (after := page.next_cursor) is None:
                return


async def start_expiry(clearance_id: UUID) -> None:
    """Start the expiry of a clearance, unless it is under way already."""
    try:
        await workflow.start_child_workflow(
            ExpireClearanceWorkflow.run,
            clearance_id,
            id=f"expire-clearance:{clearance_id}",
            parent_close_policy=ParentClosePolicy.ABANDON,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            static_summary=f"clearance {clearance_id} has run out",
        )
    except WorkflowAlreadyStartedError:
        workflow.logger.debug("clearance %s is being expired", clearance_id)


@workflow.defn(name="expire-clearance")
class ExpireClearanceWorkflow:
    """Expires one clearance, with the decision that says so."""

    @workflow.run
    async def run(self, clearance_id: UUID) -> None:
        await call_short_activity(Stubs.expire_clearance, clearance_id)
