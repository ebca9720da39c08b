"""The calls behind a decision: one row for each model call, tool call or agent span, in the decision's inference logbook."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import Field, JsonValue

from baton.domain.decision.decision import Decision, DecisionLogbookOpened, decision
from baton.domain.kernel import Call, Command, Outcome, Value, Verb
from baton.domain.shared.annotations import Dollars, Milliseconds
from baton.domain.shared.listing import ListQuery, Where
from baton.domain.shared.logbooks import Appended, Entry, LogbookKind, open_logbook
from baton.domain.shared.reads import Reads
from baton.domain.shared.text import Remark, Word
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Answer, Enter

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
    rows = [Inference.by(call, command, logbook_id, decision_id=decision_id, **dict(span)) for span in spans]
    return [*opening, Enter(rows)]


@decision.listing(Inference, get="/{decision_id}/inferences")
class ListInferences(ListQuery):
    """The calls behind a decision by time; prompt and answer texts only where asked for."""

    include_messages: bool = False

    def scope(self, target: Decision) -> Iterator[Where]:
        yield Where("decision_id", "is", target.id)

    def present(self, rows: tuple[Inference, ...]) -> Reads[tuple[Any, ...]]:
        if self.include_messages:
            return rows
        return tuple(row.model_copy(update={"messages": None}) for row in rows)
        yield
