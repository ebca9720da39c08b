"""How an end gets on the record: what is done next about every way to end, and what a refusal of that leads to.

A row of a table reads: how the walk ended, what the record says besides, and what follows.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from baton.domain.conduct import ends
from baton.domain.conduct.end_decision import EndCommand, Ending, EndRecord, after_refusal, decide_end
from baton.domain.conduct.ends import ENDS, EndEffect
from baton.domain.conduct.messages import (
    ConductOutcome,
    ConductVerdict,
    Finish,
    interruption,
    lifecycle_failure,
    reason_of,
    step_failure,
    submitter_stood_down,
)
from baton.domain.procedure.procedure import (
    ConductMode,
    HoldCause,
    PendingRequest,
    Procedure,
    ProcedureAborted,
    ProcedureAbortRequested,
    ProcedureHoldRequested,
    ProcedureIterationEnded,
    ProcedureRegistered,
)
from baton.domain.recipe.steps import RecipeSetpointStep
from baton.domain.run.run import LIVE, RunStatus
from baton.domain.shared.refusals import ConcurrencyError, Conflict, Refusal, UnauthorizedError
from baton.domain.step.results import Failure, TerminationReason
from tests.support.domain.world import OPERATOR, START, new_id
from tests.support.tables import for_each

Followup = tuple[Any, ...] | ConductVerdict | None
COMPLETE, HOLD, ABORT, STAY = EndEffect.COMPLETE, EndEffect.HOLD, EndEffect.ABORT, EndEffect.STAY
DECISION = new_id()
STEP = RecipeSetpointStep(kind="setpoint", address="bl7:a", value=3)
BROKEN = lifecycle_failure("abort", "Broken", "It broke.")
NO_ANSWER = step_failure(STEP, 0, "ControlTimeoutError", "No answer.")
UNCLEAR = step_failure(STEP, 0, "ActionOutcomeUnknown", "It may have moved.")
OPEN_HUTCH = lifecycle_failure("hold", "ProcedureRequiresPermittedEnclosureError", "The hutch is open.")
WITHDRAWN = lifecycle_failure("start", "UnauthorizedError", "StartProcedureIteration was refused.")
DEACTIVATED = submitter_stood_down("principal_deactivated", steers=False)
NAMED = f"The principal {OPERATOR} may not go on with this: "

TO_HOLD = ProcedureHoldRequested(conduct_id=new_id(), reason="lunch", decided_by_decision_id=DECISION)
TO_ABORT = ProcedureAbortRequested(conduct_id=new_id(), reason="smoke", run_closing=False)
ASKED_TO_HOLD: dict[str, Any] = {"asked": PendingRequest.HOLD, "request": TO_HOLD}
ASKED_TO_ABORT: dict[str, Any] = {"asked": PendingRequest.ABORT, "request": TO_ABORT}
CLOSING_ONLY: dict[str, Any] = {"mode": None, "request": TO_ABORT}
WALKED: dict[str, Any] = {"walked": True}
LEDGER_FAILED: dict[str, Any] = {"failed": NO_ANSWER}
OR_HOLD: dict[str, Any] = {**LEDGER_FAILED, "command_name": "ConductOrHoldProcedure"}
LEDGER_UNCLEAR: dict[str, Any] = {"failed": UNCLEAR, "holds_unknown": True}
WATCHED_GATE: dict[str, Any] = {"watches": True, "closed_gate": OPEN_HUTCH}
RUN_STOPPED: dict[str, Any] = {"run": RunStatus.STOPPED, "run_reason": "enough"}
RUN_ABORTED: dict[str, Any] = {"run": RunStatus.ABORTED, "run_reason": "fire"}
STOOD_DOWN: dict[str, Any] = {"objection": "principal_deactivated"}


def record(**said: Any) -> EndRecord:
    """What the record says to the end of a procedure's conduct."""
    return EndRecord(principal_id=OPERATOR, **said)


def run_record(status: RunStatus = RunStatus.RUNNING, **said: Any) -> EndRecord:
    """What the record says to the end of a run's conduct."""
    return EndRecord(principal_id=OPERATOR, of_run=True, run=status, **said)


def make_ending(finish: Finish, failure: Failure | None = None, **said: Any) -> Ending:
    return Ending(ConductOutcome(finish=finish, failure=failure, **said))


def summarize(decision: EndCommand | ConductVerdict | None) -> Followup:
    """A decision as the tables have it: what it leads to, who gives the command, its reason, and what has failed."""
    if not isinstance(decision, EndCommand):
        return decision
    by = "service" if decision.by_service else "submitter"
    return decision.leads_to, by, decision.reason, decision.failure


def decide(known: EndRecord, finish: Finish, failure: Failure | None = None, **said: Any) -> Followup:
    return summarize(decide_end(known, make_ending(finish, failure, **said)))


def follow_refusal(known: EndRecord, since: EndRecord, first: Ending, refusal: Refusal) -> Followup:
    """What is done next where the first command is refused and the record says this since."""
    command = decide_end(known, first)
    assert isinstance(command, EndCommand), "there is a command to refuse"
    return summarize(decide_end(since, after_refusal(since, command.ending, refusal)))


def ended_pass(**said: Any) -> ProcedureIterationEnded:
    return ProcedureIterationEnded(**{"iteration_index": 1, "converged": None, "reason": None, **said})


OWN_ENDS: list[tuple[Finish, Failure | None, dict[str, Any], Followup]] = [
    (Finish.COMPLETED, None, WALKED, (COMPLETE, "submitter", "", None)),
    (Finish.FAILED, NO_ANSWER, LEDGER_FAILED, (ABORT, "submitter", reason_of(NO_ANSWER), NO_ANSWER)),
    (Finish.FAULTED, NO_ANSWER, OR_HOLD, (HOLD, "submitter", reason_of(NO_ANSWER), NO_ANSWER)),
    (Finish.UNKNOWN, UNCLEAR, LEDGER_UNCLEAR, (HOLD, "submitter", reason_of(UNCLEAR), UNCLEAR)),
    (Finish.HELD, None, ASKED_TO_HOLD, (HOLD, "submitter", "lunch", ends.HELD)),
    (Finish.GATE_CLOSED, OPEN_HUTCH, WATCHED_GATE, (HOLD, "service", "The hutch is open.", OPEN_HUTCH)),
    (Finish.STOOD_DOWN, None, STOOD_DOWN, (HOLD, "service", reason_of(DEACTIVATED), DEACTIVATED)),
    (Finish.ABORTED, None, RUN_ABORTED, (ABORT, "submitter", "fire", ends.ABORTED)),
    (Finish.STOPPED, None, RUN_STOPPED, (ABORT, "submitter", "enough", ends.STOPPED)),
    (Finish.DENIED, WITHDRAWN, {}, (ABORT, "service", NAMED + WITHDRAWN.message, WITHDRAWN)),
    (Finish.CANCELLED, None, {}, (ABORT, "submitter", "conduct cancelled", ends.CANCELLED)),
    (Finish.HALTED, None, {}, (STAY, "service", "", ends.HALTED)),
]
"""Every way in which the conduct of a procedure ends, as the record shows it, where nothing else happens."""
ROW = ("finish", "failure", "said", "follows")


class TestTheEndOfAProcedure:
    def test_the_table_has_every_end_of_a_conduct_that_is_not_gone(self) -> None:
        assert {finish for finish, *_ in OWN_ENDS} == set(Finish) - {Finish.GONE}

    @for_each(ROW, OWN_ENDS)
    def test_every_end_leads_to_its_own_command(
        self, finish: Finish, failure: Failure | None, said: dict[str, Any], follows: Followup
    ) -> None:
        assert decide(record(**said), finish, failure) == follows

    @for_each(ROW, OWN_ENDS)
    def test_a_conduct_that_is_not_live_is_left_alone(
        self, finish: Finish, failure: Failure | None, said: dict[str, Any], follows: Followup
    ) -> None:
        """It was truncated, given up, or has ended already."""
        assert decide(record(**said, live=False), finish, failure) is ConductVerdict.GONE

    @for_each(
        ("finish", "said", "cause", "decision"),
        [
            (Finish.FAULTED, OR_HOLD, HoldCause.STEP_FAULT, None),
            (Finish.FAULTED, {**OR_HOLD, **ASKED_TO_HOLD}, HoldCause.OPERATOR, DECISION),
            (Finish.HELD, ASKED_TO_HOLD, HoldCause.OPERATOR, DECISION),
            (Finish.STOOD_DOWN, {**STOOD_DOWN, "steers": True}, HoldCause.DRIVER_STOOD_DOWN, None),
            (Finish.STOOD_DOWN, STOOD_DOWN, HoldCause.SUBMITTER_STOOD_DOWN, None),
        ],
    )
    def test_a_hold_says_its_cause_and_the_decision_that_it_was_asked_for_by(
        self, finish: Finish, said: dict[str, Any], cause: HoldCause, decision: Any
    ) -> None:
        held = decide_end(record(**said), make_ending(finish, said.get("failed")))
        assert isinstance(held, EndCommand)
        assert (held.leads_to, held.cause, held.decided_by) == (HOLD, cause, decision)

    def test_closing_steps_alone_end_aborted_as_was_asked_and_have_succeeded(self) -> None:
        known = record(**CLOSING_ONLY, **WALKED)
        assert decide(known, Finish.COMPLETED) == (ABORT, "submitter", "smoke", None)

    def test_a_run_that_was_completed_gives_no_reason_of_its_own(self) -> None:
        known = record(run=RunStatus.COMPLETED)
        assert decide(known, Finish.STOPPED) == (ABORT, "submitter", "The parent run was completed.", ends.STOPPED)


class TestWhatWasAskedForMeanwhile:
    @for_each(ROW, OWN_ENDS)
    def test_an_abort_beats_everything_but_a_denial(
        self, finish: Finish, failure: Failure | None, said: dict[str, Any], follows: Any
    ) -> None:
        failed = DEACTIVATED if finish is Finish.STOOD_DOWN else failure or ends.ABORTED
        expected = follows if finish is Finish.DENIED else (ABORT, follows[1], "smoke", failed)
        assert decide(record(**{**said, **ASKED_TO_ABORT}), finish, failure) == expected

    @for_each("finish", [Finish.COMPLETED, Finish.FAILED, Finish.STOPPED, Finish.HELD, Finish.ABORTED, Finish.CANCELLED])
    def test_under_an_abort_nothing_needs_to_be_shown_or_closed(self, finish: Finish) -> None:
        known, expected = record(**ASKED_TO_ABORT, closed=False), (ABORT, "submitter", "smoke", ends.ABORTED)
        assert decide(known, finish, NO_ANSWER) == expected, "nor is a failure believed that no ledger has"

    @for_each(
        ROW,
        [
            (Finish.COMPLETED, None, {**WALKED, "in_time": True}, (HOLD, "submitter", "lunch", ends.HELD)),
            (Finish.COMPLETED, None, WALKED, (COMPLETE, "submitter", "", None)),
            (
                Finish.COMPLETED,
                None,
                {"in_time": True, "mode": ConductMode.CONVERGED, **WALKED, "last_pass": ended_pass(converged=True)},
                (COMPLETE, "submitter", "", None),
            ),
            (Finish.FAILED, BROKEN, {"in_time": True}, (HOLD, "submitter", "lunch", BROKEN)),
            (Finish.FAILED, BROKEN, {}, (ABORT, "submitter", reason_of(BROKEN), BROKEN)),
            (Finish.FAULTED, NO_ANSWER, OR_HOLD, (HOLD, "submitter", "lunch", NO_ANSWER)),
            (Finish.HALTED, None, {}, (HOLD, "service", "lunch", ends.HELD)),
            (Finish.DENIED, WITHDRAWN, {"in_time": True}, (ABORT, "service", NAMED + WITHDRAWN.message, WITHDRAWN)),
            (Finish.STOPPED, None, {**RUN_STOPPED}, (ABORT, "submitter", "enough", ends.STOPPED)),
            (Finish.CANCELLED, None, {"in_time": True}, (ABORT, "submitter", "conduct cancelled", ends.CANCELLED)),
        ],
    )
    def test_a_hold_counts_where_it_came_in_time(
        self, finish: Finish, failure: Failure | None, said: dict[str, Any], follows: Followup
    ) -> None:
        assert decide(record(**said, **ASKED_TO_HOLD), finish, failure) == follows


class TestASubmitterWhoStoodDown:
    @for_each(ROW, OWN_ENDS)
    def test_the_service_holds_what_would_be_completed_and_ends_all_else_as_it_would_have(
        self, finish: Finish, failure: Failure | None, said: dict[str, Any], follows: Any
    ) -> None:
        leads_to, _, *rest = follows
        expected = (leads_to, "service", *rest)
        if finish is Finish.COMPLETED:
            expected = (HOLD, "service", reason_of(DEACTIVATED), DEACTIVATED)
        assert decide(record(**{**said, **STOOD_DOWN}), finish, failure) == expected

    def test_closing_steps_alone_are_ended_as_was_asked(self) -> None:
        known = record(**CLOSING_ONLY, **WALKED, **STOOD_DOWN)
        assert decide(known, Finish.COMPLETED) == (ABORT, "service", "smoke", None)


class TestWhatTheRecordShows:
    """The engine can give a conduct up, but not claim that something was done, failed or was asked for."""

    @for_each(
        ("finish", "failure", "said"),
        [
            (Finish.COMPLETED, None, {}),
            (Finish.HELD, None, {}),
            (Finish.ABORTED, None, {}),
            (Finish.ABORTED, None, RUN_STOPPED),
            (Finish.STOPPED, None, {}),
            (Finish.STOPPED, None, {"run": RunStatus.HELD}),
            (Finish.GATE_CLOSED, OPEN_HUTCH, {}),
            (Finish.FAILED, None, {}),
            (Finish.FAILED, NO_ANSWER, {}),
            (Finish.FAILED, NO_ANSWER, {"failed": step_failure(STEP, 1, "ControlTimeoutError", "No answer.")}),
            (Finish.FAULTED, None, OR_HOLD),
            (Finish.UNKNOWN, None, LEDGER_UNCLEAR),
            (Finish.DENIED, None, {}),
            (Finish.GONE, None, {}),
        ],
    )
    def test_what_is_not_shown_is_rejected(self, finish: Finish, failure: Failure | None, said: dict[str, Any]) -> None:
        assert decide_end(record(**said), make_ending(finish, failure)) is None

    @for_each(
        ("finish", "failure"),
        [
            (Finish.CANCELLED, None),
            (Finish.HALTED, None),
            (Finish.STOOD_DOWN, None),
            (Finish.FAILED, BROKEN),
            (Finish.DENIED, WITHDRAWN),
        ],
    )
    def test_giving_up_needs_nothing(self, finish: Finish, failure: Failure | None) -> None:
        assert isinstance(decide_end(record(), make_ending(finish, failure)), EndCommand)

    @for_each(ROW, OWN_ENDS)
    def test_closing_steps_that_are_due_must_be_done(
        self, finish: Finish, failure: Failure | None, said: dict[str, Any], follows: Followup
    ) -> None:
        expected = None if ENDS[finish].closes else follows
        assert decide(record(**said, closed=False), finish, failure) == expected

    @for_each(
        ("claimed", "said", "counts"),
        [
            (NO_ANSWER, LEDGER_FAILED, NO_ANSWER),
            (NO_ANSWER.model_copy(update={"message": "All went well."}), LEDGER_FAILED, NO_ANSWER),
            (BROKEN, LEDGER_FAILED, BROKEN),
            (interruption(STEP, 0, begun=True), {"step": STEP}, interruption(STEP, 0, begun=True)),
            (interruption(STEP, 0, begun=False), {"step": STEP}, interruption(STEP, 0, begun=False)),
            (
                interruption(STEP, 0, begun=False).model_copy(update={"message": "!"}),
                {"step": STEP},
                interruption(STEP, 0, begun=True),
            ),
        ],
    )
    def test_of_a_failure_only_its_place_is_believed(self, claimed: Failure, said: dict[str, Any], counts: Failure) -> None:
        assert decide(record(**said), Finish.FAILED, claimed) == (ABORT, "submitter", reason_of(counts), counts)

    @for_each(
        ("finish", "said", "leads_to"),
        [
            (Finish.FAILED, OR_HOLD, HOLD),
            (Finish.FAULTED, LEDGER_FAILED, ABORT),
            (Finish.FAILED, LEDGER_UNCLEAR, HOLD),
            (Finish.UNKNOWN, {"failed": UNCLEAR}, ABORT),
        ],
    )
    def test_how_a_failed_step_ends_is_decided_again(
        self, finish: Finish, said: dict[str, Any], leads_to: EndEffect
    ) -> None:
        command = decide_end(record(**said), make_ending(finish, said["failed"]))
        assert isinstance(command, EndCommand)
        assert command.leads_to is leads_to

    @for_each(("claimed", "code"), [(OPEN_HUTCH, OPEN_HUTCH.error_class), (BROKEN, "GateClosed"), (None, "GateClosed")])
    def test_a_gate_that_is_open_again_was_closed_for_a_moment(self, claimed: Failure | None, code: str) -> None:
        command = decide_end(record(watches=True), make_ending(Finish.GATE_CLOSED, claimed))
        assert isinstance(command, EndCommand)
        assert command.failure is not None
        assert (command.failure.error_class, "closed for a moment" in command.reason) == (code, True)


SPENT = TerminationReason.ITERATIONS
CONVERGED, ADVISED = ConductMode.CONVERGED, ConductMode.ADVISED


class TestLoops:
    @for_each(
        ("mode", "said", "claimed", "done", "reason"),
        [
            (CONVERGED, {**WALKED, "last_pass": ended_pass(converged=True)}, None, True, None),
            (CONVERGED, {"last_pass": ended_pass(converged=True)}, None, False, None),
            (CONVERGED, {**WALKED, "last_pass": ended_pass(converged=False)}, None, False, None),
            (CONVERGED, WALKED, None, False, None),
            (CONVERGED, {"takes_up": True}, None, False, None),
            (CONVERGED, {**WALKED, "last_pass": ended_pass(converged=True), "pass_open": True}, None, False, None),
            (ADVISED, {**WALKED, "last_pass": ended_pass(advised_stop=True)}, None, True, None),
            (ADVISED, {**WALKED, "last_pass": ended_pass(advised_stop=True), "spent": SPENT}, SPENT, True, SPENT),
            (ADVISED, {"last_pass": ended_pass(advised_stop=False)}, None, False, None),
            (ADVISED, {"last_pass": ended_pass(advised_stop=False)}, SPENT, False, None),
            (ADVISED, {"last_pass": ended_pass(advised_stop=False), "spent": SPENT}, None, True, SPENT),
            (ADVISED, {"spent": SPENT}, None, True, SPENT),
            (ADVISED, {"takes_up": True}, None, True, None),
            (ADVISED, {}, None, False, None),
        ],
    )
    def test_a_loop_is_done_when_its_last_pass_says_so_or_its_budget_is_spent(
        self, mode: ConductMode, said: dict[str, Any], claimed: Any, done: bool, reason: Any
    ) -> None:
        command = decide_end(record(mode=mode, **said), make_ending(Finish.COMPLETED, termination_reason=claimed))
        found = (command.leads_to, command.ending.outcome.termination_reason) if isinstance(command, EndCommand) else None
        assert found == ((COMPLETE, reason) if done else None)


NO = UnauthorizedError("It was refused.", reason="command_not_permitted")
LOST_RACE = ConcurrencyError("Somebody was faster.")
PENDING = Conflict("An abort is being served.", reason="request_pending")
CANNOT = Conflict("The procedure is Held.", reason="not_allowed")
DENIAL, DENIED_COMPLETION = (lifecycle_failure(target, NO.code, NO.detail) for target in ("abort", "complete"))
REFUSED, REFUSED_COMPLETION = (lifecycle_failure(target, CANNOT.code, CANNOT.detail) for target in ("abort", "complete"))
BY_SERVICE, BY_SERVICE_COMPLETION = ((ABORT, "service", NAMED + NO.detail, one) for one in (DENIAL, DENIED_COMPLETION))
DUE = {"closing_due": True}
REFUSALS: list[tuple[Finish, Failure | None, dict[str, Any], Refusal, dict[str, Any], Followup]] = [
    (Finish.COMPLETED, None, WALKED, LOST_RACE, {}, (COMPLETE, "submitter", "", None)),
    (Finish.COMPLETED, None, WALKED, LOST_RACE, ASKED_TO_ABORT, (ABORT, "submitter", "smoke", ends.ABORTED)),
    (Finish.COMPLETED, None, WALKED, PENDING, ASKED_TO_ABORT, (ABORT, "submitter", "smoke", ends.ABORTED)),
    (Finish.HALTED, None, {}, LOST_RACE, ASKED_TO_HOLD, (HOLD, "service", "lunch", ends.HELD)),
    (Finish.COMPLETED, None, WALKED, LOST_RACE, {"live": False}, ConductVerdict.GONE),
    (Finish.COMPLETED, None, WALKED, CANNOT, {"live": False}, ConductVerdict.GONE),
    (Finish.COMPLETED, None, WALKED, NO, DUE, ConductVerdict.DENIED),
    (Finish.COMPLETED, None, WALKED, NO, {}, BY_SERVICE_COMPLETION),
    (Finish.HELD, None, ASKED_TO_HOLD, NO, DUE, ConductVerdict.DENIED),
    (Finish.HELD, None, ASKED_TO_HOLD, NO, {}, BY_SERVICE),
    (Finish.FAULTED, NO_ANSWER, OR_HOLD, NO, DUE, ConductVerdict.DENIED),
    (Finish.FAULTED, NO_ANSWER, OR_HOLD, NO, {}, BY_SERVICE),
    (Finish.FAILED, NO_ANSWER, LEDGER_FAILED, NO, {}, BY_SERVICE),
    (Finish.CANCELLED, None, {}, NO, DUE, BY_SERVICE),
    (Finish.ABORTED, None, RUN_ABORTED, NO, DUE, BY_SERVICE),
    (Finish.FAILED, NO_ANSWER, {**LEDGER_FAILED, **ASKED_TO_ABORT}, NO, DUE, BY_SERVICE),
    (Finish.COMPLETED, None, WALKED, NO, {**DUE, **STOOD_DOWN}, (HOLD, "service", reason_of(DEACTIVATED), DEACTIVATED)),
    (Finish.FAILED, NO_ANSWER, LEDGER_FAILED, NO, STOOD_DOWN, (ABORT, "service", reason_of(NO_ANSWER), NO_ANSWER)),
    (Finish.COMPLETED, None, WALKED, CANNOT, {}, (STAY, "service", "", REFUSED_COMPLETION)),
    (Finish.HELD, None, ASKED_TO_HOLD, CANNOT, {}, (STAY, "service", "", REFUSED)),
    (Finish.CANCELLED, None, {}, CANNOT, {}, (STAY, "service", "", REFUSED)),
    (Finish.FAULTED, NO_ANSWER, OR_HOLD, CANNOT, {}, (STAY, "service", "", NO_ANSWER)),
    (Finish.DENIED, WITHDRAWN, {}, CANNOT, {}, (STAY, "service", "", WITHDRAWN)),
]
"""An end, what the record says, what refuses the command that they lead to, what the record says since, and what follows."""


@for_each(("finish", "failure", "said", "refusal", "since", "follows"), REFUSALS)
def test_what_follows_a_refusal_is_decided_from_the_record_as_it_is_since(
    finish: Finish, failure: Failure | None, said: dict[str, Any], refusal: Refusal, since: dict[str, Any], follows: Followup
) -> None:
    found = follow_refusal(record(**said), record(**{**said, **since}), make_ending(finish, failure), refusal)
    assert found == follows


def phase(*events: Any) -> Procedure:
    """The phase of a run after these events."""
    registered = ProcedureRegistered(
        name="Alignment",
        kind="alignment",
        target_asset_ids=frozenset(),
        parent_run_id=new_id(),
        capability_id=None,
        recipe_id=None,
        max_consecutive_unconverged_iterations=None,
    )
    state = Procedure.aggregate.fold(event.stamp(OPERATOR, START) for event in (registered, *events))
    assert isinstance(state, Procedure)
    return state


DEFINED, GIVEN_UP = phase(), phase(ProcedureAborted(reason="too late", actuation_kind=None))
PHASE_FAILED: dict[str, Any] = {"phase": GIVEN_UP, "failed": NO_ANSWER}
ITS_FAILURE, UNSTARTED = (f"phase Alignment: {reason_of(failure)}" for failure in (NO_ANSWER, BROKEN))
RUNNING, HELD, COMPLETED, STOPPED = RunStatus.RUNNING, RunStatus.HELD, RunStatus.COMPLETED, RunStatus.STOPPED
RUN_ENDS: list[tuple[Finish, Failure | None, RunStatus, dict[str, Any], Followup]] = [
    (Finish.COMPLETED, None, RUNNING, WALKED, (COMPLETE, "submitter", "", None)),
    (Finish.COMPLETED, None, HELD, WALKED, ConductVerdict.RUN_HELD),
    (Finish.COMPLETED, None, COMPLETED, WALKED, (STAY, "service", "", None)),
    (Finish.COMPLETED, None, STOPPED, WALKED, (STAY, "service", "", None)),
    (Finish.COMPLETED, None, STOPPED, {**WALKED, **STOOD_DOWN}, (STAY, "service", "", None)),
    (Finish.FAILED, None, RUNNING, PHASE_FAILED, (ABORT, "submitter", ITS_FAILURE, None)),
    (Finish.FAILED, None, HELD, PHASE_FAILED, (ABORT, "submitter", ITS_FAILURE, None)),
    (Finish.FAILED, None, RUNNING, {"phase": GIVEN_UP}, (ABORT, "submitter", "phase Alignment: Aborted", None)),
    (Finish.FAILED, BROKEN, RUNNING, {"phase": DEFINED}, (ABORT, "submitter", UNSTARTED, BROKEN)),
    (Finish.FAILED, BROKEN, STOPPED, {"phase": DEFINED}, (STAY, "service", "", BROKEN)),
    (Finish.FAILED, BROKEN, COMPLETED, {"phase": DEFINED}, (STAY, "service", "", None)),
    (Finish.FAILED, None, RUNNING, {**PHASE_FAILED, **STOOD_DOWN}, (ABORT, "service", ITS_FAILURE, None)),
    (Finish.STOPPED, None, STOPPED, {}, (STAY, "service", "", None)),
    (Finish.STOPPED, None, RunStatus.ABORTED, {}, (STAY, "service", "", None)),
    (Finish.CANCELLED, None, RUNNING, {}, (ABORT, "submitter", "conduct cancelled", ends.CANCELLED)),
    (Finish.CANCELLED, None, RunStatus.ABORTED, {}, (STAY, "service", "", ends.CANCELLED)),
    (Finish.CANCELLED, None, COMPLETED, {}, (STAY, "service", "", None)),
    (Finish.DENIED, WITHDRAWN, RUNNING, {}, (ABORT, "service", NAMED + WITHDRAWN.message, WITHDRAWN)),
    (Finish.DENIED, WITHDRAWN, STOPPED, {}, (STAY, "service", "", WITHDRAWN)),
    (Finish.STOOD_DOWN, None, RUNNING, STOOD_DOWN, (HOLD, "service", reason_of(DEACTIVATED), DEACTIVATED)),
    (Finish.STOOD_DOWN, None, HELD, STOOD_DOWN, (STAY, "service", "", DEACTIVATED)),
    (Finish.COMPLETED, None, RUNNING, {**WALKED, **STOOD_DOWN}, (HOLD, "service", reason_of(DEACTIVATED), DEACTIVATED)),
    (Finish.COMPLETED, None, HELD, {**WALKED, **STOOD_DOWN}, (STAY, "service", "", DEACTIVATED)),
]
"""Every way in which the conduct of a run ends, by the status that the run has."""
RUN_REFUSALS: list[tuple[Finish, Failure | None, dict[str, Any], Refusal, RunStatus, dict[str, Any], Followup]] = [
    (Finish.COMPLETED, None, WALKED, LOST_RACE, RUNNING, {}, (COMPLETE, "submitter", "", None)),
    (Finish.COMPLETED, None, WALKED, LOST_RACE, HELD, {}, ConductVerdict.RUN_HELD),
    (Finish.COMPLETED, None, WALKED, CANNOT, RUNNING, {}, (STAY, "service", "", REFUSED_COMPLETION)),
    (Finish.COMPLETED, None, WALKED, CANNOT, HELD, {}, ConductVerdict.RUN_HELD),
    (Finish.COMPLETED, None, WALKED, CANNOT, STOPPED, {}, (STAY, "service", "", None)),
    (Finish.COMPLETED, None, WALKED, CANNOT, COMPLETED, {}, (STAY, "service", "", None)),
    (Finish.COMPLETED, None, WALKED, NO, RUNNING, {}, BY_SERVICE_COMPLETION),
    (Finish.COMPLETED, None, WALKED, NO, RUNNING, STOOD_DOWN, (HOLD, "service", reason_of(DEACTIVATED), DEACTIVATED)),
    (Finish.FAILED, None, PHASE_FAILED, NO, RUNNING, {}, BY_SERVICE),
    (Finish.FAILED, BROKEN, {"phase": DEFINED}, NO, RUNNING, {}, (ABORT, "service", NAMED + NO.detail, BROKEN)),
    (Finish.CANCELLED, None, {}, NO, RUNNING, {}, (ABORT, "service", NAMED + NO.detail, ends.CANCELLED)),
    (Finish.FAILED, None, PHASE_FAILED, CANNOT, RUNNING, {}, (STAY, "service", "", None)),
    (Finish.FAILED, BROKEN, {"phase": DEFINED}, CANNOT, STOPPED, {}, (STAY, "service", "", BROKEN)),
    (Finish.STOOD_DOWN, None, STOOD_DOWN, CANNOT, HELD, {}, (STAY, "service", "", DEACTIVATED)),
    (Finish.STOOD_DOWN, None, STOOD_DOWN, CANNOT, STOPPED, {}, (STAY, "service", "", DEACTIVATED)),
]


class TestTheEndOfARun:
    @for_each(("finish", "failure", "status", "said", "follows"), RUN_ENDS)
    def test_a_run_is_ended_as_its_phases_and_then_its_conduct(
        self, finish: Finish, failure: Failure | None, status: RunStatus, said: dict[str, Any], follows: Followup
    ) -> None:
        assert decide(run_record(status, **said), finish, failure) == follows
        assert decide(run_record(status, **said, live=False), finish, failure) is ConductVerdict.GONE

    @for_each(
        ("finish", "failure", "said"),
        [
            (Finish.COMPLETED, None, {}),
            (Finish.FAILED, None, {}),
            (Finish.FAILED, BROKEN, {}),
            (Finish.FAILED, None, {"phase": DEFINED}),
            (Finish.STOPPED, None, {}),
            (Finish.DENIED, None, {}),
            *(
                (finish, BROKEN, WALKED)
                for finish in (
                    Finish.FAULTED,
                    Finish.UNKNOWN,
                    Finish.HELD,
                    Finish.GATE_CLOSED,
                    Finish.ABORTED,
                    Finish.HALTED,
                    Finish.GONE,
                )
            ),
        ],
    )
    def test_what_the_phases_do_not_show_is_rejected(
        self, finish: Finish, failure: Failure | None, said: dict[str, Any]
    ) -> None:
        assert decide_end(run_record(**said), make_ending(finish, failure)) is None

    @for_each(("finish", "failure", "said", "refusal", "status", "since", "follows"), RUN_REFUSALS)
    def test_what_follows_a_refusal_is_decided_from_the_run_as_it_is_since(
        self,
        finish: Finish,
        failure: Failure | None,
        said: dict[str, Any],
        refusal: Refusal,
        status: RunStatus,
        since: dict[str, Any],
        follows: Followup,
    ) -> None:
        known, then = run_record(**said), run_record(status, **{**said, **since})
        assert follow_refusal(known, then, make_ending(finish, failure), refusal) == follows


def every_end() -> Iterator[tuple[EndRecord, Ending]]:
    """Everything that can come together, with a record that shows how the walk ended."""
    evidence: dict[str, Any] = {"walked": True, "failed": NO_ANSWER, "step": STEP, "request": TO_ABORT}
    of_procedures = [
        {**evidence, "watches": True, "mode": mode, "run": run, "in_time": in_time, **asked}
        for mode in (ConductMode.FLAT, None)
        for run in (None, *RunStatus)
        for in_time in (False, True)
        for asked in ({}, ASKED_TO_HOLD, ASKED_TO_ABORT)
    ]
    of_runs = [{**evidence, "phase": GIVEN_UP, "of_run": True, "run": status} for status in RunStatus]
    objections = (None, "principal_deactivated")
    for said, objection, finish, failure in product(
        (*of_procedures, *of_runs), objections, Finish, (None, NO_ANSWER, BROKEN)
    ):
        yield record(**said, objection=objection), make_ending(finish, failure)


def test_whatever_comes_together_every_end_comes_to_rest() -> None:
    """Each refusal brings it nearer: a command that is refused as often as it is given ends with the conduct alone."""
    refusals: tuple[Refusal, ...] = (NO, CANNOT)
    count = 0
    for known, first in every_end():
        for order in (refusals, refusals[::-1], (NO, NO), (CANNOT, CANNOT)):
            decision = decide_end(known, first)
            for refusal in order:
                if isinstance(decision, EndCommand) and decision.leads_to is not STAY:
                    decision = decide_end(known, after_refusal(known, decision.ending, refusal))
            count += 1
            if CANNOT in order and isinstance(decision, EndCommand):
                assert decision.leads_to is STAY, (known, first, order)
    assert count > 20_000


def test_whatever_comes_together_a_command_says_all_that_it_must() -> None:
    for known, first in every_end():
        command = decide_end(known, first)
        if not isinstance(command, EndCommand):
            continue
        match command.leads_to:
            case EndEffect.COMPLETE:
                assert known.objection is None, (known, first)
                assert known.asked is not PendingRequest.ABORT, (known, first)
                assert command.failure == first.outcome.failure, (known, first)
            case EndEffect.HOLD:
                assert command.reason, (known, first)
                assert command.failure is not None, (known, first)
            case EndEffect.ABORT:
                assert command.reason, (known, first)
                assert (known.run in LIVE) or not known.of_run, (known, first)
            case _:
                assert command.by_service, (known, first)
        assert command.by_service or known.objection is None, (known, first)
        assert decide_end(replace(known, live=False), command.ending) is ConductVerdict.GONE
