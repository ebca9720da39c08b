"""The port of people: the words that name somebody here, for what leaves the facility to be held against."""

from typing import Protocol

from domain.agent.discretion import NameBook


class People(Protocol):
    """Everybody with a profile; what agents and machine accounts are called is no secret."""

    async def book(self) -> NameBook:
        """The names of people as they are now; the same book until a profile changes."""
        ...
