"""The ledger of conducts: what was about to be done, and what came of it, stored before and after every effect.

Whatever the engine repeats, an effect that the ledger shows is not had twice: the rows alone decide.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from pydantic import TypeAdapter

from baton.application.ports import FoldedStanding
from baton.domain.operation.conduct.actuation import ActuationKind, merged_kind
from baton.domain.operation.conduct.messages import Mark, StepPlace, ConductVerdict
from baton.domain.operation.conduct.progress import FilledSlot, WaitingFor
from baton.domain.operation.conduct.results import Artifact, CapturedValue, Failure, Measured, SourceKind, left_at, referred
from baton.domain.operation.procedure.activity_logbook import Activity
from baton.domain.operation.procedure.procedure import PendingRequest
from baton.domain.operation.steering.steering import Point
from baton.domain.run.run import RunStatus


@dataclass(frozen=True)
class StoredRow:
    """A row of the ledger as it stands."""

    event_id: UUID
    mark: str
    attempt: int
    payload: Mapping[str, Any]
    age: float
    """Seconds since it was written, by the store's clock."""


@dataclass(frozen=True, kw_only=True)
class Precedence:
    """What the record must show before it is a step's turn, besides that closing has begun for a closing step alone."""

    first: bool
    """Whether the step is the first of its walk; before every other one stands an outcome that lets the walk go on."""
    point: Point
    """Where the open pass measures, for a step of a pass."""


@dataclass(frozen=True, kw_only=True)
class BeginRequest:
    """What a step asks for before it begins, and what it must not begin under."""

    place: StepPlace
    marker: Activity | None
    """The `in_flight` row to write if nothing stands in the way; a step without an effect writes none."""
    precedence: Precedence | None
    """None where whose turn it is has been judged already."""
    run_id: UUID | None = None
    run_blocks: frozenset[RunStatus] = frozenset()
    hold_blocks: bool = True
    longest_pause: float | None = None
    """Seconds since the conduct last did something, after which it is too late to go on."""
    once: bool = False
    """Whether it must not be done again where an earlier conduct began it."""
    again: bool = False
    """Whether it is begun although it was begun before and came to no outcome."""
    submitter: FoldedStanding | None = None
    """Who asked for the conduct, as last folded; None where the step is done whatever became of them."""

    @property
    def stood_down(self) -> bool:
        """Whether the submitter may not act any more, so that nothing begins."""
        return self.submitter is not None and self.submitter.objection is not None


@dataclass(frozen=True, kw_only=True)
class BeginResult:
    """What the record and the ledger say to a step that is to begin."""

    live: bool
    out_of_turn: bool = False
    """Whether the record does not show what comes before the step; then nothing was written."""
    asked: PendingRequest | None = None
    run: RunStatus | None = None
    late: bool = False
    begun_before: bool = False
    stood_down: bool = False
    """Whether the submitter may not act any more."""
    submitter_moved: bool = False
    """Whether the submitter's streams say more than was folded, so that nothing was marked and they are to be read."""
    rows: Sequence[StoredRow] = ()
    marked: bool = False
    """Whether the `in_flight` row was written, and the step may be done."""
    silence: float | None = None
    """Seconds since whoever does the step was last heard of; None where that is nobody."""

    @property
    def outcome(self) -> Mapping[str, Any] | None:
        """The outcome that stands, if there is one; a failed deposit counts before the outcome it follows."""
        rows = {row.mark: row.payload for row in self.rows if row.mark != Mark.IN_FLIGHT}
        deposit = rows.get(Mark.DEPOSIT)
        return deposit if deposit is not None and deposit["result"] == "failed" else rows.get(Mark.OUTCOME)

    @property
    def lone_marker(self) -> StoredRow | None:
        """The last `in_flight` row, where nothing tells what came of it and it is the step's turn."""
        if self.outcome is not None or self.out_of_turn:
            return None
        return next((row for row in reversed(self.rows) if row.mark == Mark.IN_FLIGHT), None)

    @property
    def attempt(self) -> int:
        """The number of the attempt that is under way: those begun before, and this one if it was just begun."""
        begun = max((row.attempt for row in self.rows if row.mark == Mark.IN_FLIGHT), default=0)
        return begun + 1 if self.marked else max(begun, 1)


@dataclass(frozen=True, kw_only=True)
class ClosingRequest:
    """What is to close, and what must not have come up before it begins to."""

    procedure_id: UUID
    conduct_id: UUID
    run_id: UUID | None = None
    may_hold: bool = True
    run_blocks: frozenset[RunStatus] = frozenset()


@dataclass(frozen=True)
class ConductSignals:
    """What the record says to work in progress."""

    live: bool
    asked: PendingRequest | None = None
    run: RunStatus | None = None
    stood_down: bool = False
    """Whether the submitter may not act any more."""
    submitter_moved: bool = False
    """Whether the submitter's streams say more than was folded."""

    @property
    def verdict(self) -> ConductVerdict | None:
        """What a conduct is to do between two steps, the gravest first; None where it may go on."""
        if not self.live:
            return ConductVerdict.GONE
        if self.asked is PendingRequest.ABORT:
            return ConductVerdict.ABORT
        if self.run is RunStatus.ABORTED:
            return ConductVerdict.RUN_ABORTED
        if self.asked is PendingRequest.HOLD:
            return ConductVerdict.HOLD
        if self.run not in (None, RunStatus.RUNNING, RunStatus.HELD):
            return ConductVerdict.RUN_STOPPED
        if self.stood_down:
            return ConductVerdict.STOOD_DOWN
        return ConductVerdict.RUN_HELD if self.run is RunStatus.HELD else None


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What the ledger holds of a conduct, for its result."""

    measurements: tuple[Measured, ...]
    artifacts: tuple[Artifact, ...]
    outputs: Mapping[str, Artifact]
    substrate_writes: Mapping[str, Any]
    actuation_kind: ActuationKind | None
    closing_failures: tuple[Failure, ...]
    completed_count: int
    """Steps of the given pass, or of the list, that were done."""
    failure: Failure | None
    """The step of it that failed."""
    captures: Mapping[str, CapturedValue]
    closed_count: int
    """Closing steps that came to an outcome."""


OutcomeRow = tuple[UUID, SourceKind, bool, int, str, datetime, Mapping[str, Any]]
"""An outcome or a deposit: its row, the kind of its step, whether it closes, its index, its mark, when, and what it says."""
MEASURED: TypeAdapter[tuple[Measured, ...]] = TypeAdapter(tuple[Measured, ...])


AddressWrites = tuple[str, Sequence[tuple[Any, UUID]], Sequence[tuple[Any, UUID]]]
"""An address, the value it took last with its row (or none), and what was sent since and may have come, with the rows."""


def tally_rows(brought: Sequence[OutcomeRow], written: Sequence[AddressWrites], kinds: Sequence[str]) -> Tally:
    """What these rows come to: those of the last pass and of closing, what was written, and what was worked on."""
    main = [(id, payload) for id, _, closing, _, mark, _, payload in brought if not closing and mark == Mark.OUTCOME]
    failures = {closing: tuple(failures_in(brought, closing=closing)) for closing in (False, True)}
    done = {index for _, _, closing, index, _, _, payload in brought if not closing and payload["result"] == "ok"}
    return Tally(
        measurements=tuple(
            item.model_copy(update={"value": referred(item.value, id)})
            for id, payload in main
            for item in MEASURED.validate_python(payload.get("measurements", ()))
        ),
        artifacts=tuple(Artifact(**item) for _, payload in main for item in payload.get("artifacts", ())),
        outputs={
            payload["output_ref_name"]: Artifact(**payload["artifact"])
            for _, _, closing, _, mark, _, payload in brought
            if mark == Mark.DEPOSIT and not closing and "artifact" in payload
        },
        substrate_writes={
            address: left_at(*([referred(value, id) for value, id in values] for values in (confirmed, tried)))
            for address, confirmed, tried in written
        },
        actuation_kind=merged_kind(map(ActuationKind, kinds)),
        closing_failures=failures[True],
        completed_count=len(done - {failure.step_index for failure in failures[False]}),
        failure=failures[False][-1] if failures[False] else None,
        captures=captures_in(brought),
        closed_count=sum(closing and mark == Mark.OUTCOME for _, _, closing, _, mark, *_ in brought),
    )


def captures_in(brought: Sequence[OutcomeRow]) -> dict[str, CapturedValue]:
    """What the main list captured; the unit of what a program measured stands with its measurement."""
    units = {
        (index, item["name"]): item.get("units")
        for _, _, closing, index, _, _, payload in brought
        for item in (() if closing else payload.get("measurements", ()))
    }
    return {
        name: CapturedValue(
            value=payload["captured_value"],
            unit=payload.get("reading", {}).get("units") or units.get((index, name)),
            time=payload.get("reading", {}).get("sampled_at") or at,
        )
        for _, _, closing, index, _, at, payload in brought
        if not closing and "captured_value" in payload and (name := payload["capture_name"])
    }


def failures_in(brought: Sequence[OutcomeRow], *, closing: bool) -> Iterator[Failure]:
    """What failed of one of the two lists."""
    for _, kind, closes, index, _, _, payload in brought:
        if closes is closing and payload["result"] == "failed":
            yield Failure(
                step_index=index,
                source_kind=kind,
                target=payload["target"],
                error_class=payload["error_class"],
                message=payload["message"],
            )


class Ledger(Protocol):
    """Rows are only ever added; of two rows for the same mark at the same place the first one stands."""

    async def begin(self, crossing: BeginRequest) -> BeginResult:
        """Mark a step as begun unless something stands in its way; both in one transaction."""
        ...

    async def has_passed(self, place: StepPlace) -> bool:
        """Whether the step has an outcome that lets the walk go on: a closing step any, another one that did not fail."""
        ...

    async def settle(self, row: Activity) -> Mapping[str, Any]:
        """Store what came of a step, and answer what stands: this, or what was stored before."""
        ...

    async def beat(
        self, place: StepPlace, effect_id: UUID | None, run_id: UUID | None, submitter: FoldedStanding | None = None
    ) -> ConductSignals:
        """Let it be known that work goes on, and hear what the record says to it and, if asked, to its submitter."""
        ...

    async def begin_closing(self, closing: ClosingRequest) -> ConductSignals:
        """Mark that closing begins, unless an abort or, where it still counts, a hold was asked for before, or the run
        blocks it; answers what kept it from beginning."""
        ...

    async def wait(self, procedure_id: UUID, conduct_id: UUID, waiting_for: WaitingFor, until: datetime | None) -> None:
        """Say what the conduct waits for, and until when it does at the most."""
        ...

    async def go_on(self, procedure_id: UUID, conduct_id: UUID, since: datetime | None = None) -> None:
        """Say that the conduct goes on, and `since` when it might have: the pause before does not count."""
        ...

    async def slots(self, procedure_id: UUID, conduct_id: UUID, iteration_index: int, boundary: int) -> Sequence[FilledSlot]:
        """The slots that a step finds filled: by its own pass and, before the boundary, by earlier conducts.

        Outside every pass (0) a step finds what the last pass of its conduct has left.
        """
        ...

    async def tally(self, conduct_id: UUID, iteration_index: int, *, of_pass: bool = False) -> Tally:
        """What the conduct brought; measurements and artifacts are those of the given pass.

        `of_pass` leaves out everything else, so that it costs as much however many passes there were.
        """
        ...
