"""Steered conducts: a decider says where to measure next, pass by pass; an outside agent may be that decider."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, NamedTuple
from uuid import UUID

from pydantic import Field

from baton.domain.conduct.conduct import (
    CONDUCT,
    Conduct,
    ConductAccepted,
    Opening,
    Wait,
    load_first_opening,
    load_resumption,
)
from baton.domain.conduct.progress import ConductProgress, WaitingFor
from baton.domain.decision.decision import Decision
from baton.domain.kernel import Call, Event, JudgedVerb, Outcome, Query
from baton.domain.procedure import procedure as procedures
from baton.domain.procedure.procedure import Procedure, ProcedureSteeringDeclared, procedure
from baton.domain.recipe.steps import RecipeStep, SteeringRef, declared_capture, declared_output, references
from baton.domain.registry import OpenedWork
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.deployment import DeploymentPort
from baton.domain.shared.reads import Reads, ask, events_of, latest_events, record_of, require, require_if_given
from baton.domain.shared.refusals import Conflict, Unprocessable
from baton.domain.shared.writes import Answer
from baton.domain.steering import steering
from baton.domain.steering.steering import Point, SteeringBudget, SteeringEvidence, SteeringObjectiveKind, SteeringSpace
from baton.domain.step.results import BestPoint, ConductResult, TerminationReason


class ProcedureRequiresRecipeError(Conflict, context="operation", reason="no_recipe"):
    """Only a procedure with a recipe can be steered."""


class ProcedureSteeringMismatchError(Unprocessable, context="operation"):
    """What is to be steered does not fit the steps."""


class ProcedureSteeringDesignMismatchError(Unprocessable, context="operation"):
    """A search that continues keeps what it is for and where it looks."""


class SteeringView(AnswerForm):
    """Whether a conduct waits for advice and, if so, everything needed to give it."""

    procedure_id: UUID
    waiting: bool
    """Whether the conduct waits for advice."""
    question: Annotated[
        int | None, Field(description="The number of the question; advice that names it is never taken for another one.")
    ] = None
    conduct_id: UUID | None = None
    iteration_index: int | None = None
    evidence: SteeringEvidence | None = None
    deadline: datetime | None = None
    """Until when advice is waited for."""


WaitingQuestion = Annotated[
    SteeringView | None,
    Field(description="The question that the conduct has come to wait for; advise_procedure answers it."),
]


class SteeredConductAccepted(ConductAccepted):
    """A steered conduct under way, with the question that it waits for where it has asked one within `wait`."""

    waiting_question: WaitingQuestion = None


STEERED = {**CONDUCT, "accepted": SteeredConductAccepted, "work": OpenedWork("conduct", asks=True)}


class SteeredConduct(Conduct):
    """A search: what for, where, judged by which value, advised by whom, for how long."""

    objective: steering.SteeringObjective
    space: SteeringSpace
    objective_capture_name: steering.Name
    decide_: Annotated[steering.Decide, Field(alias="decide")] = steering.DEFAULT_DECIDE
    budget: SteeringBudget | None = None

    @property
    def searched(self) -> SteeringSpace:
        return self.space

    def design(self, first_point: Point | None) -> ProcedureSteeringDeclared:
        own = {name: getattr(self, name) for name in ("objective", "objective_capture_name", "space", "budget")}
        return ProcedureSteeringDeclared(**own, decide=self.decide_, first_point=first_point)

    def check_decider(self) -> Reads[None]:
        """Refuse a decider that is not available for this search."""
        deployment = yield from ask(DeploymentPort.deployment)
        steering.refuse_unavailable(self.decide_, self.objective, self.space, deployment.deciders)


def check_wiring(steps: Sequence[RecipeStep], space: SteeringSpace, objective_capture_name: str) -> None:
    """Refuse a search whose axes the steps do not follow, or whose objective they do not capture."""
    axes = {axis.name for axis in space.axes}
    followed = {reference.steering_axis_name for step in steps for reference in references(step, SteeringRef)}
    captured = {name for step in steps if (name := declared_capture(step)) is not None}
    filled = captured | {name for step in steps if (name := declared_output(step)) is not None}
    if idle := sorted(axes - followed):
        use = f'leave such axes out, or set {{"__steering__": "{idle[0]}"}} in a step of the recipe'
        raise mismatch(f"No step follows {', '.join(idle)}; {use}.", "axis_unused", idle)
    if unknown := sorted(followed - axes):
        raise mismatch(f"The steps follow {', '.join(unknown)}; add such axes to the space.", "axis_missing", unknown)
    if taken := sorted(axes & (filled | {objective_capture_name})):
        raise mismatch(f"{', '.join(taken)} names an axis and a slot; rename the axis.", "name_collision", taken)
    if objective_capture_name not in captured:
        detail = f"No step captures {objective_capture_name}; name a slot that the steps fill."
        raise mismatch(detail, "objective_missing", [objective_capture_name])


def check_first_point(point: Point, space: SteeringSpace) -> None:
    """Refuse to begin at a point that is not in the space."""
    names = {axis.name for axis in space.axes}
    if differing := sorted(names ^ point.keys()):
        detail = f"first_point must name exactly the axes {', '.join(sorted(names))}."
        raise mismatch(detail, "first_point_axes", differing)
    if outside := [axis.name for axis in space.axes if not axis.admits(point[axis.name])]:
        detail = f"first_point lies outside the space on {', '.join(outside)}; choose one inside."
        raise mismatch(detail, "first_point_outside", outside)


def mismatch(detail: str, reason: str, names: list[str]) -> ProcedureSteeringMismatchError:
    """Return the refusal of a search that does not fit the steps."""
    return ProcedureSteeringMismatchError(detail, reason=reason, facts={"names": names})


@procedure.command(post="/{procedure_id}/steering/conduct", **STEERED)
class ConductUntilAdvised(SteeredConduct, JudgedVerb[Procedure, Opening]):
    """Conduct the steps again and again, where the decider says, until it says stop or the budget is spent.

    The steps come from the recipe that the procedure was registered from; they follow the axes of the space: in a step,
    `{"__steering__": "x"}` stands for the coordinate of the axis x.
    """

    first_point: Annotated[
        Point | None,
        Field(description="Where the first pass measures: a value for every axis. Left out, the first point of the space."),
    ] = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[Opening]:
        facts = yield from load_first_opening(self, procedure, call)
        if procedure.recipe_id is None:
            raise ProcedureRequiresRecipeError("The procedure has no recipe to steer; register one from a recipe.")
        check_wiring(facts.steps.steps, self.space, self.objective_capture_name)
        if self.first_point is not None:
            check_first_point(self.first_point, self.space)
        yield from self.check_decider()
        return facts

    def decide(self, procedure: Procedure, call: Call, facts: Opening) -> Outcome:
        return self.open_first(procedure, call, facts, self.design(self.first_point), space=self.space)


@procedure.command(post="/{procedure_id}/steering/resume", **STEERED)
class ConductUntilAdvisedFrom(SteeredConduct, JudgedVerb[Procedure, tuple[Opening, ProcedureSteeringDeclared, int]]):
    """Take a held search up where it stood: what was measured is known to the decider and is not measured again."""

    decided_by_decision_id: UUID | None = None

    def gather(self, procedure: Procedure, call: Call) -> Reads[tuple[Opening, ProcedureSteeringDeclared, int]]:
        yield from require_if_given(Decision, self.decided_by_decision_id)
        opening, _ = yield from load_resumption(self, procedure, call)
        kept = (yield from events_of(procedure.id, ProcedureSteeringDeclared))[-1]
        for name in ("objective", "objective_capture_name", "space"):
            if getattr(kept, name) != getattr(self, name):
                detail = f"A search that continues keeps its {name}; give the one it was declared with."
                raise ProcedureSteeringDesignMismatchError(detail, reason=f"{name}_changed")
        yield from self.check_decider()
        yield from self.refuse_outdated(opening.steps)
        outcomes = yield from events_of(procedure.id, procedures.ProcedureOutcomeRecorded)
        return opening, kept, len(outcomes)

    def decide(self, procedure: Procedure, call: Call, facts: tuple[Opening, ProcedureSteeringDeclared, int]) -> Outcome:
        opening, kept, measured = facts
        design = self.design(kept.first_point)
        changed: list[Event] = [] if design == kept else [design]
        resumed = self.resumed_event(call, opening, measured, decided_by_decision_id=self.decided_by_decision_id)
        return self.open(procedure, call, opening, *changed, resumed, space=self.space)


class AdviceRequest(NamedTuple):
    """The evidence on which a waiting conduct asks for advice, until when, and the number of the question."""

    question: int
    conduct_id: UUID
    evidence: SteeringEvidence
    deadline: datetime


PassOutcomes = Sequence[procedures.ProcedureOutcomeRecorded]


def evidence_of(
    procedure: Procedure, design: ProcedureSteeringDeclared, outcomes: PassOutcomes, budget: SteeringBudget
) -> SteeringEvidence:
    """Return everything a decider may know: the design, and what each pass measured, in order."""
    observations = [
        steering.SteeringObservation(**{name: value for name, value in outcome if name != "iteration_index"})
        for outcome in sorted(outcomes, key=lambda outcome: outcome.iteration_index)
    ]
    return SteeringEvidence(
        objective=design.objective,
        space=design.space,
        observations=tuple(observations),
        budget=budget,
        iteration_index=procedure.current_iteration_index or procedure.iteration_count + 1,
        procedure_id=procedure.id,
    )


def remaining_budget(design: ProcedureSteeringDeclared, passes: int, started_at: datetime, now: datetime) -> SteeringBudget:
    """Return what is left of the budget after so many passes of this conduct."""
    given = design.budget or SteeringBudget()
    iterations, seconds = given.iterations_remaining, given.wall_clock_remaining
    return SteeringBudget(
        iterations_remaining=None if iterations is None else max(0, iterations - passes),
        wall_clock_remaining=None if seconds is None else max(0.0, seconds - (now - started_at).total_seconds()),
    )


def best_point(design: ProcedureSteeringDeclared, outcomes: PassOutcomes) -> BestPoint | None:
    """Return the best that a search has measured; None where nothing was, or where no value is better."""
    objective, name = design.objective, design.objective_capture_name
    found = [
        BestPoint(name=name, value=item.value, iteration_index=outcome.iteration_index, point=outcome.point)
        for outcome in outcomes
        for item in outcome.measurements
        if item.name == name and isinstance(item.value, int | float)
    ]
    match objective.kind:
        case SteeringObjectiveKind.MAXIMIZE:
            return max(found, key=lambda one: one.value, default=None)
        case SteeringObjectiveKind.MINIMIZE:
            return min(found, key=lambda one: one.value, default=None)
        case SteeringObjectiveKind.SATISFY:
            wanted = objective.target_value or 0
            return min(found, key=lambda one: abs(one.value - wanted), default=None)
        case SteeringObjectiveKind.EXPLORE:
            return None


def spent_budget(
    design: ProcedureSteeringDeclared, passes: int, started_at: datetime, now: datetime
) -> TerminationReason | None:
    """Return which part of the budget is used up after so many passes, or None."""
    left = remaining_budget(design, passes, started_at, now)
    if left.iterations_remaining == 0:
        return TerminationReason.ITERATIONS
    return TerminationReason.WALL_CLOCK if left.wall_clock_remaining == 0 else None


def advice_given(
    events: Sequence[object], conduct_id: UUID, iteration_index: int, *, within: bool
) -> procedures.ProcedureAdvised | None:
    """Return the advice on a pass: where to measure or, `within` the pass, what follows it.

    Both name the same pass; they differ in whether it had begun.
    """
    begun, found = False, None
    for event in events:
        match event:
            case procedures.ProcedureIterationStarted(iteration_index=index) if index == iteration_index:
                begun = True
            case procedures.ProcedureAdvised(conduct_id=of, iteration_index=index):
                if (of, index, begun) == (conduct_id, iteration_index, within):
                    found = event
    return found


def pending_advice_request(procedure: Procedure, now: datetime) -> Reads[AdviceRequest | None]:
    """Return what the live conduct waits to be advised on, or None."""
    progress = yield from record_of(ConductProgress, procedure_id=procedure.id)
    if progress is None or progress.waiting_until is None or progress.waiting_for != WaitingFor.ADVICE.value:
        return None
    if progress.conduct_id != procedure.live_conduct_id:
        return None
    designs = yield from events_of(procedure.id, ProcedureSteeringDeclared)
    outcomes = yield from events_of(procedure.id, procedures.ProcedureOutcomeRecorded)
    detail = yield from events_of(procedure.id, procedures.ProcedureIterationStarted, procedures.ProcedureAdvised)
    passes = sum(outcome.occurred_at >= progress.started_at for outcome in outcomes)
    budget = remaining_budget(designs[-1], passes, progress.started_at, now)
    evidence = evidence_of(procedure, designs[-1], outcomes, budget)
    within = procedure.current_iteration_index is not None
    if advice_given(detail, progress.conduct_id, evidence.iteration_index, within=within) is not None:
        return None
    number = yield from load_question_number(procedure)
    return AdviceRequest(number, progress.conduct_id, evidence, progress.waiting_until)


def load_question_number(procedure: Procedure) -> Reads[int]:
    """Return the number of the latest question of a search: each follows a measurement or a take-up of its own."""
    outcomes = yield from events_of(procedure.id, procedures.ProcedureOutcomeRecorded)
    resumptions = yield from events_of(procedure.id, procedures.ProcedureResumed)
    return len(outcomes) + sum(one.conduct_id is not None for one in resumptions)


@procedure.query(get="/{procedure_id}/steering", returns=SteeringView)
class GetProcedureSteering(Query[SteeringView]):
    """What a steered conduct waits to be advised on."""

    def answer(self, procedure: Procedure, call: Call) -> Reads[SteeringView]:
        question = yield from pending_advice_request(procedure, call.now)
        return SteeringView(procedure_id=procedure.id, waiting=False) if question is None else steering_view(question)


def load_waiting_question(procedure_id: UUID, now: datetime) -> Reads[SteeringView | None]:
    """Return what the live conduct of a procedure waits to be advised on, as it is shown; None where it asks nothing."""
    question = yield from pending_advice_request((yield from require(Procedure, procedure_id)), now)
    return None if question is None else steering_view(question)


def steering_view(question: AdviceRequest) -> SteeringView:
    """Return a question as it is shown."""
    index, procedure_id = question.evidence.iteration_index, question.evidence.procedure_id
    return SteeringView(procedure_id=procedure_id, waiting=True, iteration_index=index, **question._asdict())


class AdviceFollowed(SteeringView):
    """What followed an advice: the next question with its evidence, or the end of the conduct with its result."""

    ended: bool = False
    """Whether the conduct has ended."""
    result: ConductResult | None = None


class AdviceAccepted(AnswerForm):
    """An advice that the conduct follows; it has not asked again yet. `get_procedure_steering` shows when it does."""

    procedure_id: UUID
    conduct_id: UUID
    work_id: UUID


def load_followed(procedure_id: UUID, conduct_id: UUID, now: datetime) -> Reads[AdviceFollowed | None]:
    """Return the next question of a conduct that was advised, or its end; None while it measures."""
    procedure = yield from require(Procedure, procedure_id)
    if procedure.live_conduct_id != conduct_id:
        ends = yield from events_of(procedure.id, procedures.ProcedureConducted)
        result = next((end.result for end in ends if end.conduct_id == conduct_id), None)
        return AdviceFollowed(procedure_id=procedure.id, waiting=False, ended=True, conduct_id=conduct_id, result=result)
    answering = (procedures.ProcedureOutcomeRecorded, procedures.ProcedureResumed, procedures.ProcedureAdvised)
    latest = yield from latest_events(procedure.id, *answering, count=1)
    if isinstance(latest[0], procedures.ProcedureAdvised):
        return None
    question = yield from pending_advice_request(procedure, now)
    return None if question is None else AdviceFollowed(**dict(steering_view(question)))


@procedure.command(
    post="/{procedure_id}/steering/advise",
    allowed=[procedures.RUNNING],
    returns=AdviceFollowed,
    accepted=AdviceAccepted,
    work=OpenedWork("conduct", answer="next_question"),
)
class AdviseProcedure(JudgedVerb[Procedure, tuple[AdviceRequest | None, int]]):
    """Tell a conduct that waits where to measure next, or to stop.

    With `wait`, the answer is the next question and its evidence or, where the conduct ends, its result.
    """

    iteration_index: Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
    question: Annotated[
        int | None,
        Field(
            strict=True,
            ge=1,
            le=2**31 - 1,
            description="The number of the question that is answered, as get_procedure_steering shows it; an answer to one "
            "that was replaced is refused.",
        ),
    ] = None
    advice: steering.SteeringAdvice
    wait: Annotated[Wait, Field(description="Seconds to wait for the next question; 0 answers at once, with nothing.")] = 0

    def gather(self, procedure: Procedure, call: Call) -> Reads[tuple[AdviceRequest | None, int]]:
        pending = yield from pending_advice_request(procedure, call.now)
        return pending, (yield from load_question_number(procedure))

    def decide(self, procedure: Procedure, call: Call, facts: tuple[AdviceRequest | None, int]) -> Outcome:
        question, latest = facts
        if procedure.pending_request is not None:
            asked = procedure.pending_request.value.lower()
            raise self.cannot("request_pending", f"The conduct is being asked to {asked}; it takes no advice now.")
        if question is None:
            if self.question is not None and self.question <= latest:
                detail = f"Question {self.question} was answered or replaced; no other is asked now."
                raise self.cannot("stale_iteration", detail, question=None)
            raise self.cannot("not_waiting", "No conduct of this procedure waits for advice; read its steering first.")
        if self.iteration_index != (expected := question.evidence.iteration_index):
            detail = f"The conduct waits for advice on iteration {expected}; read its steering again."
            raise self.cannot("stale_iteration", detail, expected=expected, question=question.question)
        if self.question not in (None, question.question):
            detail = f"Question {self.question} was answered or replaced; the conduct asks {question.question} now."
            raise self.cannot("stale_iteration", f"{detail} Read its steering again.", question=question.question)
        steering.check_advice(self.advice, question.evidence.space)
        conduct_id = question.conduct_id
        own = {name: value for name, value in self if name not in ("question", "wait")}
        advised = procedures.ProcedureAdvised(**own, conduct_id=conduct_id, advised_by=call.principal_id)
        ids = AdviceAccepted(procedure_id=procedure.id, conduct_id=conduct_id, work_id=conduct_id)
        return [advised, Answer(ids.model_dump(mode="json"), status=200)] if self.wait else [advised]


@procedure.internal_command(allowed=[procedures.RUNNING])
class RecordProcedureOutcome(JudgedVerb[Procedure, tuple[procedures.ProcedureOutcomeRecorded, ...]]):
    """Record what a steered pass measured, once it was walked to its end."""

    outcome: procedures.ProcedureOutcomeRecorded

    def gather(self, procedure: Procedure, call: Call) -> Reads[tuple[procedures.ProcedureOutcomeRecorded, ...]]:
        return (yield from events_of(procedure.id, procedures.ProcedureOutcomeRecorded))

    def decide(self, procedure: Procedure, call: Call, recorded: tuple[procedures.ProcedureOutcomeRecorded, ...]) -> Outcome:
        known = any(one.iteration_index == self.outcome.iteration_index for one in recorded)
        return [] if known else [self.outcome]
