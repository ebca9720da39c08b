"""What an agent that was switched off may still do: nothing, except to complete what it holds a lease for."""

from itertools import product

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.trust.authorization import PrincipalStatus
from tests.support.domain.world import START, new_id
from tests.support.tables import for_each

COMPLETING = ("RecordAgentDecision", "AppendInferences", "AppendRunLogbookEntries")
COMMANDS = sorted({command for seeded in SEEDED.values() for command in seeded.commands})
STATUSES = ("Defined", "Versioned", "Suspended", "Deprecated")


def agent_standing(status: str, *, active: bool = True) -> PrincipalStatus:
    actor = Actor(id=new_id(), created_at=START, kind=ActorKind.AGENT, active=active)
    return PrincipalStatus(actor, agent_versioned=status == "Versioned", agent_suspended=status == "Suspended")


@for_each("status", STATUSES)
@for_each("completing", [False, True])
def test_only_an_agent_in_service_acts_and_a_suspended_one_completes(status: str, completing: bool) -> None:
    for command in COMMANDS:
        lenient = completing and status == "Suspended" and command in COMPLETING
        expected = None if status == "Versioned" or lenient else "agent_not_versioned"
        assert agent_standing(status).objection_to(command, completing) == expected, command


def test_an_agent_whose_actor_is_deactivated_completes_nothing() -> None:
    for status, command, completing in product(STATUSES, COMMANDS, (False, True)):
        objection = agent_standing(status, active=False).objection_to(command, completing)
        assert objection == "principal_deactivated", (status, command)
