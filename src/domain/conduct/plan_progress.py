"""Where the Bluesky plan of a step is, by what its executor last said of it and by what a witness of its run has seen."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from baton.domain.conduct.ledger import LedgerPort, ListPlace, StepRow
from baton.domain.conduct.messages import Mark
from baton.domain.conduct.progress import ConductPhase, ConductProgress
from baton.domain.kernel import Value
from baton.domain.procedure.procedure import Procedure
from baton.domain.recipe.offered_plans import PLAN_PREFIX, PlanExecutorCatalogue
from baton.domain.run.witness import WitnessContact
from baton.domain.shared.reads import Reads, ask, record_of, records_of
from baton.domain.shared.text import FreeText
from baton.domain.step.plan_steps import PlanName, PlanNews

SILENT_AFTER = timedelta(seconds=120)  # Without an answer, a change of state or a document, a plan counts as silent.
Place = tuple[UUID, int, bool, int]  # A conduct, its pass (0 outside passes), whether closing, and the index of the step.


class PlacedPlanNews(PlanNews):
    """What a worker last heard of the plan of a step, in the row of the conduct's progress."""

    conduct_id: UUID
    iteration_index: int
    closing: bool
    step_index: int

    @property
    def place(self) -> Place:
        return self.conduct_id, self.iteration_index, self.closing, self.step_index


class PlanStepView(Value):
    """A Bluesky plan that a step has carried out: what it is found by, how far it is, and who said so."""

    executor: str
    """Its executor, by its name in PLAN_EXECUTORS."""
    plan: str
    """The name of the Bluesky plan."""
    key: UUID | None
    """The key that the plan was submitted under; a queueserver shows it in the item's meta."""
    job_id: str | None
    """The executor's id of it: the task of a blueapi, the item of a queueserver."""
    phase: str | None
    """How far the executor last said that it is."""
    message: FreeText | None
    """What the executor last said about it."""
    answered_at: datetime | None
    """When the executor last answered about it."""
    environment_then: str | None
    """The environment that it was submitted to."""
    environment_now: str | None
    """The environment that is open there now."""
    executor_now: str | None
    """What the executor says now that it is doing."""
    run_uids: tuple[str, ...]
    """The uids of its Bluesky runs, as far as they are known."""
    events: int | None
    """Number of events that a witness saw; null where none speaks of it."""
    num_points: int | None
    """Number of events that its start document announces."""
    last_document: str | None
    """The kind of document that a witness saw last."""
    last_document_at: datetime | None
    """When the witness saw that document."""
    exit_status: str | None
    """What its stop document says, which is evidence and settles nothing by itself."""
    silent_since: datetime | None = None
    """Since when there was no answer, change or document; null unless for 120 s."""

    text: FreeText = ""
    """The plan and how far it is, in words."""
    evidence: FreeText = ""
    """What is known to a person who says whether the plan was carried out, in words."""


def add_words(view: PlanStepView) -> PlanStepView:
    """Return the view of a plan with its sentences."""
    found_as = "" if view.job_id is None else f" as {view.job_id}"
    text = f"plan {view.plan} at {view.executor}{found_as}: {plan_progress_text(view)}"
    seen = "" if view.last_document_at is None else f" at {view.last_document_at:%Y-%m-%d %H:%M:%S} UTC"
    parts = [
        f"{text}; key {view.key}",
        f"environment then {view.environment_then or 'unknown'}, now {view.environment_now or 'none'}",
        f"runs {', '.join(view.run_uids)}" if view.run_uids else "no run is known",
        *([f"last document {view.last_document}{seen}"] if view.last_document else []),
        *([f"its stop document says {view.exit_status}"] if view.exit_status else []),
        f"the executor says now: {view.executor_now or 'nothing'}",
    ]
    return view.model_copy(update={"text": text, "evidence": "; ".join(parts)})


def plan_progress_text(view: PlanStepView) -> str:
    """Return how far a plan is, in words."""
    if view.events is None:
        words = "its progress is not known"
    else:
        words = f"{view.events} events" if view.num_points is None else f"{view.events} of {view.num_points} events"
    return words if view.silent_since is None else f"{words}, silent since {view.silent_since:%H:%M:%S} UTC"


def place_now(progress: ConductProgress) -> Place | None:
    """Return the place of the step that a conduct is at; None between two steps."""
    if progress.phase not in (ConductPhase.WALKING, ConductPhase.CLOSING) or progress.step_index is None:
        return None
    closing = progress.phase == ConductPhase.CLOSING
    return progress.conduct_id, 0 if closing else progress.iteration_index or 0, closing, progress.step_index


def news_of(progress: ConductProgress | None, place: Place | None) -> PlacedPlanNews | None:
    """Return what was last heard of the plan of a step; None where the step is no plan, or nothing was heard yet."""
    if progress is None or progress.plan_step is None or place is None:
        return None
    news = PlacedPlanNews.model_validate(progress.plan_step)
    return news if news.place == place else None


def running_plan(progress: ConductProgress, now: datetime) -> Reads[PlanStepView | None]:
    """Return the plan that a conduct waits for; None where it waits for none."""
    news = news_of(progress, place_now(progress))
    if news is None:
        return None
    view = yield from describe_plan(PlanName(news.name), news.key, news, {})
    heard = max(at for at in (news.changed_at, view.answered_at, view.last_document_at) if at is not None)
    return view if now - heard < SILENT_AFTER else add_words(view.model_copy(update={"silent_since": heard}))


def unknown_plan(procedure: Procedure) -> Reads[PlanStepView | None]:
    """Return the plan of the step whose outcome a person is to say; None where there is none, or it is no plan."""
    if (step := procedure.unknown_step) is None:
        return None
    at = ListPlace(step.iteration_index, False, step.step_index, 1)
    rows = (yield from ask(LedgerPort.ledger_part, (step.conduct_id,), at)).rows
    progress = yield from record_of(ConductProgress, procedure_id=procedure.id)
    return (yield from recorded_plan([row for row in rows if row.step_index == step.step_index], at, progress))


def recorded_plan(rows: Sequence[StepRow], at: ListPlace, progress: ConductProgress | None) -> Reads[PlanStepView | None]:
    """Return the plan of a step by its rows in the ledger; None where it is none, or was not begun."""
    begun = next((row for row in reversed(rows) if row.mark == Mark.IN_FLIGHT), None)
    if begun is None or not str(begun.payload.get("name", "")).startswith(PLAN_PREFIX):
        return None
    ended = next((row.payload for row in rows if row.mark == Mark.OUTCOME), {})
    news = news_of(progress, (begun.conduct_id, at.iteration_index, at.closing, begun.step_index))
    name, key = PlanName(begun.payload["name"]), begun.payload.get("submission_key")
    said = {"token": begun.payload.get("token", {}), **ended.get("facts", {})}
    job = {"job_id": ended["job_id"]} if "job_id" in ended else {}
    return (yield from describe_plan(name, None if key is None else UUID(key), news, {**said, **job}))


def describe_plan(name: PlanName, key: UUID | None, news: PlanNews | None, said: Mapping[str, Any]) -> Reads[PlanStepView]:
    """Return a plan as it is shown, by what a worker heard of it, its outcome, its witness and the row of its executor."""
    contacts = () if key is None else (yield from records_of(WitnessContact, submission_key=key))
    seen = max(contacts, key=lambda one: one.heard_at, default=None)
    row = yield from record_of(PlanExecutorCatalogue, executor=name.executor)
    token = said.get("token", {})
    told = (*said.get("run_uids", ()), *(() if news is None else news.run_uids))
    view = PlanStepView(
        executor=name.executor,
        plan=name.plan,
        key=key,
        job_id=said.get("job_id") or (token.get("task_id") if news is None else news.job_id),
        phase=said.get("phase") or (None if news is None else news.phase),
        message=said.get("executor_says") or (None if news is None else news.message) or None,
        answered_at=None if news is None else news.answered_at,
        environment_then=token.get("environment_id") or token.get("environment") if news is None else news.environment,
        environment_now=None if row is None else row.environment,
        executor_now=None if row is None else row.trouble or row.activity,
        run_uids=tuple(dict.fromkeys((*told, *(one.document_uid for one in contacts if one.document_uid is not None)))),
        events=None if seen is None else int(seen.events.get("primary", 0)),
        num_points=None if seen is None else seen.num_points,
        last_document=None if seen is None else seen.last_document,
        last_document_at=None if seen is None else seen.last_document_at,
        exit_status=None if seen is None else seen.exit_status,
    )
    return add_words(view)
