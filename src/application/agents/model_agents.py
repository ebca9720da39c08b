"""Language-model agents at work on the end of a run: permitted, leased, within budget, asked, put on record.

Each step may be repeated: the run's stream says who has the lease, and the decision's id follows from its cause. What a
model answers goes straight onto the record and nowhere else.
"""

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from typing import Any
from uuid import UUID

import structlog

from baton.application.agents.agent_client import AgentClient, in_process
from baton.application.agents.model_consultation import ConsultationResult, ModelConsultation, Occasion
from baton.application.agents.ports import LogbookMirror
from baton.application.ports import Caller, EventRow, Store, StoreUnavailableError
from baton.application.unit_of_work import decode_event
from baton.domain.agent.agent import Agent
from baton.domain.agent.caution_draft import DRAFT
from baton.domain.agent.conclusions import TERMINAL, ConclusionOrder, Task, Terminal, cause_of
from baton.domain.agent.debrief import DEBRIEF, narrative_of
from baton.domain.agent.decision_records import decision_id_of
from baton.domain.agent.lease import DecisionDebriefRequested, RequestDecisionDebrief, holder_of_lease
from baton.domain.decision.decision import Decision, RegisterDecision
from baton.domain.decision.inferences import Span
from baton.domain.equipment.scope import asset_scope
from baton.domain.recipe.plan import Plan
from baton.domain.run.narrative import AppendRunLogbookEntries, RunLogbookEntryKind, Writing
from baton.domain.run.run import Run
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.reads import Reads, existing, happened, required
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.trust.authorization import COMPLETING

log = structlog.get_logger()

TASKS: Mapping[str, Task] = {task.kind: task for task in (DEBRIEF, DRAFT)}
"""What agents of each kind do."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a conclusion is put on record again, where the store was away."""


class LeaseResult(StrEnum):
    """What came of asking for a lease."""

    HELD = "held"
    LOST = "lost"
    """Another agent of the kind has it, which is on record."""
    ENDED = "ended"
    """There is nothing to do, or nothing may be done."""


class ModelAgents:
    """Takes leases, concludes, and writes debriefs into logbooks, each as the agent itself."""

    def __init__(
        self,
        hands: AgentClient,
        store: Store,
        consulting: ModelConsultation,
        mirror: LogbookMirror | None,
        mirror_target: str | None,
        facility_code: str,
    ) -> None:
        self._hands = hands
        self._store = store
        self._consulting = consulting
        self._mirror = mirror
        self._mirror_target = mirror_target
        self._facility_code = facility_code

    async def take_lease(self, order: ConclusionOrder) -> LeaseResult:
        """Have the agent take the lease, if it may act at all; who has it keeps it, whatever happened to the agent."""
        if (row := await self._ending(order)) is None:
            return LeaseResult.ENDED
        task = TASKS[order.kind]
        caller = in_process(order.agent_id, row.correlation_id, row.event_id)
        markers = await self._hands.read(happened(order.run_id, DecisionDebriefRequested), caller)
        holder = holder_of_lease(markers, task.kind, order.terminal_event_id)
        if holder != order.agent_id and (denied := await self._hands.denied(caller, task.commands)):
            log.warning("agent_stands_down", agent_id=str(order.agent_id), kind=task.kind, denied=denied)
            return LeaseResult.ENDED
        if holder is None:
            try:
                executed = await self._hands.execute(
                    RequestDecisionDebrief(terminal_event_id=order.terminal_event_id), caller, target_id=order.run_id
                )
            except (UnauthorizedError, Run.aggregate.NotFound) as refusal:
                log.warning("agent_stands_down", agent_id=str(order.agent_id), kind=task.kind, code=refusal.code)
                return LeaseResult.ENDED
            assert executed.body is not None, "the answer names the holder"
            holder = UUID(executed.body["agent_id"])
        if holder == order.agent_id:
            return LeaseResult.HELD
        await self._lost(task, order, row, holder, caller)
        return LeaseResult.LOST

    async def _lost(self, task: Task, order: ConclusionOrder, row: EventRow, holder: UUID, caller: Caller) -> None:
        """Put on record that another agent was faster; no model is asked."""
        agent = await self._hands.read(required(Agent, order.agent_id), caller)
        inputs = {**inputs_of(agent, order.run_id, ended(row)), "winning_agent_id": str(holder)}
        reasoning = "Another agent of this kind concludes about this run."
        choice = task.choice(agent.id, inputs, instead=task.conflicted, reasoning=reasoning)
        await self._hands.record(choice, decision_of(order, row), caller)

    async def conclude(self, order: ConclusionOrder) -> bool:
        """Conclude about the end of a run, once, for a lease that is held; false where the agent may not say so."""
        if (row := await self._ending(order)) is None:
            return False
        task = TASKS[order.kind]
        caller = in_process(order.agent_id, row.correlation_id, row.event_id, completing=True)
        decision_id = decision_of(order, row)
        if await self._hands.read(existing(Decision, decision_id), caller) is not None:
            await self._consulting.done(order.agent_id, decision_id)
            return True
        if denied := await self._hands.denied(caller, task.commands & COMPLETING):
            log.error("agent_denied", agent_id=str(order.agent_id), kind=task.kind, denied=denied)
            return False
        agent = await self._hands.read(required(Agent, order.agent_id), caller)
        run = await self._hands.read(required(Run, order.run_id), caller)
        terminal = ended(row)
        inputs = inputs_of(agent, run.id, terminal)
        return await self.decide(task, agent, caller, Occasion(run, terminal, decision_id, row.occurred_at, inputs))

    async def decide(self, task: Task, agent: Agent, caller: Caller, occasion: Occasion) -> bool:
        """Ask the agent's model, and put on record what it concludes or what kept it from concluding."""
        async with self._consulting.turn(agent, occasion):
            consulted = await self._consulting.consult(task, agent, caller, occasion)
            return await self._put_on_record(chosen(task, agent, occasion, consulted), consulted.calls, occasion, caller)

    async def _put_on_record(
        self, choice: RegisterDecision, calls: tuple[Span, ...], occasion: Occasion, caller: Caller
    ) -> bool:
        """Register a decision, however long the store is away: what a model answered was paid for, and is only here."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._hands.record(choice, occasion.decision_id, caller, calls)
            except StoreUnavailableError:
                log.warning("conclusion_waits_for_the_store", decision_id=str(occasion.decision_id))
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    async def write_up(self, order: ConclusionOrder) -> None:
        """Put the narrative of a debrief where people read it."""
        if (row := await self._ending(order)) is None:
            return
        caller = in_process(order.agent_id, row.correlation_id, row.event_id, completing=True)
        await self.enter(order.run_id, decision_of(order, row), caller)

    async def enter(self, run_id: UUID, decision_id: UUID, caller: Caller) -> None:
        """Put a narrative into the run's logbook and have it mirrored; a decision without a verdict has none."""
        decision = await self._hands.read(required(Decision, decision_id), caller)
        narrative = narrative_of(decision)
        if narrative is None:
            return
        entry = Writing(
            event_id=derived_uuid7(decision_id.int >> 80, str(decision_id), "logbook:0"),
            text=narrative,
            entry_kind=RunLogbookEntryKind.DEBRIEF,
            decision_id=decision_id,
        )
        try:
            await self._hands.execute(AppendRunLogbookEntries(entries=(entry,)), caller, target_id=run_id)
        except UnauthorizedError as refusal:
            log.error("debrief_not_entered", decision_id=str(decision_id), run_id=str(run_id), reason=refusal.reason)
            return
        if self._mirror is not None:
            own = await self._hands.read(facility_of(run_id, self._facility_code), caller)
            await self._mirror.mirror_decision(decision_id, narrative, self._mirror_target or own)

    async def _ending(self, order: ConclusionOrder) -> EventRow | None:
        """The event that the agent is to conclude about; None where no such end of the run is on the record."""
        row = await self._store.event(order.terminal_event_id)
        ends = {event.__name__ for event in TERMINAL}
        if row is None or row.stream_id != order.run_id or row.event_type not in ends or order.kind not in TASKS:
            log.warning("ending_not_on_record", run_id=str(order.run_id), event_id=str(order.terminal_event_id))
            return None
        return row


def ended(row: EventRow) -> Terminal:
    """The end of a run, from the log."""
    return Terminal(row.event_id, decode_event(Run.aggregate, row))


def decision_of(order: ConclusionOrder, row: EventRow) -> UUID:
    """The id of what the agent decides about this end of a run, whatever it is."""
    return decision_id_of(row.occurred_at, order.agent_id, cause_of(order.terminal_event_id))


def chosen(task: Task, agent: Agent, occasion: Occasion, consulted: ConsultationResult) -> RegisterDecision:
    """What was concluded, or what was in the way, as a decision."""
    if consulted.concluded is not None:
        return task.choice(agent.id, occasion.inputs, consulted.concluded, parent_id=occasion.parent_id)
    inputs = {**occasion.inputs, "failure_error_class": consulted.failure, **consulted.facts}
    reasoning = f"No conclusion was reached: {consulted.failure}."
    return task.choice(agent.id, inputs, instead=task.deferred, reasoning=reasoning, parent_id=occasion.parent_id)


def inputs_of(agent: Agent, run_id: UUID, terminal: Terminal | None) -> dict[str, Any]:
    """What a decision about a run rests on."""
    return {
        "run_id": str(run_id),
        "terminal_event_id": None if terminal is None else str(terminal.event_id),
        "terminal_event_type": None if terminal is None else terminal.event_type,
        "prompt_template_id": None if agent.prompt_template_id is None else str(agent.prompt_template_id),
    }


def facility_of(run_id: UUID, own_code: str) -> Reads[str]:
    """The facility that a run's equipment belongs to; the own one where there is no saying."""
    run = yield from required(Run, run_id)
    plan = yield from required(Plan, run.plan_id)
    scope = yield from asset_scope(plan.asset_ids)
    return min(scope.facility_codes, default=own_code)
