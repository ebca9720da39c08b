"""Asking for states: what is required, and what is required only where it is named."""

import pytest

from baton.domain.facility.facility import Facility, FacilityParentNotFoundError
from baton.domain.shared.reads import require_if_given
from tests.support.domain.peers import site
from tests.support.domain.world import World, expect_refusal, new_id


def test_what_is_not_named_is_not_asked_for() -> None:
    with pytest.raises(StopIteration) as done:
        next(require_if_given(Facility, None))
    assert done.value.value is None


def test_what_is_named_is_found_or_refused() -> None:
    world = World()
    lumen = site(world)
    assert world.fulfil(require_if_given(Facility, lumen)).id == lumen
    unknown = new_id()
    with expect_refusal("FacilityNotFoundError") as caught:
        world.fulfil(require_if_given(Facility, unknown))
    assert caught.value.facts == {"missing_ids": [str(unknown)]}
    with expect_refusal(FacilityParentNotFoundError):
        world.fulfil(require_if_given(Facility, unknown, FacilityParentNotFoundError))
