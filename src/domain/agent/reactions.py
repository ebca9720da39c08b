"""Reactions: how far each subscriber has followed the log, what it has under way, and what it fails on. A person can dismiss
an event that a subscriber cannot get past; that is a decision like any other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar, Protocol
from uuid import UUID

from pydantic import Field

from baton.domain.decision.decision import DecisionRegistered, decision
from baton.domain.kernel import Call, JudgedCreation, Outcome, Query, Value
from baton.domain.registry import standalone_query
from baton.domain.shared.reads import Reads, ask, record_of, records_of
from baton.domain.shared.refusals import Conflict, Invalid, NotFound
from baton.domain.shared.text import Text
from baton.domain.shared.writes import Put, Record

REACTION_LOCK = "reactions"  # The lock under which a subscriber's bookmark is moved.
MAX_ERROR_LENGTH = 500


@dataclass(frozen=True)
class Reaction(Record):
    """How far a subscriber has come in the log, and what keeps it from going on, if anything does."""

    relation: ClassVar[str] = "reactions"
    key: ClassVar[tuple[str, ...]] = ("subscriber_name",)
    subscriber_name: str
    enabled: bool
    transaction_id: int
    position: int
    last_event_recorded_at: datetime | None = None
    consecutive_failures: int = 0
    last_error_at: datetime | None = None
    last_error_message: str | None = None


class LogPlace(Value):
    """A place in the log."""

    transaction_id: int
    position: int
    """The number in the log up to which everything was seen."""


class OpenItem(Value):
    """Work that a subscriber has started and that has not ended."""

    event_id: UUID | None
    workflow_id: str
    """The id of the workflow in Temporal."""
    started_at: datetime
    attempt: int
    """Number of the attempt, from 1."""
    last_error: str | None


class ReactionView(Value):
    """One subscriber; `open_items` is null while the engine cannot be asked."""

    subscriber_name: str
    enabled: bool
    """Whether the subscriber runs in this deployment."""
    bookmark: LogPlace
    """The place in the log up to which everything was seen."""
    unprocessed: int  # How many events that concern it are still before it, up to a thousand.
    """Number of events that are still to be looked at."""
    last_event_recorded_at: datetime | None
    """When the last event that it has seen was recorded."""
    consecutive_failures: int
    """Number of failures in a row."""
    last_error_at: datetime | None
    """When something last went wrong."""
    last_error_message: str | None
    """What went wrong last."""
    open_items: tuple[OpenItem, ...] | None
    """The work under way; null while Temporal cannot be asked."""


class Reactions(Value):
    """All subscribers; there are so few that they come on one page."""

    items: tuple[ReactionView, ...]
    next_cursor: None = None


class SubscriberBookmarkNotFoundError(NotFound, context="agent"):
    """There is no subscriber of this name."""


class DismissalEventNotFoundError(NotFound, context="agent"):
    """There is no event with this id."""


class InvalidDismissalReasonError(Invalid, context="agent"):
    """Dismissing an event takes a reason that is not blank."""


class EventAlreadyDismissedError(Conflict, context="agent"):
    """The subscriber is past this event."""


class ReactionCannotDismissEventError(Conflict, context="agent"):
    """Only the next event that concerns a subscriber can be dismissed."""


@standalone_query("/reactions", context="agent", returns=Reactions)
class ListReactions(Query[Reactions]):
    """How far every subscriber of the log has come, with what it has under way and what went wrong last."""

    subscriber_name: Annotated[str, Field(min_length=1, max_length=100)] | None = None

    def answer(self, call: Call) -> Reads[Reactions]:
        names = yield from ask(ReactionPort.subscriber_names)
        wanted = tuple(name for name in names if self.subscriber_name in (None, name))
        rows = yield from records_of(Reaction, subscriber_name=wanted)
        unprocessed = yield from ask(ReactionPort.unprocessed_counts, rows)
        open_items = yield from ask(ReactionPort.open_items, wanted)
        views = (view_of(row, unprocessed[row.subscriber_name], open_items[row.subscriber_name]) for row in rows)
        return Reactions(items=tuple(views))


def view_of(reaction: Reaction, unprocessed: int, open_items: Sequence[OpenItem] | None) -> ReactionView:
    """Return what is shown of a subscriber."""
    own = dict(vars(reaction))
    bookmark = LogPlace(transaction_id=own.pop("transaction_id"), position=own.pop("position"))
    items = None if open_items is None else tuple(open_items)
    return ReactionView(bookmark=bookmark, unprocessed=unprocessed, open_items=items, **own)


@dataclass(frozen=True)
class LoggedEvent:
    """An event in the log, as far as a dismissal needs it, and where it stands for a subscriber."""

    event_id: UUID
    event_type: str
    place: tuple[int, int]
    recorded_at: datetime
    matching: bool
    next_id: UUID | None  # The next event that concerns the subscriber, where there is one.


class ReactionPort(Protocol):
    """Knows everything that follows the log."""

    async def subscriber_names(self) -> Sequence[str]:
        """Return the names of everything that follows the log."""

    async def unprocessed_counts(self, reactions: Sequence[Reaction]) -> Mapping[str, int]:
        """Return how many events each subscriber has still before it, up to a thousand."""

    async def open_items(self, subscriber_names: Sequence[str]) -> Mapping[str, Sequence[OpenItem] | None]:
        """Return what each subscriber has under way; None while the engine cannot be asked."""

    async def logged_event(self, event_id: UUID, reaction: Reaction) -> LoggedEvent | None:
        """Return an event as a dismissal judges it."""


@decision.creation(context="agent", path="/reactions/{subscriber_name}/dismiss-event", lock=REACTION_LOCK)
class DismissEventInReaction(JudgedCreation[tuple[Reaction, LoggedEvent]]):
    """Let a subscriber pass over the event that it cannot get past."""

    subscriber_name: Annotated[str, Field(min_length=1, max_length=100)]
    event_id: UUID
    """The event that the subscriber is to pass over."""
    reason: Annotated[str, Text(500, InvalidDismissalReasonError, "reason", personal=True)]

    def gather(self, call: Call) -> Reads[tuple[Reaction, LoggedEvent]]:
        names = yield from ask(ReactionPort.subscriber_names)
        reaction = yield from record_of(Reaction, subscriber_name=self.subscriber_name)
        if reaction is None or self.subscriber_name not in names:
            detail = f"There is no subscriber {self.subscriber_name}; list_reactions names them all."
            raise SubscriberBookmarkNotFoundError(detail)
        logged = yield from ask(ReactionPort.logged_event, self.event_id, reaction)
        if logged is None:
            raise DismissalEventNotFoundError(f"There is no event {self.event_id}; check the id.")
        return reaction, logged

    def decide(self, call: Call, facts: tuple[Reaction, LoggedEvent]) -> Outcome:
        reaction, logged = facts
        if logged.place <= (reaction.transaction_id, reaction.position):
            raise EventAlreadyDismissedError("The subscriber is past this event; nothing is to be dismissed.")
        if not logged.matching:
            detail = f"{logged.event_type} does not concern {reaction.subscriber_name}; it passes over it by itself."
            raise ReactionCannotDismissEventError(detail, reason="not_matching")
        if logged.next_id != logged.event_id:
            detail = "Another event that concerns the subscriber comes first; dismiss that, or wait."
            raise ReactionCannotDismissEventError(detail, reason="not_next", facts={"next_event_id": logged.next_id})
        moved = Reaction(reaction.subscriber_name, reaction.enabled, *logged.place, logged.recorded_at)
        return [self._decision(call, reaction, logged), Put(moved)]

    def _decision(self, call: Call, reaction: Reaction, logged: LoggedEvent) -> DecisionRegistered:
        return DecisionRegistered(
            decided_by=call.principal_id,
            context="ReactionDismissal",
            choice="EventDismissed",
            reasoning=f"{reaction.subscriber_name} passes over {logged.event_type} {logged.event_id}: {self.reason}",
            inputs={
                "subscriber_name": reaction.subscriber_name,
                "event_id": str(logged.event_id),
                "event_type": logged.event_type,
                "event_cursor": list(logged.place),
                "previous_cursor": [reaction.transaction_id, reaction.position],
            },
        )
