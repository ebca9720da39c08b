"""A practice: a method adopted at a site, restricted to a set of families, or both."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from baton.domain.equipment.family import Family
from baton.domain.facility.facility import Facility
from baton.domain.kernel import Aggregate, Call, Event, IdSet, JudgedCreation, Outcome, Verb
from baton.domain.recipe.lifecycle import CURRENT, Template, TemplateDeprecated, TemplateStatus, TemplateVersioned
from baton.domain.recipe.method import Method
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, require, require_all, require_if_given
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import OptionalReason


@dataclass(frozen=True, kw_only=True)
class Practice(Template):
    """A practice is a method adopted at a site, restricted to a set of families, or both."""

    name: str
    method_id: UUID
    site_id: UUID | None
    family_ids: IdSet


practice = Aggregate(Practice, "/practices", context="recipe")


class PracticeDefined(Event, of=practice):
    """The method was adopted."""

    name: str
    method_id: UUID
    site_id: UUID | None
    family_ids: IdSet


class PracticeVersioned(TemplateVersioned, of=practice):
    """The practice was labelled as it stood."""


class PracticeDeprecated(TemplateDeprecated, of=practice):
    """The practice was deprecated: no new plans are made of it."""


practice.evolve(Practice.fold_lifecycle)


class InvalidPracticeTargetError(Invalid, context="recipe", reason="no_target"):
    """A practice is adopted at a site, for families, or both."""


@practice.creation()
class DefinePractice(JudgedCreation[None]):
    """Adopt a method at a site, for a set of families, or both.

    The assets of its plans must be of these families, and of those that the method needs.
    """

    name: Annotated[str, practice.text("name", 200)]
    method_id: UUID
    """The method that is adopted."""
    site_id: UUID | None = None
    """The facility that adopts the method, by its id of list_facilities; this, `family_ids` or both must be given."""
    family_ids: Annotated[IdSet, Field(max_length=100)] = frozenset()
    """The families that it is adopted for, by their ids of list_families; these, `site_id` or both must be given."""

    def gather(self, call: Call) -> Reads[None]:
        yield from require(Method, self.method_id)
        yield from require_if_given(Facility, self.site_id)
        yield from require_all(Family, self.family_ids)

    def decide(self, call: Call, facts: None) -> Outcome:
        if self.site_id is None and not self.family_ids:
            detail = (
                "The practice names neither a site nor a family; give site_id, the id of a facility (list_facilities), "
                "or family_ids (list_families)."
            )
            raise InvalidPracticeTargetError(detail)
        return [PracticeDefined(**dict(self))]


@practice.command(
    post="/{practice_id}/version", allowed=CURRENT, leads_to=TemplateStatus.VERSIONED, records=PracticeVersioned
)
class VersionPractice(Verb[Practice]):
    """Label the practice as it stands."""

    version_tag: Annotated[str, practice.text("version_tag", 50)]


@practice.command(post="/{practice_id}/deprecate", allowed=CURRENT, records=PracticeDeprecated, destructive=True)
class DeprecatePractice(Verb[Practice]):
    """Keep new plans from being made of it; the plans there are stay as they are."""

    reason: OptionalReason = None


GetPractice = practice.get()

COLUMNS = "name method_id site_id family_ids status version_tag created_at versioned_at deprecated_at"


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
class ListPractices(NamedListQuery[PracticeSummary]):
    """Practices in order of definition."""

    status: TemplateStatus | None = None
    method_id: UUID | None = None
