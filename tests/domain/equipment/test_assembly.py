"""Assemblies: what a blueprint may say, what it may include, and a hash that depends on nothing but its content."""

from copy import copy
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.equipment.assembly import (
    Assembly,
    AssemblyDeprecated,
    AssemblyVersioned,
    Cardinality,
    DefineAssembly,
    DeprecateAssembly,
    VersionAssembly,
)
from baton.domain.equipment.family import DefineFamily
from baton.domain.equipment.role import DefineRole
from tests.support.domain.world import World, expect_refusal
from tests.support.tables import for_each

FAMILIES = ("Camera", "Scintillator", "LinearStage", "Objective", "PseudoAxis")
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"distance": {"type": "number", "unit": {"system": "udunits", "code": "mm"}}},
}


class Catalog:
    """Families and a role by name, in a world of their own."""

    def __init__(self) -> None:
        self.world = World()
        self.families = {name: self.world.create(DefineFamily(name=name, affordances=[])) for name in FAMILIES}
        detector = DefineRole(name="Detector", description="takes images", required_affordances=["Imageable"])
        self.role = self.world.create(detector)

    def copy(self) -> "Catalog":
        catalog = copy(self)
        catalog.world = self.world.copy()
        return catalog

    def slot(self, name: str, *families: str, cardinality: str = "Exactly1") -> dict[str, Any]:
        family_ids = [self.families[family] for family in families]
        return {"slot_name": name, "required_family_ids": family_ids, "cardinality": cardinality}

    def define(self, name: str = "Optics", **fields: Any) -> UUID:
        return self.world.create(DefineAssembly(name=name, **fields))

    def optics(self) -> UUID:
        slots = [self.slot("turret", "LinearStage"), self.slot("objectives", "Objective", cardinality="OneOrMore")]
        return self.define("Optics", required_slots=slots)

    def pin(self, child: UUID, slot_name: str = "optics") -> dict[str, Any]:
        return {"slot_name": slot_name, "sub_assembly_id": child, "content_hash": self.state(child).content_hash}

    def state(self, id: UUID) -> Assembly:
        state: Assembly = self.world.state(Assembly, id)
        return state


@cache
def catalog_of(facility: str) -> Catalog:
    """The catalog of a facility, to be copied."""
    return Catalog()


@pytest.fixture
def catalog() -> Catalog:
    return Catalog()


def wire(source: str, target: str, source_port: str = "out", target_port: str = "in") -> dict[str, str]:
    return {
        "source_slot_name": source,
        "source_port_name": source_port,
        "target_slot_name": target,
        "target_port_name": target_port,
    }


def test_a_microscope_includes_its_optics(catalog: Catalog) -> None:
    optics = catalog.optics()
    microscope = catalog.define(
        "Microscope",
        presented_role_ids=[catalog.role],
        required_slots=[
            catalog.slot("scintillator", "Scintillator"),
            catalog.slot("camera", "Camera", cardinality="ZeroOrOne"),
        ],
        required_wires=[wire("camera", "scintillator")],
        required_sub_assemblies=[catalog.pin(optics)],
        parameter_overrides_schema=SCHEMA,
        version_tag=" v1 ",
    )
    state = catalog.state(microscope)
    assert state.version_tag == "v1"
    assert [slot.slot_name for slot in state.required_slots] == ["camera", "scintillator"]
    assert len(state.content_hash) == 64


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": "  "}, "name"),
        ({"required_slots": [{"slot_name": " ", "required_family_ids": [], "cardinality": "Exactly1"}]}, "slot"),
        ({"required_slots": [{"slot_name": "a", "required_family_ids": [], "cardinality": "Exactly1"}]}, "slot"),
        ({"required_wires": [wire("camera", " ")]}, "wire"),
        ({"required_wires": [wire("camera", "camera", "out", "out")]}, "wire"),
        ({"required_wires": [wire("camera", "nowhere")]}, "unknown_slot"),
    ],
)
def test_a_blueprint_that_contradicts_itself_is_refused(catalog: Catalog, fields: dict[str, Any], reason: str) -> None:
    sound = {"name": "Optics", "required_slots": [catalog.slot("camera", "Camera")]}
    with expect_refusal("InvalidAssemblyError", reason):
        catalog.define(**{**sound, **fields})


def test_a_wire_may_join_two_ports_of_one_slot(catalog: Catalog) -> None:
    slots = [catalog.slot("camera", "Camera")]
    assembly = catalog.define(required_slots=slots, required_wires=[wire("camera", "camera", "trigger", "busy")] * 2)
    assert len(catalog.state(assembly).required_wires) == 1


def test_a_blank_version_tag_or_drawing_is_refused(catalog: Catalog) -> None:
    with expect_refusal("InvalidAssemblyError"):
        catalog.define(version_tag=" ")
    with expect_refusal("InvalidDrawingError"):
        catalog.define(drawing={"system": "DOI", "number": " "})


def test_a_schema_that_may_not_be_declared_is_refused(catalog: Catalog) -> None:
    with expect_refusal("InvalidAssemblyParametersSchemaError"):
        catalog.define(parameter_overrides_schema={"type": "object"})


def test_the_first_missing_reference_is_named_and_all_are_in_the_facts(catalog: Catalog) -> None:
    role, family, other, child = (UUID(int=n) for n in (4, 3, 2, 1))
    slots = [
        {"slot_name": name, "required_family_ids": [id], "cardinality": "Exactly1"}
        for name, id in (("a", family), ("b", other))
    ]
    subs = [{"slot_name": "c", "sub_assembly_id": child, "content_hash": "0" * 64}]
    with expect_refusal("RoleNotFoundError") as caught:
        catalog.define(presented_role_ids=[role], required_slots=slots, required_sub_assemblies=subs)
    assert caught.value.facts == {"missing_ids": [str(id) for id in (role, other, family, child)]}
    with expect_refusal("FamilyNotFoundError") as caught:
        catalog.define(required_slots=slots, required_sub_assemblies=subs)
    assert str(other) in caught.value.detail
    with expect_refusal("AssemblyNotFoundError"):
        catalog.define(required_sub_assemblies=subs)


def test_slot_names_share_one_flat_namespace(catalog: Catalog) -> None:
    optics, camera = catalog.optics(), catalog.slot("camera", "Camera")
    clashes = {
        "camera": {"required_slots": [camera, camera]},
        "turret": {"required_slots": [catalog.slot("turret", "Camera")], "required_sub_assemblies": [catalog.pin(optics)]},
        "objectives": {"required_sub_assemblies": [catalog.pin(optics, "objectives")]},
        "optics": {"required_slots": [catalog.slot("optics", "Camera")], "required_sub_assemblies": [catalog.pin(optics)]},
    }
    for name, fields in clashes.items():
        with expect_refusal("InvalidAssemblyError", "slot_name_conflict") as caught:
            catalog.define("Microscope", **fields)
        assert caught.value.facts == {"slot_names": [name]}


def test_a_child_is_included_once_since_its_slots_would_clash(catalog: Catalog) -> None:
    optics = catalog.optics()
    with expect_refusal("InvalidAssemblyError", "slot_name_conflict"):
        catalog.define("Microscope", required_sub_assemblies=[catalog.pin(optics, "left"), catalog.pin(optics, "right")])


def test_assemblies_nest_one_level_deep(catalog: Catalog) -> None:
    microscope = catalog.define("Microscope", required_sub_assemblies=[catalog.pin(catalog.optics())])
    with expect_refusal("InvalidAssemblyError", "nesting_too_deep") as caught:
        catalog.define("Endstation", required_sub_assemblies=[catalog.pin(microscope, "microscope")])
    assert caught.value.facts == {"sub_assembly_ids": [str(microscope)]}


def test_an_assembly_does_not_include_itself(catalog: Catalog) -> None:
    optics = catalog.optics()
    with expect_refusal("InvalidAssemblyError", "self_reference"):
        itself = VersionAssembly(name="Optics", required_sub_assemblies=[catalog.pin(optics, "again")], version_tag="v2")
        catalog.world.when(itself, on=optics)


def test_a_pin_must_be_the_childs_current_content(catalog: Catalog) -> None:
    optics = catalog.optics()
    pin = catalog.pin(optics)
    catalog.world.when(VersionAssembly(name="Optics", version_tag="v2"), on=optics)
    current = {"current_content_hashes": {str(optics): catalog.state(optics).content_hash}}
    with expect_refusal("AssemblyCannotDefineError", "sub_assembly_hash_mismatch") as caught:
        catalog.define("Microscope", required_sub_assemblies=[pin])
    assert caught.value.facts == current
    microscope = catalog.define("Microscope", required_sub_assemblies=[catalog.pin(optics)])
    with expect_refusal("AssemblyCannotVersionError", "sub_assembly_hash_mismatch"):
        stale = VersionAssembly(name="Microscope", required_sub_assemblies=[pin], version_tag="v2")
        catalog.world.when(stale, on=microscope)


def test_a_version_replaces_the_whole_blueprint(catalog: Catalog) -> None:
    optics = catalog.optics()
    before = catalog.state(optics)
    [event] = catalog.world.when(VersionAssembly(name="Lens", version_tag="v2"), on=optics)
    after = catalog.state(optics)
    assert isinstance(event, AssemblyVersioned)
    assert event.previous_content_hash == before.content_hash != after.content_hash
    assert (after.name, after.required_slots, after.version_tag) == ("Lens", (), "v2")


def test_a_reason_to_deprecate_may_be_left_out_but_not_be_blank(catalog: Catalog) -> None:
    optics, lens = catalog.optics(), catalog.define("Lens")
    with expect_refusal("InvalidReasonError"):
        catalog.world.when(DeprecateAssembly(reason=" "), on=optics)
    for id, reason in ((optics, None), (lens, "obsolete")):
        assert catalog.world.when(DeprecateAssembly(reason=reason), on=id) == [AssemblyDeprecated(reason=reason)]
    with expect_refusal("AssemblyCannotVersionError", "deprecated"):
        catalog.world.when(VersionAssembly(name=" ", version_tag="v2"), on=optics)


@for_each(
    ("cardinality", "fitting"),
    [("Exactly1", {1}), ("ZeroOrOne", {0, 1}), ("OneOrMore", {1, 2, 3}), ("ZeroOrMore", {0, 1, 2, 3})],
)
def test_a_cardinality_takes_so_many_assets(cardinality: str, fitting: set[int]) -> None:
    assert {count for count in range(4) if Cardinality(cardinality).takes(count)} == fitting


def test_drawing_and_version_tag_are_no_part_of_the_hash(catalog: Catalog) -> None:
    plain = catalog.define()
    marked = catalog.define(drawing={"system": "DOI", "number": "10.1/x"}, version_tag="v7")
    assert catalog.state(plain).content_hash == catalog.state(marked).content_hash


@pytest.mark.parametrize(
    "difference",
    [
        {"name": "Lens"},
        {"presented_role_ids": []},
        {"required_slots": ["camera"]},
        {"required_wires": []},
        {"required_sub_assemblies": []},
        {"parameter_overrides_schema": {}},
        {"parameter_overrides_schema": None},
    ],
)
def test_everything_else_is_part_of_the_hash(catalog: Catalog, difference: dict[str, Any]) -> None:
    optics = catalog.optics()
    whole: dict[str, Any] = {
        "name": "Microscope",
        "presented_role_ids": [catalog.role],
        "required_slots": ["camera", "scintillator"],
        "required_wires": [wire("camera", "camera")],
        "required_sub_assemblies": [catalog.pin(optics)],
        "parameter_overrides_schema": SCHEMA,
    }

    def content_hash(fields: dict[str, Any]) -> str:
        slots = [catalog.slot(name, name.capitalize()) for name in fields["required_slots"]]
        return catalog.state(catalog.define(**{**fields, "required_slots": slots})).content_hash

    assert content_hash({**whole, **difference}) != content_hash(whole)


names = st.lists(st.text("abcdefgh", min_size=1, max_size=4), min_size=1, max_size=5, unique=True)
blueprints = names.flatmap(
    lambda slots: st.fixed_dictionaries(
        {
            "slots": st.fixed_dictionaries(
                {
                    slot: st.tuples(st.sets(st.sampled_from(FAMILIES), min_size=1), st.sampled_from(Cardinality))
                    for slot in slots
                }
            ),
            "wires": st.lists(st.tuples(st.sampled_from(slots), st.sampled_from(slots)), max_size=4),
        }
    )
)


@given(blueprint=blueprints, data=st.data())
def test_equal_blueprints_of_two_facilities_have_equal_hashes_in_whatever_order(blueprint: Any, data: st.DataObject) -> None:
    hashes = set()
    for facility in ("one", "other"):
        catalog = catalog_of(facility).copy()
        slots = [
            catalog.slot(name, *data.draw(st.permutations(sorted(families))), cardinality=cardinality)
            for name, (families, cardinality) in blueprint["slots"].items()
        ]
        wires = [wire(source, target) for source, target in blueprint["wires"]]
        assembly = catalog.define(
            presented_role_ids=[catalog.role],
            required_slots=data.draw(st.permutations(slots)),
            required_wires=data.draw(st.permutations(wires)),
        )
        hashes.add(catalog.state(assembly).content_hash)
    assert len(hashes) == 1
