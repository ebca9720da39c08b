"""Who reacts to what: agents to ends of runs, promoter and drafters to proposals, the supervisor to a beam that goes."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from baton.application.agents.agent_client import AgentClient
from baton.application.ports import Caller, EventRow, Job
from baton.application.reactions import started_by
from baton.application.unit_of_work import decode_event
from baton.domain.agent.agent import VERSIONED, Agent, agents_of
from baton.domain.agent.caution_draft import DRAFT
from baton.domain.agent.conclusions import TERMINAL, ConclusionOrder, Task
from baton.domain.agent.model_ref import ModelRef
from baton.domain.agent.promotion import CAUTION_PROMOTER, ProposalOrder
from baton.domain.agent.prompts import DraftChoice
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.decision.decision import Decision, DecisionRegistered
from baton.domain.kernel import Event
from baton.domain.shared.reads import existing
from baton.domain.supply.beam import LEAVING, PHOTON_BEAM, takes_beam_away
from baton.domain.supply.supply import Supply

RUN_DEBRIEFER, CAUTION_DRAFTER = "run_debriefer", "caution_drafter"


class RunEndSubscriber:
    """Every agent of a kind that is in service concludes about every run that ends."""

    events: tuple[type[Event], ...] = TERMINAL

    def __init__(
        self, name: str, task: Task, on: bool, hands: AgentClient, configured: Callable[[ModelRef], bool], facility_code: str
    ) -> None:
        self.name = name
        self.workflows: tuple[str, ...] = (task.workflow,)
        self._task = task
        self._on = on
        self._hands = hands
        self._configured = configured
        self._facility_code = facility_code

    async def enabled(self) -> bool:
        return self._on

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        agents = await self._hands.read(agents_of(self._task.kind), Caller.system(event.correlation_id))
        return [
            self._job(agent, event) for agent in agents if agent.status is VERSIONED and self._configured(agent.model_ref)
        ]

    def _job(self, agent: Agent, event: EventRow) -> Job:
        order = ConclusionOrder(
            kind=self._task.kind,
            agent_id=agent.id,
            run_id=event.stream_id,
            terminal_event_id=event.event_id,
            correlation_id=event.correlation_id,
        )
        return Job(
            self._task.workflow,
            f"{self._task.workflow}:{agent.id}:{event.event_id}",
            order,
            attributes={
                "BatonFacility": self._facility_code,
                "BatonRun": str(event.stream_id),
                "BatonPrincipal": str(agent.id),
            },
            summary=f"{self._task.kind} on {event.event_type} of run {event.stream_id}",
            once=True,
            memo=started_by(event),
        )


class ProposalSubscriber:
    """The promoter judges every caution that is proposed; a drafter, where it promotes, each notice of its own."""

    name = "caution_promoter"
    workflows: tuple[str, ...] = ("promote-caution",)
    events: tuple[type[Event], ...] = (DecisionRegistered,)

    def __init__(self, on: bool, facility_code: str, drafter_promotes: bool = False) -> None:
        self._on = on
        self._facility_code = facility_code
        self._drafter_promotes = drafter_promotes

    async def enabled(self) -> bool:
        return self._on or self._drafter_promotes

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        registered: Any = decode_event(Decision.aggregate, event)
        if registered.context != DRAFT.context:
            return ()
        id, jobs = f"promote-caution:{event.stream_id}", []
        if self._drafter_promotes and registered.choice == DraftChoice.PROPOSE_NOTICE:
            jobs.append(self._job(event, f"{id}:{registered.decided_by}", registered.decided_by, DRAFT.kind))
        if self._on:
            jobs.append(self._job(event, id, SEEDED[CAUTION_PROMOTER].id, CAUTION_PROMOTER))
        return jobs

    def _job(self, event: EventRow, id: str, agent_id: UUID, kind: str) -> Job:
        order = ProposalOrder(
            proposal_decision_id=event.stream_id,
            event_id=event.event_id,
            agent_id=agent_id,
            correlation_id=event.correlation_id,
        )
        attributes = {"BatonFacility": self._facility_code, "BatonPrincipal": str(agent_id)}
        summary = f"{kind} on proposal {event.stream_id}"
        return Job("promote-caution", id, order, attributes, summary, once=True, memo=started_by(event))


class BeamLossSubscriber:
    """The supervisor looks at once where a beam goes, and does not wait for its next turn."""

    name = "run_supervisor"
    workflows: tuple[str, ...] = ("supervise-runs",)
    events: tuple[type[Event], ...] = LEAVING

    def __init__(self, on: bool, hands: AgentClient) -> None:
        self._on = on
        self._hands = hands

    async def enabled(self) -> bool:
        return self._on

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        transition: Any = decode_event(Supply.aggregate, event)
        if not takes_beam_away(transition):
            return ()
        supply = await self._hands.read(existing(Supply, event.stream_id), Caller.system(event.correlation_id))
        if supply is None or supply.kind != PHOTON_BEAM:
            return ()
        id = f"run-supervisor:{event.event_id}"
        return (Job("supervise-runs", id, None, summary="The beam went", once=True, memo=started_by(event)),)
