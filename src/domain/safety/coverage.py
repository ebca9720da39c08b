"""The clearance gate: which safety forms cover a run, and whether one of them lets it go on."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from baton.domain.kernel import instant
from baton.domain.safety.clearance import ACTIVE, CURRENT, ENDED, Clearance, binding_keys
from baton.domain.safety.hazards import RecordBinding
from baton.domain.shared.gates import Finding
from baton.domain.shared.reads import Reads, every, members_of


def covering(
    run_id: UUID | None, subject_id: UUID | None, asset_ids: Collection[UUID], now: datetime
) -> Reads[tuple[Clearance, ...]]:
    """The clearances that cover a run by itself, its subject or an asset of its widened scope, in order of registration.

    Ended ones are looked for only where none is in force: a gate that opens does not pay for the past.
    """
    scope = frozenset(
        (
            *(RecordBinding(kind="Asset", id=id) for id in asset_ids),
            *(RecordBinding(kind="Run", id=id) for id in (run_id,) if id is not None),
            *(RecordBinding(kind="Subject", id=id) for id in (subject_id,) if id is not None),
        )
    )
    keys = binding_keys(scope)
    covers: list[Clearance] = []
    for kind in (CURRENT, ENDED) if keys else ():
        found = yield from every(Clearance, (yield from members_of(kind, *keys)))
        covers += (clearance for clearance in found.values() if scope & clearance.bindings)
        if any(in_force(clearance, now) for clearance in covers):
            break
    return tuple(sorted(covers, key=lambda clearance: clearance.id))


def in_force(clearance: Clearance, now: datetime) -> bool:
    """Whether a clearance counts at this moment: Active, begun and not over."""
    over = clearance.valid_until is not None and clearance.valid_until <= now
    return clearance.status is ACTIVE and begun(clearance, now) and not over


def begun(clearance: Clearance, now: datetime) -> bool:
    """Whether the validity window has opened."""
    return clearance.valid_from is None or clearance.valid_from <= now


def clearance_finding(clearances: Sequence[Clearance], now: datetime) -> Finding | None:
    """Why these clearances do not let a run go on; one in force is enough, they are not combined."""
    if not clearances:
        return Finding(
            total=True,
            reason="no_clearance",
            detail="No clearance covers this run; register one for its subject or its assets, and have it activated.",
            facts={"clearance_count": 0, "clearances": []},
        )
    if any(in_force(clearance, now) for clearance in clearances):
        return None
    standings = Counter(standing(clearance, now) for clearance in clearances)
    found = ", ".join(f"{count} {name}" for name, count in sorted(standings.items()))
    return Finding(
        total=False,
        reason="no_clearance_in_force",
        detail=f"No clearance that covers this run is in force ({found}); bring one into force, or register a new one.",
        facts={"clearance_count": len(clearances), "clearances": list(map(shown, clearances))},
    )


def standing(clearance: Clearance, now: datetime) -> str:
    """The status of a clearance that is not in force, and for an Active one where its window lies."""
    if clearance.status is not ACTIVE:
        return clearance.status.value
    return "Active but past its window" if begun(clearance, now) else "Active but before its window"


def shown(clearance: Clearance) -> dict[str, Any]:
    """What a refusal says of a clearance."""
    return {
        "clearance_id": str(clearance.id),
        "status": clearance.status.value,
        "valid_from": clearance.valid_from and instant(clearance.valid_from),
        "valid_until": clearance.valid_until and instant(clearance.valid_until),
    }
