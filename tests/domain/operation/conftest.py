"""A beamline on which everything lets procedures start, and the world it stands in."""

import pytest

from tests.domain.run.beamline import Beamline, beamline
from tests.domain.world import World


@pytest.fixture
def line() -> Beamline:
    return beamline()


@pytest.fixture
def world(line: Beamline) -> World:
    return line.world
