"""Attempts at one ingest: however often and however late it is carried out, it is recorded once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import pytest

from baton.application.caller import Caller
from baton.application.ports import ScanFiles
from baton.application.scan_ingests import ScanIngests
from baton.application.settings import Settings
from baton.application.unit_of_work import load_events, load_state
from baton.cli.composition.runtime import Runtime
from baton.domain.data.acquisition import Acquisition
from baton.domain.data.dataset import Dataset, DatasetAlreadyIngestedError, DatasetRegistered
from baton.domain.data.distribution import Distribution
from baton.domain.data.scan import IngestScan, InvalidScanFileError, ScanIngested
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.equipment.family import DefineFamily
from baton.domain.kernel import Command
from baton.domain.supply.supply import RegisterSupply
from baton.infrastructure.scans.scan_files import LocalScanFile, LocalScanFiles
from tests.support.infrastructure.scan_files import write_data_exchange

SYSTEM = Caller.system(UUID(int=7))


class HeldFiles:
    """Files that nobody is done with before so many have read theirs, so that all of them record at the same moment."""

    def __init__(self, files: LocalScanFiles, parties: int) -> None:
        self._files = files
        self._barrier = asyncio.Barrier(parties)

    @asynccontextmanager
    async def open(self, uri: str) -> AsyncIterator[LocalScanFile]:
        async with self._files.open(uri) as file:
            yield file
            await self._barrier.wait()


@pytest.fixture
async def runtime(database_url: str, tmp_path: Path) -> AsyncIterator[Runtime]:
    async with Runtime(Settings(database_url=database_url, app_env="test", data_roots=(tmp_path,))) as runtime:
        await runtime.plant_seeds()
        yield runtime


def ingests(runtime: Runtime, files: ScanFiles | None = None) -> ScanIngests:
    return ScanIngests(runtime.commands, files or LocalScanFiles(runtime.data_files, runtime.scan_reader))


async def create(runtime: Runtime, command: Command) -> UUID:
    executed = await runtime.commands.execute(command, SYSTEM)
    assert executed.body
    return UUID(next(iter(executed.body.values())))


async def prepare_ingest(runtime: Runtime, path: Path) -> IngestScan:
    """A request that the record can meet."""
    family = await create(runtime, DefineFamily(name="Camera", affordances=["Capturing"]))
    unit = RegisterAsset(name="Camera", tier="Unit", facility_code="facility", family_ids=[family])
    disk = RegisterSupply(kind="Storage", name="Analysis disk", facility_code="facility")
    place = {"producing_asset_id": await create(runtime, unit), "supply_id": await create(runtime, disk)}
    return IngestScan(locator=path.as_uri(), access_protocol="POSIX", **place)


async def begin(runtime: Runtime, request: IngestScan) -> UUID:
    """A task that the record knows and no engine carries out."""
    executed = await runtime.commands.execute(request, SYSTEM)
    assert executed.body
    return UUID(executed.body["work_id"])


async def test_two_attempts_at_once_record_a_scan_once(runtime: Runtime, tmp_path: Path) -> None:
    request = await prepare_ingest(runtime, write_data_exchange(tmp_path / "scan.h5"))
    work = ingests(runtime, HeldFiles(LocalScanFiles(runtime.data_files, runtime.scan_reader), 3))
    work_id = await begin(runtime, request)
    await asyncio.gather(*(work.run(work_id) for _ in range(3)))
    ids = ScanIngested.model_validate(await work.answer(work_id))
    assert len(await load_events(runtime.store, ids.dataset_id, DatasetRegistered)) == 1
    assert await load_state(runtime.store, Distribution, ids.distribution_id)
    assert await load_state(runtime.store, Acquisition, ids.acquisition_id)


async def test_an_attempt_after_the_record_was_written_answers_with_it(runtime: Runtime, tmp_path: Path) -> None:
    path = write_data_exchange(tmp_path / "scan.h5")
    work, request = ingests(runtime), await prepare_ingest(runtime, path)
    work_id = await begin(runtime, request)
    task = await work.load(work_id)
    await work.carry_out(task)
    path.unlink()
    await work.run(work_id)
    unchecked = ["frame_values", "angle_unit", "commanded_counts"]
    assert await work.answer(work_id) == {**task.ids, "unchecked": unchecked, "duplicate_of": None}
    assert await work.unfinished_ids() == []


async def test_rivals_for_the_same_bytes_are_told_who_has_them(runtime: Runtime, tmp_path: Path) -> None:
    request = await prepare_ingest(runtime, write_data_exchange(tmp_path / "scan.h5"))
    work = ingests(runtime, HeldFiles(LocalScanFiles(runtime.data_files, runtime.scan_reader), 2))
    ids = [await begin(runtime, request) for _ in range(2)]
    await asyncio.gather(*map(work.run, ids))
    answers = await asyncio.gather(*map(work.answer, ids), return_exceptions=True)
    [made] = [answer for answer in answers if isinstance(answer, dict)]
    [refused] = [answer for answer in answers if isinstance(answer, DatasetAlreadyIngestedError)]
    assert refused.facts == dict.fromkeys(("dataset_id", "duplicate_of"), made["dataset_id"])


async def test_a_refusal_ends_an_ingest_for_good(runtime: Runtime, tmp_path: Path) -> None:
    path = tmp_path / "scan.h5"
    work, request = ingests(runtime), await prepare_ingest(runtime, path)
    work_id = await begin(runtime, request)
    await work.run(work_id)
    write_data_exchange(path)
    await work.run(work_id)
    with pytest.raises(InvalidScanFileError) as caught:
        await work.answer(work_id)
    assert caught.value.reason == "unreadable"
    dataset_id = UUID((await work.load(work_id)).ids["dataset_id"])
    assert await load_state(runtime.store, Dataset, dataset_id) is None
