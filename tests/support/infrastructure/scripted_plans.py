"""The Bluesky plans of the tests, as environments of queueserver and blueapi have them; a file counts each start."""

import os
from pathlib import Path
from typing import Annotated

from bluesky.plan_stubs import checkpoint, close_run, open_run, sleep
from bluesky.utils import MsgGenerator
from pydantic import Field

__all__ = ["count_start", "positive"]
PIECE = 0.05


def count_start(
    seconds: float = 0.1, checkpoints: bool = True, fails: bool = False, note: str = "plan", exposure: float = PIECE
) -> MsgGenerator[float]:
    """Count a start in a file, and take so many seconds, with a checkpoint before each exposure.
    Baton: reads=note gated

    It touches nothing.
    """
    with Path(os.environ["PLAN_STARTS"]).open("a") as starts:
        starts.write(f"{note}\n")
    yield from open_run()
    for _ in range(max(1, round(seconds / exposure)) if checkpoints else 1):
        if checkpoints:
            yield from checkpoint()
        yield from sleep(exposure if checkpoints else seconds)
    yield from close_run()
    if fails:
        raise RuntimeError("the plan was told to fail")
    return seconds


def positive(number: Annotated[int, Field(gt=0)]) -> MsgGenerator[None]:
    """Do nothing with a number."""
    yield from sleep(0.0)
    del number
