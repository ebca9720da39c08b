"""Debriefs on demand: made by the agent, paid for by the caller, and done once however often they are begun."""

from typing import Any
from uuid import UUID

import pytest

from baton.domain.access.actor import DeactivateActor
from baton.domain.agent.debrief import DEBRIEF, RegenerateRunDebrief
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.run.logbooks import RunLogbookEntry
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.start.run_start import StartRun
from tests.support.application.memory_agents import VERDICT, MemoryAgents, memory_agents
from tests.support.application.ports import ports_of
from tests.support.tables import for_each

DEBRIEFER = SEEDED[DEBRIEF.kind].id


async def request_debrief(facility: MemoryAgents, run_id: UUID, **fields: Any) -> UUID:
    """The id of a debrief that somebody asked for."""
    facility.people.ports = ports_of(facility.people.ports, is_model_configured=is_configured)
    executed = await facility.do(RegenerateRunDebrief(**fields), run_id)
    assert executed.body is not None
    assert await facility.regenerations.unfinished_ids() == [UUID(executed.body["work_id"])]
    return UUID(executed.body["decision_id"])


async def is_configured(model_ref: Any) -> bool:
    return True


def logbook_entries(facility: MemoryAgents) -> list[Any]:
    return list(facility.store.summaries_of(RunLogbookEntry))


async def test_it_is_written_entered_and_answered_once() -> None:
    facility = await memory_agents(VERDICT)
    event = await facility.end_run()
    decision_id = await request_debrief(facility, event.stream_id)
    assert await facility.regenerations.answer(decision_id) is None
    for _ in range(2):
        await facility.regenerations.write(decision_id)
    assert await facility.regenerations.answer(decision_id) == {"decision_id": str(decision_id)}
    decision = facility.decision(decision_id)
    assert decision is not None
    inputs = decision.inputs or {}
    assert (decision.decided_by, inputs["trigger"], inputs["requested_by"]) == (DEBRIEFER, "on-demand", str(UUID(int=0)))
    assert inputs["terminal_event_id"] == str(event.event_id)
    assert (len(facility.models.model.requests), len(logbook_entries(facility))) == (1, 1)
    assert await facility.regenerations.unfinished_ids() == []


async def test_a_run_that_has_not_ended_can_be_debriefed_too() -> None:
    facility = await memory_agents({**VERDICT, "choice": "DataSuspect"})
    run_id = await facility.people.create(StartRun(**facility.line.request))
    decision_id = await request_debrief(facility, run_id)
    await facility.regenerations.write(decision_id)
    decision = facility.decision(decision_id)
    assert decision is not None
    assert (decision.inputs or {})["terminal_event_type"] is None


async def test_a_spent_budget_refuses_nobody_and_the_spend_is_recorded() -> None:
    facility = await memory_agents(VERDICT)
    await facility.cap(DEBRIEFER, tokens=0)
    event = await facility.end_run()
    decision_id = await request_debrief(facility, event.stream_id)
    await facility.regenerations.write(decision_id)
    decision = facility.decision(decision_id)
    assert decision is not None
    assert decision.choice == "EquipmentAbort"
    assert len(facility.store.entries["entries_decision_inferences"]) == 1


async def test_an_unknown_price_under_a_monthly_cap_defers_here_too() -> None:
    facility = await memory_agents()
    await facility.cap(DEBRIEFER, cost=40.0)
    event = await facility.end_run()
    decision_id = await request_debrief(facility, event.stream_id)
    await facility.regenerations.write(decision_id)
    decision = facility.decision(decision_id)
    assert decision is not None
    assert (decision.choice, (decision.inputs or {})["failure_error_class"]) == ("DebriefDeferred", "PriceUnknown")
    assert (await facility.regenerations.answer(decision_id), logbook_entries(facility)) == (
        {"decision_id": str(decision_id)},
        [],
    )


async def test_a_crash_between_decision_and_entry_asks_no_model_again(monkeypatch: pytest.MonkeyPatch) -> None:
    facility = await memory_agents(VERDICT)
    event = await facility.end_run()
    decision_id = await request_debrief(facility, event.stream_id)

    async def die(*given: Any) -> None:
        raise InterruptedError

    with monkeypatch.context() as patched:
        patched.setattr(facility.agents, "enter", die)
        with pytest.raises(InterruptedError):
            await facility.regenerations.write(decision_id)
    await facility.regenerations.write(decision_id)
    assert (len(facility.models.model.requests), len(logbook_entries(facility))) == (1, 1)


@for_each("how", ["suspended", "deactivated", "without a policy"])
async def test_an_agent_that_may_not_act_is_not_asked_and_the_work_is_refused(how: str) -> None:
    facility = await memory_agents()
    event = await facility.end_run()
    decision_id = await request_debrief(facility, event.stream_id)
    if how == "suspended":
        await facility.suspend(DEBRIEFER)
    elif how == "deactivated":
        await facility.do(DeactivateActor(), DEBRIEFER)
    else:
        await facility.revoke_all(DEBRIEFER)
    await facility.regenerations.write(decision_id)
    assert facility.models.model.requests == []
    assert facility.decision(decision_id) is None
    with pytest.raises(UnauthorizedError):
        await facility.regenerations.answer(decision_id)
