"""The photon beam: whether it is known to be gone for some work, and by which event."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from baton.domain.equipment.asset_tree import AssetScope
from baton.domain.shared.reads import Reads, events_of, latest_events
from baton.domain.supply.coverage import former_supplies, supplies_in_scope
from baton.domain.supply.supply import (
    AVAILABLE,
    DEGRADED,
    RECOVERING,
    UNAVAILABLE,
    Supply,
    SupplyDeregistered,
    SupplyMarkedRecovering,
    SupplyMarkedUnavailable,
    SupplyTransition,
)

PHOTON_BEAM = "photon_beam"
PROVIDING = (AVAILABLE, DEGRADED)
RECENT = 20  # Events of a supply among which its last departure is looked for first.
LEAVING = (SupplyMarkedUnavailable, SupplyMarkedRecovering, SupplyDeregistered)
"""The events with which a supply stops to provide; Degraded, it still does."""


@dataclass(frozen=True)
class Outage:
    """A loss of the beam: since when, by which event, and a sentence about it."""

    event_id: UUID
    since: datetime
    detail: str


def is_beam_lost(candidates: Iterable[Supply]) -> bool:
    """Return whether the beam is known to be gone: nothing provides it, and something that should is out or coming back.

    Where nothing is known of it, it counts as not lost.
    """
    statuses = {one.status for one in candidates if one.kind == PHOTON_BEAM}
    return not statuses & set(PROVIDING) and bool(statuses & {UNAVAILABLE, RECOVERING})


def outage_in(scope: AssetScope, own_facility_code: str) -> Reads[Outage | None]:
    """Return the outage that work in this scope is under, or None while it has beam."""
    kinds = frozenset({PHOTON_BEAM})
    candidates = yield from supplies_in_scope(kinds, scope, own_facility_code)
    if not is_beam_lost(candidates):
        return None
    former = yield from former_supplies(kinds, scope, own_facility_code)
    left: list[SupplyTransition] = []
    for one in (*candidates, *former):
        left += yield from departures(one.id)
    event = last_departure(left)
    detail = ", ".join(f"{one.name} is {one.status.value}" for one in sorted(candidates, key=lambda one: one.id))
    return Outage(event.stored_id, event.occurred_at, detail)


def departures(supply_id: UUID) -> Reads[Sequence[SupplyTransition]]:
    """Return the events by which a supply stopped to provide: the latest ones, or all if its last departure is older."""
    recent: tuple[SupplyTransition, ...] = yield from latest_events(supply_id, *LEAVING, count=RECENT)
    if len(recent) < RECENT or any(event.from_status in PROVIDING for event in recent):
        return recent
    return (yield from events_of(supply_id, *LEAVING))


def last_departure(transitions: Iterable[SupplyTransition]) -> SupplyTransition:
    """Return the event that took the last beam away; where none was ever there, the first that said so."""
    ordered = sorted(transitions, key=lambda event: (event.occurred_at, event.stream_id))
    left = [event for event in ordered if event.from_status in PROVIDING]
    return left[-1] if left else ordered[0]


def takes_beam_away(event: SupplyTransition) -> bool:
    """Return whether a supply provides no more after this event, and did before."""
    return event.from_status in PROVIDING and event.to_status not in PROVIDING
