"""Verbs to arrange safety forms with: a site, its templates, and clearances anywhere in their lives."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from baton.domain.facility.facility import RegisterFacility
from baton.domain.safety.clearance import (
    ActivateClearance,
    AmendClearance,
    AppendClearanceReviewStep,
    ApproveClearance,
    Clearance,
    ClearanceStatus,
    ExpireClearance,
    RegisterClearance,
    RejectClearance,
    StartClearanceReview,
    SubmitClearance,
)
from baton.domain.safety.clearance_template import (
    ActivateClearanceTemplate,
    ClearanceTemplate,
    DefineClearanceTemplate,
    DeprecateClearanceTemplate,
    WithdrawClearanceTemplate,
)
from tests.support.domain.world import World, new_id

SITE = "north-ring"
OTHER_SITE = "south-ring"
NFPA = {"kind": "NFPA704", "health": 2, "flammability": 3, "instability": 1}


def site_world() -> World:
    world = World()
    for code in (SITE, OTHER_SITE):
        world.create(RegisterFacility(code=code, display_name=code, kind="Site"))
    return world


def template(world: World, status: str = "Active", **fields: Any) -> UUID:
    form = {"code": "ESAF", "title": "Experiment safety assessment form", "facility_code": SITE}
    id = world.create(DefineClearanceTemplate(**{**form, **fields}))
    verbs = {
        "Draft": (),
        "Active": (ActivateClearanceTemplate(),),
        "Deprecated": (ActivateClearanceTemplate(), DeprecateClearanceTemplate()),
        "Withdrawn": (WithdrawClearanceTemplate(),),
    }
    for verb in verbs[status]:
        world.when(verb, on=id)
    return id


def template_of(world: World, id: UUID) -> ClearanceTemplate:
    state: ClearanceTemplate = world.state(ClearanceTemplate, id)
    return state


def binding(kind: str, id: UUID | None = None) -> dict[str, Any]:
    return {"kind": kind, "id": str(id or new_id())}


def proposal(value: str = "P-7731") -> dict[str, Any]:
    return {"kind": "External", "scheme": "proposal", "value": value}


def hazard_declaration(target: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"target": target, "classifications": [NFPA], "mitigations": ["PPE:gloves"], "notes": None, **fields}


def clearance_fields(template_id: UUID, **fields: Any) -> dict[str, Any]:
    """The smallest fields of a clearance form."""
    whole = {
        "template_id": template_id,
        "facility_code": SITE,
        "title": "In-situ tomography",
        "bindings": [binding("Asset")],
    }
    return {**whole, **fields}


def register_clearance(world: World, **fields: Any) -> UUID:
    template_id = fields.pop("template_id", None) or template(world, code=f"FORM-{new_id()}")
    return world.create(RegisterClearance(**clearance_fields(template_id, **fields)))


def step(index: int = 0, decision: str = "Approved", **fields: Any) -> AppendClearanceReviewStep:
    decided = {"role": "BeamlineScientist", "decision": decision}
    return AppendClearanceReviewStep(**{"step_index": index, **decided, **fields})


def clearance_in_status(world: World, status: str, **fields: Any) -> UUID:
    """Register a clearance, bring it to a status by its own verbs, and return its id."""
    id = register_clearance(world, **fields)
    amendment = clearance_fields(clearance_of(world, id).template_id)
    handed_in = (SubmitClearance(), StartClearanceReview(first_reviewer_role="BeamlineScientist"))
    active = (*handed_in, step(), ApproveClearance(), ActivateClearance())
    verbs = {
        "Defined": (),
        "Submitted": handed_in[:1],
        "UnderReview": handed_in,
        "Approved": active[:-1],
        "Active": active,
        "Expired": (*active, ExpireClearance(reason="over")),
        "Rejected": (*handed_in, RejectClearance(reason="too hot")),
        "Superseded": (*active, AmendClearance(**amendment)),
    }
    for verb in verbs[status]:
        world.when(verb, on=id)
    assert clearance_of(world, id).status is ClearanceStatus(status)
    return id


def clearance_of(world: World, id: UUID) -> Clearance:
    state: Clearance = world.state(Clearance, id)
    return state


def day(number: int) -> datetime:
    """A midnight of June 2026."""
    return datetime(2026, 6, number, tzinfo=UTC)
