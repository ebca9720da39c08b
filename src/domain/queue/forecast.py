"""The forecast of an item: which gates would refuse it now, how long it takes, and when it would start and end. The turn of
an item is judged by the same rule as the view shows."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from pydantic import Field

from baton.domain.conduct.conduct import conducted_assets, refuse_rivals, with_assets, witnessed_rivals
from baton.domain.conduct.estimates import (
    ConductTimePort,
    Estimate,
    conduct_estimate,
    estimate_walk,
    first_position,
    sum_estimates,
)
from baton.domain.conduct.progress import ConductProgress, RunConductProgress
from baton.domain.conduct.rehearsal import RehearsalPart, RehearsalsBusyError
from baton.domain.conduct.run_conduct import load_opening, run_estimate
from baton.domain.kernel import Call
from baton.domain.procedure.procedure import Procedure
from baton.domain.queue.items import AHEAD, RUNNING, QueueItem
from baton.domain.queue.queue import ACTIVE, Queue
from baton.domain.recipe.template_versions import TargetChangedError, refuse_changed
from baton.domain.run.run import Run
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.gates import GateReport
from baton.domain.shared.reads import Reads, ask, find, find_all, record_of
from baton.domain.shared.refusals import Refusal
from baton.domain.target.target_checks import load_templates
from baton.domain.target.target_gates import PHASE, RUN, AskedTarget, Expansions, arranged_walk, ask_plan, ask_recipe, expand
from baton.domain.target.target_rehearsal import load_parts, rehearse_parts
from baton.domain.target.targets import ConductPlan, ConductRecipe, with_filled_names

FORECAST = 5  # Items ahead that have a forecast.


class ClosedQueueGate(AnswerForm):
    """A gate that would refuse the item now, with the refusal; one that may pass only blocks it."""

    gate: str
    code: str
    """The class name of the refusal."""
    reason: str | None
    """The machine-readable cause of the refusal."""
    detail: str
    facts: dict[str, Any] | None
    subjects: Annotated[tuple[UUID, ...], Field(description="The ids of what the gate asks about.")]
    may_pass: Annotated[bool, Field(description="Whether the item waits for it; if not, the item would be refused.")]
    """Whether the item waits for it; if not, the item would be refused."""


class ItemForecast(AnswerForm):
    """What is known now about an item that waits.

    A time is null where it is not known: a gate is closed, the queue is held or will be, or an item before it takes a time
    that nobody knows.
    """

    item_id: UUID
    closed_gates: tuple[ClosedQueueGate, ...]
    """The gates that would refuse it now."""
    expected_start: datetime | None
    """When it is expected to start."""
    expected_end: datetime | None
    """When it is expected to end."""
    estimate: Annotated[Estimate | None, Field(description="How long it takes. Null where its steps cannot be known.")]
    may_stop_at: str | None
    """Where a rehearsal finds that it stops or may stop, in a sentence; null where it goes through, or was not rehearsed."""


class ItemJudgement(NamedTuple):
    """The verdicts of all gates on an item, and how long it takes."""

    report: GateReport
    estimate: Estimate | None
    target: ConductPlan | ConductRecipe
    asked: AskedTarget

    @property
    def refusal(self) -> Refusal | None:
        """The refusal that counts: that the target has changed, else one that does not pass by itself, else the first; None
        where all gates are open."""
        refusals = self.report.refusals
        changed = (one for one in refusals if isinstance(one, TargetChangedError))
        return next(iter((*changed, *(one for one in refusals if not one.passing), *refusals)), None)

    @property
    def closed_gates(self) -> tuple[ClosedQueueGate, ...]:
        closed = [verdict for verdict in self.report.verdicts if not verdict.passed]
        return tuple(
            ClosedQueueGate(may_pass=one.passing, **{name: getattr(verdict, name) for name in SAID})
            for verdict, one in zip(closed, self.report.refusals, strict=True)
        )


SAID = ("gate", "code", "reason", "detail", "facts", "subjects")


def judge_item(item: QueueItem, running: QueueItem | None, call: Call) -> Reads[ItemJudgement]:
    """Ask every gate whether an item could start now; what the running item of its own queue has is free in its turn."""
    target, report = with_filled_names(item.aim, call.now, item.number), GateReport()
    templates = (yield from load_templates([target])).of(target)
    commands = RUN if isinstance(target, ConductPlan) else PHASE
    changed = partial(refuse_changed, item.versions, templates)
    report.ask("target_unchanged", commands, changed, (template.id for template in templates))
    match target:
        case ConductPlan():
            asked = yield from ask_plan(report, target, call)
        case ConductRecipe():
            asked = yield from ask_recipe(report, target, call)
    asset_ids = asked.asset_ids
    found = yield from conducted_assets(asset_ids)
    holders: dict[UUID, Procedure | Run] = {**(yield from witnessed_rivals(asset_ids, call.now))}
    holders |= {id: rival for id, rival in found.items() if not is_part_of(rival, running)}
    rivals = yield from with_assets(holders)
    report.ask("targets_unclaimed", PHASE, partial(refuse_rivals, rivals), asset_ids)
    return ItemJudgement(report, (yield from target_estimate(asked.expansions)), target, asked)


def item_estimate(item: QueueItem, call: Call) -> Reads[Estimate | None]:
    """Return how long an item takes, or the rest of one that runs; None where it has ended, or its steps are not known."""
    if item.status is RUNNING:
        return (yield from running_estimate(item, call.now))
    if item.status not in AHEAD:
        return None
    target, report = with_filled_names(item.aim, call.now, item.number), GateReport()
    if isinstance(target, ConductPlan):
        expansions = (yield from ask_plan(report, target, call)).expansions
    else:
        expansions = [(target, (yield from report.ask_reads("steps_prepared", PHASE, expand(target, {}))))]
    return (yield from target_estimate(expansions))


def is_part_of(procedure: Procedure, running: QueueItem | None) -> bool:
    """Return whether a procedure belongs to the running item of a queue."""
    if running is None:
        return False
    return procedure.id == running.procedure_id or (running.run_id is not None and procedure.parent_run_id == running.run_id)


def target_estimate(expansions: Expansions) -> Reads[Estimate | None]:
    """Return how long the procedures of a target take together; None where the steps of one are not known."""
    parts = []
    for what, steps in expansions:
        if steps is None:
            return None
        walk = arranged_walk(what.conduct_command(), steps)
        durations = yield from ask(ConductTimePort.step_durations, walk.keys)
        parts.append(estimate_walk(walk, durations, first_position(walk)))
    return sum_estimates(parts, None) if parts else None


def forecast_queue(
    queue: Queue, call: Call, count: int = FORECAST, *, rehearsed: bool = True
) -> Reads[tuple[ItemForecast, ...]]:
    """Return the forecast of the first few items that wait, and where they may stop if they are rehearsed."""
    running, forecasts = queue.running, []
    free_at = call.now if running is None else (yield from running_end(running, call.now))
    judgements, parts = [], list[RehearsalPart]()
    for number, item in enumerate(queue.ahead[:count]):
        judgement = yield from judge_item(item, running, call)
        judgements.append((item, judgement))
        if rehearsed:
            parts += yield from load_parts(GateReport(), judgement.target, judgement.asked, call, number)
    stops = yield from foreseen_stops(parts, call)
    for number, (item, judgement) in enumerate(judgements):
        closed, estimate = judgement.closed_gates, judgement.estimate
        known = free_at is not None and not closed and queue.status is ACTIVE
        starts = max(free_at, item.not_before or free_at) if known and free_at is not None else None
        seconds = None if estimate is None else estimate.remaining_seconds
        ends = None if starts is None or seconds is None else starts + timedelta(seconds=seconds)
        times: dict[str, Any] = {"expected_start": starts, "expected_end": ends, "estimate": estimate}
        times |= {"closed_gates": closed, "may_stop_at": stops.get(number)}
        forecasts.append(ItemForecast(item_id=item.item_id, **times))
        free_at = None if item.pause_after else ends
    return tuple(forecasts)


def foreseen_stops(parts: Sequence[RehearsalPart], call: Call) -> Reads[dict[int, str]]:
    """Return where items that would be walked one after the other stop or may stop, by their numbers; nothing where other
    rehearsals take too long."""
    if not parts:
        return {}
    try:
        found = yield from rehearse_parts(parts, call.now)
    except RehearsalsBusyError:
        return {}
    stops = {}
    for number in {part.group for part in parts}:
        own = {index for index, part in enumerate(parts) if part.group == number}
        if (step := found.rehearsed.trouble_of(own)) is not None:
            stops[number] = step.sentence(parts[step.part].name)
    return stops


def running_end(item: QueueItem, now: datetime) -> Reads[datetime | None]:
    """Return when the running item ends, or None where that is not known."""
    estimate = yield from running_estimate(item, now)
    return None if estimate is None else estimate.ends_at


def running_estimate(item: QueueItem, now: datetime) -> Reads[Estimate | None]:
    """Return how long the rest of the running item takes, or None where that is not known."""
    return (yield from live_estimate(item.procedure_id, item.run_id, now))


def live_estimate(procedure_id: UUID | None, run_id: UUID | None, now: datetime) -> Reads[Estimate | None]:
    """Return how long the rest of a live procedure or, without one, of a live run takes, or None where that is not known."""
    if procedure_id is not None:
        procedure = yield from find(Procedure, procedure_id)
        progress = yield from record_of(ConductProgress, procedure_id=procedure_id)
        if procedure is None or progress is None:
            return None
        return (yield from conduct_estimate(procedure, progress, now))
    run = yield from find(Run, run_id)
    if run is None or run.live_conduct_id is None:
        return None
    opening = yield from load_opening(run, run.live_conduct_id)
    phases = yield from find_all(Procedure, [phase.procedure_id for phase in opening.phases])
    row = yield from record_of(RunConductProgress, run_id=run.id, conduct_id=run.live_conduct_id)
    return None if row is None else (yield from run_estimate(run, opening, phases, row, now))
