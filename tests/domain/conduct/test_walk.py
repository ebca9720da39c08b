"""The walk of a conduct: whatever is reported, it comes to an end, and closes only where its end needs that."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.conduct.ends import ENDS, FINISHES
from baton.domain.conduct.messages import (
    ConductCursor,
    ConductOutcome,
    ConductStart,
    ConductVerdict,
    Finish,
    NextStep,
    PassDecision,
    StepReport,
    lifecycle_failure,
)
from baton.domain.conduct.walk import Action, Walk
from baton.domain.procedure.procedure import ConductMode
from baton.domain.step.results import Failure, TerminationReason
from tests.support.tables import for_each

DONE, FAILED, RUN_HELD, GONE = (ConductVerdict.DONE, ConductVerdict.FAILED, ConductVerdict.RUN_HELD, ConductVerdict.GONE)
STEP = NextStep(label="set bl7:x", timeout_seconds=35)
FAILURE = Failure(step_index=1, source_kind="setpoint", target="bl7:x", error_class="ControlTimeoutError", message="no")
DENIED = lifecycle_failure("abort", "UnauthorizedError", "No.")
ENDING_VERDICTS = sorted(FINISHES)
PASS_ACTIONS = (Action.TAKE_UP_SEARCH, Action.START_PASS, Action.JUDGE_PASS, Action.RECORD_OUTCOME, Action.ASK_ADVICE)


def start(**fields: Any) -> ConductStart:
    """A conduct of three steps and two closing steps."""
    of = {"command_name": "ConductProcedure", "mode": ConductMode.FLAT, "step_count": 3, "closing_count": 2}
    steps = {"next_step": STEP, "closing_step": STEP, "loop_step": STEP}
    return ConductStart.model_validate({**of, **steps, **fields})


def report(verdict: ConductVerdict = DONE, **fields: Any) -> StepReport:
    failure = FAILURE if verdict is FAILED else None
    return StepReport(verdict=verdict, **{"failure": failure, "next_step": STEP, **fields})


def walk_on(walk: Walk, answer: Callable[[Walk], Walk], most: int = 200) -> list[Action]:
    """Walk to the end, and return what was done on the way."""
    actions: list[Action] = []
    while walk.action is not Action.NOTHING:
        actions.append(walk.action)
        assert len(actions) <= most, actions
        walk = answer(walk)
    assert walk.outcome is not None
    return actions


def all_is_well(walk: Walk) -> Walk:
    """Go on as if everything were done; a loop ends with its second pass."""
    at = walk.at
    match walk.action:
        case Action.DO_STEPS | Action.COLLECT:
            return walk.after_step(report())
        case Action.START_PASS | Action.TAKE_UP_SEARCH:
            return walk.after_pass(PassDecision(verdict=DONE, iteration_index=at.passes + 1))
        case Action.JUDGE_PASS:
            return walk.after_pass(PassDecision(verdict=DONE, converged=at.passes > 1))
        case Action.RECORD_OUTCOME:
            return walk.after_pass(PassDecision(verdict=DONE))
        case Action.ASK_ADVICE:
            return walk.after_pass(PassDecision(verdict=DONE, stop=at.passes > 1))
        case Action.AWAIT_RUN:
            return walk.after_wait(DONE)
        case Action.BEGIN_CLOSING:
            return walk.after_closing_begun(DONE)
        case _:
            return walk.after_end(DONE)


class TestTheWayOfEachKind:
    MAIN, CLOSING = [Action.DO_STEPS] * 3, [Action.BEGIN_CLOSING, Action.DO_STEPS, Action.DO_STEPS, Action.END]

    PASS = [Action.START_PASS, *MAIN, Action.JUDGE_PASS]
    SEARCH = [Action.START_PASS, *MAIN, Action.RECORD_OUTCOME, Action.ASK_ADVICE]

    @for_each(
        ("fields", "actions"),
        [
            ({}, [*MAIN, *CLOSING]),
            # That closing begins is on the record: from then on a hold does not count.
            ({"closing_count": 0}, [*MAIN, Action.BEGIN_CLOSING, Action.END]),
            ({"boundary": 2}, [Action.DO_STEPS, *CLOSING]),
            ({"boundary": 3}, CLOSING),
            ({"mode": None}, CLOSING),
            ({"mode": ConductMode.CONVERGED}, [*PASS, *PASS, *CLOSING]),
            ({"mode": ConductMode.ADVISED}, [*SEARCH, *SEARCH, *CLOSING]),
        ],
    )
    def test_lists_closing_steps_loops_and_searches(self, fields: dict[str, Any], actions: list[Action]) -> None:
        assert walk_on(Walk.begin(start(**fields)), all_is_well) == actions

    def test_a_search_that_has_measured_before_asks_first(self) -> None:
        actions = walk_on(Walk.begin(start(mode=ConductMode.ADVISED, asks_first=True)), all_is_well)
        assert actions[0] is Action.TAKE_UP_SEARCH
        assert (actions.count(Action.TAKE_UP_SEARCH), actions.count(Action.START_PASS)) == (1, 1)

    def test_a_run_collects_each_phase_and_closes_nothing(self) -> None:
        walk = Walk.go_on(start(closing_count=0, step_count=2), ConductCursor(next_step=STEP), of_run=True)
        assert walk_on(walk, all_is_well) == [Action.DO_STEPS, Action.COLLECT] * 2 + [Action.END]

    def test_a_program_is_collected_before_the_next_step(self) -> None:
        submitted = Walk.begin(start()).after_step(report(job_id="7", next_step=None))
        assert (submitted.action, submitted.job_id, submitted.at.step_index) == (Action.COLLECT, "7", 0)
        collected = submitted.after_step(report())
        assert (collected.action, collected.job_id, collected.at.step_index) == (Action.DO_STEPS, None, 1)


class TestStretches:
    def test_a_stretch_moves_the_cursor_behind_what_is_done(self) -> None:
        walk = Walk.begin(start()).after_step(report(done_count=2))
        assert (walk.action, walk.at.step_index, walk.at.next_step) == (Action.DO_STEPS, 2, STEP)
        assert walk.after_step(report(done_count=1, next_step=None)).action is Action.BEGIN_CLOSING

    @for_each("verdict", ENDING_VERDICTS)
    @for_each("done_count", [0, 1, 2])
    def test_what_ends_it_leaves_what_is_done_counted(self, verdict: ConductVerdict, done_count: int) -> None:
        walk = Walk.begin(start()).after_step(report(verdict, done_count=done_count))
        assert walk.outcome is not None
        assert (walk.outcome.finish, walk.outcome.completed_count) == (FINISHES[verdict], done_count)

    @for_each("done_count", [0, 1, 2])
    def test_a_held_run_is_waited_for_and_the_walk_goes_on_at_the_step_that_was_not_begun(self, done_count: int) -> None:
        walk = Walk.begin(start()).after_step(report(RUN_HELD, done_count=done_count))
        assert walk.action is Action.AWAIT_RUN
        resumed = walk.after_wait(DONE)
        assert (resumed.action, resumed.at.step_index, resumed.at.next_step) == (Action.DO_STEPS, done_count, STEP)

    def test_in_closing_a_failed_step_is_passed_and_an_abort_cuts_the_rest_off(self) -> None:
        closing = Walk.begin(start(boundary=3, closing_count=5)).after_closing_begun(DONE)
        walk = closing.after_step(report(FAILED, done_count=2))
        assert (walk.action, walk.at.step_index) == (Action.DO_STEPS, 2)
        cut = walk.after_step(report(ConductVerdict.ABORT, done_count=1))
        assert cut.outcome is not None
        assert (cut.action, cut.outcome.finish, cut.outcome.closing_cut_at) == (Action.END, Finish.ABORTED, 3)


@pytest.mark.parametrize("verdict", ENDING_VERDICTS)
class TestVerdicts:
    def test_a_step_that_does_not_go_on_ends_the_list(self, verdict: ConductVerdict) -> None:
        walk = Walk.begin(start()).after_step(report()).after_step(report(verdict))
        assert walk.outcome is not None
        assert (walk.outcome.finish, walk.outcome.completed_count) == (FINISHES[verdict], 1)
        assert walk.action is next_after(walk.outcome.finish)

    @pytest.mark.parametrize("mode", [ConductMode.CONVERGED, ConductMode.ADVISED])
    def test_so_does_a_pass(self, verdict: ConductVerdict, mode: ConductMode) -> None:
        walk = Walk.begin(start(mode=mode)).after_pass(PassDecision(verdict=verdict, failure=FAILURE))
        assert walk.outcome is not None
        assert walk.outcome.finish is FINISHES[verdict]
        assert walk.action is next_after(walk.outcome.finish)

    def test_so_does_what_is_heard_while_the_run_is_held(self, verdict: ConductVerdict) -> None:
        walk = Walk.begin(start()).after_step(report(RUN_HELD)).after_wait(verdict)
        assert walk.outcome is not None
        assert (walk.outcome.finish, walk.action) == (FINISHES[verdict], next_after(FINISHES[verdict]))

    def test_what_keeps_closing_from_beginning_takes_the_place_of_the_end(self, verdict: ConductVerdict) -> None:
        walk = Walk.begin(start(boundary=3)).after_closing_begun(verdict)
        assert walk.outcome is not None
        assert walk.outcome.finish is FINISHES[verdict]


def next_after(finish: Finish) -> Action:
    if finish is Finish.GONE:
        return Action.NOTHING
    return Action.BEGIN_CLOSING if ENDS[finish].closes else Action.END


class TestTheEnd:
    def test_what_is_denied_is_closed_first_and_then_ended_once_more(self) -> None:
        held = Walk.begin(start()).after_step(report(ConductVerdict.HOLD))
        denied = held.after_end(DONE, DENIED)
        assert denied.outcome is not None
        assert denied.action is Action.BEGIN_CLOSING
        assert (denied.outcome.finish, denied.outcome.failure) == (Finish.DENIED, DENIED)
        assert walk_on(denied, all_is_well) == TestTheWayOfEachKind.CLOSING

    @for_each("verdict", [ConductVerdict.ABORT, ConductVerdict.RUN_ABORTED])
    def test_an_abort_that_is_denied_is_ended_once_more(self, verdict: ConductVerdict) -> None:
        denied = Walk.begin(start()).after_step(report(verdict)).after_end(DONE, DENIED)
        assert denied.outcome is not None
        assert (denied.action, denied.outcome.finish) == (Action.END, Finish.ABORTED)

    def test_what_was_closed_is_not_closed_again(self) -> None:
        closed = Walk.begin(start(boundary=3, closing_count=0)).after_closing_begun(DONE)
        assert (closed.action, closed.closed) == (Action.END, True)
        assert closed.after_end(DONE, DENIED).action is Action.END

    def test_a_cancellation_counts_until_the_list_has_ended(self) -> None:
        walk = Walk.begin(start())
        assert walk.is_cancellable
        cancelled = walk.after_step(report()).after_cancellation()
        assert cancelled.outcome == ConductOutcome(finish=Finish.CANCELLED, completed_count=1)
        assert (cancelled.action, cancelled.is_cancellable) == (Action.END, False)

    def test_a_run_may_still_be_cancelled_before_it_is_completed(self) -> None:
        walk = Walk.go_on(start(step_count=0), ConductCursor(), of_run=True)
        assert (walk.action, walk.is_cancellable) == (Action.END, True)
        assert not walk.after_end(DONE).is_cancellable

    def test_a_run_that_is_held_before_its_end_is_waited_for(self) -> None:
        walk = Walk.go_on(start(step_count=0), ConductCursor(), of_run=True).after_end(RUN_HELD)
        assert (walk.action, walk.after_wait(DONE).action) == (Action.AWAIT_RUN, Action.END)

    def test_a_search_that_stops_says_why(self) -> None:
        walk = Walk.begin(start(mode=ConductMode.ADVISED, step_count=0))
        decision = PassDecision(verdict=DONE, stop=True, termination_reason=TerminationReason.ITERATIONS)
        assert walk.after_pass(decision).outcome == ConductOutcome(
            finish=Finish.COMPLETED, termination_reason=TerminationReason.ITERATIONS
        )


STARTS = st.builds(
    start,
    mode=st.sampled_from([None, *ConductMode]),
    command_name=st.sampled_from(["ConductProcedure", "ConductOrHoldProcedure"]),
    step_count=st.integers(0, 4),
    closing_count=st.integers(0, 3),
    boundary=st.integers(0, 4),
    asks_first=st.booleans(),
    holds_unknown=st.booleans(),
)
VERDICTS = st.sampled_from([DONE, DONE, DONE, DONE, *ConductVerdict])


def random_answer(data: st.DataObject, walk: Walk) -> Walk:
    """Go on with anything that an activity may report there."""
    verdict = data.draw(VERDICTS)
    count = walk.start.closing_count if walk.at.closing else walk.start.step_count
    match walk.action:
        case Action.DO_STEPS | Action.COLLECT:
            left = count - walk.at.step_index
            passing = verdict is DONE or (walk.at.closing and verdict is FAILED)
            job = data.draw(st.sampled_from([None, None, "7"])) if verdict is DONE else None
            lone = walk.action is Action.COLLECT or job is not None
            done = None if lone else data.draw(st.none() | st.integers(int(passing), left if passing else left - 1))
            return walk.after_step(report(verdict, job_id=job if walk.action is Action.DO_STEPS else None, done_count=done))
        case Action.AWAIT_RUN:
            return walk.after_wait(DONE if verdict is RUN_HELD else verdict)
        case Action.BEGIN_CLOSING:
            closing = (DONE, RUN_HELD, ConductVerdict.HOLD, ConductVerdict.ABORT, ConductVerdict.STOOD_DOWN, GONE)
            return walk.after_closing_begun(verdict if verdict in closing else DONE)
        case Action.END:
            return walk.after_end(DONE, data.draw(st.sampled_from([None, None, DENIED])))
        case _:
            said: dict[str, Any] = {"iteration_index": walk.at.passes + 1, "converged": data.draw(st.none() | st.booleans())}
            return walk.after_pass(PassDecision(verdict=verdict, stop=data.draw(st.booleans()), failure=FAILURE, **said))


def states(data: st.DataObject, walk: Walk, most: int = 60) -> Iterator[Walk]:
    """The walk after each report; after so many of any kind everything is well, until it is over."""
    yield walk
    for number in range(10 * most):
        if walk.action is Action.NOTHING:
            return
        walk = random_answer(data, walk) if number < most else all_is_well(walk)
        yield walk
    raise AssertionError(f"it does not end: {walk}")


@given(STARTS, st.data())
def test_whatever_is_reported_it_ends_with_an_outcome(begun: ConductStart, data: st.DataObject) -> None:
    *_, last = states(data, Walk.begin(begun))
    assert last.outcome is not None


@given(STARTS, st.data())
def test_the_cursor_stays_within_its_list_and_knows_the_step_it_is_at(begun: ConductStart, data: st.DataObject) -> None:
    walk = Walk.begin(begun.model_copy(update={"boundary": min(begun.boundary, begun.step_count)}))
    for state in states(data, walk):
        count = begun.closing_count if state.at.closing else begun.step_count
        assert 0 <= state.at.step_index <= count
        if state.action in (Action.DO_STEPS, Action.COLLECT):
            assert state.at.step_index < count
            assert state.at.next_step is not None
        if state.action is Action.COLLECT:
            assert state.job_id is not None
        if state.action in PASS_ACTIONS:
            assert begun.mode in (ConductMode.CONVERGED, ConductMode.ADVISED)


@given(STARTS, st.data())
def test_nothing_of_the_main_list_follows_once_closing_has_begun(begun: ConductStart, data: st.DataObject) -> None:
    closing = False
    for state in states(data, Walk.begin(begun)):
        assert state.at.closing or not closing
        closing = state.at.closing
        if closing:
            assert state.action in (Action.DO_STEPS, Action.COLLECT, Action.END, Action.NOTHING)


@given(STARTS, st.data())
def test_it_ends_on_the_record_unless_another_conduct_has_it(begun: ConductStart, data: st.DataObject) -> None:
    walks = list(states(data, Walk.begin(begun)))
    outcome = walks[-1].outcome
    assert outcome is not None
    if outcome.finish is not Finish.GONE:
        assert walks[-2].action is Action.END
        assert walks[-1].closed or not ENDS[outcome.finish].closes


@given(STARTS, st.data())
def test_it_goes_on_from_its_cursor_in_a_fresh_history(begun: ConductStart, data: st.DataObject) -> None:
    for state in states(data, Walk.begin(begun)):
        if state.is_between_steps:
            again = Walk.go_on(begun, state.at)
            assert (again.action, again.at) == (state.action, state.at)
            assert again.outcome == state.outcome


@given(st.integers(0, 4), st.data())
def test_a_run_ends_too_and_closes_nothing(count: int, data: st.DataObject) -> None:
    begun = start(step_count=count, closing_count=0)
    for state in states(data, Walk.go_on(begun, ConductCursor(next_step=STEP if count else None), of_run=True)):
        assert state.action is not Action.BEGIN_CLOSING
