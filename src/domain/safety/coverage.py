"""The clearance gate: which safety forms cover a run, and whether one of them is in force."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from baton.domain.kernel import instant
from baton.domain.next_steps import steps_from_nothing, steps_to_state
from baton.domain.safety.clearance import ACTIVE, CURRENT, DEFINED, ENDED, Clearance, RegisterClearance, binding_keys
from baton.domain.safety.clearance_template import TEMPLATE_CODE, ClearanceTemplate, ClearanceTemplateStatus
from baton.domain.safety.hazards import RecordBinding
from baton.domain.shared.gates import NO_WINDOW, GateFinding, GateWindow
from baton.domain.shared.reads import Reads, all_holders_of, find_all, members_of
from baton.domain.shared.refusals import NextCall

MAX_BINDINGS = 100  # Those that a form takes.


def covering_clearances(
    run_id: UUID | None, subject_id: UUID | None, asset_ids: Collection[UUID], now: datetime
) -> Reads[tuple[Clearance, ...]]:
    """Return the clearances that cover a run, its subject or an asset of its widened scope, in order of registration.

    Ended ones are looked for only where none is in force: a gate that opens does not pay for the past.
    """
    scope = record_bindings((run_id,), (subject_id,), asset_ids)
    keys = binding_keys(scope)
    covers: list[Clearance] = []
    for kind in (CURRENT, ENDED) if keys else ():
        clearances = yield from find_all(Clearance, (yield from members_of(kind, *keys)))
        covers += (clearance for clearance in clearances.values() if scope & clearance.bindings)
        if any(is_in_force(clearance, now) for clearance in covers):
            break
    return tuple(sorted(covers, key=lambda clearance: clearance.id))


def clearances_in_force(
    run_ids: Iterable[UUID], subject_ids: Iterable[UUID | None], asset_ids: Iterable[UUID], now: datetime
) -> Reads[tuple[Clearance, ...]]:
    """Return the clearances in force on any of these, those that end first at the front."""
    scope = record_bindings(run_ids, subject_ids, asset_ids)
    found = yield from find_all(Clearance, (yield from members_of(CURRENT, *binding_keys(scope))))
    counting = (one for one in found.values() if scope & one.bindings and is_in_force(one, now))
    return tuple(sorted(counting, key=lambda one: (one.valid_until is None, one.valid_until or one.registered_at, one.id)))


def record_bindings(
    run_ids: Iterable[UUID | None], subject_ids: Iterable[UUID | None], asset_ids: Iterable[UUID]
) -> frozenset[RecordBinding]:
    """Return the bindings of a form that covers any of these."""
    ids: dict[str, Iterable[UUID | None]] = {"Asset": asset_ids, "Run": run_ids, "Subject": subject_ids}
    bound = ({"kind": kind, "id": id} for kind, own in ids.items() for id in own if id is not None)
    return frozenset(map(RecordBinding.model_validate, bound))


def is_in_force(clearance: Clearance, now: datetime) -> bool:
    """Return whether a clearance counts at this moment: Active, begun and not over."""
    over = clearance.valid_until is not None and clearance.valid_until <= now
    return clearance.status is ACTIVE and has_begun(clearance, now) and not over


def has_begun(clearance: Clearance, now: datetime) -> bool:
    """Return whether the validity window has opened."""
    return clearance.valid_from is None or clearance.valid_from <= now


def clearance_window(clearances: Collection[Clearance], now: datetime) -> GateWindow:
    """Return until when clearances are in force without a gap or, where none is, when the first comes into force."""
    if not any(is_in_force(one, now) for one in clearances):
        ahead = (one.valid_from for one in clearances if one.status is ACTIVE and one.valid_from and one.valid_from > now)
        return GateWindow(opens_at=min(ahead, default=None))
    end = now
    while ends := [one.valid_until for one in clearances if is_in_force(one, end)]:
        known = [one for one in ends if one is not None]
        if len(known) < len(ends):
            return NO_WINDOW
        end = max(known)
    return GateWindow(until=end)


@dataclass(frozen=True)
class NeededClearance:
    """A clearance that a run lacks: what it has to cover, and the templates of the facility that it may be made from."""

    facility_code: str
    bindings: frozenset[RecordBinding]
    templates: tuple[ClearanceTemplate, ...]

    @property
    def steps(self) -> tuple[NextCall, ...]:
        """The calls that register it and bring it into force, with its template where there is only one."""
        bindings = sorted((one.model_dump(mode="json") for one in self.bindings), key=lambda one: str(one["id"]))
        known = {"facility_code": self.facility_code, "bindings": bindings[:MAX_BINDINGS]}
        if len(self.templates) == 1:
            known["template_id"] = str(self.templates[0].id)
        return steps_from_nothing(RegisterClearance.operation, DEFINED, ACTIVE, known)

    @property
    def facts(self) -> dict[str, object]:
        """The templates to choose from: their ids by their codes."""
        return {"templates": {one.code: str(one.id) for one in self.templates}}


def find_needed_clearance(
    clearances: Collection[Clearance], subject_id: UUID | None, asset_ids: Iterable[UUID], facility_code: str, now: datetime
) -> Reads[NeededClearance | None]:
    """Return the clearance that would let a run continue where none of these does: for its subject or, without one, its
    assets; None where one is in force."""
    if any(is_in_force(clearance, now) for clearance in clearances):
        return None
    found = yield from find_all(ClearanceTemplate, (yield from all_holders_of(TEMPLATE_CODE)))
    fit = (
        one for one in found.values() if (one.facility_code, one.status) == (facility_code, ClearanceTemplateStatus.ACTIVE)
    )
    bindings = record_bindings((), (subject_id,), () if subject_id is not None else asset_ids)
    return NeededClearance(facility_code, bindings, tuple(sorted(fit, key=lambda one: one.code)))


def clearance_finding(
    clearances: Sequence[Clearance], now: datetime, needed: NeededClearance | None = None
) -> GateFinding | None:
    """Return why these clearances do not let a run go on; one in force is enough, they are not combined."""
    steps = () if needed is None else needed.steps
    if not clearances:
        return GateFinding(
            total=True,
            reason="no_clearance",
            detail="No clearance covers this run; register one for its subject or its assets, and have it activated.",
            facts={"clearance_count": 0, "clearances": [], **(needed.facts if needed else {})},
            next_steps=steps,
        )
    if any(is_in_force(clearance, now) for clearance in clearances):
        return None
    counts = Counter(status_label(clearance, now) for clearance in clearances)
    statuses = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return GateFinding(
        total=False,
        reason="no_clearance_in_force",
        detail=f"No clearance that covers this run is in force ({statuses}); bring one into force, or register a new one.",
        facts={"clearance_count": len(clearances), "clearances": list(map(clearance_facts, clearances))},
        next_steps=next((way for one in clearances if (way := steps_to_state(one, ACTIVE))), steps),
    )


def status_label(clearance: Clearance, now: datetime) -> str:
    """Return the status of a clearance that is not in force, and for an Active one where its window lies."""
    if clearance.status is not ACTIVE:
        return clearance.status.value
    return "Active but past its window" if has_begun(clearance, now) else "Active but before its window"


def clearance_facts(clearance: Clearance) -> dict[str, object]:
    """Return what a refusal says of a clearance."""
    return {
        "clearance_id": str(clearance.id),
        "status": clearance.status.value,
        "valid_from": clearance.valid_from and instant(clearance.valid_from),
        "valid_until": clearance.valid_until and instant(clearance.valid_until),
    }
