"""A decision: one unchangeable record of a consequential choice, by whom, why and how sure. A correction is a new decision
that points at the old one; ratings only add to it, as does a row for each model call, tool call or agent span behind it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, assert_never
from uuid import UUID

from pydantic import Field, JsonValue

from baton.domain.access.actor import Actor, ActorKind
from baton.domain.kernel import Aggregate, Call, Command, Event, JudgedCreation, Outcome, State, Value, Verb, copy_with
from baton.domain.shared.annotations import Dollars, Milliseconds
from baton.domain.shared.listing import ListQuery, Summary, Where
from baton.domain.shared.logbooks import Appended, Entry, LogbookKind, LogbookOpened, open_logbook
from baton.domain.shared.reads import Reads, require, require_if_given
from baton.domain.shared.refusals import Invalid, NotFound
from baton.domain.shared.text import FreeText, MayContainPersonalData, Remark, Text, Word
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Answer, Enter

MAX_ALTERNATIVES = 32
MAX_INPUTS = 64


class OverrideKind(StrEnum):
    CORRECTION = "correction"
    EXCEPTION = "exception"
    APPEAL = "appeal"
    SUPERSESSION = "supersession"
    INVALIDATION = "invalidation"


class ConfidenceSource(StrEnum):
    SELF_REPORTED = "self_reported"
    LOGPROB = "logprob"
    ENSEMBLE = "ensemble"
    HUMAN = "human"


class ConfidenceBand(StrEnum):
    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"
    CERTAIN = "Certain"


BANDS = ((0.3, ConfidenceBand.LOW), (0.7, ConfidenceBand.MEDIUM), (0.95, ConfidenceBand.HIGH))


class DecisionRating(StrEnum):
    USEFUL = "useful"
    MISLEADING = "misleading"
    IGNORED = "ignored"


class Rating(Value):
    """What one actor last thought of a decision."""

    rating: DecisionRating
    comment: FreeText | None
    rated_at: datetime


Inputs = Annotated[dict[str, Any], MayContainPersonalData()]


@dataclass(frozen=True, kw_only=True)
class Decision(State):
    """A decision is the unchangeable record of a consequential choice: by whom, why and how sure."""

    decided_by: UUID
    decided_at: datetime
    context: str
    choice: FreeText
    parent_id: UUID | None
    """The decision that this one corrects or follows."""
    override_kind: OverrideKind | None
    rule: str | None
    reasoning: FreeText | None
    confidence: float | None
    confidence_source: ConfidenceSource | None
    alternatives: tuple[FreeText, ...]
    inputs: Inputs | None
    reasoning_signature: str | None
    logbooks: Mapping[LogbookKind, UUID] = field(default_factory=dict)
    """The logbooks it has, by kind."""
    ratings: Mapping[UUID, Rating] = field(default_factory=dict)
    """What actors thought of the decision, by actor."""

    @property
    def confidence_band(self) -> ConfidenceBand | None:
        return None if self.confidence is None else confidence_band_of(self.confidence)


def confidence_band_of(confidence: float) -> ConfidenceBand:
    """Return how sure a confidence is, in a word."""
    return next((band for limit, band in BANDS if confidence < limit), ConfidenceBand.CERTAIN)


decision = Aggregate(Decision, "/decisions", context="decision")


class DecisionRegistered(Event, of=decision):
    """A choice was put on record."""

    decided_by: UUID
    context: str
    choice: FreeText
    parent_id: UUID | None = None
    override_kind: OverrideKind | None = None
    rule: str | None = None
    reasoning: FreeText | None = None
    confidence: float | None = None
    confidence_source: ConfidenceSource | None = None
    alternatives: tuple[FreeText, ...] = ()
    inputs: Inputs | None = None
    reasoning_signature: str | None = None


class DecisionRated(Event, of=decision):
    """An actor said whether the decision helped; what it says later replaces this."""

    rating: DecisionRating
    comment: FreeText | None
    rated_by: UUID
    rated_at: datetime
    confidence_at_rating: float | None


class DecisionLogbookOpened(LogbookOpened, of=decision):
    """The logbook of the calls behind the decision was opened."""


DecisionEvent = DecisionRated | DecisionLogbookOpened


@decision.evolve
def evolve(decision: Decision, event: DecisionEvent) -> Decision:
    match event:
        case DecisionRated():
            former = decision.ratings.get(event.rated_by)
            if former is not None and former.rated_at > event.rated_at:
                return decision
            rating = Rating(rating=event.rating, comment=event.comment, rated_at=event.rated_at)
            return copy_with(decision, ratings={**decision.ratings, event.rated_by: rating})
        case DecisionLogbookOpened():
            return copy_with(decision, logbooks={**decision.logbooks, event.kind: event.logbook_id})
        case _:
            assert_never(event)


class InvalidDecisionConfidenceError(Invalid, context="decision"):
    """A confidence lies between 0 and 1."""


class InvalidDecisionAlternativesError(Invalid, context="decision"):
    """A decision lists at most 32 alternatives, none of them blank."""


class InvalidDecisionInputsError(Invalid, context="decision"):
    """A decision keeps at most 64 inputs under keys of 1 to 100 characters."""


class OverrideKindRequiresParentError(Invalid, context="decision"):
    """Only a decision that names its parent can override."""


class InvalidActorKindForDecisionError(Invalid, context="decision"):
    """A decision in an agent's name can be registered by that agent alone."""


class DeciderActorNotFoundError(NotFound, context="decision"):
    """The actor who is said to have decided does not exist."""


class DecisionParentNotFoundError(NotFound, context="decision"):
    """The decision this one corrects does not exist."""


@decision.creation()
class RegisterDecision(JudgedCreation[Actor]):
    """Record a consequential choice."""

    decided_by: UUID
    context: Annotated[str, decision.text("context", 100)]
    choice: Annotated[str, decision.text("choice", 500, personal=True)]
    parent_id: UUID | None = None
    """The decision that this one corrects or follows."""
    override_kind: OverrideKind | None = None
    rule: Annotated[str, decision.text("rule", 500)] | None = None
    reasoning: Annotated[str | None, Remark(5000, personal=True)] = None
    confidence: Annotated[float, Field(strict=True)] | None = None
    """How sure the decider is, a fraction from 0 to 1."""
    confidence_source: ConfidenceSource | None = None
    alternatives: tuple[Annotated[str, Text(500, InvalidDecisionAlternativesError, "alternative", personal=True)], ...] = ()
    inputs: dict[str, JsonValue] | None = None
    reasoning_signature: Annotated[str | None, Remark(4096)] = None

    def gather(self, call: Call) -> Reads[Actor]:
        decider = yield from require(Actor, self.decided_by, DeciderActorNotFoundError)
        yield from require_if_given(Decision, self.parent_id, DecisionParentNotFoundError)
        return decider

    def decide(self, call: Call, decider: Actor) -> Outcome:
        if decider.kind is ActorKind.AGENT and decider.id != call.principal_id:
            raise InvalidActorKindForDecisionError(
                "The decider is an agent, and an agent's decisions are registered by the agent itself; name a person, or "
                "call with the agent's own token."
            )
        return [decision_event(self)]


def decision_event(choice: RegisterDecision) -> DecisionRegistered:
    """Return the event of a choice; refuse values that break a rule."""
    if choice.override_kind is not None and choice.parent_id is None:
        detail = f"An override of kind {choice.override_kind.value} concerns an earlier decision; name it in parent_id."
        raise OverrideKindRequiresParentError(detail)
    if choice.confidence is not None and not 0 <= choice.confidence <= 1:
        raise InvalidDecisionConfidenceError("The confidence lies outside 0 to 1; give a fraction, 0.9 for 90 %.")
    if len(choice.alternatives) > MAX_ALTERNATIVES:
        detail = f"A decision lists at most {MAX_ALTERNATIVES} alternatives; leave out the least likely."
        raise InvalidDecisionAlternativesError(detail, facts={"count": len(choice.alternatives)})
    inputs = choice.inputs or {}
    if len(inputs) > MAX_INPUTS:
        detail = f"A decision keeps at most {MAX_INPUTS} inputs; group them into objects."
        raise InvalidDecisionInputsError(detail, facts={"count": len(inputs)})
    if (misnamed := next((key for key in inputs if not 1 <= len(key.strip()) <= 100), None)) is not None:
        detail = "An input's key is blank or too long; use 1 to 100 characters."
        raise InvalidDecisionInputsError(detail, facts={"key": misnamed[:100]})
    return DecisionRegistered(**choice.model_dump())


@decision.command(post="/{decision_id}/rate")
class RateDecision(Verb[Decision]):
    """Say whether a decision helped; who rates again replaces the own rating."""

    rating: DecisionRating
    comment: Annotated[str, decision.text("rating_comment", 2000, label="comment", personal=True)] | None = None

    def decide(self, decision: Decision, call: Call) -> Outcome:
        by, at, confidence = call.principal_id, call.now, decision.confidence
        return [DecisionRated(**dict(self), rated_by=by, rated_at=at, confidence_at_rating=confidence)]


GetDecision = decision.get(
    *("id", "decided_by", "decided_at", "context", "choice", "parent_id", "override_kind", "rule", "reasoning"),
    *("confidence", "confidence_source", "confidence_band", "alternatives", "inputs", "reasoning_signature"),
    *("logbooks", "ratings"),
)


class DecisionSummary(Summary):
    decision_id: UUID
    decided_by: UUID
    context: str
    choice: str
    rule: str | None
    parent_id: UUID | None
    confidence: float | None
    confidence_band: ConfidenceBand | None
    created_at: datetime


@decision.listing(DecisionSummary)
class ListDecisions(ListQuery[DecisionSummary]):
    """Decisions in the order they were registered."""

    context: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    choice: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    """Only decisions with this choice."""
    exclude_choices: tuple[Annotated[str, Field(min_length=1, max_length=500)], ...] = ()
    rule: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    decided_by: UUID | None = None
    confidence_band: ConfidenceBand | None = None
    parent_id: UUID | None = None

    def where(self) -> Iterator[Where]:
        yield from super().where()
        if self.exclude_choices:
            yield Where("choice", "not_in", self.exclude_choices)


Kind = Annotated[str, Word(100)]
Name = Annotated[str, Word(200)]
Count = Annotated[int, Field(strict=True, ge=0, le=2**53)]
Amount = Annotated[float, Field(strict=True, ge=0)]


class Span(Value):
    """One model call, tool call or agent span as its producer reports it; a repeated event_id is ignored."""

    event_id: UUID
    occurred_at: Instant
    operation_name: Kind
    provider_name: Kind
    request_model: Name
    duration: Annotated[Amount | None, Milliseconds] = None
    response_id: Name | None = None
    response_model: Name | None = None
    output_type: Kind | None = None
    finish_reasons: Annotated[tuple[Kind, ...], Field(max_length=16)] = ()
    request_temperature: Annotated[float, Field(strict=True)] | None = None
    request_top_p: Annotated[float, Field(strict=True)] | None = None
    request_max_tokens: Count | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost: Annotated[Amount | None, Dollars] = None
    agent_id: Name | None = None
    agent_name: Name | None = None
    agent_description: Annotated[str | None, Remark(2000)] = None
    conversation_id: Name | None = None
    tool_name: Name | None = None
    tool_call_id: Name | None = None
    tool_type: Kind | None = None
    messages: dict[str, JsonValue] | None = None


class Inference(Entry):
    """A stored span."""

    relation: ClassVar[str] = "entries_decision_inferences"
    time: ClassVar[str] = "occurred_at"
    kind: ClassVar[LogbookKind] = LogbookKind.INFERENCE
    decision_id: UUID
    operation_name: str
    provider_name: str
    request_model: str
    duration: Annotated[float | None, Milliseconds]
    response_id: str | None
    response_model: str | None
    output_type: str | None
    finish_reasons: tuple[str, ...]
    request_temperature: float | None
    request_top_p: float | None
    request_max_tokens: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost: Annotated[float | None, Dollars]
    agent_id: str | None
    agent_name: str | None
    agent_description: str | None
    conversation_id: str | None
    tool_name: str | None
    tool_call_id: str | None
    tool_type: str | None
    messages: dict[str, Any] | None


@decision.command(post="/{decision_id}/inferences", status=200, returns=Appended, attempts=3)
class AppendInferences(Verb[Decision]):
    """Add the model and tool calls behind a decision to its inference logbook."""

    entries: Annotated[tuple[Span, ...], Field(min_length=1, max_length=100)]

    def decide(self, decision: Decision, call: Call) -> Outcome:
        appended = append_spans(self, self.entries, decision.id, decision.logbooks.get(LogbookKind.INFERENCE), call)
        return [*appended, Answer({"event_count": len(self.entries)})]


def append_spans(command: Command, spans: Sequence[Span], decision_id: UUID, logbook_id: UUID | None, call: Call) -> Outcome:
    """Return the rows of these spans in a decision's logbook, which is opened where there is none yet."""
    logbook_id, opening = open_logbook(logbook_id, DecisionLogbookOpened, Inference, call)
    rows = [Inference.by(call, command, logbook_id, decision_id=decision_id, **vars(span)) for span in spans]
    return [*opening, Enter(rows)]


@decision.listing(Inference, get="/{decision_id}/inferences")
class ListInferences(ListQuery[Inference]):
    """The calls behind a decision by time; prompt and answer texts only where asked for."""

    include_messages: bool = False

    def present(self, rows: tuple[Inference, ...]) -> Reads[tuple[Any, ...]]:
        if self.include_messages:
            return rows
        return tuple(row.model_copy(update={"messages": None}) for row in rows)
        yield
