"""A zone: people and equipment that share one trust posture."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from baton.domain.kernel import Aggregate, Creation, Event, State
from baton.domain.shared.listing import NamedListQuery, Summary


@dataclass(frozen=True, kw_only=True)
class Zone(State):
    """A zone is a group of people and equipment that share one trust posture; it is not a location."""

    name: str


zone = Aggregate(Zone, "/zones", context="trust")


class ZoneDefined(Event, of=zone):
    """The zone was defined."""

    name: str


@zone.creation(records=ZoneDefined)
class DefineZone(Creation):
    """Define a trust zone."""

    name: Annotated[str, zone.text("name", 200)]


GetZone = zone.get("id", "name")


class ZoneSummary(Summary):
    zone_id: UUID
    name: str
    created_at: datetime


@zone.listing(ZoneSummary)
class ListZones(NamedListQuery[ZoneSummary]):
    """Zones in order of definition."""
