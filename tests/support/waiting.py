"""Waiting for conditions: a sleep is none."""

import asyncio
from typing import Any


async def until(condition: Any, within: float = 20.0) -> Any:
    """The first true answer of a condition, sync or async."""
    deadline = asyncio.get_running_loop().time() + within
    while True:
        answer = condition()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return answer
        assert asyncio.get_running_loop().time() < deadline, f"not within {within} s"
        await asyncio.sleep(0.01)
