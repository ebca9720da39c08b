"""The beamline that tests of several contexts start from."""

import pytest

from tests.support.domain.run_beamline import Beamline, beamline


@pytest.fixture
def line() -> Beamline:
    """A beamline on which everything lets runs and procedures start."""
    return beamline()
