"""Debriefs on demand as long work: what their workflow does, and where the answer is read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from baton.application.agents.agent_client import AgentClient, in_process
from baton.application.agents.model_agents import ModelAgents, ended, inputs_of
from baton.application.agents.model_consultation import Occasion
from baton.application.ports import Batch, Caller, Clock, IdGenerator, Job, Store, WorkItem
from baton.application.record_reader import load_row
from baton.domain.agent.agent import Agent
from baton.domain.agent.conclusions import TERMINAL, Terminal
from baton.domain.agent.debrief import DEBRIEF
from baton.domain.agent.debrief_on_demand import (
    DebriefRequest,
    DebriefRequestStatus,
    Regenerated,
    RegenerateRunDebrief,
    refusal_of,
    refused,
)
from baton.domain.decision.decision import Decision
from baton.domain.run.run import Run
from baton.domain.shared.reads import existing, required
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.shared.writes import Put


class Regenerations:
    """Long work: a debrief that somebody asked for, written by the agent, once however often it is begun."""

    workflow = "regenerate-debrief"

    def __init__(self, store: Store, hands: AgentClient, agents: ModelAgents, clock: Clock, new_id: IdGenerator) -> None:
        self._store = store
        self._hands = hands
        self._agents = agents
        self._clock = clock
        self._new_id = new_id

    async def job(self, work_id: UUID) -> Job:
        return Job(self.workflow, f"{self.workflow}:{work_id}", str(work_id))

    async def item(self, work_id: UUID) -> WorkItem | None:
        request = await load_row(self._store, DebriefRequest, decision_id=work_id)
        if request is None:
            return None
        ids = {"decision_id": str(work_id), "work_id": str(work_id)}
        return WorkItem(request.principal_id, "GetDecision", ids, request.correlation_id)

    async def progress(self, work_id: UUID) -> None:
        return None

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        request = await self._request(work_id)
        match request.status:
            case DebriefRequestStatus.RUNNING:
                return None
            case DebriefRequestStatus.DONE:
                return Regenerated(decision_id=work_id).model_dump(mode="json")
            case DebriefRequestStatus.REFUSED:
                raise refusal_of(request)

    async def unfinished(self) -> Sequence[UUID]:
        async with self._store.session() as session:
            rows = await session.records(DebriefRequest, {"status": DebriefRequestStatus.RUNNING})
        return [row.decision_id for row in rows]

    async def write(self, decision_id: UUID) -> None:
        """Have the debrief written and entered, and say that it is done, or why it could not be."""
        request = await self._request(decision_id)
        if request.status is not DebriefRequestStatus.RUNNING:
            return
        caller = in_process(request.agent_id, request.correlation_id, decision_id)
        known = await self._hands.read(existing(Decision, decision_id), caller) is not None
        if not known and not await self._decided(request, caller):
            denial = UnauthorizedError("The agent is not permitted to write its debrief; ask an administrator.")
            await self._end(refused(request, denial))
            return
        await self._agents.enter(request.run_id, decision_id, caller)
        await self._end(replace(request, status=DebriefRequestStatus.DONE))

    async def _decided(self, request: DebriefRequest, caller: Caller) -> bool:
        """Whether the agent has said what it concludes; one that may not do all it takes is not even asked."""
        if await self._hands.denied(caller, DEBRIEF.commands - {"RequestDecisionDebrief"}):
            return False
        agent = await self._hands.read(required(Agent, request.agent_id), caller)
        run = await self._hands.read(required(Run, request.run_id), caller)
        terminal = await self._ending(run)
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

    async def _ending(self, run: Run) -> Terminal | None:
        """The event that ended a run, if it has ended."""
        async with self._store.session() as session:
            rows = await session.load_of(Run.__name__, run.id, [event.__name__ for event in TERMINAL])
        return ended(rows[-1]) if rows else None

    async def _request(self, decision_id: UUID) -> DebriefRequest:
        request = await load_row(self._store, DebriefRequest, decision_id=decision_id)
        assert request is not None, "what is worked on was asked for"
        return request

    async def _end(self, request: DebriefRequest) -> None:
        call = Caller.system(request.correlation_id).call(self._clock(), self._new_id())
        async with self._store.session() as session:
            await session.append(Batch(call, RegenerateRunDebrief.__name__, puts=[Put(request)]))
