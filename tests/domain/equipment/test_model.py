"""Models: the vendor's catalog, one entry for each part number, each of at least one family."""

from typing import Any
from uuid import UUID

import pytest

from baton.domain.equipment.family import DefineFamily
from baton.domain.equipment.model import (
    VENDOR_KEY,
    AddModelFamily,
    DefineModel,
    DeprecateModel,
    Manufacturer,
    Model,
    ModelDeprecated,
    RemoveModelFamily,
    VersionModel,
    vendor_key,
)
from tests.support.domain.world import World, expect_refusal, new_id
from tests.support.tables import for_each


@pytest.fixture
def world() -> World:
    return World()


def family(world: World, name: str = "RotaryStage") -> UUID:
    return world.create(DefineFamily(name=name, affordances=frozenset()))


def model_fields(family_id: UUID, **fields: Any) -> dict[str, Any]:
    return {
        "name": "acme_r250",
        "manufacturer": {"name": "Acme Motion"},
        "part_number": "R-250-AS",
        "declared_family_ids": [family_id],
        **fields,
    }


def define_model(world: World, family_id: UUID | None = None, **fields: Any) -> UUID:
    return world.create(DefineModel(**model_fields(family_id or family(world), **fields)))


@pytest.mark.parametrize(
    "fields",
    [
        {"name": " "},
        {"part_number": " "},
        {"version_tag": " "},
        {"manufacturer": {"name": " "}},
        {"manufacturer": {"name": "Acme", "identifier": " ", "identifier_type": "ROR"}},
    ],
)
def test_blank_texts_are_refused(world: World, fields: dict[str, Any]) -> None:
    with expect_refusal("InvalidModelError", "blank"):
        define_model(world, **fields)


@pytest.mark.parametrize(
    "manufacturer", [{"name": "Acme", "identifier": "https://ror.org/1"}, {"name": "Acme", "identifier_type": "GRID"}]
)
def test_a_manufacturers_identifier_and_its_type_go_together(world: World, manufacturer: dict[str, str]) -> None:
    with expect_refusal("InvalidModelError", "half_identifier"):
        define_model(world, manufacturer=manufacturer)


def test_a_model_declares_at_least_one_family(world: World) -> None:
    with expect_refusal("InvalidModelError", "no_families"):
        define_model(world, declared_family_ids=[])


def test_declared_families_must_exist_and_all_missing_ones_are_named(world: World) -> None:
    missing, rotary = sorted([new_id(), new_id()]), family(world)
    with expect_refusal("FamilyNotFoundError") as caught:
        define_model(world, rotary, declared_family_ids=[*reversed(missing), rotary])
    assert caught.value.facts == {"missing_ids": [str(id) for id in missing]}


@pytest.mark.parametrize("manufacturer", ["Acme Motion", " acme motion ", "ACME MOTION"])
def test_a_part_number_is_in_the_catalog_once(world: World, manufacturer: str) -> None:
    rotary = family(world)
    define_model(world, rotary)
    with expect_refusal("ModelAlreadyExistsError", "vendor_key_taken"):
        define_model(world, rotary, name="other", manufacturer={"name": manufacturer})


@pytest.mark.parametrize("fields", [{"part_number": "r-250-as"}, {"manufacturer": {"name": "Orbis Imaging"}}])
def test_another_part_number_or_manufacturer_is_another_model(world: World, fields: dict[str, Any]) -> None:
    rotary = family(world)
    assert define_model(world, rotary) != define_model(world, rotary, **fields)


def test_unidentified_units_stay_distinct(world: World) -> None:
    rotary = family(world)
    first = define_model(world, rotary, part_number="unknown-pending-confirmation")
    second = define_model(world, rotary, part_number="Unknown-Pending-Confirmation")
    assert first != second
    assert not [kind for kind, _ in world.claims if kind == VENDOR_KEY]


def test_a_version_replaces_the_whole_entry(world: World) -> None:
    linear = family(world, "LinearStage")
    entry = define_model(world, version_tag="1")
    first = world.state(Model, entry)
    assert (first.version_tag, first.manufacturer) == ("1", Manufacturer(name="Acme Motion"))
    fields = model_fields(linear, name="acme_r300", part_number="R-300", version_tag="2")
    world.when(VersionModel(**fields), on=entry)
    state = world.state(Model, entry)
    assert (state.version_tag, state.name) == ("2", "acme_r300")
    assert (state.part_number, state.declared_family_ids) == ("R-300", {linear})


def test_a_version_with_the_same_part_number_keeps_its_place_in_the_catalog(world: World) -> None:
    rotary = family(world)
    entry = define_model(world, rotary)
    world.when(VersionModel(**model_fields(rotary, manufacturer={"name": "ACME Motion"}, version_tag="2")), on=entry)
    with expect_refusal("ModelAlreadyExistsError"):
        define_model(world, rotary)


def test_a_version_with_another_part_number_frees_the_old_one_and_holds_the_new_one(world: World) -> None:
    rotary = family(world)
    entry = define_model(world, rotary)
    world.when(VersionModel(**model_fields(rotary, part_number="R-300", version_tag="2")), on=entry)
    define_model(world, rotary)
    with expect_refusal("ModelAlreadyExistsError"):
        define_model(world, rotary, part_number="R-300")


def test_a_version_cannot_take_the_part_number_of_another_model(world: World) -> None:
    rotary = family(world)
    define_model(world, rotary)
    other = define_model(world, rotary, part_number="R-300")
    with expect_refusal("ModelAlreadyExistsError", "vendor_key_taken"):
        world.when(VersionModel(**model_fields(rotary, version_tag="2")), on=other)


def test_an_unidentified_unit_is_identified_by_a_version_and_the_other_way_round(world: World) -> None:
    rotary = family(world)
    entry = define_model(world, rotary, part_number="unknown-pending-confirmation")
    world.when(VersionModel(**model_fields(rotary, version_tag="2")), on=entry)
    with expect_refusal("ModelAlreadyExistsError"):
        define_model(world, rotary)
    unknown = model_fields(rotary, part_number="unknown-pending-confirmation", version_tag="3")
    world.when(VersionModel(**unknown), on=entry)
    define_model(world, rotary)


def test_families_are_added_and_removed_strictly(world: World) -> None:
    rotary, linear = family(world), family(world, "LinearStage")
    entry = define_model(world, rotary)
    with expect_refusal("ModelCannotAddFamilyError", "already_present"):
        world.when(AddModelFamily(family_id=rotary), on=entry)
    with expect_refusal("FamilyNotFoundError"):
        world.when(AddModelFamily(family_id=new_id()), on=entry)
    world.when(AddModelFamily(family_id=linear), on=entry)
    assert world.state(Model, entry).declared_family_ids == {rotary, linear}
    with expect_refusal("ModelCannotRemoveFamilyError", "not_present"):
        world.when(RemoveModelFamily(family_id=new_id()), on=entry)
    world.when(RemoveModelFamily(family_id=rotary), on=entry)
    with expect_refusal("ModelCannotRemoveFamilyError", "last_family"):
        world.when(RemoveModelFamily(family_id=linear), on=entry)


def test_a_model_is_deprecated_with_or_without_a_reason_and_keeps_its_place_in_the_catalog(world: World) -> None:
    rotary = family(world)
    for part_number, reason in (("R-250-AS", None), ("R-300", "discontinued")):
        entry = define_model(world, rotary, part_number=part_number)
        with expect_refusal("InvalidReasonError", "blank"):
            world.when(DeprecateModel(reason="  "), on=entry)
        assert world.when(DeprecateModel(reason=reason), on=entry) == [ModelDeprecated(reason=reason)]
        with expect_refusal("ModelAlreadyExistsError"):
            define_model(world, rotary, part_number=part_number)
        for command in (AddModelFamily(family_id=rotary), RemoveModelFamily(family_id=rotary)):
            with expect_refusal(command.Cannot, "deprecated"):
                world.when(command, on=entry)


@for_each(
    ("one", "other"), [(("Acme", "R 250"), ("Acme R", "250")), (("A", '","'), ('A","', "")), (("A,B", "C"), ("A", "B,C"))]
)
def test_manufacturer_and_part_number_never_run_into_each_other(one: tuple[str, str], other: tuple[str, str]) -> None:
    keys = [vendor_key(Manufacturer(name=name), part) for name, part in (one, other)]
    assert keys[0] != keys[1]


def test_part_numbers_that_look_the_same_are_the_same() -> None:
    acme = Manufacturer(name="Acme")
    assert vendor_key(acme, "R\u00e9") == vendor_key(acme, "Re\u0301")
