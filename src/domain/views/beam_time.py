"""Beam time: where the time of a beamline went, second by second, from the streams of its work, its beam, its hutches, its
assets and its queue. Nothing is counted by person."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum
from io import StringIO
from typing import Annotated, Any, ClassVar, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import Field

from baton.domain.data.lineage import LineagePort
from baton.domain.enclosure.enclosure import Enclosure
from baton.domain.equipment.asset import Asset, asset
from baton.domain.equipment.asset_tree import (
    AncestorWalkDepthExceededError,
    AssetScope,
    NotABeamlineError,
    load_root_scope,
    refuse_part,
)
from baton.domain.kernel import Call, Document, Event, LogPosition, Query, State
from baton.domain.procedure.procedure import ListProcedures, Procedure, ProcedureConducted, ProcedureStatus, ProcedureSummary
from baton.domain.queue.queue import ASSET_QUEUES, Queue
from baton.domain.recipe.plan import Plan
from baton.domain.run.run import LIVE, ListRuns, Run, RunSummary
from baton.domain.schedule.calendar import time_zones
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.listing import Page, Where
from baton.domain.shared.reads import Reads, Rows, ask, find_all, holder_of, run_in_thread
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.times import Instant
from baton.domain.supply.coverage import PHOTON_BEAM, every_supply_in_scope
from baton.domain.supply.supply import Supply
from baton.domain.trust.proposal import ListProposals, ProposalSummary
from baton.domain.trust.visit import ListVisits, VisitStatus, VisitSummary, VisitType
from baton.domain.views import time_claims
from baton.domain.views.time_claims import TimeRecord, claims_of
from baton.domain.views.time_states import (
    COUNTS_AS,
    Counts,
    StateStretch,
    TimeSpan,
    TimeState,
    complement,
    cut,
    merge_gaps,
    partition,
    union,
)

T = TypeVar("T")

LONGEST = timedelta(days=400)
MOST_WORK = 50_000  # Runs, procedures or proposals that one answer looks at.
DRAWN = timedelta(days=8)  # The longest range whose stretches are listed.
MOST_STRETCHES = 5000
CSV = "text/csv"
OUTAGE = "A stretch of scheduled time without any photon beam that was Available or Degraded."
UNUSED = (VisitStatus.CANCELLED, VisitStatus.VOIDED)  # Visits that planned nothing in the end.
ENDED_BADLY = (ProcedureStatus.ABORTED, ProcedureStatus.TRUNCATED, ProcedureStatus.RUNNING, ProcedureStatus.HELD)


class InvalidRangeError(Invalid, context="operation"):
    """Time is looked at from one moment until a later one that is over, 400 days at most."""


class TimeGrouping(StrEnum):
    CAUSE = "cause"  # By state and what it was due to.
    DAY = "day"
    WEEK = "week"
    PLAN = "plan"


class TimeFormat(StrEnum):
    JSON = "json"
    CSV = "csv"


class StateTime(AnswerForm):
    """The time that was spent in one state."""

    state: TimeState
    """What was going on."""
    counts_as: Counts
    """Whether the time was used, lost or neither."""
    seconds: Annotated[float, Seconds, Field(description="How long, in seconds, within the scheduled time.")]
    share: float
    """The fraction of the scheduled time."""
    count: int
    """Number of stretches."""
    longest: Annotated[float, Seconds, Field(description="The longest stretch, in seconds.")]


class TimeGroup(AnswerForm):
    """The time of one day, week, plan or cause."""

    group: str
    """The day, the first day of the week, the plan, or the cause."""
    id: UUID | None = None
    """The thing that the group is about, where it is about one."""
    seconds: Annotated[float, Seconds, Field(description="The scheduled time of the group, in seconds.")]
    states: tuple[StateTime, ...]
    """The time in each state, used first."""


class BeamAvailability(AnswerForm):
    """How well the photon beam was there within the scheduled time."""

    availability: float
    """The fraction of the scheduled time in which the beam was there."""
    outage_count: int
    """Number of outages; those closer together than `merge_gaps` count as one."""
    mean_time_between_failures: Annotated[float | None, Seconds]
    """The time with beam divided by the outages, in seconds; null without any."""
    mean_time_to_repair: Annotated[float | None, Seconds]
    """The time without beam divided by the outages, in seconds; null without any."""
    definition: str
    """What an outage is here."""


class TimeStretch(AnswerForm):
    """A stretch of time in one state, and what it leads to."""

    begins: datetime
    """When it began."""
    ends: datetime
    """When it ended."""
    state: TimeState
    """What was going on."""
    cause: str | None
    """What it was due to, where that is known."""
    kind: str | None
    """The kind of the thing that it leads to."""
    id: UUID | None


class BeamTime(AnswerForm):
    """Where the time of a beamline went; the seconds of all states add up to the scheduled time."""

    asset_id: UUID
    name: str
    since: datetime
    """When the range begins."""
    until: datetime
    """When the range ends."""
    by: TimeGrouping
    """How the time is grouped."""
    scheduled_seconds: Annotated[float, Seconds]
    """The scheduled time: what visits planned, or all of the range."""
    merge_gaps: Annotated[float, Seconds]
    """Seconds between two outages that count as one."""
    states: tuple[StateTime, ...]
    """The time in each state."""
    groups: tuple[TimeGroup, ...]
    """The same by group."""
    beam: BeamAvailability | None
    """How well the beam was there; null where no photon beam is on record."""
    stretches: tuple[TimeStretch, ...] | None
    """Every stretch in order, of a range of eight days at most; else null."""


@asset.query(
    get="/{asset_id}/beam-time",
    context="operation",
    returns=BeamTime,
    refuses=[NotABeamlineError, AncestorWalkDepthExceededError, InvalidRangeError],
)
class GetBeamTime(Query[BeamTime | Document]):
    """Where the time of a beamline went: measuring, preparing, lost to beam, equipment, gates or people, or idle.

    The asset must be a root. Every second has exactly one state. Left out, the range is the last 24 hours.
    """

    reads_projections: ClassVar[bool] = True
    of_one_moment: ClassVar[bool] = True

    since: Annotated[Instant | None, Field(description="When the range begins.")] = None
    until: Annotated[Instant | None, Field(description="When the range ends; left out, now.")] = None
    by: Annotated[TimeGrouping, Field(description="How the time is grouped.")] = TimeGrouping.CAUSE
    format: Annotated[TimeFormat, Field(description="Data, or a table of the groups for spreadsheets.")] = TimeFormat.JSON
    visit_type: Annotated[
        VisitType | None, Field(description="Counts only time that visits of this type planned; left out, all.")
    ] = None
    time_zone: Annotated[str, Field(max_length=64, description="Whose days and weeks are meant.")] = "UTC"
    merge_gaps: Annotated[
        float, Seconds, Field(ge=0, le=86400, description="Seconds between two outages that count as one.")
    ] = 0
    min_position: LogPosition | None = None

    def answer(self, asset: Asset, call: Call) -> Reads[BeamTime | Document]:
        yield from refuse_part(asset)
        range, zone = self._range(call.now), self._zone()
        scope = yield from load_root_scope(asset)
        record = yield from gather_record(asset, scope, range)
        windows = [range] if self.visit_type is None else (yield from planned_windows(self.visit_type, range))
        told = yield from run_in_thread(beam_time_of, asset, record, range, windows, self, zone)
        return told if self.format is TimeFormat.JSON else Document(CSV, csv_text(told).encode())

    def _range(self, now: datetime) -> TimeSpan:
        """Return the range that is asked for; refuse one that is empty, too long or not over."""
        ends = self.until or now
        begins = self.since or ends - timedelta(days=1)
        if ends > now:
            raise InvalidRangeError("The range ends in the future; ask for time that is over.", reason="future")
        if begins >= ends:
            raise InvalidRangeError("The range is empty; give a `since` before `until`.", reason="empty")
        if ends - begins > LONGEST:
            raise InvalidRangeError("The range is longer than 400 days; ask for less.", reason="too_long")
        return TimeSpan(begins, ends)

    def _zone(self) -> ZoneInfo:
        if self.time_zone not in time_zones():
            detail = f"There is no time zone {self.time_zone!r}; give an IANA name such as Europe/Berlin."
            raise InvalidRangeError(detail, reason="time_zone")
        return ZoneInfo(self.time_zone)


def rows_between(query: type[Any], row: type[T], *where: Where) -> Reads[tuple[T, ...]]:
    """Return the rows that meet these conditions."""
    page: Page[T] = yield Rows(row, query.model_construct(limit=MOST_WORK), where)  # type: ignore[arg-type]
    return page.items


def gather_record(asset: Asset, scope: AssetScope, range: TimeSpan) -> Reads[TimeRecord]:
    """Return what the record has of a beamline for a range."""
    runs = yield from runs_in(scope, range)
    procedures = yield from procedures_in(scope, range, runs)
    deployment = yield from ask(DeploymentPort.deployment)
    supplies = {one.id: one for one in (yield from every_supply_in_scope(scope, deployment.self_facility_code))}
    enclosures = yield from find_all(Enclosure, sorted(scope.enclosure_ids))
    queue_id = yield from holder_of(ASSET_QUEUES, str(asset.id))
    queues = () if queue_id is None else (queue_id,)
    broken = [one.procedure_id for one in procedures if one.status in ENDED_BADLY]
    ended = yield from by_stream(Procedure, broken, (ProcedureConducted,))
    names: dict[UUID, str] = {one.run_id: one.name for one in runs} | {one.procedure_id: one.name for one in procedures}
    names |= {one.id: one.name for group in (supplies, enclosures, scope.assets) for one in group.values()}
    plans = yield from find_all(Plan, sorted({one.plan_id for one in runs}))
    names |= {id: plan.name for id, plan in plans.items()}
    queue_events = yield from by_stream(Queue, queues, time_claims.QUEUE_TYPES)
    return TimeRecord(
        runs=(yield from by_stream(Run, [one.run_id for one in runs], time_claims.RUN_TYPES)),
        plans={one.run_id: one.plan_id for one in runs},
        parents={one.procedure_id: one.parent_run_id for one in procedures},
        conducts=(yield from by_stream(Procedure, [one.procedure_id for one in procedures], time_claims.PROCEDURE_TYPES)),
        lost={id: tuple(one for one in events if isinstance(one, ProcedureConducted)) for id, events in ended.items()},
        supplies=(yield from by_stream(Supply, supplies, time_claims.SUPPLY_TYPES)),
        beam_ids=frozenset(id for id, one in supplies.items() if one.kind == PHOTON_BEAM),
        enclosures=(yield from by_stream(Enclosure, enclosures, time_claims.ENCLOSURE_TYPES)),
        assets=(yield from by_stream(Asset, scope.assets, time_claims.ASSET_TYPES)),
        queue=queue_events.get(queue_id, ()) if queue_id is not None else (),
        proposals=(yield from proposals_on([*names], range)),
        names=names,
    )


def by_stream(state: type[State], ids: Iterable[UUID], events: Sequence[type[Event]]) -> Reads[dict[UUID, list[Event]]]:
    """Return the events of these types by the stream that they are on, with one statement for all streams."""
    wanted, found = list(ids), dict[UUID, list[Event]]()
    if wanted:
        for event in (yield from ask(LineagePort.events_of_streams, wanted, events, ())):
            found.setdefault(event.stream_id, []).append(event)
    return found


def runs_in(scope: AssetScope, range: TimeSpan) -> Reads[list[RunSummary]]:
    """Return the runs on assets in scope that may have been on in a range."""
    before = Where("created_at", "before", range.ends)
    late = yield from rows_between(ListRuns, RunSummary, before, Where("updated_at", "from", range.begins))
    live = yield from rows_between(ListRuns, RunSummary, before, Where("status", "in", tuple(one.value for one in LIVE)))
    found = {one.run_id: one for one in (*late, *live)}
    plans = yield from find_all(Plan, sorted({one.plan_id for one in found.values()}))
    inside = {id for id, plan in plans.items() if plan.asset_ids & scope.bound_ids}
    return [one for one in found.values() if one.plan_id in inside]


def procedures_in(scope: AssetScope, range: TimeSpan, runs: Iterable[RunSummary]) -> Reads[list[ProcedureSummary]]:
    """Return the procedures on assets in scope, and the phases of runs, that may have been on in a range."""
    before = Where("registered_at", "before", range.ends)
    targets = Where("target_asset_ids", "has_any", tuple(sorted(scope.bound_ids)))
    late = Where("last_status_changed_at", "from", range.begins)
    live = Where("status", "in", (ProcedureStatus.RUNNING.value, ProcedureStatus.HELD.value))
    ids = tuple(one.run_id for one in runs)
    phases = (yield from rows_between(ListProcedures, ProcedureSummary, Where("parent_run_id", "in", ids))) if ids else ()
    own = (
        *(yield from rows_between(ListProcedures, ProcedureSummary, before, targets, late)),
        *(yield from rows_between(ListProcedures, ProcedureSummary, before, targets, live)),
    )
    return list({one.procedure_id: one for one in (*phases, *own)}.values())


def proposals_on(ids: Sequence[UUID], range: TimeSpan) -> Reads[list[tuple[TimeSpan, UUID, str]]]:
    """Return when proposals of commands on these things were open."""
    if not ids:
        return []
    found = yield from rows_between(ListProposals, ProposalSummary, Where("target_id", "in", tuple(ids)))
    spans = [(TimeSpan(one.created_at, one.closed_at or one.expires_at), one.proposal_id, one.command_name) for one in found]
    return [one for one in spans if one[0].begins < range.ends and one[0].ends > range.begins]


def planned_windows(type: VisitType, range: TimeSpan) -> Reads[list[TimeSpan]]:
    """Return the time that visits of a type planned, within a range."""
    planned = Where("status", "not_in", tuple(one.value for one in UNUSED))
    where = (Where("type", "is", type.value), Where("planned_start_at", "before", range.ends), planned)
    found = yield from rows_between(ListVisits, VisitSummary, *where)
    spans = [TimeSpan(max(one.planned_start_at, range.begins), min(one.planned_end_at, range.ends)) for one in found]
    return union(one for one in spans if one.begins < one.ends)


def beam_time_of(
    asset: Asset, record: TimeRecord, range: TimeSpan, windows: Sequence[TimeSpan], asked: GetBeamTime, zone: ZoneInfo
) -> BeamTime:
    """Return where the time of a beamline went, by its record."""
    stretches = list(cut(partition(claims_of(record), range), windows))
    scheduled = sum(one.seconds for one in windows)
    shown = range.ends - range.begins <= DRAWN
    return BeamTime(
        asset_id=asset.id,
        name=asset.name,
        since=range.begins,
        until=range.ends,
        by=asked.by,
        scheduled_seconds=scheduled,
        merge_gaps=asked.merge_gaps,
        states=state_times(stretches, scheduled),
        groups=groups_of(stretches, asked.by, zone, record.names, scheduled),
        beam=availability(record, windows, asked.merge_gaps) if record.beam_ids else None,
        stretches=tuple(map(told_stretch, stretches[:MOST_STRETCHES])) if shown else None,
    )


def state_times(stretches: Iterable[StateStretch], scheduled: float) -> tuple[StateTime, ...]:
    """Return the time in each state, in the order of the states."""
    found: dict[TimeState, list[float]] = {}
    for one in stretches:
        found.setdefault(one.state, []).append(one.span.seconds)
    return tuple(
        StateTime(
            state=state,
            counts_as=COUNTS_AS[state],
            seconds=sum(seconds),
            share=sum(seconds) / scheduled if scheduled else 0.0,
            count=len(seconds),
            longest=max(seconds),
        )
        for state in TimeState
        if (seconds := found.get(state))
    )


def told_stretch(one: StateStretch) -> TimeStretch:
    """Return a stretch as it is shown."""
    claim = one.claim
    cause, kind, id = (None, None, None) if claim is None else (claim.cause, claim.kind, claim.id)
    return TimeStretch(begins=one.span.begins, ends=one.span.ends, state=one.state, cause=cause, kind=kind, id=id)


def groups_of(
    stretches: Sequence[StateStretch], by: TimeGrouping, zone: ZoneInfo, names: Mapping[UUID, str], scheduled: float
) -> tuple[TimeGroup, ...]:
    """Return the time by group: days and weeks in order, the others with the longest first."""
    if by in (TimeGrouping.DAY, TimeGrouping.WEEK):
        parts = [part for one in stretches for part in by_day(one, zone)]
        first = day_of if by is TimeGrouping.DAY else week_of
        return group_stretches(sorted(parts, key=lambda one: one.span), lambda one: (first(one, zone).isoformat(), None))
    if by is TimeGrouping.PLAN:
        own = group_stretches(stretches, lambda one: plan_key(one, names))
    else:
        own = group_stretches(stretches, cause_key)
    return tuple(sorted(own, key=lambda one: (-one.seconds, one.group)))


def plan_key(one: StateStretch, names: Mapping[UUID, str]) -> tuple[str, UUID | None]:
    """Return the plan that a stretch was measured on."""
    id = None if one.claim is None else one.claim.plan_id
    return ("no plan", None) if id is None else (names.get(id, str(id)), id)


def cause_key(one: StateStretch) -> tuple[str, UUID | None]:
    """Return the state of a stretch and, where it was lost, what it was due to."""
    if one.claim is None or COUNTS_AS[one.state] is Counts.USED or one.claim.cause is None:
        return one.state.value, None
    return f"{one.state.value}: {one.claim.cause}", one.claim.id if one.claim.kind in (
        "Supply",
        "Asset",
        "Enclosure",
    ) else None


def group_stretches(
    stretches: Sequence[StateStretch], key: Callable[[StateStretch], tuple[str, UUID | None]]
) -> tuple[TimeGroup, ...]:
    """Return stretches by a key, in the order in which the keys come up."""
    found: dict[tuple[str, UUID | None], list[StateStretch]] = {}
    for one in stretches:
        found.setdefault(key(one), []).append(one)
    groups = []
    for (group, id), own in found.items():
        seconds = sum(one.span.seconds for one in own)
        groups.append(TimeGroup(group=group, id=id, seconds=seconds, states=state_times(own, seconds)))
    return tuple(groups)


def day_of(one: StateStretch, zone: ZoneInfo) -> date:
    """Return the day on which a stretch begins."""
    return one.span.begins.astimezone(zone).date()


def week_of(one: StateStretch, zone: ZoneInfo) -> date:
    """Return the Monday of the week in which a stretch begins."""
    day = day_of(one, zone)
    return day - timedelta(days=day.weekday())


def by_day(one: StateStretch, zone: ZoneInfo) -> Iterable[StateStretch]:
    """Yield the parts of a stretch that lie in one day each."""
    begins = one.span.begins
    while begins < one.span.ends:
        midnight = datetime.combine(begins.astimezone(zone).date() + timedelta(days=1), datetime.min.time(), zone)
        ends = min(one.span.ends, midnight.astimezone(begins.tzinfo))
        yield StateStretch(TimeSpan(begins, ends), one.claim)
        begins = ends


def availability(record: TimeRecord, windows: Sequence[TimeSpan], gaps: float) -> BeamAvailability:
    """Return how well the beam was there within some windows."""
    claims = [one.span for one in time_claims.beam_claims(record)]
    outages = [part for window in windows for part in within(claims, window)]
    scheduled, lost = sum(one.seconds for one in windows), sum(one.seconds for one in outages)
    count = len(merge_gaps(outages, gaps))
    return BeamAvailability(
        availability=1 - lost / scheduled if scheduled else 0.0,
        outage_count=count,
        mean_time_between_failures=(scheduled - lost) / count if count else None,
        mean_time_to_repair=lost / count if count else None,
        definition=OUTAGE,
    )


def within(spans: Iterable[TimeSpan], window: TimeSpan) -> list[TimeSpan]:
    """Return the parts of spans that lie in a window."""
    return complement(complement(spans, window), window)


def csv_text(told: BeamTime) -> str:
    """Return the groups as a table in which no text is a formula."""
    written = StringIO()
    table = csv.writer(written)
    table.writerow([told.by.value, "state", "counts as", "seconds", "share", "number", "longest"])
    for group in told.groups:
        for one in group.states:
            figures = (one.seconds, one.share, one.count, one.longest)
            table.writerow([plain_cell(group.group), one.state.value, one.counts_as.value, *figures])
    return written.getvalue()


def plain_cell(text: str) -> str:
    """Return a text as a cell; one that a spreadsheet would take for a formula begins with an apostrophe."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
