"""Results at risk: which decisions rest on a language model, and whether the facility could still reproduce them."""

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

DATED = re.compile(r"-[0-9]{8}\Z")  # The date that providers append to a model's name for one snapshot of it.


class ReproducibilityGrade(StrEnum):
    RE_EXECUTABLE = "ReExecutable"  # The facility can ask the same model again.
    ATTRIBUTABLE_ONLY = "AttributableOnly"  # It is known which model answered, and no more.


def reproducibility_grade(entry: LanguageModel) -> ReproducibilityGrade:
    """Return how far results of this model can be reproduced."""
    pinned = entry.archivability is Archivability.PINNED
    return ReproducibilityGrade.RE_EXECUTABLE if pinned else ReproducibilityGrade.ATTRIBUTABLE_ONLY


def is_at_risk(entry: LanguageModel) -> bool:
    """Return whether the provider ends a model that cannot be kept; that the facility withdrew it is no risk."""
    return reproducibility_grade(entry) is ReproducibilityGrade.ATTRIBUTABLE_ONLY and entry.status in (
        RETIREMENT_ANNOUNCED,
        RETIRED,
    )


class AtRiskDecision(Summary):
    """A decision, and the newest call of the model behind it."""

    decision_id: UUID
    occurred_at: datetime
    request_model: str
    response_model: str | None
    agent_id: str | None


class ModelCall(AtRiskDecision):
    """The newest call of one model behind one decision; the relation is a view of the inference logbooks."""

    relation: ClassVar[str] = "model_calls"
    time: ClassVar[str] = "occurred_at"
    provider_name: Hidden[str]
    model: Hidden[str]


def model_names(call: Inference) -> frozenset[str]:
    """Return every name of a call's model: the one asked for, the one that answered, and that without its date.

    Names that differ otherwise are other models, however alike.
    """
    if call.response_model is None:
        return frozenset({call.request_model})
    return frozenset({call.request_model, call.response_model, DATED.sub("", call.response_model)})


def model_calls(calls: Iterable[Inference]) -> Iterator[ModelCall]:
    """Yield the newest call of each model behind each decision, under every name of the model."""
    newest: dict[tuple[str, str, UUID], Inference] = {}
    for call in sorted(calls, key=lambda call: (call.occurred_at, call.event_id)):
        newest |= {(call.provider_name, model, call.decision_id): call for model in model_names(call)}
    for (provider_name, model, _), call in newest.items():
        shown = {name: getattr(call, name) for name in AtRiskDecision.model_fields}
        yield ModelCall(**shown, provider_name=provider_name, model=model)


class AtRiskResults(Value):
    """The state of a model, what it means for its results, and one page of them."""

    language_model_id: UUID
    status: LanguageModelStatus
    archivability: Archivability
    reproducibility_grade: ReproducibilityGrade
    at_risk: bool
    items: tuple[AtRiskDecision, ...]
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
            reproducibility_grade=reproducibility_grade(entry),
            at_risk=is_at_risk(entry),
            **{name: getattr(entry, name) for name in ("status", "archivability")},
            **vars(page),
        )

    @classmethod
    def page_form(cls, item: type[Any] | None) -> Any:
        return AtRiskResults
