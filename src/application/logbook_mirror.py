"""The port of the logbook mirror: what was concluded about a run, copied to the facility's own electronic logbook."""

from typing import Protocol
from uuid import UUID


class LogbookMirror(Protocol):
    """Copies narratives out once their decisions are committed; a deployment without one copies nothing.

    It retries, keeps time and logs by itself and never raises: a copy that fails undoes and delays nothing.
    """

    async def mirror_decision(self, decision_id: UUID, narrative: str, target_logbook: str) -> None:
        """Copy the narrative of a decision, to the letter and once, to a logbook of the outside system."""
        ...
