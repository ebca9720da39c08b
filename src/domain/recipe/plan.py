"""A plan: a practice bound to concrete assets and a window; a run executes it. Its own assets, not those above or below
them, cover what its practice, its method and their capability need; that is judged once, when the plan is defined."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, assert_never
from uuid import UUID

from pydantic import Field

from baton.domain.equipment.affordance import Affordance
from baton.domain.equipment.asset import DECOMMISSIONED, Asset
from baton.domain.equipment.asset_tree import affordances_of
from baton.domain.equipment.family import Family
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
from baton.domain.recipe.capability import Capability
from baton.domain.recipe.lifecycle import CURRENT, Template, TemplateDeprecated, TemplateStatus, TemplateVersioned
from baton.domain.recipe.method import Method
from baton.domain.recipe.practice import Practice
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, require, require_all
from baton.domain.shared.refusals import Conflict, Invalid
from baton.domain.shared.text import OptionalReason, Text
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


class DataRegistration(Value):
    """How the files of a run become datasets by themselves: where they are kept, and what captures them."""

    supply_id: Annotated[UUID, Field(description="The storage that the files are on.")]
    capturing_asset_id: Annotated[
        UUID | None, Field(description="The asset that captures raw data; without it no acquisitions are recorded.")
    ] = None
    raw_outputs: Annotated[
        SortedSet[Annotated[str, Field(min_length=1, max_length=100)]],
        Field(max_length=64, description="Outputs of programs that are raw data, as files that actions record always are."),
    ] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Plan(Template):
    """A plan is a practice bound to concrete assets and a window; it is what a run executes."""

    name: str
    practice_id: UUID
    method_id: UUID
    asset_ids: IdSet
    window_starts_at: datetime | None
    window_ends_at: datetime | None
    default_parameters: Mapping[str, Any] = field(default_factory=dict)
    parameters_schema_revision: int | None = None  # That of the method's schema, which the defaults were last written under.
    wires: tuple[Wire, ...] = ()
    role_bindings: tuple[RoleBinding, ...] = ()  # Each role once, by name.
    """Which asset plays which role."""
    data_registration: DataRegistration | None = None

    @property
    def default_parameters_present(self) -> bool:
        return bool(self.default_parameters)

    def asset_in_role(self, name: str) -> UUID | None:
        """Return the asset bound to this role, or None."""
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
    """The default parameters were patched: these are all of them, with the schema's revision that they obey."""

    default_parameters: dict[str, Any]
    parameters_schema_revision: int


class PlanWireEvent(Event):
    """A wire was added or removed."""

    source_asset_id: UUID
    source_port_name: str
    target_asset_id: UUID
    target_port_name: str

    @property
    def wire(self) -> Wire:
        return Wire(**dict(self))


class PlanWireAdded(PlanWireEvent, of=plan):
    """Two ports were connected."""


class PlanWireRemoved(PlanWireEvent, of=plan):
    """A connection was taken out of the plan."""


class PlanRoleBound(Event, of=plan):
    """An asset of the plan was bound to a role of the method."""

    role_name: str
    asset_id: UUID


class PlanRoleUnbound(Event, of=plan):
    """A role of the method was left unplayed again."""

    role_name: str


class PlanDataRegistrationSet(Event, of=plan, overwrites=True):
    """It was said how files of the plan's runs become datasets or, where it is null, that they do not by themselves."""

    data_registration: DataRegistration | None


class PlanVersioned(TemplateVersioned, of=plan):
    """The plan was labelled as it stood."""


class PlanDeprecated(TemplateDeprecated, of=plan):
    """The plan was deprecated: no new runs are started on it."""


PlanPartEvent = PlanWireAdded | PlanWireRemoved | PlanRoleBound | PlanRoleUnbound
PlanSettingEvent = PlanRescheduled | PlanDefaultParametersUpdated | PlanDataRegistrationSet
PlanEvent = PlanSettingEvent | PlanPartEvent | PlanVersioned | PlanDeprecated


@plan.evolve
def evolve(plan: Plan, event: PlanEvent) -> Plan:
    match event:
        case PlanRescheduled() | PlanDefaultParametersUpdated() | PlanDataRegistrationSet():
            return copy_with(plan, **dict(event))
        case PlanWireAdded():
            return copy_with(plan, wires=tuple(sorted((*plan.wires, event.wire), key=by_fields)))
        case PlanWireRemoved():
            return copy_with(plan, wires=tuple(wire for wire in plan.wires if wire != event.wire))
        case PlanRoleBound():
            bindings = (*plan.role_bindings, RoleBinding(**dict(event)))
            return copy_with(plan, role_bindings=tuple(sorted(bindings, key=by_fields)))
        case PlanRoleUnbound():
            bindings = tuple(binding for binding in plan.role_bindings if binding.role_name != event.role_name)
            return copy_with(plan, role_bindings=bindings)
        case PlanVersioned() | PlanDeprecated():
            return plan.fold_lifecycle(event)
        case _:
            assert_never(event)


def by_fields(value: Value) -> tuple[object, ...]:
    """Return the fields of a wire or a role binding, which these are sorted by."""
    return tuple(dict(value).values())


class InvalidPlanWindowError(Invalid, context="recipe"):
    """A window has a start and a later end, or there is none."""


class InvalidPlanDefaultParametersError(Invalid, context="recipe"):
    """The default parameters break the method's schema, or there is none, or a unit changed under a stored value."""


class PlanAssetsRequiredError(Invalid, context="recipe"):
    """A plan is bound to at least one asset."""


@dataclass(frozen=True)
class Binding:
    """A practice and the assets it is, or would be, bound to."""

    practice: Practice
    method: Method
    capability: Capability
    assets: Mapping[UUID, Asset]
    needed_family_ids: frozenset[UUID]  # The families that the method or the practice asks for.
    families: Mapping[UUID, Family]  # Those families, and all families of the assets.
    affordances: Mapping[UUID, frozenset[Affordance]]  # What each asset can do, by all its families together.

    @property
    def missing_family_ids(self) -> tuple[UUID, ...]:
        return missing_families(self.needed_family_ids, self.assets.values())

    @property
    def missing_affordances(self) -> tuple[Affordance, ...]:
        """What no asset can do; it does not matter which asset or family contributes what."""
        found = frozenset[Affordance]().union(*self.affordances.values())
        return tuple(sorted(self.capability.required_affordances - found))


def binding_of(practice_id: UUID, asset_ids: Iterable[UUID]) -> Reads[Binding]:
    """Return a practice with all that it needs, and assets with their families; refuse with 404 what is missing."""
    practice = yield from require(Practice, practice_id)
    method = yield from require(Method, practice.method_id)
    assets = yield from require_all(Asset, asset_ids)
    capability = yield from require(Capability, method.capability_id)
    needed = method.needed_family_ids | practice.family_ids
    families = yield from require_all(Family, needed.union(*(asset.family_ids for asset in assets.values())))
    affordances = yield from affordances_of(assets.values())
    return Binding(practice, method, capability, assets, needed, families, affordances)


def missing_families(needed: AbstractSet[UUID], assets: Iterable[Asset]) -> tuple[UUID, ...]:
    """Return the needed families that none of the assets is of, ascending."""
    return tuple(sorted(needed - frozenset[UUID]().union(*(asset.family_ids for asset in assets))))


class PlanBoundPracticeDeprecatedError(Conflict, context="recipe", reason="practice_deprecated"):
    """The practice is Deprecated and takes no new plans."""


class PlanBoundMethodDeprecatedError(Conflict, context="recipe", reason="method_deprecated"):
    """The practice's method is Deprecated and takes no new plans."""


class PlanAssetDecommissionedError(Conflict, context="recipe", reason="asset_decommissioned"):
    """An asset of the plan is Decommissioned."""


class PlanFamiliesNotSatisfiedError(Conflict, context="recipe", reason="families_missing"):
    """No asset of the plan is of a family that the method or the practice needs."""


class PlanAffordancesNotSatisfiedError(Conflict, context="recipe", reason="affordances_missing"):
    """No asset of the plan has an affordance that the capability requires."""


def check_binding(binding: Binding) -> None:
    """Refuse a binding that no plan may be made of."""
    if binding.practice.status not in CURRENT:
        detail = f"The practice {binding.practice.name} is Deprecated and takes no new plans; name its successor."
        raise PlanBoundPracticeDeprecatedError(detail, facts={"practice_id": str(binding.practice.id)})
    if binding.method.status not in CURRENT:
        detail = f"The method {binding.method.name} is Deprecated and takes no new plans; name a practice of its successor."
        raise PlanBoundMethodDeprecatedError(detail, facts={"method_id": str(binding.method.id)})
    if retired := [asset for asset in binding.assets.values() if asset.lifecycle is DECOMMISSIONED]:
        names = ", ".join(asset.name for asset in retired)
        detail = f"{names} cannot be planned with, being Decommissioned; bind assets that are in service."
        raise PlanAssetDecommissionedError(detail, facts={"asset_ids": sorted(str(asset.id) for asset in retired)})
    if family_ids := binding.missing_family_ids:
        names = ", ".join(binding.families[id].name for id in family_ids)
        detail = f"No asset of the plan is of these families, which are needed: {names}; bind one of each."
        raise PlanFamiliesNotSatisfiedError(detail, facts={"missing_family_ids": [str(id) for id in family_ids]})
    if affordances := [affordance.value for affordance in binding.missing_affordances]:
        lack = f"No asset of the plan is {', '.join(affordances)}, which {binding.capability.code} requires"
        remedy = "bind one that is (inspect_plan_binding), or add a family that is to one (define_family, add_asset_family)"
        detail = f"{lack}; {remedy}."
        raise PlanAffordancesNotSatisfiedError(detail, facts={"missing_affordances": affordances})


AssetIds = Annotated[IdSet, Field(max_length=1000)]


@plan.creation()
class DefinePlan(JudgedCreation[Binding]):
    """Bind a practice to assets that together cover what it needs, and say when it is meant to be executed."""

    name: Annotated[str, plan.text("name", 200)]
    practice_id: UUID
    """The practice that the plan binds to equipment."""
    asset_ids: AssetIds
    """The assets that the plan uses."""
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
    """Refuse a window with one end only, or one that ends before it begins."""
    if (starts_at is None) != (ends_at is None):
        detail = "The window has only one end; give window_starts_at and window_ends_at, or neither."
        raise InvalidPlanWindowError(detail, reason="half_window")
    if starts_at is not None and ends_at is not None and ends_at <= starts_at:
        detail = "The window ends before it has begun; set window_ends_at after window_starts_at."
        raise InvalidPlanWindowError(detail, reason="ends_before_start")


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
        return (yield from require(Method, plan.method_id))

    def decide(self, plan: Plan, call: Call, method: Method) -> Outcome:
        defaults, written, patch = plan.default_parameters, plan.parameters_schema_revision, self.default_parameters_patch
        merged, altered = method.merged_parameters(defaults, written, patch, InvalidPlanDefaultParametersError)
        if not altered:
            return []
        revision = method.parameters_schema_revision
        return [PlanDefaultParametersUpdated(default_parameters=merged, parameters_schema_revision=revision)]


@plan.command(post="/{plan_id}/version", allowed=CURRENT, leads_to=TemplateStatus.VERSIONED, records=PlanVersioned)
class VersionPlan(Verb[Plan]):
    """Label the plan as it stands; its roles are settled with that."""

    version_tag: Annotated[str, plan.text("version_tag", 50)]


@plan.command(post="/{plan_id}/deprecate", allowed=CURRENT, records=PlanDeprecated, destructive=True)
class DeprecatePlan(Verb[Plan]):
    """Keep new runs from being started on it; those that were started stay as they are."""

    reason: OptionalReason = None


GetPlan = plan.get()


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
    """Whether the plan has default parameters."""
    role_bindings: tuple[RoleBinding, ...]
    created_at: datetime
    versioned_at: datetime | None
    deprecated_at: datetime | None


@plan.listing(PlanSummary)
class ListPlans(NamedListQuery[PlanSummary]):
    """Plans in order of definition."""

    status: TemplateStatus | None = None
    practice_id: UUID | None = None
    method_id: UUID | None = None
