"""The moments at which a conduct may lose its worker, and how it must end."""

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from baton.domain.procedure.procedure import ProcedureStatus
from tests.support.chaos.stuck_worker import StuckMoment

COMPLETED, ABORTED, HELD, RUNNING = (
    ProcedureStatus.COMPLETED,
    ProcedureStatus.ABORTED,
    ProcedureStatus.HELD,
    ProcedureStatus.RUNNING,
)


class OpeningCommand(StrEnum):
    """The commands that open a conduct."""

    CONDUCT = "conduct_procedure"
    OR_HOLD = "conduct_or_hold_procedure"
    FROM = "conduct_from_procedure"
    CONVERGED = "conduct_until_converged"
    ADVISED = "conduct_until_advised"
    ADVISED_FROM = "conduct_until_advised_from"
    CLOSING = "abort_procedure (run_closing)"


WALKING = [way for way in OpeningCommand if way is not OpeningCommand.CLOSING]
"""Those that walk more than the closing steps."""
LOOPS = (OpeningCommand.CONVERGED, OpeningCommand.ADVISED, OpeningCommand.ADVISED_FROM)
TAKEN_UP = (OpeningCommand.FROM, OpeningCommand.ADVISED_FROM, OpeningCommand.CLOSING)
"""Those that go on from an earlier conduct."""


class StepInQuestion(StrEnum):
    """The step in question."""

    SETPOINT = "setpoint"
    ACTION = "action"
    CHECK = "check"
    CAPTURE = "capture"
    COMPUTE = "compute"
    UNMET_CHECK = "check that is not met"
    LONG_CHECK = "check that waits for longer than the restart limit"
    DONE_ACTION = "action that an earlier conduct has done"


KINDS = (
    StepInQuestion.SETPOINT,
    StepInQuestion.ACTION,
    StepInQuestion.CHECK,
    StepInQuestion.CAPTURE,
    StepInQuestion.COMPUTE,
)
QUICK = (StepInQuestion.SETPOINT, StepInQuestion.CHECK, StepInQuestion.CAPTURE)
"""Those that others follow in the same stretch."""
UNREPEATED = {StepInQuestion.ACTION: "ActionOutcomeUnknown", StepInQuestion.COMPUTE: "ComputeOutcomeUnknown"}


@dataclass(frozen=True)
class CrashCase:
    """A conduct with one step in question, first in its list (after the axis of a search), and when its worker dies."""

    way: OpeningCommand
    moment: StuckMoment
    kind: StepInQuestion = StepInQuestion.SETPOINT
    in_closing: bool = False
    passes: int = 1
    """Passes of a loop, where nothing comes between."""
    by_caller: bool = False
    """Whether the search is advised from outside, to stop."""
    stands_still: bool = False
    """Whether nobody takes the conduct up until the restart limit has passed."""

    def __str__(self) -> str:
        told = [self.way.value, self.kind.value, f"killed {self.moment}"]
        told += ["in closing"] if self.in_closing else []
        told += [f"pass {self.moment.iteration_index}"] if self.way in LOOPS and self.moment.iteration_index else []
        told += ["stood still"] if self.stands_still else []
        return ", ".join(told)

    @property
    def place(self) -> tuple[int, bool, int | None]:
        """Pass, list and index of the step that the worker dies at."""
        return self.moment.iteration_index or 0, self.moment.closing, self.moment.step_index

    @property
    def is_begun(self) -> bool:
        """Whether the ledger says at that moment that the step was begun, and nothing more."""
        return (self.moment.call, self.moment.after) in (("begin", True), ("outcome", False))

    @property
    def is_done(self) -> bool:
        """Whether the plant has seen the step at that moment, and the ledger does not say so."""
        return (self.moment.call, self.moment.after) == ("outcome", False)

    @property
    def begins_again(self) -> bool:
        return self.kind is StepInQuestion.SETPOINT and self.is_begun and not self.stands_still

    @property
    def neighbour_that_begins_again(self) -> tuple[int, bool, int] | None:
        """The place of another step of the same stretch that was begun, and of which the ledger does not say more: the one
        before, whose outcome is stored with the beginning of this one, or the one after, which is begun with its outcome."""
        iteration_index, closing, step_index = self.place
        if step_index is None or self.kind not in QUICK or self.stands_still:
            return None
        match self.moment.call, self.moment.after:
            case "begin", False if step_index and self.kind is not StepInQuestion.CAPTURE:  # which looks at the slots first
                return iteration_index, closing, step_index - 1
            case "outcome", True:
                return iteration_index, closing, step_index + 1
        return None

    @property
    def loses_the_outcome(self) -> bool:
        """Whether it is left open what became of the step, because it must not be done again and nobody knows."""
        return self.is_begun and (
            self.kind is StepInQuestion.ACTION or (self.kind is StepInQuestion.COMPUTE and not self.is_done)
        )

    @property
    def error_class(self) -> str | None:
        """Why the conduct fails, where it does."""
        if self.kind is StepInQuestion.DONE_ACTION:
            return "AcquisitionResumeRequiresOperator"
        if self.kind is StepInQuestion.UNMET_CHECK:
            return "CheckFailedError"
        if self.loses_the_outcome and not self.in_closing:
            return UNREPEATED[self.kind]
        late = self.stands_still and not self.in_closing and self.kind is not StepInQuestion.LONG_CHECK
        return "StepInterrupted" if late else None

    @property
    def status(self) -> ProcedureStatus:
        """How the procedure stands in the end."""
        if self.kind is StepInQuestion.DONE_ACTION:
            return RUNNING
        held = ("CheckFailedError", "StepInterrupted", *UNREPEATED.values())
        if self.error_class in held and self.way is OpeningCommand.OR_HOLD:
            return HELD
        return ABORTED if self.error_class or self.way is OpeningCommand.CLOSING else COMPLETED

    @property
    def closes(self) -> bool:
        """Whether the closing steps are done, once."""
        return self.status in (COMPLETED, ABORTED)

    @property
    def executions(self) -> int:
        """How often the plant has seen the step in question, by earlier conducts too."""
        before = int(self.way is OpeningCommand.ADVISED_FROM or self.kind is StepInQuestion.DONE_ACTION)
        if self.loses_the_outcome:
            return before + int(self.is_done)
        if self.error_class in ("AcquisitionResumeRequiresOperator", "StepInterrupted"):
            return before
        return before + self.passes + int(self.begins_again and self.is_done)

    @property
    def iterations(self) -> list[bool | None]:
        """How every pass ended, those of earlier conducts too."""
        match self.way:
            case OpeningCommand.CONVERGED:
                return [None] if self.error_class else [False] * (self.passes - 1) + [True]
            case OpeningCommand.ADVISED:
                return [None] * self.passes
            case OpeningCommand.ADVISED_FROM:
                return [None] * (self.passes + 1)
        return []


def cases_at_step(way: OpeningCommand, kind: StepInQuestion, *, in_closing: bool = False) -> list[CrashCase]:
    """Before and after the row that says it begins, before and after the row that says what came of it."""
    calls = [("begin", False), ("begin", True), ("outcome", False), ("outcome", True)]
    if kind is StepInQuestion.COMPUTE:
        calls += [("submit", True), ("deposit", True)]
    where: dict[str, Any] = {"step_index": 0, "closing": True}
    if not in_closing:
        first_pass = {OpeningCommand.CONVERGED: 1, OpeningCommand.ADVISED: 1, OpeningCommand.ADVISED_FROM: 2}.get(way)
        where = {
            "step_index": int(way in (OpeningCommand.ADVISED, OpeningCommand.ADVISED_FROM)),
            "iteration_index": first_pass,
        }
    return [CrashCase(way, StuckMoment(call=call, after=after, **where), kind, in_closing) for call, after in calls]


def cases_around(way: OpeningCommand, call: str, **known: Any) -> list[CrashCase]:
    """Before and after something that is done for the whole conduct, or between two passes."""
    iteration_index = known.pop("iteration_index", None)
    moments = [StuckMoment(call=call, after=after, iteration_index=iteration_index) for after in (False, True)]
    return [CrashCase(way, moment, in_closing=way is OpeningCommand.CLOSING, **known) for moment in moments]


def ending_command(way: OpeningCommand) -> str:
    """The command that the conduct ends with, where nothing comes between."""
    return "AbortProcedure" if way is OpeningCommand.CLOSING else "CompleteProcedure"


IN_STEPS = {(way, kind): cases_at_step(way, kind) for way in WALKING for kind in KINDS}
"""The moments of a step, with every way and every kind."""
IN_CLOSING = {
    (way, kind): cases_at_step(way, kind, in_closing=True)
    for kind in KINDS
    for way in (OpeningCommand.CLOSING, OpeningCommand.CONDUCT)
}
AROUND = [
    *(cases_around(way, "brief") for way in (OpeningCommand.CONDUCT, OpeningCommand.CLOSING)),
    *(cases_around(way, "begin_closing") for way in OpeningCommand),
    *(cases_around(way, ending_command(way)) for way in OpeningCommand),
    cases_around(OpeningCommand.CONVERGED, "EndProcedureIteration", iteration_index=1, passes=2),
    cases_around(OpeningCommand.CONVERGED, "StartProcedureIteration", iteration_index=2, passes=2),
    cases_around(OpeningCommand.ADVISED, "RecordProcedureOutcome", iteration_index=1),
    cases_around(OpeningCommand.ADVISED, "EndProcedureIteration", iteration_index=1, passes=2),
    cases_around(OpeningCommand.ADVISED_FROM, "StartProcedureIteration", iteration_index=2),
    cases_around(OpeningCommand.OR_HOLD, "HoldProcedure", kind=StepInQuestion.UNMET_CHECK),
    cases_around(OpeningCommand.FROM, "RecordConductEnd", kind=StepInQuestion.DONE_ACTION),
]
"""What is done for a whole conduct, or between two passes: before it and after it."""
ONCE = [
    CrashCase(OpeningCommand.ADVISED, StuckMoment(call="advice", after=True), by_caller=True),
    CrashCase(OpeningCommand.ADVISED, StuckMoment(call="EndProcedureIteration", iteration_index=1), by_caller=True),
    CrashCase(OpeningCommand.CONDUCT, StuckMoment(call="begin", after=True, step_index=0), StepInQuestion.UNMET_CHECK),
    CrashCase(OpeningCommand.CONDUCT, StuckMoment(call="begin", step_index=0), StepInQuestion.SETPOINT, stands_still=True),
    CrashCase(
        OpeningCommand.OR_HOLD,
        StuckMoment(call="begin", after=True, step_index=0),
        StepInQuestion.SETPOINT,
        stands_still=True,
    ),
    CrashCase(OpeningCommand.OR_HOLD, StuckMoment(call="begin", step_index=0), StepInQuestion.ACTION, stands_still=True),
    CrashCase(OpeningCommand.OR_HOLD, StuckMoment(call="outcome", step_index=0), StepInQuestion.ACTION, stands_still=True),
    CrashCase(
        OpeningCommand.CONDUCT, StuckMoment(call="outcome", step_index=0), StepInQuestion.LONG_CHECK, stands_still=True
    ),
    CrashCase(
        OpeningCommand.CONDUCT,
        StuckMoment(call="begin", step_index=0, closing=True),
        StepInQuestion.ACTION,
        in_closing=True,
        stands_still=True,
    ),
]
"""What happens at one moment of one way."""


def chosen_cases() -> list[CrashCase]:
    """Cases such that every way and every kind of step meet every moment; with CRASH_MATRIX=full, each with each."""
    if os.environ.get("CRASH_MATRIX") == "full":
        return [case for row in (*IN_STEPS.values(), *IN_CLOSING.values(), *AROUND, ONCE) for case in row]
    in_steps = [
        IN_STEPS[way, KINDS[(place + moment) % len(KINDS)]][moment]
        for place, way in enumerate(WALKING)
        for moment in range(4)
    ]
    in_closing = [row[number // 2 % 4] for number, row in enumerate(IN_CLOSING.values()) if number % 4 in (0, 3)]
    around = [row[number % 2] for number, row in enumerate(AROUND)]
    of_programs_alone = cases_at_step(OpeningCommand.CONDUCT, StepInQuestion.COMPUTE)[4:]
    lost_in_closing = cases_at_step(OpeningCommand.CLOSING, StepInQuestion.ACTION, in_closing=True)[2]
    return [*in_steps, *in_closing, *around, *of_programs_alone, lost_in_closing, *ONCE]
