"""The agents of this deployment: what they act with, what they react to, and whether they are on."""

from dataclasses import dataclass
from datetime import timedelta

from baton.application.agents.agent_client import AgentClient
from baton.application.agents.budget_lock import BudgetLock
from baton.application.agents.expirer import Expirer
from baton.application.agents.model_agents import ModelAgents
from baton.application.agents.model_consultation import ModelConsultation, Models
from baton.application.agents.ports import LogbookMirror, People, Spending
from baton.application.agents.promoter import Promoter
from baton.application.agents.regenerations import Regenerations
from baton.application.agents.subscribers import CAUTION_DRAFTER, RUN_DEBRIEFER, BeamLossSubscriber, ProposalSubscriber, RunEndSubscriber
from baton.application.agents.supervisor import Supervisor
from baton.application.commands import Commands
from baton.application.ports import Authorizer, Clock, IdGenerator
from baton.application.queries import Queries
from baton.application.reactions import Subscriber
from baton.application.schedules.schedule_triggers import ScheduleTriggers
from baton.application.settings import Settings
from baton.domain.agent.caution_draft import DRAFT
from baton.domain.agent.debrief import DEBRIEF
from baton.domain.shared.ports import Ports
from baton.infrastructure.postgres.store import PostgresStore

SUBSCRIBERS = (RUN_DEBRIEFER, CAUTION_DRAFTER, ProposalSubscriber.name, BeamLossSubscriber.name, ScheduleTriggers.name)
"""The names of all that this build has follow the log; a bookmark under another name is an older build's."""


@dataclass(frozen=True)
class Agents:
    """Everything that the activities of agents call, and who is woken by what."""

    consulting: ModelConsultation
    models: ModelAgents
    regenerations: Regenerations
    promoter: Promoter
    supervisor: Supervisor
    expirer: Expirer
    subscribers: tuple[Subscriber, ...]


def agents_of(
    settings: Settings,
    store: PostgresStore,
    commands: Commands,
    queries: Queries,
    authorizer: Authorizer,
    ports: Ports,
    clock: Clock,
    new_id: IdGenerator,
    models: Models,
    spending: Spending,
    people: People,
    mirror: LogbookMirror | None,
) -> Agents:
    """Wire the agents of one process."""
    hands = AgentClient(store, commands, authorizer, ports)
    consulting = ModelConsultation(hands, clock, models, spending, people, BudgetLock(store, clock, new_id))
    code = settings.self_facility_code
    concluding = ModelAgents(hands, store, consulting, mirror, settings.logbook_mirror_target, code)
    stop_after = settings.run_supervisor_stop_after_seconds
    return Agents(
        consulting=consulting,
        models=concluding,
        regenerations=Regenerations(store, hands, concluding, clock, new_id),
        promoter=Promoter(hands, settings.caution_promoter_min_confidence),
        supervisor=Supervisor(
            hands, queries, clock, new_id, code, None if stop_after is None else timedelta(seconds=stop_after)
        ),
        expirer=Expirer(hands, queries, store, clock, new_id),
        subscribers=(
            RunEndSubscriber(RUN_DEBRIEFER, DEBRIEF, settings.run_debriefer_enabled, hands, consulting.configured, code),
            RunEndSubscriber(CAUTION_DRAFTER, DRAFT, settings.caution_drafter_enabled, hands, consulting.configured, code),
            ProposalSubscriber(settings.caution_promoter_enabled, code, settings.caution_drafter_promotes),
            BeamLossSubscriber(settings.run_supervisor_enabled, hands),
            ScheduleTriggers(store, code),
        ),
    )
