"""Conducts as they wrote: of any form, as far as they came, every row and event in the order in which it was written."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from baton.domain.conduct.frames import LedgerPosition, LedgerRow, Outline, StreamRow
from baton.domain.conduct.messages import Mark
from baton.domain.procedure.procedure import ProcedureConducted, ProcedureIterationEnded, ProcedureIterationStarted
from baton.domain.step.results import ConductResult
from tests.support.domain.world import new_id

AT = datetime(2026, 3, 4, 9, tzinfo=UTC)
PROCEDURE, CONDUCT = new_id(), new_id()
OPENED = 5


@dataclass(frozen=True)
class WrittenConduct:
    """The form of a conduct, and everything it wrote, in the order in which it did."""

    outline: Outline
    written: tuple[LedgerRow | StreamRow, ...]

    def read(self, behind: int, version: int, limit: int, upto: int | None = None) -> tuple[list[Any], list[Any]]:
        """Return what the store has after a place, of the first `upto` rows and events."""
        there = self.written[:upto]
        spot = self.outline.position(behind)
        rows = sorted((one for one in there if isinstance(one, LedgerRow) and one.position >= spot), key=place_of)
        events = [one for one in there if isinstance(one, StreamRow) and one.version > version]
        return rows[:limit], events[:limit]


def place_of(row: LedgerRow) -> tuple[LedgerPosition, int]:
    return row.position, list(Mark).index(row.mark)


def row(spot: LedgerPosition, mark: Mark, result: str) -> LedgerRow:
    return LedgerRow(spot.iteration_index, spot.closing, spot.step_index, mark, "setpoint", result, "a", AT)


def stamp_event(event: Any) -> Any:
    return event.stamp(PROCEDURE, AT)


@st.composite
def conducts(draw: st.DrawFn) -> WrittenConduct:
    """A conduct of any form that came as far as it did: through some passes, into closing, to its end or not."""
    loops = draw(st.booleans())
    outline = Outline(
        procedure_id=PROCEDURE,
        conduct_id=CONDUCT,
        command_name="ConductUntilConverged" if loops else "ConductProcedure",
        step_count=draw(st.integers(0 if not loops else 1, 4)),
        closing_count=draw(st.integers(0, 3)),
        opened_version=OPENED,
    )
    written: list[LedgerRow | StreamRow] = []
    version = OPENED

    def walk(closing: bool, iteration: int, begin: int, count: int) -> Iterator[LedgerRow]:
        for index in range(begin, count):
            spot = LedgerPosition(closing, iteration, index)
            if draw(st.booleans()):
                yield row(spot, Mark.IN_FLIGHT, "in_flight")
            yield row(spot, Mark.OUTCOME, "ok")
            if deposit := draw(st.sampled_from(["", "ok", "failed"])):
                yield row(spot, Mark.DEPOSIT, deposit)

    if loops:
        first = draw(st.integers(1, 9_990))
        for index in range(first, first + draw(st.integers(0, 4))):
            version += draw(st.integers(1, 3))
            written.append(StreamRow(version, stamp_event(ProcedureIterationStarted(iteration_index=index))))
            written += walk(False, index, 0, outline.step_count)
            version += draw(st.integers(1, 3))
            ended = ProcedureIterationEnded(iteration_index=index, converged=False, reason=None)
            written.append(StreamRow(version, stamp_event(ended)))
    else:
        written += walk(False, 0, draw(st.integers(0, outline.step_count)), outline.step_count)
    written += walk(True, 0, 0, outline.closing_count)
    result = ConductResult(procedure_id=PROCEDURE, conduct_id=CONDUCT, command_name=outline.command_name, succeeded=True)
    written.append(StreamRow(version + 1, stamp_event(ProcedureConducted(conduct_id=CONDUCT, result=result))))
    return WrittenConduct(outline, tuple(written[: draw(st.integers(0, len(written)))]))
