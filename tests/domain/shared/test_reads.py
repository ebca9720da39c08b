"""Asking for states: what is required, and what is required only where it is named."""

import pytest

from baton.domain.federation.facility import Facility, FacilityParentNotFoundError
from baton.domain.shared.reads import required_if_given
from tests.support.domain.peers import site
from tests.support.domain.world import World, new_id, refused


def test_what_is_not_named_is_not_asked_for() -> None:
    with pytest.raises(StopIteration) as done:
        next(required_if_given(Facility, None))
    assert done.value.value is None


def test_what_is_named_is_found_or_refused() -> None:
    world = World()
    lumen = site(world)
    assert world.fulfil(required_if_given(Facility, lumen)).id == lumen
    unknown = new_id()
    with refused("FacilityNotFoundError") as caught:
        world.fulfil(required_if_given(Facility, unknown))
    assert caught.value.facts == {"missing_ids": [str(unknown)]}
    with refused(FacilityParentNotFoundError):
        world.fulfil(required_if_given(Facility, unknown, FacilityParentNotFoundError))
