"""Any verbs of any aggregate, in any order: the command path decides what the domain alone decides, and stores just that."""

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.domain.access.actor import ActorKind, ActorRegistered
from baton.domain.contexts import REGISTRY
from tests.application.twins import Twins
from tests.domain.lifecycles import LIVES, STATELESS
from tests.domain.lives import Life
from tests.domain.world import new_id

ALL_LIVES = [life for life in (*LIVES, *STATELESS) if life.verbs]


@settings(max_examples=12)
@given(data=st.data())
@pytest.mark.parametrize("life", ALL_LIVES, ids=lambda life: life.aggregate)
def test_a_life_goes_the_same_way_in_the_store(life: Life, data: st.DataObject) -> None:
    world, id, scene = life.reached(data.draw(st.sampled_from([*life.standings()])))
    person, bridge = world.principal_id, new_id()
    world.given(bridge, ActorRegistered(kind=ActorKind.SERVICE_ACCOUNT))
    with closing(Twins(world)) as twins:
        for name in data.draw(st.lists(st.sampled_from([*life.verbs]), min_size=1, max_size=10)):
            world.principal_id = bridge if REGISTRY.operations[name].callers else person
            twins.do(life.command(name, scene), on=id)
            twins.agree()
