"""The site that tests of clearances start from."""

import pytest

from tests.support.domain.clearances import site_world
from tests.support.domain.world import World


@pytest.fixture
def world() -> World:
    return site_world()
