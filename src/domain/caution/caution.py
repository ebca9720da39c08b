"""A caution: an operator's note about a quirk of an asset, a procedure, a recipe or a plan, with what to do about it.
It warns and never blocks: it is shown as a banner before work starts. It is not edited: a better one supersedes it."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self, assert_never
from uuid import UUID

from pydantic import Field, model_validator

from baton.domain.equipment.asset_tree import AncestorWalkDepthExceededError, ancestors_of
from baton.domain.kernel import Aggregate, Call, Event, JudgedCreation, Outcome, SortedSet, State, Value, Verb, copy_with
from baton.domain.registry import REGISTRY
from baton.domain.shared.listing import Hidden, ListQuery, Page, Summary, Where
from baton.domain.shared.reads import Reads, Rows, find_all, members_of, require
from baton.domain.shared.refusals import Invalid, NotFound
from baton.domain.shared.text import FreeText, MayContainPersonalData
from baton.domain.shared.times import Instant
from baton.domain.shared.writes import Also, Answer, Delist, Enlist

TARGETED = "caution-target"  # Look-up kind: the Active cautions on one target.
WITHDRAWN = "caution-withdrawn"  # Look-up kind: the Retired cautions on one target.


class CautionTargetKind(StrEnum):
    """What can be warned about: aggregates, by their names."""

    ASSET = "Asset"
    PROCEDURE = "Procedure"
    RECIPE = "Recipe"
    PLAN = "Plan"


class CautionCategory(StrEnum):
    WEAR = "Wear"
    CALIBRATION = "Calibration"
    WIRING = "Wiring"
    OPERATIONAL_WINDOW = "OperationalWindow"
    INTERLOCK_QUIRK = "InterlockQuirk"
    PROCEDURE_GOTCHA = "ProcedureGotcha"


class CautionSeverity(StrEnum):
    """What the next operator must do: know it, work differently, or expect harm to the work or to people."""

    NOTICE = "Notice"
    CAUTION = "Caution"
    WARNING = "Warning"

    def and_above(self) -> "tuple[CautionSeverity, ...]":
        """Return this severity and every stronger one, the weakest first."""
        severities = tuple(CautionSeverity)
        return severities[severities.index(self) :]


class CautionStatus(StrEnum):
    ACTIVE = "Active"
    SUPERSEDED = "Superseded"
    RETIRED = "Retired"


ACTIVE, SUPERSEDED, RETIRED = CautionStatus


class CautionRetireReason(StrEnum):
    RESOLVED = "Resolved"
    NO_LONGER_APPLIES = "NoLongerApplies"
    WRONG_TARGET = "WrongTarget"


class CautionTarget(Value):
    """What a caution is about."""

    kind: CautionTargetKind
    """What the caution is about: an asset, a procedure, a recipe or a plan."""
    id: UUID
    """The id of what the caution is about."""

    @property
    def key(self) -> str:
        """Return the look-up key of cautions on this target."""
        return target_key(self.kind, self.id)


def target_key(kind: CautionTargetKind, id: UUID) -> str:
    """Return the look-up key of cautions on what has this id."""
    return f"{kind} {id}"


Tags = Annotated[SortedSet[str], MayContainPersonalData()]


@dataclass(frozen=True, kw_only=True)
class Caution(State):
    """A caution is a note about a quirk of an asset, a procedure, a recipe or a plan, with what to do about it."""

    target: CautionTarget
    category: CautionCategory
    severity: CautionSeverity
    text: FreeText
    workaround: FreeText
    tags: Tags
    authored_by: UUID
    expires_at: datetime | None
    propagate_to_children: bool
    status: CautionStatus = ACTIVE
    parent_id: UUID | None
    """The caution that this one replaces."""
    superseded_by_caution_id: UUID | None = None
    """The caution that replaces it."""
    retired_reason: CautionRetireReason | None = None
    """Why it warns no longer."""
    retired_by: UUID | None = None
    registered_at: datetime
    last_status_changed_at: datetime | None = None

    def in_effect(self, now: datetime) -> bool:
        """Return whether it counts now; passing its expiry changes no status."""
        return self.status is ACTIVE and (self.expires_at is None or self.expires_at > now)

    @property
    def target_kind(self) -> CautionTargetKind:
        return self.target.kind

    @property
    def target_id(self) -> UUID:
        return self.target.id

    @property
    def reaches(self) -> SortedSet[str]:
        """Return what this applies to: its target and, where it propagates, everything below that."""
        id = self.target.id
        return frozenset({str(id), below_key(id)} if self.propagate_to_children else {str(id)})


def below_key(id: UUID) -> str:
    """Return the key in `reaches` that stands for everything below an asset."""
    return f"below {id}"


caution = Aggregate(Caution, "/cautions", context="caution")


class CautionRegistered(Event, of=caution):
    """The caution was written; the one whose place it takes, if any, is its parent."""

    target: CautionTarget
    category: CautionCategory
    severity: CautionSeverity
    text: FreeText
    workaround: FreeText
    tags: Tags
    authored_by: UUID
    expires_at: datetime | None
    propagate_to_children: bool
    parent_id: UUID | None


class CautionSuperseded(Event, of=caution):
    """Another caution on the same target took the place of this one."""

    superseded_by_caution_id: UUID


class CautionRetired(Event, of=caution):
    """The caution was withdrawn without a successor."""

    reason: CautionRetireReason
    retired_by: UUID | None = None


@caution.evolve
def evolve(caution: Caution, event: CautionSuperseded | CautionRetired) -> Caution:
    caution = copy_with(caution, last_status_changed_at=event.occurred_at)
    match event:
        case CautionSuperseded():
            return copy_with(caution, status=SUPERSEDED, superseded_by_caution_id=event.superseded_by_caution_id)
        case CautionRetired():
            return copy_with(caution, status=RETIRED, retired_reason=event.reason, retired_by=event.retired_by)
        case _:
            assert_never(event)


class InvalidCautionExpiresAtError(Invalid, context="caution"):
    """A caution expires in the future, or never."""


class CautionTargetNotFoundError(NotFound, context="caution"):
    """What the caution is about does not exist."""


class InvalidCautionSupersedeTargetError(Invalid, context="caution"):
    """A caution is superseded by one on the same target."""


class CautionNote(Value):
    """What a new caution says; its author is the caller."""

    target: CautionTarget
    category: CautionCategory
    severity: CautionSeverity
    text: Annotated[str, caution.text("text", 2000, personal=True)]
    workaround: Annotated[str, caution.text("workaround", 2000, personal=True)]
    tags: Annotated[SortedSet[Annotated[str, caution.text("tag", 50, personal=True)]], Field(max_length=100)] = frozenset()
    expires_at: Instant | None = None
    propagate_to_children: bool = False

    def to_event(self, call: Call, parent_id: UUID | None) -> CautionRegistered:
        """Return the event that registers the caution, or refuse one that would have expired already."""
        if self.expires_at is not None and self.expires_at <= call.now:
            raise InvalidCautionExpiresAtError("expires_at is past; set a later one or leave it out.", reason="past")
        return CautionRegistered(**dict(self), authored_by=call.principal_id, parent_id=parent_id)


def registration_of(registered: CautionRegistered) -> Outcome:
    """Return what registers a new caution and makes it findable by its target."""
    return [registered, Enlist(TARGETED, registered.target.key)]


class NewCaution(Value):
    """The caution that was written."""

    caution_id: UUID


def check_target(target: CautionTarget) -> Reads[None]:
    """Refuse with 404 a target that is not on record."""
    yield from require(REGISTRY.aggregates[target.kind.value].state, target.id, CautionTargetNotFoundError)


@caution.creation(returns=NewCaution, refuses=[caution.AlreadyExists])
class RegisterCaution(CautionNote, JudgedCreation[None]):
    """Warn everybody who will work with an asset, a procedure, a recipe or a plan, and say what to do about it."""

    def gather(self, call: Call) -> Reads[None]:
        yield from check_target(self.target)

    def decide(self, call: Call, facts: None) -> Outcome:
        return registration_of(self.to_event(call, None))


@caution.command(post="/{caution_id}/supersede", allowed=[ACTIVE], leads_to=SUPERSEDED, status=201, returns=NewCaution)
class SupersedeCaution(CautionNote, Verb[Caution]):
    """Replace a caution by another one on the same target; nothing of the old one is copied."""

    def decide(self, caution: Caution, call: Call) -> Outcome:
        successor = self.to_event(call, caution.id)
        if self.target != caution.target:
            detail = "The caution is about something else; name its target, or register a new caution."
            raise InvalidCautionSupersedeTargetError(detail, reason="other_target", facts={"target": caution.target})
        return [
            *supersession_of(caution, call.new_id),
            Also(Caution, call.new_id, registration_of(successor)),
            Answer({"caution_id": str(call.new_id)}),
        ]


def supersession_of(caution: Caution, successor_id: UUID) -> Outcome:
    """Return what replaces a caution by another one on its target."""
    return [CautionSuperseded(superseded_by_caution_id=successor_id), Delist(TARGETED, caution.target.key)]


@caution.command(post="/{caution_id}/retire", allowed=[ACTIVE], destructive=True)
class RetireCaution(Verb[Caution]):
    """Stop warning, without a successor."""

    reason: CautionRetireReason
    """Why it warns no longer: Resolved, NoLongerApplies or WrongTarget."""

    def decide(self, caution: Caution, call: Call) -> Outcome:
        retired = CautionRetired(reason=self.reason, retired_by=call.principal_id)
        return [retired, Delist(TARGETED, caution.target.key), Enlist(WITHDRAWN, caution.target.key)]


GetCaution = caution.get(hidden=["created_at", "retired_by"])


class CautionSummary(Summary):
    time: ClassVar[str] = "registered_at"
    caution_id: UUID
    target: CautionTarget
    category: CautionCategory
    severity: CautionSeverity
    text: FreeText
    workaround: FreeText
    authored_by: UUID
    tags: Tags
    expires_at: datetime | None
    propagate_to_children: bool
    status: CautionStatus
    parent_id: UUID | None
    superseded_by_caution_id: UUID | None
    retired_reason: CautionRetireReason | None
    registered_at: datetime
    last_status_changed_at: datetime | None
    target_kind: Hidden[CautionTargetKind]
    target_id: Hidden[UUID]
    reaches: Hidden[SortedSet[str]]


class ListedStatus(StrEnum):
    """A status to list, or all of them."""

    ACTIVE = "Active"
    SUPERSEDED = "Superseded"
    RETIRED = "Retired"
    ALL = "all"


@caution.listing(CautionSummary, refuses=[AncestorWalkDepthExceededError])
class ListCautions(ListQuery[CautionSummary]):
    """Cautions in order of registration, the Active ones unless another status is asked for.

    `in_effect` leaves out expired ones; `inherited` adds those that propagate from above the asset asked about.
    """

    indexed: ClassVar[tuple[str, ...]] = ("reaches",)
    target_kind: CautionTargetKind | None = None
    target_id: UUID | None = None
    """Only cautions about this record."""
    category: CautionCategory | None = None
    severity: tuple[CautionSeverity, ...] = ()
    min_severity: CautionSeverity | None = None
    status: Annotated[tuple[ListedStatus, ...], Field(min_length=1)] = (ListedStatus.ACTIVE,)
    tag: Annotated[str, Field(min_length=1, max_length=50)] | None = None
    authored_by: UUID | None = None
    in_effect: bool = False
    inherited: bool = False

    @model_validator(mode="after")
    def _check_filters(self) -> Self:
        if self.severity and self.min_severity is not None:
            raise ValueError("give severity or min_severity, not both")
        if ListedStatus.ALL in self.status and set(self.status) != {ListedStatus.ALL}:
            raise ValueError("give status=all alone, or the statuses to list")
        if self.inherited and (self.target_kind is not CautionTargetKind.ASSET or self.target_id is None):
            raise ValueError("inherited needs target_kind=Asset and target_id")
        return self

    def where(self) -> Iterator[Where]:
        widened = {"status"} if ListedStatus.ALL in self.status else set()
        widened |= {"target_id"} if self.inherited else set()
        yield from (condition for condition in super().where() if condition.column not in widened)
        if self.min_severity is not None:
            yield Where("severity", "in", self.min_severity.and_above())

    def answer(self, *known: State | Call) -> Reads[Page[Any]]:
        conditions = list(self.where())
        if self.in_effect:
            now = next(one.now for one in known if isinstance(one, Call))
            conditions += [Where("status", "is", ACTIVE), Where("expires_at", "after_or_null", now)]
        if self.inherited and self.target_id is not None:
            above = (yield from ancestors_of([self.target_id])).keys() - {self.target_id}
            conditions.append(Where("reaches", "has_any", (str(self.target_id), *map(below_key, sorted(above)))))
        page: Page[Any] = yield Rows(self.summary, self, tuple(conditions))
        return page


class AcknowledgedCaution(Value):
    """A caution as it is shown before work starts, and kept by what was started."""

    caution_id: UUID
    target_kind: CautionTargetKind
    target_id: UUID
    category: CautionCategory
    severity: CautionSeverity
    text_excerpt: FreeText
    """The beginning of the warning."""
    workaround_excerpt: FreeText
    """The beginning of what to do about it."""


def cautions_on(targets: Iterable[CautionTarget], at: datetime) -> Reads[tuple[Caution, ...]]:
    """Return the cautions on these targets that count at this time, of every severity, in order of registration."""
    found = yield from active_cautions(target.key for target in targets)
    return tuple(sorted((one for one in found if one.in_effect(at)), key=lambda one: (one.registered_at, one.id)))


def active_cautions(target_keys: Iterable[str]) -> Reads[tuple[Caution, ...]]:
    """Return the Active cautions on the targets with these look-up keys, expired ones included."""
    keys = sorted(set(target_keys))
    return tuple((yield from find_all(Caution, (yield from members_of(TARGETED, *keys)))).values()) if keys else ()


def cautions_in_scope(
    bound_asset_ids: Collection[UUID], ancestor_ids: Collection[UUID], work: Collection[CautionTarget]
) -> Reads[tuple[Caution, ...]]:
    """Return the cautions on any of these, for `banner` to choose from; `work` is what else is worked with or by."""
    assets = (target_key(CautionTargetKind.ASSET, id) for id in (*bound_asset_ids, *ancestor_ids))
    return (yield from active_cautions((*assets, *(target.key for target in work))))


def cautions_in_force(
    cautions: Iterable[Caution],
    bound_asset_ids: Collection[UUID],
    ancestor_ids: Collection[UUID],
    work: Collection[CautionTarget],
    now: datetime,
    min_severity: CautionSeverity = CautionSeverity.CAUTION,
) -> tuple[Caution, ...]:
    """Return the cautions that are in effect on these, the most severe first, then in order of registration.
    Above a bound asset only what propagates to children counts."""

    def applies(caution: Caution) -> bool:
        if caution.target.kind is not CautionTargetKind.ASSET:
            return caution.target in work
        inherited = caution.propagate_to_children and caution.target.id in ancestor_ids
        return inherited or caution.target.id in bound_asset_ids

    severities = min_severity.and_above()
    chosen = (one for one in cautions if one.severity in severities and one.in_effect(now) and applies(one))
    return tuple(sorted(chosen, key=lambda one: (-severities.index(one.severity), one.registered_at, one.id)))


def banner(
    cautions: Iterable[Caution],
    bound_asset_ids: Collection[UUID],
    ancestor_ids: Collection[UUID],
    work: Collection[CautionTarget],
    now: datetime,
    min_severity: CautionSeverity = CautionSeverity.CAUTION,
) -> tuple[AcknowledgedCaution, ...]:
    """Return the excerpts of the cautions in force that are shown before work starts."""
    shown = cautions_in_force(cautions, bound_asset_ids, ancestor_ids, work, now, min_severity)
    return tuple(
        AcknowledgedCaution(
            caution_id=one.id,
            target_kind=one.target.kind,
            target_id=one.target.id,
            category=one.category,
            severity=one.severity,
            text_excerpt=one.text[:200],
            workaround_excerpt=one.workaround[:200],
        )
        for one in shown
    )
