"""One stack for all tests that leave it whole, until the last of them has run: an idle stack still takes turns."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.support.console.browser import open_browser
from tests.support.infrastructure.scicat_server import CONTACT, GROUP, PREFIX, TOKEN, SciCatServer, running_scicat
from tests.support.stack import PIECES, Stack, eventually, running_stack


@pytest.fixture(scope="package")
def scicat() -> Iterator[SciCatServer]:
    """The catalogue of the shared stack."""
    with running_scicat() as server:
        yield server


@pytest.fixture(scope="package")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory whose files the shared stack may read."""
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="package")
def tiled_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which the shared stack links files for Tiled."""
    return tmp_path_factory.mktemp("tiled")


@pytest.fixture(scope="package")
def shared_stack(
    tmp_path_factory: pytest.TempPathFactory, scicat: SciCatServer, data_root: Path, tiled_directory: Path
) -> Iterator[Stack]:
    """A stack that can mint, publish and enter datasets into catalogues; its keys and outbox are beside its data."""
    directory = tmp_path_factory.mktemp("stack")
    (directory / "keys").mkdir()
    settings = {
        "PID_MINTER": "development",
        "SIGNING_KEY_DIRECTORY": str(directory / "keys"),
        "PUBLICATION_OUTBOX": str(directory / "outbox"),
        "IDEMPOTENCY_LOCK_STALE_SECONDS": "1",
        "DATA_ROOTS": json.dumps([str(data_root)]),
        "TILED_DIRECTORY": str(tiled_directory),
        "SCICAT_ADDRESS": scicat.url,
        "SCICAT_TOKEN": TOKEN,
        "SCICAT_OWNER_GROUP": GROUP,
        "SCICAT_CONTACT_EMAIL": CONTACT,
        "SCICAT_PID_PREFIX": PREFIX,
    }
    with running_stack(directory / "data", **settings) as stack:
        yield stack


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator[Browser]:
    """A browser that reaches nothing outside this machine."""
    async with open_browser("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1") as browser:
        yield browser


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
