"""The activity logbook of a procedure: what was done step by step, by hand or by a conduct.
A conduct's rows are its ledger: a row before each effect and one after it, found again by conduct and place."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import Field, JsonValue

from baton.domain.kernel import Call, Outcome, Value, Verb
from baton.domain.procedure.procedure import RUNNING, Procedure, ProcedureActivitiesLogbookOpened, procedure
from baton.domain.shared.listing import Hidden, ListQuery
from baton.domain.shared.logbooks import Appended, Entry, LogbookKind, ProducedId, open_logbook
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Answer, Enter


class StepKind(StrEnum):
    SETPOINT = "setpoint"
    ACTION = "action"
    CHECK = "check"
    CAPTURE = "capture"
    COMPUTE = "compute"


class InvalidProcedureStepKindError(Invalid, context="operation"):
    """There is no such kind of step."""


class ProcedureActivitiesLogbookClosedError(Conflict, context="operation"):
    """Activities are logged only while the procedure is Running."""


class Activity(Entry):
    """A stored row; what a person logged has no conduct, and no place among its steps."""

    relation: ClassVar[str] = "entries_procedure_activities"
    time: ClassVar[str] = "recorded_at"
    kind: ClassVar[LogbookKind] = LogbookKind.ACTIVITY
    procedure_id: UUID
    step_kind: str
    payload: dict[str, Any]
    sampled_at: datetime
    conduct_id: UUID | None
    iteration_index: Hidden[int | None]
    closing: Hidden[bool | None]
    step_index: Hidden[int | None]
    mark: Hidden[str | None]
    attempt: Hidden[int | None]
    slot: Hidden[str | None]  # The capture or output that the row fills.


BY_HAND = dict.fromkeys(("conduct_id", "iteration_index", "closing", "step_index", "mark", "attempt", "slot"))
"""The columns that rows of people leave empty."""


class ActivityReport(Value):
    """One activity as it is reported; a repeated event_id is ignored."""

    event_id: ProducedId
    step_kind: Annotated[str, Field(min_length=1, max_length=50)]
    payload: dict[str, JsonValue]
    """What was done, by key."""
    sampled_at: Instant
    occurred_at: Instant | None = None


@procedure.command(post="/{procedure_id}/activities", name="append_activities", status=200, returns=Appended, attempts=3)
class AppendProcedureActivities(Verb[Procedure]):
    """Log what was done by hand."""

    entries: Annotated[tuple[ActivityReport, ...], Field(min_length=1, max_length=500)]

    def decide(self, procedure: Procedure, call: Call) -> Outcome:
        if procedure.status is not RUNNING:
            detail = f"The procedure is {procedure.status.value}; activities are logged while it is Running."
            raise ProcedureActivitiesLogbookClosedError(detail, reason=procedure.status.value.lower())
        for report in self.entries:
            if report.step_kind not in [*StepKind]:
                detail = f"There is no step kind {report.step_kind}; use {', '.join(StepKind)}."
                raise InvalidProcedureStepKindError(detail, facts={"event_id": report.event_id})
        logbook_id, opening = open_logbook(procedure.activity_logbook_id, ProcedureActivitiesLogbookOpened, Activity, call)
        own = {"procedure_id": procedure.id, **BY_HAND}
        rows = [Activity.by(call, self, logbook_id, **own, **vars(report)) for report in self.entries]
        return [*opening, Enter(rows), Answer({"event_count": len(rows)})]


@procedure.listing(Activity, get="/{procedure_id}/activities")
class ListProcedureActivities(ListQuery[Activity]):
    """What was done, in the order it was recorded."""

    limit: Annotated[int, Field(ge=1, le=500)] = 100
    step_kind: StepKind | None = None
    conduct_id: UUID | None = None
