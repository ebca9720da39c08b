"""The agents that every deployment starts with, as the specification lists them."""

from uuid import UUID

from baton.domain.access.actor import SEEDED_AGENT_IDS, Actor, ActorKind
from baton.domain.agent.agent import AgentStatus
from baton.domain.agent.prompts import CAUTION_DRAFT, RUN_DEBRIEF
from baton.domain.agent.seeded_agents import SEEDED
from baton.domain.contexts import REGISTRY
from baton.domain.trust.authorization import COMPLETING
from tests.support.domain.agents import agent_of, agent_world, seed_agent
from tests.support.tables import for_each

SHEET: dict[str, tuple[str, str, str, UUID | None, str]] = {
    "RunDebriefer": (
        "019a0000-0000-7000-8000-000000000001",
        "setting",
        "RUN_DEBRIEFER_MODEL",
        RUN_DEBRIEF.id,
        "RequestDecisionDebrief RecordAgentDecision AppendInferences AppendRunLogbookEntries GetRun ListProcedures "
        "ListRunChannels",
    ),
    "CautionDrafter": (
        "019a0000-0000-7000-8000-000000000002",
        "setting",
        "CAUTION_DRAFTER_MODEL",
        CAUTION_DRAFT.id,
        "RequestDecisionDebrief RecordAgentDecision AppendInferences GetRun GetPlan ListProcedures ListCautions GetDecision "
        "PromoteCautionProposal",
    ),
    "RunSupervisor": (
        "019a0000-0000-7000-8000-000000000003",
        "deterministic",
        "agent:RunSupervisor:v1",
        None,
        "HoldRun StopRun RecordAgentDecision ListRuns GetRun GetRunHistory GetPlan GetPractice GetMethod ListSupplies",
    ),
    "CautionPromoter": (
        "019a0000-0000-7000-8000-000000000004",
        "deterministic",
        "agent:CautionPromoter:v1",
        None,
        "PromoteCautionProposal RecordAgentDecision GetDecision ListCautions",
    ),
    "ClearanceExpirer": (
        "019a0000-0000-7000-8000-000000000005",
        "deterministic",
        "agent:ClearanceExpirer:v1",
        None,
        "ExpireClearance RecordAgentDecision ListClearances GetClearance GetClearanceHistory",
    ),
}


@for_each("kind", SHEET)
def test_a_seeded_agent_is_in_service_from_the_first_moment(kind: str) -> None:
    id, provider, model, prompt_id, commands = SHEET[kind]
    world = agent_world()
    agent = agent_of(world, seed_agent(world, kind))
    assert str(agent.id) == id
    assert (agent.kind, agent.name, agent.version, agent.status) == (kind, kind, "1.0.0", AgentStatus.VERSIONED)
    assert (agent.model_ref.provider, agent.model_ref.model, agent.prompt_template_id) == (provider, model, prompt_id)
    assert [type(event).__name__ for event in world.streams["Agent", agent.id]] == ["AgentDefined", "AgentVersioned"]
    assert world.state(Actor, agent.id).kind is ActorKind.AGENT
    assert SEEDED[kind].commands == set(commands.split())


def test_five_agents_are_seeded() -> None:
    assert SEEDED.keys() == SHEET.keys()


def test_what_seeded_agents_are_permitted_can_be_permitted_by_staff_too() -> None:
    named = {command for seeded in SEEDED.values() for command in seeded.commands}
    assert named <= REGISTRY.command_names()
    assert named >= COMPLETING


def test_nobody_else_may_have_their_ids() -> None:
    assert {one.id for one in SEEDED.values()} == SEEDED_AGENT_IDS
