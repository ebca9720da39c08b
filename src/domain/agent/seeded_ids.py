"""The ids of the agents that every deployment has: constants that nobody else may be known by."""

from uuid import UUID


def seeded_id(number: int) -> UUID:
    """The id of one of them."""
    return UUID(f"019a0000-0000-7000-8000-{number:012}")


SEEDED_IDS = frozenset(seeded_id(number) for number in range(1, 6))
