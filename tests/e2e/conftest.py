"""One stack for all tests that leave it whole, until the last of them has run: an idle stack still takes turns."""

from collections.abc import Iterator

import pytest

from tests.support.stack import PIECES, Stack, eventually, running_stack


@pytest.fixture(scope="package")
def shared_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that can mint and publish; the keys it signs with and its outbox are beside its data directory."""
    directory = tmp_path_factory.mktemp("stack")
    (directory / "keys").mkdir()
    settings = {
        "PID_MINTER": "development",
        "SIGNING_KEY_DIRECTORY": str(directory / "keys"),
        "PUBLICATION_OUTBOX": str(directory / "outbox"),
        "IDEMPOTENCY_LOCK_STALE_SECONDS": "1",
    }
    with running_stack(directory / "data", **settings) as stack:
        yield stack


@pytest.fixture
def stack(shared_stack: Stack) -> Iterator[Stack]:
    """The running stack, whole before and after the test."""
    yield wait_until_whole(shared_stack)
    wait_until_whole(shared_stack)


def wait_until_whole(stack: Stack) -> Stack:
    """Return the stack once every piece of it runs and it is ready."""
    for name in (*PIECES, "postgres"):
        stack.piece(name)
    eventually(lambda: stack.client.get("/readyz").status_code == 200, what=stack.output)
    return stack
