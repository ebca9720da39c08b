"""The lives of clearances and their templates as the specification tabulates them."""

from typing import Any
from uuid import UUID

from tests.support.domain.clearances import binding, clearance_fields, register_clearance, site_world, template
from tests.support.domain.lifecycle_table import Lifecycle, Scene, Verb, at, reason_fields
from tests.support.domain.world import World


def clearance_begins(world: World) -> tuple[UUID, Scene]:
    scene = Scene(template_id=template(world))
    return register_clearance(world, template_id=scene.template_id), scene


def approving_step(scene: Scene) -> dict[str, Any]:
    return {"step_index": 0, "role": "BeamlineScientist", "decision": "Approved"}


HANDED_IN = "submit_clearance start_clearance_review"
IN_FORCE = f"{HANDED_IN} append_clearance_review_step approve_clearance activate_clearance"

CLEARANCE = Lifecycle(
    "Clearance",
    "register_clearance",
    clearance_begins,
    {
        "status": {
            "Defined": "",
            "Submitted": "submit_clearance",
            "UnderReview": HANDED_IN,
            "Approved": f"{HANDED_IN} append_clearance_review_step approve_clearance",
            "Active": IN_FORCE,
            "Expired": f"{IN_FORCE} expire_clearance",
            "Rejected": f"{HANDED_IN} reject_clearance",
            "Superseded": f"{IN_FORCE} amend_clearance",
        }
    },
    {
        "submit_clearance": Verb("Defined", at("Submitted"), "ClearanceCannotSubmitError"),
        "start_clearance_review": Verb(
            "Submitted",
            at("UnderReview"),
            "ClearanceCannotStartReviewError",
            given=lambda scene: {"first_reviewer_role": "BeamlineScientist"},
        ),
        "append_clearance_review_step": Verb(
            "UnderReview", {}, "ClearanceCannotAppendReviewStepError", given=approving_step
        ),
        "approve_clearance": Verb(
            "UnderReview",
            at("Approved"),
            "ClearanceCannotApproveError",
            before=(("append_clearance_review_step", approving_step),),
        ),
        "reject_clearance": Verb("UnderReview", at("Rejected"), "ClearanceCannotRejectError", given=reason_fields),
        "activate_clearance": Verb("Approved", at("Active"), "ClearanceCannotActivateError"),
        "expire_clearance": Verb("Active", at("Expired"), "ClearanceCannotExpireError", given=reason_fields),
        "amend_clearance": Verb(
            "Active",
            at("Superseded"),
            "ClearanceCannotAmendError",
            given=lambda scene: clearance_fields(scene.template_id, bindings=[binding("Subject")]),
        ),
        "assign_clearance_external_id": Verb(
            "Defined Submitted UnderReview Approved Active",
            {},
            "ClearanceCannotAssignExternalIdError",
            given=lambda scene: {"external_id": "2026-0417"},
        ),
    },
    site_world,
)


def template_begins(world: World) -> tuple[UUID, Scene]:
    return template(world, "Draft"), Scene()


TEMPLATE = Lifecycle(
    "ClearanceTemplate",
    "define_clearance_template",
    template_begins,
    {
        "status": {
            "Draft": "",
            "Active": "activate_clearance_template",
            "Deprecated": "activate_clearance_template deprecate_clearance_template",
            "Withdrawn": "withdraw_clearance_template",
        }
    },
    {
        "activate_clearance_template": Verb("Draft", at("Active"), "ClearanceTemplateCannotActivateError"),
        "version_clearance_template": Verb(
            "Active", {}, "ClearanceTemplateCannotVersionError", given=lambda scene: {"new_version": 2}
        ),
        "deprecate_clearance_template": Verb("Active", at("Deprecated"), "ClearanceTemplateCannotDeprecateError"),
        "withdraw_clearance_template": Verb(
            "Draft Active Deprecated", at("Withdrawn"), "ClearanceTemplateCannotWithdrawError"
        ),
    },
    site_world,
)

LIVES = (CLEARANCE, TEMPLATE)
STATELESS: tuple[Lifecycle, ...] = ()
