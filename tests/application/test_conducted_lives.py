"""Two procedures that are conducted on one asset, whatever happens to them: the store holds what the domain decided."""

from contextlib import closing
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.application.store_and_world import StoreAndWorld
from tests.support.domain.conducts import STOPS, latest, register_procedure_from_recipe
from tests.support.domain.run_beamline import beamline

STEPS = st.tuples(st.sampled_from(sorted(STOPS)), st.booleans(), st.sampled_from([0, 0, 0, 70]))


@settings(max_examples=15)
@given(st.lists(STEPS, min_size=5, max_size=20))
def test_conducts_come_and_go_the_same_way_in_the_store(life: list[tuple[str, bool, int]]) -> None:
    line = beamline()
    line.world.ports["deployment"].enclosure_observation_ttl = timedelta(days=1)
    pair = [register_procedure_from_recipe(line.world, target_asset_ids=[line.hutch.camera]) for _ in range(2)]
    with closing(StoreAndWorld(line.world)) as both:
        for name, second, silence in life:
            line.world.now += timedelta(seconds=silence)
            both.do(STOPS[name](latest(line.world, pair[second])), on=pair[second])
        both.agree()
