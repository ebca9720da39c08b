"""The queries that belong to no aggregate: the event log as callers may read it, and what a caller itself may do."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import Actor, ActorKind, names_of
from baton.domain.kernel import Call, NamesOnRequest, Query, SortedSet, Value
from baton.domain.registry import question
from baton.domain.shared.event_view import EventView
from baton.domain.shared.listing import Order, Page
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import Reads, ask, find, permitted_commands
from baton.domain.trust.policy import reachable_commands

Name = Annotated[str, Field(min_length=1, max_length=200)]
Position = Annotated[int, Field(ge=0, le=2**63 - 1)]


class AccessView(Value):
    """Who a caller is, and what it can reach; a caller without a token is of no kind and named so."""

    principal_id: UUID
    kind: ActorKind | None
    name: str | None
    surface_id: UUID
    permitted_commands: SortedSet[str]


class EventFilter(Query):
    """Which events of the log are wanted, behind which position."""

    after: Position | None = None
    stream_type: tuple[Name, ...] = ()
    event_type: tuple[Name, ...] = ()


@question("/events", context="edge", returns=Page[EventView])
class ListEvents(EventFilter, NamesOnRequest):
    """Every committed event after a position, in commit-safe order or the newest first.

    Lists of steps are referred to: the address that shows the whole event stands in their place.
    """

    limit: Annotated[int, Field(ge=1, le=100)] = 50
    cursor: Name | None = None
    order: Order = Order.ASC
    payloads: bool = True
    max_bytes: Annotated[int, Field(ge=1024, le=2**24)] | None = None

    def answer(self, call: Call) -> Reads[Page[dict[str, Any]]]:
        return (yield from ask(Ports.event_page, call, self))


@question("/events/stream", context="edge", returns=None, mcp=False)
class StreamEvents(EventFilter):
    """Every committed event after a position, as it happens (server-sent events); resumable without loss or repeat."""


@question("/me", context="edge", returns=AccessView, open=True)
class GetMyAccess(Query):
    """Who I am to the service, and every command that a call of mine can reach on this surface."""

    def answer(self, call: Call) -> Reads[AccessView]:
        actor = yield from find(Actor, call.principal_id)
        kind = actor.kind if actor else None
        appearance = (call.principal_id, call.surface_id)
        names = yield from names_of([appearance], own=True)
        permitted = yield from permitted_commands()
        return AccessView(
            principal_id=call.principal_id,
            kind=kind,
            name=names[appearance],
            surface_id=call.surface_id,
            permitted_commands=reachable_commands(permitted, kind, call.surface_id),
        )
