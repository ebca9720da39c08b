"""Clearances: safety forms that a file names, brought into force by the ordinary verbs as the caller (ADR 52)."""

from collections.abc import Iterator
from typing import Any

from baton.beamline.file import ClearanceEntry, OutsideReference
from baton.beamline.kinds.kind import (
    REASON,
    Names,
    Obstacle,
    RecordedThing,
    Ref,
    Section,
    Step,
    UnnamedError,
    Update,
    path_of,
    shown_change,
)

COURSE = ("Defined", "Submitted", "UnderReview", "Approved", "Active")  # The states on the way into force.


class ClearanceSection(Section[ClearanceEntry]):
    section, label, lists, gets, id_name = "clearances", "clearance", "list_clearances", "get_clearance", "clearance_id"
    retired = frozenset({"Expired", "Rejected", "Superseded"})
    told_by = ("title", "facility")
    domain_names = {"template": "template_id"}
    creates = "register_clearance"
    later = {"in_force": False}
    unrecorded = frozenset({"reviewer_role"})
    fixed = (
        *("template", "assets", "external", "risk_band", "external_id", "external_id_scheme"),
        *("valid_from", "valid_until"),
    )
    why_fixed = "a form is never edited; amend it, and have the new one reviewed"

    def texts(self, entry: ClearanceEntry) -> tuple[str, ...]:
        return path_of(entry.title), path_of(entry.facility, entry.title)

    def entry(self, view: Any, thing: RecordedThing, names: Names) -> ClearanceEntry:
        if view.declarations:
            raise UnnamedError("it declares hazards, which a file does not")
        kinds = {one.kind for one in view.bindings} - {"Asset", "External"}
        if kinds:
            raise UnnamedError(f"it covers a {' and a '.join(sorted(kinds))}, which a file does not name")
        outside = (one for one in view.bindings if one.kind == "External")
        return self.read_entry(
            view,
            names,
            assets=names.keys(one.id for one in view.bindings if one.kind == "Asset"),
            external=tuple(OutsideReference(scheme=one.scheme, value=one.value) for one in outside),
            in_force=str(view.status) == "Active",
        )

    def creation(self, entry: ClearanceEntry) -> tuple[str, dict[str, Any]]:
        outside = [{"kind": "External", "scheme": one.scheme, "value": one.value} for one in entry.external]
        bindings = [*({"kind": "Asset", "id": Ref("assets", one)} for one in entry.assets), *outside]
        return self.creates, {**self.arguments(entry, assets=None, external=None), "bindings": bindings}

    def differences(self, old: ClearanceEntry, new: ClearanceEntry, view: Any) -> Iterator[Step]:
        yield from self.fixed_fields(old, new)
        if not self.differs(old, new, "in_force"):
            return
        if not new.in_force:
            yield Obstacle("in_force true -> false: expire the clearance by its verb")
            return
        status = "Defined" if view is None else str(view.status)
        role = {"role": new.reviewer_role, "decision": "Approved"}
        reviewed = 0 if view is None else len(view.review_steps)
        verbs: dict[str, list[tuple[str, dict[str, Any]]]] = {
            "Defined": [("submit_clearance", {})],
            "Submitted": [("start_clearance_review", {"first_reviewer_role": new.reviewer_role})],
            "UnderReview": [("append_clearance_review_step", {"step_index": reviewed, **role}), ("approve_clearance", {})],
            "Approved": [("activate_clearance", {})],
        }
        for state in COURSE[COURSE.index(status) : -1]:
            for verb, arguments in verbs[state]:
                yield Update(verb, arguments, shown_change("status", status, "Active"))

    def retirement(self, thing: RecordedThing) -> tuple[str, dict[str, object]] | None:
        return ("expire_clearance", {"reason": REASON}) if str(thing.row.status) == "Active" else None
