"""What starts agents: subscribers on ends of runs, on proposals, on the loss of a beam, and schedules of regular looks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from baton.application.agents.agent_client import AgentClient
from baton.application.caller import Caller
from baton.application.ports import CalendarEntry, Calendars, EventRow, Job
from baton.application.reactions import event_memo
from baton.application.settings import Settings
from baton.application.unit_of_work import decode_event
from baton.domain.agent.agent import Agent, AgentStatus, agents_of_kind
from baton.domain.agent.caution_proposal import CAUTION_PROMOTER, DRAFT, ProposalOrder
from baton.domain.agent.conclusions import RUN_END_EVENTS, AgentTask, ConclusionOrder
from baton.domain.agent.language_model import ModelRef
from baton.domain.agent.prompts import DraftChoice
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.decision.decision import Decision, DecisionRegistered
from baton.domain.kernel import Event
from baton.domain.schedule.calendar import EveryCalendar
from baton.domain.shared.reads import find
from baton.domain.supply.coverage import LEAVING, PHOTON_BEAM, takes_beam_away
from baton.domain.supply.supply import Supply

RUN_DEBRIEFER, CAUTION_DRAFTER = "run_debriefer", "caution_drafter"
SHORTEST_CATCH_UP_SECONDS = 10


@dataclass
class RunEndSubscriber:
    """Starts every agent of a kind that is in service on every run that ends."""

    name: str
    task: AgentTask
    enabled: bool
    client: AgentClient
    is_configured: Callable[[ModelRef], bool]
    facility_code: str
    events: tuple[type[Event], ...] = RUN_END_EVENTS

    def __post_init__(self) -> None:
        self.workflows: tuple[str, ...] = (self.task.workflow,)

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        agents = await self.client.read(agents_of_kind(self.task.kind), Caller.system(event.correlation_id))
        in_service = [agent for agent in agents if agent.status is AgentStatus.VERSIONED]
        return [self._job(agent, event) for agent in in_service if self.is_configured(agent.model_ref)]

    def _job(self, agent: Agent, event: EventRow) -> Job:
        run_id, workflow = event.stream_id, self.task.workflow
        cause = {"terminal_event_id": event.event_id, "correlation_id": event.correlation_id}
        order = ConclusionOrder(kind=self.task.kind, agent_id=agent.id, run_id=run_id, **cause)
        attributes = {"BatonFacility": self.facility_code, "BatonRun": str(run_id), "BatonPrincipal": str(agent.id)}
        summary = f"{self.task.kind} on {event.event_type} of run {run_id}"
        id = f"{workflow}:{agent.id}:{event.event_id}"
        return Job(workflow, id, order, attributes, summary, once=True, memo=event_memo(event))


@dataclass
class ProposalSubscriber:
    """Starts the promoter on every proposed caution, and a drafter that promotes on each notice of its own."""

    promoter_promotes: bool
    facility_code: str
    drafter_promotes: bool = False
    name: str = "caution_promoter"
    workflows: tuple[str, ...] = ("promote-caution",)
    events: tuple[type[Event], ...] = (DecisionRegistered,)

    def __post_init__(self) -> None:
        self.enabled = self.promoter_promotes or self.drafter_promotes

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        registered: Any = decode_event(Decision.aggregate, event)
        if registered.context != DRAFT.context:
            return ()
        id, jobs = f"promote-caution:{event.stream_id}", []
        if self.drafter_promotes and registered.choice == DraftChoice.PROPOSE_NOTICE:
            jobs.append(self._job(event, f"{id}:{registered.decided_by}", registered.decided_by, DRAFT.kind))
        if self.promoter_promotes:
            jobs.append(self._job(event, id, SEEDED[CAUTION_PROMOTER].id, CAUTION_PROMOTER))
        return jobs

    def _job(self, event: EventRow, id: str, agent_id: UUID, kind: str) -> Job:
        cause = {"event_id": event.event_id, "correlation_id": event.correlation_id}
        order = ProposalOrder(proposal_decision_id=event.stream_id, agent_id=agent_id, **cause)
        attributes = {"BatonFacility": self.facility_code, "BatonPrincipal": str(agent_id)}
        summary = f"{kind} on proposal {event.stream_id}"
        return Job("promote-caution", id, order, attributes, summary, once=True, memo=event_memo(event))


@dataclass
class BeamLossSubscriber:
    """Starts the supervisor at once where a beam is lost, before its next scheduled look."""

    enabled: bool
    client: AgentClient
    name: str = "run_supervisor"
    workflows: tuple[str, ...] = ("supervise-runs",)
    events: tuple[type[Event], ...] = LEAVING

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        transition: Any = decode_event(Supply.aggregate, event)
        if not takes_beam_away(transition):
            return ()
        supply = await self.client.read(find(Supply, event.stream_id), Caller.system(event.correlation_id))
        if supply is None or supply.kind != PHOTON_BEAM:
            return ()
        id = f"run-supervisor:{event.event_id}"
        return (Job("supervise-runs", id, None, summary="The beam went", once=True, memo=event_memo(event)),)


@dataclass(frozen=True)
class AgentSchedule:
    entry: CalendarEntry
    on: bool


def agent_schedules(settings: Settings) -> tuple[AgentSchedule, ...]:
    """Return the schedules of this deployment's agents; a look missed for longer than one interval is not made up for."""

    def schedule(id: str, workflow: str, seconds: int, on: bool) -> AgentSchedule:
        window = max(seconds, SHORTEST_CATCH_UP_SECONDS)
        calendar, note = EveryCalendar(every=seconds), "A turn of an agent."
        return AgentSchedule(CalendarEntry(id, workflow, calendar, catchup_window=window, note=note), on)

    supervisor = (settings.run_supervisor_tick_seconds, settings.run_supervisor_enabled)
    expirer = (settings.clearance_expirer_tick_seconds, settings.clearance_expirer_enabled)
    return (
        schedule("run-supervisor", "supervise-runs", *supervisor),
        schedule("clearance-expirer", "expire-clearances", *expirer),
    )


@dataclass
class AgentSchedules:
    calendars: Calendars
    schedules: Sequence[AgentSchedule]

    async def reconcile(self) -> None:
        """Make the engine match the settings; a schedule that somebody paused there stays paused."""
        for schedule in self.schedules:
            view = await self.calendars.look(schedule.entry)
            if not schedule.on:
                if view is not None:
                    await self.calendars.remove(schedule.entry.id)
            elif view is None or not view.as_defined:
                await self.calendars.put(replace(schedule.entry, paused=view is not None and view.paused))
