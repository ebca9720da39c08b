"""What workflows share that act, then wait for news or until a time, again and again until nothing is left to do."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import workflow

AT_ONCE = timedelta()  # the wait of what is to be done again at once


class FollowingWorkflow:
    """A workflow that follows a record; a signal says that there is news on it."""

    _has_news = False

    @workflow.signal(name="news")
    def tell_news(self) -> None:
        """Have the record looked at again."""
        self._has_news = True

    async def follow(self, order: Any, act: Callable[[], Awaitable[timedelta | None]]) -> None:
        """Act until nothing is left to do. The act returns how long to wait for news, which may come while it acts, or None
        where nothing is left. A history that has become long is continued with the same order."""
        while True:
            self._has_news = False
            limit = await act()
            if limit is None and not self._has_news:
                return
            if limit:
                with suppress(TimeoutError):
                    await workflow.wait_condition(lambda: self._has_news, timeout=limit)
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(order)
