"""The lease: of several agents of one kind, which one concludes about the end of a run.

It is a marker on the run's own stream, so nobody can hold it twice, whatever engine or machine asks. Markers of another
kind of agent do not count. A lease does not expire and is never taken over.
"""

from uuid import UUID, uuid5

from baton.domain.agent.agent import Agent
from baton.domain.kernel import Call, Event, JudgedVerb, Outcome
from baton.domain.run.run import Run, run
from baton.domain.shared.reads import Reads, happened, required
from baton.domain.shared.writes import Answer


class DecisionDebriefRequested(Event, of=run, inert=True):
    """An agent took the lease on concluding about this end of the run."""

    debriefer_agent_id: UUID
    debriefer_kind: str
    terminal_event_id: UUID


Markers = tuple[DecisionDebriefRequested, ...]


def holder_of_lease(markers: Markers, kind: str, terminal_event_id: UUID) -> UUID | None:
    """The agent that was first with its marker for this end of a run, among those of its kind."""
    scope = (kind, terminal_event_id)
    return next((m.debriefer_agent_id for m in markers if (m.debriefer_kind, m.terminal_event_id) == scope), None)


@run.inner()
class RequestDecisionDebrief(JudgedVerb[Run, tuple[Agent, Markers]]):
    """Take the lease as the calling agent, or hear who has it; asked again, it says the same."""

    terminal_event_id: UUID

    def gather(self, run: Run, call: Call) -> Reads[tuple[Agent, Markers]]:
        agent = yield from required(Agent, call.principal_id)
        markers = yield from happened(run.id, DecisionDebriefRequested)
        return agent, markers

    def decide(self, run: Run, call: Call, facts: tuple[Agent, Markers]) -> Outcome:
        agent, markers = facts
        holder = holder_of_lease(markers, agent.kind, self.terminal_event_id)
        if holder is not None:
            return [Answer({"agent_id": str(holder)})]
        marker = DecisionDebriefRequested(
            debriefer_agent_id=agent.id, debriefer_kind=agent.kind, terminal_event_id=self.terminal_event_id
        )
        return [
            marker.known_as(uuid5(run.id, f"lease:{self.terminal_event_id}:{agent.id}")),
            Answer({"agent_id": str(agent.id)}),
        ]
