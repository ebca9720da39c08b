"""Progress notifications for agents that give a progress token with their call."""

import json
from collections.abc import Awaitable, Callable

from mcp.shared.jsonrpc_dispatcher import progress_token_from_params

from baton.application.ports import Progress

MIN_INCREMENT = 0.001
"""The least increase between two notifications: the protocol wants every value above the one before."""

Report = Callable[[float, float | None, str | None], Awaitable[None]]


class Notifier:
    """Notifies one caller of progress, with increasing values."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._last = -MIN_INCREMENT

    async def __call__(self, progress: Progress) -> None:
        self._last = max(float(progress.done), self._last + MIN_INCREMENT)
        await self._report(round(self._last, 3), progress.total, progress.message)


def wants_progress(body: bytes) -> bool:
    """Return whether a frame carries a progress token, so that its answer must be a stream."""
    if b"progressToken" not in body:
        return False
    try:
        frame = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(frame, dict) and progress_token_from_params(frame.get("params")) is not None
