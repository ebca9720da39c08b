"""The walk of a conduct: what comes next, decided from where it is and from what came of the last thing that it did.
A workflow does what `action` says and hands over the report. A run is walked like a procedure: its phases are its steps."""

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Self

from baton.domain.conduct.ends import ENDS, finish_after, finish_denied
from baton.domain.conduct.messages import (
    ConductCursor,
    ConductOutcome,
    ConductStart,
    ConductVerdict,
    Finish,
    PassDecision,
    StepReport,
)
from baton.domain.procedure.procedure import ConductMode
from baton.domain.step.results import Failure, TerminationReason

DONE, GONE, RUN_HELD = ConductVerdict.DONE, ConductVerdict.GONE, ConductVerdict.RUN_HELD


class Action(Enum):
    """What a conduct does next."""

    TAKE_UP_SEARCH = auto()  # ask where a search continues that has measured before
    START_PASS = auto()
    DO_STEPS = auto()  # the step at the cursor, or the stretch of steps that begins there
    COLLECT = auto()  # wait for what a step has only begun: a program, or a phase
    JUDGE_PASS = auto()
    RECORD_OUTCOME = auto()
    ASK_ADVICE = auto()
    AWAIT_RUN = auto()
    BEGIN_CLOSING = auto()
    END = auto()
    NOTHING = auto()  # the conduct is over


@dataclass(frozen=True, kw_only=True)
class Walk:
    """Where a conduct is, between two activities."""

    start: ConductStart
    at: ConductCursor
    of_run: bool = False  # whether its steps are the phases of a run: each is begun and then collected, and none closes
    action: Action = Action.DO_STEPS
    behind_wait: Action = Action.NOTHING  # what follows the wait for the run
    job_id: str | None = None  # what is to be collected
    outcome: ConductOutcome | None = None  # how the main list ended
    closed: bool = False  # whether the closing steps were walked

    @classmethod
    def begin(cls, start: ConductStart) -> Self:
        """Return the walk of a conduct that begins."""
        return cls.go_on(start, ConductCursor(step_index=start.boundary, next_step=start.next_step, point=start.first_point))

    @classmethod
    def go_on(cls, start: ConductStart, at: ConductCursor, *, of_run: bool = False) -> Self:
        """Return the walk of a conduct at a cursor."""
        walk = cls(start=start, at=at, of_run=of_run)
        if at.outcome is not None or start.mode is None:
            return walk._end(at.outcome or ConductOutcome(finish=Finish.COMPLETED))
        if start.mode is ConductMode.FLAT or at.iteration_index:
            return walk._next_step()
        asks = start.asks_first and not at.passes
        return replace(walk, action=Action.TAKE_UP_SEARCH if asks else Action.START_PASS)

    @property
    def is_between_steps(self) -> bool:
        """Return whether nothing is under way, so that a fresh history may begin here."""
        return self.action in (Action.DO_STEPS, Action.START_PASS)

    @property
    def is_cancellable(self) -> bool:
        """Return whether a cancellation in the engine still changes its end: until that, or a run's completion, is due."""
        if self.outcome is None:
            return True
        return self.of_run and self.outcome.finish is Finish.COMPLETED and self.action is not Action.NOTHING

    @property
    def completed_count(self) -> int:
        """Return how many steps of the main list are done, in the last pass where there are passes."""
        first = self.start.boundary if self.start.mode is ConductMode.FLAT else 0
        return max(0, self.at.step_index - first)

    def after_step(self, report: StepReport) -> Self:
        """Return where a conduct is after a step or stretch, or after what a step had begun was collected."""
        if report.verdict is DONE and self.action is Action.DO_STEPS and (self.of_run or report.job_id is not None):
            return replace(self, action=Action.COLLECT, job_id=report.job_id)
        if self.at.closing:
            return self._after_closing_step(report)
        walk = self._move(report, passing=report.verdict is DONE)
        if report.verdict is RUN_HELD:
            return walk._wait(Action.DO_STEPS)
        return walk._next_step() if report.verdict is DONE else walk._end(walk._outcome_by(report.verdict, report.failure))

    def after_pass(self, decision: PassDecision) -> Self:
        """Return where a conduct is after a decision about a pass."""
        if decision.verdict is RUN_HELD:
            return self._wait(self.action)
        if decision.verdict is not DONE:
            verdict = ConductVerdict.STOOD_DOWN if decision.stood_down else decision.verdict
            return self._end(self._outcome_by(verdict, decision.failure))
        if self.action is Action.RECORD_OUTCOME:
            return replace(self, action=Action.ASK_ADVICE)
        if decision.stop or decision.converged:
            return self._end(self._completed_outcome(decision.termination_reason))
        if self.action in (Action.START_PASS, Action.TAKE_UP_SEARCH):
            at = ConductCursor(
                iteration_index=decision.iteration_index,
                next_step=self.start.loop_step,
                passes=self.at.passes + 1,
                point=decision.point,
            )
            return replace(self, at=at)._next_step()
        between = {"iteration_index": 0, "point": decision.point}
        return replace(self, at=self.at.model_copy(update=between), action=Action.START_PASS)

    def after_wait(self, verdict: ConductVerdict) -> Self:
        """Return where a conduct is once its run is not held any more."""
        if verdict is DONE:
            return replace(self, action=self.behind_wait)
        return self._end(self._outcome_by(verdict))

    def after_closing_begun(self, verdict: ConductVerdict) -> Self:
        """Return where a conduct is once its closing steps may begin, or not."""
        if verdict is RUN_HELD:
            return self._wait(Action.BEGIN_CLOSING)
        if verdict is not DONE:
            return self._end(self._outcome_by(verdict))
        at = ConductCursor(closing=True, next_step=self.start.closing_step, outcome=self.outcome, point=self.at.point)
        return replace(self, at=at)._next_step()

    def after_end(self, verdict: ConductVerdict, failure: Failure | None = None) -> Self:
        """Return where a conduct is after its end was put on the record, or could not be."""
        assert self.outcome is not None, "it ends somehow"
        if verdict is RUN_HELD:
            return self._wait(Action.END)
        if failure is None:
            return replace(self, action=Action.NOTHING)
        denied = {"finish": finish_denied(self.outcome.finish), "failure": failure}
        return self._end(self.outcome.model_copy(update=denied))

    def after_cancellation(self) -> Self:
        """Return where a conduct is when it was cancelled in the engine."""
        return self._end(ConductOutcome(finish=Finish.CANCELLED, completed_count=self.completed_count))

    def _after_closing_step(self, report: StepReport) -> Self:
        """Walk every closing step, also after one that failed; only an abort cuts them off."""
        assert self.outcome is not None, "the main list has ended"
        passing = report.verdict in (DONE, ConductVerdict.FAILED)
        walk = self._move(report, passing=passing)
        if passing:
            return walk._next_step()
        gone = report.verdict is GONE
        cut = {"finish": Finish.GONE if gone else Finish.ABORTED, "closing_cut_at": None if gone else walk.at.step_index}
        return replace(walk, outcome=self.outcome.model_copy(update=cut), action=Action.END, closed=True)

    def _move(self, report: StepReport, *, passing: bool) -> Self:
        """Move behind the steps that are done; a report of one step does not say how many that are."""
        count = int(passing) if report.done_count is None else report.done_count
        changes = {"step_index": self.at.step_index + count, "next_step": report.next_step} if count else {}
        return replace(self, at=self.at.model_copy(update=changes), job_id=None)

    def _next_step(self) -> Self:
        """Go to the step at the cursor, or on from the end of its list."""
        if self.at.closing:
            more = self.at.step_index < self.start.closing_count
            return replace(self, action=Action.DO_STEPS if more else Action.END, closed=not more)
        if self.at.step_index < self.start.step_count:
            return replace(self, action=Action.DO_STEPS)
        match self.start.mode:
            case ConductMode.CONVERGED:
                return replace(self, action=Action.JUDGE_PASS)
            case ConductMode.ADVISED:
                return replace(self, action=Action.RECORD_OUTCOME)
            case ConductMode.FLAT | None:
                return self._end(self._completed_outcome())

    def _end(self, outcome: ConductOutcome) -> Self:
        """Go to the end by way of the closing steps, where the outcome needs them and they were not walked."""
        walk = replace(self, outcome=outcome)
        if outcome.finish is Finish.GONE:
            return replace(walk, action=Action.NOTHING)
        if self.of_run or self.closed or self.start.ends_directly or not ENDS[outcome.finish].closes:
            return replace(walk, action=Action.END)
        return walk._next_step() if self.at.closing else replace(walk, action=Action.BEGIN_CLOSING)

    def _wait(self, behind: Action) -> Self:
        return replace(self, action=Action.AWAIT_RUN, behind_wait=behind)

    def _completed_outcome(self, reason: TerminationReason | None = None) -> ConductOutcome:
        return ConductOutcome(finish=Finish.COMPLETED, completed_count=self.completed_count, termination_reason=reason)

    def _outcome_by(self, verdict: ConductVerdict, failure: Failure | None = None) -> ConductOutcome:
        """Return how the main list ends at a verdict, or how an end that was decided before is changed by it."""
        finish = finish_after(verdict, failure, self.start.command_name, holds_unknown=self.start.holds_unknown)
        if self.outcome is not None:
            return self.outcome.model_copy(update={"finish": finish})
        return ConductOutcome(finish=finish, failure=failure, completed_count=self.completed_count)
