"""What the earlier commands of a decision write, as the later ones read it before any of it is written."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from baton.domain.kernel import Event, State
from baton.domain.shared.writes import Also, Claim, Delist, Enlist, Release

StreamKey = tuple[str, UUID]
Stored = Callable[[StreamKey], State | None]


class SupposedWrites:
    """States, events, claims and look-ups on top of the stored ones."""

    def __init__(self) -> None:
        self.states: dict[StreamKey, State | None] = {}
        self._events: dict[StreamKey, list[Event]] = defaultdict(list)
        self._holders: dict[tuple[str, str], UUID | None] = {}
        self._members: dict[tuple[str, str], dict[UUID, bool]] = defaultdict(dict)

    def add(self, also: Also, at: datetime, stored: Stored) -> None:
        """Take an outcome as written; `stored` returns the state of a stream as it was read, None for a new one."""
        key = (also.state.__name__, also.id)
        for effect in also.outcome:
            match effect:
                case Event():
                    event = effect.stamp(also.id, at)
                    before = self.states[key] if key in self.states else stored(key)
                    self.states[key] = event.aggregate.after(before, event)
                    self._events[key].append(event)
                case Claim(kind, name):
                    self._holders[kind, name] = also.id
                case Release(kind, name):
                    self._holders[kind, name] = None
                case Enlist(kind, name):
                    self._members[kind, name][also.id] = True
                case Delist(kind, name):
                    self._members[kind, name][also.id] = False
                case Also():
                    self.add(effect, at, stored)

    def events(self, key: StreamKey, kinds: tuple[type[Event], ...]) -> tuple[Event, ...]:
        """Return the supposed events of these types on a stream, oldest first."""
        return tuple(event for event in self._events.get(key, ()) if isinstance(event, kinds))

    def holders(self, kind: str, names: Sequence[str], stored: Mapping[str, UUID]) -> dict[str, UUID]:
        """Return who holds these keys: by the supposed claims and releases, else as stored."""
        found = {name: self._holders.get((kind, name), stored.get(name)) for name in names}
        return {name: holder for name, holder in found.items() if holder is not None}

    def members(
        self, kind: str, names: Sequence[str], stored: Mapping[str, tuple[UUID, ...]]
    ) -> Mapping[str, tuple[UUID, ...]]:
        """Return who is enlisted under these keys: by the supposed entries, else as stored."""
        if not any((kind, name) in self._members for name in names):
            return stored
        listed: dict[str, tuple[UUID, ...]] = {}
        for name in names:
            entries = {**dict.fromkeys(stored.get(name, ()), True), **self._members.get((kind, name), {})}
            listed[name] = tuple(sorted(id for id, is_listed in entries.items() if is_listed))
        return {name: ids for name, ids in listed.items() if ids}
