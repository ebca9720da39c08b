"""A language model in the facility's catalog: for which data it may be used, at what price, and which results are at risk.
A provider ends a model by retiring it; the facility withdraws an entry by deprecating it. A `ModelRef` refers to a model."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.decision.decision import Inference
from baton.domain.kernel import Aggregate, Call, Creation, Event, Outcome, State, Value, Verb, copy_with
from baton.domain.shared.annotations import DollarsPerMillionTokens
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.listing import Hidden, ListQuery, NamedListQuery, Summary, Where
from baton.domain.shared.reads import Reads, find_all, members_of
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import FreeText, Text
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Claim, Delist, Enlist, Release

IDENTITY = "language-model"  # Claim kind: the entry of one provider, model and snapshot, until it is deprecated.
CATALOGUED = "language-model-priced"
"""Look-up kind: the entries of one provider and model that are not deprecated, whatever snapshot they pin."""
DETERMINISTIC = "deterministic"  # The provider of agents that follow rules and ask no model.
SETTING = "setting"  # The provider of a model that a setting of the deployment names; it is looked up at each call.


class InvalidModelRefError(Invalid, context="agent"):
    """A reference to a model names a provider and a model, and a snapshot where one is pinned; none of them is blank."""


Provider = Annotated[str, Text(100, InvalidModelRefError, "provider")]
ModelName = Annotated[str, Text(200, InvalidModelRefError, "model")]
SnapshotPin = Annotated[str, Text(100, InvalidModelRefError, "snapshot pin")]


class ModelRef(Value):
    """A provider's model; where a snapshot of it is pinned, that one is asked in its stead."""

    provider: Provider
    model: ModelName
    snapshot_pin: SnapshotPin | None = None

    @property
    def requested_name(self) -> str:
        """The name that the provider is asked for."""
        return self.snapshot_pin or self.model


class LanguageModelStatus(StrEnum):
    DEFINED = "Defined"
    APPROVED = "Approved"
    RETIREMENT_ANNOUNCED = "RetirementAnnounced"
    RETIRED = "Retired"
    DEPRECATED = "Deprecated"


DEFINED, APPROVED, RETIREMENT_ANNOUNCED, RETIRED, DEPRECATED = LanguageModelStatus
IN_USE = (APPROVED, RETIREMENT_ANNOUNCED)


class ServingRoute(StrEnum):
    DIRECT = "Direct"
    GATEWAY = "Gateway"
    IN_HOUSE = "InHouse"


class DataTier(StrEnum):
    """Which data may be sent to a model."""

    OPEN = "Open"
    INTERNAL = "Internal"
    SENSITIVE = "Sensitive"


class Archivability(StrEnum):
    PINNED = "Pinned"  # The facility holds the weights.
    ALIAS = "Alias"  # The provider may move or remove what the name leads to.


Price = Annotated[float, Field(strict=True), DollarsPerMillionTokens]


class Pricing(Value):
    """What a million tokens of each kind cost; all zero for a model that is free."""

    input: Price
    output: Price
    cache_write: Price
    cache_read: Price


@dataclass(frozen=True, kw_only=True)
class LanguageModel(State):
    """A language model is an entry of the facility's catalog: by whom it is served, for which data and at what price."""

    name: FreeText
    model_ref: ModelRef
    """The provider's model, and the snapshot where one is pinned."""
    served_via: ServingRoute
    endpoint_note: FreeText | None
    pricing: Pricing
    data_tier: DataTier
    archivability: Archivability
    status: LanguageModelStatus = DEFINED
    retirement_effective_at: datetime | None = None
    """When the provider ends the model."""
    end_reason: FreeText | None = None  # The latest that was given for announcing, retiring or deprecating.

    @property
    def provider(self) -> str:
        return self.model_ref.provider

    @property
    def model(self) -> str:
        return self.model_ref.model


language_model = Aggregate(LanguageModel, "/language-models", context="agent")


class LanguageModelDefined(Event, of=language_model):
    """The model was entered in the catalog; it may be used once it is approved."""

    name: FreeText
    provider: str
    model: str
    snapshot_pin: str | None
    served_via: ServingRoute
    endpoint_note: FreeText | None
    pricing: Pricing
    data_tier: DataTier
    archivability: Archivability


class LanguageModelApproved(Event, of=language_model, leads_to=APPROVED):
    """The model was approved for use at this facility."""


class LanguageModelRetirementAnnounced(Event, of=language_model):
    """The provider announced that it will end the model, and when if that is known."""

    reason: FreeText
    effective_at: datetime | None


class LanguageModelRetired(Event, of=language_model):
    """The provider ended the model."""

    reason: FreeText | None


class LanguageModelDeprecated(Event, of=language_model):
    """The facility withdrew the model from use."""

    reason: FreeText | None


LanguageModelEvent = LanguageModelRetirementAnnounced | LanguageModelRetired | LanguageModelDeprecated


@language_model.begin
def begin(event: LanguageModelDefined) -> LanguageModel:
    own = dict(event)
    ref = ModelRef(**{name: own.pop(name) for name in ModelRef.model_fields})
    return LanguageModel(id=event.stream_id, created_at=event.occurred_at, model_ref=ref, **own)


@language_model.evolve
def evolve(entry: LanguageModel, event: LanguageModelEvent) -> LanguageModel:
    match event:
        case LanguageModelRetirementAnnounced():
            announced = copy_with(entry, status=RETIREMENT_ANNOUNCED, end_reason=event.reason)
            return copy_with(announced, retirement_effective_at=event.effective_at)
        case LanguageModelRetired():
            return copy_with(entry, status=RETIRED, end_reason=event.reason or entry.end_reason)
        case LanguageModelDeprecated():
            return copy_with(entry, status=DEPRECATED, end_reason=event.reason or entry.end_reason)
        case _:
            assert_never(event)


class InvalidEndpointNoteError(Invalid, context="agent"):
    """A note on where a model is served, where one is given, must not be blank."""


class InvalidLanguageModelPricingError(Invalid, context="agent", reason="negative"):
    """Every price is a finite number, 0 or more."""


Reason = Annotated[str, language_model.text("reason", 500, personal=True)]


@language_model.creation()
class DefineLanguageModel(Creation):
    """Add a model to the catalog; it may be used once it is approved. No credentials are kept here."""

    name: Annotated[str, language_model.text("name", 120, personal=True)]
    provider: Provider
    model: ModelName
    served_via: ServingRoute
    pricing: Pricing
    data_tier: DataTier
    archivability: Archivability
    snapshot_pin: SnapshotPin | None = None
    endpoint_note: Annotated[str, Text(500, InvalidEndpointNoteError, "endpoint note", personal=True)] | None = None

    def decide(self, call: Call) -> Outcome:
        for kind, price in self.pricing:
            if price < 0:
                detail = f"The price of {kind} is below zero; give 0 or more."
                raise InvalidLanguageModelPricingError(detail, facts={"price": kind})
        detail = "The catalog has this model already; deprecate that entry first, or pin another snapshot."
        taken = language_model.AlreadyExists(detail, reason="identity_taken")
        return [
            LanguageModelDefined(**dict(self)),
            Claim(IDENTITY, content_hash([self.provider, self.model, self.snapshot_pin]), rival=taken),
            Enlist(CATALOGUED, content_hash([self.provider, self.model])),
        ]


@language_model.command(post="/{language_model_id}/approve", allowed=[DEFINED], records=LanguageModelApproved)
class ApproveLanguageModel(Verb[LanguageModel]):
    """Let a model be used at this facility."""


@language_model.command(
    post="/{language_model_id}/announce-retirement",
    allowed=[APPROVED],
    leads_to=RETIREMENT_ANNOUNCED,
    records=LanguageModelRetirementAnnounced,
    verb="AnnounceRetirement",
)
class AnnounceLanguageModelRetirement(Verb[LanguageModel]):
    """Record that the provider will end a model, and when if it is known; what rests on it is at risk from now on."""

    reason: Reason
    effective_at: Instant | None = None


@language_model.command(post="/{language_model_id}/retire", allowed=IN_USE, records=LanguageModelRetired, destructive=True)
class RetireLanguageModel(Verb[LanguageModel]):
    """Record that the provider has ended a model."""

    reason: Reason | None = None


@language_model.command(post="/{language_model_id}/deprecate", allowed=[DEFINED, *IN_USE], destructive=True)
class DeprecateLanguageModel(Verb[LanguageModel]):
    """Withdraw a model from use at this facility; another entry for it may be defined."""

    reason: Reason | None = None

    def decide(self, entry: LanguageModel, call: Call) -> Outcome:
        ref = entry.model_ref
        return [
            LanguageModelDeprecated(reason=self.reason),
            Release(IDENTITY, content_hash([ref.provider, ref.model, ref.snapshot_pin])),
            Delist(CATALOGUED, content_hash([ref.provider, ref.model])),
        ]


def entries_of(provider: str, model: str) -> Reads[tuple[LanguageModel, ...]]:
    """Return the entries of a model that are not deprecated, the newest first."""
    entries = yield from find_all(LanguageModel, (yield from members_of(CATALOGUED, content_hash([provider, model]))))
    live = (entry for entry in entries.values() if entry.status is not DEPRECATED)
    return tuple(sorted(live, key=lambda entry: (entry.created_at, entry.id), reverse=True))


def is_approved(ref: ModelRef) -> Reads[bool]:
    """Return whether the facility has approved this model, whatever snapshot of it."""
    return any(entry.status is APPROVED for entry in (yield from entries_of(ref.provider, ref.model)))


def price_of(provider: str, model: str) -> Reads[Pricing | None]:
    """Return what a model costs by its newest entry, or None where the catalog does not know it."""
    entries = yield from entries_of(provider, model)
    return entries[0].pricing if entries else None


GetLanguageModel = language_model.get(hidden=["created_at"])
COLUMNS = "name provider model served_via data_tier archivability status created_at"


class LanguageModelSummary(Summary):
    language_model_id: UUID
    name: FreeText
    provider: str
    model: str
    served_via: ServingRoute
    data_tier: DataTier
    archivability: Archivability
    status: LanguageModelStatus
    created_at: datetime


@language_model.listing(LanguageModelSummary)
class ListLanguageModels(NamedListQuery[LanguageModelSummary]):
    """The catalog in the order of its entries."""

    status: LanguageModelStatus | None = None
    provider: Annotated[str, Field(min_length=1, max_length=100)] | None = None


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
    return entry.status in (RETIREMENT_ANNOUNCED, RETIRED) and entry.archivability is not Archivability.PINNED


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
    """Whether the results can be made again (ReExecutable) or only be attributed."""
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
    def page_form(cls, item: type[object] | None) -> Any:
        return AtRiskResults
