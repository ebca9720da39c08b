"""How long work goes, as an agent hears of it that gave a progress token with its call."""

import json
from collections.abc import Awaitable, Callable

from mcp.shared.jsonrpc_dispatcher import progress_token_from_params

from baton.application.ports import Progress

LEAST = 0.001
"""What progress grows by where there is only something else to say: the protocol has every value above the one before."""

Report = Callable[[float, float | None, str | None], Awaitable[None]]


class Notifier:
    """Tells one caller; each value is larger than the one before."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._last = -LEAST

    async def __call__(self, progress: Progress) -> None:
        self._last = max(float(progress.done), self._last + LEAST)
        await self._report(round(self._last, 3), progress.total, progress.message)


def wants_progress(body: bytes) -> bool:
    """Whether a frame carries a progress token, and its answer must be a stream to tell of it."""
    if b"progressToken" not in body:
        return False
    try:
        frame = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(frame, dict) and progress_token_from_params(frame.get("params")) is not None
