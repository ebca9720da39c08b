"""The beamline that tests of several contexts start from."""

import pytest

from tests.support.domain.run_beamline import Beamline, beamline
from tests.support.domain.world import World


@pytest.fixture
def line() -> Beamline:
    """A beamline on which everything lets runs and procedures start."""
    return beamline()


@pytest.fixture
def world(line: Beamline) -> World:
    """The world of the beamline; tests that start from less make their own."""
    return line.world
