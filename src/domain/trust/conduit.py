"""A conduit: a governed path between two zones, owning the logbook of the verdicts made on it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.access.principals import names_of
from baton.domain.kernel import Aggregate, Call, Creation, Event, Outcome, SortedSet, State, changed
from baton.domain.shared.listing import ListQuery, Summary, Where
from baton.domain.shared.logbooks import LogbookKind, LogbookOpened
from baton.domain.shared.reads import Reads

VERDICT_SCHEMA = {
    "fields": {
        "actor_id": {"type": "uuid"},
        "command_name": {"type": "string"},
        "decision": {"type": "string"},
        "reason": {"type": "string"},
    }
}


class Decision(StrEnum):
    ALLOW = "Allow"
    DENY = "Deny"


@dataclass(frozen=True, kw_only=True)
class Conduit(State):
    """A conduit is a governed path between two zones, owning the logbook of the verdicts made on it."""

    name: str
    source_zone_id: UUID
    target_zone_id: UUID
    verdict_logbook_id: UUID | None = None


conduit = Aggregate(Conduit, "/conduits", context="trust")


class ConduitDefined(Event, of=conduit):
    """The path was defined."""

    name: str
    source_zone_id: UUID
    target_zone_id: UUID


class ConduitLogbookOpened(LogbookOpened, of=conduit):
    """The logbook of verdicts was opened."""


ConduitEvent = ConduitLogbookOpened


@conduit.begin
def begin(event: ConduitDefined) -> Conduit:
    return Conduit(id=event.stream_id, created_at=event.occurred_at, **dict(event))


@conduit.evolve
def evolve(conduit: Conduit, event: ConduitEvent) -> Conduit:
    match event:
        case ConduitLogbookOpened():
            return changed(conduit, verdict_logbook_id=event.logbook_id)
        case _:
            assert_never(event)


@conduit.creation()
class DefineConduit(Creation):
    """Define a governed path between two zones and open its verdict logbook."""

    name: Annotated[str, conduit.text("name", 200)]
    source_zone_id: UUID
    target_zone_id: UUID

    def decide(self, call: Call) -> Outcome:
        return [
            ConduitDefined(name=self.name, source_zone_id=self.source_zone_id, target_zone_id=self.target_zone_id),
            opened_logbook(call.id_for("verdict logbook")),
        ]


def opened_logbook(logbook_id: UUID) -> ConduitLogbookOpened:
    """The event that opens a conduit's verdict logbook."""
    return ConduitLogbookOpened(logbook_id=logbook_id, kind=LogbookKind.VERDICT, schema_=VERDICT_SCHEMA)


conduit.get("id", "name", "source_zone_id", "target_zone_id", "verdict_logbook_id")


class ConduitSummary(Summary):
    conduit_id: UUID
    name: str
    source_zone_id: UUID
    target_zone_id: UUID
    created_at: datetime


@conduit.listing(ConduitSummary)
class ListConduits(ListQuery):
    """Conduits in order of definition."""

    source_zone_id: UUID | None = None
    target_zone_id: UUID | None = None


class Verdict(Summary):
    """One answer of the authorization seam."""

    relation: ClassVar[str] = "entries_conduit_verdicts"
    time: ClassVar[str] = "occurred_at"
    event_id: UUID
    conduit_id: UUID
    logbook_id: UUID
    actor_id: UUID
    command_name: str
    decision: Decision
    reason: str | None
    surface_id: UUID
    determining_policies: SortedSet[UUID]
    correlation_id: UUID
    causation_id: UUID | None
    occurred_at: datetime
    recorded_at: datetime


class VerdictItem(Verdict):
    """A listed verdict, with what the caller it was about is called; people's names are null without `GetActor`."""

    actor_name: str | None


@conduit.listing(Verdict, returns=VerdictItem, get="/{conduit_id}/verdicts")
class ListConduitVerdicts(ListQuery):
    """Why calls over this conduit were allowed or denied, oldest first."""

    actor_id: UUID | None = None
    command_name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    decision: Decision | None = None

    def present(self, rows: tuple[Verdict, ...]) -> Reads[tuple[VerdictItem, ...]]:
        names = yield from names_of((row.actor_id, row.surface_id) for row in rows)
        return tuple(VerdictItem(**dict(row), actor_name=names[row.actor_id, row.surface_id]) for row in rows)

    def scope(self, target: Conduit) -> Iterator[Where]:
        yield Where("conduit_id", "is", target.id)
