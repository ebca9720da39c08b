"""A beamline on which everything lets procedures start, and the world it stands in."""

import pytest

from tests.support.domain.run_beamline import Beamline, beamline
from tests.support.domain.world import World


@pytest.fixture
def line() -> Beamline:
    return beamline()


@pytest.fixture
def world(line: Beamline) -> World:
    return line.world
