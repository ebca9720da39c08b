"""Writes: what a decision may ask to be written besides events of its own stream, as plain data. It returns a flat list of
events and of these; the application writes all of it in one transaction or nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from baton.domain.shared.refusals import Refusal

if TYPE_CHECKING:
    from baton.domain.kernel import Outcome, State
    from baton.domain.shared.logbooks import Entry


@dataclass(frozen=True)
class KeyedWrite:
    """A write under one key of a kind."""

    kind: str
    key: str


@dataclass(frozen=True)
class Claim(KeyedWrite):
    """Holds a key that only one stream may hold; a rival is refused by this refusal."""

    rival: Refusal


class Release(KeyedWrite):
    """Gives a claimed key back."""


class Enlist(KeyedWrite):
    """Makes this stream findable under a look-up key, in the same transaction as its events."""


class Delist(KeyedWrite):
    """Takes this stream from a look-up key."""


@dataclass(frozen=True)
class Also:
    """The outcome of another stream, its claims and look-ups included; the stream must have been read or be new."""

    state: type["State"]
    id: UUID
    outcome: "Outcome"


@dataclass(frozen=True)
class Answer:
    """What the command answers instead of an empty body, and with which status if not its usual one."""

    body: Mapping[str, Any]
    status: int | None = None
    replayed: bool = False  # Whether it is the answer to an earlier request, which this one repeats.


class Record:
    """A mutable row that is not event-sourced: subclasses are frozen dataclasses that name their relation and key."""

    relation: ClassVar[str]
    key: ClassVar[tuple[str, ...]]
    unique: ClassVar[tuple[str, ...]] = ()


class WorkRecord(Record):
    """A row that holds the state of one piece of long work."""

    principal_id: UUID
    correlation_id: UUID
    status: StrEnum


@dataclass(frozen=True)
class Put:
    """Writes a row: inserts or replaces, or refuses by `rival` where a row with its key exists."""

    record: Record
    rival: Refusal | None = None


@dataclass(frozen=True)
class Drop:
    """Blanks and deletes the rows whose columns equal these values."""

    record: type[Record]
    where: Mapping[str, Any]


@dataclass(frozen=True)
class Enter:
    """Adds rows to a logbook; one whose id or place is stored already is left as it is, or refuses all by `rival`."""

    entries: "Sequence[Entry]"
    rival: Refusal | None = None


Write = Claim | Release | Enlist | Delist | Also | Answer | Put | Drop | Enter
