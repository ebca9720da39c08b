"""What was different in a run: its facts beside those of another one, or of the last that completed on the same plan."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from statistics import median
from typing import Annotated, ClassVar
from uuid import UUID

from pydantic import Field

from baton.domain.access.actor import Actor
from baton.domain.access.references import names_under
from baton.domain.calibration.calibration import REVISIONS, Calibration
from baton.domain.conduct.step_list import ListedStep
from baton.domain.equipment.asset import (
    Asset,
    AssetConditionReport,
    AssetDegraded,
    AssetFaulted,
    AssetRestored,
    AssetSettingsUpdated,
)
from baton.domain.kernel import Call, LogPosition, Query
from baton.domain.procedure.procedure import ProcedureRecipeExpanded
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.recipe import Recipe
from baton.domain.run.comparison import Aspect, ComparedRow, Fact, FactKey, Facts, compare, flat_facts
from baton.domain.run.logbooks import Channel, ListRunObservations
from baton.domain.run.run import BEGINNINGS, COMPLETED, ListRuns, Run, RunBegun, RunSummary, phases_of, run
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.listing import Order, Page, Where
from baton.domain.shared.reads import (
    Reads,
    Rows,
    find,
    find_all,
    latest_events,
    members_by_key,
    permitted_commands,
    records_of,
    require,
)
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.subject.subject import Subject
from baton.domain.views.run_report import BriefReading
from baton.domain.views.run_steps import load_steps

RECENT = 20  # Runs that are called usual.
COMPARED_READINGS = 5000  # Readings of a run that its figures are taken from.


class InvalidComparisonError(Invalid, context="run"):
    """A run is compared with another one."""


class NoRunToCompareError(Conflict, context="run", reason="no_completed_run"):
    """No other run of the plan has completed."""


class Baseline(StrEnum):
    LAST_COMPLETED = "last_completed"  # The last run of the same plan that completed before.
    COMPLETED_20 = "completed_20"  # The last twenty of those.


class RunComparison(AnswerForm):
    """What is different in a run, the most surprising first."""

    run_id: UUID
    with_run_id: UUID
    """The run that it is compared with."""
    with_name: str | None
    """The name of that run."""
    usual_count: int
    """Number of completed runs that say what is usual; 0 where two runs are compared."""
    compared_count: int
    """Number of things that were compared."""
    remark: str | None
    """How little could be compared, where the plans differ; null where they do not."""
    rows: tuple[ComparedRow, ...]
    """What differs, the most surprising first."""


@run.query(
    get="/{run_id}/compare",
    name="compare_runs",
    returns=RunComparison,
    refuses=[InvalidComparisonError, NoRunToCompareError, Run.aggregate.NotFound],
)
class CompareRuns(Query[RunComparison]):
    """What was different in a run: parameters, versions, settings, calibrations, durations, readings; not why.

    Without `with_run_id`, it is compared with the last run of its plan that completed before it, or with twenty of them.
    """

    reads_projections: ClassVar[bool] = True
    of_one_moment: ClassVar[bool] = True

    with_run_id: Annotated[UUID | None, Field(description="The run to compare it with.")] = None
    baseline: Annotated[Baseline, Field(description="What it is compared with, where no other run is named.")] = (
        Baseline.LAST_COMPLETED
    )
    min_position: LogPosition | None = None

    def answer(self, run: Run, call: Call) -> Reads[RunComparison]:
        if self.with_run_id == run.id:
            raise InvalidComparisonError("This is the same run; name another one.", reason="same_run")
        others = yield from self._others(run)
        permitted = yield from permitted_commands()
        this = yield from facts_of(run, call, permitted)
        told: list[Facts] = []
        for other in others:
            told += [(yield from facts_of(other, call, permitted))]
        usual = told if self.baseline is Baseline.COMPLETED_20 and self.with_run_id is None else []
        common = len(this.keys() & told[0].keys())
        every = len(this.keys() | told[0].keys())
        remark = f"The runs have different plans; {common} of {every} things could be compared."
        return RunComparison(
            run_id=run.id,
            with_run_id=others[0].id,
            with_name=others[0].name,
            usual_count=len(usual),
            compared_count=common,
            remark=None if others[0].plan_id == run.plan_id else remark,
            rows=tuple(compare(this, told[0], usual)),
        )

    def _others(self, run: Run) -> Reads[list[Run]]:
        """Return the run that is named or, the last first, those of the same plan that completed and began before."""
        if self.with_run_id is not None:
            return [(yield from require(Run, self.with_run_id))]
        count = RECENT if self.baseline is Baseline.COMPLETED_20 else 1
        query = ListRuns.model_construct(limit=count, order=Order.DESC)
        where = (
            Where("plan_id", "is", run.plan_id),
            Where("status", "is", COMPLETED.value),
            Where("created_at", "before", run.created_at),
        )
        page: Page[RunSummary] = yield Rows(RunSummary, query, where)
        found = yield from find_all(Run, [one.run_id for one in page.items])
        if not found:
            detail = "No run of this plan completed before it; name the run to compare it with in `with_run_id`."
            raise NoRunToCompareError(detail)
        return list(found.values())


def facts_of(run: Run, call: Call, permitted: frozenset[str]) -> Reads[Facts]:
    """Return what a run says under each key, as far as the caller may see it."""
    [began, *_] = yield from latest_events(run.id, *BEGINNINGS, count=1)
    facts: dict[FactKey, Fact] = dict(flat_facts(Aspect.PARAMETER, run.effective_parameters))
    facts[FactKey(Aspect.HOLD, "")] = Fact(run.hold_count)
    facts[FactKey(Aspect.DRIVER, "")] = Fact((yield from driver_of(run, began)))
    if "ReadEventTexts" in permitted:
        for caution in began.acknowledged_cautions:
            facts[FactKey(Aspect.CAUTION, caution.text_excerpt)] = Fact("in force")
    if "GetSubject" in permitted and run.subject_id is not None:
        subject = yield from find(Subject, run.subject_id)
        facts[FactKey(Aspect.SAMPLE, "")] = Fact(None if subject is None else subject.name)
    if "GetPlan" in permitted:
        facts |= yield from plan_facts(run, began.occurred_at, permitted)
    if "GetCalibration" in permitted:
        facts |= yield from calibration_facts(run)
    if "GetProcedure" in permitted:
        facts |= yield from phase_facts(run, call, permitted)
    if "ListRunObservations" in permitted:
        facts |= yield from reading_facts(run)
    return facts


def driver_of(run: Run, began: RunBegun) -> Reads[str]:
    """Return what kind of caller began a run; nobody is named."""
    if run.trigger_source is not None:
        return run.trigger_source
    actor = yield from find(Actor, began.caller_id)
    return "the service" if actor is None else f"a {actor.kind.value.replace('_', ' ')}"


def plan_facts(run: Run, at: datetime, permitted: frozenset[str]) -> Reads[dict[FactKey, Fact]]:
    """Return the plan of a run, and the settings and conditions of its assets when the run began."""
    plan = yield from find(Plan, run.plan_id)
    if plan is None:
        return {}
    facts = {FactKey(Aspect.PLAN, "plan"): Fact(plan.name)}
    assets = (yield from find_all(Asset, sorted(plan.asset_ids))) if "GetAsset" in permitted else {}
    for asset in assets.values():
        latest = yield from latest_events(asset.id, AssetSettingsUpdated, count=1, as_of=at)
        settings = latest[0].settings if latest else {}
        facts |= dict(flat_facts(Aspect.SETTING, settings, f"{asset.name}: "))
        found: tuple[AssetConditionReport, ...]
        found = yield from latest_events(asset.id, AssetDegraded, AssetFaulted, AssetRestored, count=1, as_of=at)
        condition = found[0].condition.value if found else "Nominal"
        facts[FactKey(Aspect.CONDITION, asset.name)] = Fact(condition)
    return facts


def calibration_facts(run: Run) -> Reads[dict[FactKey, Fact]]:
    """Return the values of the calibrations that a run had pinned."""
    wanted = sorted(run.pinned_calibration_ids)
    holders = yield from members_by_key(REVISIONS, *wanted)
    found = yield from find_all(Calibration, sorted({id for ids in holders.values() for id in ids}))
    facts: dict[FactKey, Fact] = {}
    targets = yield from find_all(Asset, [one.target_id for one in found.values()])
    for one in found.values():
        target = targets.get(one.target_id)
        named = one.quantity.value if target is None else f"{one.quantity.value} of {target.name}"
        for revision in filter(None, map(one.revision, wanted)):
            facts |= dict(flat_facts(Aspect.CALIBRATION, revision.value, f"{named}: "))
    return facts


def phase_facts(run: Run, call: Call, permitted: frozenset[str]) -> Reads[dict[FactKey, Fact]]:
    """Return what the phases of a run did, how often, and how long it took."""
    phases = yield from phases_of(run)
    recipes = [one.recipe_id for one in phases if one.recipe_id is not None]
    names = yield from names_under(Recipe.aggregate, recipes, permitted)
    facts: dict[FactKey, Fact] = {}
    seen: Counter[str] = Counter()
    for number, phase in enumerate(phases, 1):
        name = (names.get(phase.recipe_id) if phase.recipe_id is not None else None) or f"phase {number}"
        seen[name] += 1
        named = name if seen[name] == 1 else f"{name}, {seen[name]}"
        expanded = yield from latest_events(phase.id, ProcedureRecipeExpanded, count=1)
        version = expanded[0].recipe_version if expanded else None
        facts[FactKey(Aspect.RECIPE, named)] = Fact("no recipe" if version is None else f"version {version}")
        steps = yield from load_steps(phase, call)
        facts |= step_facts(steps.every, named)
    return facts


def step_facts(steps: Iterable[ListedStep], phase: str) -> dict[FactKey, Fact]:
    """Return what the steps of a phase did, by their kind and target."""
    kinds: dict[tuple[str, str], list[ListedStep]] = {}
    facts: dict[FactKey, Fact] = {}
    for one in steps:
        kinds.setdefault((one.step.kind, target_of(one)), []).append(one)
    for (kind, target), same in kinds.items():
        named = f"{kind} {target} in {phase}"
        facts[FactKey(Aspect.STEPS, named)] = Fact(len(same))
        seconds = [one.seconds for one in same if one.seconds is not None]
        if seconds:
            aspect = Aspect.WAIT if kind == "check" else Aspect.DURATION
            facts[FactKey(aspect, named)] = Fact(median(seconds), "s", len(seconds))
        if kind == "setpoint":
            facts[FactKey(Aspect.SETPOINT, f"{target} in {phase}")] = setpoint_fact(same)
        deviating = sum(one.deviates for one in same)
        if deviating:
            facts[FactKey(Aspect.DEVIATION, f"{target} in {phase}")] = Fact(deviating)
        for one in same:
            if one.captured_value is not None and one.capture_name is not None:
                facts[FactKey(Aspect.CAPTURE, f"{one.capture_name} in {phase}")] = Fact(one.captured_value, one.unit)
    return facts


def target_of(step: ListedStep) -> str:
    """Return what a step acts on: a signal, an action or a program."""
    said = step.step
    return str(getattr(said, "address", None) or getattr(said, "name", None) or next(iter(getattr(said, "command", ())), ""))


def setpoint_fact(steps: Iterable[ListedStep]) -> Fact:
    """Return the values that a signal was set to: the one of it, or the first and the last of several."""
    values = [getattr(one.step, "value", None) for one in steps]
    unit = next((getattr(one.step, "unit", None) for one in steps), None)
    plain = [one if isinstance(one, str | int | float) else str(one) for one in values]
    if len(set(plain)) == 1:
        return Fact(plain[0], unit)
    return Fact(f"{plain[0]} to {plain[-1]}, {len(set(plain))} values", unit)


def reading_facts(run: Run) -> Reads[dict[FactKey, Fact]]:
    """Return the middle of the readings of each channel; those of long runs by the first thousands."""
    channels = yield from records_of(Channel, run_id=run.id)
    if not channels:
        return {}
    query = ListRunObservations.model_construct(limit=COMPARED_READINGS, order=Order.ASC)
    page: Page[BriefReading] = yield Rows(BriefReading, query, (Where("run_id", "is", run.id),))
    series: dict[str, list[float]] = {}
    for one in page.items:
        series.setdefault(one.channel_name, []).append(one.value)
    units = {one.channel_name: one.units for one in channels}
    return {FactKey(Aspect.READING, name): Fact(median(values), units.get(name)) for name, values in series.items()}
