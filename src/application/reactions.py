"""Reactions: followers of the log that have workflows started for what happened, each event once.

A subscriber does not wait for what it starts: a slow model call never holds back later events.
"""

from collections.abc import Sequence
from typing import Protocol

from application.ports import EventRow, Job
from domain.kernel import Event


class Subscriber(Protocol):
    """Which events somebody reacts to, and with what."""

    name: str
    events: tuple[type[Event], ...]

    async def enabled(self) -> bool:
        """Whether anything is started at all; whoever is off passes over what happens meanwhile, for good."""
        ...

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        """What is to be started for an event, under ids that follow from it; nothing, for one that does not concern."""
        ...
