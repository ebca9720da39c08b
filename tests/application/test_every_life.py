"""Any verbs of any aggregate, in any order: the command path decides what the domain alone decides, and stores just that."""

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.contexts import REGISTRY
from tests.support.application.store_and_world import StoreAndWorld
from tests.support.domain.lifecycle_table import Lifecycle
from tests.support.domain.lifecycles.every import LIVES, STATELESS
from tests.support.domain.world import new_id

ALL_LIVES = [life for life in (*LIVES, *STATELESS) if life.verbs]


@pytest.mark.slow
@settings(max_examples=max(5, settings().max_examples // 8))
@given(data=st.data())
@pytest.mark.parametrize("life", ALL_LIVES, ids=lambda life: life.aggregate)
def test_a_life_goes_the_same_way_in_the_store(life: Lifecycle, data: st.DataObject) -> None:
    world, id, scene = life.reach_state(data.draw(st.sampled_from([*life.states()])))
    person, bridge = world.principal_id, new_id()
    world.given(bridge, ActorRegistered(kind=ActorKind.SERVICE_ACCOUNT))
    with closing(StoreAndWorld(world)) as both:
        for name in data.draw(st.lists(st.sampled_from([*life.verbs]), min_size=1, max_size=10)):
            world.principal_id = bridge if REGISTRY.operations[name].callers else person
            both.do(life.command(name, scene), on=id)
            both.agree()
