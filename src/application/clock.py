"""Time as running work sees it: what it is now, and letting some of it pass."""

from datetime import datetime
from typing import Protocol


class Timekeeper(Protocol):
    """The wall clock, or a clock that tests and simulations move."""

    def now(self) -> datetime:
        """The present time, with its zone."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait this long."""
        ...
