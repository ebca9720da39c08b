"""What the record says to a conduct: of two things that are said at once, the graver one counts."""

from itertools import combinations, product
from typing import Any

import pytest

from baton.domain.conduct.messages import ConductVerdict, lifecycle_failure
from baton.domain.conduct.signals import GONE, ConductSignals
from baton.domain.procedure.procedure import PendingRequest
from baton.domain.run.run import RunStatus
from tests.support.tables import for_each

HOLD, ABORT = PendingRequest
GATE = lifecycle_failure("hold", "ProcedureRequiresPermittedEnclosureError", "The hutch is open.")
OVER = [status for status in RunStatus if status not in (RunStatus.RUNNING, RunStatus.HELD, RunStatus.ABORTED)]
PRECEDENCE: list[tuple[ConductVerdict, list[dict[str, Any]]]] = [
    (ConductVerdict.GONE, [{"live": False}]),
    (ConductVerdict.ABORT, [{"asked": ABORT}]),
    (ConductVerdict.RUN_ABORTED, [{"run": RunStatus.ABORTED}]),
    (ConductVerdict.HOLD, [{"asked": HOLD}]),
    (ConductVerdict.RUN_STOPPED, [{"run": status} for status in OVER]),
    (ConductVerdict.STOOD_DOWN, [{"objection": "principal_deactivated"}, {"objection": "agent_not_versioned"}]),
    (ConductVerdict.RUN_HELD, [{"run": RunStatus.HELD}]),
    (ConductVerdict.GATE_CLOSED, [{"closed_gate": GATE}]),
]
"""Every verdict with the ways in which it is said, the gravest first."""
ALONE = [(verdict, said) for verdict, ways in PRECEDENCE for said in ways]
PAIRS = [
    (verdict, {**graver, **other})
    for (verdict, ways), (_, others) in combinations(PRECEDENCE, 2)
    for graver, other in product(ways, others)
    if not graver.keys() & other.keys()
]


@for_each("run", [None, RunStatus.RUNNING])
def test_where_nothing_is_said_the_conduct_goes_on(run: RunStatus | None) -> None:
    assert ConductSignals(run=run).verdict is None


@pytest.mark.parametrize(("verdict", "said"), ALONE, ids=str)
def test_what_is_said_alone_counts(verdict: ConductVerdict, said: dict[str, Any]) -> None:
    assert ConductSignals(**said).verdict is verdict


@pytest.mark.parametrize(("verdict", "said"), PAIRS, ids=str)
def test_of_two_the_graver_counts(verdict: ConductVerdict, said: dict[str, Any]) -> None:
    assert ConductSignals(**said).verdict is verdict


def test_the_table_has_every_verdict_that_can_be_said() -> None:
    assert {verdict for verdict, _ in PRECEDENCE} == {signals.verdict for signals in every_signals()} - {None}


def every_signals() -> list[ConductSignals]:
    """Everything that can be said at once."""
    ways = product([True, False], [None, *PendingRequest], [None, *RunStatus], [None, "principal_unknown"], [None, GATE])
    return [
        ConductSignals(live=live, asked=asked, run=run, objection=objection, closed_gate=gate)
        for live, asked, run, objection, gate in ways
    ]


def test_what_is_not_live_hears_nothing_else() -> None:
    assert {signals.verdict for signals in every_signals() if not signals.live} == {GONE.verdict} == {ConductVerdict.GONE}


class TestBeforeClosing:
    """What keeps closing steps from beginning."""

    @for_each("completed", [True, False])
    @for_each("may_hold", [True, False])
    def test_gates_and_standing_never_do(self, completed: bool, may_hold: bool) -> None:
        said = ConductSignals(objection="principal_deactivated", closed_gate=GATE)
        assert said.before_closing(completed=completed, may_hold=may_hold) is None

    @for_each("completed", [True, False])
    @for_each(("may_hold", "verdict"), [(True, ConductVerdict.HOLD), (False, None)])
    def test_a_hold_does_where_it_still_counts(
        self, completed: bool, may_hold: bool, verdict: ConductVerdict | None
    ) -> None:
        assert ConductSignals(asked=HOLD).before_closing(completed=completed, may_hold=may_hold) is verdict

    @pytest.mark.parametrize("signals", every_signals(), ids=str)
    def test_an_abort_and_the_end_of_the_conduct_always_do(self, signals: ConductSignals) -> None:
        found = {signals.before_closing(completed=one, may_hold=two) for one, two in product([True, False], repeat=2)}
        grave = (ConductVerdict.GONE, ConductVerdict.ABORT, ConductVerdict.RUN_ABORTED)
        if signals.verdict in grave:
            assert found == {signals.verdict}
        else:
            assert not found & set(grave)

    @for_each("run", [None, *RunStatus])
    @for_each("completed", [True, False])
    def test_a_run_that_is_held_or_over_does_where_the_list_was_completed(
        self, run: RunStatus | None, completed: bool
    ) -> None:
        expected = ConductSignals(run=run).verdict if completed or run is RunStatus.ABORTED else None
        assert ConductSignals(run=run).before_closing(completed=completed, may_hold=True) is expected
