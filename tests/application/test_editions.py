"""Work on editions attempt by attempt: what was done before is found, what was judged still stands, and nothing is twice."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest

from baton.application.caller import Caller
from baton.application.editions import (
    DatasetTombstones,
    EditionPublications,
    EditionWithdrawals,
    IdentifierRegistryUnavailableError,
)
from baton.application.settings import Settings
from baton.application.unit_of_work import load_event_rows, load_row, require_state
from baton.cli.composition.runtime import Runtime, RuntimeDeployment
from baton.domain.access.actor import RegisterActor
from baton.domain.data.dataset import DemoteDataset, PromoteDataset, RegisterDataset
from baton.domain.data.distribution import MarkDistributionStale, RegisterDistribution
from baton.domain.data.edition import (
    Edition,
    EditionDatasetDistributionNotFoundError,
    EditionDatasetsNotAllProductionError,
    EditionManifest,
    EditionPublished,
    EditionWithdrawn,
    PersistentIdentifierMintError,
    PublishEdition,
    RegisterEdition,
    SealEdition,
    WithdrawEdition,
)
from baton.domain.data.exports import MintDatasetExternalId
from baton.domain.kernel import Command
from baton.domain.shared.deployment import Deployment
from baton.domain.shared.tasks import Task
from baton.domain.supply.supply import RegisterSupply
from baton.infrastructure.minting import DataCiteMinter, DeterministicMinter
from tests.support.infrastructure.doi_registry_server import ACCOUNT, PASSWORD, PREFIX, running_registry

SYSTEM = Caller.system(UUID(int=7))
CONTENT: dict[str, Any] = {
    "uri": "file:///data/scan_001.h5",
    "checksum": {"algorithm": "sha256", "value": sha256(b"frames").hexdigest()},
    "byte_size": 6,
    "encoding": {"media_type": "application/x-hdf5"},
}


@pytest.fixture
async def runtime(database_url: str) -> AsyncIterator[Runtime]:
    settings = Settings(database_url=database_url, pid_minter="development", public_base_url="https://data.lumen.example")
    async with Runtime(settings) as runtime:
        await runtime.plant_seeds()
        yield runtime


class Products:
    """A Production dataset with one copy, and editions of it."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.dataset_id = self.copy_id = UUID(int=0)

    async def do(self, command: Command, on: UUID | None = None) -> dict[str, Any]:
        """Give a command that no engine carries any further."""
        return dict((await self.runtime.commands.execute(command, SYSTEM, target_id=on)).body or {})

    async def create(self, command: Command) -> UUID:
        return UUID(next(iter((await self.do(command)).values())))

    async def edition(self) -> UUID:
        disk = await self.create(RegisterSupply(kind="Storage", name="Disk", facility_code="facility"))
        self.dataset_id = await self.create(RegisterDataset(name="scan_001.h5", **CONTENT))
        place = {"dataset_id": self.dataset_id, "supply_id": disk, "access_protocol": "POSIX"}
        self.copy_id = await self.create(RegisterDistribution(**CONTENT, **place))
        await self.do(PromoteDataset(reason="checked"), self.dataset_id)
        mira = await self.create(RegisterActor(name="Mira Okafor"))
        package = {"dataset_ids": [self.dataset_id], "creator_ids": [mira], "publisher_facility_code": "facility"}
        return await self.create(RegisterEdition(kind="ROCrate", title="Pellet B-12", **package))

    async def sealed_edition(self) -> UUID:
        id = await self.edition()
        await self.do(SealEdition(), id)
        return id

    async def begin(self, command: Command, on: UUID) -> UUID:
        return UUID((await self.do(command, on))["work_id"])

    async def state(self, id: UUID) -> Edition:
        return await require_state(self.runtime.store, Edition, id)

    async def count(self, id: UUID, event: type[Any]) -> int:
        return len(await load_event_rows(self.runtime.store, id, event))


@pytest.fixture
def products(runtime: Runtime) -> Products:
    return Products(runtime)


def interfere(runtime: Runtime, deed: Callable[[], Awaitable[Any]]) -> None:
    """Have somebody else be faster, once: between what a decision read and what it writes."""

    class InterferingDeployment(RuntimeDeployment):
        is_due = True

        async def deployment(self) -> Deployment:
            if InterferingDeployment.is_due:
                InterferingDeployment.is_due = False
                await deed()
            return await super().deployment()

    runtime.deployment = InterferingDeployment(runtime)


async def test_a_member_that_is_demoted_while_an_edition_is_sealed_is_not_sealed(products: Products) -> None:
    id = await products.edition()
    interfere(products.runtime, lambda: products.do(DemoteDataset(reason="wrong sample"), products.dataset_id))
    with pytest.raises(EditionDatasetsNotAllProductionError):
        await products.do(SealEdition(), id)
    assert (await products.state(id)).status == "Registered"


async def test_a_copy_that_goes_stale_while_an_edition_is_sealed_is_not_cited(products: Products) -> None:
    id = await products.edition()
    interfere(products.runtime, lambda: products.do(MarkDistributionStale(reason="disk lost"), products.copy_id))
    with pytest.raises(EditionDatasetDistributionNotFoundError):
        await products.do(SealEdition(), id)


async def test_attempts_that_overlap_publish_once(products: Products) -> None:
    id = await products.sealed_edition()
    work_id = await products.begin(PublishEdition(), id)
    publications = EditionPublications(products.runtime.commands, DeterministicMinter())
    await asyncio.gather(*(publications.run(work_id) for _ in range(3)))
    assert await publications.answer(work_id) == {
        "edition_id": str(id),
        "external_id": f"10.5072/{id}",
        "external_id_scheme": "DOI",
    }
    assert await products.count(id, EditionPublished) == 1
    state = await products.state(id)
    for content_hash in (state.content_hash, state.published_content_hash):
        kept = await load_row(products.runtime.store, EditionManifest, content_hash=content_hash)
        assert kept is not None
        assert sha256(kept.content.encode()).hexdigest() == content_hash
    assert await publications.unfinished_ids() == []


async def test_a_registry_that_fails_is_asked_once_and_its_failure_is_the_answer(products: Products) -> None:
    id = await products.sealed_edition()
    work_id = await products.begin(PublishEdition(), id)
    with running_registry() as registry:
        registry.failures.append((500, b""))
        minter = DataCiteMinter(registry.url, PREFIX, ACCOUNT, PASSWORD)
        publications = EditionPublications(products.runtime.commands, minter)
        await publications.run(work_id)
        await publications.run(work_id)
        await minter.aclose()
        assert registry.asked == [("POST", "/dois")]
    with pytest.raises(PersistentIdentifierMintError) as refused:
        await publications.answer(work_id)
    assert refused.value.reason == "failed"
    assert (await products.state(id)).status == "Sealed"


async def test_a_request_that_comes_late_is_answered_with_what_was_published(products: Products) -> None:
    id = await products.sealed_edition()
    work_id = await products.begin(PublishEdition(), id)
    publications = EditionPublications(products.runtime.commands, DeterministicMinter())
    row = await publications.load(work_id)
    await publications.run(work_id)
    assert await publications.carry_out(row) == await publications.answer(work_id)
    assert await products.count(id, EditionPublished) == 1


async def test_attempts_that_overlap_withdraw_once_and_answer_nothing(products: Products) -> None:
    id = await products.sealed_edition()
    publications = EditionPublications(products.runtime.commands, DeterministicMinter())
    await publications.run(await products.begin(PublishEdition(), id))
    work_id = await products.begin(WithdrawEdition(withdrawal_reason="wrong sample"), id)
    withdrawals = EditionWithdrawals(products.runtime.commands, DeterministicMinter())
    await asyncio.gather(*(withdrawals.run(work_id) for _ in range(3)))
    assert await withdrawals.answer(work_id) == {}
    assert await products.count(id, EditionWithdrawn) == 1


async def test_a_doi_waits_to_be_marked_until_there_is_a_registry_again(products: Products) -> None:
    await products.edition()
    await products.do(MintDatasetExternalId(), products.dataset_id)
    await products.do(DemoteDataset(reason="wrong sample"), products.dataset_id)
    commands = products.runtime.commands
    (work_id,) = await DatasetTombstones(commands, None).unfinished_ids()
    with pytest.raises(IdentifierRegistryUnavailableError):
        await DatasetTombstones(commands, None).run(work_id)
    tombstones = DatasetTombstones(commands, DeterministicMinter())
    await tombstones.run(work_id)
    assert await tombstones.unfinished_ids() == []
    task = await load_row(products.runtime.store, Task, work_id=work_id)
    assert task is not None
    assert task.answer == {}
