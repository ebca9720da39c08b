"""Waiting for conditions, with a deadline that a busy machine keeps."""

import asyncio
from typing import Any


async def until(condition: Any, within: float = 60.0, longest_pause: float = 0.05) -> Any:
    """Return the first true answer of a condition, sync or async; ask less often while it takes long."""
    loop = asyncio.get_running_loop()
    deadline, pause = loop.time() + within, 0.01
    while True:
        answer = condition()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return answer
        assert loop.time() < deadline, f"not within {within} s"
        await asyncio.sleep(pause)
        pause = min(1.1 * pause, longest_pause)
