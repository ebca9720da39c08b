"""A surface: where calls arrive, and what a visit drives."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar
from uuid import UUID

from baton.domain.kernel import Aggregate, Call, Creation, Event, Query, State, Value
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, record_of
from baton.domain.shared.writes import Record

SYSTEM_HTTP = UUID(int=0x20)
SYSTEM_MCP_STDIO = UUID(int=0x21)
SYSTEM_MCP_STREAMABLE_HTTP = UUID(int=0x22)


class SurfaceKind(StrEnum):
    HTTP = "HTTP"
    MCP_STDIO = "MCP_STDIO"
    MCP_STREAMABLE_HTTP = "MCP_STREAMABLE_HTTP"


@dataclass(frozen=True, kw_only=True)
class Surface(State):
    """A surface is an arrival point for calls, and the thing a visit drives."""

    name: str
    kind: SurfaceKind


@dataclass(frozen=True)
class SurfaceControl(Record):
    """Which visit drives a surface now; no row, nobody."""

    relation: ClassVar[str] = "trust_surface_control"
    key: ClassVar[tuple[str, ...]] = ("surface_id",)
    surface_id: UUID
    visit_id: UUID
    since_at: datetime


surface = Aggregate(Surface, "/surfaces", context="trust")


class SurfaceDefined(Event, of=surface):
    """The arrival point was defined."""

    name: str
    kind: SurfaceKind


@surface.creation(records=SurfaceDefined)
class DefineSurface(Creation):
    """Define an arrival point, for instance one endstation's console."""

    name: Annotated[str, surface.text("name", 200)]
    kind: SurfaceKind
    """How calls arrive: over HTTP, over MCP by standard input, or over MCP by HTTP."""


GetSurface = surface.get("id", "name", "kind")


class SurfaceSummary(Summary):
    surface_id: UUID
    name: str
    kind: SurfaceKind
    created_at: datetime


@surface.listing(SurfaceSummary)
class ListSurfaces(NamedListQuery[SurfaceSummary]):
    """Surfaces in order of definition."""

    kind: SurfaceKind | None = None


class SurfaceControlView(Value):
    """Which visit drives a surface and since when; both are null where none does."""

    surface_id: UUID
    visit_id: UUID | None
    since_at: datetime | None
    """Since when."""


@surface.query(get="/{surface_id}/control", returns=SurfaceControlView)
class GetSurfaceControl(Query[SurfaceControlView]):
    """Which visit drives this surface now."""

    def answer(self, surface: Surface, call: Call) -> Reads[SurfaceControlView]:
        control = yield from record_of(SurfaceControl, surface_id=surface.id)
        visit_id, since_at = (control.visit_id, control.since_at) if control else (None, None)
        return SurfaceControlView(surface_id=surface.id, visit_id=visit_id, since_at=since_at)
