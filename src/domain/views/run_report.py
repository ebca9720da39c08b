"""The report of a run: everything that the record has of it, gathered for one page that is read without the service. It is
made when it is asked for, and kept nowhere."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, TypeVar
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import Names, names_of
from baton.domain.access.references import names_under
from baton.domain.calibration.calibration import REVISIONS, Calibration, Revision
from baton.domain.campaign.campaign import Campaign
from baton.domain.caution.caution import AcknowledgedCaution
from baton.domain.conduct.point_list import ListProcedurePoints, ProcedurePoints
from baton.domain.conduct.progress import OpenedConduct
from baton.domain.conduct.step_list import ListedStep
from baton.domain.data.attestation import AttestationSummary, ListAttestations
from baton.domain.data.dataset import Dataset, ListDatasets
from baton.domain.data.distribution import DistributionSummary, ListDistributions
from baton.domain.data.preview import DatasetPreviewUnavailableError, RegisteredFile, registered_files
from baton.domain.decision.decision import Decision, Inference, ListInferences
from baton.domain.equipment.asset import Asset, AssetSettingsUpdated
from baton.domain.kernel import Aggregate, Call, Document, Event, LogPosition, Query
from baton.domain.procedure.procedure import ConductMode, Procedure, ProcedureRecipeExpanded
from baton.domain.recipe.method import Method
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.recipe import Recipe
from baton.domain.run.logbooks import Channel, ListRunLogbookEntries, ListRunObservations, RunLogbookEntry
from baton.domain.run.run import LIVE, Run, RunAdjusted, RunWitnessed, phases_of, run
from baton.domain.run.run_views import GetRun, RunView
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.gates import GateVerdict
from baton.domain.shared.listing import ListQuery, Order, Page, Summary, Where
from baton.domain.shared.reads import (
    AskPort,
    Reads,
    Rows,
    ask,
    events_of,
    find,
    find_all,
    latest_events,
    members_by_key,
    permitted_commands,
    records_of,
)
from baton.domain.subject.subject import Subject
from baton.domain.trust.proposal import ListProposals, Proposal
from baton.domain.views.run_steps import PhaseSteps, StepFold, fold_steps, load_steps, noteworthy_steps
from baton.domain.views.run_story import PHASE_EVENTS, RUN_EVENTS, StoryLine, WorkStretch, story_of, stretches_of

T = TypeVar("T")

MOST_ROWS = 2000  # Rows of any kind of record that a report looks at.
READINGS = 10_000  # Readings that one statement reads.
DRAWN_POINTS = 800  # Points of a phase that its picture is drawn from.
MOST_PICTURES = 12  # Datasets whose pictures a report has.
GATHERED: Mapping[str, str] = {
    "Phases and steps": "GetProcedure",
    "Readings": "ListRunObservations",
    "Data": "ListDatasets",
    "Decisions": "GetDecision",
    "Logbook": "ListRunLogbookEntries",
    "Proposals and approvals": "ListProposals",
    "Calibrations": "GetCalibration",
    "Settings of its assets": "GetAsset",
}
"""The parts of a report that need a permission of their own, and which."""


class ReportFormat(StrEnum):
    HTML = "html"  # One page.
    ZIP = "zip"  # The page with its tables, its events and its description as an RO-Crate.


class BriefReading(Summary):
    """A reading as far as a report needs it: long runs have a hundred thousand of them."""

    relation: ClassVar[str] = "run_readings"
    time: ClassVar[str] = "recorded_at"
    event_id: UUID
    channel_name: str
    value: float
    """The reading, in the unit beside it."""
    units: str | None
    sampling_procedure: str
    simulated: bool
    sampled_at: datetime
    recorded_at: datetime


class ReportedReading(NamedTuple):
    """A reading of a channel."""

    at: datetime
    value: float
    units: str | None
    sampling_procedure: str
    simulated: bool


@dataclass(frozen=True)
class ChannelReport:
    """A channel of the run with all its readings in the order in which they were taken."""

    name: str
    units: str | None
    readings: tuple[ReportedReading, ...]


@dataclass(frozen=True)
class ReportedPhase:
    """A phase: where its steps came from, what became of them, and what they measured."""

    phase: Procedure
    recipe_id: UUID | None
    recipe_version: str | None
    takeover_count: int
    steps: PhaseSteps
    folds: tuple[StepFold, ...]
    shown_steps: tuple[ListedStep, ...]
    shown_closing: tuple[ListedStep, ...]
    points: ProcedurePoints
    every_point: ProcedurePoints | None  # Where the tables are wanted.
    stretches: tuple[WorkStretch, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True)
class DatasetReport:
    """A dataset with its copies, the checks of them, and the files that a picture could be taken of."""

    dataset: Dataset
    copies: tuple[DistributionSummary, ...]
    checks: tuple[AttestationSummary, ...]
    files: tuple[RegisteredFile, ...]


@dataclass(frozen=True)
class DecisionReport:
    """A decision that the run rests on or that was made about it, who made it, and what its model calls cost."""

    decision: Decision
    who: str | None
    call_count: int
    tokens: int
    cost: float | None


@dataclass(frozen=True)
class PinnedRevision:
    """A revision of a calibration that the run had pinned."""

    calibration: Calibration
    revision: Revision


@dataclass(frozen=True)
class AssetSettings:
    """The settings of an asset of the plan as they were when the run began."""

    asset: Asset
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class ParameterLine:
    """A parameter of the run: its value, its unit, what the plan says, and whether it was changed on the way."""

    name: str
    value: Any
    unit: str | None
    planned: Any
    own: bool
    adjusted: bool


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """Everything that the record has of one run, as far as its reader may see it."""

    run: RunView
    so_far: datetime | None  # When it was gathered, of a run that has not ended.
    shows_people: bool
    story: tuple[StoryLine, ...]
    stretches: tuple[WorkStretch, ...]
    parameters: tuple[ParameterLine, ...]
    cautions: tuple[AcknowledgedCaution, ...]
    gates: tuple[GateVerdict, ...] | None  # Those of a witnessed run; one of the service's own has passed every gate.
    phases: tuple[ReportedPhase, ...]
    channels: tuple[ChannelReport, ...]
    datasets: tuple[DatasetReport, ...]
    decisions: tuple[DecisionReport, ...]
    notes: tuple[tuple[RunLogbookEntry, str | None], ...]
    proposals: tuple[tuple[Proposal, str | None, str | None], ...]  # Each with who proposed and who approved it.
    calibrations: tuple[PinnedRevision, ...]
    settings: tuple[AssetSettings, ...]
    labels: Mapping[UUID, str | None]  # The names of things that it refers to.
    events: tuple[Event, ...]
    texts: bool  # Whether free texts of events may be read.
    facility_code: str
    publisher: str
    left_out: tuple[str, ...]  # The parts that its reader may not see.

    def label(self, id: UUID | None) -> str:
        """Return the name of a thing, or its id."""
        return "none" if id is None else self.labels.get(id) or str(id)


class ReportPort(Protocol):
    """Writes reports."""

    async def write_report(self, report: RunReport, format: ReportFormat) -> Document:
        """Return a report as a file; one is written at a time."""


@run.query(get="/{run_id}/report", name="get_run_report", media_types=["text/html", "application/zip"])
class GetRunReport(Query[Document]):
    """Everything on record about a run as one page for people who were not there: its story, steps, data and decisions.

    It loads nothing and runs nothing. As `zip` it has its tables, its events and an RO-Crate besides.
    """

    reads_projections: ClassVar[bool] = True
    of_one_moment: ClassVar[bool] = True

    format: Annotated[ReportFormat, Field(description="A page, or a zip with its tables too.")] = ReportFormat.HTML
    names: Annotated[bool, Field(description="Whether people are named.")] = True
    min_position: LogPosition | None = None

    def answer(self, run: Run, call: Call) -> Reads[AskPort]:
        report = yield from gather_report(run, call, self.names, tables=self.format is ReportFormat.ZIP)
        return AskPort(ReportPort.write_report, (report, self.format))


def gather_report(run: Run, call: Call, people: bool, *, tables: bool) -> Reads[RunReport]:
    """Return everything that the record has of a run, as far as the caller may see it."""
    permitted = yield from permitted_commands()
    view = yield from RunView.load(GetRun(), run)
    events: tuple[Event, ...] = yield from events_of(run.id, *RUN_EVENTS)
    began = events[0]
    phases = (yield from gather_phases(run, call, tables=tables)) if "GetProcedure" in permitted else ()
    phase_events = [event for one in phases for event in one.events]
    texts = "ReadEventTexts" in permitted
    notes = (yield from rows_of_run(ListRunLogbookEntries, run.id)) if "ListRunLogbookEntries" in permitted else ()
    decided = decisions_in((*events, *phase_events), notes) if "GetDecision" in permitted else ()
    decisions = yield from find_all(Decision, decided)
    proposals = (yield from gather_proposals(run, phases)) if "ListProposals" in permitted else ()
    appeared = {(event.caller_id, event.caller_surface_id) for event in (*events, *phase_events)}
    told = {id for one in proposals for id in (one.proposed_by, one.approved_by) if id is not None}
    told |= {one.decided_by for one in decisions.values()} | {one.actor_id for one in notes}
    names: Names = (yield from names_of((*appeared, *((id, None) for id in told)))) if people else {}
    plan = (yield from find(Plan, run.plan_id)) if "GetPlan" in permitted else None
    deployment = yield from ask(DeploymentPort.deployment)
    settings = yield from gather_settings(plan, began.occurred_at) if plan and "GetAsset" in permitted else nothing()
    return RunReport(
        run=view,
        so_far=call.now if run.status in LIVE else None,
        shows_people=people,
        story=tuple(story_of(events, phase_events, names, texts=texts)),
        stretches=stretches_of(events),
        parameters=(yield from parameter_lines(run, plan, events)),
        cautions=getattr(began, "acknowledged_cautions", ()) if texts else (),
        gates=began.gates if isinstance(began, RunWitnessed) else None,
        phases=phases,
        channels=(yield from gather_channels(run)) if "ListRunObservations" in permitted else (),
        datasets=(yield from gather_datasets(run, permitted)) if "ListDatasets" in permitted else (),
        decisions=(yield from gather_costs(decisions.values(), names, permitted)),
        notes=tuple((one, names.get((one.actor_id, None))) for one in notes),
        proposals=tuple((one, actor_name(names, one.proposed_by), actor_name(names, one.approved_by)) for one in proposals),
        calibrations=(yield from gather_revisions(run)) if "GetCalibration" in permitted else (),
        settings=settings,
        labels=(yield from gather_labels(run, plan, phases, permitted)),
        events=events,
        texts=texts,
        facility_code=deployment.self_facility_code,
        publisher=deployment.publisher,
        left_out=tuple(part for part, command in GATHERED.items() if command not in permitted),
    )


def nothing() -> Reads[tuple[Any, ...]]:
    """Return nothing, where a reader may not see more."""
    return ()
    yield


def actor_name(names: Names, id: UUID | None) -> str | None:
    """Return the name of an actor, where it is known."""
    return None if id is None else names.get((id, None))


def rows_of_run(listed: type[ListQuery[T]], run_id: UUID) -> Reads[tuple[T, ...]]:
    """Return the rows of a list that belong to a run."""
    return (yield from rows_where(listed, "run_id", (run_id,)))


def rows_where(listed: type[ListQuery[T]], column: str, ids: Iterable[UUID]) -> Reads[tuple[T, ...]]:
    """Return the rows of a list whose column has one of these values, oldest first."""
    wanted = tuple(ids)
    if not wanted:
        return ()
    page: Page[T] = yield Rows(listed.summary, listed.model_construct(limit=MOST_ROWS), (Where(column, "in", wanted),))
    return page.items


def gather_phases(run: Run, call: Call, *, tables: bool) -> Reads[tuple[ReportedPhase, ...]]:
    """Return the phases of a run, those that began first first."""
    found = yield from phases_of(run)
    reports: tuple[ReportedPhase, ...] = ()
    for phase in sorted(found, key=lambda one: (one.started_at is None, one.started_at or one.registered_at, one.id)):
        reports += ((yield from gather_phase(phase, call, tables=tables)),)
    return reports


def gather_phase(phase: Procedure, call: Call, *, tables: bool) -> Reads[ReportedPhase]:
    """Return a phase with its steps and its points."""
    expanded = yield from latest_events(phase.id, ProcedureRecipeExpanded, count=1)
    conducts = yield from records_of(OpenedConduct, procedure_id=phase.id)
    steps = yield from load_steps(phase, call)
    drawn = yield from ListProcedurePoints.model_construct(thin=DRAWN_POINTS).answer(phase, call)
    every = None
    if tables:
        every = yield from ListProcedurePoints.model_construct(limit=10_000_000).answer(phase, call)
    events: tuple[Event, ...] = yield from events_of(phase.id, *PHASE_EVENTS)
    return ReportedPhase(
        phase=phase,
        recipe_id=phase.recipe_id,
        recipe_version=expanded[0].recipe_version if expanded else None,
        takeover_count=sum(one.takeover_count for one in conducts),
        steps=steps,
        folds=fold_steps(steps.every),
        shown_steps=noteworthy_steps(steps.main),
        shown_closing=noteworthy_steps(steps.closing),
        points=drawn,
        every_point=every,
        stretches=stretches_of(events),
        events=events,
    )


def is_loop(phase: Procedure) -> bool:
    """Return whether the steps of a phase were walked in passes."""
    return phase.conduct_mode in (ConductMode.CONVERGED, ConductMode.ADVISED)


def gather_channels(run: Run) -> Reads[tuple[ChannelReport, ...]]:
    """Return the channels of a run with all their readings."""
    channels = yield from records_of(Channel, run_id=run.id)
    readings: dict[str, list[ReportedReading]] = {one.channel_name: [] for one in channels}
    cursor = None
    while channels:
        query = ListRunObservations.model_construct(limit=READINGS, cursor=cursor, order=Order.ASC)
        page: Page[BriefReading] = yield Rows(BriefReading, query, (Where("run_id", "is", run.id),))
        for one in page.items:
            series = readings.setdefault(one.channel_name, [])
            series.append(ReportedReading(one.sampled_at, one.value, one.units, one.sampling_procedure, one.simulated))
        cursor = page.next_cursor
        if cursor is None:
            break
    units = {one.channel_name: one.units for one in channels}
    return tuple(
        ChannelReport(name, units.get(name), tuple(sorted(series, key=lambda one: one.at)))
        for name, series in sorted(readings.items())
    )


def gather_datasets(run: Run, permitted: frozenset[str]) -> Reads[tuple[DatasetReport, ...]]:
    """Return the datasets of a run with their copies and checks."""
    listed = yield from rows_where(ListDatasets, "producing_run_id", (run.id,))
    datasets = yield from find_all(Dataset, [one.dataset_id for one in listed])
    copies = (yield from rows_where(ListDistributions, "dataset_id", datasets)) if "ListDistributions" in permitted else ()
    checks = (yield from rows_where(ListAttestations, "dataset_id", datasets)) if "ListAttestations" in permitted else ()
    reports = []
    for number, (id, dataset) in enumerate(datasets.items()):
        shown = number < MOST_PICTURES and "GetDatasetPreview" in permitted
        files = (yield from picture_files(dataset)) if shown else ()
        own = tuple(one for one in copies if one.dataset_id == id)
        reports.append(DatasetReport(dataset, own, tuple(one for one in checks if one.dataset_id == id), files))
    return tuple(reports)


def picture_files(dataset: Dataset) -> Reads[tuple[RegisteredFile, ...]]:
    """Return the files that a picture of a dataset may be taken of; none where all of them have changed."""
    try:
        return (yield from registered_files(dataset))
    except DatasetPreviewUnavailableError:
        return ()


def decisions_in(events: Iterable[Event], notes: Sequence[RunLogbookEntry]) -> tuple[UUID, ...]:
    """Return the decisions that events followed and that notes are about."""
    followed = [getattr(event, "decided_by_decision_id", None) for event in events]
    written = [one.decision_id for one in notes]
    return tuple(dict.fromkeys(id for id in (*followed, *written) if id is not None))


def gather_costs(
    decisions: Iterable[Decision], names: Names, permitted: frozenset[str]
) -> Reads[tuple[DecisionReport, ...]]:
    """Return decisions in the order in which they were made, with what their model calls cost."""
    made = sorted(decisions, key=lambda one: (one.decided_at, one.id))
    calls: tuple[Inference, ...] = ()
    if "ListInferences" in permitted:
        calls = yield from rows_where(ListInferences, "decision_id", [one.id for one in made])
    reports = []
    for one in made:
        own = [call for call in calls if call.decision_id == one.id]
        costs = [call.cost for call in own if call.cost is not None]
        tokens = sum((call.input_tokens or 0) + (call.output_tokens or 0) for call in own)
        cost = sum(costs) if costs else None
        reports.append(DecisionReport(one, actor_name(names, one.decided_by), len(own), tokens, cost))
    return tuple(reports)


def gather_proposals(run: Run, phases: Iterable[ReportedPhase]) -> Reads[tuple[Proposal, ...]]:
    """Return the proposals of commands on a run or its phases."""
    targets = [run.id, *(one.phase.id for one in phases), *([] if run.launch_id is None else [run.launch_id])]
    listed = yield from rows_where(ListProposals, "target_id", targets)
    return tuple((yield from find_all(Proposal, [one.proposal_id for one in listed])).values())


def gather_revisions(run: Run) -> Reads[tuple[PinnedRevision, ...]]:
    """Return the revisions that a run had pinned."""
    wanted = sorted(run.pinned_calibration_ids)
    holders = yield from members_by_key(REVISIONS, *wanted)
    found = yield from find_all(Calibration, sorted({id for ids in holders.values() for id in ids}))
    pinned = [(one, one.revision(id)) for one in found.values() for id in wanted]
    return tuple(PinnedRevision(one, revision) for one, revision in pinned if revision is not None)


def gather_settings(plan: Plan, at: datetime) -> Reads[tuple[AssetSettings, ...]]:
    """Return the settings that the assets of a plan had at a time; assets without any are left out."""
    assets = yield from find_all(Asset, sorted(plan.asset_ids))
    found = []
    for asset in assets.values():
        latest = yield from latest_events(asset.id, AssetSettingsUpdated, count=1, as_of=at)
        if latest and latest[0].settings:
            found.append(AssetSettings(asset, latest[0].settings))
    return tuple(sorted(found, key=lambda one: one.asset.name))


def parameter_lines(run: Run, plan: Plan | None, events: Iterable[Event]) -> Reads[tuple[ParameterLine, ...]]:
    """Return the parameters that govern a run, by name."""
    method = None if plan is None else (yield from find(Method, plan.method_id))
    schema = None if method is None else method.parameters_schema
    properties: Mapping[str, Any] = (schema or {}).get("properties", {})
    adjusted = {name for event in events if isinstance(event, RunAdjusted) for name in event.parameters_patch}
    planned = {} if plan is None else plan.default_parameters
    return tuple(
        ParameterLine(
            name,
            value,
            (properties.get(name, {}).get("unit") or {}).get("code"),
            planned.get(name),
            name in run.override_parameters,
            name in adjusted,
        )
        for name, value in sorted(run.effective_parameters.items())
    )


def gather_labels(
    run: Run, plan: Plan | None, phases: Iterable[ReportedPhase], permitted: frozenset[str]
) -> Reads[dict[UUID, str | None]]:
    """Return the names of the things that a report refers to."""
    assets = {id for one in phases for id in one.phase.target_asset_ids} | set(() if plan is None else plan.asset_ids)
    wanted: dict[Aggregate, set[UUID | None]] = {
        Plan.aggregate: {run.plan_id},
        Subject.aggregate: {run.subject_id},
        Campaign.aggregate: {run.campaign_id},
        Recipe.aggregate: {one.recipe_id for one in phases},
        Asset.aggregate: {*assets},
    }
    labels: dict[UUID, str | None] = {one.phase.id: one.phase.name for one in phases}
    for aggregate, ids in wanted.items():
        known = [id for id in ids if id is not None]
        if known:
            labels |= yield from names_under(aggregate, known, permitted)
    return labels
