"""The empty world that tests of templates start from."""

import pytest

from tests.support.domain.world import World


@pytest.fixture
def world() -> World:
    return World()
