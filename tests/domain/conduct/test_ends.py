"""How conducts end: where every verdict leads, what is closed, and who writes it."""

from typing import Any

from baton.domain.conduct.ends import (
    ENDS,
    FINISHES,
    UNKNOWN_OUTCOMES,
    EndEffect,
    failure_of_end,
    finish_after,
    finish_denied,
)
from baton.domain.conduct.messages import UNEXPECTED_FAILURE, ConductOutcome, ConductVerdict, Finish
from baton.domain.procedure.procedure import MODES, HoldCause
from baton.domain.step.results import Failure
from tests.support.tables import for_each

COMMANDS = [*MODES, "AbortProcedure"]
"""What opens conducts; the last one opens those of closing steps alone."""
SOURCES = ["setpoint", "action", "check", "capture", "compute", "lifecycle", "decide"]
FAILED = ConductVerdict.FAILED
CLOSING = {Finish.COMPLETED, Finish.FAILED, Finish.STOPPED, Finish.DENIED}
"""The ends at which the closing steps are walked."""
LEADS = {
    EndEffect.COMPLETE: {Finish.COMPLETED},
    EndEffect.HOLD: {Finish.FAULTED, Finish.UNKNOWN, Finish.HELD, Finish.GATE_CLOSED, Finish.STOOD_DOWN},
    EndEffect.ABORT: {Finish.FAILED, Finish.ABORTED, Finish.STOPPED, Finish.DENIED, Finish.CANCELLED},
    EndEffect.STAY: {Finish.HALTED},
    EndEffect.NOTHING: {Finish.GONE},
}
CAUSES = {
    Finish.FAULTED: HoldCause.STEP_FAULT,
    Finish.UNKNOWN: HoldCause.OUTCOME_UNKNOWN,
    Finish.HELD: HoldCause.OPERATOR,
    Finish.GATE_CLOSED: HoldCause.GATE_CLOSED,
    Finish.STOOD_DOWN: HoldCause.SUBMITTER_STOOD_DOWN,
}


def failure_of(source: str, error_class: str = "ControlTimeoutError", message: str = "no answer") -> Failure:
    return Failure.model_validate(
        {"step_index": 1, "source_kind": source, "target": "bl7:x", "error_class": error_class, "message": message}
    )


def after_failure(command: str, failure: Failure | None, *, holds_unknown: bool = False) -> Finish:
    return finish_after(FAILED, failure, command, holds_unknown=holds_unknown)


class TestTheTable:
    def test_it_knows_every_end(self) -> None:
        assert set(ENDS) == set(Finish)
        assert {leads: {finish for finish, end in ENDS.items() if end.leads_to is leads} for leads in EndEffect} == LEADS

    @for_each("finish", Finish)
    def test_closing_steps_are_walked_at_a_real_end_only(self, finish: Finish) -> None:
        assert ENDS[finish].closes is (finish in CLOSING)

    @for_each("finish", Finish)
    def test_what_holds_has_a_cause_and_nothing_else_has(self, finish: Finish) -> None:
        assert ENDS[finish].cause is CAUSES.get(finish)
        assert (ENDS[finish].leads_to is EndEffect.HOLD) is (finish in CAUSES)

    @for_each("finish", Finish)
    def test_the_service_writes_what_its_submitter_may_not_or_did_not_ask_for(self, finish: Finish) -> None:
        own = (Finish.GATE_CLOSED, Finish.STOOD_DOWN, Finish.DENIED, Finish.HALTED)
        assert ENDS[finish].by_service is (finish in own)

    @for_each("finish", Finish)
    def test_a_result_says_why_it_ended_otherwise_than_completed(self, finish: Finish) -> None:
        """What failed comes first; ends that come of a failure alone have no words of their own."""
        by_failure = (Finish.FAILED, Finish.FAULTED, Finish.UNKNOWN, Finish.GATE_CLOSED, Finish.STOOD_DOWN, Finish.DENIED)
        failure = failure_of("setpoint")
        assert failure_of_end(ConductOutcome(finish=finish, failure=failure)) == failure
        wordless = finish in (Finish.COMPLETED, Finish.GONE, *by_failure)
        assert (failure_of_end(ConductOutcome(finish=finish)) is None) is wordless


class TestVerdicts:
    def test_a_verdict_leads_to_its_end_unless_the_walk_goes_on(self) -> None:
        assert FINISHES == {
            ConductVerdict.FAILED: Finish.FAILED,
            ConductVerdict.HOLD: Finish.HELD,
            ConductVerdict.ABORT: Finish.ABORTED,
            ConductVerdict.RUN_ABORTED: Finish.ABORTED,
            ConductVerdict.RUN_STOPPED: Finish.STOPPED,
            ConductVerdict.HALT: Finish.HALTED,
            ConductVerdict.GATE_CLOSED: Finish.GATE_CLOSED,
            ConductVerdict.STOOD_DOWN: Finish.STOOD_DOWN,
            ConductVerdict.DENIED: Finish.DENIED,
            ConductVerdict.GONE: Finish.GONE,
        }
        assert set(ConductVerdict) - set(FINISHES) == {ConductVerdict.DONE, ConductVerdict.RUN_HELD}

    @for_each("verdict", [verdict for verdict in FINISHES if verdict is not FAILED])
    @for_each("command", COMMANDS)
    def test_only_a_failed_step_asks_how_it_was_conducted(self, command: str, verdict: ConductVerdict) -> None:
        failure = failure_of("setpoint", UNKNOWN_OUTCOMES[0])
        assert finish_after(verdict, failure, command, holds_unknown=True) is FINISHES[verdict]


class TestFailedSteps:
    @for_each("command", COMMANDS)
    @for_each("source", SOURCES)
    @for_each("error_class", ["ControlTimeoutError", "StepInterrupted"])
    def test_only_conduct_or_hold_holds_and_only_where_nothing_else_was_touched(
        self, command: str, source: str, error_class: str
    ) -> None:
        recoverable = source in ("setpoint", "check") or error_class == "StepInterrupted"
        held = command == "ConductOrHoldProcedure" and recoverable
        assert after_failure(command, failure_of(source, error_class)) is (Finish.FAULTED if held else Finish.FAILED)

    @for_each("command", COMMANDS)
    def test_without_a_failure_nothing_holds(self, command: str) -> None:
        assert after_failure(command, None, holds_unknown=True) is Finish.FAILED

    @for_each("holds_unknown", [False, True])
    def test_a_failure_that_nobody_foresaw_holds_nothing(self, holds_unknown: bool) -> None:
        failure = failure_of("setpoint", message=UNEXPECTED_FAILURE)
        assert after_failure("ConductOrHoldProcedure", failure, holds_unknown=holds_unknown) is Finish.FAILED

    @for_each("command", COMMANDS)
    @for_each(("source", "error_class"), [("action", "ActionOutcomeUnknown"), ("compute", "ComputeOutcomeUnknown")])
    @for_each("holds_unknown", [False, True])
    def test_an_outcome_that_is_not_known_is_a_persons_to_say_where_that_was_chosen(
        self, command: str, source: str, error_class: str, holds_unknown: bool
    ) -> None:
        finish = after_failure(command, failure_of(source, error_class), holds_unknown=holds_unknown)
        assert finish is (Finish.UNKNOWN if holds_unknown else Finish.FAILED)

    @for_each("source", SOURCES)
    def test_what_is_known_to_have_failed_is_not_asked_about(self, source: str) -> None:
        assert after_failure("ConductProcedure", failure_of(source), holds_unknown=True) is Finish.FAILED


@for_each("finish", Finish)
def test_what_its_submitter_may_not_end_is_closed_unless_it_was_aborted_or_cancelled(finish: Finish) -> None:
    denied: Any = finish_denied(finish)
    kept = finish in (Finish.ABORTED, Finish.CANCELLED)
    assert denied is (finish if kept else Finish.DENIED)
    assert ENDS[denied].closes is not kept
