"""Clearances: review, force, numbers, amendment, and the worked example."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.safety.clearance import (
    ActivateClearance,
    AmendClearance,
    ApproveClearance,
    AssignClearanceExternalId,
    Clearance,
    ExpireClearance,
    RegisterClearance,
    RejectClearance,
    StartClearanceReview,
    SubmitClearance,
)
from baton.domain.safety.clearance_views import ClearanceSummary, GetClearance
from tests.support.domain.clearances import (
    NFPA,
    SITE,
    binding,
    clearance_fields,
    clearance_in_status,
    clearance_of,
    day,
    hazard_declaration,
    proposal,
    register_clearance,
    site_world,
    step,
    template,
)
from tests.support.domain.payloads import payload
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id
from tests.support.tables import for_each

SECOND = timedelta(seconds=1)


class TestReview:
    def test_the_caller_is_the_reviewer(self, world: World) -> None:
        id = clearance_in_status(world, "UnderReview")
        (appended,) = world.when(step(notes=" fine ", role=" SafetyOfficer "), on=id)
        assert payload(appended) == {
            "step_index": 0,
            "role": "SafetyOfficer",
            "decided_by": str(OPERATOR),
            "decision": "Approved",
            "decided_at": world.now.isoformat().replace("+00:00", "Z"),
            "notes": "fine",
        }

    def test_the_first_role_is_recorded_and_adds_no_step(self, world: World) -> None:
        id = clearance_in_status(world, "Submitted")
        (started,) = world.when(StartClearanceReview(first_reviewer_role=" LocalContact "), on=id)
        assert payload(started) == {"first_reviewer_role": "LocalContact"}
        assert clearance_of(world, id).review_steps == ()

    @pytest.mark.parametrize("index", [0, 2, 7])
    def test_steps_are_numbered_without_a_gap(self, world: World, index: int) -> None:
        id = clearance_in_status(world, "UnderReview")
        world.when(step(0), on=id)
        with expect_refusal("InvalidClearanceReviewStepIndexError") as caught:
            world.when(step(index), on=id)
        assert caught.value.facts == {"next_step_index": 1}
        world.when(step(1), on=id)

    def test_a_step_is_decided_by_now_and_not_before_the_form_or_the_last_step(self, world: World) -> None:
        id = clearance_in_status(world, "UnderReview")
        following = world.now + SECOND
        with expect_refusal("InvalidClearanceReviewTimeError", "in_the_future"):
            world.when(step(decided_at=following + SECOND), on=id)
        registered_at = clearance_of(world, id).registered_at
        with expect_refusal("InvalidClearanceReviewTimeError", "before_its_subject") as caught:
            world.when(step(decided_at=registered_at - SECOND), on=id)
        assert caught.value.facts == {"not_before": registered_at.isoformat().replace("+00:00", "Z")}
        moment = world.now
        world.when(step(decided_at=moment), on=id)
        (recorded,) = clearance_of(world, id).review_steps
        assert (recorded.decided_at, recorded.recorded_at) == (moment, moment + SECOND)
        with expect_refusal("InvalidClearanceReviewTimeError", "before_last_step"):
            world.when(step(1, decided_at=moment - SECOND), on=id)
        world.when(step(1, decided_at=moment), on=id)

    @pytest.mark.parametrize(
        ("fields", "refusal"),
        [({"role": " "}, "InvalidClearanceReviewerRoleError"), ({"notes": "  "}, "InvalidClearanceReviewerNotesError")],
    )
    def test_a_step_has_no_blank_text(self, world: World, fields: dict[str, Any], refusal: str) -> None:
        with expect_refusal(refusal, "blank"):
            world.when(step(**fields), on=clearance_in_status(world, "UnderReview"))

    @for_each(
        "fields",
        [
            {"step_index": -1},
            {"role": ""},
            {"role": "r" * 51},
            {"notes": "n" * 2001},
            {"decision": "Maybe"},
            {"decided_at": "2026-05-20T10:00:00"},
        ],
    )
    def test_a_step_of_the_wrong_shape_is_malformed(self, fields: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            step(**fields)

    def test_a_blank_first_role_is_refused(self, world: World) -> None:
        with expect_refusal("InvalidClearanceReviewerRoleError", "blank"):
            world.when(StartClearanceReview(first_reviewer_role=" "), on=clearance_in_status(world, "Submitted"))

    @pytest.mark.parametrize(
        ("decisions", "reason"),
        [
            ([], "no_review_step"),
            (["Approved"], None),
            (["Rejected"], "last_step_not_approved"),
            (["RequestedChanges"], "last_step_not_approved"),
            (["Approved", "Rejected"], "last_step_not_approved"),
            (["Approved", "RequestedChanges"], "last_step_not_approved"),
            (["RequestedChanges", "Approved"], None),
            (["Rejected", "Approved"], None),
        ],
    )
    def test_approval_looks_at_the_last_step_only(self, world: World, decisions: list[str], reason: str | None) -> None:
        id = clearance_in_status(world, "UnderReview")
        for index, decision in enumerate(decisions):
            world.when(step(index, decision), on=id)
            assert clearance_of(world, id).status == "UnderReview"
        if reason is None:
            world.when(ApproveClearance(), on=id)
            assert clearance_of(world, id).status == "Approved"
        else:
            with expect_refusal("ClearanceCannotApproveError", reason):
                world.when(ApproveClearance(), on=id)

    def test_rejection_needs_no_step_but_a_reason(self, world: World) -> None:
        id = clearance_in_status(world, "UnderReview")
        with expect_refusal("InvalidClearanceRejectReasonError", "blank"):
            world.when(RejectClearance(reason=" "), on=id)
        (rejected,) = world.when(RejectClearance(reason=" too hot "), on=id)
        assert payload(rejected)["reason"] == "too hot"

    @pytest.mark.parametrize(
        ("registered_window", "given_window", "merged"),
        [
            ((1, 8), (None, None), (1, 8)),
            ((1, 8), (2, None), (2, 8)),
            ((1, 8), (None, 9), (1, 9)),
            ((1, 8), (9, 12), (9, 12)),
            ((None, None), (3, None), (3, None)),
            ((1, 8), (8, None), None),
            ((1, 8), (None, 1), None),
            ((None, 8), (9, None), None),
            ((None, None), (3, 3), None),
        ],
    )
    def test_approval_judges_the_window_that_results(
        self, world: World, registered_window: Any, given_window: Any, merged: Any
    ) -> None:
        id = clearance_in_status(world, "UnderReview", **window(registered_window))
        world.when(step(), on=id)
        if merged is None:
            with expect_refusal("InvalidClearanceValidityWindowError"):
                world.when(ApproveClearance(**window(given_window)), on=id)
        else:
            world.when(ApproveClearance(**window(given_window)), on=id)
            state = clearance_of(world, id)
            assert {"valid_from": state.valid_from, "valid_until": state.valid_until} == window(merged)

    def test_status_then_last_step_then_window(self, world: World) -> None:
        inverted = ApproveClearance(valid_from=day(2), valid_until=day(1))
        with expect_refusal("ClearanceCannotApproveError", "submitted"):
            world.when(inverted, on=clearance_in_status(world, "Submitted"))
        id = clearance_in_status(world, "UnderReview")
        with expect_refusal("ClearanceCannotApproveError", "no_review_step"):
            world.when(inverted, on=id)
        world.when(step(), on=id)
        with expect_refusal("InvalidClearanceValidityWindowError"):
            world.when(inverted, on=id)


def window(ends: tuple[int | None, int | None]) -> dict[str, Any]:
    return {name: number and day(number) for name, number in zip(("valid_from", "valid_until"), ends, strict=True)}


class TestForce:
    def test_neither_activation_nor_expiry_looks_at_the_window(self, world: World) -> None:
        id = clearance_in_status(world, "Approved", valid_from=day(1), valid_until=day(2))
        assert world.now > day(2)
        world.when(ActivateClearance(), on=id)
        (expired,) = world.when(ExpireClearance(reason=" shutdown "), on=id)
        assert payload(expired) == {"reason": "shutdown"}
        with expect_refusal("InvalidClearanceExpireReasonError", "blank"):
            world.when(ExpireClearance(reason=" "), on=clearance_in_status(world, "Active"))

    def test_what_the_list_says_of_the_last_change(self, world: World) -> None:
        id = clearance_in_status(world, "UnderReview")
        started = clearance_of(world, id).last_status_changed_at
        world.when(step(), on=id)
        world.when(AssignClearanceExternalId(external_id="7"), on=id)
        assert clearance_of(world, id).last_status_changed_at == started
        world.principal_id = reviewer = new_id()
        world.when(ApproveClearance(), on=id)
        world.principal_id = OPERATOR
        world.when(ActivateClearance(), on=id)
        world.when(ExpireClearance(reason="over"), on=id)
        row = ClearanceSummary.of(clearance_of(world, id))
        assert (row.last_reviewed_by, row.last_status_reason, row.last_status_changed_at) == (reviewer, "over", world.now)

    def test_a_fresh_form_has_changed_no_status_and_a_rejection_names_its_reviewer_too(self, world: World) -> None:
        row = ClearanceSummary.of(clearance_of(world, register_clearance(world)))
        assert (row.last_status_changed_at, row.last_status_reason, row.last_reviewed_by) == (None, None, None)
        row = ClearanceSummary.of(clearance_of(world, clearance_in_status(world, "Rejected")))
        assert (row.last_reviewed_by, row.last_status_reason) == (OPERATOR, "too hot")

    def test_the_list_shows_bound_records_by_kind_and_no_outside_reference(self, world: World) -> None:
        ids = {kind: new_id() for kind in ("Subject", "Asset", "Run", "Procedure")}
        id = register_clearance(world, bindings=[*(binding(kind, one) for kind, one in ids.items()), proposal()])
        shown = ClearanceSummary.of(clearance_of(world, id)).model_dump(mode="json")["bindings"]
        assert shown == {f"{kind.lower()}_ids": [str(one)] for kind, one in ids.items()}


class TestExternalId:
    @pytest.mark.parametrize(("scheme", "kept"), [(None, "ESAF"), ("EDMS", "EDMS")])
    def test_a_number_is_filled_in_once(self, world: World, scheme: str | None, kept: str) -> None:
        id = register_clearance(world, template_id=template(world))
        (assigned,) = world.when(AssignClearanceExternalId(external_id=" 7 ", external_id_scheme=scheme), on=id)
        assert payload(assigned) == {"external_id": "7", "external_id_scheme": kept}
        with expect_refusal("ClearanceCannotAssignExternalIdError", "already_assigned") as caught:
            world.when(AssignClearanceExternalId(external_id="8"), on=id)
        assert caught.value.facts == {"external_id": "7", "external_id_scheme": kept}

    def test_a_number_given_at_registration_stays(self, world: World) -> None:
        with expect_refusal("ClearanceCannotAssignExternalIdError", "already_assigned"):
            world.when(AssignClearanceExternalId(external_id="8"), on=register_clearance(world, external_id="7"))

    @pytest.mark.parametrize("fields", [{"external_id": " "}, {"external_id": "7", "external_id_scheme": " "}])
    def test_a_blank_number_or_scheme_is_refused(self, world: World, fields: dict[str, Any]) -> None:
        with expect_refusal("InvalidClearanceExternalIdError", "blank"):
            world.when(AssignClearanceExternalId(**fields), on=register_clearance(world))


class TestAmendment:
    def amend(self, world: World, parent: UUID, **fields: Any) -> Clearance:
        template_id = fields.pop("template_id", None) or clearance_of(world, parent).template_id
        world.when(AmendClearance(**clearance_fields(template_id, **fields)), on=parent)
        return clearance_of(world, UUID(world.answer["clearance_id"]))

    def test_the_parent_ends_and_its_child_begins_anew(self, world: World) -> None:
        parent = clearance_in_status(world, "Active", external_id="7", risk_band="Red", valid_from=day(1))
        child = self.amend(world, parent, title="Second furnace")
        assert payload(world.streams["Clearance", parent][-1]) == {"by_clearance_id": str(child.id)}
        assert (child.status, child.parent_id, child.title) == ("Defined", parent, "Second furnace")
        assert (child.review_steps, child.external_id, child.risk_band, child.valid_from) == ((), None, None, None)
        assert clearance_of(world, parent).status == "Superseded"

    def test_a_child_may_be_amended_in_turn(self, world: World) -> None:
        child = self.amend(world, clearance_in_status(world, "Active"))
        verbs = (SubmitClearance(), StartClearanceReview(first_reviewer_role="Coordinator"), step(), ApproveClearance())
        for verb in (*verbs, ActivateClearance()):
            world.when(verb, on=child.id)
        grandchild = self.amend(world, child.id)
        assert (grandchild.parent_id, grandchild.id != child.id) == (child.id, True)

    def test_an_amendment_may_change_the_template(self, world: World) -> None:
        child = self.amend(world, clearance_in_status(world, "Active"), template_id=template(world))
        assert child.template_code == "ESAF"

    def test_references_then_status_then_values_then_the_template_status(self, world: World) -> None:
        draft = template(world, "Draft")
        expired, active = clearance_in_status(world, "Expired"), clearance_in_status(world, "Active")
        wrong = clearance_fields(new_id(), facility_code="west-ring", title=" ")
        with expect_refusal("ClearanceNotFoundError"):
            world.when(AmendClearance(**wrong), on=new_id())
        for refusal, repair in (
            ("ClearanceTemplateNotFoundError", {"template_id": draft}),
            ("ClearanceFacilityNotFoundError", {"facility_code": SITE}),
        ):
            with expect_refusal(refusal):
                world.when(AmendClearance(**wrong), on=expired)
            wrong |= repair
        with expect_refusal("ClearanceCannotAmendError", "expired"):
            world.when(AmendClearance(**wrong), on=expired)
        with expect_refusal("InvalidClearanceTitleError"):
            world.when(AmendClearance(**wrong), on=active)
        with expect_refusal("ClearanceTemplateNotBindableError"):
            world.when(AmendClearance(**{**wrong, "title": "Furnace"}), on=active)
        assert clearance_of(world, active).status == "Active"


def test_the_worked_example_is_registered_and_approved_payload_for_payload(world: World) -> None:
    world.now = day(1) - timedelta(days=20)
    template_id = template(world)
    cell, furnace = new_id(), new_id()
    body = {
        "template_id": str(template_id),
        "facility_code": SITE,
        "title": "In-situ tomography of a battery cell",
        "bindings": [binding("Subject", cell), binding("Asset", furnace), proposal()],
        "declarations": [hazard_declaration(binding("Subject", cell))],
        "risk_band": "Yellow",
        "valid_from": "2026-06-01T00:00:00Z",
        "valid_until": "2026-06-08T00:00:00Z",
    }
    (first,) = world.when(RegisterClearance.model_validate(body))
    assert payload(first) == {
        **body,
        "template_code": "ESAF",
        "bindings": [binding("Asset", furnace), proposal(), binding("Subject", cell)],
        "declarations": [hazard_declaration(binding("Subject", cell), classifications=[{**NFPA, "special": None}])],
        "external_id": None,
        "external_id_scheme": None,
        "parent_id": None,
    }
    id = first.stream_id
    for verb in (SubmitClearance(), StartClearanceReview(first_reviewer_role="BeamlineScientist")):
        world.when(verb, on=id)
    world.now = day(1) - timedelta(days=10)
    world.when(step(decided_at="2026-05-20T10:00:00Z"), on=id)
    (approved,) = world.when(ApproveClearance(), on=id)
    assert payload(approved) == {
        "valid_from": "2026-06-01T00:00:00Z",
        "valid_until": "2026-06-08T00:00:00Z",
        "reviewed_by": str(OPERATOR),
    }


class TestFourEyes:
    """Where the deployment asks for it, nobody judges a form of their own."""

    AUTHOR, REVIEWER = new_id(), new_id()

    @pytest.fixture
    def world(self) -> World:
        world = site_world()
        world.ports["deployment"].clearance_four_eyes = True
        world.principal_id = self.AUTHOR
        return world

    def test_the_author_neither_reviews_nor_approves(self, world: World) -> None:
        id = clearance_in_status(world, "UnderReview")
        with expect_refusal("ClearanceCannotAppendReviewStepError", "same_person"):
            world.when(step(), on=id)
        world.principal_id = self.REVIEWER
        world.when(step(), on=id)
        world.principal_id = self.AUTHOR
        with expect_refusal("ClearanceCannotApproveError", "same_person"):
            world.when(ApproveClearance(), on=id)
        assert clearance_of(world, id).status == "UnderReview"
        world.principal_id = self.REVIEWER
        world.when(ApproveClearance(), on=id)

    def test_an_amendment_is_judged_by_others_than_its_author(self, world: World) -> None:
        id = clearance_in_status(world, "UnderReview")
        world.principal_id = self.REVIEWER
        for verb in (step(), ApproveClearance(), ActivateClearance()):
            world.when(verb, on=id)
        (superseded,) = world.when(AmendClearance(**clearance_fields(clearance_of(world, id).template_id)), on=id)
        child = superseded.by_clearance_id
        for verb in (SubmitClearance(), StartClearanceReview(first_reviewer_role="SafetyOfficer")):
            world.when(verb, on=child)
        with expect_refusal("ClearanceCannotAppendReviewStepError", "same_person"):
            world.when(step(), on=child)
        world.principal_id = self.AUTHOR
        world.when(step(), on=child)

    def test_the_state_is_judged_first(self, world: World) -> None:
        id = register_clearance(world)
        with expect_refusal("ClearanceCannotApproveError", "defined"):
            world.when(ApproveClearance(), on=id)

    def test_the_author_may_hand_in_withdraw_and_put_in_force(self, world: World) -> None:
        id = clearance_in_status(world, "UnderReview")
        world.when(RejectClearance(reason="the furnace is not used"), on=id)

    def test_the_answer_says_whether_a_second_person_must_judge_the_form(self, world: World) -> None:
        id = register_clearance(world)
        world.when(SubmitClearance(), on=id)
        assert world.answer is None
        world.ports["deployment"].clearance_four_eyes = False
        for verb in (StartClearanceReview(first_reviewer_role="SafetyOfficer"), step(), ApproveClearance()):
            world.when(verb, on=id)
        assert "have somebody else look at it" in world.answer["remark"]

    def test_the_view_says_who_may_not(self, world: World) -> None:
        id = register_clearance(world)
        assert world.ask(GetClearance(), on=id).barred_reviewer_ids == {self.AUTHOR}
        world.ports["deployment"].clearance_four_eyes = False
        assert world.ask(GetClearance(), on=id).barred_reviewer_ids == frozenset()
