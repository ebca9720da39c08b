"""One stack for all tests that leave it whole, until the last of them has run: an idle stack still takes turns."""

from collections.abc import Iterator

import pytest

from tests.support.stack import PIECES, Stack, eventually, running_stack


@pytest.fixture(scope="package")
def shared_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("stack"), PID_MINTER="development") as stack:
        yield stack


@pytest.fixture
def stack(shared_stack: Stack) -> Iterator[Stack]:
    """The running stack, whole before and after the test."""
    yield whole(shared_stack)
    whole(shared_stack)


def whole(stack: Stack) -> Stack:
    """The stack once every piece of it runs and it is ready."""
    for name in (*PIECES, "postgres"):
        stack.piece(name)
    eventually(lambda: stack.client.get("/readyz").status_code == 200, what=stack.said)
    return stack
