"""The supply gate: which supplies some work could draw on, and whether they let it begin or go on."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from uuid import UUID

from baton.domain.equipment.asset_tree import AssetScope
from baton.domain.federation.facility import Facility
from baton.domain.shared.gates import GateFinding
from baton.domain.shared.identifiers import FACILITY_CODE
from baton.domain.shared.reads import Holders, Reads, every, members_of
from baton.domain.supply.supply import (
    AVAILABLE,
    DECOMMISSIONED,
    DEGRADED,
    FORMER,
    KINDS,
    RECOVERING,
    UNAVAILABLE,
    UNKNOWN,
    Supply,
)

ADVICE = {
    DEGRADED: "restore it first",
    RECOVERING: "restore it once it is back",
    UNKNOWN: "mark it available once somebody has looked",
    UNAVAILABLE: "mark it recovering when it comes back, and then restore it",
}  # What brings a supply back from each status, the shortest way first.


def supplies_in_scope(kinds: AbstractSet[str], scope: AssetScope, own_facility_code: str) -> Reads[tuple[Supply, ...]]:
    """Return the live supplies of these kinds in scope: those of its facilities as a whole, or of an asset in it."""
    if not kinds:
        return ()
    found = yield from _enlisted_supplies(KINDS, kinds, scope, own_facility_code)
    return tuple(one for one in found if one.status is not DECOMMISSIONED)


def former_supplies(kinds: AbstractSet[str], scope: AssetScope, own_facility_code: str) -> Reads[tuple[Supply, ...]]:
    """Return the supplies of these kinds that were in scope before they were retired."""
    return (yield from _enlisted_supplies(FORMER, kinds, scope, own_facility_code))


def _enlisted_supplies(
    lookup: str, kinds: AbstractSet[str], scope: AssetScope, own_facility_code: str
) -> Reads[tuple[Supply, ...]]:
    codes = yield from _with_sites(scope.facility_codes if scope.assets else frozenset({own_facility_code}))
    supplies = yield from every(Supply, (yield from members_of(lookup, *sorted(kinds))))
    return tuple(
        one
        for one in supplies.values()
        if one.facility_code in codes and (one.containing_asset_id is None or one.containing_asset_id in scope.assets)
    )


def _with_sites(codes: frozenset[str]) -> Reads[frozenset[str]]:
    """Return the codes of these facilities and of the Sites they are areas of."""
    holders: dict[str, UUID] = yield Holders(FACILITY_CODE, tuple(sorted(codes)))
    facilities = yield from every(Facility, holders.values())
    sites = yield from every(Facility, (one.parent_id for one in facilities.values() if one.parent_id is not None))
    return codes | {site.code for site in sites.values()}


def supply_finding(needed: Iterable[str], candidates: Iterable[Supply], resuming: bool = False) -> GateFinding | None:
    """Return the finding on the first kind that no candidate provides; a resumed run may go on with a Degraded supply."""
    passing = (AVAILABLE, DEGRADED) if resuming else (AVAILABLE,)
    known = sorted((one for one in candidates if one.status is not DECOMMISSIONED), key=lambda one: one.id)
    for kind in sorted(needed):
        supplies = [one for one in known if one.kind == kind]
        if any(one.status in passing for one in supplies):
            continue
        facts = {"kind": kind, "supplies": [{"supply_id": str(one.id), "status": one.status.value} for one in supplies]}
        if not supplies:
            detail = f"No supply of kind {kind} is in scope; register one of the facility or of these assets."
            return GateFinding(True, "no_supply", detail, facts)
        known_statuses = ", ".join(f"{one.name} is {one.status.value}" for one in supplies)
        advice = next(ADVICE[status] for status in ADVICE if any(one.status is status for one in supplies))
        detail = f"No supply of kind {kind} in scope is {' or '.join(passing)}: {known_statuses}; {advice}."
        return GateFinding(False, "no_supply_available", detail, facts)
    return None
