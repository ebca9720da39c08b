"""The states of streams that are long, hold very much, or are read by the hundred, kept between requests: what is newer is
folded on."""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from baton.domain.kernel import State, StoredEvent

LONG = 64  # streams of more events are kept
MANY = 32  # streams that are read together with so many others are kept too: a tree of equipment is read again and again
LARGE = 50_000  # characters of one event; a stream that has such a one is kept: a recipe of a thousand steps is one event
MAX_EVENTS = 500_000  # in all streams that are kept together; a short one counts as long, as its state takes room too
CHARACTERS_AN_EVENT = 50  # that a large event counts as one more for


class FoldedStream(NamedTuple):
    """A state, and the event it goes up to."""

    state: State
    version: int
    position: int
    occurred_at: datetime
    largest: int = 0  # characters of its largest event

    def precedes(self, rows: Sequence[StoredEvent]) -> bool:
        """Return whether these events begin with the one that the state goes up to. Another database may hold another event
        of that version, even at the same position, but not of the same moment."""
        return bool(rows) and (rows[0].version, rows[0].position, rows[0].occurred_at) == self[1:4]


class FoldCache:
    """Keeps the folded streams that were used last. Streams only grow, so nothing makes an entry invalid; an entry is used
    only where the store still has the event it goes up to."""

    def __init__(self, max_events: int = MAX_EVENTS) -> None:
        self._max_events = max_events
        self._events = 0
        self._streams: OrderedDict[tuple[str, UUID], FoldedStream] = OrderedDict()

    def find(self, stream_type: str, ids: Collection[UUID]) -> dict[UUID, FoldedStream]:
        """Return those of these streams that are kept."""
        return {id: kept for id in ids if (kept := self._streams.get((stream_type, id))) is not None}

    def keep(self, stream_type: str, stream: FoldedStream, *, among: int = 1) -> None:
        """Keep a stream that is long or large, or was read among many, in place of what was kept of it; those that were used
        longest ago make room."""
        key = stream_type, stream.state.id
        if self._streams.get(key) is stream:
            return self._streams.move_to_end(key)
        if (replaced := self._streams.pop(key, None)) is not None:
            self._events -= weight_of(replaced)
        is_costly = stream.version > LONG or stream.largest > LARGE or among >= MANY
        if is_costly and weight_of(stream) <= self._max_events:
            self._streams[key] = stream
            self._events += weight_of(stream)
        while self._events > self._max_events:
            _, forgotten = self._streams.popitem(last=False)
            self._events -= weight_of(forgotten)


def weight_of(stream: FoldedStream) -> int:
    """Return how many events a stream counts as; its state takes room however short it is."""
    return max(stream.version, LONG, stream.largest // CHARACTERS_AN_EVENT)
