"""The agents that every deployment has: their ids are constants, for every decision they ever made refers to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from baton.domain.access.actor import seeded_id
from baton.domain.agent.agent import AgentVersioned, DefineAgent, begin_agent
from baton.domain.agent.caution_proposal import CAUTION_PROMOTER, DRAFT, JUDGING_COMMANDS, PromoteCautionProposal
from baton.domain.agent.conclusions import AgentTask
from baton.domain.agent.debrief import DEBRIEF, RUN_DEBRIEFER_ID
from baton.domain.agent.language_model import DETERMINISTIC, SETTING, ModelRef
from baton.domain.agent.prompts import Prompt
from baton.domain.agent.rule_agents import CLEARANCE_EXPIRER, RUN_SUPERVISOR
from baton.domain.kernel import Call, Outcome

VERSION = "1.0.0"


@dataclass(frozen=True)
class SeededAgent:
    """One of them: the model it asks, and what its policy permits it in process."""

    kind: str
    id: UUID
    model_ref: ModelRef
    commands: frozenset[str]
    prompt: Prompt | None = None
    list_number: int = 1  # Raised whenever the commands change: the newer policy then replaces the older.

    def begin(self, call: Call) -> Outcome:
        """Return the beginning of the agent, which is in service at once."""
        own = {"version": VERSION, "model_ref": self.model_ref, "prompt_template_id": self.prompt and self.prompt.id}
        definition = DefineAgent.model_validate({"kind": self.kind, "name": self.kind, **own})
        first, *rest = begin_agent(definition, call)
        return [first, AgentVersioned(version=VERSION), *rest]


def rule_agent(kind: str, number: int, commands: frozenset[str]) -> SeededAgent:
    """Return an agent that follows rules, and names them in the place of a model."""
    ref = ModelRef(provider=DETERMINISTIC, model=f"agent:{kind}:v1")
    return SeededAgent(kind, seeded_id(number), ref, commands)


def model_agent(task: AgentTask, id: UUID, setting: str, more: frozenset[str], list_number: int) -> SeededAgent:
    """Return an agent that asks the model that a setting names."""
    ref = ModelRef(provider=SETTING, model=setting)
    return SeededAgent(task.kind, id, ref, task.commands | more, task.prompt, list_number)


PROMOTION_COMMANDS = JUDGING_COMMANDS | {PromoteCautionProposal.operation.command_name}
RUN_READS = frozenset({"ListRuns", "GetRun", "GetRunHistory", "GetPlan", "GetPractice", "GetMethod", "ListSupplies"})
SUPERVISOR_COMMANDS = RUN_READS | {"HoldRun", "StopRun", "RecordAgentDecision"}
CLEARANCE_READS = frozenset({"ListClearances", "GetClearance", "GetClearanceHistory"})
EXPIRER_COMMANDS = CLEARANCE_READS | {"ExpireClearance", "RecordAgentDecision"}
SEEDED: Mapping[str, SeededAgent] = {
    seeded.kind: seeded
    for seeded in (
        model_agent(DEBRIEF, RUN_DEBRIEFER_ID, "RUN_DEBRIEFER_MODEL", frozenset(), list_number=1),
        model_agent(DRAFT, seeded_id(2), "CAUTION_DRAFTER_MODEL", PROMOTION_COMMANDS, list_number=2),
        rule_agent(RUN_SUPERVISOR, 3, SUPERVISOR_COMMANDS),
        rule_agent(CAUTION_PROMOTER, 4, PROMOTION_COMMANDS),
        rule_agent(CLEARANCE_EXPIRER, 5, EXPIRER_COMMANDS),
    )
}  # Every seeded agent by its kind, which is also its name.
