"""The event store in memory, with the promises of the one on PostgreSQL; nothing is awaited between check and write."""

import asyncio
import operator
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

import orjson
import uuid_utils.compat

from baton.application import ports
from baton.application.caller import Caller
from baton.application.fold_cache import FoldCache
from baton.application.ports import NOTHING_KNOWN, Batch, Bookmark, CommandResult, EventRow, KeyClaim, Session
from baton.application.unit_of_work import decode_event
from baton.domain.agent.language_model import ModelCall, model_calls
from baton.domain.conduct.progress import FilledSlot
from baton.domain.decision.decision import Inference
from baton.domain.kernel import State, StoredEvent
from baton.domain.procedure.activity_logbook import Activity
from baton.domain.procedure.procedure import PHASES
from baton.domain.registry import REGISTRY
from baton.domain.run.logbooks import Channel, Observation, SamplingProcedure, StoredReading, channels_of
from baton.domain.shared.listing import Cursor, ListQuery, Order, Page, Summary, Where
from baton.domain.shared.logbooks import Entry
from baton.domain.shared.reads import LatestEvents, TextPart
from baton.domain.shared.writes import Record
from baton.domain.trust.authorization import AuthzResult
from baton.domain.trust.conduit import Conduit, ConduitVerdict
from baton.domain.views.event_log import ASSET_NAMING, ListEvents

R = TypeVar("R", bound=Record)
T = TypeVar("T")
StreamKey = tuple[str, UUID]
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "has": operator.contains,
    "has_any": lambda found, values: any(value in found for value in values),
    "from": operator.ge,
    "to": operator.le,
    "before": operator.lt,
    "after": operator.gt,
    "part": lambda found, part: lower_case(part) in lower_case(found),
}


@dataclass(frozen=True)
class HeldKey:
    claim: KeyClaim
    executed: CommandResult | None = None


class MemoryStore:
    """The log, the rows written with it, and the followers' view of both."""

    def __init__(self, appended: Callable[[], None] = lambda: None) -> None:
        self.streams: dict[StreamKey, list[EventRow]] = {}
        self.claims: dict[tuple[str, str], UUID] = {}
        self.look_ups: set[tuple[str, str, UUID]] = set()
        self.rows: dict[tuple[object, ...], Record] = {}
        self.keys: dict[tuple[UUID, str, UUID], HeldKey] = {}
        self.entries: dict[str, list[Summary]] = defaultdict(list)
        self.leases: dict[int, int] = {}  # the present term of each
        self.folds = FoldCache()
        self._event_ids: set[UUID] = set()
        self._appended = appended
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.in_flight: set[int] = set()  # transactions whose rows followers must not see yet
        self._positions = count(1)
        self._transactions = count(1)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Session]:
        """Open a view of the store; its reads never yield to other tasks, so it sees one moment."""
        yield MemorySession(self)

    @asynccontextmanager
    async def session(self, lock: str | None = None) -> AsyncIterator[Session]:
        """Open a view of the store; under a lock, what is appended becomes visible when the session ends well."""
        if lock is None:
            yield MemorySession(self)
            return
        async with self._locks[lock]:
            staged: list[tuple[Batch, list[EventRow]]] = []
            try:
                yield MemorySession(self, staged)
                for batch, rows in staged:
                    self.check(batch)
                    self.commit(batch, rows)
            finally:
                self.in_flight -= {row.transaction_id for _, rows in staged for row in rows}

    def check(self, batch: Batch) -> None:
        streams = [(append.stream_type, append.stream_id) for append in batch.appends]
        event_ids = [event_id for append in batch.appends for event_id, _ in append.events]
        versions = {stream: len(self.streams.get(stream, ())) for stream in streams}
        raced = False
        for append in batch.appends:
            raced = raced or versions[append.stream_type, append.stream_id] != append.after
            versions[append.stream_type, append.stream_id] = append.after + len(append.events)
        if raced or not self._event_ids.isdisjoint(event_ids):
            raise ports.lost_race()
        if batch.facts is not None:
            read = [(name, id, version) for name, id, version in batch.facts.streams if (name, id) not in versions]
            if any(len(self.streams.get((name, id), ())) > version for name, id, version in read):
                raise ports.changed_facts()
            if any(self.members_under(kind, keys) != list(ids) for kind, keys, ids in batch.facts.members):
                raise ports.changed_facts()
        if batch.lease is not None and self.leases.get(batch.lease.lock) != batch.lease.term:
            raise ports.LeaseLostError
        for claim, _ in batch.claims:
            if (claim.kind, claim.key) in self.claims:
                raise claim.rival
        for put in batch.puts:
            if put.rival is not None and _row_key(put.record) in self.rows:
                raise put.rival
        for enter in batch.entries:
            stored = {row.model_dump(include={"event_id"})["event_id"] for row in self.entries[enter.entries[0].relation]}
            if enter.rival is not None and not stored.isdisjoint(row.event_id for row in enter.entries):
                raise enter.rival
        if batch.outcome is not None and not self._holds(batch.outcome[0]):
            raise ports.still_in_flight()

    def members_under(self, kind: str, keys: Sequence[str]) -> list[UUID]:
        return sorted({id for found, key, id in self.look_ups if found == kind and key in keys})

    def event_rows(self, batch: Batch) -> list[EventRow]:
        call, transaction_id = batch.call, next(self._transactions)
        caller = (call.principal_id, batch.command_name, call.correlation_id, call.causation_id)
        envelope = (*caller, call.now, datetime.now(UTC), call.surface_id, call.approved_by)
        rows = []
        for append in batch.appends:
            for version, (event_id, event) in enumerate(append.events, append.after + 1):
                place = (next(self._positions), transaction_id, event_id, append.stream_type, append.stream_id, version)
                content = (type(event).__name__, event.schema_version, event.payload())
                rows.append(EventRow._make((*place, *content, *envelope)))
        return rows

    def commit(self, batch: Batch, rows: Sequence[EventRow]) -> None:
        for row in rows:
            self.streams.setdefault((row.stream_type, row.stream_id), []).append(row)
            self._event_ids.add(row.event_id)
        for release, holder in batch.releases:
            if self.claims.get((release.kind, release.key)) == holder:
                del self.claims[release.kind, release.key]
        self.claims |= {(claim.kind, claim.key): holder for claim, holder in batch.claims}
        self.look_ups -= {(delist.kind, delist.key, id) for delist, id in batch.delistments}
        self.look_ups |= {(enlist.kind, enlist.key, id) for enlist, id in batch.enlistments}
        for drop in batch.drops:
            for key in [key for key, row in self.rows.items() if isinstance(row, drop.record) and _equals(row, drop.where)]:
                del self.rows[key]
        self.rows |= {_row_key(put.record): put.record for put in batch.puts}
        for entries in (enter.entries for enter in batch.entries):
            stored, now = self.entries[type(entries[0]).relation], datetime.now(UTC)
            known = {row.model_dump(include={"event_id"})["event_id"] for row in stored}
            fresh = {row.event_id: row for row in reversed(entries) if row.event_id not in known}
            stored += [row.model_copy(update={"recorded_at": now}) for row in reversed(fresh.values())]
        if batch.outcome is not None:
            claim, executed = batch.outcome
            position = max((row.position for row in rows), default=executed.position)
            body = orjson.loads(orjson.dumps(executed.body))
            self.keys[_holder(claim)] = HeldKey(claim, replace(executed, body=body, position=position))
        self._appended()

    def state(self, stream: StreamKey) -> State | None:
        aggregate = REGISTRY.aggregates[stream[0]]
        return aggregate.fold(decode_event(aggregate, row) for row in self.streams.get(stream, ()))

    def put(self, record: Record) -> None:
        self.rows[_row_key(record)] = record

    def records_of(self, record: type[Record]) -> Iterable[Record]:
        """Return the rows of a relation that is not listed; views of a logbook are computed."""
        if record is Channel:
            return channels_of(self.readings())
        if record is FilledSlot:
            return slots_of(row for row in self.entries[Activity.relation] if isinstance(row, Activity))
        return self.rows.values()

    def summaries_of(self, summary: type[Summary]) -> Iterator[Summary]:
        """Yield the rows of a relation that can be listed; projections and views of a logbook are computed."""
        if summary is ModelCall:
            yield from model_calls(row for row in self.entries[Inference.relation] if isinstance(row, Inference))
            return
        if summary.relation == Observation.relation:
            yield from self.readings()
            return
        projection = REGISTRY.projections.get(summary.relation)
        if projection is None:
            yield from self.entries[summary.relation]
            yield from (summary(**vars(row)) for row in self.rows.values() if row.relation == summary.relation)
            return
        for stream in self.streams:
            if stream[0] == projection.aggregate.name and (state := self.state(stream)) is not None:
                yield summary.of(state)

    def readings(self) -> Iterator[Observation]:
        """Yield the readings of runs: those that were appended, and what steps of their phases captured."""
        activities = [row for row in self.entries[Activity.relation] if isinstance(row, Activity)]
        runs = {id: UUID(key) for kind, key, id in self.look_ups if kind == PHASES}
        yield from (row for row in self.entries[StoredReading.relation] if isinstance(row, Observation))
        yield from captured_readings(activities, runs)

    async def claim_key(self, claim: KeyClaim, stale_before: datetime) -> CommandResult | None:
        held = self.keys.get(_holder(claim))
        if held is None or (held.executed is None and held.claim.claimed_at < stale_before):
            self.keys[_holder(claim)] = HeldKey(claim)
            return None
        if held.executed is None:
            raise ports.still_in_flight()
        if held.claim.fingerprint != claim.fingerprint:
            raise ports.other_request()
        return replace(held.executed, replayed=True)

    async def release_key(self, claim: KeyClaim) -> None:
        if self._holds(claim):
            del self.keys[_holder(claim)]

    def _holds(self, claim: KeyClaim) -> bool:
        held = self.keys.get(_holder(claim))
        return held is not None and held.executed is None and held.claim.claimed_at == claim.claimed_at

    async def newer(
        self, stream_type: str, known: Mapping[UUID, int], look_up: tuple[str, str] | None = None
    ) -> Sequence[StoredEvent]:
        wanted = {id: 0 for *place, id in self.look_ups if tuple(place) == look_up} | dict(known)
        rows = (row for id in sorted(wanted) for row in self.streams.get((stream_type, id), ())[wanted[id] :])
        return list(map(_stream_row, rows))

    async def follow(self, after: Bookmark, limit: int, only: Sequence[str] | None = None) -> Sequence[EventRow]:
        ordered = self._behind(after)[:limit]
        return [row for row in ordered if only is None or row.event_type in only or row is ordered[-1]]

    async def search(self, query: ListEvents, bookmark: Bookmark, limit: int) -> Sequence[EventRow]:
        if query.order is Order.ASC:
            found = self._behind(bookmark)
        else:
            found = [row for row in self._behind(Bookmark(0, 0))[::-1] if (row.transaction_id, row.position) < bookmark]
        return [row for row in found if is_asked_for(row, query)][:limit]

    async def at_time(self, time: datetime) -> Bookmark | None:
        later = [row for row in self._log() if row.recorded_at >= time]
        first = min(later, key=lambda row: (row.recorded_at, row.position), default=None)
        return Bookmark(first.transaction_id, first.position) if first else None

    async def event(self, event_id: UUID) -> EventRow | None:
        return next((row for row in self._log() if row.event_id == event_id), None)

    async def locate(self, position: int) -> Bookmark | None:
        before = [row for row in self._log() if row.position <= position]
        newest = max(before, key=lambda row: row.position, default=None)
        return Bookmark(newest.transaction_id, newest.position) if newest else None

    async def end(self) -> Bookmark:
        visible = self._behind(Bookmark(0, 0))
        return Bookmark(visible[-1].transaction_id, visible[-1].position) if visible else Bookmark(0, 0)

    async def last_position(self) -> int:
        return max(((row.transaction_id, row.position) for row in self._log()), default=(0, 0))[1]

    async def ahead(self, after: Bookmark, only: Sequence[str], limit: int) -> Sequence[UUID]:
        return [row.event_id for row in self._behind(after) if row.event_type in only][:limit]

    async def has_passed(self, follower: str, position: int) -> bool:
        return any(row.position == position for row in self._log())

    def _behind(self, after: Bookmark) -> list[EventRow]:
        horizon = min(self.in_flight, default=None)
        visible = (row for row in self._log() if horizon is None or row.transaction_id < horizon)
        behind = [row for row in visible if (row.transaction_id, row.position) > after]
        return sorted(behind, key=lambda row: (row.transaction_id, row.position))

    def _log(self) -> Iterator[EventRow]:
        return (row for stream in self.streams.values() for row in stream)


class MemorySession:
    """One unit of work; what it appends is staged where a lock makes the whole session one transaction."""

    def __init__(self, store: MemoryStore, staged: list[tuple[Batch, list[EventRow]]] | None = None) -> None:
        self.folds = store.folds
        self._store = store
        self._staged = staged

    async def load(
        self, stream_type: str, ids: Sequence[UUID], known: Mapping[UUID, int] = NOTHING_KNOWN
    ) -> Sequence[StoredEvent]:
        streams = {id: self._store.streams.get((stream_type, id), []) for id in sorted(set(ids))}
        return [_stream_row(row) for id, stream in streams.items() for row in stream[known.get(id, 1) - 1 :]]

    async def load_of(self, stream_type: str, ids: Sequence[UUID], event_types: Sequence[str]) -> Sequence[EventRow]:
        streams = (self._store.streams.get((stream_type, id), ()) for id in sorted(ids))
        return [row for stream in streams for row in stream if row.event_type in event_types]

    async def load_latest(self, wanted: LatestEvents) -> Sequence[EventRow]:
        stream = (wanted.state.__name__, wanted.id)
        rows, types = self._store.streams.get(stream, []), [event.__name__ for event in wanted.events]
        if wanted.as_of is not None or wanted.as_of_version is not None:
            rows = rows[: len(await self.load_past(*stream, wanted.as_of, wanted.as_of_version))]
        return [row for row in reversed(rows) if row.event_type in types][: wanted.count]

    async def load_past(
        self, stream_type: str, id: UUID, as_of: datetime | None, as_of_version: int | None
    ) -> Sequence[StoredEvent]:
        rows = self._store.streams.get((stream_type, id), [])
        if as_of_version is None:
            as_of_version = max((row.version for row in rows if as_of is not None and row.occurred_at <= as_of), default=0)
        return list(map(_stream_row, rows[:as_of_version]))

    async def history(self, stream_type: str, id: UUID, after_version: int, limit: int) -> Sequence[EventRow]:
        return self._store.streams.get((stream_type, id), [])[after_version : after_version + limit]

    async def holders(self, kind: str, keys: Sequence[str]) -> dict[str, UUID]:
        return {key: self._store.claims[kind, key] for key in keys if (kind, key) in self._store.claims}

    async def all_holders(self, kind: str) -> tuple[UUID, ...]:
        return tuple(sorted({id for (among, _), id in self._store.claims.items() if among == kind}))

    async def members(self, kind: str, keys: Sequence[str]) -> dict[str, tuple[UUID, ...]]:
        wanted, found = set(keys), defaultdict[str, list[UUID]](list)
        for among, key, id in sorted(self._store.look_ups):
            if among == kind and key in wanted:
                found[key].append(id)
        return {key: tuple(ids) for key, ids in found.items()}

    async def all_members(self, kind: str) -> tuple[UUID, ...]:
        return tuple(sorted({id for among, _, id in self._store.look_ups if among == kind}))

    async def descendants(self, kind: str, id: UUID, max_depth: int) -> tuple[tuple[UUID, ...], ...]:
        levels: list[list[UUID]] = [[id]]
        while len(levels) <= max_depth and (level := self._store.members_under(kind, [str(one) for one in levels[-1]])):
            levels.append(level)
        return tuple(map(tuple, levels[1:]))

    async def records(self, record: type[R], where: Mapping[str, object]) -> tuple[R, ...]:
        found = [row for row in self._store.records_of(record) if isinstance(row, record) and _equals(row, where)]
        return tuple(sorted(found, key=_row_key))

    async def page(self, summary: type[Summary], query: ListQuery, where: Sequence[Where]) -> Page[Summary]:
        id_column, *_ = summary.model_fields
        descending = query.order is Order.DESC

        def place(row: Summary) -> tuple[datetime, UUID]:
            return getattr(row, summary.time), getattr(row, id_column)

        rows = [row for row in self._store.summaries_of(summary) if all(_holds(row, condition) for condition in where)]
        rows.sort(key=place, reverse=descending)
        if (after := query.after()) is not None:
            mark = (after.time, after.id)
            rows = [row for row in rows if (place(row) < mark if descending else place(row) > mark)]
        shown = set(summary.model_fields) - summary.hidden()
        items = tuple(summary.model_construct(**row.model_dump(include=shown)) for row in rows[: query.limit])
        if len(rows) <= query.limit:
            return Page(items, None)
        time, id = place(rows[query.limit - 1])
        return Page(items, str(Cursor(order=query.order, time=time, id=id)))

    async def append(self, batch: Batch) -> int | None:
        self._store.check(batch)
        rows = self._store.event_rows(batch)
        if self._staged is None:
            self._store.commit(batch, rows)
        else:
            self._store.in_flight |= {row.transaction_id for row in rows}
            self._staged.append((batch, rows))
        return max((row.position for row in rows), default=None)


class MemoryVerdictLog:
    """Records verdicts among the store's entries; a conduit without a logbook records none."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def record(self, caller: Caller, surface_id: UUID, command_name: str, result: AuthzResult) -> None:
        conduit = self._store.state((Conduit.__name__, caller.conduit_id))
        if not isinstance(conduit, Conduit) or conduit.verdict_logbook_id is None:
            return
        now = datetime.now(UTC)
        verdict = ConduitVerdict(
            event_id=uuid_utils.compat.uuid7(),
            conduit_id=conduit.id,
            logbook_id=conduit.verdict_logbook_id,
            actor_id=caller.principal_id,
            command_name=command_name,
            decision=result.decision,
            reason=result.reason,
            surface_id=surface_id,
            determining_policies=frozenset(result.determining_policies),
            correlation_id=caller.correlation_id,
            causation_id=caller.causation_id,
            occurred_at=now,
            recorded_at=now,
        )
        self._store.entries[ConduitVerdict.relation].append(verdict)


def slots_of(activities: Iterable[Activity]) -> Iterator[FilledSlot]:
    """Yield the captures and outputs that the rows of a ledger fill, in the order they were stored."""
    for row in activities:
        if row.slot is None:
            continue
        payload: Any = row.payload
        place = (row.procedure_id, _require(row.conduct_id), _require(row.iteration_index), _require(row.closing))
        content = {"artifact": payload["artifact"]} if "artifact" in payload else {"value": payload.get("captured_value")}
        yield FilledSlot(row.event_id, *place, _require(row.step_index), row.slot, content, _require(row.recorded_at))


def captured_readings(activities: Iterable[Activity], runs: Mapping[UUID, UUID]) -> Iterator[Observation]:
    """Yield what steps captured as readings of the runs that their procedures are phases of."""
    for row in activities:
        payload: Any = row.payload
        if row.slot is None or "captured_value" not in payload or row.procedure_id not in runs:
            continue
        reading = payload.get("reading", {})
        own = {name: getattr(row, name) for name in Entry.model_fields}
        yield Observation(
            **own,
            run_id=runs[row.procedure_id],
            channel_name=row.slot,
            value=payload["captured_value"],
            units=payload.get("captured_unit") or reading.get("units"),
            sampling_procedure=SamplingProcedure.CAPTURE,
            simulated=payload.get("actuation_kind", "Physical") != "Physical",
            sampled_at=reading.get("sampled_at") or row.sampled_at,
        )


def _require(value: T | None) -> T:
    assert value is not None, "a row that fills a slot has its place"
    return value


def _holder(claim: KeyClaim) -> tuple[UUID, str, UUID]:
    return claim.principal_id, claim.key, claim.surface_id


def _row_key(record: Record) -> tuple[object, ...]:
    return (record.relation, *(getattr(record, name) for name in record.key))


def _stream_row(row: EventRow) -> StoredEvent:
    return StoredEvent(*(getattr(row, name) for name in StoredEvent._fields))


def _equals(row: Record, where: Mapping[str, object]) -> bool:
    return all(_fits(getattr(row, name), value) for name, value in where.items())


def _fits(found: Any, wanted: Any) -> bool:
    match wanted:
        case TextPart(text):
            return lower_case(text) in lower_case(found)
        case tuple():
            return found in wanted
    return bool(found == wanted)


def lower_case(text: str) -> str:
    """Return a text in lower case, each character for itself as PostgreSQL does it."""
    return "".join(map(str.lower, text))


def _holds(row: Summary, condition: Where) -> bool:
    found, value = getattr(row, condition.column), condition.value
    match condition.test:
        case "is":
            return bool(found == value)
        case "in" | "not_in":
            return (found in value) is (condition.test == "in")
        case "contains":
            return _contains(row.model_dump(mode="json")[condition.column], value)
        case "after_or_null":
            return found is None or found > value
        case "is_null":
            return (found is None) is value
    return found is not None and bool(COMPARISONS[condition.test](found, value))


def _contains(found: object, wanted: object) -> bool:
    match wanted:
        case Mapping():
            return isinstance(found, Mapping) and all(key in found and _contains(found[key], wanted[key]) for key in wanted)
        case str():
            return bool(found == wanted)
        case Iterable():
            return isinstance(found, Iterable) and all(any(_contains(item, part) for item in found) for part in wanted)
    return bool(found == wanted)


def is_asked_for(row: EventRow, query: ListEvents) -> bool:
    """Return whether an event is of the caller, the request and the asset that a query asks for."""
    asked = {name: getattr(query, name) for name in ("principal_id", "correlation_id")}
    if any(id is not None and getattr(row, name) != id for name, id in asked.items()):
        return False
    of_it = (row.stream_type, row.stream_id) == ("Asset", query.asset_id)
    return query.asset_id is None or of_it or (row.event_type in ASSET_NAMING and f'"{query.asset_id}"' in row.payload)
