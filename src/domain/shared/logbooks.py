"""Logbooks: rows beside an aggregate, which never change its state. A logbook is a header event on its owner's stream, made
by the first append, and rows in an insert-only relation; a row whose id is stored already is left as it is."""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum, StrEnum
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args
from uuid import UUID

from pydantic import UUID7, AliasChoices, Field, WithJsonSchema

from baton.domain.kernel import Call, Command, Event
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.listing import Summary

TYPES = {str: "string", UUID: "uuid", datetime: "datetime", bool: "bool", int: "int", float: "float"}
SHAPE = "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
ProducedId = Annotated[UUID7, WithJsonSchema({"type": "string", "format": "uuid", "pattern": SHAPE})]
"""The id of an entry, made by its producer; those of a conduct's own rows are of another version."""


class LogbookKind(StrEnum):
    VERDICT = "verdict"
    INFERENCE = "inference"
    OBSERVATION = "observation"
    NARRATIVE = "narrative"
    ACTIVITY = "activity"


class LogbookOpened(Event):
    """The header of a logbook; its schema says what the rows hold as of the opening."""

    logbook_id: UUID
    kind: LogbookKind
    schema_: dict[str, Any] = Field(validation_alias=AliasChoices("schema", "schema_"), serialization_alias="schema")


class Entry(Summary):
    """One row of a logbook; the store says when it was stored."""

    kind: ClassVar[LogbookKind]
    event_id: UUID
    logbook_id: UUID
    actor_id: UUID
    command_name: str
    correlation_id: UUID
    causation_id: UUID | None
    occurred_at: datetime
    recorded_at: datetime | None = None

    @classmethod
    def by(cls, call: Call, command: Command, logbook_id: UUID, **own: Any) -> Self:
        """Return a row that a command appends; without an own time it happened now."""
        return cls(
            logbook_id=logbook_id,
            actor_id=call.principal_id,
            command_name=command.operation.command_name,
            correlation_id=call.correlation_id,
            causation_id=call.causation_id,
            **{**own, "occurred_at": own.get("occurred_at") or call.now},
        )

    @classmethod
    def row_schema(cls) -> dict[str, Any]:
        """Return the form of the rows, for people, without the fields that every logbook has."""
        own = {name: info for name, info in cls.model_fields.items() if name not in {*Entry.model_fields, *cls.hidden()}}
        return {"fields": {name: {"type": _type_of(info.annotation)} for name, info in own.items()}}


class Appended(AnswerForm):
    """How many entries the request held, repeated ones included."""

    event_count: int
    """Number of entries in the request, repeated ones included."""


H = TypeVar("H", bound=LogbookOpened)


def open_logbook(held: UUID | None, opened: type[H], entry: type[Entry], call: Call) -> tuple[UUID, Sequence[H]]:
    """Return the logbook to write to, and the event that opens it where it is not open yet."""
    if held is not None:
        return held, ()
    logbook_id = call.id_for(f"{entry.kind} logbook")
    return logbook_id, (opened(logbook_id=logbook_id, kind=entry.kind, schema_=entry.row_schema()),)


def _type_of(annotation: object) -> str:
    scalar = next((part for part in (*get_args(annotation), annotation) if part in TYPES), None)
    if scalar is None or (isinstance(annotation, type) and issubclass(annotation, Enum)):
        return "string"
    return TYPES[scalar]
