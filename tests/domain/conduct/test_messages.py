"""How a conduct walks: the ids of its ledger rows, what it calls its steps, and what may follow in one activity."""

import itertools
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from baton.domain.conduct.endings import AbortProcedure, HoldProcedure
from baton.domain.conduct.messages import (
    MAX_REASON_LENGTH,
    MAX_STRETCH,
    ConductCursor,
    ConductOrder,
    ConductOutcome,
    ConductStart,
    ConductVerdict,
    Finish,
    Mark,
    NextStep,
    PassDecision,
    StepPlace,
    StepReport,
    describe_step,
    describe_steps,
    is_quick,
    lifecycle_failure,
    reason_of,
    step_failure,
    target_of,
)
from baton.domain.conduct.walk import Walk
from baton.domain.procedure.procedure import ConductMode
from baton.domain.recipe.steps import RecipeComputeStep, RecipeStep
from baton.domain.step.results import Failure
from tests.support.domain.world import new_id
from tests.support.tables import for_each
from tests.support.workflows.step_json import action, capture, captured_value, check, compute, setpoint

STEP: TypeAdapter[Any] = TypeAdapter(RecipeStep)
CONDUCT = UUID("0197a100-0000-7000-8000-0000000000c0")
PROCEDURE = UUID("0197a100-0000-7000-8000-0000000000f0")
SOURCES = ["setpoint", "action", "check", "capture", "compute", "lifecycle", "decide"]


def next_step(label: str, seconds: float, wait: float | None = None) -> NextStep:
    return NextStep(label=label, timeout_seconds=seconds, wait_seconds=wait)


RBV, PROGRAM = "bl7:energy:rbv", compute("find-offset", "--fast", capture_name="offset")
STEPS: dict[str, tuple[Any, str, NextStep]] = {
    "setpoint": (setpoint("bl7:energy", 25.0), "bl7:energy", next_step("set bl7:energy", 35)),
    "setpoint by slot": (setpoint("bl7:x", captured_value("home")), "bl7:x", next_step("set bl7:x", 35)),
    "action": (action("collect", repetitions=2), "collect", next_step("do collect", 3600)),
    "check": (check(RBV, 25, 0.01), RBV, next_step(f"check {RBV}", 5)),
    "check that waits": (check(RBV, 25, 0.01, timeout=60.0), RBV, next_step(f"check {RBV}", 65, 60)),
    "capture": (capture("bl7:x.RBV", "home"), "bl7:x.RBV", next_step("capture home from bl7:x.RBV", 5)),
    "compute": (PROGRAM, "find-offset --fast", next_step("compute find-offset", 1800)),
}


@for_each("how", STEPS)
def test_a_step_is_called_by_what_it_does_and_takes_as_long_as_it_says(how: str) -> None:
    raw, target, described = STEPS[how]
    step = STEP.validate_python(raw)
    assert target_of(step) == target
    assert describe_step(step, action_timeout=3600, compute_timeout=1800) == described


QUICK = ("setpoint", "setpoint by slot", "check", "capture")


@for_each("how", STEPS)
def test_a_step_is_quick_unless_it_may_wait_act_or_compute(how: str) -> None:
    assert is_quick(STEP.validate_python(STEPS[how][0])) is (how in QUICK)


def test_a_setpoint_that_waits_for_its_readback_is_not_quick() -> None:
    verify = {"tolerance": 0.1, "timeout": 20.0}
    assert not is_quick(STEP.validate_python({**setpoint("bl7:x", 1), "verify": verify}))


@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=8), st.integers(0, 9))
def test_a_stretch_is_as_long_as_the_steps_from_there_on_are_quick(names: list[str], index: int) -> None:
    described = describe_steps([STEP.validate_python(STEPS[name][0]) for name in names], index, 3600, 1800)
    if index >= len(names):
        assert described is None
        return
    assert described is not None
    behind = [position for position, name in enumerate(names) if position >= index and name not in QUICK]
    count = (behind[0] if behind else len(names)) - index
    alone = STEPS[names[index]][2]
    assert (described.stretch_count, described.label) == (max(count, 1), alone.label)
    assert described.timeout_seconds == (count * 35 if count > 1 else alone.timeout_seconds)
    assert described.wait_seconds == alone.wait_seconds


def test_a_stretch_has_its_bound() -> None:
    steps = [STEP.validate_python(setpoint("bl7:x", value)) for value in range(MAX_STRETCH + 5)]
    counts = [step.stretch_count for index in (0, 4, 5, 6) if (step := describe_steps(steps, index, 1, 1)) is not None]
    assert counts == [200, 200, 200, 199]


PLACES = st.builds(
    StepPlace,
    procedure_id=st.just(PROCEDURE),
    conduct_id=st.sampled_from([CONDUCT, new_id()]),
    iteration_index=st.integers(0, 12),
    closing=st.booleans(),
    step_index=st.integers(0, 12),
)
ROWS = st.tuples(PLACES, st.sampled_from(Mark), st.integers(1, 12))


@given(ROWS, ROWS)
def test_two_rows_share_an_id_exactly_when_they_are_the_same_row(
    one: tuple[StepPlace, Mark, int], other: tuple[StepPlace, Mark, int]
) -> None:
    ids = [place.row_id(mark, attempt) for place, mark, attempt in (one, other)]
    assert (ids[0] == ids[1]) == (one == other)


def test_no_two_rows_of_a_walk_share_an_id() -> None:
    """Neighbours that a sloppy form of the name would confuse: 1 and 11, pass and step, main and closing."""
    numbers, sides = (0, 1, 2, 10, 11, 12, 100, 111, 112), (False, True)
    ids = [
        StepPlace(
            procedure_id=PROCEDURE, conduct_id=CONDUCT, iteration_index=index, closing=closing, step_index=step
        ).row_id(mark, attempt)
        for index, closing, step, mark, attempt in itertools.product(numbers, sides, numbers, Mark, (1, 2, 11))
    ]
    assert len(set(ids)) == len(ids)


def test_a_row_keeps_its_id_from_release_to_release() -> None:
    """Conducts outlive upgrades: what an older worker wrote must be found again."""
    first = StepPlace(procedure_id=PROCEDURE, conduct_id=CONDUCT, step_index=3)
    last = StepPlace(procedure_id=PROCEDURE, conduct_id=CONDUCT, iteration_index=7, closing=True, step_index=0)
    assert first.row_id(Mark.IN_FLIGHT, 1) == UUID("f12f65c9-b8b2-5c9c-9c14-b8e0a35ff5ef")
    assert last.row_id(Mark.DEPOSIT, 2) == UUID("0bd35abb-31d4-5e62-888c-5081fb2e2613")


def test_a_row_is_the_conducts_whatever_the_procedure() -> None:
    one, other = (StepPlace(procedure_id=id, conduct_id=CONDUCT, step_index=0) for id in (PROCEDURE, new_id()))
    assert one.row_id(Mark.OUTCOME, 1) == other.row_id(Mark.OUTCOME, 1)


def failure_of(source: str, error_class: str = "ControlTimeoutError") -> Failure:
    return Failure.model_validate(
        {"step_index": 1, "source_kind": source, "target": "bl7:x", "error_class": error_class, "message": "no answer"}
    )


def test_a_program_is_named_by_the_beginning_of_its_command_line() -> None:
    step = RecipeComputeStep(kind="compute", command=("python", "-c", "x" * 40_000))
    assert len(target_of(step)) == len(step_failure(step, 0, "Broken", "no").target) == 200


@for_each("how", STEPS)
def test_the_failure_of_a_step_names_its_kind_its_place_and_its_target(how: str) -> None:
    raw, target, _ = STEPS[how]
    failure = step_failure(STEP.validate_python(raw), 4, "CheckFailedError", "reads 3")
    assert (failure.source_kind, failure.step_index, failure.target) == (raw["kind"], 4, target)
    assert reason_of(failure) == f"{raw['kind']}[4] {target} failed: CheckFailedError: reads 3"


def test_a_failure_of_no_step_has_no_place() -> None:
    failure = lifecycle_failure("complete", "ConcurrencyError", "somebody else was first")
    assert (failure.source_kind, failure.step_index) == ("lifecycle", None)
    assert reason_of(failure) == "lifecycle complete failed: ConcurrencyError: somebody else was first"


@for_each(("length", "kept"), [(499, 499), (500, 500), (501, 500), (9000, 500)])
def test_a_reason_is_cut_where_it_becomes_too_long_to_keep(length: int, kept: int) -> None:
    prefix = "setpoint[1] bl7:x failed: ControlTimeoutError: "
    whole = prefix + "".join(str(number % 10) for number in range(length - len(prefix)))
    failure = failure_of("setpoint").model_copy(update={"message": whole.removeprefix(prefix)})
    assert reason_of(failure) == whole[:kept]


FAILURES = st.builds(
    Failure,
    step_index=st.none() | st.integers(0, 9999),
    source_kind=st.sampled_from(SOURCES),
    target=st.text(max_size=60),
    error_class=st.sampled_from(["ControlTimeoutError", "ActionOutcomeUnknown"]),
    message=st.builds(lambda words, times: words * times, st.text(max_size=60), st.sampled_from([1, 1, 30])),
)


@given(FAILURES)
def test_every_failure_is_a_reason_to_hold_or_to_abort(failure: Failure) -> None:
    reason = reason_of(failure)
    whole = f"{failure.target} failed: {failure.error_class}: {failure.message}"
    assert len(reason) <= MAX_REASON_LENGTH == 500
    assert whole in reason or len(reason) == MAX_REASON_LENGTH
    assert reason.startswith(failure.source_kind)
    for command in (HoldProcedure, AbortProcedure):
        assert command(reason=reason).reason == reason.strip()


ORDER = {
    "procedure_id": str(PROCEDURE),
    "conduct_id": str(CONDUCT),
    "principal_id": str(new_id()),
    "surface_id": str(new_id()),
    "conduit_id": str(new_id()),
    "correlation_id": str(new_id()),
}


@for_each(
    ("message", "raw", "expected"),
    [
        (StepReport, {"verdict": "done"}, StepReport(verdict=ConductVerdict.DONE)),
        (PassDecision, {"verdict": "hold"}, PassDecision(verdict=ConductVerdict.HOLD)),
        (ConductOutcome, {"finish": "completed"}, ConductOutcome(finish=Finish.COMPLETED)),
        (ConductCursor, {}, ConductCursor()),
        (StepPlace, {"procedure_id": str(PROCEDURE), "conduct_id": str(CONDUCT), "step_index": 0}, None),
        (ConductStart, {"command_name": "ConductProcedure", "mode": "Flat", "step_count": 3, "closing_count": 1}, None),
        (ConductStart, {"command_name": "AbortProcedure", "mode": None, "step_count": 0, "closing_count": 1}, None),
        (ConductOrder, ORDER, None),
    ],
)
def test_the_least_that_a_message_holds_is_still_understood(message: type[Any], raw: dict[str, Any], expected: Any) -> None:
    """Histories of running conducts hold these messages as older releases wrote them."""
    understood = message.model_validate(raw)
    assert expected is None or understood == expected
    assert message.model_validate_json(understood.model_dump_json()) == understood


@for_each(
    ("said", "understood"),
    [
        ("opened", ConductVerdict.DONE),
        ("completed", ConductVerdict.DONE),
        ("run_resumed", ConductVerdict.DONE),
        ("run_ended", ConductVerdict.RUN_STOPPED),
    ],
)
def test_what_earlier_builds_said_about_phases_is_understood(said: str, understood: ConductVerdict) -> None:
    assert StepReport.model_validate({"verdict": said}).verdict is understood


def test_what_earlier_builds_said_about_ends_is_understood() -> None:
    assert ConductOutcome.model_validate({"finish": "ended"}).finish is Finish.STOPPED
    assert ConductOutcome.model_validate({"finish": "failed", "denied": True}).finish is Finish.FAILED
    decision = PassDecision.model_validate({"verdict": "failed", "stood_down": True, "denied": False})
    start = ConductStart(command_name="ConductUntilConverged", mode=ConductMode.CONVERGED, step_count=1, closing_count=0)
    outcome = Walk.begin(start).after_pass(decision).outcome
    assert outcome is not None
    assert outcome.finish is Finish.STOOD_DOWN


@given(
    st.builds(
        ConductCursor,
        closing=st.booleans(),
        iteration_index=st.integers(0, 10_000),
        step_index=st.integers(0, 10_000),
        next_step=st.none() | st.sampled_from([described for _, _, described in STEPS.values()]),
        passes=st.integers(0, 10_000),
        point=st.none() | st.dictionaries(st.sampled_from("xyz"), st.floats(-9, 9) | st.text(max_size=9)),
        outcome=st.none() | st.builds(ConductOutcome, finish=st.sampled_from(Finish), failure=st.none() | FAILURES),
    )
)
def test_a_conduct_goes_on_in_a_fresh_history_where_it_stood(cursor: ConductCursor) -> None:
    briefing = ConductStart(command_name="ConductUntilAdvised", mode=ConductMode.ADVISED, step_count=3, closing_count=1)
    order = ConductOrder.model_validate({**ORDER, "briefing": briefing, "cursor": cursor})
    assert ConductOrder.model_validate_json(order.model_dump_json()) == order
