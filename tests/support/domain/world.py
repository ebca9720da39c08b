"""A world in memory for domain tests: given these events, when this command, then those events or that refusal."""

from collections import defaultdict
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Self
from uuid import UUID

import pytest
import uuid_utils.compat

from baton.domain.agent.agent import SpentAmounts
from baton.domain.conduct.rehearsal import RehearsalBasis, TimedRehearsal, part_times, rehearse
from baton.domain.kernel import NIL, Call, Command, Event, Outcome, Query, State
from baton.domain.registry import REGISTRY
from baton.domain.shared.logbooks import Entry
from baton.domain.shared.reads import (
    AllHolders,
    AllMembers,
    AskPort,
    Descendants,
    Grants,
    Holders,
    LatestEvents,
    Members,
    OwnAccess,
    PastEvents,
    Permission,
    PermittedCommands,
    Reads,
    Records,
    Rows,
    RunInThread,
    Streams,
    Suppose,
)
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.units import UnitPolicy
from baton.domain.shared.writes import Also, Answer, Claim, Delist, Drop, Enlist, Enter, Put, Record, Release
from baton.domain.trust.authorization import Access
from baton.domain.trust.surface import SYSTEM_HTTP

OPERATOR = UUID("0197a100-0000-7000-8000-00000000000a")
LENIENT = {
    "clearance_four_eyes": False,
    "policies_enforced": False,
    "unowned_signals_allowed": True,
    "strict_limits": False,
    "lapsed_calibrations_refused": False,
    "planned_outages": (),
    "witnessed_runs_claim": True,
    "action_signals": {},
    "unit_policy": UnitPolicy.CONVERT,
    "monitored_enclosures": frozenset(),
}
"""What a deployment for development does not ask for."""
START = datetime(2026, 10, 6, 8, 0, tzinfo=UTC)


def walk_in_place(basis: RehearsalBasis) -> TimedRehearsal:
    """The rehearsal, walked at once."""
    walked = rehearse(basis)
    return TimedRehearsal(walked, tuple(part_times(basis, walked.action_seconds)), str(basis.fingerprint))


def new_id() -> UUID:
    return uuid_utils.compat.uuid7()


@dataclass
class World:
    """Folds, claims, look-ups and rows, as the store would hold them."""

    principal_id: UUID = OPERATOR
    surface_id: UUID = SYSTEM_HTTP
    now: datetime = START
    streams: dict[tuple[str, UUID], list[Event]] = field(default_factory=lambda: defaultdict(list))
    claims: dict[tuple[str, str], UUID] = field(default_factory=dict)
    members: dict[tuple[str, str], set[UUID]] = field(default_factory=lambda: defaultdict(set))
    records: dict[tuple[Any, ...], Record] = field(default_factory=dict)
    entries: dict[UUID, Entry] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    access: Access = field(default_factory=lambda: Access((), ()))
    """The groups of the caller, and the policies that name it."""
    ports: dict[str, Any] = field(
        default_factory=lambda: {
            "actuation_kind": None,
            "completed_step_count": 0,
            "last_values": {},
            "rehearse": walk_in_place,
            "conduct_walk": None,
            "registered_walk": None,
            "step_durations": {},
            "stated_limits": {},
            "spent_amounts": SpentAmounts(0.0, 0),
            "deployment": SimpleNamespace(**LENIENT),
        }
    )
    call: Call | None = None
    """The last call, and what it answered."""
    answer: Any = None
    status: int | None = None
    """The status it answered with, where that is not its usual one."""

    def copy(self) -> Self:
        """Return a world of its own that holds the same: to copy one is a hundredth of the work of building it."""
        return replace(
            self,
            streams=defaultdict(list, {key: events.copy() for key, events in self.streams.items()}),
            claims=self.claims.copy(),
            members=defaultdict(set, {key: ids.copy() for key, ids in self.members.items()}),
            records=self.records.copy(),
            entries=self.entries.copy(),
            denied=self.denied.copy(),
            ports={name: copy(port) for name, port in self.ports.items()},
        )

    def adopt(self, other: "World") -> None:
        """Take over what another world holds, apart from its ports."""
        assert not self.streams.keys() & other.streams.keys(), "it is here already"
        held = other.copy()
        self.streams |= held.streams
        self.claims |= held.claims
        self.members |= held.members
        self.records |= held.records
        self.entries |= held.entries
        self.now = max(self.now, held.now)

    def given(self, id: UUID, *events: Event) -> Self:
        for event in events:
            event.stamp(id, self.now)
            event.attribute(event.own_id or new_id(), self.principal_id, self.surface_id)
            self.streams[event.aggregate.name, id].append(event)
        return self

    def state(self, state: type[Any], id: UUID) -> Any:
        return state.aggregate.fold(self.streams.get((state.__name__, id), ()))

    def when(self, command: Command, on: UUID | None = None, *, opening: UUID | None = None) -> list[Event]:
        """Decide and apply a command, and return the events of its own stream; everything else is in the world.

        What it opens or creates is `opening`, where that is known beforehand.
        """
        operation = command.operation
        self.now += timedelta(seconds=1)
        self.answer = self.status = None
        call = self.call = Call(self.principal_id, self.surface_id, self.now, opening or new_id(), new_id())
        if hasattr(command, "examine"):
            command.examine()
        state = self._target(operation, on)
        before = repr(state)
        outcome = self.fulfil(operation.decision(command, state, call))
        assert repr(state) == before, "a decision leaves the state as it is, which other requests hold too"
        return self.apply(outcome, on or operation.begun_stream(command, call))

    def create(self, command: Command) -> UUID:
        """Decide and apply a creation, and return the new aggregate's id."""
        return self.when(command)[0].stream_id

    def ask(self, query: Query, on: UUID | None = None) -> Any:
        call = Call(self.principal_id, self.surface_id, self.now, new_id(), new_id())
        state = self._target(query.operation, on)
        return self.fulfil(query.answer(*((state, call) if state is not None else (call,))))

    def show(self, query: Query, on: UUID | None = None) -> Any:
        """Return what surfaces show of a state that a query answers."""
        state: State = self.ask(query, on)
        return state.aggregate.show(state)

    def _target(self, operation: Any, on: UUID | None) -> State | None:
        if operation.target is None:
            return None
        assert on is not None, f"{operation.name} needs a target"
        state = self.state(operation.aggregate.state, on)
        if state is None:
            raise operation.aggregate.NotFound("absent")
        return state

    def fulfil(self, reads: Reads[Any]) -> Any:
        """Run a generator of reads to its result; what it supposes to be written is in a copy that the rest reads."""
        world: World = self
        try:
            request = next(reads)
            while True:
                if isinstance(request, Suppose):
                    world = replace(world.copy(), now=request.at)
                    world.apply(request.also.outcome, request.also.id)
                    request = reads.send(None)
                    continue
                try:
                    answer = world._read(request)
                except Refusal as refusal:
                    request = reads.throw(refusal)
                else:
                    request = reads.send(answer)
        except StopIteration as done:
            return done.value

    def _read(self, request: Any) -> Any:
        match request:
            case Streams(state, ids):
                return {id: found for id in ids if (found := self.state(state, id)) is not None}
            case PastEvents(state, ids, events):
                streams = (self.streams.get((state.__name__, id), ()) for id in ids)
                return tuple(event for stream in streams for event in stream if isinstance(event, events))
            case LatestEvents(state, id, events, count):
                of_these = [event for event in self.streams.get((state.__name__, id), ()) if isinstance(event, events)]
                return tuple(reversed(of_these[-count:]))
            case Holders(kind, keys):
                return {key: self.claims[kind, key] for key in keys if (kind, key) in self.claims}
            case AllHolders(kind):
                return tuple(sorted({id for (among, _), id in self.claims.items() if among == kind}))
            case Members(kind, keys):
                return {key: tuple(sorted(ids)) for key in keys if (ids := self.members.get((kind, key)))}
            case AllMembers(kind):
                return tuple(sorted({id for (among, _), ids in self.members.items() if among == kind for id in ids}))
            case Descendants(kind, id, max_depth):
                levels = [(id,)]
                while len(levels) <= max_depth and (level := self._members_of(kind, levels[-1])):
                    levels.append(level)
                return tuple(levels[1:])
            case Records(record, where):
                return tuple(row for row in self.records.values() if isinstance(row, record) and _matches(row, where))
            case Permission(command_name):
                return command_name not in self.denied
            case Grants(command_names):
                return None, tuple(name for name in command_names if name in self.denied)
            case PermittedCommands():
                return REGISTRY.command_names() - self.denied
            case OwnAccess():
                return self.access
            case RunInThread(function, given):
                return function(*given)
            case AskPort(method, arguments):
                answer = self.ports[method.__name__]
                return answer(*arguments) if callable(answer) else answer
            case Rows():
                raise AssertionError("lists are tested against a projection")

    def _members_of(self, kind: str, ids: tuple[UUID, ...]) -> tuple[UUID, ...]:
        return tuple(sorted({member for id in ids for member in self.members.get((kind, str(id)), ())}))

    def apply(self, outcome: Outcome, id: UUID) -> list[Event]:
        """Write what was decided about one stream, and what goes with it."""
        self._refuse_rivals(outcome)
        events = [effect for effect in outcome if isinstance(effect, Event)]
        self.given(id, *events)
        for effect in outcome:
            match effect:
                case Claim(kind, key):
                    self.claims[kind, key] = id
                case Release(kind, key):
                    assert self.claims.pop((kind, key)) == id, "only who holds a key gives it back"
                case Enlist(kind, key):
                    self.members[kind, key].add(id)
                case Delist(kind, key):
                    self.members[kind, key].discard(id)
                case Also(_, other, others):
                    self.apply(others, other)
                case Put(record):
                    self.records[_key(record)] = record
                case Drop(record, where):
                    gone = [key for key, row in self.records.items() if isinstance(row, record) and _matches(row, where)]
                    for key in gone:
                        del self.records[key]
                case Enter(entries):
                    for entry in entries:
                        self.entries.setdefault(entry.event_id, entry)
                case Answer(body, status):
                    self.answer, self.status = body, status
        return events

    def _refuse_rivals(self, outcome: Outcome) -> None:
        for effect in outcome:
            match effect:
                case Claim(kind, key, rival) if (kind, key) in self.claims:
                    raise rival
                case Put(record, rival) if rival is not None and _key(record) in self.records:
                    raise rival
                case Also(_, _, others):
                    self._refuse_rivals(others)


def expect_refusal(refusal: type[Refusal] | str, reason: str | None = None) -> Any:
    """Expect a refusal, by class or by name, with this machine cause."""
    return _RefusalExpectation(refusal if isinstance(refusal, str) else refusal.__name__, reason)


class _RefusalExpectation:
    def __init__(self, code: str, reason: str | None) -> None:
        self.code, self.reason = code, reason
        self.raises = pytest.raises(Refusal)

    def __enter__(self) -> Any:
        self.caught = self.raises.__enter__()
        return self.caught

    def __exit__(self, *error: Any) -> bool:
        handled = self.raises.__exit__(*error)
        assert self.caught.value.code == self.code, str(self.caught.value)
        if self.reason is not None:
            assert self.caught.value.reason == self.reason, str(self.caught.value)
        return bool(handled)


def _key(record: Any) -> tuple[Any, ...]:
    return (type(record), *(getattr(record, name) for name in record.key))


def _matches(row: Any, where: Any) -> bool:
    return all(
        getattr(row, name) in value if isinstance(value, tuple) else getattr(row, name) == value
        for name, value in where.items()
    )


__all__ = ["NIL", "OPERATOR", "START", "World", "expect_refusal", "new_id"]
