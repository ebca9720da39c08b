"""A mint sweep's record: what it assigned is told as its own, and what is finished stays finished."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from baton.application.caller import Caller
from baton.application.mint_sweeps import MintSweeps
from baton.application.settings import Settings
from baton.application.unit_of_work import load_row, load_state
from baton.cli.composition.runtime import Runtime
from baton.domain.equipment.asset import Asset
from baton.domain.equipment.asset_external_id import (
    AssignAssetExternalId,
    AssignedExternalId,
    GetAssetMintSweep,
    MintMissingAssetExternalIds,
    MintRequest,
    MintSweep,
    with_outcome,
)
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.kernel import NIL
from baton.domain.shared.refusals import ExternalIdMintError, ExternalIdMintingNotConfiguredError, UnauthorizedError
from baton.infrastructure.postgres.pool import dedicated_connection
from baton.infrastructure.postgres.projections import Projector
from tests.support.infrastructure.doi_registry_server import ACCOUNT, PASSWORD, PREFIX, running_registry

SYSTEM = Caller.system(UUID(int=7))


@pytest.fixture
async def runtime(database_url: str) -> AsyncIterator[Runtime]:
    async with Runtime(Settings(database_url=database_url, pid_minter="development")) as runtime:
        await runtime.plant_seeds()
        yield runtime


async def register_asset(runtime: Runtime) -> UUID:
    unit = RegisterAsset(name=f"Unit {uuid4()}", tier="Unit", facility_code="facility")
    executed = await runtime.service.commands.execute(unit, SYSTEM)
    assert executed.body
    return UUID(executed.body["asset_id"])


async def begin_sweep(runtime: Runtime) -> UUID:
    """A sweep that the record knows and no engine carries."""
    executed = await runtime.service.commands.execute(MintMissingAssetExternalIds(), SYSTEM)
    assert executed.body
    return UUID(executed.body["sweep_id"])


async def project(runtime: Runtime) -> None:
    assert runtime.settings.database_url
    async with await dedicated_connection(runtime.settings.database_url, owner=True) as connection:
        await Projector(runtime.settings.database_url).advance(connection)


async def test_what_a_sweep_assigned_before_its_worker_died_counts_as_minted(runtime: Runtime) -> None:
    asset_id, sweep_id = await register_asset(runtime), await begin_sweep(runtime)
    as_the_sweep = Caller(NIL, NIL, UUID(int=8), causation_id=sweep_id)
    assign = AssignAssetExternalId(external_id_scheme="DOI")
    executed = await runtime.service.commands.execute(assign, as_the_sweep, target_id=asset_id)
    await runtime.works.of(MintSweeps).mint(MintRequest(sweep_id=sweep_id, asset_id=asset_id))
    sweep = await runtime.service.ask(GetAssetMintSweep(sweep_id=sweep_id), SYSTEM)
    assert executed.body
    assert [(minted.asset_id, minted.external_id) for minted in sweep.minted] == [(asset_id, executed.body["external_id"])]
    assert (sweep.skipped, sweep.failed) == ((), ())


async def test_what_somebody_else_assigned_meanwhile_is_skipped(runtime: Runtime) -> None:
    asset_id, sweep_id = await register_asset(runtime), await begin_sweep(runtime)
    assign = AssignAssetExternalId(external_id_scheme="DOI")
    await runtime.service.commands.execute(assign, SYSTEM, target_id=asset_id)
    await runtime.works.of(MintSweeps).mint(MintRequest(sweep_id=sweep_id, asset_id=asset_id))
    sweep = await runtime.service.ask(GetAssetMintSweep(sweep_id=sweep_id), SYSTEM)
    assert [(skipped.asset_id, skipped.reason) for skipped in sweep.skipped] == [(asset_id, "already_assigned")]


async def test_a_finished_sweep_takes_no_further_assets(runtime: Runtime) -> None:
    sweep_id = await begin_sweep(runtime)
    asset_id = await register_asset(runtime)
    await project(runtime)
    assert await runtime.works.of(MintSweeps).candidates(sweep_id) == [asset_id]
    await runtime.works.of(MintSweeps).finish(sweep_id)
    assert await runtime.works.of(MintSweeps).candidates(sweep_id) == []
    assert await runtime.works.of(MintSweeps).unfinished_ids() == []


async def test_attempts_that_overlap_lose_nothing_of_one_another(runtime: Runtime) -> None:
    assets, sweep_id = [await register_asset(runtime) for _ in range(5)], await begin_sweep(runtime)
    await asyncio.gather(
        *(runtime.works.of(MintSweeps).mint(MintRequest(sweep_id=sweep_id, asset_id=asset_id)) for asset_id in assets)
    )
    sweep = await runtime.service.ask(GetAssetMintSweep(sweep_id=sweep_id), SYSTEM)
    assert sorted(minted.asset_id for minted in sweep.minted) == sorted(assets)
    assert (sweep.scanned, sweep.skipped, sweep.failed) == (5, (), ())


async def test_an_attempt_that_comes_late_counts_nothing_twice_and_reopens_nothing(runtime: Runtime) -> None:
    asset_id, sweep_id = await register_asset(runtime), await begin_sweep(runtime)
    kept = await load_row(runtime.store, MintSweep, sweep_id=sweep_id)
    assert kept is not None
    refusal = UnauthorizedError("The grant was withdrawn.")
    assigned = AssignedExternalId(external_id="10.5/x", external_id_scheme="DOI")
    failed = with_outcome(kept, asset_id, refusal)
    assert with_outcome(failed, asset_id, refusal) == failed
    minted = with_outcome(failed, asset_id, assigned)
    assert (minted.scanned, len(minted.minted), minted.failed) == (1, 1, [])
    assert with_outcome(minted, asset_id, assigned) == with_outcome(minted, asset_id, refusal) == minted
    await runtime.works.of(MintSweeps).finish(sweep_id)
    await runtime.works.of(MintSweeps).mint(MintRequest(sweep_id=sweep_id, asset_id=asset_id))
    sweep = await runtime.service.ask(GetAssetMintSweep(sweep_id=sweep_id), SYSTEM)
    assert (sweep.status, sweep.scanned, sweep.minted) == ("Finished", 0, ())


async def test_without_a_registry_nothing_is_minted_and_no_sweep_begins(database_url: str) -> None:
    async with Runtime(Settings(database_url=database_url)) as runtime:
        await runtime.plant_seeds()
        asset_id = await register_asset(runtime)
        with pytest.raises(ExternalIdMintingNotConfiguredError):
            await assign_identifier(runtime, asset_id)
        with pytest.raises(ExternalIdMintingNotConfiguredError):
            await begin_sweep(runtime)
        assert await runtime.works.of(MintSweeps).unfinished_ids() == []
        assert await identifier(runtime, asset_id) is None


async def test_a_registry_that_fails_records_nothing_and_the_next_try_finds_what_the_first_made(database_url: str) -> None:
    with running_registry() as registry:
        settings = Settings(
            database_url=database_url,
            pid_minter="datacite",
            datacite_address=registry.url,
            datacite_prefix=PREFIX,
            datacite_repository_id=ACCOUNT,
            datacite_password=PASSWORD,
            public_base_url="https://baton.example",
        )
        async with Runtime(settings) as runtime:
            await runtime.plant_seeds()
            asset_id = await register_asset(runtime)
            for failure in ((500, b""), "lost"):
                registry.failures.append(failure)
                with pytest.raises(ExternalIdMintError):
                    await assign_identifier(runtime, asset_id)
                assert await identifier(runtime, asset_id) is None
            sweep_id = await begin_sweep(runtime)
            await runtime.works.of(MintSweeps).mint(MintRequest(sweep_id=sweep_id, asset_id=asset_id))
            (minted,) = (await runtime.service.ask(GetAssetMintSweep(sweep_id=sweep_id), SYSTEM)).minted
        assert [minted.external_id] == list(registry.records) == [f"{PREFIX}/{asset_id}"]
        assert registry.records[minted.external_id]["url"] == f"https://baton.example/landing/assets/{asset_id}"


async def assign_identifier(runtime: Runtime, asset_id: UUID) -> None:
    await runtime.service.commands.execute(AssignAssetExternalId(external_id_scheme="DOI"), SYSTEM, target_id=asset_id)


async def identifier(runtime: Runtime, asset_id: UUID) -> str | None:
    asset = await load_state(runtime.store, Asset, asset_id)
    assert asset is not None
    return asset.external_id
