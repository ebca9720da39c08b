"""The ledger over the in-memory store, with the same contract as the one on PostgreSQL."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from typing import Any
from uuid import UUID

from baton.application.conduct import ledger
from baton.application.ports import Clock
from baton.domain.conduct.ledger import PointPlace, PointRow, WalkedSpan
from baton.domain.conduct.messages import SKIPPED, Mark, StepPlace
from baton.domain.conduct.plan_progress import PlacedPlanNews
from baton.domain.conduct.progress import ConductPhase, ConductProgress, FilledSlot, OpenedConduct, WaitingFor
from baton.domain.procedure.activity_logbook import Activity, StepKind
from baton.testing.store import MemoryStore, slots_of

UNSTORABLE = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # what no JSON column of a database takes


class MemoryLedger:
    """Keeps rows among the store's entries; nothing is awaited between check and mark, so the two are atomic."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._effects: dict[UUID, tuple[UUID, datetime]] = {}  # the effect each procedure has begun last, and its heartbeat

    async def begin(self, request: ledger.BeginRequest) -> ledger.BeginResult:
        place, marker, now = request.place, request.marker, self._clock()
        if (progress := self._live(place.procedure_id, place.conduct_id)) is None:
            return ledger.BeginResult(live=False)
        rows, pause = self._rows_at(place), (now - progress.active_at).total_seconds()
        result = ledger.BeginResult(
            live=True,
            moved=self._has_moved(request.watched) or request.monitor_term not in (None, *self._store.leases.values()),
            out_of_turn=not self._is_in_turn(request, progress),
            late=request.longest_pause is not None and pause > request.longest_pause,
            rows=tuple(stored_row(row, now) for row in rows),
            silence=self._silence(place.procedure_id, rows, now),
        )
        marked = marker is not None and may_begin(request, result)
        if marker is not None and marked:
            self._insert(marker, now)
            self._effects[place.procedure_id] = (marker.event_id, now)
        if result.out_of_turn:
            return result
        phase = (ConductPhase.CLOSING if place.closing else ConductPhase.WALKING).value
        at = {"step_index": place.step_index, "iteration_index": place.iteration_index or None}
        active_at = now if marked else progress.active_at
        self._update(progress, phase=phase, waiting_for=None, waiting_until=None, active_at=active_at, **at)
        return replace(result, marked=marked)

    def _is_in_turn(self, request: ledger.BeginRequest, progress: ConductProgress) -> bool:
        place = request.place
        if request.first is None:
            return True
        before = place.model_copy(update={"step_index": place.step_index - 1})
        return (progress.phase == ConductPhase.CLOSING) is place.closing and (request.first or self._has_passed(before))

    async def was_begun_before(self, place: StepPlace) -> bool:
        rows = [row for row in self._activities() if row.mark is not None and row.procedure_id == place.procedure_id]
        others = [row for row in rows if row.conduct_id != place.conduct_id and row.payload["result"] != SKIPPED]
        at_step = [row for row in others if row.step_index == place.step_index and not row.closing]
        undone = {place_of(row) for row in at_step if row.mark == Mark.VERDICT and row.payload["result"] == "not_done"}
        undone |= {place_of(row) for row in at_step if row.payload.get("begun") is False}
        at_step = [row for row in at_step if place_of(row) not in undone]
        return any(row.step_kind in (StepKind.ACTION, StepKind.COMPUTE) for row in at_step)

    async def left_under_way(self, place: StepPlace) -> Mapping[str, Any] | None:
        rows = [row for row in self._activities() if row.procedure_id == place.procedure_id and not row.closing]
        others = [row for row in rows if row.conduct_id != place.conduct_id and row.step_index == place.step_index]
        said = {place_of(row) for row in others if row.mark in (Mark.OUTCOME, Mark.VERDICT)}
        begun = [row for row in others if row.mark == Mark.IN_FLIGHT and row.step_kind == StepKind.ACTION]
        left = [row for row in begun if place_of(row) not in said]
        return left[-1].payload if left else None

    async def count_takeover(self, conduct_id: UUID) -> None:
        opened = self._store.rows[OpenedConduct.relation, conduct_id]
        assert isinstance(opened, OpenedConduct)
        self._store.put(replace(opened, takeover_count=opened.takeover_count + 1))

    async def passed_count(self, place: StepPlace, count: int) -> int:
        steps = (place.model_copy(update={"step_index": place.step_index + number}) for number in range(count))
        return sum(1 for _ in takewhile(self._has_passed, steps))

    async def has_passed(self, place: StepPlace) -> bool:
        return self._has_passed(place)

    def _has_passed(self, place: StepPlace) -> bool:
        results = {row.mark: row.payload["result"] for row in self._rows_at(place) if row.mark != Mark.IN_FLIGHT}
        return Mark.OUTCOME in results and (place.closing or "failed" not in results.values())

    async def settle(self, row: Activity) -> Mapping[str, Any]:
        assert row.conduct_id is not None, "a ledger row belongs to a conduct"
        now = self._clock()
        known = [one for one in self._rows_at(place_of(row)) if one.mark == row.mark]
        stored = known[0] if known else self._insert(row, now)
        if (progress := self._live(row.procedure_id, row.conduct_id)) is not None:
            self._update(progress, active_at=now)
        return stored.payload

    async def settle_and_begin(
        self, row: Activity, request: ledger.BeginRequest
    ) -> tuple[Mapping[str, Any], ledger.BeginResult]:
        if request.marker is not None:
            storable(request.marker)  # either both are stored or neither
        return await self.settle(row), await self.begin(request)

    async def beat(
        self,
        place: StepPlace,
        effect_id: UUID | None,
        watched: ledger.StreamVersions = (),
        news: PlacedPlanNews | None = None,
    ) -> ledger.BeatReply:
        if (progress := self._live(place.procedure_id, place.conduct_id)) is None:
            return ledger.BeatReply(False)
        self._update(progress, **({} if news is None else {"plan_step": news.model_dump(mode="json")}))
        if self._effects.get(place.procedure_id, (None,))[0] == effect_id is not None:
            self._effects[place.procedure_id] = (effect_id, self._clock())
        return ledger.BeatReply(True, self._has_moved(watched))

    async def begin_closing(
        self, procedure_id: UUID, conduct_id: UUID, watched: ledger.StreamVersions | None = ()
    ) -> ledger.BeatReply:
        if (progress := self._live(procedure_id, conduct_id)) is None:
            return ledger.BeatReply(False)
        begun = progress.phase == ConductPhase.CLOSING
        if not begun and (watched is None or self._has_moved(watched)):
            return ledger.BeatReply(True, moved=True)
        step_index = progress.step_index if begun else None
        self._update(progress, phase=ConductPhase.CLOSING.value, waiting_for=None, step_index=step_index)
        return ledger.BeatReply(True)

    async def mark_waiting(
        self, procedure_id: UUID, conduct_id: UUID, waiting_for: WaitingFor, until: datetime | None
    ) -> None:
        waiting = {"waiting_for": waiting_for.value, "waiting_until": until}
        self._mark(procedure_id, conduct_id, None, phase=ConductPhase.WAITING.value, **waiting)

    async def mark_walking(self, procedure_id: UUID, conduct_id: UUID, since: datetime | None = None) -> None:
        walking = {"phase": ConductPhase.WALKING.value, "waiting_for": None, "waiting_until": None}
        self._mark(procedure_id, conduct_id, since, **walking)

    def _mark(self, procedure_id: UUID, conduct_id: UUID, since: datetime | None, **changes: object) -> None:
        progress = self._live(procedure_id, conduct_id)
        if progress is not None and progress.phase != ConductPhase.CLOSING:
            self._update(progress, active_at=max(progress.active_at, since or progress.active_at), **changes)

    def _update(self, progress: ConductProgress, **changes: Any) -> None:
        self._store.put(replace(progress, heartbeat_at=self._clock(), **changes))

    async def slots(self, procedure_id: UUID, conduct_id: UUID, iteration_index: int, boundary: int) -> Sequence[FilledSlot]:
        passes = {iteration_index}
        if iteration_index == 0:
            passes.add(max((row.iteration_index or 0 for row in self._rows(conduct_id)), default=0))
        slots: dict[tuple[str, bool], FilledSlot] = {}
        for slot in slots_of(row for row in self._activities() if row.procedure_id == procedure_id):
            own = slot.conduct_id == conduct_id and slot.iteration_index in passes
            earlier = slot.conduct_id != conduct_id and not slot.closing and slot.step_index < boundary
            if own or earlier:
                slots[slot.slot, "artifact" in slot.content] = slot
        return [slots[key] for key in sorted(slots)]

    async def tally(self, conduct_id: UUID, iteration_index: int, *, of_pass: bool = False) -> ledger.Tally:
        rows = self._rows(conduct_id)
        if of_pass:
            rows = [row for row in rows if row.iteration_index == iteration_index and not row.closing]
        outcomes = {place_of(row): row for row in rows if row.mark == Mark.OUTCOME}
        written: dict[str, tuple[list[ledger.Written], list[ledger.Written]]] = {}
        for row in rows:
            for address, value, confirmed in writes_of(row, outcomes.get(place_of(row))):
                known, tried = written.setdefault(address, ([], []))
                if confirmed:
                    known[:], tried[:] = [(value, row.event_id, reading_after(row))], []
                else:
                    tried.append((value, row.event_id, None))
        ended = [row for row in rows if row.mark in (Mark.OUTCOME, Mark.DEPOSIT)]
        chosen = [row for row in ended if row.closing or row.iteration_index == iteration_index]
        chosen.sort(key=lambda row: (row.closing, row.step_index, row.mark == Mark.DEPOSIT))
        return ledger.tally_rows(
            [ledger.OutcomeRow(*(getattr(row, name) for name in ledger.OutcomeRow._fields)) for row in chosen],
            [(address, *values) for address, values in written.items()],
            [row.payload["actuation_kind"] for row in rows if not row.closing and "actuation_kind" in row.payload],
        )

    async def point_rows(
        self, spans: Sequence[WalkedSpan], axes: Sequence[str], place: PointPlace, limit: int
    ) -> Sequence[PointRow]:
        seeds, found = list[PointRow](), list[PointRow]()
        for row in (row for span in spans for row in self._rows(span.conduct_id) if is_walked(row, span)):
            at = row.iteration_index or 0, row.step_index or 0
            if at[0] == place.iteration_index and at[1] in place.seeds:
                seeds.append(point_row(row))
            elif at >= (place.iteration_index, place.step_index) and is_told_of(row, axes):
                found.append(point_row(row))
        in_order = sorted(found, key=lambda row: (row.iteration_index, row.step_index))
        return [*sorted(seeds, key=lambda row: row.step_index), *in_order[:limit]]

    def _live(self, procedure_id: UUID, conduct_id: UUID) -> ConductProgress | None:
        progress = self._store.rows.get((ConductProgress.relation, procedure_id))
        if not isinstance(progress, ConductProgress) or progress.conduct_id != conduct_id:
            return None
        return None if progress.phase == ConductPhase.ENDED else progress

    def _has_moved(self, watched: ledger.StreamVersions) -> bool:
        return any(len(self._store.streams.get((name, id), ())) > version for name, id, version in watched)

    def _activities(self) -> Sequence[Activity]:
        return [row for row in self._store.entries[Activity.relation] if isinstance(row, Activity)]

    def _rows(self, conduct_id: UUID) -> list[Activity]:
        return [row for row in self._activities() if row.conduct_id == conduct_id]

    def _rows_at(self, place: StepPlace) -> list[Activity]:
        rows = [row for row in self._rows(place.conduct_id) if place_of(row) == place]
        return sorted(rows, key=lambda row: row.attempt or 0)

    def _silence(self, procedure_id: UUID, rows: Sequence[Activity], now: datetime) -> float | None:
        last = next((row.event_id for row in reversed(rows) if row.mark == Mark.IN_FLIGHT), None)
        effect_id, beat_at = self._effects.get(procedure_id, (None, now))
        return (now - beat_at).total_seconds() if effect_id is not None and effect_id == last else None

    def _insert(self, row: Activity, now: datetime) -> Activity:
        """Store a row as a database would: refuse what JSON cannot hold, and share nothing with the caller."""
        stored = storable(row).model_copy(update={"recorded_at": now})
        self._store.entries[Activity.relation].append(stored)
        return stored


def storable(row: Activity) -> Activity:
    """Return a row as a database would give it back, and refuse what it would refuse."""
    document = row.model_dump_json()
    if UNSTORABLE.search(document):
        raise ValueError("a row holds a NUL character, which no database takes")
    return Activity.model_validate_json(document)


def may_begin(request: ledger.BeginRequest, result: ledger.BeginResult) -> bool:
    settled = any(row.mark == Mark.OUTCOME for row in result.rows)
    if result.out_of_turn or result.late or settled or result.moved:
        return False
    known = {row.event_id for row in result.rows}
    return not known or (request.again and request.marker is not None and request.marker.event_id not in known)


def stored_row(row: Activity, now: datetime) -> ledger.StoredRow:
    assert row.mark is not None, "a ledger row has a mark"
    assert row.recorded_at is not None, "what is stored was recorded"
    return ledger.StoredRow(row.event_id, row.mark, row.attempt or 0, row.payload, (now - row.recorded_at).total_seconds())


def is_walked(row: Activity, span: WalkedSpan) -> bool:
    """Return whether a row is the outcome of a step of the main list that belongs to a span."""
    return row.mark == Mark.OUTCOME and not row.closing and span.first <= (row.step_index or 0) < span.behind


def is_told_of(row: Activity, axes: Sequence[str]) -> bool:
    """Return whether a row tells of points: it sets an axis, or measures."""
    if row.step_kind == StepKind.SETPOINT:
        return row.payload.get("address") in axes
    return row.step_kind == StepKind.CAPTURE or "measurements" in row.payload


def point_row(row: Activity) -> PointRow:
    """Return what a row tells of points."""
    said, captures = row.payload, row.step_kind == StepKind.CAPTURE
    converted, read = said.get("converted") or {}, said.get("reading" if captures else "post_reading") or {}
    units = (said.get("captured_unit"),) if captures else (converted.get("unit"), read.get("units"), said.get("unit"))
    assert row.recorded_at is not None, "what is stored was recorded"
    return PointRow(
        iteration_index=row.iteration_index or 0,
        step_index=row.step_index or 0,
        kind=row.step_kind,
        is_done=said["result"] == "ok" and "skipped" not in said,
        recorded_at=row.recorded_at,
        address=said.get("address"),
        value=said.get("captured_value") if captures else converted.get("value", said.get("value")),
        unit=next((unit for unit in (*units, read.get("units")) if unit is not None), None),
        read_back=read.get("value"),
        quality=(said.get("reading") or {}).get("quality"),
        capture_name=said.get("capture_name"),
        measurements=said.get("measurements") or (),
        outputs=[one["uri"].rpartition("/")[2] for one in said.get("artifacts") or ()],
    )


def place_of(row: Activity) -> StepPlace:
    return StepPlace.model_validate(row, from_attributes=True)


def writes_of(row: Activity, outcome: Activity | None) -> list[tuple[str, object, bool]]:
    """Return the writes of a row, each with whether it was confirmed; `outcome` is that of its step."""
    payload = row.payload
    if row.mark == Mark.OUTCOME and row.step_kind == StepKind.ACTION:
        confirmed = [(address, value, True) for address, value in payload.get("writes", ())]
        return confirmed + [(address, value, False) for address, value in payload.get("unconfirmed", ())]
    if row.step_kind != StepKind.SETPOINT or "address" not in payload:
        return []
    if row.mark == Mark.OUTCOME:
        confirmed_at_all = payload["result"] == "ok" or "confirmed" in payload
        return [(payload["address"], ledger.written_value(payload), True)] if confirmed_at_all else []
    if outcome is not None and (
        outcome.payload["result"] == "ok" or (outcome.attempt == row.attempt and "sent" not in outcome.payload)
    ):
        return []
    return [(payload["address"], ledger.tried_value(payload), False)]


def reading_after(row: Activity) -> dict[str, object] | None:
    """Return what was read after a setpoint was written, with the address where that is another one."""
    if "post_reading" not in row.payload:
        return None
    verify = row.payload["verify"]
    other = verify.get("address") if isinstance(verify, dict) else None
    return {**row.payload["post_reading"], **({} if other is None else {"address": other})}
