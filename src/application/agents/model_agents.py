"""Language-model agents at work on the end of a run: permission, lease, budget, model call, decision. Each step may be
repeated, since the run's stream says who has the lease and the decision's id follows from its cause."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from uuid import UUID

import structlog

from baton.application.agents.agent_client import AgentClient, in_process
from baton.application.agents.model_consultation import ConsultationResult, ModelConsultation, Occasion
from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.long_work import LongWork, RowWork, carries_out, event_memo
from baton.application.ports import EventRow, Job, LogbookMirror, StoreUnavailableError
from baton.application.settings import Settings
from baton.application.unit_of_work import decode_event, load_event_rows
from baton.domain.agent import conclusions, debrief
from baton.domain.agent.agent import Agent, AgentStatus, SpentAmounts, agents_of_kind
from baton.domain.agent.caution_proposal import DRAFT
from baton.domain.agent.conclusions import AgentTask, ConclusionOrder, LeaseResult, RunEnd, decision_id_of
from baton.domain.agent.debrief import DEBRIEF, DebriefRequest, DebriefRequestStatus, narrative_of
from baton.domain.agent.language_model import ModelRef
from baton.domain.decision.decision import Decision, RegisterDecision, Span
from baton.domain.equipment.asset_tree import asset_scope
from baton.domain.recipe.plan import Plan
from baton.domain.run.logbooks import AppendRunLogbookEntries, NarrativeEntry, RunLogbookEntryKind
from baton.domain.run.run import Run
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.reads import Reads, events_of, find, require
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.trust.authorization import COMPLETING

log = structlog.get_logger()
TASKS: Mapping[str, AgentTask] = {task.kind: task for task in (DEBRIEF, DRAFT)}  # the task of each kind of agent
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds before a conclusion is recorded again, where the store was unavailable


@dataclass
class ModelAgents:
    """Takes leases, concludes, and writes debriefs into logbooks, each as the agent itself."""

    client: AgentClient
    consultation: ModelConsultation
    mirror: LogbookMirror | None
    mirror_target: str | None
    facility_code: str

    async def spent_amounts(self, agent_id: UUID) -> SpentAmounts:
        return await self.consultation.spending.of(agent_id, self.client.commands.clock())

    async def is_model_configured(self, model_ref: ModelRef) -> bool:
        return self.consultation.is_configured(model_ref)

    @carries_out("take_lease")
    async def take_lease(self, order: ConclusionOrder) -> LeaseResult:
        """Take the lease for the agent, if it may act at all; a holder keeps it, whatever happened to the agent since."""
        if (row := await self._load_end_event(order)) is None:
            return LeaseResult.ENDED
        task = TASKS[order.kind]
        caller = in_process(order.agent_id, row.correlation_id, row.event_id)
        markers = await self.client.read(events_of(order.run_id, conclusions.DecisionDebriefRequested), caller)
        holder = conclusions.lease_holder(markers, task.kind, order.terminal_event_id)
        if holder != order.agent_id and (denied := await self.client.denied_commands(caller, task.commands)):
            log.warning("agent_stands_down", agent_id=str(order.agent_id), kind=task.kind, denied=denied)
            return LeaseResult.ENDED
        if holder is None:
            try:
                request = conclusions.RequestDecisionDebrief(terminal_event_id=order.terminal_event_id)
                result = await self.client.execute(request, caller, target_id=order.run_id)
            except (UnauthorizedError, Run.aggregate.NotFound) as refusal:
                log.warning("agent_stands_down", agent_id=str(order.agent_id), kind=task.kind, code=refusal.code)
                return LeaseResult.ENDED
            assert result.body is not None, "the answer names the holder"
            holder = UUID(result.body["agent_id"])
        if holder == order.agent_id:
            return LeaseResult.HELD
        await self._record_lost_lease(task, order, row, holder, caller)
        return LeaseResult.LOST

    async def _record_lost_lease(
        self, task: AgentTask, order: ConclusionOrder, row: EventRow, holder: UUID, caller: Caller
    ) -> None:
        agent = await self.client.read(require(Agent, order.agent_id), caller)
        inputs = {**inputs_of(agent, order.run_id, run_end(row)), "winning_agent_id": str(holder)}
        reasoning = "Another agent of this kind concludes about this run."
        choice = task.decision(agent.id, inputs, instead=task.conflicted, reasoning=reasoning)
        await self.client.record(choice, decision_of(order, row), caller)

    @carries_out("conclude")
    async def conclude(self, order: ConclusionOrder) -> bool:
        """Conclude about the end of a run, once, for a lease that is held; return false where the agent may not."""
        if (row := await self._load_end_event(order)) is None:
            return False
        task = TASKS[order.kind]
        caller = in_process(order.agent_id, row.correlation_id, row.event_id, completing=True)
        decision_id = decision_of(order, row)
        if await self.client.read(find(Decision, decision_id), caller) is not None:
            await self.consultation.lock.release(order.agent_id, decision_id)
            return True
        if denied := await self.client.denied_commands(caller, task.commands & COMPLETING):
            log.error("agent_denied", agent_id=str(order.agent_id), kind=task.kind, denied=denied)
            return False
        agent = await self.client.read(require(Agent, order.agent_id), caller)
        run = await self.client.read(require(Run, order.run_id), caller)
        terminal = run_end(row)
        occasion = Occasion(run, terminal, decision_id, row.occurred_at, inputs_of(agent, run.id, terminal))
        return await self.decide(task, agent, caller, occasion)

    async def decide(self, task: AgentTask, agent: Agent, caller: Caller, occasion: Occasion) -> bool:
        """Ask the agent's model, and record its conclusion or what kept it from one."""
        async with self.consultation.reserve_call(agent, occasion):
            result = await self.consultation.consult(task, agent, caller, occasion)
            return await self._record(decision_from(task, agent, occasion, result), result.calls, occasion, caller)

    async def _record(self, choice: RegisterDecision, calls: tuple[Span, ...], occasion: Occasion, caller: Caller) -> bool:
        """Register a decision, however long the store is unavailable: the model's answer was paid for."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await self.client.record(choice, occasion.decision_id, caller, calls)
            except StoreUnavailableError:
                log.warning("conclusion_waiting_for_store", decision_id=str(occasion.decision_id))
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    @carries_out("write_up_debrief")
    async def write_up(self, order: ConclusionOrder) -> None:
        """Write the narrative of a debrief where people read it."""
        if (row := await self._load_end_event(order)) is None:
            return
        caller = in_process(order.agent_id, row.correlation_id, row.event_id, completing=True)
        await self.enter(order.run_id, decision_of(order, row), caller)

    async def enter(self, run_id: UUID, decision_id: UUID, caller: Caller) -> None:
        """Append a narrative to the run's logbook and mirror it; a decision without a verdict has none."""
        decision = await self.client.read(require(Decision, decision_id), caller)
        if (narrative := narrative_of(decision)) is None:
            return
        id, kind = derived_uuid7(decision_id.int >> 80, str(decision_id), "logbook:0"), RunLogbookEntryKind.DEBRIEF
        entry = NarrativeEntry(event_id=id, text=narrative, entry_kind=kind, decision_id=decision_id)
        try:
            await self.client.execute(AppendRunLogbookEntries(entries=(entry,)), caller, target_id=run_id)
        except UnauthorizedError as refusal:
            log.error("debrief_not_entered", decision_id=str(decision_id), run_id=str(run_id), reason=refusal.reason)
            return
        if self.mirror is not None:
            own = await self.client.read(read_facility_code(run_id, self.facility_code), caller)
            await self.mirror.mirror_decision(decision_id, narrative, self.mirror_target or own)

    async def _load_end_event(self, order: ConclusionOrder) -> EventRow | None:
        row = await self.client.commands.store.event(order.terminal_event_id)
        ends = {event.__name__ for event in conclusions.RUN_END_EVENTS}
        if row is None or row.stream_id != order.run_id or row.event_type not in ends or order.kind not in TASKS:
            log.warning("ending_not_on_record", run_id=str(order.run_id), event_id=str(order.terminal_event_id))
            return None
        return row


def run_end(row: EventRow) -> RunEnd:
    return RunEnd(row.event_id, decode_event(Run.aggregate, row))


def decision_of(order: ConclusionOrder, row: EventRow) -> UUID:
    return decision_id_of(row.occurred_at, order.agent_id, conclusions.conclusion_cause(order.terminal_event_id))


def decision_from(task: AgentTask, agent: Agent, occasion: Occasion, result: ConsultationResult) -> RegisterDecision:
    """Return the conclusion, or what kept the agent from one, as a decision."""
    if result.conclusion is not None:
        return task.decision(agent.id, occasion.inputs, result.conclusion, parent_id=occasion.parent_id)
    inputs = {**occasion.inputs, "failure_error_class": result.failure, **result.facts}
    reasoning = f"No conclusion was reached: {result.failure}."
    return task.decision(agent.id, inputs, instead=task.deferred, reasoning=reasoning, parent_id=occasion.parent_id)


def inputs_of(agent: Agent, run_id: UUID, terminal: RunEnd | None) -> dict[str, object]:
    return {
        "run_id": str(run_id),
        "terminal_event_id": None if terminal is None else str(terminal.event_id),
        "terminal_event_type": None if terminal is None else terminal.event_type,
        "prompt_template_id": None if agent.prompt_template_id is None else str(agent.prompt_template_id),
    }


def read_facility_code(run_id: UUID, own_code: str) -> Reads[str]:
    """Read the facility that a run's equipment belongs to; the own one where the equipment has none."""
    run = yield from require(Run, run_id)
    plan = yield from require(Plan, run.plan_id)
    scope = yield from asset_scope(plan.asset_ids)
    return min(scope.facility_codes, default=own_code)


@dataclass
class ConcludingWork(LongWork):
    """Work of every agent of a kind that is in service, on every run that ends."""

    wakes_on = conclusions.RUN_END_EVENTS
    task: ClassVar[AgentTask]
    agents: ModelAgents
    settings: Settings

    @property
    def actors(self) -> Sequence[object]:
        return (self.agents,)

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        of_kind = await self.agents.client.read(agents_of_kind(self.task.kind), Caller.system(event.correlation_id))
        in_service = [agent for agent in of_kind if agent.status is AgentStatus.VERSIONED]
        return [self._job(agent, event) for agent in in_service if self.agents.consultation.is_configured(agent.model_ref)]

    def _job(self, agent: Agent, event: EventRow) -> Job:
        run_id, kind = event.stream_id, self.task.kind
        cause = {"terminal_event_id": event.event_id, "correlation_id": event.correlation_id}
        order = ConclusionOrder(kind=kind, agent_id=agent.id, run_id=run_id, **cause)
        shown = {"BatonFacility": self.agents.facility_code, "BatonRun": str(run_id), "BatonPrincipal": str(agent.id)}
        summary, id = f"{kind} on {event.event_type} of run {run_id}", f"{self.workflow}:{agent.id}:{event.event_id}"
        return Job(self.workflow, id, order, shown, summary, once=True, memo=event_memo(event))


class Debriefs(ConcludingWork):
    workflow = DEBRIEF.workflow
    reaction = "run_debriefer"
    task = DEBRIEF

    @property
    def enabled(self) -> bool:
        return self.settings.run_debriefer_enabled


class CautionDrafts(ConcludingWork):
    workflow = DRAFT.workflow
    reaction = "caution_drafter"
    task = DRAFT

    @property
    def enabled(self) -> bool:
        return self.settings.caution_drafter_enabled


@dataclass
class Regenerations(RowWork[DebriefRequest]):
    """Long work: a debrief that somebody asked for, written by the agent, once however often it is begun."""

    workflow = "regenerate-debrief"
    row_type = DebriefRequest
    command_name = debrief.RegenerateRunDebrief.__name__
    readable_with = "GetDecision"
    running = (DebriefRequestStatus.RUNNING,)

    commands: Commands
    agents: ModelAgents

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        request = await self.load(work_id)
        match request.status:
            case DebriefRequestStatus.RUNNING:
                return None
            case DebriefRequestStatus.DONE:
                return debrief.RegeneratedDebrief(decision_id=work_id).model_dump(mode="json")
            case DebriefRequestStatus.REFUSED:
                raise request.stored_refusal()

    @carries_out("regenerate_debrief")
    async def write(self, decision_id: UUID) -> None:
        """Have the debrief written and entered, and record that it is done, or why it could not be."""
        request = await self.load(decision_id)
        if request.status is not DebriefRequestStatus.RUNNING:
            return
        caller = in_process(request.agent_id, request.correlation_id, decision_id)
        known = await self.agents.client.read(find(Decision, decision_id), caller) is not None
        if not known and not await self._decide(request, caller):
            denial = UnauthorizedError("The agent is not permitted to write its debrief; ask an administrator.")
            await self.change(decision_id, lambda current: current.with_refusal(denial))
            return
        await self.agents.enter(request.run_id, decision_id, caller)
        await self.change(decision_id, lambda current: replace(current, status=DebriefRequestStatus.DONE))

    async def _decide(self, request: DebriefRequest, caller: Caller) -> bool:
        """Have the agent conclude; return false where it may not, without asking one that lacks a permission it takes."""
        if await self.agents.client.denied_commands(caller, DEBRIEF.commands - {"RequestDecisionDebrief"}):
            return False
        agent = await self.agents.client.read(require(Agent, request.agent_id), caller)
        run = await self.agents.client.read(require(Run, request.run_id), caller)
        ends = await load_event_rows(self.commands.store, run.id, *conclusions.RUN_END_EVENTS)
        terminal = run_end(ends[-1]) if ends else None
        why = {"trigger": "on-demand", "requested_by": str(request.principal_id)}
        inputs, parent_id = {**inputs_of(agent, run.id, terminal), **why}, request.parent_decision_id
        occasion = Occasion(
            run, terminal, request.decision_id, request.accepted_at, inputs, automatic=False, parent_id=parent_id
        )
        return await self.agents.decide(DEBRIEF, agent, caller, occasion)
