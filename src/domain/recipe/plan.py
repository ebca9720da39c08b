"""A plan: a practice bound to concrete assets and a window; what a run executes.

Here are its state, its events, how they fold, and the verbs of its life; its wires, its roles and the inspection of a
binding before there is a plan have modules of their own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.kernel import (
    Aggregate,
    Call,
    Event,
    IdSet,
    JudgedCreation,
    JudgedVerb,
    Outcome,
    State,
    Value,
    Verb,
    changed,
)
from baton.domain.recipe.lifecycle import CURRENT, DEFINED, DEPRECATED, VERSIONED, OptionalReason, TemplateStatus
from baton.domain.recipe.method import Method
from baton.domain.recipe.parameters import merged_parameters
from baton.domain.recipe.plan_binding import Binding, binding_of, check_binding
from baton.domain.shared.listing import ListQuery, Summary
from baton.domain.shared.reads import Reads, required
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import FreeText, Text
from baton.domain.shared.times import Instant


class InvalidWireError(Invalid, context="recipe"):
    """A wire needs the names of both its ports."""


class Wire(Value):
    """A connection from a port of one asset to a port of another, or of the same."""

    source_asset_id: UUID
    source_port_name: Annotated[str, Text(100, InvalidWireError, "source port name")]
    target_asset_id: UUID
    target_port_name: Annotated[str, Text(100, InvalidWireError, "target port name")]


class RoleBinding(Value):
    """The asset that plays a role of the method."""

    role_name: str
    asset_id: UUID


@dataclass(frozen=True, kw_only=True)
class Plan(State):
    """A plan is a practice bound to concrete assets and a window; it is what a run executes."""

    name: str
    practice_id: UUID
    method_id: UUID
    asset_ids: IdSet
    window_starts_at: datetime | None
    window_ends_at: datetime | None
    default_parameters: Mapping[str, Any]
    parameters_schema_revision: int | None = None
    """The revision of the method's schema that the default parameters were last written under."""
    wires: tuple[Wire, ...] = ()
    role_bindings: tuple[RoleBinding, ...] = ()
    """Each role once, by name."""
    status: TemplateStatus = DEFINED
    version_tag: str | None = None
    versioned_at: datetime | None = None
    deprecated_at: datetime | None = None

    @property
    def default_parameters_present(self) -> bool:
        return bool(self.default_parameters)

    def asset_in_role(self, name: str) -> UUID | None:
        """The asset that plays this role, if one is bound to it."""
        return next((binding.asset_id for binding in self.role_bindings if binding.role_name == name), None)


plan = Aggregate(Plan, "/plans", context="recipe")


class PlanDefined(Event, of=plan):
    """The practice was bound to these assets; the snapshots, kept for audit, say what that was judged by."""

    name: str
    practice_id: UUID
    method_id: UUID
    asset_ids: IdSet
    window_starts_at: datetime | None
    window_ends_at: datetime | None
    method_needed_family_ids_snapshot: IdSet
    asset_families_snapshot: dict[UUID, tuple[UUID, ...]]


class PlanRescheduled(Event, of=plan, overwrites=True):
    """The window was moved or, where it is null, cleared."""

    window_starts_at: datetime | None
    window_ends_at: datetime | None


class PlanDefaultParametersUpdated(Event, of=plan, overwrites=True):
    """The default parameters were patched: these are all of them, with the schema's revision they stand under."""

    default_parameters: dict[str, Any]
    parameters_schema_revision: int


class PlanWireAdded(Event, of=plan):
    """Two ports were connected."""

    source_asset_id: UUID
    source_port_name: str
    target_asset_id: UUID
    target_port_name: str


class PlanWireRemoved(Event, of=plan):
    """A connection was taken out of the plan."""

    source_asset_id: UUID
    source_port_name: str
    target_asset_id: UUID
    target_port_name: str


class PlanRoleBound(Event, of=plan):
    """An asset of the plan was bound to a role of the method."""

    role_name: str
    asset_id: UUID


class PlanRoleUnbound(Event, of=plan):
    """A role of the method was left unplayed again."""

    role_name: str


class PlanVersioned(Event, of=plan):
    """The plan was labelled as it stood."""

    version_tag: str


class PlanDeprecated(Event, of=plan):
    """The plan was deprecated: no new runs are started on it."""

    reason: FreeText | None


PlanEvent = (
    PlanRescheduled
    | PlanDefaultParametersUpdated
    | PlanWireAdded
    | PlanWireRemoved
    | PlanRoleBound
    | PlanRoleUnbound
    | PlanVersioned
    | PlanDeprecated
)


@plan.begin
def begin(event: PlanDefined) -> Plan:
    return Plan(
        id=event.stream_id,
        created_at=event.occurred_at,
        name=event.name,
        practice_id=event.practice_id,
        method_id=event.method_id,
        asset_ids=event.asset_ids,
        window_starts_at=event.window_starts_at,
        window_ends_at=event.window_ends_at,
        default_parameters={},
    )


@plan.evolve
def evolve(plan: Plan, event: PlanEvent) -> Plan:
    match event:
        case PlanRescheduled() | PlanDefaultParametersUpdated():
            return changed(plan, **dict(event))
        case PlanWireAdded():
            return changed(plan, wires=in_order((*plan.wires, Wire(**dict(event)))))
        case PlanWireRemoved():
            removed = Wire(**dict(event))
            return changed(plan, wires=tuple(wire for wire in plan.wires if wire != removed))
        case PlanRoleBound():
            return changed(plan, role_bindings=in_order((*plan.role_bindings, RoleBinding(**dict(event)))))
        case PlanRoleUnbound():
            kept = tuple(binding for binding in plan.role_bindings if binding.role_name != event.role_name)
            return changed(plan, role_bindings=kept)
        case PlanVersioned():
            return changed(plan, status=VERSIONED, version_tag=event.version_tag, versioned_at=event.occurred_at)
        case PlanDeprecated():
            return changed(plan, status=DEPRECATED, deprecated_at=event.occurred_at)
        case _:
            assert_never(event)


V = TypeVar("V", Wire, RoleBinding)


def in_order(values: Iterable[V]) -> tuple[V, ...]:
    """Wires or role bindings in the order they are shown: by their fields, one after the other."""
    return tuple(sorted(values, key=lambda value: tuple(dict(value).values())))


class InvalidPlanWindowError(Invalid, context="recipe"):
    """A window has a start and a later end, or there is none."""


class InvalidPlanDefaultParametersError(Invalid, context="recipe"):
    """The default parameters break the method's schema, or there is none, or a unit changed under a stored value."""


class PlanAssetsRequiredError(Invalid, context="recipe"):
    """A plan is bound to at least one asset."""


AssetIds = Annotated[IdSet, Field(max_length=1000)]


@plan.creation()
class DefinePlan(JudgedCreation[Binding]):
    """Bind a practice to assets that together cover what it needs, and say when it is meant to be executed."""

    name: Annotated[str, plan.text("name", 200)]
    practice_id: UUID
    asset_ids: AssetIds
    window_starts_at: Instant | None = None
    window_ends_at: Instant | None = None

    def gather(self, call: Call) -> Reads[Binding]:
        return (yield from binding_of(self.practice_id, self.asset_ids))

    def decide(self, call: Call, binding: Binding) -> Outcome:
        check_window(self.window_starts_at, self.window_ends_at)
        check_assets_given(self.asset_ids)
        check_binding(binding)
        return [
            PlanDefined(
                **dict(self),
                method_id=binding.method.id,
                method_needed_family_ids_snapshot=binding.method.needed_family_ids,
                asset_families_snapshot={id: tuple(sorted(binding.assets[id].family_ids)) for id in sorted(self.asset_ids)},
            )
        ]


def check_window(starts_at: datetime | None, ends_at: datetime | None) -> None:
    """Refuse half a window, and one that ends before it has begun."""
    if starts_at is None and ends_at is None:
        return
    if starts_at is None or ends_at is None:
        raise InvalidPlanWindowError(
            "The window has only one end; give window_starts_at and window_ends_at, or neither.", reason="half_window"
        )
    if ends_at <= starts_at:
        raise InvalidPlanWindowError(
            "The window ends before it has begun; set window_ends_at after window_starts_at.", reason="ends_before_start"
        )


def check_assets_given(asset_ids: IdSet) -> None:
    """Refuse to bind a practice to nothing."""
    if not asset_ids:
        raise PlanAssetsRequiredError("No asset is given; name at least one asset to bind.", reason="empty")


@plan.command(post="/{plan_id}/reschedule", allowed=CURRENT)
class ReschedulePlan(Verb[Plan]):
    """Move the window or, with null for both ends, clear it; the window informs and keeps no run from starting."""

    window_starts_at: Instant | None
    window_ends_at: Instant | None

    def decide(self, plan: Plan, call: Call) -> Outcome:
        check_window(self.window_starts_at, self.window_ends_at)
        return [PlanRescheduled(**dict(self))]


@plan.command(patch="/{plan_id}/default-parameters")
class UpdatePlanDefaultParameters(JudgedVerb[Plan, Method]):
    """Merge a patch into the default parameters: a value sets, null deletes, what is left out stays, objects merge."""

    default_parameters_patch: dict[str, Any]

    def gather(self, plan: Plan, call: Call) -> Reads[Method]:
        return (yield from required(Method, plan.method_id))

    def decide(self, plan: Plan, call: Call, method: Method) -> Outcome:
        merged, altered = merged_parameters(
            plan.default_parameters,
            self.default_parameters_patch,
            written=method.units_at(plan.parameters_schema_revision),
            schema=method.parameters_schema,
            refusal=InvalidPlanDefaultParametersError,
        )
        if not altered:
            return []
        revision = method.parameters_schema_revision
        return [PlanDefaultParametersUpdated(default_parameters=merged, parameters_schema_revision=revision)]


@plan.command(post="/{plan_id}/version", allowed=CURRENT)
class VersionPlan(Verb[Plan]):
    """Label the plan as it stands; its roles are settled with that."""

    version_tag: Annotated[str, plan.text("version_tag", 50)]

    def decide(self, plan: Plan, call: Call) -> Outcome:
        return [PlanVersioned(version_tag=self.version_tag)]


@plan.command(post="/{plan_id}/deprecate", allowed=CURRENT, destructive=True)
class DeprecatePlan(Verb[Plan]):
    """Keep new runs from being started on it; those that were started stay as they are."""

    reason: OptionalReason = None

    def decide(self, plan: Plan, call: Call) -> Outcome:
        return [PlanDeprecated(reason=self.reason)]


plan.get()


class PlanSummary(Summary):
    plan_id: UUID
    name: str
    practice_id: UUID
    method_id: UUID
    status: TemplateStatus
    version_tag: str | None
    window_starts_at: datetime | None
    window_ends_at: datetime | None
    default_parameters_present: bool
    role_bindings: tuple[RoleBinding, ...]
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None


@plan.listing(PlanSummary)
class ListPlans(ListQuery):
    """Plans in order of definition."""

    status: TemplateStatus | None = None
    practice_id: UUID | None = None
    method_id: UUID | None = None
