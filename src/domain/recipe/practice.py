"""A practice: a method adopted at a site, restricted to a set of families, or both."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.equipment.family import Family
from baton.domain.federation.facility import Facility
from baton.domain.kernel import Aggregate, Call, Event, IdSet, JudgedCreation, Outcome, State, Verb, changed
from baton.domain.recipe.lifecycle import CURRENT, DEFINED, DEPRECATED, VERSIONED, OptionalReason, TemplateStatus
from baton.domain.recipe.method import Method
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.reads import Reads, required, required_all, required_if_given
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import FreeText


@dataclass(frozen=True, kw_only=True)
class Practice(State):
    """A practice is a method adopted at a site, restricted to a set of families, or both."""

    name: str
    method_id: UUID
    site_id: UUID | None
    family_ids: IdSet
    status: TemplateStatus = DEFINED
    version_tag: str | None = None
    versioned_at: datetime | None = None
    deprecated_at: datetime | None = None


practice = Aggregate(Practice, "/practices", context="recipe")


class PracticeDefined(Event, of=practice):
    """The method was adopted."""

    name: str
    method_id: UUID
    site_id: UUID | None
    family_ids: IdSet


class PracticeVersioned(Event, of=practice):
    """The practice was labelled as it stood."""

    version_tag: str


class PracticeDeprecated(Event, of=practice):
    """The practice was deprecated: no new plans are made of it."""

    reason: FreeText | None


PracticeEvent = PracticeVersioned | PracticeDeprecated


@practice.begin
def begin(event: PracticeDefined) -> Practice:
    return Practice(id=event.stream_id, created_at=event.occurred_at, **dict(event))


@practice.evolve
def evolve(practice: Practice, event: PracticeEvent) -> Practice:
    match event:
        case PracticeVersioned():
            return changed(practice, status=VERSIONED, version_tag=event.version_tag, versioned_at=event.occurred_at)
        case PracticeDeprecated():
            return changed(practice, status=DEPRECATED, deprecated_at=event.occurred_at)
        case _:
            assert_never(event)


class InvalidPracticeTargetError(Invalid, context="recipe"):
    """A practice is adopted at a site, for families, or both."""


@practice.creation(refuses=[Facility.aggregate.NotFound])
class DefinePractice(JudgedCreation[None]):
    """Adopt a method at a site, for a set of families, or both."""

    name: Annotated[str, practice.text("name", 200)]
    method_id: UUID
    site_id: UUID | None = None
    family_ids: Annotated[IdSet, Field(max_length=100)] = frozenset()

    def gather(self, call: Call) -> Reads[None]:
        yield from required(Method, self.method_id)
        yield from required_if_given(Facility, self.site_id)
        yield from required_all(Family, self.family_ids)

    def decide(self, call: Call, facts: None) -> Outcome:
        if self.site_id is None and not self.family_ids:
            raise InvalidPracticeTargetError(
                "The practice names neither a site nor a family; say where it is adopted.", reason="no_target"
            )
        return [PracticeDefined(**dict(self))]


@practice.command(post="/{practice_id}/version", allowed=CURRENT)
class VersionPractice(Verb[Practice]):
    """Label the practice as it stands."""

    version_tag: Annotated[str, practice.text("version_tag", 50)]

    def decide(self, practice: Practice, call: Call) -> Outcome:
        return [PracticeVersioned(version_tag=self.version_tag)]


@practice.command(post="/{practice_id}/deprecate", allowed=CURRENT, destructive=True)
class DeprecatePractice(Verb[Practice]):
    """Keep new plans from being made of it; the plans there are stay as they are."""

    reason: OptionalReason = None

    def decide(self, practice: Practice, call: Call) -> Outcome:
        return [PracticeDeprecated(reason=self.reason)]


practice.get()


class PracticeSummary(Summary):
    practice_id: UUID
    name: str
    method_id: UUID
    site_id: UUID | None
    family_ids: IdSet
    status: TemplateStatus
    version_tag: str | None
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None


@practice.listing(PracticeSummary)
class ListPractices(ListQuery):
    """Practices in order of definition."""

    status: TemplateStatus | None = None
    method_id: UUID | None = None
