"""How agents put on record what they decide: one decision under an id that follows from its cause, with its model calls.

Decision and calls are one append, so neither is ever there without the other.
"""

from datetime import datetime
from uuid import UUID, uuid5

from baton.domain.decision.decision import (
    Decision,
    DecisionLogbookOpened,
    DecisionRegistered,
    RegisterDecision,
    decision,
    registered,
)
from baton.domain.decision.inferences import AppendInferences, Inference, Span
from baton.domain.kernel import Call, JudgedCreation, Outcome
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.logbooks import open_logbook
from baton.domain.shared.reads import Reads, existing, permitted
from baton.domain.shared.writes import Answer, Enter


def decision_id_of(at: datetime, agent_id: UUID, cause: str) -> UUID:
    """The id of what an agent decides for a cause, so that however often it decides there is one."""
    return derived_uuid7(int(at.timestamp() * 1000), str(agent_id), cause)


def decided(choice: RegisterDecision, decision_id: UUID) -> DecisionRegistered:
    """The event of an agent's decision, under an id that follows from the decision's."""
    return registered(choice).known_as(uuid5(decision_id, "event:0"))


@decision.inner(creates=True)
class RecordAgentDecision(JudgedCreation[tuple[bool, bool]]):
    """Register what the calling agent decided, unless it has done so before; the answer says whether its calls are kept."""

    choice: RegisterDecision
    calls: tuple[Span, ...] = ()

    def gather(self, call: Call) -> Reads[tuple[bool, bool]]:
        """Whether it was registered before, and whether the agent may keep its calls."""
        known = (yield from existing(Decision, call.new_id)) is not None
        return known, bool(self.calls) and (yield from permitted(AppendInferences.operation.command_name))

    def decide(self, call: Call, facts: tuple[bool, bool]) -> Outcome:
        known, keeps_calls = facts
        assert self.choice.decided_by == call.principal_id, "an agent registers its own decisions"
        answer = Answer({"decision_id": str(call.new_id), "calls_kept": (keeps_calls and not known) or not self.calls})
        if known:
            return [answer]
        return [decided(self.choice, call.new_id), *(self._kept(call) if keeps_calls else ()), answer]

    def _kept(self, call: Call) -> Outcome:
        logbook_id, opening = open_logbook(None, DecisionLogbookOpened, Inference, call)
        rows = [Inference.by(call, self, logbook_id, decision_id=call.new_id, **dict(span)) for span in self.calls]
        return [*opening, Enter(rows)]
