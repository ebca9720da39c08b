"""The ledger over the store in memory, with the same promises as the one on PostgreSQL, for tests and rehearsals."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from baton.application.conduct.ledger import ClosingRequest, BeginRequest, ConductSignals, BeginResult, StoredRow, Tally, tally_rows
from baton.application.ports import Clock, FoldedStanding
from baton.application.unit_of_work import decode_event
from baton.domain.access.actor import Actor
from baton.domain.agent.agent import Agent
from baton.domain.operation.conduct.messages import SKIPPED, Mark, StepPlace
from baton.domain.operation.conduct.progress import (
    ABORT_ASKED,
    HOLD_ASKED,
    ConductPhase,
    ConductProgress,
    FilledSlot,
    WaitingFor,
)
from baton.domain.operation.procedure.activity_logbook import Activity, StepKind
from baton.domain.operation.procedure.procedure import (
    PendingRequest,
    Procedure,
    ProcedureIterationEnded,
    ProcedureIterationStarted,
)
from baton.domain.operation.steering.steering import Point
from baton.domain.run.run import Run, RunStatus
from baton.domain.shared.writes import Record
from baton.testing.store import MemoryStore, slots_of

ONCE = (StepKind.ACTION.value, StepKind.COMPUTE.value)
UNSTORABLE = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""What no database column of JSON takes."""


@dataclass(frozen=True)
class Sign(Record):
    """The effect that a conduct has begun last, and when whoever has it was last heard of."""

    relation: ClassVar[str] = "conduct_signs"
    key: ClassVar[tuple[str, ...]] = ("procedure_id",)
    procedure_id: UUID
    effect_id: UUID
    beat_at: datetime


class MemoryLedger:
    """Rows among the store's entries; nothing is awaited between a look and a mark, so the two are one."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def begin(self, crossing: BeginRequest) -> BeginResult:
        place, marker, now = crossing.place, crossing.marker, self._clock()
        progress = self._live(place.procedure_id, place.conduct_id)
        if progress is None:
            return BeginResult(live=False)
        rows = self._here(place)
        standing = BeginResult(
            live=True,
            out_of_turn=not self._is_in_turn(crossing, progress),
            asked=self._asked(place.procedure_id, place.conduct_id, may_hold=crossing.hold_blocks),
            run=self._run(crossing.run_id),
            late=_too_long(progress.active_at, now, crossing.longest_pause),
            begun_before=crossing.once and self._begun_before(place),
            stood_down=crossing.stood_down,
            submitter_moved=self._moved(crossing.submitter),
            rows=tuple(self._stored(row, now) for row in rows),
            silence=self._silence(place.procedure_id, rows, now),
        )
        marked = marker is not None and is_free(crossing, standing)
        if marker is not None and marked:
            self._enter(marker, now)
            self._store.put(Sign(place.procedure_id, marker.event_id, now))
        if standing.out_of_turn:
            return standing
        self._store.put(
            replace(
                progress,
                phase=(ConductPhase.CLOSING if place.closing else ConductPhase.WALKING).value,
                waiting_for=None,
                waiting_until=None,
                step_index=place.step_index,
                iteration_index=place.iteration_index or None,
                heartbeat_at=now,
                active_at=now if marked else progress.active_at,
            )
        )
        return replace(standing, marked=marked)

    def _is_in_turn(self, crossing: BeginRequest, progress: ConductProgress) -> bool:
        """Whether the record shows what comes before the step."""
        place, precedence = crossing.place, crossing.precedence
        if precedence is None:
            return True
        if (progress.phase == ConductPhase.CLOSING.value) is not place.closing:
            return False
        before = place.model_copy(update={"step_index": place.step_index - 1})
        return (precedence.first or self._has_passed(before)) and (
            not place.iteration_index or self._open_pass(place.procedure_id) == (place.iteration_index, precedence.point)
        )

    def _open_pass(self, procedure_id: UUID) -> tuple[int, Point] | None:
        """The pass that is open, and where it measures."""
        for stored in reversed(self._store.streams[Procedure.__name__, procedure_id]):
            match decode_event(Procedure.aggregate, stored):
                case ProcedureIterationStarted() as started:
                    return started.iteration_index, started.point or {}
                case ProcedureIterationEnded():
                    return None
        return None

    async def has_passed(self, place: StepPlace) -> bool:
        return self._has_passed(place)

    def _has_passed(self, place: StepPlace) -> bool:
        results = {row.mark: row.payload["result"] for row in self._here(place) if row.mark != Mark.IN_FLIGHT}
        return Mark.OUTCOME in results and (place.closing or "failed" not in results.values())

    async def settle(self, row: Activity) -> Mapping[str, Any]:
        assert row.conduct_id is not None, "a ledger row belongs to a conduct"
        now = self._clock()
        standing = [known for known in self._rows(row.conduct_id) if _spot(known) == _spot(row)]
        stored = standing[0] if standing else self._enter(row, now)
        if (progress := self._live(row.procedure_id, row.conduct_id)) is not None:
            self._store.put(replace(progress, active_at=now, heartbeat_at=now))
        return stored.payload

    async def beat(
        self, place: StepPlace, effect_id: UUID | None, run_id: UUID | None, submitter: FoldedStanding | None = None
    ) -> ConductSignals:
        now = self._clock()
        progress = self._live(place.procedure_id, place.conduct_id)
        if progress is None:
            return ConductSignals(False)
        self._store.put(replace(progress, heartbeat_at=now))
        sign = self._sign(place.procedure_id)
        if sign is not None and sign.effect_id == effect_id:
            self._store.put(replace(sign, beat_at=now))
        orders = self._orders(place.procedure_id, place.conduct_id, run_id)
        lost = submitter is not None and submitter.objection is not None
        return replace(orders, stood_down=lost, submitter_moved=self._moved(submitter))

    async def begin_closing(self, closing: ClosingRequest) -> ConductSignals:
        progress = self._live(closing.procedure_id, closing.conduct_id)
        if progress is None:
            return ConductSignals(False)
        orders = self._orders(closing.procedure_id, closing.conduct_id, closing.run_id, may_hold=closing.may_hold)
        begun = progress.phase == ConductPhase.CLOSING.value
        if not begun and (orders.asked is not None or orders.run in closing.run_blocks):
            return orders
        self._store.put(
            replace(
                progress,
                phase=ConductPhase.CLOSING.value,
                waiting_for=None,
                step_index=progress.step_index if begun else None,
                heartbeat_at=self._clock(),
            )
        )
        return ConductSignals(True)

    async def wait(self, procedure_id: UUID, conduct_id: UUID, waiting_for: WaitingFor, until: datetime | None) -> None:
        self._say(
            procedure_id, conduct_id, phase=ConductPhase.WAITING.value, waiting_for=waiting_for.value, waiting_until=until
        )

    async def go_on(self, procedure_id: UUID, conduct_id: UUID, since: datetime | None = None) -> None:
        progress = self._live(procedure_id, conduct_id)
        if progress is not None:
            active_at = max(progress.active_at, since or progress.active_at)
            self._say(
                procedure_id,
                conduct_id,
                phase=ConductPhase.WALKING.value,
                waiting_for=None,
                waiting_until=None,
                active_at=active_at,
            )

    def _say(self, procedure_id: UUID, conduct_id: UUID, **said: Any) -> None:
        progress = self._live(procedure_id, conduct_id)
        if progress is not None and progress.phase != ConductPhase.CLOSING.value:
            self._store.put(replace(progress, heartbeat_at=self._clock(), **said))

    async def slots(self, procedure_id: UUID, conduct_id: UUID, iteration_index: int, boundary: int) -> Sequence[FilledSlot]:
        passes = {iteration_index}
        if iteration_index == 0:
            passes.add(max((row.iteration_index or 0 for row in self._rows(conduct_id)), default=0))
        found: dict[tuple[str, bool], FilledSlot] = {}
        for slot in slots_of(row for row in self._activities() if row.procedure_id == procedure_id):
            own = slot.conduct_id == conduct_id and slot.iteration_index in passes
            earlier = slot.conduct_id != conduct_id and not slot.closing and slot.step_index < boundary
            if own or earlier:
                found[slot.slot, "artifact" in slot.content] = slot
        return [found[key] for key in sorted(found)]

    async def tally(self, conduct_id: UUID, iteration_index: int, *, of_pass: bool = False) -> Tally:
        rows = self._rows(conduct_id)
        if of_pass:
            rows = [row for row in rows if row.iteration_index == iteration_index and not row.closing]
        outcomes = {_place(row): row for row in rows if row.mark == Mark.OUTCOME}
        written: dict[str, tuple[list[tuple[Any, UUID]], list[tuple[Any, UUID]]]] = {}
        for row in rows:
            for address, value, confirmed in _writes(row, outcomes.get(_place(row))):
                known, tried = written.setdefault(address, ([], []))
                if confirmed:
                    known[:], tried[:] = [(value, row.event_id)], []
                else:
                    tried.append((value, row.event_id))
        brought = [
            row
            for row in rows
            if row.mark in (Mark.OUTCOME, Mark.DEPOSIT) and (row.closing or row.iteration_index == iteration_index)
        ]
        brought.sort(key=lambda row: (row.closing, row.step_index, row.mark == Mark.DEPOSIT))
        found: Any = [
            (row.event_id, row.step_kind, row.closing, row.step_index, row.mark, row.sampled_at, row.payload)
            for row in brought
        ]
        return tally_rows(
            found,
            [(address, *values) for address, values in written.items()],
            [row.payload["actuation_kind"] for row in rows if not row.closing and "actuation_kind" in row.payload],
        )

    def _live(self, procedure_id: UUID, conduct_id: UUID) -> ConductProgress | None:
        progress: Any = self._store.rows.get((ConductProgress.relation, procedure_id))
        if progress is None or progress.conduct_id != conduct_id or progress.phase == ConductPhase.ENDED.value:
            return None
        found: ConductProgress = progress
        return found

    def _asked(self, procedure_id: UUID, conduct_id: UUID, *, may_hold: bool = True) -> PendingRequest | None:
        """What was asked of a conduct; an abort counts before a hold."""
        kinds = {ABORT_ASKED: PendingRequest.ABORT} | ({HOLD_ASKED: PendingRequest.HOLD} if may_hold else {})
        asked = (asked for kind, asked in kinds.items() if (kind, str(conduct_id), procedure_id) in self._store.look_ups)
        return next(asked, None)

    def _moved(self, submitter: FoldedStanding | None) -> bool:
        """Whether the submitter's streams say more than was folded."""
        if submitter is None:
            return False
        known = {Actor.__name__: submitter.actor_version, Agent.__name__: submitter.agent_version}
        return any(
            version is not None and len(self._store.streams.get((name, submitter.principal_id), ())) > version
            for name, version in known.items()
        )

    def _run(self, run_id: UUID | None) -> RunStatus | None:
        run: Any = None if run_id is None else self._store.state((Run.__name__, run_id))
        return None if run is None else run.status

    def _orders(self, procedure_id: UUID, conduct_id: UUID, run_id: UUID | None, *, may_hold: bool = True) -> ConductSignals:
        return ConductSignals(True, self._asked(procedure_id, conduct_id, may_hold=may_hold), self._run(run_id))

    def _activities(self) -> Sequence[Activity]:
        rows: Any = self._store.entries[Activity.relation]
        found: Sequence[Activity] = rows
        return found

    def _rows(self, conduct_id: UUID) -> list[Activity]:
        return [row for row in self._activities() if row.conduct_id == conduct_id]

    def _here(self, place: StepPlace) -> list[Activity]:
        """The rows of one place by attempt."""
        rows = [row for row in self._rows(place.conduct_id) if _place(row) == place]
        return sorted(rows, key=lambda row: row.attempt or 0)

    def _begun_before(self, place: StepPlace) -> bool:
        """Whether an earlier conduct has begun what must not be begun twice."""
        return any(
            row.procedure_id == place.procedure_id
            and row.conduct_id != place.conduct_id
            and row.step_index == place.step_index
            and row.mark is not None
            and not row.closing
            and row.step_kind in ONCE
            and row.payload["result"] != SKIPPED
            for row in self._activities()
        )

    def _stored(self, row: Activity, now: datetime) -> StoredRow:
        assert row.mark is not None, "a ledger row has a mark"
        assert row.recorded_at is not None, "what is stored was recorded"
        age = (now - row.recorded_at).total_seconds()
        return StoredRow(row.event_id, row.mark, row.attempt or 0, row.payload, age)

    def _sign(self, procedure_id: UUID) -> Sign | None:
        sign: Any = self._store.rows.get((Sign.relation, procedure_id))
        found: Sign | None = sign
        return found

    def _silence(self, procedure_id: UUID, rows: Sequence[Activity], now: datetime) -> float | None:
        """Seconds since whoever has the last effect that was begun here was heard of."""
        last = next((row.event_id for row in reversed(rows) if row.mark == Mark.IN_FLIGHT), None)
        sign = self._sign(procedure_id)
        return (now - sign.beat_at).total_seconds() if sign is not None and sign.effect_id == last else None

    def _enter(self, row: Activity, now: datetime) -> Activity:
        """Store a row as a database would: what JSON cannot hold is refused, and nothing is shared with the caller."""
        document = row.model_dump_json()
        if UNSTORABLE.search(document):
            raise ValueError("a row holds a NUL character, which no database takes")
        stored = Activity.model_validate_json(document).model_copy(update={"recorded_at": now})
        self._store.entries[Activity.relation].append(stored)
        return stored


def is_free(crossing: BeginRequest, standing: BeginResult) -> bool:
    """Whether nothing stands in the way of a step."""
    if standing.out_of_turn:
        return False
    if standing.asked is not None or standing.run in crossing.run_blocks or standing.late or standing.begun_before:
        return False
    if standing.stood_down or standing.submitter_moved:
        return False
    if any(row.mark == Mark.OUTCOME for row in standing.rows):
        return False
    known = {row.event_id for row in standing.rows}
    return not known or (crossing.again and crossing.marker is not None and crossing.marker.event_id not in known)


def _too_long(since: datetime, now: datetime, longest: float | None) -> bool:
    return longest is not None and (now - since).total_seconds() > longest


def _place(row: Activity) -> StepPlace:
    assert row.conduct_id is not None, "a ledger row belongs to a conduct"
    return StepPlace(
        procedure_id=row.procedure_id,
        conduct_id=row.conduct_id,
        iteration_index=row.iteration_index or 0,
        closing=bool(row.closing),
        step_index=row.step_index or 0,
    )


def _spot(row: Activity) -> tuple[StepPlace, str | None]:
    """What only one outcome and one deposit can be stored for."""
    return _place(row), row.mark


def _writes(row: Activity, outcome: Activity | None) -> list[tuple[str, Any, bool]]:
    """What a row says was sent where, and whether that was confirmed; `outcome` is that of its step."""
    payload = row.payload
    if row.mark == Mark.OUTCOME and row.step_kind == StepKind.ACTION:
        confirmed = [(address, value, True) for address, value in payload.get("writes", ())]
        return confirmed + [(address, value, False) for address, value in payload.get("unconfirmed", ())]
    if row.step_kind != StepKind.SETPOINT or "address" not in payload:
        return []
    if row.mark == Mark.OUTCOME:
        return [(payload["address"], payload["value"], True)] if payload["result"] == "ok" else []
    if outcome is not None:
        own = outcome.attempt == row.attempt and "sent" not in outcome.payload
        if own or outcome.payload["result"] == "ok":
            return []
    return [(payload["address"], payload["value"], False)]
