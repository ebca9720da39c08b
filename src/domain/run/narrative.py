"""What people and agents write about a run, during it and after: its narrative logbook."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.kernel import Call, JudgedVerb, Outcome, Value
from baton.domain.run.run import Run, RunNarrativeLogbookOpened, run
from baton.domain.shared.listing import ListQuery, Where
from baton.domain.shared.logbooks import Appended, Entry, LogbookKind, ProducedId, open_logbook
from baton.domain.shared.reads import Reads, existing
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import FreeText, Text
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Answer, Enter


class RunLogbookEntryKind(StrEnum):
    NOTE = "Note"
    DEBRIEF = "Debrief"


class InvalidRunLogbookEntryError(Invalid, context="run"):
    """An entry needs a text; a Debrief comes from an agent and names its decision, a Note names none."""


class Writing(Value):
    """One entry as its author sends it; a repeated event_id is ignored."""

    event_id: ProducedId
    text: Annotated[str, Text(4000, InvalidRunLogbookEntryError, "text", personal=True)]
    entry_kind: RunLogbookEntryKind = RunLogbookEntryKind.NOTE
    decision_id: UUID | None = None
    occurred_at: Instant | None = None


class RunLogbookEntry(Entry):
    """A stored entry."""

    relation: ClassVar[str] = "entries_run_narrative"
    time: ClassVar[str] = "recorded_at"
    kind: ClassVar[LogbookKind] = LogbookKind.NARRATIVE
    run_id: UUID
    entry_kind: RunLogbookEntryKind
    text: FreeText
    decision_id: UUID | None


@run.command(post="/{run_id}/logbook", status=200, returns=Appended, attempts=3, essential=True)
class AppendRunLogbookEntries(JudgedVerb[Run, Actor | None]):
    """Write into the logbook of a run, whether it is on or over; debriefs are for agents."""

    entries: Annotated[tuple[Writing, ...], Field(min_length=1, max_length=100)]

    def gather(self, run: Run, call: Call) -> Reads[Actor | None]:
        return (yield from existing(Actor, call.principal_id))

    def decide(self, run: Run, call: Call, author: Actor | None) -> Outcome:
        for writing in self.entries:
            check_entry(writing, author)
        logbook_id, opening = open_logbook(run.narrative_logbook_id, RunNarrativeLogbookOpened, RunLogbookEntry, call)
        rows = [RunLogbookEntry.by(call, self, logbook_id, run_id=run.id, **dict(writing)) for writing in self.entries]
        return [*opening, Enter(rows), Answer({"event_count": len(rows)})]


def check_entry(writing: Writing, author: Actor | None) -> None:
    """Refuse a debrief that no agent wrote or that names no decision, and a note that names one."""
    debrief = writing.entry_kind is RunLogbookEntryKind.DEBRIEF
    if debrief and (author is None or author.kind is not ActorKind.AGENT):
        raise InvalidRunLogbookEntryError("Only agents write debriefs; send a Note instead.", reason="agent_only")
    if debrief and writing.decision_id is None:
        raise InvalidRunLogbookEntryError("A Debrief names its decision; give decision_id.", reason="decision_missing")
    if not debrief and writing.decision_id is not None:
        raise InvalidRunLogbookEntryError("A Note names no decision; leave decision_id out.", reason="decision_unexpected")


@run.listing(RunLogbookEntry, get="/{run_id}/logbook")
class ListRunLogbookEntries(ListQuery):
    """What was written about a run, in the order it was recorded."""

    entry_kind: RunLogbookEntryKind | None = None

    def scope(self, target: Run) -> Iterator[Where]:
        yield Where("run_id", "is", target.id)
