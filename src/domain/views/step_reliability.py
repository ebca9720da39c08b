"""The reliability of steps: how often each kind of step on each target was tried, how it failed, and how long it took."""

import csv
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from io import StringIO
from typing import Annotated, ClassVar, NamedTuple, Protocol
from uuid import UUID

from pydantic import Field

from baton.domain.conduct.ends import UNKNOWN_OUTCOMES
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_tree import AncestorWalkDepthExceededError, NotABeamlineError, load_root_scope, refuse_part
from baton.domain.kernel import Call, Document, Query
from baton.domain.procedure.activity_logbook import StepKind
from baton.domain.registry import standalone_query
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.reads import Reads, ask, require
from baton.domain.shared.times import Instant
from baton.domain.views.beam_time import CSV, LONGEST, InvalidRangeError, TimeFormat, plain_cell

MONTH = timedelta(days=30)


class TriedStep(NamedTuple):
    """What the ledger says of one kind of step on one target within a range."""

    kind: str
    target: str
    try_count: int
    codes: Sequence[str]  # Of the tries that failed.
    retry_count: int
    deviation_count: int
    median: float | None
    ninetieth: float | None
    first_half: float | None  # The median of the earlier half of the tries.
    second_half: float | None
    lost: float  # Seconds of failed tries, and those by which others took longer than the median.


class ReliabilityPort(Protocol):
    """Reads the ledgers of all conducts."""

    async def tried_steps(
        self, begins: datetime, ends: datetime, asset_ids: Sequence[UUID] | None, kind: str | None, target: str | None
    ) -> Sequence[TriedStep]:
        """Return the steps that were tried in a range, of procedures on these assets or of all."""


class StepReliability(AnswerForm):
    """How one kind of step on one target did."""

    kind: StepKind
    """Which kind of step it is."""
    target: str
    """The signal, action or program."""
    try_count: int
    """Number of times that it was tried."""
    failure_count: int
    """Number of tries that failed."""
    failures: dict[str, int]
    """Number of failed tries by the class of their error."""
    unknown_count: int
    """Number of tries whose outcome was not known."""
    retry_count: int
    """Number of tries that repeated another one."""
    deviation_count: int
    """Number of setpoints that read otherwise than they were written."""
    median: Annotated[float | None, Seconds, Field(description="How long it takes in the middle, in seconds.")]
    ninetieth: Annotated[float | None, Seconds, Field(description="Nine of ten tries took at most so many seconds.")]
    trend: float | None
    """The median of the later half of the tries as a fraction of that of the earlier one; above 1 it became slower."""
    lost: Annotated[float, Seconds, Field(description="Seconds of failed tries and of delays beyond the median.")]


class StepReliabilities(AnswerForm):
    """The steps that were tried in a range, those that lost most time first."""

    since: datetime
    """When the range begins."""
    until: datetime
    """When the range ends."""
    items: tuple[StepReliability, ...]


@standalone_query(
    "/step-reliability",
    context="operation",
    returns=StepReliabilities,
    refuses=[NotABeamlineError, AncestorWalkDepthExceededError, InvalidRangeError, Asset.aggregate.NotFound],
)
class ListStepReliability(Query[StepReliabilities | Document]):
    """How often each kind of step on each target was tried, failed or was slow; those that lost most time first.

    Left out, the range is the last 30 days.
    """

    of_one_moment: ClassVar[bool] = True

    root_asset_id: Annotated[UUID | None, Field(description="Only steps of procedures below this root asset.")] = None
    since: Annotated[Instant | None, Field(description="When the range begins.")] = None
    until: Annotated[Instant | None, Field(description="When the range ends; left out, now.")] = None
    kind: Annotated[StepKind | None, Field(description="Only steps of this kind.")] = None
    target: Annotated[str | None, Field(min_length=1, max_length=500, description="Only steps on this target.")] = None
    format: Annotated[TimeFormat, Field(description="Data, or a table for spreadsheets.")] = TimeFormat.JSON
    limit: Annotated[int, Field(ge=1, le=1000)] = 100

    def answer(self, call: Call) -> Reads[StepReliabilities | Document]:
        ends = self.until or call.now
        begins = self.since or ends - MONTH
        if begins >= ends or ends - begins > LONGEST:
            detail = "The range is empty or longer than 400 days; give a `since` before `until`, and less than that."
            raise InvalidRangeError(detail, reason="empty" if begins >= ends else "too_long")
        asset_ids = None
        if self.root_asset_id is not None:
            root = yield from require(Asset, self.root_asset_id)
            yield from refuse_part(root)
            asset_ids = sorted((yield from load_root_scope(root)).bound_ids)
        kind = None if self.kind is None else self.kind.value
        tried = yield from ask(ReliabilityPort.tried_steps, begins, ends, asset_ids, kind, self.target)
        ordered = sorted(tried, key=lambda one: (-one.lost, one.kind, one.target))
        told = StepReliabilities(since=begins, until=ends, items=tuple(map(reliability_of, ordered[: self.limit])))
        return told if self.format is TimeFormat.JSON else Document(CSV, csv_text(told).encode())


def reliability_of(one: TriedStep) -> StepReliability:
    """Return what is shown of a step."""
    trend = one.second_half / one.first_half if one.first_half and one.second_half is not None else None
    return StepReliability(
        kind=StepKind(one.kind),
        target=one.target,
        try_count=one.try_count,
        failure_count=len(one.codes),
        failures=dict(sorted(Counter(one.codes).items())),
        unknown_count=sum(code in UNKNOWN_OUTCOMES for code in one.codes),
        retry_count=one.retry_count,
        deviation_count=one.deviation_count,
        median=one.median,
        ninetieth=one.ninetieth,
        trend=trend,
        lost=one.lost,
    )


def csv_text(told: StepReliabilities) -> str:
    """Return the steps as a table in which no text is a formula."""
    written = StringIO()
    table = csv.writer(written)
    columns = [name for name in StepReliability.model_fields if name != "failures"]
    table.writerow([*columns, "failures"])
    for one in told.items:
        failures = ", ".join(f"{code} {count}" for code, count in one.failures.items())
        cells = [
            plain_cell(value) if isinstance(value, str) else value for value in (getattr(one, name) for name in columns)
        ]
        table.writerow([*cells, plain_cell(failures)])
    return written.getvalue()
