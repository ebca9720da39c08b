"""A conduit: a governed path between two zones, with the logbook of the verdicts made on it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import names_of
from baton.domain.kernel import Aggregate, Call, Creation, Event, Outcome, SortedSet, State, copy_with
from baton.domain.shared.listing import ListQuery, NamedListQuery, Summary
from baton.domain.shared.logbooks import LogbookKind, LogbookOpened
from baton.domain.shared.reads import Reads


class AccessDecision(StrEnum):
    ALLOW = "Allow"
    DENY = "Deny"


@dataclass(frozen=True, kw_only=True)
class Conduit(State):
    """A conduit is a governed path between two zones, owning the logbook of the verdicts made on it."""

    name: str
    source_zone_id: UUID
    target_zone_id: UUID
    verdict_logbook_id: UUID | None = None
    """The logbook of why calls were allowed or denied."""


conduit = Aggregate(Conduit, "/conduits", context="trust")


class ConduitDefined(Event, of=conduit):
    """The path was defined."""

    name: str
    source_zone_id: UUID
    target_zone_id: UUID


class ConduitLogbookOpened(LogbookOpened, of=conduit):
    """The logbook of verdicts was opened."""


@conduit.evolve
def evolve(conduit: Conduit, event: ConduitLogbookOpened) -> Conduit:
    return copy_with(conduit, verdict_logbook_id=event.logbook_id)


@conduit.creation()
class DefineConduit(Creation):
    """Define a governed path between two zones and open its verdict logbook."""

    name: Annotated[str, conduit.text("name", 200)]
    source_zone_id: UUID
    target_zone_id: UUID

    def decide(self, call: Call) -> Outcome:
        return [ConduitDefined(**dict(self)), open_verdict_logbook(call.id_for("verdict logbook"))]


def open_verdict_logbook(logbook_id: UUID) -> ConduitLogbookOpened:
    """Return the event that opens a conduit's verdict logbook."""
    texts = {name: {"type": "string"} for name in ("command_name", "decision", "reason")}
    schema = {"fields": {"actor_id": {"type": "uuid"}, **texts}}
    return ConduitLogbookOpened(logbook_id=logbook_id, kind=LogbookKind.VERDICT, schema_=schema)


GetConduit = conduit.get(hidden=["created_at"])


class ConduitSummary(Summary):
    conduit_id: UUID
    name: str
    source_zone_id: UUID
    target_zone_id: UUID
    created_at: datetime


@conduit.listing(ConduitSummary)
class ListConduits(NamedListQuery[ConduitSummary]):
    """Conduits in order of definition."""

    source_zone_id: UUID | None = None
    target_zone_id: UUID | None = None


class ConduitVerdict(Summary):
    """One answer of the authorization seam."""

    relation: ClassVar[str] = "entries_conduit_verdicts"
    time: ClassVar[str] = "occurred_at"
    event_id: UUID
    conduit_id: UUID
    logbook_id: UUID
    actor_id: UUID
    command_name: str
    decision: AccessDecision
    reason: str | None
    surface_id: UUID
    determining_policies: SortedSet[UUID]
    correlation_id: UUID
    causation_id: UUID | None
    occurred_at: datetime
    recorded_at: datetime


class VerdictItem(ConduitVerdict):
    """A listed verdict, with what the caller it was about is called; people's names are null without `GetActor`."""

    actor_name: str | None
    """What the actor is called now."""


@conduit.listing(ConduitVerdict, returns=VerdictItem, get="/{conduit_id}/verdicts")
class ListConduitVerdicts(ListQuery[VerdictItem]):
    """Why calls over this conduit were allowed or denied, oldest first."""

    actor_id: UUID | None = None
    command_name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    decision: AccessDecision | None = None
    """Only calls that were allowed (Allow) or denied (Deny)."""

    def present(self, rows: tuple[ConduitVerdict, ...]) -> Reads[tuple[VerdictItem, ...]]:
        names = yield from names_of((row.actor_id, row.surface_id) for row in rows)
        return tuple(VerdictItem(**dict(row), actor_name=names[row.actor_id, row.surface_id]) for row in rows)
