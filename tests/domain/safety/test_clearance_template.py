"""Clearance templates: codes, versions, and what is seeded."""

from typing import Any

import pytest
from pydantic import ValidationError

from baton.domain.kernel import NIL, Call, Event
from baton.domain.safety.clearance_template import (
    SEEDED_TITLES,
    ActivateClearanceTemplate,
    DefineClearanceTemplate,
    DeprecateClearanceTemplate,
    VersionClearanceTemplate,
    WithdrawClearanceTemplate,
    seeded_template,
)
from tests.support.domain.clearances import OTHER_SITE, SITE, template, template_of
from tests.support.domain.payloads import payload
from tests.support.domain.world import OPERATOR, START, World, expect_refusal, new_id


def test_a_template_begins_as_the_first_draft_of_its_form(world: World) -> None:
    define = DefineClearanceTemplate(code=" ESAF ", title=" Safety form ", facility_code=SITE, external_ref=" EDMS 17 ")
    (defined,) = world.when(define)
    assert payload(defined) == {
        "facility_code": SITE,
        "code": "ESAF",
        "title": "Safety form",
        "version": 1,
        "supersedes_template_id": None,
        "external_ref": "EDMS 17",
        "defined_by": str(OPERATOR),
    }
    state = template_of(world, defined.stream_id)
    assert (state.status, state.defined_at, state.defined_by) == ("Draft", defined.occurred_at, OPERATOR)


def test_every_event_says_who_did_it(world: World) -> None:
    id = template(world, "Draft")
    (activated,) = world.when(ActivateClearanceTemplate(), on=id)
    (versioned,) = world.when(VersionClearanceTemplate(new_version=2), on=id)
    (deprecated,) = world.when(DeprecateClearanceTemplate(reason=" outdated "), on=id)
    (withdrawn,) = world.when(WithdrawClearanceTemplate(), on=id)
    assert payload(activated) == {"activated_by": str(OPERATOR)}
    assert payload(versioned) == {"new_version": 2, "supersedes_template_id": None, "versioned_by": str(OPERATOR)}
    assert payload(deprecated) == {"reason": "outdated", "deprecated_by": str(OPERATOR)}
    assert payload(withdrawn) == {"withdrawn_by": str(OPERATOR)}


@pytest.mark.parametrize("status", ["Draft", "Active", "Deprecated"])
def test_a_code_is_taken_until_its_template_is_withdrawn(world: World, status: str) -> None:
    first = template(world, status)
    with expect_refusal("ClearanceTemplateAlreadyExistsError", "code_taken"):
        template(world)
    world.when(WithdrawClearanceTemplate(), on=first)
    second = template(world)
    assert (second != first, template_of(world, second).version) == (True, 1)


def test_another_facility_and_another_spelling_may_have_the_code(world: World) -> None:
    template(world)
    template(world, facility_code=OTHER_SITE)
    template(world, code="esaf")


def test_a_code_written_in_two_unicode_forms_is_one_code(world: World) -> None:
    template(world, code="S\u00e9curit\u00e9")
    with expect_refusal("ClearanceTemplateAlreadyExistsError", "code_taken"):
        template(world, code="Se\u0301curite\u0301")


@pytest.mark.parametrize(
    ("field", "refusal"),
    [
        ("code", "InvalidClearanceTemplateCodeError"),
        ("title", "InvalidClearanceTemplateTitleError"),
        ("facility_code", "InvalidFacilityCodeError"),
        ("external_ref", "InvalidClearanceTemplateExternalRefError"),
    ],
)
def test_no_text_is_blank(world: World, field: str, refusal: str) -> None:
    with expect_refusal(refusal):
        template(world, **{field: "   "})


@pytest.mark.parametrize(("field", "length"), [("code", 50), ("title", 200), ("external_ref", 500)])
def test_texts_have_bounds(world: World, field: str, length: int) -> None:
    template(world, **{field: "x" * length})
    for wrong in ("", "x" * (length + 1)):
        with pytest.raises(ValidationError):
            template(world, **{field: wrong})


def test_the_facility_must_be_known_and_its_code_be_one(world: World) -> None:
    with expect_refusal("ClearanceTemplateFacilityNotFoundError"):
        template(world, facility_code="west-ring", code=" ")
    with expect_refusal("InvalidFacilityCodeError", "pattern"):
        template(world, facility_code="North Ring")


class TestVersions:
    @pytest.mark.parametrize("version", [2, 4, 7])
    def test_no_version_is_skipped_or_repeated(self, world: World, version: int) -> None:
        id = template(world)
        world.when(VersionClearanceTemplate(new_version=2), on=id)
        with expect_refusal("ClearanceTemplateCannotVersionError", "not_next_version") as caught:
            world.when(VersionClearanceTemplate(new_version=version), on=id)
        assert caught.value.facts == {"version": 2}
        world.when(VersionClearanceTemplate(new_version=3), on=id)

    def test_the_first_version_is_that_of_the_definition(self) -> None:
        with pytest.raises(ValidationError):
            VersionClearanceTemplate(new_version=1)

    def test_a_version_may_replace_another_template_of_the_facility(self, world: World) -> None:
        id, old = template(world), template(world, "Withdrawn", code="SAF")
        world.when(VersionClearanceTemplate(new_version=2, supersedes_template_id=old), on=id)
        assert template_of(world, id).supersedes_template_id == old

    def test_predecessor_then_status_then_self_then_number_then_facility(self, world: World) -> None:
        draft = template(world, "Draft")
        foreign = template(world, facility_code=OTHER_SITE)

        def version(number: int, predecessor: Any) -> None:
            world.when(VersionClearanceTemplate(new_version=number, supersedes_template_id=predecessor), on=draft)

        with expect_refusal("ClearanceTemplateNotFoundError"):
            version(9, new_id())
        with expect_refusal("ClearanceTemplateCannotVersionError", "draft"):
            version(9, draft)
        world.when(ActivateClearanceTemplate(), on=draft)
        with expect_refusal("ClearanceTemplateCannotVersionError", "self_reference"):
            version(9, draft)
        with expect_refusal("ClearanceTemplateCannotVersionError", "not_next_version"):
            version(9, foreign)
        with expect_refusal("ClearanceTemplateFacilityMismatchError") as caught:
            version(2, foreign)
        assert caught.value.facts == {"facility_code": SITE, "predecessor_facility_code": OTHER_SITE}


def test_a_reason_for_deprecation_may_be_missing_but_not_blank(world: World) -> None:
    with expect_refusal("InvalidClearanceTemplateReasonError", "blank"):
        world.when(DeprecateClearanceTemplate(reason="  "), on=template(world))
    (deprecated,) = world.when(DeprecateClearanceTemplate(), on=template(world, code="SAF"))
    assert payload(deprecated)["reason"] is None


class TestSeeds:
    @pytest.mark.parametrize("code", [*SEEDED_TITLES, "House form"])
    def test_a_seeded_template_is_active_at_once(self, world: World, code: str) -> None:
        outcome = seeded_template(SITE, code, Call(NIL, NIL, START, new_id(), new_id()))
        id = new_id()
        world.given(id, *(effect for effect in outcome if isinstance(effect, Event)))
        state = template_of(world, id)
        assert (state.code, state.facility_code, state.defined_by, state.status) == (code, SITE, NIL, "Active")
        assert code in state.title or code in ("AForm", "Form9")

    def test_the_common_forms_are_known_by_name(self) -> None:
        assert list(SEEDED_TITLES) == ["ESAF", "SAF", "AForm", "DUO", "ESRA", "ERA", "PLHD", "DOOR", "BTR", "Form9"]
        assert len(set(SEEDED_TITLES.values())) == 10
