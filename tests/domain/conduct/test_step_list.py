"""The steps of a procedure with what was done about each: across conducts, passes and closing steps."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from baton.domain.conduct.ledger import LedgerPart, ListPlace, StepRow
from baton.domain.conduct.messages import Mark
from baton.domain.conduct.step_list import StepBook, StepState, facts_in, stretches
from baton.domain.procedure.procedure import ProcedureResumed, ProcedureStarted

AT = datetime(2026, 3, 4, 9, tzinfo=UTC)
PROCEDURE, FIRST, SECOND = uuid4(), uuid4(), uuid4()
MAIN, CLOSING = ListPlace(0, False, 0, 60), ListPlace(0, True, 0, 60)
STARTED = ProcedureStarted(conduct_id=FIRST, command_name="ConductOrHoldProcedure").stamp(PROCEDURE, AT)


def resumption(boundary: int, skipped_count: int = 0) -> ProcedureResumed:
    event = ProcedureResumed(
        re_establishment_boundary=boundary,
        conduct_id=SECOND,
        command_name="ConductFromProcedure",
        decided_by_decision_id=None,
        skipped_count=skipped_count,
    )
    return event.stamp(PROCEDURE, AT)


def row(conduct_id: UUID, index: int, mark: Mark = Mark.OUTCOME, result: str = "ok", **said: Any) -> StepRow:
    return StepRow(conduct_id, index, mark.value, 1, uuid4(), AT, {"result": result, **said})


def letters_of(book: StepBook, count: int, skipped: Sequence[int] = ()) -> str:
    """Draw every step of a list as the first letter of its state."""
    return "".join(state.value[0] for state in book.states(count, set(skipped)))


def test_what_lies_before_the_current_step_is_done_and_what_lies_behind_it_is_ahead() -> None:
    ledger = LedgerPart([row(FIRST, 3), row(FIRST, 4, Mark.IN_FLIGHT, "in_flight")], {FIRST: 4}, ())
    book = StepBook.of([STARTED], MAIN, ledger, current=4)
    assert letters_of(book, 8) == "ddddraaa"
    assert [(one.state, one.first_index, one.count) for one in stretches(book.states(8, set()))] == [
        (StepState.DONE, 0, 4),
        (StepState.RUNNING, 4, 1),
        (StepState.AHEAD, 5, 3),
    ]


def test_a_step_that_failed_is_done_again_by_the_conduct_that_takes_the_procedure_up() -> None:
    failed = row(FIRST, 4, result="failed", error_class="CheckFailedError", message="It is not there.")
    held = StepBook.of([STARTED], MAIN, LedgerPart([failed], {FIRST: 4}, ()), None)
    assert letters_of(held, 8) == "ddddfaaa"
    assert facts_in(held.rows_of(4))["message"] == "It is not there."
    opened = StepBook.of([STARTED, resumption(2)], MAIN, LedgerPart([failed], {FIRST: 4}, ()), None)
    assert letters_of(opened, 8) == "ddaaaaaa", "it goes on at step 2, and nothing of it is done yet"
    walking = StepBook.of([STARTED, resumption(2)], MAIN, LedgerPart([failed, row(SECOND, 4)], {FIRST: 4, SECOND: 4}, ()), 5)
    assert letters_of(walking, 8) == "dddddraa"


def test_steps_that_a_person_left_out_and_waits_that_a_person_ended_are_skipped() -> None:
    ledger = LedgerPart([row(SECOND, 4, result="skipped"), row(SECOND, 6)], {FIRST: 3, SECOND: 6}, ())
    book = StepBook.of([STARTED, resumption(6, skipped_count=2)], MAIN, ledger, None)
    assert letters_of(book, 8, skipped=[1]) == "dsddssda"
    assert book.state(4) is StepState.SKIPPED


def test_a_step_of_which_nobody_knows_is_unknown_until_a_person_speaks_for_it() -> None:
    lost = row(FIRST, 1, result="failed", error_class="ActionOutcomeUnknown")
    for said, state in (((), "u"), ("done", "d"), ("not_done", "a")):
        rows = [lost, *([row(FIRST, 1, Mark.VERDICT, said)] if isinstance(said, str) else ())]
        assert letters_of(StepBook.of([STARTED], MAIN, LedgerPart(rows, {FIRST: 1}, ()), None), 3) == f"d{state}a"
    begun = LedgerPart([row(FIRST, 1, Mark.IN_FLIGHT, "in_flight")], {FIRST: 1}, ())
    assert letters_of(StepBook.of([STARTED], MAIN, begun, None), 3) == "dua"


def test_closing_steps_go_on_behind_one_that_failed() -> None:
    ledger = LedgerPart([row(FIRST, 2)], {FIRST: 2}, (0,))
    assert letters_of(StepBook.of([STARTED], CLOSING, ledger, None), 4) == "fdda"


def test_what_a_step_read_and_captured_is_shown_with_its_unit() -> None:
    read = {"value": 3.5, "units": "mm"}
    found = facts_in([row(FIRST, 0, reading=read, capture_name="offset", captured_value=3.5, seconds=0.2)])
    shown = {name: found[name] for name in ("reading", "unit", "capture_name", "captured_value", "seconds", "attempt_count")}
    assert shown == {
        "reading": 3.5,
        "unit": "mm",
        "capture_name": "offset",
        "captured_value": 3.5,
        "seconds": 0.2,
        "attempt_count": 0,
    }
