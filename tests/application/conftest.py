"""Time that tests need not wait for, and conducts in it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.application.memory_conduct import MemoryConduct, memory_conduct
from tests.support.fast_clock import LoopTime, skipping_time


@pytest.fixture
async def time() -> AsyncIterator[LoopTime]:
    """A clock that everything in the test goes by, sleeps and time-outs too; it skips what nobody uses."""
    with skipping_time(asyncio.get_running_loop()) as time:
        yield time


@pytest.fixture
def memory(time: LoopTime) -> MemoryConduct:
    """Conducts in memory, on a simulated plant."""
    return memory_conduct(time)
