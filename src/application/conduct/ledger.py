"""The ledger of conducts: rows stored before and after every effect. Whatever the engine repeats, an effect that the ledger
shows is not repeated: the rows alone decide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from baton.domain.conduct.messages import Mark, StepPlace
from baton.domain.conduct.plan_progress import PlacedPlanNews
from baton.domain.conduct.progress import FilledSlot, WaitingFor
from baton.domain.procedure.activity_logbook import Activity
from baton.domain.step import results
from baton.domain.step.results import ActuationKind, Artifact, CapturedValue, Deviation, Failure, Measured, merged_kind

# the streams that speak to a conduct, each with its type, id and the version up to which it was read
StreamVersions = Sequence[tuple[str, UUID, int]]
Written = tuple[Any, UUID, Mapping[str, Any] | None]  # a value, its row, and the reading that followed it
# an address, its last confirmed value (or none), and the values sent since that may have arrived
AddressWrites = tuple[str, Sequence[Written], Sequence[Written]]


@dataclass(frozen=True)
class StoredRow:
    """A row of the ledger."""

    event_id: UUID
    mark: str
    attempt: int
    payload: Mapping[str, Any]
    age: float  # seconds since it was written, by the store's clock


@dataclass(frozen=True, kw_only=True)
class BeginRequest:
    """A step that is about to begin, and what must not be so for it to begin."""

    place: StepPlace
    marker: Activity | None  # the `in_flight` row to write if nothing blocks the step; a step without an effect writes none
    first: bool | None  # whether it is the first of its walk; every other one needs an outcome before it. None: not judged
    watched: StreamVersions = ()  # it does not begin where one of these has a newer version
    monitor_term: int | None = None  # it does not begin where another monitor leads by now, or none
    longest_pause: float | None = None  # seconds since the conduct's last activity after which it is too late to continue
    again: bool = False  # whether it begins although it was begun before without an outcome


class BeatReply(NamedTuple):
    """What the ledger answers between two steps."""

    live: bool
    moved: bool = False  # whether a stream that is watched has a newer version than was read


@dataclass(frozen=True, kw_only=True)
class BeginResult:
    """What record and ledger answer to a step that is to begin."""

    live: bool
    moved: bool = False  # whether what was read of watched streams or of the monitor is outdated; then nothing was written
    out_of_turn: bool = False  # whether the record does not show what comes before the step; then nothing was written
    late: bool = False
    rows: Sequence[StoredRow] = ()
    marked: bool = False  # whether the `in_flight` row was written, so that the step may run
    silence: float | None = None  # seconds since the last heartbeat of the step's worker; None where there is none

    @property
    def outcome(self) -> Mapping[str, Any] | None:
        """Return the stored outcome, if there is one; a failed deposit counts before the outcome it follows."""
        rows = {row.mark: row.payload for row in self.rows if row.mark != Mark.IN_FLIGHT}
        deposit = rows.get(Mark.DEPOSIT)
        return deposit if deposit is not None and deposit["result"] == "failed" else rows.get(Mark.OUTCOME)

    @property
    def lone_marker(self) -> StoredRow | None:
        """Return the last `in_flight` row, where no outcome follows it and it is the step's turn."""
        if self.outcome is not None or self.out_of_turn:
            return None
        return next((row for row in reversed(self.rows) if row.mark == Mark.IN_FLIGHT), None)

    @property
    def attempt(self) -> int:
        """Return the number of the current attempt: those begun before, and this one if it was just marked."""
        begun = max((row.attempt for row in self.rows if row.mark == Mark.IN_FLIGHT), default=0)
        return begun + 1 if self.marked else max(begun, 1)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What the ledger holds of a conduct, for its result."""

    measurements: tuple[Measured, ...]
    artifacts: tuple[Artifact, ...]
    outputs: Mapping[str, Artifact]
    substrate_writes: Mapping[str, Any]
    deviations: tuple[Deviation, ...]
    actuation_kind: ActuationKind | None
    closing_failures: tuple[Failure, ...]
    completed_count: int  # steps of the given pass, or of the list, that were done
    failure: Failure | None  # the failure of the last of them that failed
    captures: Mapping[str, CapturedValue]
    closed_count: int  # closing steps that have an outcome


class OutcomeRow(NamedTuple):
    """An outcome or a deposit in the ledger."""

    event_id: UUID
    step_kind: results.SourceKind
    closing: bool
    step_index: int
    mark: str
    sampled_at: datetime
    payload: Mapping[str, Any]


def tally_rows(rows: Sequence[OutcomeRow], written: Sequence[AddressWrites], kinds: Sequence[str]) -> Tally:
    """Return the tally of the rows of the last pass and of the closing steps, of all writes, and of all actuation kinds."""
    main = [row for row in rows if not row.closing]
    outcomes = [row for row in main if row.mark == Mark.OUTCOME]
    failures = [failure_in(row) for row in main if row.payload["result"] == "failed"]
    done = {row.step_index for row in main if row.payload["result"] == "ok"}
    return Tally(
        measurements=tuple(
            item.model_copy(update={"value": results.shown_value(item.value, row.event_id)})
            for row in outcomes
            for item in measurements_in(row.payload)
        ),
        artifacts=tuple(item for row in outcomes for item in artifacts_in(row.payload)),
        outputs={
            row.payload["output_ref_name"]: Artifact(**row.payload["artifact"])
            for row in main
            if row.mark == Mark.DEPOSIT and "artifact" in row.payload
        },
        substrate_writes={address: left_at(confirmed, tried) for address, confirmed, tried in written},
        deviations=tuple(deviation_in(row) for row in rows if row.payload.get("deviates")),
        actuation_kind=merged_kind(map(ActuationKind, kinds)),
        closing_failures=tuple(failure_in(row) for row in rows if row.closing and row.payload["result"] == "failed"),
        completed_count=len(done - {failure.step_index for failure in failures}),
        failure=failures[-1] if failures else None,
        captures=captures_in(main),
        closed_count=sum(row.closing and row.mark == Mark.OUTCOME for row in rows),
    )


def left_at(confirmed: Sequence[Written], tried: Sequence[Written]) -> object:
    """Return what an address was left at: with the reading where its last write read otherwise, and none was tried since."""
    if confirmed and not tried and (reading := confirmed[0][2]) is not None:
        written, row_id, _ = confirmed[0]
        if reading["value"] != written or "address" in reading:
            return results.read_back_value(written, reading, row_id)
    return results.left_value(*([results.shown_value(value, id) for value, id, _ in each] for each in (confirmed, tried)))


def deviation_in(row: OutcomeRow) -> Deviation:
    """Return how a setpoint read that did not read as written."""
    payload, reading = row.payload, row.payload["post_reading"]
    asked, read = (results.shown_value(value, row.event_id) for value in (written_value(payload), reading["value"]))
    at = {"step_index": row.step_index, "closing": row.closing, "address": payload["address"]}
    return Deviation(**at, asked=asked, read=read, unit=reading.get("units"))


def written_value(payload: Mapping[str, Any]) -> Any:
    """Return what a setpoint wrote, as its signal counts it."""
    return payload["converted"]["value"] if "converted" in payload else payload["value"]


def tried_value(payload: Mapping[str, object]) -> object:
    """Return what a setpoint may have written: what it was sent as is not known, and so it is given with its own unit."""
    return f"{payload['value']} {payload['unit']}" if "unit" in payload else payload["value"]


def captures_in(main: Sequence[OutcomeRow]) -> dict[str, CapturedValue]:
    """Return the captures of the main list; the unit of what a program measured is in its measurement."""
    units = {(row.step_index, one["name"]): one.get("units") for row in main for one in row.payload.get("measurements", ())}
    captures = {}
    for row in [row for row in main if "captured_value" in row.payload and row.payload["capture_name"]]:
        name, reading = row.payload["capture_name"], row.payload.get("reading", {})
        unit = row.payload.get("captured_unit") or reading.get("units") or units.get((row.step_index, name))
        time = reading.get("sampled_at") or row.sampled_at
        captures[name] = CapturedValue(value=row.payload["captured_value"], unit=unit, time=time)
    return captures


def measurements_in(payload: Mapping[str, Any]) -> tuple[Measured, ...]:
    """Return what a program measured."""
    return tuple(Measured.model_validate(item) for item in payload.get("measurements", ()))


def artifacts_in(payload: Mapping[str, Any]) -> tuple[Artifact, ...]:
    """Return what a program wrote."""
    return tuple(Artifact.model_validate(item) for item in payload.get("artifacts", ()))


def failure_in(row: OutcomeRow) -> Failure:
    """Return the failure that a row holds."""
    detail = {key: row.payload[key] for key in ("target", "error_class", "message", "facts") if key in row.payload}
    return Failure(step_index=row.step_index, source_kind=row.step_kind, **detail)


class Ledger(Protocol):
    """Rows are only ever added; of two rows for the same mark at the same place the first one counts."""

    async def begin(self, request: BeginRequest) -> BeginResult:
        """Mark a step as begun unless something blocks it; both in one transaction."""

    async def was_begun_before(self, place: StepPlace) -> bool:
        """Return whether an earlier conduct began this acquisition, and nobody has said that it was not done: neither the
        acquisition itself, which refused to begin, nor a person."""

    async def left_under_way(self, place: StepPlace) -> Mapping[str, Any] | None:
        """Return what the row of its beginning says of a step that an earlier conduct left without an outcome, such as one
        that was held meanwhile; None where there is none, or a person has said what became of it."""

    async def count_takeover(self, conduct_id: UUID) -> None:
        """Count that work on a conduct is attempted again: its worker was lost, or failed."""

    async def passed_count(self, place: StepPlace, count: int) -> int:
        """Return how many steps from a place on, of so many, have an outcome that lets the walk continue."""

    async def has_passed(self, place: StepPlace) -> bool:
        """Return whether the step's outcome lets the walk continue: any of a closing step, else one that did not fail."""

    async def settle(self, row: Activity) -> Mapping[str, Any]:
        """Store the outcome of a step, and return the one that counts: this, or one stored before."""

    async def settle_and_begin(self, row: Activity, request: BeginRequest) -> tuple[Mapping[str, Any], BeginResult]:
        """Settle a step and begin the one after it, both in one transaction."""

    async def beat(
        self, place: StepPlace, effect_id: UUID | None, watched: StreamVersions = (), news: PlacedPlanNews | None = None
    ) -> BeatReply:
        """Record a heartbeat, with what was heard of a plan that is waited for, and return whether the record has something
        new to say to the conduct."""

    async def begin_closing(self, procedure_id: UUID, conduct_id: UUID, watched: StreamVersions | None = ()) -> BeatReply:
        """Mark that closing begins, unless a stream that is watched has moved; None: only say whether it has begun."""

    async def mark_waiting(
        self, procedure_id: UUID, conduct_id: UUID, waiting_for: WaitingFor, until: datetime | None
    ) -> None:
        """Record what the conduct waits for, and until when at most."""

    async def mark_walking(self, procedure_id: UUID, conduct_id: UUID, since: datetime | None = None) -> None:
        """Record that the conduct continues; the pause before `since` does not count."""

    async def slots(self, procedure_id: UUID, conduct_id: UUID, iteration_index: int, boundary: int) -> Sequence[FilledSlot]:
        """Return the slots filled by a pass (0: the conduct's last one) and, before the boundary, by earlier conducts."""

    async def tally(self, conduct_id: UUID, iteration_index: int, *, of_pass: bool = False) -> Tally:
        """Return what the conduct did, with the results of a pass; `of_pass` leaves out all else, at constant cost."""
