"""The world of the beamline, which tests of procedures start from."""

import pytest

from tests.support.domain.run_beamline import Beamline
from tests.support.domain.world import World


@pytest.fixture
def world(line: Beamline) -> World:
    return line.world
