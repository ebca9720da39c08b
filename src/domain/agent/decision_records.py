"""How agents record what they decide: one decision under an id derived from its cause, with its model calls.

Decision and calls are one append, so that neither is there without the other.
"""

from datetime import datetime
from uuid import UUID, uuid5

from baton.domain.decision.decision import Decision, DecisionRegistered, RegisterDecision, decision, decision_event
from baton.domain.decision.inferences import AppendInferences, Span, append_spans
from baton.domain.kernel import Call, JudgedCreation, Outcome
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.reads import Reads, existing, is_permitted
from baton.domain.shared.writes import Answer


def decision_id_of(at: datetime, agent_id: UUID, cause: str) -> UUID:
    """Return the id of what an agent decides for a cause: however often it decides, there is one decision."""
    return derived_uuid7(int(at.timestamp() * 1000), str(agent_id), cause)


def agent_decision_event(choice: RegisterDecision, decision_id: UUID) -> DecisionRegistered:
    """Return the event of an agent's decision, under an id derived from the decision's."""
    return decision_event(choice).identify(uuid5(decision_id, "event:0"))


@decision.inner(creates=True)
class RecordAgentDecision(JudgedCreation[tuple[bool, bool]]):
    """Register what the calling agent decided, unless it has done so before; the answer says whether its calls are kept."""

    choice: RegisterDecision
    calls: tuple[Span, ...] = ()

    def gather(self, call: Call) -> Reads[tuple[bool, bool]]:
        """Return whether it was registered before, and whether the agent may keep its calls."""
        known = (yield from existing(Decision, call.new_id)) is not None
        return known, bool(self.calls) and (yield from is_permitted(AppendInferences.operation.command_name))

    def decide(self, call: Call, facts: tuple[bool, bool]) -> Outcome:
        known, keeps_calls = facts
        assert self.choice.decided_by == call.principal_id, "an agent registers its own decisions"
        answer = Answer({"decision_id": str(call.new_id), "calls_kept": (keeps_calls and not known) or not self.calls})
        if known:
            return [answer]
        inferences = append_spans(self, self.calls, call.new_id, None, call) if keeps_calls else ()
        return [agent_decision_event(self.choice, call.new_id), *inferences, answer]
