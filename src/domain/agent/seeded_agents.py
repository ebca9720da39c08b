"""The agents that every deployment has: their ids are constants, for every decision they ever made refers to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from baton.domain.agent.agent import AgentVersioned, DefineAgent, defined
from baton.domain.agent.caution_draft import DRAFT
from baton.domain.agent.debrief import DEBRIEF
from baton.domain.agent.expiry import CLEARANCE_EXPIRER
from baton.domain.agent.model_ref import DETERMINISTIC, SETTING, ModelRef
from baton.domain.agent.promotion import CAUTION_PROMOTER, JUDGING, PromoteCautionProposal
from baton.domain.agent.prompts import Prompt
from baton.domain.agent.seeded_ids import seeded_id
from baton.domain.agent.supervision import RUN_SUPERVISOR
from baton.domain.kernel import Call, Outcome

VERSION = "1.0.0"


@dataclass(frozen=True)
class SeededAgent:
    """One of them: what it asks, and what its policy permits it in process."""

    kind: str
    number: int
    model_ref: ModelRef
    commands: frozenset[str]
    prompt: Prompt | None = None
    list_number: int = 1
    """Raised whenever the commands change: the newer policy then takes the place of the older."""

    @property
    def id(self) -> UUID:
        return seeded_id(self.number)

    def begun(self, call: Call) -> Outcome:
        """The agent, in service from the first moment."""
        definition = DefineAgent(
            kind=self.kind,
            name=self.kind,
            version=VERSION,
            model_ref=self.model_ref,
            prompt_template_id=None if self.prompt is None else self.prompt.id,
        )
        first, *rest = defined(definition, call)
        return [first, AgentVersioned(version=VERSION), *rest]


def by_rule(kind: str) -> ModelRef:
    """What an agent that asks no model has in the place of one."""
    return ModelRef(provider=DETERMINISTIC, model=f"agent:{kind}:v1")


def by_setting(name: str) -> ModelRef:
    """The model that a setting names."""
    return ModelRef(provider=SETTING, model=name)


PROMOTING = JUDGING | {PromoteCautionProposal.operation.command_name}
"""What an agent that promotes proposals is permitted for that."""
SEEDED: Mapping[str, SeededAgent] = {
    seeded.kind: seeded
    for seeded in (
        SeededAgent(DEBRIEF.kind, 1, by_setting("RUN_DEBRIEFER_MODEL"), DEBRIEF.commands, DEBRIEF.prompt),
        SeededAgent(
            DRAFT.kind, 2, by_setting("CAUTION_DRAFTER_MODEL"), DRAFT.commands | PROMOTING, DRAFT.prompt, list_number=2
        ),
        SeededAgent(
            RUN_SUPERVISOR,
            3,
            by_rule(RUN_SUPERVISOR),
            frozenset(
                {
                    *("HoldRun", "StopRun", "RecordAgentDecision", "ListRuns", "GetRun", "GetRunHistory"),
                    *("GetPlan", "GetPractice", "GetMethod", "ListSupplies"),
                }
            ),
        ),
        SeededAgent(CAUTION_PROMOTER, 4, by_rule(CAUTION_PROMOTER), PROMOTING),
        SeededAgent(
            CLEARANCE_EXPIRER,
            5,
            by_rule(CLEARANCE_EXPIRER),
            frozenset({"ExpireClearance", "RecordAgentDecision", "ListClearances", "GetClearance", "GetClearanceHistory"}),
        ),
    )
}
"""Every seeded agent by its kind, which is also its name."""
