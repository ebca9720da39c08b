"""A method: a portable technique that realises a capability; it names families, supplies and roles, never assets. Its schema
of parameters stays within that of its capability, and changes in place unless a unit does, which takes a new version."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.equipment.family import Family
from baton.domain.equipment.role import Role
from baton.domain.equipment.values import PortDirection
from baton.domain.kernel import (
    Aggregate,
    Call,
    Event,
    IdSet,
    JudgedCreation,
    JudgedVerb,
    Outcome,
    SortedSet,
    Value,
    Verb,
    copy_with,
)
from baton.domain.recipe.capability import Capability, ExecutorShape
from baton.domain.recipe.lifecycle import CURRENT, DEFINED, Template, TemplateDeprecated, TemplateStatus, TemplateVersioned
from baton.domain.recipe.subset import first_violation
from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, require, require_all, require_if_given
from baton.domain.shared.refusals import Conflict, Invalid, NotFound, Refusal
from baton.domain.shared.schema import Schema, changed_units, check_declaration, declared_units
from baton.domain.shared.stored_values import Units, merged_parameters
from baton.domain.shared.text import OptionalReason, Text


class InvalidRoleNameError(Invalid, context="recipe"):
    """A role of a method needs a name that is not blank."""


RoleName = Annotated[str, Text(50, InvalidRoleNameError, "role name")]


class InvalidPortRequirementError(Invalid, context="recipe"):
    """A required port needs a name and a signal type that are not blank."""


class PortRequirement(Value):
    """A port that an asset in a role must have exactly as named."""

    port_name: Annotated[str, Text(100, InvalidPortRequirementError, "port name")]
    direction: PortDirection
    """Whether the signal must enter (Input) or leave (Output)."""
    signal_type: Annotated[str, Text(50, InvalidPortRequirementError, "signal type")]


class RoleRequirement(Value):
    """A part to be played in the method, by an asset of a family or by one that presents an equipment role."""

    role_name: RoleName
    family_id: UUID | None = None
    """The family of which the asset must be; this or a role."""
    role_id: UUID | None = None
    """The equipment role that the asset must present; this or a family."""
    required_ports: Annotated[tuple[PortRequirement, ...], Field(max_length=100)] = ()
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class Method(Template):
    """A method is a portable technique that realises a capability; it names families, supplies and roles, never assets."""

    name: str
    capability_id: UUID
    needed_family_ids: IdSet
    needed_supplies: SortedSet[str]
    parameters_schema: Schema | None
    units_by_revision: Mapping[int, Units]  # The units of every revision of the schema, for parameters stored under them.
    parameters_schema_revision: int = 0
    required_roles: tuple[RoleRequirement, ...] = ()  # Each role once, by name.

    @property
    def parameters_schema_present(self) -> bool:
        return self.parameters_schema is not None

    def units_at(self, revision: int | None) -> Units:
        """Return the units of one revision of the schema; none where nothing was written under any."""
        return {} if revision is None else self.units_by_revision[revision]

    def merged_parameters(
        self, stored: Mapping[str, object], revision: int | None, patch: Mapping[str, object], refusal: type[Refusal]
    ) -> tuple[dict[str, Any], bool]:
        """Return parameters stored under a revision of the schema after a patch, and whether anything changed."""
        return merged_parameters(stored, patch, self.units_at(revision), self.parameters_schema, refusal)

    def required_role(self, name: str) -> RoleRequirement | None:
        """Return the role of this name, or None."""
        return next((role for role in self.required_roles if role.role_name == name), None)


method = Aggregate(Method, "/methods", context="recipe")


class MethodDefined(Event, of=method):
    """The technique was defined."""

    name: str
    capability_id: UUID
    needed_family_ids: IdSet
    needed_supplies: SortedSet[str]
    parameters_schema: Schema | None


class MethodParametersSchemaUpdated(Event, of=method):
    """The parameter schema was replaced in place or, where it is null, withdrawn."""

    parameters_schema: Schema | None
    parameters_schema_revision: int


class MethodRequiredRoleAdded(Event, of=method):
    """The method got a role that an asset is to play."""

    role_name: str
    family_id: UUID | None
    role_id: UUID | None
    required_ports: tuple[PortRequirement, ...]
    optional: bool


class MethodRequiredRoleRemoved(Event, of=method):
    """A role was taken out of the method."""

    role_name: str


class MethodVersioned(TemplateVersioned, of=method):
    """The method was labelled, with this parameter schema."""

    parameters_schema: Schema | None
    parameters_schema_revision: int


class MethodDeprecated(TemplateDeprecated, of=method):
    """The method was deprecated: no new plans are made of it."""


MethodRoleEvent = MethodRequiredRoleAdded | MethodRequiredRoleRemoved
MethodEvent = MethodParametersSchemaUpdated | MethodRoleEvent | MethodVersioned | MethodDeprecated


@method.begin
def begin(event: MethodDefined) -> Method:
    units = {0: declared_units(event.parameters_schema)}
    return Method(id=event.stream_id, created_at=event.occurred_at, units_by_revision=units, **dict(event))


@method.evolve
def evolve(method: Method, event: MethodEvent) -> Method:
    match event:
        case MethodParametersSchemaUpdated():
            return copy_with(with_units(method, event), **dict(event))
        case MethodRequiredRoleAdded():
            roles = tuple(sorted((*method.required_roles, RoleRequirement(**dict(event))), key=lambda role: role.role_name))
            return copy_with(method, required_roles=roles)
        case MethodRequiredRoleRemoved():
            roles = tuple(role for role in method.required_roles if role.role_name != event.role_name)
            return copy_with(method, required_roles=roles)
        case MethodVersioned():
            return with_units(method, event).fold_lifecycle(event)
        case MethodDeprecated():
            return method.fold_lifecycle(event)
        case _:
            assert_never(event)


def with_units(method: Method, event: MethodParametersSchemaUpdated | MethodVersioned) -> Method:
    """Return the method with the units of this revision of its schema; those of earlier revisions stay."""
    units = {event.parameters_schema_revision: declared_units(event.parameters_schema)}
    return copy_with(method, units_by_revision={**method.units_by_revision, **units})


class InvalidMethodParametersSchemaError(Invalid, context="recipe"):
    """The parameter schema may not be declared as it is, or changes a unit in place."""


class InvalidRoleRequirementTargetError(Invalid, context="recipe", reason="not_one_target"):
    """A role is played by an asset of a family or by a presenter of an equipment role: one of the two is named."""


class MethodCapabilityExecutorMismatchError(Conflict, context="recipe", reason="executor_shape"):
    """The capability is not to be realised by methods."""


class MethodParametersNotSubsetError(Conflict, context="recipe", reason="not_subset"):
    """The parameter schema goes beyond that of the capability."""


class MethodRoleNameAlreadyDeclaredError(Conflict, context="recipe", reason="already_declared"):
    """The method has a role of this name already."""


class MethodRoleNameNotFoundError(NotFound, context="recipe"):
    """The method has no role of this name."""


SupplyKind = Annotated[str, method.text("needed_supplies", 50, label="kind of supply")]


@method.creation()
class DefineMethod(JudgedCreation[Capability]):
    """Define a technique that realises a capability: the families and supplies it needs, and its parameters."""

    name: Annotated[str, method.text("name", 200)]
    capability_id: UUID
    """The capability that the method realises."""
    needed_family_ids: Annotated[IdSet, Field(max_length=100)] = frozenset()
    needed_supplies: Annotated[SortedSet[SupplyKind], Field(max_length=100)] = frozenset()
    """The kinds of supply that its runs wait for, such as photon_beam, in a queue too; no later version changes them."""
    parameters_schema: Schema | None = None

    def gather(self, call: Call) -> Reads[Capability]:
        capability = yield from require(Capability, self.capability_id)
        yield from require_all(Family, self.needed_family_ids)
        return capability

    def decide(self, call: Call, capability: Capability) -> Outcome:
        check_declaration(self.parameters_schema, InvalidMethodParametersSchemaError)
        if ExecutorShape.METHOD not in capability.executor_shapes:
            detail = f"The capability {capability.code} is realised by procedures only; name one that allows METHOD."
            facts = {"capability_id": str(capability.id), "executor_shapes": sorted(capability.executor_shapes)}
            raise MethodCapabilityExecutorMismatchError(detail, facts=facts)
        check_subset(None, self.parameters_schema, capability)
        return [MethodDefined(**dict(self))]


@method.command(put="/{method_id}/parameters-schema")
class UpdateMethodParametersSchema(JudgedVerb[Method, Capability]):
    """Replace or, with null, withdraw the parameter schema; units of properties that stay must stay too."""

    parameters_schema: Schema | None

    def gather(self, method: Method, call: Call) -> Reads[Capability]:
        return (yield from require(Capability, method.capability_id))

    def decide(self, method: Method, call: Call, capability: Capability) -> Outcome:
        check_declaration(self.parameters_schema, InvalidMethodParametersSchemaError)
        revision = revision_after(method, self.parameters_schema)
        if revision == method.parameters_schema_revision:
            return []
        if keys := list(changed_units(method.parameters_schema, self.parameters_schema)):
            detail = f"The unit of {', '.join(keys)} would change in place; use version_method with the new schema instead."
            raise InvalidMethodParametersSchemaError(detail, reason="unit_changed", facts={"keys": keys})
        check_subset(method, self.parameters_schema, capability)
        return [MethodParametersSchemaUpdated(parameters_schema=self.parameters_schema, parameters_schema_revision=revision)]


def revision_after(method: Method, schema: Schema | None) -> int:
    """Return the schema's revision once this one is declared; an equal schema is no change."""
    return method.parameters_schema_revision + (canonical_json(schema) != canonical_json(method.parameters_schema))


def check_subset(method: Method | None, schema: Schema | None, capability: Capability) -> None:
    """Refuse a schema that goes beyond that of the capability as it stands now."""
    if violation := first_violation(schema, capability.parameters_schema):
        place = f"{violation.path}, where {violation.saying}"
        detail = f"The schema goes beyond that of the capability at {place}; stay within it."
        ids = {"method_id": None if method is None else str(method.id), "capability_id": str(capability.id)}
        raise MethodParametersNotSubsetError(detail, facts={**ids, "rule": violation.rule, "path": violation.path})


@method.command(post="/{method_id}/add-required-role", allowed=[DEFINED])
class AddMethodRequiredRole(JudgedVerb[Method, None]):
    """Add a role that an asset is to play, by its family or by an equipment role it presents, with the ports it needs."""

    requirement: RoleRequirement
    """The role to add, and who may play it."""

    def gather(self, method: Method, call: Call) -> Reads[None]:
        yield from require_if_given(Family, self.requirement.family_id)
        yield from require_if_given(Role, self.requirement.role_id)

    def decide(self, method: Method, call: Call, facts: None) -> Outcome:
        requirement, name = self.requirement, self.requirement.role_name
        if (requirement.family_id is None) == (requirement.role_id is None):
            detail = f"The role {name} must name a family_id or a role_id, and not both; name one."
            raise InvalidRoleRequirementTargetError(detail)
        if method.required_role(name) is not None:
            detail = f"The method has a role {name} already; remove it first or choose another name."
            raise MethodRoleNameAlreadyDeclaredError(detail, facts={"role_name": name})
        ports = sorted(set(requirement.required_ports), key=lambda port: tuple(dict(port).values()))
        return [MethodRequiredRoleAdded(**{**dict(requirement), "required_ports": tuple(ports)})]


@method.command(post="/{method_id}/remove-required-role", allowed=[DEFINED], destructive=True)
class RemoveMethodRequiredRole(Verb[Method]):
    """Take a role out of the method."""

    role_name: RoleName

    def decide(self, method: Method, call: Call) -> Outcome:
        if method.required_role(self.role_name) is None:
            detail = f"The method has no role {self.role_name}; read the method for those it has."
            raise MethodRoleNameNotFoundError(detail, facts={"role_name": self.role_name})
        return [MethodRequiredRoleRemoved(role_name=self.role_name)]


@method.command(post="/{method_id}/version", allowed=CURRENT, leads_to=TemplateStatus.VERSIONED)
class VersionMethod(JudgedVerb[Method, Capability]):
    """Label the method as it stands and, where one is given, replace its schema: left out it stays, null withdraws it.

    The families and supplies that it needs stay as they were defined; for others, define another method with its practice.
    """

    version_tag: Annotated[str, method.text("version_tag", 50)]
    parameters_schema: Schema | None = None

    def gather(self, method: Method, call: Call) -> Reads[Capability]:
        return (yield from require(Capability, method.capability_id))

    def decide(self, method: Method, call: Call, capability: Capability) -> Outcome:
        schema = method.parameters_schema
        if "parameters_schema" in self.model_fields_set:
            schema = self.parameters_schema
            check_declaration(schema, InvalidMethodParametersSchemaError)
            check_subset(method, schema, capability)
        tag, revision = self.version_tag, revision_after(method, schema)
        return [MethodVersioned(version_tag=tag, parameters_schema=schema, parameters_schema_revision=revision)]


@method.command(post="/{method_id}/deprecate", allowed=CURRENT, records=MethodDeprecated, destructive=True)
class DeprecateMethod(Verb[Method]):
    """Keep new plans from being made of it; the practices and plans there are stay as they are."""

    reason: OptionalReason = None


GetMethod = method.get(hidden=["units_by_revision"])


class MethodSummary(Summary):
    method_id: UUID
    name: str
    capability_id: UUID
    status: TemplateStatus
    version_tag: str | None
    parameters_schema_present: bool
    required_roles: tuple[RoleRequirement, ...]
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None


@method.listing(MethodSummary)
class ListMethods(NamedListQuery[MethodSummary]):
    """Methods in order of definition."""

    status: TemplateStatus | None = None
    capability_id: UUID | None = None
