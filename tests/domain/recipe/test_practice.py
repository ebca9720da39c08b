"""Practices: adopted at a site, for families, or both."""

from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.recipe.lifecycle import DEFINED, DEPRECATED, VERSIONED
from baton.domain.recipe.method import DeprecateMethod
from baton.domain.recipe.practice import (
    DefinePractice,
    DeprecatePractice,
    Practice,
    PracticeDefined,
    PracticeDeprecated,
    PracticeVersioned,
    VersionPractice,
)
from tests.support.domain.assets import family
from tests.support.domain.templates import method, practice, site
from tests.support.domain.world import World, expect_refusal, new_id
from tests.support.tables import for_each


@pytest.fixture
def flat_field(world: World) -> UUID:
    return method(world)


def state(world: World, id: UUID) -> Practice:
    found: Practice = world.state(Practice, id)
    return found


def test_a_practice_is_adopted_at_a_site_for_families_or_both(world: World, flat_field: UUID) -> None:
    lumen, camera = site(world), family(world, "Camera")
    for target in ({"site_id": lumen}, {"family_ids": [camera]}, {"site_id": lumen, "family_ids": [camera, camera]}):
        (event,) = world.when(DefinePractice(name=" Flat field ", method_id=flat_field, **target))
        assert event == PracticeDefined(
            name="Flat field", method_id=flat_field, site_id=target.get("site_id"), family_ids=target.get("family_ids", [])
        )
        begun = state(world, event.stream_id)
        assert (begun.status, begun.version_tag, begun.created_at) == (DEFINED, None, world.now)


def test_a_practice_is_judged_by_its_references_then_its_name_then_its_target(world: World, flat_field: UUID) -> None:
    with expect_refusal("MethodNotFoundError"):
        practice(world, new_id(), site_id=new_id(), family_ids=[new_id()], name=" ")
    with expect_refusal("FacilityNotFoundError"):
        practice(world, flat_field, site_id=new_id(), family_ids=[new_id()], name=" ")
    with expect_refusal("FamilyNotFoundError"):
        practice(world, flat_field, site_id=site(world), family_ids=[new_id()], name=" ")
    with expect_refusal("InvalidPracticeNameError", "blank"):
        practice(world, flat_field, name=" ")
    with expect_refusal("InvalidPracticeTargetError") as caught:
        practice(world, flat_field)
    assert caught.value.status == 400
    assert "list_facilities" in caught.value.detail


def test_a_deprecated_method_can_still_be_adopted(world: World, flat_field: UUID) -> None:
    world.when(DeprecateMethod(), on=flat_field)
    assert state(world, practice(world, flat_field, site_id=site(world))).method_id == flat_field


@for_each("length", [0, 201])
def test_a_name_out_of_bounds_is_malformed(length: int) -> None:
    with pytest.raises(ValidationError):
        DefinePractice(name="a" * length, method_id=new_id(), site_id=new_id())


def test_a_version_labels_and_the_same_tag_attests_again(world: World, flat_field: UUID) -> None:
    id = practice(world, flat_field, site_id=site(world))
    for tag in ("2026-Q2", "2026-Q2", "2026-Q3"):
        assert world.when(VersionPractice(version_tag=f" {tag} "), on=id) == [PracticeVersioned(version_tag=tag)]
    now = state(world, id)
    assert (now.status, now.version_tag, now.versioned_at) == (VERSIONED, "2026-Q3", world.now)


@pytest.mark.parametrize("reason", [None, "moved to another hutch; earlier use stands"])
def test_a_deprecated_practice_stays_readable(world: World, flat_field: UUID, reason: str | None) -> None:
    lumen = site(world)
    id = practice(world, flat_field, site_id=lumen)
    world.when(VersionPractice(version_tag="v2"), on=id)
    assert world.when(DeprecatePractice(reason=reason), on=id) == [PracticeDeprecated(reason=reason)]
    now = state(world, id)
    assert (now.status, now.version_tag, now.site_id, now.deprecated_at) == (DEPRECATED, "v2", lumen, world.now)


def test_blank_texts_are_refused_after_the_state(world: World, flat_field: UUID) -> None:
    id = practice(world, flat_field, site_id=site(world))
    with expect_refusal("InvalidPracticeVersionTagError", "blank"):
        world.when(VersionPractice(version_tag=" "), on=id)
    with expect_refusal("InvalidReasonError", "blank"):
        world.when(DeprecatePractice(reason=" "), on=id)
    world.when(DeprecatePractice(), on=id)
    with expect_refusal("PracticeCannotVersionError", "deprecated"):
        world.when(VersionPractice(version_tag=" "), on=id)
    with expect_refusal("PracticeCannotDeprecateError", "deprecated"):
        world.when(DeprecatePractice(reason=" "), on=id)
