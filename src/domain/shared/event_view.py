"""One event of the log as callers see it."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import ConfigDict

from baton.domain.shared.answer_form import AnswerForm


class EventView(AnswerForm):
    """One event with its envelope; texts that may hold personal data are null without `ReadEventTexts`, and its payload is
    where payloads are not asked for.

    `principal_name` is that of a person, an agent or an account as it is now, `Baton` for the service itself, or `not
    signed in`; people's names are null without `GetActor`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    position: int
    """Its number in the log."""
    transaction_id: int
    event_id: UUID
    stream_type: str
    stream_id: UUID
    version: int
    """The number of this event in its stream, from 1."""
    event_type: str
    schema_version: int
    payload: dict[str, Any] | None
    principal_id: UUID
    command_name: str
    correlation_id: UUID
    causation_id: UUID | None
    occurred_at: datetime
    recorded_at: datetime
    surface_id: UUID | None
    """The surface (REST, MCP or a console) that the call came through."""
    approved_by: UUID | None
    principal_name: str | None
    """What the one who called is named now."""
