"""The agents of this deployment: what they act with, what they react to, and whether they are on."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from application.agents.consulting import Consulting, Models
from application.agents.expirer import Expirer
from application.agents.hands import Hands
from application.agents.model_agents import ModelAgents
from application.agents.ports import LogbookMirror, People, Spending
from application.agents.promoter import Promoter
from application.agents.regenerations import Regenerations
from application.agents.subscribers import CAUTION_DRAFTER, RUN_DEBRIEFER, BeamLosses, Proposals, RunEndings
from application.agents.supervisor import Supervisor
from application.agents.turns import Turns
from application.commands import Commands
from application.ports import Authorizer, Clock, IdGenerator, Port
from application.queries import Queries
from application.reactions import Subscriber
from application.scheduling.schedule_triggers import ScheduleTriggers
from application.settings import Settings
from domain.agent.debriefing import DEBRIEF
from domain.agent.drafting import DRAFT
from infrastructure.postgres.store import PostgresStore

SUBSCRIBERS = (RUN_DEBRIEFER, CAUTION_DRAFTER, Proposals.name, BeamLosses.name, ScheduleTriggers.name)
"""The names of all that this build has follow the log; a bookmark under another name is an older build's."""


@dataclass(frozen=True)
class Agents:
    """Everything that the activities of agents call, and who is woken by what."""

    consulting: Consulting
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
    ports: Mapping[str, Port],
    clock: Clock,
    new_id: IdGenerator,
    models: Models,
    spending: Spending,
    people: People,
    mirror: LogbookMirror | None,
) -> Agents:
    """Wire the agents of one process."""
    hands = Hands(store, commands, authorizer, ports)
    consulting = Consulting(hands, clock, models, spending, people, Turns(store, clock, new_id))
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
            RunEndings(RUN_DEBRIEFER, DEBRIEF, settings.run_debriefer_enabled, hands, consulting.configured, code),
            RunEndings(CAUTION_DRAFTER, DRAFT, settings.caution_drafter_enabled, hands, consulting.configured, code),
            Proposals(settings.caution_promoter_enabled, code, settings.caution_drafter_promotes),
            BeamLosses(settings.run_supervisor_enabled, hands),
            ScheduleTriggers(store, code),
        ),
    )
