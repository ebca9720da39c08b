"""The agents of a process: what they act with, what they react to, and whether they are on."""

from dataclasses import dataclass
from datetime import timedelta

from baton.application.agents.agent_client import AgentClient
from baton.application.agents.model_agents import ModelAgents
from baton.application.agents.model_consultation import BudgetLock, ModelConsultation, Models
from baton.application.agents.regenerations import Regenerations
from baton.application.agents.rule_agents import Expirer, Promoter, RunSupervisor
from baton.application.agents.subscribers import (
    CAUTION_DRAFTER,
    RUN_DEBRIEFER,
    BeamLossSubscriber,
    ProposalSubscriber,
    RunEndSubscriber,
)
from baton.application.commands import Commands
from baton.application.queries import Queries
from baton.application.reactions import Subscriber
from baton.application.schedules.schedule_reconciliation import ScheduleTriggers
from baton.application.settings import Settings
from baton.domain.agent.caution_draft import DRAFT
from baton.domain.agent.debrief import DEBRIEF
from baton.infrastructure.logbook.mirrors import FileMirror
from baton.infrastructure.postgres.agent_data import PostgresPeople, PostgresSpending
from baton.infrastructure.postgres.store import PostgresStore

SUBSCRIBERS = (RUN_DEBRIEFER, CAUTION_DRAFTER, ProposalSubscriber.name, BeamLossSubscriber.name, ScheduleTriggers.name)
"""The subscribers of this build; a bookmark under another name is that of an older build."""


@dataclass(frozen=True)
class Agents:
    """Everything that the activities of agents call, and the subscribers that start them."""

    consultation: ModelConsultation
    models: ModelAgents
    regenerations: Regenerations
    promoter: Promoter
    supervisor: RunSupervisor
    expirer: Expirer
    subscribers: tuple[Subscriber, ...]


def build_agents(settings: Settings, store: PostgresStore, commands: Commands, queries: Queries, models: Models) -> Agents:
    """Build the agents of one process."""
    directory = settings.logbook_mirror_directory
    client, spending, people = AgentClient(commands), PostgresSpending(store), PostgresPeople(store)
    consultation = ModelConsultation(client, models, spending, people, BudgetLock(commands))
    is_configured, code = consultation.is_configured, settings.self_facility_code
    mirror = None if directory is None else FileMirror(directory)
    concluding = ModelAgents(client, consultation, mirror, settings.logbook_mirror_target, code)
    stop_after = settings.run_supervisor_stop_after_seconds
    return Agents(
        consultation=consultation,
        models=concluding,
        regenerations=Regenerations(client, concluding),
        promoter=Promoter(client, settings.caution_promoter_min_confidence),
        supervisor=RunSupervisor(client, queries, code, None if stop_after is None else timedelta(seconds=stop_after)),
        expirer=Expirer(client, queries),
        subscribers=(
            RunEndSubscriber(RUN_DEBRIEFER, DEBRIEF, settings.run_debriefer_enabled, client, is_configured, code),
            RunEndSubscriber(CAUTION_DRAFTER, DRAFT, settings.caution_drafter_enabled, client, is_configured, code),
            ProposalSubscriber(settings.caution_promoter_enabled, code, settings.caution_drafter_promotes),
            BeamLossSubscriber(settings.run_supervisor_enabled, client),
            ScheduleTriggers(store, code),
        ),
    )
