"""Debriefs on demand as long work: what their workflow does, and where the answer is read."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from baton.application.agents.agent_client import AgentClient, in_process
from baton.application.agents.model_agents import ModelAgents, inputs_of, run_end
from baton.application.agents.model_consultation import Occasion
from baton.application.long_work import RowWork
from baton.application.ports import Caller
from baton.domain.agent.agent import Agent
from baton.domain.agent.conclusions import RUN_END_EVENTS, RunEnd
from baton.domain.agent.debrief import (
    DEBRIEF,
    DebriefRequest,
    DebriefRequestStatus,
    RegeneratedDebrief,
    RegenerateRunDebrief,
)
from baton.domain.decision.decision import Decision
from baton.domain.run.run import Run
from baton.domain.shared.reads import existing, required
from baton.domain.shared.refusals import UnauthorizedError


class Regenerations(RowWork[DebriefRequest]):
    """Long work: a debrief that somebody asked for, written by the agent, once however often it is begun."""

    workflow = "regenerate-debrief"
    row_type = DebriefRequest
    command_name = RegenerateRunDebrief.__name__
    readable_with = "GetDecision"
    running = (DebriefRequestStatus.RUNNING,)

    def __init__(self, client: AgentClient, agents: ModelAgents) -> None:
        super().__init__(client.commands)
        self._client = client
        self._agents = agents

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        request = await self.load(work_id)
        match request.status:
            case DebriefRequestStatus.RUNNING:
                return None
            case DebriefRequestStatus.DONE:
                return RegeneratedDebrief(decision_id=work_id).model_dump(mode="json")
            case DebriefRequestStatus.REFUSED:
                raise request.stored_refusal()

    async def write(self, decision_id: UUID) -> None:
        """Have the debrief written and entered, and record that it is done, or why it could not be."""
        request = await self.load(decision_id)
        if request.status is not DebriefRequestStatus.RUNNING:
            return
        caller = in_process(request.agent_id, request.correlation_id, decision_id)
        known = await self._client.read(existing(Decision, decision_id), caller) is not None
        if not known and not await self._decide(request, caller):
            denial = UnauthorizedError("The agent is not permitted to write its debrief; ask an administrator.")
            await self.change(decision_id, lambda current: current.refused(denial))
            return
        await self._agents.enter(request.run_id, decision_id, caller)
        await self.change(decision_id, lambda current: replace(current, status=DebriefRequestStatus.DONE))

    async def _decide(self, request: DebriefRequest, caller: Caller) -> bool:
        """Have the agent conclude; return false where it may not, without asking one that lacks a permission it takes."""
        if await self._client.denied_commands(caller, DEBRIEF.commands - {"RequestDecisionDebrief"}):
            return False
        agent = await self._client.read(required(Agent, request.agent_id), caller)
        run = await self._client.read(required(Run, request.run_id), caller)
        terminal = await self._find_run_end(run)
        occasion = Occasion(
            run=run,
            terminal=terminal,
            decision_id=request.decision_id,
            at=request.accepted_at,
            inputs={**inputs_of(agent, run.id, terminal), "trigger": "on-demand", "requested_by": str(request.principal_id)},
            automatic=False,
            parent_id=request.parent_decision_id,
        )
        return await self._agents.decide(DEBRIEF, agent, caller, occasion)

    async def _find_run_end(self, run: Run) -> RunEnd | None:
        async with self.commands.store.session() as session:
            rows = await session.load_of(Run.__name__, run.id, [event.__name__ for event in RUN_END_EVENTS])
        return run_end(rows[-1]) if rows else None
