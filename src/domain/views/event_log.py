"""The event log as callers may read it: in pages, and as it grows."""

from typing import Annotated, Any, Protocol
from uuid import UUID

from pydantic import Field

from baton.domain.kernel import Call, NamesOnRequest, Query
from baton.domain.registry import standalone_query
from baton.domain.shared.event_view import EventView
from baton.domain.shared.listing import Order, Page
from baton.domain.shared.reads import Reads, ask
from baton.domain.shared.times import Instant

Name = Annotated[str, Field(min_length=1, max_length=200)]
Position = Annotated[int, Field(ge=0, le=2**63 - 1)]


class EventFilter(Query):
    """Which events of the log are wanted, behind which position."""

    after: Position | None = None
    stream_type: tuple[Name, ...] = ()
    event_type: Annotated[tuple[Name, ...], Field(description="By their names, such as RunHeld or QueueHeld.")] = ()


ASSET_NAMING = (
    *("AcquisitionRecorded", "CautionRegistered", "ClearanceRegistered", "FixtureRegistered", "MountAssetInstalled"),
    *("MountAssetUninstalled", "PlanDataRegistrationSet", "PlanDefined", "PlanRoleBound", "PlanWireAdded"),
    *("PlanWireRemoved", "ProcedureAbortRequested", "ProcedureRegistered", "ProcedureResumed", "ProcedureStarted"),
    *("QueueOpened", "RunStarted", "RunWitnessChanged", "RunWitnessed", "SubjectDismounted", "SubjectMounted"),
    "SupplyRegistered",
)
"""The types of events of other streams that name assets; an index finds them by the ids that they hold."""


@standalone_query("/events", context="edge", returns=Page[EventView])
class ListEvents(EventFilter, NamesOnRequest):
    """Every committed event after a position, in commit-safe order or the newest first.

    Over MCP an item is a line for each command, with its `position` and `correlation_id`, unless `full` is true.
    In place of a list of steps is the address of the whole event.
    """

    since: Annotated[Instant | None, Field(description="Recorded at this time or later.")] = None
    until: Annotated[Instant | None, Field(description="Recorded before this time.")] = None
    principal_id: UUID | None = None
    correlation_id: UUID | None = None
    asset_id: Annotated[UUID | None, Field(description="Events of this asset, and those that name it.")] = None
    full: Annotated[bool, Field(description="Over MCP: whole events in place of a line for each command.")] = False
    limit: Annotated[int, Field(ge=1, le=100)] = 50
    cursor: Name | None = None
    order: Order = Order.ASC
    payloads: bool = True
    max_bytes: Annotated[int, Field(ge=1024, le=2**24)] | None = None

    def answer(self, call: Call) -> Reads[Page[dict[str, Any]]]:
        return (yield from ask(EventPort.event_page, call, self))


class EventPort(Protocol):
    """Reads the log as its callers may."""

    async def event_page(self, call: Call, query: ListEvents) -> Page[dict[str, Any]]:
        """Return the events of the log that the caller may read."""


@standalone_query("/events/stream", context="edge", returns=None, mcp=False)
class StreamEvents(EventFilter):
    """Every committed event after a position, as it happens (server-sent events); resumable without loss or repeat."""
