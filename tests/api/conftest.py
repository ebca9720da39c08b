"""What tests of the edge share."""

from collections.abc import Iterator

import pytest

from tests.support.infrastructure.identity_provider import Issuer


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """An issuer of tokens, served over HTTP."""
    with Issuer.running_server() as issuer:
        yield issuer
