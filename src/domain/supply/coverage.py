"""The supply gate: which supplies some work could draw on, and whether they let it begin or go on.
And the photon beam: whether it is known to be gone for some work, and by which event."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from baton.domain.equipment.asset_tree import AssetScope
from baton.domain.facility.facility import Facility
from baton.domain.shared.deployment import Deployment
from baton.domain.shared.gates import NOT_CONFIRMED, GateFinding
from baton.domain.shared.identifiers import FACILITY_CODE
from baton.domain.shared.monitoring import age_objection, observation_age
from baton.domain.shared.reads import (
    Holders,
    Reads,
    all_members_of,
    events_of,
    find_all,
    latest_events,
    members_of,
    records_of,
)
from baton.domain.supply import supply as events
from baton.domain.supply.supply import FORMER, KINDS, Supply, SupplyContact, SupplyStatus, SupplyTransition, address_key

UNKNOWN, AVAILABLE, DEGRADED, UNAVAILABLE, RECOVERING, DECOMMISSIONED = SupplyStatus
PROVIDING = (AVAILABLE, DEGRADED)
PHOTON_BEAM = "photon_beam"
RECENT = 20  # Events of a supply among which its last departure is looked for first.
LEAVING = (events.SupplyMarkedUnavailable, events.SupplyMarkedRecovering, events.SupplyDeregistered)  # Ends of providing.
ADVICE = {
    DEGRADED: "restore it first",
    RECOVERING: "restore it once it is back",
    UNKNOWN: "mark it available once somebody has looked",
    UNAVAILABLE: "mark it recovering when it comes back, and then restore it",
}  # What brings a supply back from each status, the shortest way first.
SupplyContacts = Mapping[UUID, SupplyContact]


def supplies_in_scope(kinds: AbstractSet[str], scope: AssetScope, own_facility_code: str) -> Reads[tuple[Supply, ...]]:
    """Return the live supplies of these kinds in scope: those of its facilities as a whole, or of an asset in it."""
    if not kinds:
        return ()
    found = yield from _enlisted_supplies(KINDS, kinds, scope, own_facility_code)
    return tuple(one for one in found if one.status is not DECOMMISSIONED)


def every_supply_in_scope(scope: AssetScope, own_facility_code: str) -> Reads[tuple[Supply, ...]]:
    """Return the live supplies in scope, of whatever kind."""
    return (yield from _enlisted_supplies(KINDS, None, scope, own_facility_code))


def _enlisted_supplies(
    lookup: str, kinds: AbstractSet[str] | None, scope: AssetScope, own_facility_code: str
) -> Reads[tuple[Supply, ...]]:
    """Return the supplies of these kinds, or of all, that a look-up has of the scope's facilities, the Sites that they are
    areas of included."""
    codes = scope.facility_codes if scope.assets else frozenset({own_facility_code})
    holders: dict[str, UUID] = yield Holders(FACILITY_CODE, tuple(sorted(codes)))
    facilities = yield from find_all(Facility, holders.values())
    sites = yield from find_all(Facility, (one.parent_id for one in facilities.values() if one.parent_id is not None))
    codes |= {site.code for site in sites.values()}
    reads = all_members_of(lookup) if kinds is None else members_of(lookup, *sorted(kinds))
    supplies = yield from find_all(Supply, (yield from reads))
    return tuple(
        one
        for one in supplies.values()
        if one.facility_code in codes and (one.containing_asset_id is None or one.containing_asset_id in scope.assets)
    )


def contacts_of(supplies: Iterable[Supply]) -> Reads[SupplyContacts]:
    """Return when each of these supplies was last observed; one that never was is left out."""
    if not (ids := tuple(one.id for one in supplies)):
        return {}
    return {row.supply_id: row for row in (yield from records_of(SupplyContact, supply_id=ids))}


def is_monitored(supply: Supply, deployment: Deployment) -> bool:
    """Return whether the deployment's own monitor watches a supply."""
    return address_key(supply) in deployment.monitored_supplies


def supply_finding(
    needed: Iterable[str],
    candidates: Iterable[Supply],
    contacts: SupplyContacts,
    now: datetime,
    deployment: Deployment,
    resuming: bool = False,
) -> GateFinding | None:
    """Return the finding on the first kind that no candidate provides; a resumed run may continue with a Degraded supply.
    A supply that the deployment's own monitor watches provides nothing while nobody confirms what was observed of it."""
    passing = PROVIDING if resuming else (AVAILABLE,)
    known = sorted((one for one in candidates if one.status is not DECOMMISSIONED), key=lambda one: one.id)
    for kind in sorted(needed):
        supplies = [one for one in known if one.kind == kind]
        providing = [one for one in supplies if one.status in passing]
        outdated = {one.id: why for one in providing if (why := _age_objection(one, contacts, now, deployment)) is not None}
        if len(outdated) < len(providing):
            continue
        facts = {"kind": kind, "supplies": [_facts(one, contacts.get(one.id), now, deployment) for one in supplies]}
        if not supplies:
            detail = f"No supply of kind {kind} is in scope; register one of the facility or of these assets."
            return GateFinding(True, "no_supply", detail, facts)
        described = ", ".join(f"{one.name} {outdated.get(one.id, f'is {one.status.value}')}" for one in supplies)
        if outdated:
            reason, advice = NOT_CONFIRMED, "see that its monitor and the control system run"
        else:
            reason = "no_supply_available"
            advice = next(ADVICE[status] for status in ADVICE if any(one.status is status for one in supplies))
        detail = f"No supply of kind {kind} in scope is {' or '.join(passing)}: {described}; {advice}."
        return GateFinding(False, reason, detail, facts)
    return None


def _age_objection(supply: Supply, contacts: SupplyContacts, now: datetime, deployment: Deployment) -> str | None:
    """Return why a supply's last observation is too old; where no monitor of our own watches it, a person's word counts."""
    if not is_monitored(supply, deployment):
        return None
    return age_objection(contacts.get(supply.id), now, deployment.monitored_permit_ttl)


def _facts(supply: Supply, contact: SupplyContact | None, now: datetime, deployment: Deployment) -> dict[str, object]:
    return {
        "supply_id": str(supply.id),
        "status": supply.status.value,
        "observation_age": observation_age(contact, now),
        "monitored": is_monitored(supply, deployment),
    }


@dataclass(frozen=True)
class Outage:
    """A loss of the beam: since when, by which event, and a sentence about it."""

    event_id: UUID
    since: datetime
    detail: str


def is_beam_lost(candidates: Iterable[Supply]) -> bool:
    """Return whether the beam is known to be gone: nothing provides it, and something that should is out or coming back.
    Where nothing is known of it, it counts as not lost."""
    statuses = {one.status for one in candidates if one.kind == PHOTON_BEAM}
    return not statuses & set(PROVIDING) and bool(statuses & {UNAVAILABLE, RECOVERING})


def outage_in(scope: AssetScope, own_facility_code: str) -> Reads[Outage | None]:
    """Return the outage that work in this scope is under, or None while it has beam."""
    kinds = frozenset({PHOTON_BEAM})
    candidates = yield from supplies_in_scope(kinds, scope, own_facility_code)
    if not is_beam_lost(candidates):
        return None
    former = yield from _enlisted_supplies(FORMER, kinds, scope, own_facility_code)
    left: list[SupplyTransition] = []
    for one in (*candidates, *former):
        left += yield from departures(one.id)
    ordered = sorted(left, key=lambda event: (event.occurred_at, event.stream_id))
    losses = [event for event in ordered if event.from_status in PROVIDING]
    event = losses[-1] if losses else ordered[0]  # Where no beam was ever there, the first event that said so.
    detail = ", ".join(f"{one.name} is {one.status.value}" for one in sorted(candidates, key=lambda one: one.id))
    return Outage(event.stored_id, event.occurred_at, detail)


def departures(supply_id: UUID) -> Reads[Sequence[SupplyTransition]]:
    """Return the events by which a supply stopped to provide: the latest ones, or all if its last departure is older."""
    recent: tuple[SupplyTransition, ...] = yield from latest_events(supply_id, *LEAVING, count=RECENT)
    if len(recent) < RECENT or any(event.from_status in PROVIDING for event in recent):
        return recent
    return (yield from events_of(supply_id, *LEAVING))


def takes_beam_away(event: SupplyTransition) -> bool:
    """Return whether a supply provides no more after this event, and did before."""
    return event.from_status in PROVIDING and event.to_status not in PROVIDING
