"""Persistent identifiers of assets: one, all that lack one, and the record behind them."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from baton.domain.equipment.asset import AssetExternalIdAssigned
from baton.domain.equipment.asset_external_id import (
    AssignAssetExternalId,
    GetAssetMintSweep,
    GetAssetPidinst,
    MintMissingAssetExternalIds,
    MintSweep,
    MintSweepStatus,
    assets_lacking_external_id,
    with_outcome,
)
from baton.domain.equipment.asset_parts import AddAssetOwner, UpdateAssetPartitionRule
from baton.domain.equipment.asset_tree import DecommissionAsset
from baton.domain.equipment.values import AssignedExternalId
from baton.domain.shared.identifiers import ExternalIdScheme
from baton.domain.shared.refusals import ExternalIdMintError
from tests.support.domain.assets import asset_of, facility_world, family, model, part, root, run_reads
from tests.support.domain.world import World, expect_refusal, new_id

VIRTUAL = UpdateAssetPartitionRule(partition_rule={"kind": "Affine"})


class Minter:
    """A registry of identifiers that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def __call__(self, scheme: str, suffix: str, metadata: Any) -> SimpleNamespace:
        self.asked.append({"scheme": scheme, "suffix": suffix, "metadata": metadata})
        return SimpleNamespace(scheme=scheme, value=f"10.5555/{suffix}")


@pytest.fixture
def minter() -> Minter:
    return Minter()


@pytest.fixture
def world(minter: Minter) -> World:
    world = facility_world()
    world.ports["mint"] = minter
    return world


def assign_external_id(world: World, asset_id: UUID, **fields: Any) -> None:
    world.when(AssignAssetExternalId(**{"external_id_scheme": "DOI", **fields}), on=asset_id)


def test_an_identifier_is_minted_under_the_assets_id_and_answered(world: World, minter: Minter) -> None:
    asset_id = root(world)
    assign_external_id(world, asset_id)
    value = f"10.5555/{asset_id}"
    assert world.streams["Asset", asset_id][-1] == AssetExternalIdAssigned(external_id_scheme="DOI", external_id=value)
    assert world.answer == {"external_id_scheme": "DOI", "external_id": value}
    assert asset_of(world, asset_id).external_id == value
    assert minter.asked[0]["metadata"].title == "Tomography"


def test_a_suffix_may_be_chosen(world: World, minter: Minter) -> None:
    asset_id = root(world)
    assign_external_id(world, asset_id, external_id_scheme="Handle", suffix=" rotary-1 ")
    assert (minter.asked[0]["scheme"], minter.asked[0]["suffix"]) == (ExternalIdScheme.HANDLE, "rotary-1")
    assert asset_of(world, asset_id).external_id == "10.5555/rotary-1"


@pytest.mark.parametrize(
    ("schemes", "reason"), [(frozenset(), "no_minter"), (frozenset({ExternalIdScheme.HANDLE}), "scheme_not_minted")]
)
def test_nothing_is_minted_or_swept_where_no_registry_issues_such_identifiers(
    world: World, minter: Minter, schemes: frozenset[ExternalIdScheme], reason: str
) -> None:
    asset_id = root(world)
    world.ports["deployment"].minted_schemes = schemes
    with expect_refusal("ExternalIdMintingNotConfiguredError", reason):
        assign_external_id(world, asset_id)
    with expect_refusal("ExternalIdMintingNotConfiguredError", reason):
        world.when(MintMissingAssetExternalIds())
    assert (minter.asked, world.records, asset_of(world, asset_id).external_id) == ([], {}, None)


@pytest.mark.parametrize("suffix", ["two words", "ümlaut", "a?b", "a#b", "100%"])
def test_a_suffix_that_no_registry_accepts_is_refused_before_one_is_asked(world: World, minter: Minter, suffix: str) -> None:
    with expect_refusal("InvalidExternalIdSuffixError"):
        assign_external_id(world, root(world), suffix=suffix)
    assert minter.asked == []


def test_nothing_is_minted_for_an_asset_that_cannot_take_it(world: World, minter: Minter) -> None:
    named, axis, retired = root(world), root(world), root(world)
    assign_external_id(world, named)
    world.when(VIRTUAL, on=axis)
    world.when(DecommissionAsset(), on=retired)
    for asset_id, reason in ((named, "already_assigned"), (axis, "virtual_axis"), (retired, "decommissioned")):
        with expect_refusal("AssetCannotAssignExternalIdError", reason):
            assign_external_id(world, asset_id)
    assert len(minter.asked) == 1


def test_a_failing_registry_leaves_no_trace(world: World) -> None:
    def fail(*arguments: Any) -> None:
        raise ExternalIdMintError("The registry did not answer; try again later.")

    asset_id = root(world)
    world.ports["mint"] = fail
    with expect_refusal("ExternalIdMintError"):
        assign_external_id(world, asset_id)
    assert asset_of(world, asset_id).external_id is None


def test_a_sweep_is_recorded_as_asked_for(world: World) -> None:
    world.when(MintMissingAssetExternalIds(facility_code="lumen", limit=5))
    (sweep,) = world.records.values()
    assert isinstance(sweep, MintSweep)
    assert (sweep.principal_id, sweep.surface_id, sweep.created_at) == (world.principal_id, world.surface_id, world.now)
    assert (sweep.external_id_scheme, sweep.facility_code, sweep.limit_) == (ExternalIdScheme.DOI, "lumen", 5)
    assert world.answer == {"sweep_id": str(sweep.sweep_id), "work_id": str(sweep.sweep_id)}
    shown = world.ask(GetAssetMintSweep(sweep_id=sweep.sweep_id))
    assert (shown.status, shown.scanned) == (MintSweepStatus.RUNNING, 0)
    assert (shown.minted, shown.skipped, shown.failed) == ((), (), ())


def test_a_sweep_refuses_what_is_no_facility_code(world: World) -> None:
    with expect_refusal("InvalidFacilityCodeError"):
        world.when(MintMissingAssetExternalIds(facility_code="LUMEN"))


def test_a_sweep_looks_at_assets_in_service_that_lack_an_identifier(world: World) -> None:
    plain, named, axis, retired = root(world), root(world), root(world), root(world)
    assign_external_id(world, named)
    world.when(VIRTUAL, on=axis)
    world.when(DecommissionAsset(), on=retired)
    lacking = run_reads(world, assets_lacking_external_id((plain, named, axis, retired), None))
    assert [asset.id for asset in lacking] == [plain]


def test_a_sweep_notes_what_became_of_each_asset(world: World) -> None:
    world.when(MintMissingAssetExternalIds())
    (sweep,) = world.records.values()
    assert isinstance(sweep, MintSweep)
    ids = [new_id() for _ in range(6)]
    for id, outcome in zip(
        ids,
        (
            AssignedExternalId(external_id_scheme=ExternalIdScheme.DOI, external_id="10.5555/1"),
            AssignAssetExternalId.Cannot("has one", reason="already_assigned"),
            AssignAssetExternalId.Cannot("is retired", reason="decommissioned"),
            AssignAssetExternalId.operation.aggregate.NotFound("is gone"),
            ExternalIdMintError("no answer"),
            AssignAssetExternalId.Cannot("is an axis now", reason="virtual_axis"),
        ),
        strict=True,
    ):
        sweep = with_outcome(sweep, id, outcome)
    world.records[MintSweep, sweep.sweep_id] = replace(sweep, status=MintSweepStatus.FINISHED)
    shown = world.ask(GetAssetMintSweep(sweep_id=sweep.sweep_id))
    assert (shown.status, shown.scanned) == (MintSweepStatus.FINISHED, 6)
    assert [(one.asset_id, one.external_id) for one in shown.minted] == [(ids[0], "10.5555/1")]
    assert [(one.asset_id, one.reason) for one in shown.skipped] == [
        (ids[1], "already_assigned"),
        (ids[2], "decommissioned"),
        (ids[3], "not_found"),
    ]
    assert [(one.asset_id, one.error, one.message) for one in shown.failed] == [
        (ids[4], "ExternalIdMintError", "no answer"),
        (ids[5], "AssetCannotAssignExternalIdError", "is an axis now"),
    ]


def test_an_unknown_sweep_is_not_found(world: World) -> None:
    with expect_refusal("AssetMintSweepNotFoundError"):
        world.ask(GetAssetMintSweep(sweep_id=new_id()))


def test_a_record_needs_an_owner_and_then_a_manufacturer(world: World) -> None:
    asset_id = root(world)
    with expect_refusal("AssetCannotExportPidinstError", "owner_missing"):
        world.ask(GetAssetPidinst(), on=asset_id)
    world.when(AddAssetOwner(name="Lumen Light Source"), on=asset_id)
    with expect_refusal("AssetCannotExportPidinstError", "manufacturer_missing"):
        world.ask(GetAssetPidinst(), on=asset_id)


def test_a_virtual_axis_has_no_record(world: World) -> None:
    asset_id = root(world)
    world.when(VIRTUAL, on=asset_id)
    with expect_refusal("AssetNotPidinstEligibleError"):
        world.ask(GetAssetPidinst(), on=asset_id)


def test_a_record_has_a_urn_until_an_identifier_is_assigned(world: World) -> None:
    beamline = root(world)
    assign_external_id(world, beamline, suffix="beamline")
    asset_id = part(world, beamline, model_id=model(world, family(world)), owners=[{"name": "Lumen Light Source"}])
    record = world.ask(GetAssetPidinst(), on=asset_id)
    assert (record.identifier.value, record.identifier.scheme) == (f"urn:uuid:{asset_id}", "URN")
    assert record.landing_page == f"https://baton.example/landing/assets/{asset_id}"
    assert [(one.identifier, one.relation_type) for one in record.related_identifiers] == [
        ("10.5555/beamline", "IsComponentOf")
    ]
    assign_external_id(world, asset_id)
    record = world.ask(GetAssetPidinst(), on=asset_id)
    assert (record.identifier.value, record.identifier.scheme) == (f"10.5555/{asset_id}", "DOI")


def test_a_sweep_of_one_facility_is_for_its_roots_and_everything_below_them(world: World) -> None:
    world.claims["facility-code", "north-ring"] = new_id()
    here, there = root(world), root(world, facility_code="north-ring")
    below = part(world, part(world, there))
    gone = part(world, there)
    world.when(DecommissionAsset(), on=gone)
    ids = [here, there, below, gone, new_id()]
    assert [asset.id for asset in run_reads(world, assets_lacking_external_id(ids, "north-ring"))] == [there, below]
    assert [asset.id for asset in run_reads(world, assets_lacking_external_id(ids, None))] == [here, there, below]
