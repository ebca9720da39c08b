"""Agents at work on the end of a run: the lease, the conclusion and, of a debrief, its entry in the logbook.

Losing the lease is an end like any other. What a model answers does not pass through here: it is on the record when its
activity returns.
"""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from baton.application.agents.model_agents import LeaseResult
    from baton.domain.agent.conclusions import ConclusionOrder
    from baton.workflows.activity_calls import call_waiting_activity, call_short_activity


@workflow.defn(name="debrief")
class DebriefWorkflow:
    """One agent's debrief of one run."""

    @workflow.run
    async def run(self, order: ConclusionOrder) -> None:
        if await concluded(order):
            await call_waiting_activity("write_up_debrief", [order], None, "into the logbook")


@workflow.defn(name="draft-caution")
class DraftCautionWorkflow:
    """One agent's proposal after one run."""

    @workflow.run
    async def run(self, order: ConclusionOrder) -> None:
        await concluded(order)


async def concluded(order: ConclusionOrder) -> bool:
    """Whether this agent had the lease and what it concluded is on the record."""
    leased = await call_short_activity("take_lease", [order], LeaseResult)
    if leased is not LeaseResult.HELD:
        return False
    on_record: bool = await call_waiting_activity("conclude", [order], bool, "ask the model")
    return on_record


@workflow.defn(name="regenerate-debrief")
class RegenerateDebriefWorkflow:
    """A debrief that somebody asked for."""

    @workflow.run
    async def run(self, decision_id: str) -> None:
        await call_waiting_activity("regenerate_debrief", [decision_id], None, "ask the model")
