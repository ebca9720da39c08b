"""An assembly: a reusable blueprint of a cluster of devices: slots, wires between them, and included child blueprints.
Its content hash is built from names instead of ids, so equal blueprints of two facilities match."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from pydantic import AfterValidator, Field

from baton.domain.equipment.family import Family
from baton.domain.equipment.role import Role
from baton.domain.equipment.values import Drawing
from baton.domain.kernel import (
    Aggregate,
    Call,
    Command,
    Event,
    IdSet,
    JudgedCreation,
    JudgedVerb,
    Outcome,
    State,
    Value,
    Verb,
    copy_with,
)
from baton.domain.shared.canonical import canonical_json, content_hash
from baton.domain.shared.listing import NamedListQuery, Summary
from baton.domain.shared.reads import Reads, find_all
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.schema import Schema, check_declaration
from baton.domain.shared.text import FreeText, OptionalReason, Text, name_key


class AssemblyStatus(StrEnum):
    DEFINED = "Defined"
    VERSIONED = "Versioned"
    DEPRECATED = "Deprecated"


DEFINED, VERSIONED, DEPRECATED = AssemblyStatus
CURRENT = (DEFINED, VERSIONED)


class Cardinality(StrEnum):
    """How many assets a slot takes."""

    EXACTLY_1 = "Exactly1"
    ZERO_OR_ONE = "ZeroOrOne"
    ONE_OR_MORE = "OneOrMore"
    ZERO_OR_MORE = "ZeroOrMore"

    def takes(self, count: int) -> bool:
        """Return whether this many assets fill the slot."""
        return {
            Cardinality.EXACTLY_1: count == 1,
            Cardinality.ZERO_OR_ONE: count <= 1,
            Cardinality.ONE_OR_MORE: count >= 1,
            Cardinality.ZERO_OR_MORE: True,
        }[self]


SlotName = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(str.strip)]
"""The name of a slot or port; blank ones are judged with the rest of the blueprint."""
ContentHash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class RequiredSlot(Value):
    """A place for assets that belong to one of these families."""

    slot_name: SlotName
    required_family_ids: Annotated[IdSet, Field(max_length=100)]
    cardinality: Cardinality


class RequiredWire(Value):
    """A connection between the ports of two slots."""

    source_slot_name: SlotName
    source_port_name: SlotName
    target_slot_name: SlotName
    target_port_name: SlotName


class RequiredSubAssembly(Value):
    """A child blueprint, pinned to the content it had when it was included."""

    slot_name: SlotName
    sub_assembly_id: UUID
    content_hash: ContentHash


@dataclass(frozen=True, kw_only=True)
class Assembly(State):
    """An assembly is a reusable blueprint of a cluster of devices: slots, wires between them, and included blueprints."""

    name: str
    presented_role_ids: IdSet
    required_slots: tuple[RequiredSlot, ...]
    required_wires: tuple[RequiredWire, ...]
    required_sub_assemblies: tuple[RequiredSubAssembly, ...]
    parameter_overrides_schema: Schema | None
    drawing: Drawing | None
    version_tag: str | None
    content_hash: str
    status: AssemblyStatus = DEFINED


assembly = Aggregate(Assembly, "/assemblies", context="equipment")


class BlueprintEvent(Event):
    """The whole blueprint, as it stands from now on."""

    name: str
    presented_role_ids: IdSet
    required_slots: tuple[RequiredSlot, ...]
    required_wires: tuple[RequiredWire, ...]
    required_sub_assemblies: tuple[RequiredSubAssembly, ...]
    parameter_overrides_schema: Schema | None
    drawing: Drawing | None
    version_tag: str | None
    content_hash: str


class AssemblyDefined(BlueprintEvent, of=assembly):
    """The blueprint was defined."""


class AssemblyVersioned(BlueprintEvent, of=assembly):
    """The blueprint was replaced as a whole."""

    previous_content_hash: str


class AssemblyDeprecated(Event, of=assembly, leads_to=DEPRECATED):
    """The assembly was deprecated: no fixture is made from it any more."""

    reason: FreeText | None


@assembly.evolve
def evolve(assembly: Assembly, event: AssemblyVersioned) -> Assembly:
    return copy_with(assembly, status=VERSIONED, **{name: getattr(event, name) for name in BlueprintEvent.model_fields})


class InvalidAssemblyError(Invalid, context="equipment"):
    """The blueprint contradicts itself: a blank name, a slot, wire or included assembly that cannot be as it is written."""


class InvalidAssemblyParametersSchemaError(Invalid, context="equipment"):
    """The schema of the parameter overrides breaks a rule of declared schemas."""


class BlueprintReferences(NamedTuple):
    """What a blueprint refers to, by id."""

    roles: dict[UUID, Role]
    families: dict[UUID, Family]
    children: dict[UUID, Assembly]


class BlueprintCommand(Command):
    """A command that carries a whole blueprint."""

    name: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(str.strip)]
    presented_role_ids: Annotated[IdSet, Field(max_length=100)] = frozenset()
    required_slots: Annotated[tuple[RequiredSlot, ...], Field(max_length=1000)] = ()
    required_wires: Annotated[tuple[RequiredWire, ...], Field(max_length=1000)] = ()
    required_sub_assemblies: Annotated[tuple[RequiredSubAssembly, ...], Field(max_length=100)] = ()
    parameter_overrides_schema: Schema | None = None
    drawing: Drawing | None = None

    def gather(self, *_: Assembly | Call) -> Reads[BlueprintReferences]:
        """Return everything the blueprint refers to; the first missing one is named, all of them are in the facts."""
        family_ids = {id for slot in self.required_slots for id in slot.required_family_ids}
        child_ids = {sub.sub_assembly_id for sub in self.required_sub_assemblies}
        roles = yield from find_all(Role, sorted(self.presented_role_ids))
        families = yield from find_all(Family, sorted(family_ids))
        children = yield from find_all(Assembly, sorted(child_ids))
        missing = [
            *((Role.aggregate, id) for id in sorted(self.presented_role_ids - roles.keys())),
            *((Family.aggregate, id) for id in sorted(family_ids - families.keys())),
            *((Assembly.aggregate, id) for id in sorted(child_ids - children.keys())),
        ]
        for aggregate, first in missing:
            detail = f"There is no {aggregate.label} {first}; check the id or list what exists."
            raise aggregate.NotFound(detail, facts={"missing_ids": [id for _, id in missing]})
        return BlueprintReferences(roles, families, children)

    def blueprint(self, own_id: UUID, references: BlueprintReferences) -> dict[str, Any]:
        """Return the fields of the event that records this blueprint, or refuse one that contradicts itself."""
        check_texts(self)
        check_wires(self)
        check_nesting(own_id, references.children)
        check_slot_names(self, references.children)
        check_declaration(self.parameter_overrides_schema, InvalidAssemblyParametersSchemaError)
        if stale := stale_pins(self, references.children):
            detail = "An included assembly has changed since its content_hash was taken; read it and pin its current one."
            raise self.cannot("sub_assembly_hash_mismatch", detail, current_content_hashes=stale)
        return {
            **dict(self),
            "required_slots": tuple(sorted(self.required_slots, key=lambda slot: slot.slot_name)),
            "required_wires": tuple(sorted(set(self.required_wires), key=lambda wire: tuple(dict(wire).values()))),
            "required_sub_assemblies": tuple(sorted(self.required_sub_assemblies, key=lambda sub: sub.slot_name)),
            "content_hash": blueprint_hash(self, references),
        }


def check_texts(blueprint: BlueprintCommand) -> None:
    """Refuse blank names, and slots that no family may fill."""
    if not blueprint.name:
        raise contradiction("name", "The name is blank; give it at least one visible character.")
    slots, included = blueprint.required_slots, blueprint.required_sub_assemblies
    if not all((*(slot.slot_name for slot in slots), *(sub.slot_name for sub in included))):
        raise contradiction("slot", "A slot name is blank; give it at least one visible character.")
    for slot in slots:
        if not slot.required_family_ids:
            detail = f"The slot {slot.slot_name} names no family; name at least one whose assets may fill it."
            raise contradiction("slot", detail, slot_name=slot.slot_name)


def check_wires(blueprint: BlueprintCommand) -> None:
    """Refuse wires with blank ends, between undeclared slots, or from a port to itself."""
    declared = {slot.slot_name for slot in blueprint.required_slots}
    for wire in blueprint.required_wires:
        if not all(dict(wire).values()):
            raise contradiction("wire", "A wire names a blank slot or port; name all four.", **dict(wire))
        slot_name, port_name = wire.source_slot_name, wire.source_port_name
        if unknown := sorted({slot_name, wire.target_slot_name} - declared):
            detail = f"A wire ends at {unknown[0]}, which is no slot of this assembly; declare the slot or drop the wire."
            raise contradiction("unknown_slot", detail, slot_names=unknown)
        if (slot_name, port_name) == (wire.target_slot_name, wire.target_port_name):
            detail = f"A wire leads from {slot_name}.{port_name} to itself; name two different ports."
            raise contradiction("wire", detail, **dict(wire))


def check_nesting(own_id: UUID, children: dict[UUID, Assembly]) -> None:
    """Refuse an assembly that includes itself, or one that includes others in turn."""
    if own_id in children:
        raise contradiction("self_reference", "An assembly cannot include itself; include another one.")
    if nested := sorted(id for id, child in children.items() if child.required_sub_assemblies):
        detail = "An included assembly includes others itself; only one level is allowed, so include its parts directly."
        raise contradiction("nesting_too_deep", detail, sub_assembly_ids=nested)


def check_slot_names(blueprint: BlueprintCommand, children: dict[UUID, Assembly]) -> None:
    """Refuse a slot name used twice anywhere in the blueprint, included assemblies' slots counted."""
    names = Counter(slot.slot_name for slot in leaf_slots(blueprint, children))
    names.update(sub.slot_name for sub in blueprint.required_sub_assemblies)
    if twice := sorted(name for name, count in names.items() if count > 1):
        detail = f"The slot name {twice[0]} occurs more than once among slots, sub-assemblies and their slots; rename one."
        raise contradiction("slot_name_conflict", detail, slot_names=twice)


def contradiction(reason: str, detail: str, **facts: object) -> InvalidAssemblyError:
    """Return the refusal of a blueprint that contradicts itself."""
    return InvalidAssemblyError(detail, reason=reason, facts=facts)


def leaf_slots(blueprint: Assembly | BlueprintCommand, children: dict[UUID, Assembly]) -> Iterator[RequiredSlot]:
    """Yield all slots that assets go into: the assembly's own, then those of the included ones."""
    yield from blueprint.required_slots
    for sub in blueprint.required_sub_assemblies:
        yield from children[sub.sub_assembly_id].required_slots


def stale_pins(blueprint: Assembly | BlueprintCommand, children: dict[UUID, Assembly]) -> dict[str, str]:
    """Return the included assemblies whose content is not the pinned one, with the hash they have now."""
    return {
        str(sub.sub_assembly_id): children[sub.sub_assembly_id].content_hash
        for sub in blueprint.required_sub_assemblies
        if children[sub.sub_assembly_id].content_hash != sub.content_hash
    }


def blueprint_hash(blueprint: BlueprintCommand, references: BlueprintReferences) -> str:
    """Return the hash of what the blueprint says, whatever the order and the ids it was written with."""
    families = {id: name_key(family.name) for id, family in references.families.items()}
    return content_hash(
        {
            "name": blueprint.name,
            "presented_roles": _in_canonical_order(name_key(role.name) for role in references.roles.values()),
            "required_slots": _in_canonical_order(
                {
                    "slot_name": slot.slot_name,
                    "required_families": _in_canonical_order(families[id] for id in slot.required_family_ids),
                    "cardinality": slot.cardinality,
                }
                for slot in blueprint.required_slots
            ),
            "required_wires": _in_canonical_order(dict(wire) for wire in set(blueprint.required_wires)),
            "required_sub_assemblies": _in_canonical_order(
                {"slot_name": sub.slot_name, "content_hash": sub.content_hash} for sub in blueprint.required_sub_assemblies
            ),
            "parameter_overrides_schema": blueprint.parameter_overrides_schema,
        }
    )


def _in_canonical_order(values: Iterable[object]) -> list[object]:
    """Return a set as a list in the order of the canonical forms."""
    return sorted(values, key=canonical_json)


NOT_FOUND = [Role.aggregate.NotFound, Family.aggregate.NotFound, assembly.NotFound]
VersionTag = Annotated[str, Text(50, InvalidAssemblyError, "version tag")]


@assembly.creation(refuses=NOT_FOUND)
class DefineAssembly(BlueprintCommand, JudgedCreation[BlueprintReferences]):
    """Define a blueprint: its slots, the wires between them, and the assemblies it includes."""

    version_tag: VersionTag | None = None

    def decide(self, call: Call, references: BlueprintReferences) -> Outcome:
        return [AssemblyDefined(**self.blueprint(call.new_id, references))]


@assembly.command(post="/{assembly_id}/version", allowed=CURRENT, leads_to=VERSIONED, refuses=NOT_FOUND)
class VersionAssembly(BlueprintCommand, JudgedVerb[Assembly, BlueprintReferences]):
    """Replace a blueprint as a whole; fixtures made from the old one keep its hash."""

    version_tag: VersionTag

    def decide(self, assembly: Assembly, call: Call, references: BlueprintReferences) -> Outcome:
        previous = assembly.content_hash
        return [AssemblyVersioned(**self.blueprint(assembly.id, references), previous_content_hash=previous)]


@assembly.command(post="/{assembly_id}/deprecate", allowed=CURRENT, records=AssemblyDeprecated, destructive=True)
class DeprecateAssembly(Verb[Assembly]):
    """Let no fixture be made from this blueprint any more."""

    reason: OptionalReason = None


GetAssembly = assembly.get()


class AssemblySummary(Summary):
    assembly_id: UUID
    name: str
    status: AssemblyStatus
    version_tag: str | None
    content_hash: str
    presented_role_ids: IdSet
    created_at: datetime


@assembly.listing(AssemblySummary)
class ListAssemblies(NamedListQuery[AssemblySummary]):
    """Assemblies in order of definition."""

    filters = {"role_id": "presented_role_id"}
    status: AssemblyStatus | None = None
    content_hash: ContentHash | None = None
    role_id: UUID | None = None
