"""Results at risk: which decisions rest on a language model, and whether they could still be reached again."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar
from uuid import UUID

from baton.domain.agent.language_model import (
    RETIRED,
    RETIREMENT_ANNOUNCED,
    Archivability,
    LanguageModel,
    LanguageModelStatus,
    language_model,
)
from baton.domain.decision.inferences import Inference
from baton.domain.kernel import Call, State, Value
from baton.domain.shared.listing import Hidden, ListQuery, Summary, Where
from baton.domain.shared.reads import Reads

DATED = re.compile(r"-[0-9]{8}\Z")
"""What providers put behind a model's name for one snapshot of it."""


class ReproducibilityGrade(StrEnum):
    RE_EXECUTABLE = "ReExecutable"
    """The facility can ask the same model again."""
    ATTRIBUTABLE_ONLY = "AttributableOnly"
    """It is known which model answered, and no more."""


def grade(entry: LanguageModel) -> ReproducibilityGrade:
    """What can be done about a result of this model."""
    pinned = entry.archivability is Archivability.PINNED
    return ReproducibilityGrade.RE_EXECUTABLE if pinned else ReproducibilityGrade.ATTRIBUTABLE_ONLY


def at_risk(entry: LanguageModel) -> bool:
    """Whether the provider takes away what results rest on; that the facility withdrew the model is no risk."""
    return grade(entry) is ReproducibilityGrade.ATTRIBUTABLE_ONLY and entry.status in (RETIREMENT_ANNOUNCED, RETIRED)


class AtRiskResult(Summary):
    """A decision, and the newest call of the model behind it."""

    decision_id: UUID
    occurred_at: datetime
    request_model: str
    response_model: str | None
    agent_id: str | None


class ModelCall(AtRiskResult):
    """The newest call of one model behind one decision; the relation is a view of the inference logbooks."""

    relation: ClassVar[str] = "model_calls"
    time: ClassVar[str] = "occurred_at"
    provider_name: Hidden[str]
    model: Hidden[str]


def names_of(call: Inference) -> frozenset[str]:
    """Every name that the model of a call goes by: the one asked for, the one that answered, and that without its date.

    Names that differ otherwise are other models, however alike.
    """
    if call.response_model is None:
        return frozenset({call.request_model})
    return frozenset({call.request_model, call.response_model, DATED.sub("", call.response_model)})


def model_calls(calls: Iterable[Inference]) -> Iterator[ModelCall]:
    """The newest call of each model behind each decision, under every name the model goes by."""
    newest: dict[tuple[str, str, UUID], Inference] = {}
    for call in sorted(calls, key=lambda call: (call.occurred_at, call.event_id)):
        newest |= {(call.provider_name, model, call.decision_id): call for model in names_of(call)}
    for (provider_name, model, decision_id), call in newest.items():
        yield ModelCall(
            decision_id=decision_id,
            occurred_at=call.occurred_at,
            request_model=call.request_model,
            response_model=call.response_model,
            agent_id=call.agent_id,
            provider_name=provider_name,
            model=model,
        )


class AtRiskResults(Value):
    """What has become of a model, what that means for its results, and one page of them."""

    language_model_id: UUID
    status: LanguageModelStatus
    archivability: Archivability
    reproducibility_grade: ReproducibilityGrade
    at_risk: bool
    items: tuple[AtRiskResult, ...]
    next_cursor: str | None


@language_model.listing(ModelCall, get="/{language_model_id}/at-risk-results")
class ListAtRiskResults(ListQuery):
    """The decisions that a model had a part in, by the time of its latest call, and whether they are at risk."""

    def scope(self, target: LanguageModel) -> Iterator[Where]:
        yield Where("provider_name", "is", target.provider)
        yield Where("model", "is", target.model)

    def answer(self, *known: State | Call) -> Reads[Any]:
        entry = next(one for one in known if isinstance(one, LanguageModel))
        page = yield from super().answer(*known)
        return AtRiskResults(
            language_model_id=entry.id,
            status=entry.status,
            archivability=entry.archivability,
            reproducibility_grade=grade(entry),
            at_risk=at_risk(entry),
            items=page.items,
            next_cursor=page.next_cursor,
        )

    @classmethod
    def page_form(cls, item: type[Any] | None) -> Any:
        return AtRiskResults
