"""One record for all the tests of a module: what each of them needs is one of its own."""

from collections.abc import AsyncIterator, Iterator

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from tests.support.databases import fresh_database
from tests.support.workflows.conduct_stack import ConductStack
from tests.support.workflows.enforcing_stack import open_enforcing_run_stack
from tests.support.workflows.many_conducts import ManyConducts
from tests.support.workflows.queue_cases import reacting_queues
from tests.support.workflows.run_cases import SIGNALS, RunStack


@pytest.fixture(scope="module")
def database(postgres: EmbeddedPostgres, template: str) -> Iterator[str]:
    """A migrated database for a module's tests."""
    with fresh_database(postgres, template) as url:
        yield url


@pytest.fixture(scope="module")
def many_conducts() -> ManyConducts:
    return ManyConducts()


@pytest.fixture(scope="module")
async def watched_stack(
    many_conducts: ManyConducts, database: str, temporal: EmbeddedTemporal
) -> AsyncIterator[ConductStack]:
    """A stack with a watched worker for a module's tests."""
    async with many_conducts.open_stack(database, temporal.address) as stack:
        yield stack


@pytest.fixture(scope="module")
async def queue_stack(database: str, temporal: EmbeddedTemporal) -> AsyncIterator[RunStack]:
    """An enforcing stack for a module's tests, whose queues start what is added to them."""
    async with open_enforcing_run_stack(database, temporal.address, reacting_queues) as queue_stack:
        yield queue_stack


@pytest.fixture
def run_stack(queue_stack: RunStack) -> RunStack:
    """The module's stack, with the plant as at the beginning."""
    queue_stack.stack.reset_plant(SIGNALS)
    return queue_stack


@pytest.fixture
def stack(run_stack: RunStack) -> ConductStack:
    return run_stack.stack
