"""Who owns a signal of the control system, and between which values it may be set."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from baton.domain.equipment.asset import AssetSignalLimitsSet
from baton.domain.equipment.asset_parts import AddAssetAlternateIdentifier, RemoveAssetAlternateIdentifier
from baton.domain.equipment.asset_tree import DecommissionAsset
from baton.domain.equipment.signals import SIGNALS, SetAssetSignalLimits, SignalLimits, owners_of, tightest_limits
from baton.domain.shared.reads import Members, Streams
from tests.support.domain.assets import asset_of, facility_world, requested_reads, root, run_reads
from tests.support.domain.world import World, expect_refusal
from tests.support.tables import for_each

PV = "EPICS_PV"


@pytest.fixture
def world() -> World:
    return facility_world()


def register_owner(world: World, *identifiers: str, kind: str = PV) -> UUID:
    """Register an asset with these identifiers."""
    return root(world, alternate_identifiers=[{"kind": kind, "value": value} for value in identifiers])


def owner_ids(world: World, address: str) -> set[UUID]:
    return {owner.id for owner in run_reads(world, owners_of([address]))[address]}


def limit(world: World, id: UUID, address: str, **limits: float | None) -> list[Any]:
    return world.when(SetAssetSignalLimits(address=address, reason="travel of the stage", **limits), on=id)


@for_each(
    ("identifier", "address", "owned"),
    [
        *(("BL:ROT", f"BL:ROT{rest}", True) for rest in ("", ".VAL", ".RBV", ":Speed", ".VAL$")),
        *(("BL:ROT", address, False) for address in ("BL:ROTARY", "BL:RO", "bl:rot")),
        *(("BL", "BL:ROT.VAL", True), ("BL:ROT:", "BL:ROT:Speed", True), ("BL:ROT.", "BL:ROT.RBV", True)),
        *(("BL:ROT:", "BL:ROT", False), ("BL:ROT:", "BL:ROT.VAL", False), ("BL:ROT.RBV", "BL:ROT", False)),
        *(
            ("BL:ROT.VAL", "BL:ROT", True),
            ("BL:R", "BL:ROT", False),
            (":", ":ROT", True),
            ("sim/stage", "sim/stage.x", True),
        ),
    ],
)
def test_an_identifier_owns_its_address_and_what_follows_it_behind_a_separator(
    identifier: str, address: str, owned: bool
) -> None:
    world = facility_world()
    id = register_owner(world, identifier)
    assert owner_ids(world, address) == ({id} if owned else set())


def test_the_longest_identifier_wins_and_equal_ones_all_own(world: World) -> None:
    beamline, stage, twin = (
        register_owner(world, "BL"),
        register_owner(world, "BL:ROT", "BL:LIN"),
        register_owner(world, "BL:ROT"),
    )
    records = register_owner(world, "BL:LIN:")
    assert owner_ids(world, "BL:ROT.VAL") == {stage, twin}
    assert owner_ids(world, "BL:LIN.VAL") == {stage}
    assert owner_ids(world, "BL:LIN:Speed") == {records}
    assert owner_ids(world, "BL:CAM:Acquire") == {beamline}


def test_only_a_process_variable_owns_signals(world: World) -> None:
    id = register_owner(world, "BL:ROT", kind="Other")
    assert owner_ids(world, "BL:ROT") == set()
    world.when(AddAssetAlternateIdentifier(kind=PV, value="BL:ROT"), on=id)
    assert owner_ids(world, "BL:ROT") == {id}
    world.when(RemoveAssetAlternateIdentifier(kind="Other", value="BL:ROT"), on=id)
    assert owner_ids(world, "BL:ROT") == {id}
    world.when(RemoveAssetAlternateIdentifier(kind=PV, value="BL:ROT"), on=id)
    assert owner_ids(world, "BL:ROT") == set()


def test_a_decommissioned_asset_owns_nothing_and_a_shorter_identifier_takes_over(world: World) -> None:
    beamline, stage = register_owner(world, "BL"), register_owner(world, "BL:ROT", "BL:LIN")
    world.when(DecommissionAsset(), on=stage)
    assert owner_ids(world, "BL:ROT.VAL") == {beamline}
    assert not [key for (kind, key), ids in world.members.items() if kind == SIGNALS and stage in ids]


def test_many_addresses_are_owned_after_two_reads(world: World) -> None:
    stage = register_owner(world, "BL:ROT")
    addresses = [f"BL:ROT:{number}" for number in range(100)] + ["FOREIGN:1"]
    asked = requested_reads(world, owners_of(addresses))
    assert [type(read) for read in asked] == [Members, Streams]
    found = run_reads(world, owners_of(addresses))
    assert list(found) == addresses
    assert {owner.id for owners in found.values() for owner in owners} == {stage}
    assert found["FOREIGN:1"] == ()
    assert run_reads(world, owners_of([])) == {}


PARTS = st.sampled_from(["A", "B", "AB"])
NAMES = st.lists(st.tuples(PARTS, st.sampled_from(":.")), min_size=1, max_size=4).map(
    lambda parts: "".join(text for part in parts for text in part)
)
IDENTIFIERS = NAMES | NAMES.map(lambda name: name[:-1])


@given(
    identifiers=st.lists(st.lists(IDENTIFIERS, max_size=3, unique=True), max_size=6),
    addresses=st.lists(IDENTIFIERS, max_size=5, unique=True),
)
def test_owners_are_those_that_the_rule_names(identifiers: list[list[str]], addresses: list[str]) -> None:
    """The look-up finds what going through all assets one by one would find."""
    world = facility_world()
    assets = {register_owner(world, *values): values for values in identifiers}
    found = run_reads(world, owners_of(addresses))
    for address in addresses:
        whole = address if "." in address.split(":")[-1] else f"{address}.VAL"
        held = [(len(value), id) for id, values in assets.items() for value in values if is_owned(value, whole)]
        longest = max((length for length, _ in held), default=0)
        assert {owner.id for owner in found[address]} == {id for length, id in held if length == longest}


def is_owned(identifier: str, address: str) -> bool:
    """Whether an identifier is the address, or leads up to a separator in it."""
    rest = address.removeprefix(identifier) if address.startswith(identifier) else None
    return rest is not None and (rest == "" or rest[0] in ":." or identifier[-1] in ":.")


def test_limits_are_set_replaced_and_cleared_for_one_address(world: World) -> None:
    stage = register_owner(world, "BL:ROT")
    assert limit(world, stage, " BL:ROT.VAL ", low=-5, high=5) == [
        AssetSignalLimitsSet(address="BL:ROT.VAL", low=-5, high=5, reason="travel of the stage")
    ]
    limit(world, stage, "BL:ROT:Speed", high=2)
    assert limit(world, stage, "BL:ROT:Speed", high=2) == []
    limit(world, stage, "BL:ROT.VAL", low=0)
    assert asset_of(world, stage).signal_limits == {"BL:ROT:Speed": SignalLimits(high=2), "BL:ROT.VAL": SignalLimits(low=0)}
    assert limit(world, stage, "BL:ROT.VAL") != []
    assert limit(world, stage, "BL:ROT.VAL") == []
    assert asset_of(world, stage).signal_limits == {"BL:ROT:Speed": SignalLimits(high=2)}


def test_a_record_and_its_value_field_have_the_same_limits(world: World) -> None:
    stage = register_owner(world, "BL:ROT")
    limit(world, stage, "BL:ROT", high=5)
    assert limit(world, stage, "BL:ROT.VAL", high=5) == []
    limit(world, stage, "BL:ROT.VAL", high=10)
    assert asset_of(world, stage).signal_limits == {"BL:ROT.VAL": SignalLimits(high=10)}
    limit(world, stage, "BL:ROT")
    assert asset_of(world, stage).signal_limits == {}


def test_only_a_signal_that_the_asset_owns_is_limited(world: World) -> None:
    beamline, stage = register_owner(world, "BL"), register_owner(world, "BL:ROT")
    for id, address in ((stage, "BL:LIN"), (beamline, "BL:ROT.VAL"), (stage, "FOREIGN")):
        with expect_refusal("AssetCannotSetSignalLimitsError", "not_owned") as caught:
            limit(world, id, address, high=1)
        assert caught.value.facts == {"owner_ids": [str(owner_id) for owner_id in owner_ids(world, address)]}
    with expect_refusal("InvalidAssetSignalAddressError", "blank"):
        limit(world, stage, " ", high=1)


def test_limits_of_a_signal_that_the_asset_has_lost_can_still_be_cleared(world: World) -> None:
    stage = register_owner(world, "BL:ROT")
    limit(world, stage, "BL:ROT", high=1)
    world.when(RemoveAssetAlternateIdentifier(kind=PV, value="BL:ROT"), on=stage)
    limit(world, stage, "BL:ROT")
    assert asset_of(world, stage).signal_limits == {}


@for_each("limits", [{"low": 2, "high": 1}, {"low": float("nan")}, {"high": float("inf")}, {"low": "much"}, {"middle": 1}])
def test_limits_of_the_wrong_form_do_not_reach_the_domain(limits: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SetAssetSignalLimits(address="BL:ROT", reason="travel", **limits)


def test_the_limits_of_all_owners_hold_together(world: World) -> None:
    stage, twin = register_owner(world, "BL:ROT"), register_owner(world, "BL:ROT")
    owners = [asset_of(world, id) for id in (stage, twin)]
    assert tightest_limits("BL:ROT", owners) is None
    limit(world, stage, "BL:ROT", low=-5, high=5)
    limit(world, twin, "BL:ROT.VAL", low=-10, high=3)
    limit(world, twin, "BL:ROT.RBV", high=1)
    owners = [asset_of(world, id) for id in (stage, twin)]
    for address in ("BL:ROT", "BL:ROT.VAL"):
        assert tightest_limits(address, owners) == SignalLimits(low=-5, high=3)
    assert tightest_limits("BL:ROT.RBV", owners) == SignalLimits(high=1)
    assert tightest_limits("BL:ROT:Speed", owners) is None
