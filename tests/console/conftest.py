"""What tests of the console share."""

from collections.abc import Iterator

import pytest

from tests.support.console.code_issuer import CodeIssuer


@pytest.fixture(scope="module")
def issuer() -> Iterator[CodeIssuer]:
    """An identity provider at which people sign in."""
    with CodeIssuer.running_server() as issuer:
        yield issuer
