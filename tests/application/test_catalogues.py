"""Catalogues are brought up to date from the log: each dataset once, none held up by another, whatever a catalogue does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from baton.application.caller import Caller
from baton.application.catalogues import CatalogueWork
from baton.application.ports import Batch, Catalogue, CatalogueUnavailableError, EventRow, Job, StreamAppend
from baton.application.reactions import Dispatcher
from baton.domain.data.acquisition import AcquisitionRecorded
from baton.domain.data.catalogue import CataloguedDataset, ListCatalogueEntries, RetryCatalogueEntry
from baton.domain.data.dataset import Dataset, DatasetPromoted, DiscardDataset, RegisterDataset
from baton.domain.data.distribution import DiscardDistribution, RegisterDistribution
from baton.domain.kernel import Event
from baton.domain.shared.deployment import CatalogueName
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.tasks import Task, TaskStatus
from baton.domain.supply.supply import RegisterSupply
from baton.infrastructure.catalogues.scicat import SciCat
from baton.testing.ports import MemoryEngine
from baton.testing.store import MemoryStore
from tests.support.application.command_paths import CommandCaller
from tests.support.application.ports import ports_of
from tests.support.application.store_and_world import store_of_world
from tests.support.domain.assets import LUMEN, facility_world
from tests.support.domain.datasets import CONTENT
from tests.support.domain.world import LENIENT, OPERATOR, START, new_id
from tests.support.infrastructure.scicat_server import CONTACT, GROUP, PREFIX, TOKEN, SciCatServer, running_scicat

SCICAT, TILED = CatalogueName


@pytest.fixture
def server() -> Iterator[SciCatServer]:
    with running_scicat() as server:
        yield server


@dataclass
class HeldCatalogue:
    """A catalogue that keeps what it is told, and lets something happen while it is."""

    name: CatalogueName = TILED
    entered: list[CataloguedDataset] = field(default_factory=list)
    meanwhile: list[Callable[[], Awaitable[Any]]] = field(default_factory=list)
    shows_nothing: bool = False

    async def enter(self, shown: CataloguedDataset) -> bool:
        if self.meanwhile:
            await self.meanwhile.pop(0)()
        self.entered.append(shown)
        return not self.shows_nothing

    async def aclose(self) -> None:
        return


class CataloguingFacility:
    """A record, the dispatcher that follows it, and the work that tasks are carried out by; the test is their engine."""

    def __init__(self, catalogues: Sequence[Catalogue], store: MemoryStore) -> None:
        self.store = store

        async def deployment() -> Any:
            names = frozenset(catalogue.name for catalogue in catalogues)
            return SimpleNamespace(**LENIENT, catalogues=names, self_facility_code=LUMEN, publisher="Lumen")

        self.caller = CommandCaller(self.store, ports=ports_of(deployment=deployment))
        self.engine = MemoryEngine()
        self.work = CatalogueWork(self.caller.commands, catalogues)
        self.dispatcher = Dispatcher(
            self.store, self.engine, self.caller.clock, new_id, [self.work], wait_for_news=asyncio.sleep
        )

    async def register(self, name: str = "scan_001.h5") -> UUID:
        return await self.caller.create(RegisterDataset(**{**CONTENT, "name": name}, allow_duplicate=True))

    async def follow(self) -> list[UUID]:
        """Lead the subscriber to the end of the log; the work that it has begun and that is not done."""
        while await self.dispatcher.advance(self.work):
            pass
        return list(await self.work.unfinished_ids())

    async def carry_out(self) -> None:
        """Follow the log and do what there is to be done, as the engine would."""
        for work_id in await self.follow():
            await self.work.run(work_id)
            self.engine.end(f"catalogue:{work_id}")

    async def entries(self, **filters: Any) -> list[Any]:
        return list((await self.caller.ask(ListCatalogueEntries(**filters))).items)

    async def entry(self, dataset_id: UUID) -> Any:
        (entry,) = await self.entries(dataset_id=dataset_id)
        return entry

    async def happen(self, dataset_id: UUID, event: Event) -> EventRow:
        """Record an event of a dataset without judging it."""
        after = len(self.store.streams[Dataset.__name__, dataset_id])
        batch = Batch(Caller.system(new_id()).call(START, new_id()), "Given")
        batch.appends.append(StreamAppend(Dataset.__name__, dataset_id, after, [(new_id(), event.stamp(dataset_id, START))]))
        async with self.store.session() as session:
            await session.append(batch)
        return self.store.streams[Dataset.__name__, dataset_id][-1]


async def facility(*catalogues: Catalogue) -> CataloguingFacility:
    made = CataloguingFacility(catalogues, store_of_world(facility_world()))
    await made.dispatcher.begin()
    return made


@pytest.fixture
async def scicat(server: SciCatServer) -> AsyncIterator[SciCat]:
    scicat = SciCat(server.url, TOKEN, GROUP, CONTACT, PREFIX, deadline=5)
    yield scicat
    await scicat.aclose()


@pytest.fixture
async def site(scicat: SciCat) -> CataloguingFacility:
    return await facility(scicat)


def pid_of(id: UUID) -> str:
    return f"{PREFIX}/{id}"


async def test_registered_datasets_are_entered_in_one_pass(site: CataloguingFacility, server: SciCatServer) -> None:
    ids = [await site.register(f"scan_{number}.h5") for number in range(3)]
    (work_id,) = await site.follow()
    assert [entry.status for entry in await site.entries()] == ["Pending"] * 3
    assert [job.id for job in site.engine.started] == [f"catalogue:{work_id}"]
    await site.carry_out()
    assert sorted(server.creations) == sorted(map(pid_of, ids))
    entries = await site.entries()
    assert {(entry.status, entry.attempts, entry.last_error) for entry in entries} == {("Entered", 1, None)}
    assert all(entry.entered_at is not None for entry in entries)
    assert await site.work.answer(work_id) == {"catalogue": "SciCat", "entered_count": 3, "refused_count": 0}
    assert await site.work.unfinished_ids() == []


async def test_what_happens_later_is_shown_too(site: CataloguingFacility, server: SciCatServer) -> None:
    id = await site.register()
    await site.carry_out()
    await site.happen(id, DatasetPromoted(reason="good", promoted_by=OPERATOR))
    await site.carry_out()
    supply = await site.caller.create(RegisterSupply(kind="Storage", name="Disk", facility_code=LUMEN))
    copy = RegisterDistribution(**CONTENT, dataset_id=id, supply_id=supply, access_protocol="POSIX")
    copy_id = await site.caller.create(copy)
    await site.carry_out()
    kept = server.datasets[pid_of(id)]
    assert (kept["validationStatus"], kept["scientificMetadata"]["copies"]) == ("Production", [CONTENT["uri"]])
    await site.caller.do(DiscardDistribution(reason="moved"), copy_id)
    await site.caller.do(DiscardDataset(reason="wrong sample"), id)
    await site.carry_out()
    assert "copies" not in kept["scientificMetadata"]
    assert kept["keywords"] == ["Discarded", "Production"]
    assert server.creations == [pid_of(id)]
    assert (await site.entry(id)).attempts == 4


async def test_a_catalogue_that_is_down_is_told_when_it_is_back(site: CataloguingFacility, server: SciCatServer) -> None:
    server.down = True
    id = await site.register()
    for _ in range(2):
        with pytest.raises(CatalogueUnavailableError):
            await site.carry_out()
    entry = await site.entry(id)
    assert (entry.status, entry.attempts) == ("Pending", 2)
    assert "cannot be reached" in entry.last_error
    later = await site.register("scan_002.h5")
    server.down = False
    await site.carry_out()
    assert sorted(server.creations) == sorted([pid_of(id), pid_of(later)])
    assert (await site.entry(id)).last_error is None


async def test_what_is_refused_is_kept_with_its_reason_and_holds_up_nothing(
    site: CataloguingFacility, server: SciCatServer
) -> None:
    server.refused_names.add("bad.h5")
    refused, taken = await site.register("bad.h5"), await site.register("good.h5")
    await site.carry_out()
    entry = await site.entry(refused)
    assert (entry.status, entry.entered_at) == ("Refused", None)
    assert "datasetName is not allowed here" in entry.last_error
    assert [one.dataset_id for one in await site.entries(status="Entered")] == [taken]
    server.refused_names.clear()
    await site.carry_out()
    assert (await site.entry(refused)).status == "Refused", "only a person has it tried again"
    told = await site.caller.do(RetryCatalogueEntry(catalogue=SCICAT), refused)
    assert told.body is not None
    await site.carry_out()
    assert (await site.entry(refused)).status == "Entered"
    assert await site.work.answer(UUID(told.body["work_id"])) == {
        "catalogue": "SciCat",
        "entered_count": 1,
        "refused_count": 0,
    }


async def test_one_dataset_that_the_catalogue_fails_on_holds_up_no_other(
    site: CataloguingFacility, server: SciCatServer
) -> None:
    await site.register("one.h5")
    await site.register("two.h5")
    server.failures += [(500, {}), (404, {})]
    with pytest.raises(CatalogueUnavailableError):
        await site.carry_out()
    assert sorted(entry.status for entry in await site.entries()) == ["Entered", "Pending"]
    await site.carry_out()
    assert len(server.creations) == 2


async def test_a_token_that_is_not_accepted_leaves_everything_pending(
    site: CataloguingFacility, server: SciCatServer
) -> None:
    for name in ("one.h5", "two.h5"):
        await site.register(name)
    server.failures += [(401, {})]
    with pytest.raises(CatalogueUnavailableError):
        await site.carry_out()
    assert {entry.status for entry in await site.entries()} == {"Pending"}
    assert len(server.asked) == 1, "the others would not be accepted either"
    assert any("SCICAT_TOKEN" in (entry.last_error or "") for entry in await site.entries())


async def test_a_dispatcher_and_a_worker_that_died_repeat_to_no_harm(
    site: CataloguingFacility, server: SciCatServer
) -> None:
    id = await site.register()
    row = site.store.streams[Dataset.__name__, id][0]
    (job,) = await site.work.jobs(row)
    server.failures.append("lost")
    with pytest.raises(CatalogueUnavailableError):
        await site.work.run(UUID(job.id.partition(":")[2]))
    (again,) = await site.work.jobs(row)
    assert again == job, "one pass is under way"
    await site.carry_out()
    await site.work.jobs(row)
    await site.carry_out()
    assert server.creations == [pid_of(id)]
    assert len(server.blocks[pid_of(id)]) == 1


async def test_two_attempts_at_once_enter_a_dataset_once(site: CataloguingFacility, server: SciCatServer) -> None:
    ids = [await site.register(f"scan_{number}.h5") for number in range(4)]
    (work_id,) = await site.follow()
    await asyncio.gather(site.work.run(work_id), site.work.run(work_id))
    assert sorted(server.creations) == sorted(map(pid_of, ids))
    assert [len(blocks) for blocks in server.blocks.values()] == [1] * 4
    assert {entry.attempts for entry in await site.entries()} == {1}


async def test_what_happens_while_a_catalogue_is_told_is_told_after_it() -> None:
    catalogue = HeldCatalogue()
    site = await facility(catalogue)
    id = await site.register()

    async def promote() -> None:
        row = await site.happen(id, DatasetPromoted(reason="good", promoted_by=OPERATOR))
        await site.work.jobs(row)

    catalogue.meanwhile.append(promote)
    await site.carry_out()
    assert [shown.dataset.intent for shown in catalogue.entered] == ["Trial", "Production"]
    assert (await site.entry(id)).status == "Entered"
    assert await site.work.unfinished_ids() == []


async def test_what_is_asked_for_as_a_pass_ends_begins_another() -> None:
    catalogue = HeldCatalogue()
    site = await facility(catalogue)
    await site.register()
    await site.carry_out()
    await site.register("scan_002.h5")
    await site.carry_out()
    assert len({job.id for job in site.engine.started}) == 2
    assert len(catalogue.entered) == 2


async def test_each_catalogue_goes_on_by_itself(scicat: SciCat, server: SciCatServer) -> None:
    other = HeldCatalogue()
    site = await facility(scicat, other)
    server.down = True
    await site.register()
    for work_id in await site.follow():
        with suppress(CatalogueUnavailableError):
            await site.work.run(work_id)
    assert {entry.catalogue: entry.status for entry in await site.entries()} == {"SciCat": "Pending", "Tiled": "Entered"}


async def test_a_catalogue_with_nothing_to_show_has_no_entry() -> None:
    site = await facility(HeldCatalogue(shows_nothing=True))
    await site.register()
    await site.carry_out()
    assert await site.entries() == []


async def test_a_dataset_from_before_the_catalogue_is_entered_on_request() -> None:
    catalogue = HeldCatalogue()
    site = CataloguingFacility([catalogue], store_of_world(facility_world()))
    id = await site.register()
    await site.dispatcher.begin()
    await site.carry_out()
    assert catalogue.entered == []
    for _ in range(2):
        await site.caller.do(RetryCatalogueEntry(catalogue=TILED), id)
    (work_id,) = await site.work.unfinished_ids()
    await site.work.run(work_id)
    assert [shown.dataset.id for shown in catalogue.entered] == [id]


async def test_without_a_catalogue_nothing_happens_and_the_list_says_so() -> None:
    site = await facility()
    id = await site.register()
    assert not site.work.enabled
    assert await site.follow() == []
    for ask in (site.entries(), site.caller.do(RetryCatalogueEntry(catalogue=SCICAT), id)):
        with pytest.raises(Refusal) as refused:
            await ask
        assert (refused.value.code, refused.value.reason) == ("CatalogueNotConfiguredError", "none_configured")


async def test_a_catalogue_that_is_not_configured_is_refused_by_its_name() -> None:
    site = await facility(HeldCatalogue())
    id = await site.register()
    with pytest.raises(Refusal) as refused:
        await site.caller.do(RetryCatalogueEntry(catalogue=SCICAT), id)
    assert (refused.value.reason, refused.value.detail) == ("not_configured", "SciCat is not configured; there is Tiled.")


async def test_work_for_a_catalogue_that_was_taken_away_ends_and_its_entries_wait() -> None:
    site = await facility(HeldCatalogue())
    id = await site.register()
    (work_id,) = await site.follow()
    site.work.catalogues = ()
    await site.work.run(work_id)
    async with site.store.session() as session:
        (task,) = await session.records(Task, {"work_id": work_id})
    assert task.status is TaskStatus.REFUSED
    assert (await site.entry(id)).status == "Pending"


async def test_every_event_that_is_shown_leads_to_its_dataset() -> None:
    site = await facility(HeldCatalogue())
    id = await site.register()
    supply = await site.caller.create(RegisterSupply(kind="Storage", name="Disk", facility_code=LUMEN))
    copy_id = await site.caller.create(
        RegisterDistribution(**CONTENT, dataset_id=id, supply_id=supply, access_protocol="POSIX")
    )
    rows = [*site.store.streams[Dataset.__name__, id], *site.store.streams["Distribution", copy_id]]
    jobs: list[Job] = [job for row in rows for job in await site.work.jobs(row)]
    assert len({job.id for job in jobs}) == 1
    assert [entry.dataset_id for entry in await site.entries()] == [id]
    assert AcquisitionRecorded in site.work.wakes_on
