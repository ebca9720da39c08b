"""The steps of a procedure one by one: what each of them does, and what the ledger says about it. Lists of thousands are
read in parts; an outline shows the whole of them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, get_args
from uuid import UUID

from pydantic import Field

from baton.domain.conduct.ends import UNKNOWN_OUTCOMES
from baton.domain.conduct.ledger import LedgerPart, LedgerPort, ListPlace, StepRow, WalkedSpan
from baton.domain.conduct.messages import SKIPPED, Mark, describe_step
from baton.domain.conduct.plan_progress import PlanStepView, recorded_plan
from baton.domain.conduct.points import PlacedPoint, PointPlan
from baton.domain.conduct.progress import ConductPhase, ConductProgress, OpenedConduct
from baton.domain.conduct.views import LOOPS
from baton.domain.kernel import Call, Query
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import Procedure, procedure
from baton.domain.recipe.steps import Step
from baton.domain.shared.annotations import Seconds
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import Reads, ask, events_of, record_of
from baton.domain.step.plan_steps import plan_name
from baton.domain.step.results import StepVerdict, shown_value
from baton.domain.step.step_words import address_of_step, addresses_in, signal_names, step_words

BEFORE_CURRENT = 6  # One part in so many of the steps that are shown lies before the current one.

OpeningEvent = procedures.ProcedureStarted | procedures.ProcedureResumed | procedures.ProcedureAbortRequested


class StepState(StrEnum):
    AHEAD = "ahead"  # Not begun; where the procedure has ended, left undone.
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  # A person left it out, or ended its wait.
    UNKNOWN = "unknown"  # Begun; whether it was done is not known.


class ListedSteps(NamedTuple):
    """A part of a list of steps, and how many there are in both lists."""

    steps: Sequence[Step]
    step_count: int
    closing_count: int


class WalkedPart(NamedTuple):
    """The part of a list that one conduct walked or walks: from its first step on, those before it that it left out, and
    the last one that it came to."""

    conduct_id: UUID
    first: int = 0
    skipped_count: int = 0
    reached: int | None = None


class ListedStep(AnswerForm):
    """One step, what the latest conduct that came to it made of it, and how long it took."""

    step_index: int
    label: str
    """What the step does, in a few words."""
    words: str
    """What the step does, in the words of its equipment; the address of its signal is in the step."""
    step: Step
    """The step as it is conducted."""
    state: StepState
    """Whether the step is ahead, running, done, failed, skipped or unknown."""
    conduct_id: UUID | None = None
    attempt_count: Annotated[int, Field(description="The number of times that it was begun.")] = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    seconds: Annotated[float | None, Seconds, Field(description="How long it took, in seconds.")] = None
    reading: Annotated[Any, Field(description="What it read, in the unit beside it.")] = None
    unit: str | None = None
    capture_name: str | None = None
    captured_value: float | None = None
    """The number that it captured, in the unit beside it."""
    deviates: Annotated[bool, Field(description="Whether a setpoint read otherwise than it was written.")] = False
    error_class: str | None = None
    message: str | None = None
    plan_step: PlanStepView | None = None
    """The Bluesky plan of a step that is running, or whose outcome is unknown."""


class StepStretch(AnswerForm):
    """Steps in a row that are in the same state."""

    state: StepState
    """Whether the steps are ahead, running, done, failed, skipped or unknown."""
    first_index: int
    """The index of the first of them, counted from 0."""
    count: int
    """Number of steps."""


class ProcedureSteps(AnswerForm):
    """A part of the steps of a procedure, and in which state the whole list is."""

    procedure_id: UUID
    conduct_id: UUID | None
    closing: bool
    iteration_index: Annotated[int | None, Field(description="The index of the pass that is shown; null outside passes.")]
    step_count: int
    closing_count: int
    current_index: Annotated[
        int | None, Field(description="The index of the step that the live conduct is at; null where it is at none here.")
    ]
    outline: tuple[StepStretch, ...]
    """The state of every step of the list, as stretches of steps in the same state."""
    items: tuple[ListedStep, ...]


class StepListPort(Protocol):
    """Reads the steps of procedures."""

    async def listed_steps(self, procedure_id: UUID, pinned: bool, place: ListPlace) -> ListedSteps:
        """Return a part of the steps that a procedure is conducted by or, unless they are pinned, was registered with."""

    async def point_plan(self, procedure_id: UUID, loops: bool) -> PointPlan:
        """Return what the pinned steps of a procedure say of the points that it measures."""

    async def known_points(self, spans: tuple[WalkedSpan, ...]) -> Sequence[PlacedPoint]:
        """Return the closed points of conducts that were kept, so that reading continues behind them."""

    async def keep_points(self, spans: tuple[WalkedSpan, ...], points: Sequence[PlacedPoint]) -> None:
        """Keep all the closed points of conducts in memory for a while."""


@procedure.query(get="/{procedure_id}/steps", returns=ProcedureSteps)
class ListProcedureSteps(Query[ProcedureSteps]):
    """The steps of a procedure, those around the current one or from one on, with what was done about each.

    Without a conduct they are those of its recipe. The outline tells the state of every step of the list.
    """

    of_one_moment: ClassVar[bool] = True

    closing: Annotated[bool, Field(description="Whether to show the closing steps.")] = False
    iteration_index: Annotated[
        int | None, Field(ge=1, le=2**31 - 1, description="The index of the pass, counted from 1; left out, the latest.")
    ] = None
    first_index: Annotated[
        int | None,
        Field(ge=0, le=2**31 - 1, description="The index of the first step, counted from 0; left out, near the current."),
    ] = None
    limit: Annotated[int, Field(ge=1, le=200)] = 60

    def answer(self, procedure: Procedure, call: Call) -> Reads[ProcedureSteps]:
        progress = yield from record_of(ConductProgress, procedure_id=procedure.id)
        openings: tuple[OpeningEvent, ...] = yield from events_of(procedure.id, *get_args(OpeningEvent))
        conduct_ids = tuple(dict.fromkeys(one.conduct_id for one in openings if one.conduct_id is not None))
        passes = 0 if self.closing or procedure.conduct_mode not in LOOPS else procedure.iteration_count
        place = ListPlace(self.iteration_index or passes, self.closing, self.first_index or 0, self.limit)
        current = None if progress is None else current_step(procedure, progress, place)
        if self.first_index is None and conduct_ids:
            place = yield from place_around(place, current, conduct_ids)
        listed = yield from ask(StepListPort.listed_steps, procedure.id, bool(conduct_ids), place)
        ledger = yield from ask(LedgerPort.ledger_part, conduct_ids, place)
        deployment = yield from ask(DeploymentPort.deployment)
        book = StepBook.of(openings, place, ledger, current)
        plans: dict[int, PlanStepView | None] = {}
        for index, step in enumerate(listed.steps, place.first):
            if plan_name(step) is not None and book.state(index) in (StepState.RUNNING, StepState.UNKNOWN):
                plans[index] = yield from recorded_plan(book.rows_of(index), place, progress)
        names = yield from signal_names(addresses_in(listed.steps))
        facts = [facts_in(book.rows_of(index)) for index, _ in enumerate(listed.steps, place.first)]
        units = {
            address_of_step(step): known["unit"] for step, known in zip(listed.steps, facts, strict=True) if "unit" in known
        }
        items = [
            ListedStep(
                step_index=index,
                label=describe_step(step, deployment.action_timeout, deployment.compute_timeout).label,
                words=step_words(step, names, units.get(address_of_step(step))),
                step=step,
                state=book.state(index),
                **known,
                plan_step=plans.get(index),
            )
            for index, (step, known) in enumerate(zip(listed.steps, facts, strict=True), place.first)
        ]
        skipped = {one.step_index for one in procedure.skipped_waits if one.iteration_index == place.iteration_index}
        count = listed.closing_count if self.closing else listed.step_count
        return ProcedureSteps(
            procedure_id=procedure.id,
            conduct_id=procedure.last_conduct_id,
            closing=self.closing,
            iteration_index=place.iteration_index or None,
            step_count=listed.step_count,
            closing_count=listed.closing_count,
            current_index=current,
            outline=tuple(stretches(book.states(count, set() if self.closing else skipped))),
            items=tuple(items),
        )


def current_step(procedure: Procedure, progress: ConductProgress, place: ListPlace) -> int | None:
    """Return the step of a list that the live conduct is at, or None."""
    phase = ConductPhase.CLOSING if place.closing else ConductPhase.WALKING
    live = procedure.live_conduct_id == progress.conduct_id and progress.phase == phase.value
    same_pass = place.closing or (progress.iteration_index or 0) == place.iteration_index
    return progress.step_index if live and same_pass else None


def place_around(place: ListPlace, current: int | None, conduct_ids: tuple[UUID, ...]) -> Reads[ListPlace]:
    """Return the part of a list around its current step, or around the last one that a conduct came to."""
    opened = yield from record_of(OpenedConduct, conduct_id=conduct_ids[-1])
    at = current
    if at is None:
        reached = (yield from ask(LedgerPort.ledger_part, conduct_ids, place._replace(limit=0))).reached
        at = next((reached[id] for id in reversed(conduct_ids) if id in reached), 0)
    first = at - place.limit // BEFORE_CURRENT
    if opened is not None:
        first = min(first, (opened.closing_count if place.closing else opened.step_count) - place.limit)
    return place._replace(first=max(0, first))


class StepBook(NamedTuple):
    """What the conducts of a procedure made of one list of its steps: the parts that they walked, oldest first."""

    parts: Sequence[WalkedPart]
    rows: Mapping[tuple[UUID, int], Sequence[StepRow]]
    failed: Sequence[int]
    current: int | None

    @classmethod
    def of(cls, openings: Iterable[OpeningEvent], place: ListPlace, ledger: LedgerPart, current: int | None) -> "StepBook":
        rows: dict[tuple[UUID, int], list[StepRow]] = {}
        for row in ledger.rows:
            rows.setdefault((row.conduct_id, row.step_index), []).append(row)
        return cls(walked_parts(openings, place, ledger.reached), rows, ledger.failed, current)

    def part_at(self, index: int) -> WalkedPart | None:
        """Return the latest part that a step belongs to."""
        return next((one for one in reversed(self.parts) if one.first - one.skipped_count <= index), None)

    def rows_of(self, index: int) -> Sequence[StepRow]:
        """Return what the ledger says about a step, of the latest conduct that it is part of."""
        part = self.part_at(index)
        return () if part is None else self.rows.get((part.conduct_id, index), ())

    def state(self, index: int) -> StepState:
        """Return the state of a step whose rows are known."""
        return state_in(self.rows_of(index), current=index == self.current)

    def states(self, count: int, skipped: set[int]) -> list[StepState]:
        """Return the states of a whole list. Up to the last step that a conduct came to all are done, but for those that a
        person skipped and for closing steps that failed."""
        found = [StepState.AHEAD] * count
        for part in self.parts:
            found[part.first - part.skipped_count :] = [StepState.SKIPPED] * part.skipped_count
            found += [StepState.AHEAD] * (count - part.first)
            if part.reached is not None and part.reached >= part.first:
                found[part.first : part.reached + 1] = [StepState.DONE] * (part.reached + 1 - part.first)
        for index in skipped:
            if index < count and found[index] is StepState.DONE:
                found[index] = StepState.SKIPPED
        for index in self.failed:
            found[index] = StepState.FAILED
        known = {index for _, index in self.rows} | ({self.current} if self.current is not None else set())
        for index in known:
            if index < count:
                found[index] = self.state(index)
        return found


def walked_parts(openings: Iterable[OpeningEvent], place: ListPlace, reached: Mapping[UUID, int]) -> list[WalkedPart]:
    """Return the parts of a list that conducts walked, oldest first. Passes and closing steps are walked from the beginning;
    the main list from where a procedure was taken up."""
    if place.closing or place.iteration_index:
        return [WalkedPart(conduct_id, reached=index) for conduct_id, index in reached.items()]
    parts = []
    for one in openings:
        match one:
            case procedures.ProcedureStarted(conduct_id=UUID() as conduct_id):
                parts.append(WalkedPart(conduct_id, reached=reached.get(conduct_id)))
            case procedures.ProcedureResumed(conduct_id=UUID() as conduct_id):
                boundary, skipped_count = one.re_establishment_boundary, one.skipped_count
                parts.append(WalkedPart(conduct_id, boundary, skipped_count, reached.get(conduct_id)))
    return parts


def state_in(rows: Sequence[StepRow], *, current: bool) -> StepState:
    """Return the state of a step by its rows; one without any is running where the conduct is at it."""
    said = {row.mark: row.payload for row in rows}
    if (verdict := said.get(Mark.VERDICT)) is not None:
        return StepState.DONE if verdict["result"] == StepVerdict.DONE else StepState.AHEAD
    for payload in (said[mark] for mark in (Mark.DEPOSIT, Mark.OUTCOME) if mark in said):
        if payload["result"] == "failed":
            return StepState.UNKNOWN if payload.get("error_class") in UNKNOWN_OUTCOMES else StepState.FAILED
    if (outcome := said.get(Mark.OUTCOME)) is not None:
        return StepState.SKIPPED if outcome["result"] == SKIPPED or outcome.get("skipped") else StepState.DONE
    if current:
        return StepState.RUNNING
    return StepState.UNKNOWN if rows else StepState.AHEAD


def facts_in(rows: Sequence[StepRow]) -> dict[str, Any]:
    """Return what the rows of a step say about it, as it is shown."""
    begun = [row for row in rows if row.mark == Mark.IN_FLIGHT]
    facts: dict[str, object] = {"attempt_count": len(begun)}
    if rows:
        facts |= {"conduct_id": rows[0].conduct_id, "started_at": min((row.recorded_at for row in begun), default=None)}
    for row in sorted(rows, key=lambda row: row.mark == Mark.DEPOSIT):
        if row.mark not in (Mark.OUTCOME, Mark.DEPOSIT):
            continue
        said, read = row.payload, row.payload.get("reading") or row.payload.get("post_reading")
        if read is not None:
            facts |= {"reading": shown_value(read.get("value"), row.event_id), "unit": read.get("units")}
        facts |= {"ended_at": row.recorded_at, "deviates": facts.get("deviates", False) or bool(said.get("deviates"))}
        named = ("seconds", "capture_name", "captured_value", "error_class", "message")
        facts |= {name: said[name] for name in named if said.get(name) is not None}
    return facts


def stretches(states: Sequence[StepState]) -> Iterable[StepStretch]:
    """Yield steps in a row with the same state."""
    first = 0
    for state, same in groupby(states):
        count = len(list(same))
        yield StepStretch(state=state, first_index=first, count=count)
        first += count
