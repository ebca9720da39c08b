"""Agents that follow rules: the promoter on a proposal, the supervisor and the expirer when their turn comes."""

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from baton.domain.agent.expiry import DuePage
    from baton.domain.agent.promotion import ProposalOrder
    from baton.workflows.activity_calls import call_short_activity


@workflow.defn(name="promote-caution")
class PromoteCautionWorkflow:
    """One proposal judged."""

    @workflow.run
    async def run(self, order: ProposalOrder) -> None:
        await call_short_activity("promote_caution", [order], None)


@workflow.defn(name="supervise-runs")
class SuperviseRunsWorkflow:
    """One look at every run."""

    @workflow.run
    async def run(self) -> None:
        await call_short_activity("supervise_runs", [], None)


@workflow.defn(name="expire-clearances")
class ExpireClearancesWorkflow:
    """One look for clearances that have run out; each is left to a workflow of its own."""

    @workflow.run
    async def run(self) -> None:
        after: str | None = None
        while True:
            page: DuePage = await call_short_activity("due_clearances", [after], DuePage)
            for clearance_id in page.clearance_ids:
                await set_going(str(clearance_id))
            if (after := page.next_cursor) is None:
                return


async def set_going(clearance_id: str) -> None:
    """Have a clearance expired; one that is being expired already is left to that."""
    try:
        await workflow.start_child_workflow(
            "expire-clearance",
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
    """One clearance expired, and the decision that says so."""

    @workflow.run
    async def run(self, clearance_id: str) -> None:
        await call_short_activity("expire_clearance", [clearance_id], None)
