"""Dry runs: what a command would record and answer, decided as always and not written."""

from typing import Any
from uuid import UUID

from baton.domain.kernel import Value


class WouldRecord(Value):
    """One event that would be recorded."""

    stream: str
    stream_id: UUID
    event_type: str
    payload: dict[str, Any]
    ids_are_examples: bool = False
    """Whether stream_id is made up, here and in the payload: what is made at last has another id."""


class DryRun(Value):
    """What a command would record, in order, and what it would answer; ids of what it would create are made up."""

    would: tuple[WouldRecord, ...]
    """The events that would be recorded."""
    answer: dict[str, Any] | None
    """What the command would answer; ids of what it would create are made up."""
    approval_needed: bool = False
    """Whether the caller holds the command only with approval: a second person decides, and it is proposed until then."""
