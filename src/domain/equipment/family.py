"""A family: a device class (rotary stage, camera) with the affordances of its assets and the schema of their settings.
Its schema may change in place as long as no unit does; a new unit takes a new version."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, assert_never
from uuid import UUID

from baton.domain.equipment.affordance import Affordance, AffordanceGroup, AffordanceKind
from baton.domain.equipment.role import Role
from baton.domain.kernel import (
    Aggregate,
    Call,
    Creation,
    Event,
    IdSet,
    JudgedVerb,
    Outcome,
    Query,
    SortedSet,
    State,
    Value,
    Verb,
    copy_with,
)
from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.listing import NamedListQuery, Page, Summary
from baton.domain.shared.reads import Reads, find_all, require
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.schema import Schema, changed_units, check_declaration, declared_units
from baton.domain.shared.stored_values import Units
from baton.domain.shared.text import FreeText, OptionalReason, name_key
from baton.domain.shared.writes import Claim

FAMILY_NAME = "family-name"  # Claim kind: the family that holds a name.


class FamilyStatus(StrEnum):
    DEFINED = "Defined"
    VERSIONED = "Versioned"
    DEPRECATED = "Deprecated"


DEFINED, VERSIONED, DEPRECATED = FamilyStatus
CURRENT = (DEFINED, VERSIONED)


@dataclass(frozen=True, kw_only=True)
class Family(State):
    """A family is a device class, with the affordances of its assets and the schema of their settings."""

    name: str
    affordances: SortedSet[Affordance]
    settings_schema: Schema | None
    units_by_revision: Mapping[int, Units]  # Of every schema so far: settings stand under the one they were written under.
    status: FamilyStatus = DEFINED
    version_tag: str | None = None
    settings_schema_revision: int = 0
    """The number of times that the settings schema was set."""
    presented_role_ids: IdSet = frozenset()
    versioned_at: datetime | None = None
    deprecated_at: datetime | None = None

    @property
    def settings_schema_present(self) -> bool:
        return self.settings_schema is not None


family = Aggregate(Family, "/families", context="equipment")


class FamilyDefined(Event, of=family):
    """The family was defined, with these affordances and this settings schema."""

    name: str
    affordances: SortedSet[Affordance]
    settings_schema: Schema | None


class FamilyVersioned(Event, of=family):
    """The family was versioned, with these affordances and this settings schema."""

    version_tag: str
    affordances: SortedSet[Affordance]
    settings_schema: Schema | None
    settings_schema_revision: int


class FamilySettingsSchemaUpdated(Event, of=family):
    """The settings schema was replaced in place or, where it is null, withdrawn."""

    settings_schema: Schema | None
    settings_schema_revision: int


class FamilyRoleAdded(Event, of=family):
    """The family was let present a role."""

    role_id: UUID


class FamilyRoleRemoved(Event, of=family):
    """The family was stopped from presenting a role."""

    role_id: UUID


class FamilyDeprecated(Event, of=family, leads_to=DEPRECATED, dates="deprecated_at"):
    """The family was deprecated: it is not newly assigned any more."""

    reason: FreeText | None


FamilyEvent = FamilyVersioned | FamilySettingsSchemaUpdated | FamilyRoleAdded | FamilyRoleRemoved


@family.begin
def begin(event: FamilyDefined) -> Family:
    units = {0: declared_units(event.settings_schema)}
    return Family(id=event.stream_id, created_at=event.occurred_at, units_by_revision=units, **dict(event))


@family.evolve
def evolve(family: Family, event: FamilyEvent) -> Family:
    match event:
        case FamilyVersioned():
            replaced = copy_with(family, version_tag=event.version_tag, affordances=event.affordances)
            return copy_with(with_schema(replaced, event), status=VERSIONED, versioned_at=event.occurred_at)
        case FamilySettingsSchemaUpdated():
            return with_schema(family, event)
        case FamilyRoleAdded():
            return copy_with(family, presented_role_ids=family.presented_role_ids | {event.role_id})
        case FamilyRoleRemoved():
            return copy_with(family, presented_role_ids=family.presented_role_ids - {event.role_id})
        case _:
            assert_never(event)


def with_schema(family: Family, event: FamilyVersioned | FamilySettingsSchemaUpdated) -> Family:
    """Return the family under the event's revision of its schema; the units of earlier ones are remembered."""
    schema, revision = event.settings_schema, event.settings_schema_revision
    if revision == family.settings_schema_revision:
        return family
    units = {**family.units_by_revision, revision: declared_units(schema)}
    return copy_with(family, settings_schema=schema, settings_schema_revision=revision, units_by_revision=units)


class InvalidFamilySettingsSchemaError(Invalid, context="equipment"):
    """The settings schema names the wrong dialect, uses a keyword outside the allowed set or does not compile."""


@family.creation()
class DefineFamily(Creation):
    """Define a device class: what its assets let one do, and the schema their settings are checked against."""

    name: Annotated[str, family.text("name", 200)]
    affordances: SortedSet[Affordance]
    settings_schema: Schema | None = None

    def decide(self, call: Call) -> Outcome:
        check_declaration(self.settings_schema, InvalidFamilySettingsSchemaError)
        detail = f"A family named {self.name} exists already; use it or choose another name."
        taken = family.AlreadyExists(detail, reason="name_taken")
        return [FamilyDefined(**dict(self)), Claim(FAMILY_NAME, name_key(self.name), taken)]


@family.command(post="/{family_id}/version", allowed=CURRENT, leads_to=VERSIONED)
class VersionFamily(JudgedVerb[Family, dict[UUID, Role]]):
    """Replace the affordances and, where one is given, the schema: left out it stays, null withdraws it."""

    version_tag: Annotated[str, family.text("version_tag", 50)]
    affordances: SortedSet[Affordance]
    settings_schema: Schema | None = None

    def gather(self, family: Family, call: Call) -> Reads[dict[UUID, Role]]:
        return (yield from find_all(Role, sorted(family.presented_role_ids)))

    def decide(self, family: Family, call: Call, roles: dict[UUID, Role]) -> Outcome:
        check_declaration(self.settings_schema, InvalidFamilySettingsSchemaError)
        for role in roles.values():
            if missing := sorted(role.required_affordances - self.affordances):
                detail = f"The role {role.name} requires {', '.join(missing)}; keep them or remove the role first."
                raise self.cannot("role_contract_broken", detail, role_id=role.id, missing_affordances=missing)
        schema = self.settings_schema if "settings_schema" in self.model_fields_set else family.settings_schema
        revised = {"settings_schema": schema, "settings_schema_revision": revision_after(family, schema)}
        return [FamilyVersioned(**{**dict(self), **revised})]


@family.command(put="/{family_id}/settings-schema", allowed=CURRENT)
class UpdateFamilySettingsSchema(Verb[Family]):
    """Replace or, with null, withdraw the settings schema; units of properties that stay must stay too."""

    settings_schema: Schema | None

    def decide(self, family: Family, call: Call) -> Outcome:
        check_declaration(self.settings_schema, InvalidFamilySettingsSchemaError)
        revision = revision_after(family, self.settings_schema)
        if revision == family.settings_schema_revision:
            return []
        if altered := changed_units(family.settings_schema, self.settings_schema):
            names = ", ".join(altered)
            detail = f"The unit of {names} would change in place; use version_family with the new schema instead."
            raise self.cannot("unit_changed", detail, keys=altered)
        return [FamilySettingsSchemaUpdated(settings_schema=self.settings_schema, settings_schema_revision=revision)]


def revision_after(family: Family, schema: Schema | None) -> int:
    """Return the schema's revision once this one is declared; an equal schema is no change."""
    return family.settings_schema_revision + (canonical_json(schema) != canonical_json(family.settings_schema))


@family.command(post="/{family_id}/add-role", allowed=CURRENT)
class AddFamilyRole(JudgedVerb[Family, Role]):
    """Let the family present a role whose required affordances it has."""

    role_id: UUID

    def gather(self, family: Family, call: Call) -> Reads[Role]:
        return (yield from require(Role, self.role_id))

    def decide(self, family: Family, call: Call, role: Role) -> Outcome:
        if role.id in family.presented_role_ids:
            raise self.cannot("already_present", f"The family presents the role {role.name} already; nothing to add.")
        if missing := sorted(role.required_affordances - family.affordances):
            detail = f"The role {role.name} requires {', '.join(missing)}; version the family with them first."
            raise self.cannot("missing_affordances", detail, missing_affordances=missing)
        return [FamilyRoleAdded(role_id=role.id)]


@family.command(post="/{family_id}/remove-role")
class RemoveFamilyRole(Verb[Family]):
    """Stop the family from presenting a role."""

    role_id: UUID

    def decide(self, family: Family, call: Call) -> Outcome:
        if self.role_id not in family.presented_role_ids:
            raise self.cannot("not_present", "The family does not present this role; read the family for those it does.")
        return [FamilyRoleRemoved(role_id=self.role_id)]


@family.command(post="/{family_id}/deprecate", allowed=CURRENT, records=FamilyDeprecated, destructive=True)
class DeprecateFamily(Verb[Family]):
    """Keep the family from being newly assigned; assets that have it keep it, and its affordances still count."""

    reason: OptionalReason = None


GetFamily = family.get(hidden=["units_by_revision"])


class FamilySummary(Summary):
    family_id: UUID
    name: str
    status: FamilyStatus
    version_tag: str | None
    affordances: SortedSet[Affordance]
    presented_role_ids: IdSet
    settings_schema_present: bool
    """Whether the family has a settings schema."""
    created_at: datetime


@family.listing(FamilySummary)
class ListFamilies(NamedListQuery[FamilySummary]):
    """Families in order of definition."""

    filters: ClassVar[dict[str, str]] = {"role_id": "presented_role_id"}
    status: FamilyStatus | None = None
    affordance: Affordance | None = None
    role_id: UUID | None = None


class AffordanceRow(Value):
    """An affordance and what it means."""

    affordance: Affordance
    kind: AffordanceKind
    group: AffordanceGroup
    meaning: str
    """What the affordance means."""


@family.query(get="", path="/affordances", returns=Page[AffordanceRow])
class ListAffordances(Query[Page[AffordanceRow]]):
    """Every affordance a family can declare, with what it means; the list is closed and fits one page."""

    def answer(self, call: Call) -> Reads[Page[Any]]:
        rows = (AffordanceRow(affordance=one, kind=one.kind, group=one.group, meaning=one.meaning) for one in Affordance)
        return Page(tuple(rows), None)
        yield
