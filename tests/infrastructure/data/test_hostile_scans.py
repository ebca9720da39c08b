"""Five hundred files that must not be ingested: each is refused with its reason, in time, and nothing is written."""

import asyncio
import os
from pathlib import Path
from uuid import UUID

import pytest

from baton.application.caller import Caller
from baton.application.long_work import TaskWork
from baton.application.settings import Settings
from baton.cli.composition.runtime import Runtime
from baton.domain.data.scan import SCAN_INGEST, IngestScan, InvalidScanFileError
from baton.domain.equipment.asset_tree import RegisterAsset
from baton.domain.equipment.family import DefineFamily
from baton.domain.kernel import Command
from baton.domain.supply.supply import RegisterSupply
from tests.support.infrastructure.hostile_scans import HostileScan, hostile_scans
from tests.support.infrastructure.scan_files import write_data_exchange

SYSTEM = Caller.system(UUID(int=7))
AT_ONCE = 4


class IngestTrial:
    """Ingests files without an engine, as a worker would, and keeps what is wrong with how they are refused."""

    def __init__(self, runtime: Runtime, fields: dict[str, str]) -> None:
        self._runtime = runtime
        self._fields = fields
        self._work: TaskWork = runtime.works[SCAN_INGEST]
        self._slots = asyncio.Semaphore(AT_ONCE)
        self.faults: list[str] = []
        self.refused = 0

    async def ingest(self, path: Path) -> None:
        accepted = await self._runtime.commands.execute(IngestScan(locator=path.as_uri(), **self._fields), SYSTEM)
        assert accepted.body
        await self._work.run(work_id := UUID(accepted.body["work_id"]))
        assert await self._work.answer(work_id)

    async def expect_refusal(self, scan: HostileScan, path: Path) -> None:
        async with self._slots:
            await asyncio.to_thread(scan.write, path)
            reason, detail = None, ""
            try:
                await self.ingest(path)
            except InvalidScanFileError as refusal:
                reason, detail = refusal.reason, refusal.detail
            os.unlink(path)
        if reason not in scan.reasons or not detail.endswith("."):
            self.faults.append(f"{scan.family}: {reason} {detail!r}, not {sorted(scan.reasons)}")
        self.refused += reason is not None


async def create(runtime: Runtime, command: Command) -> str:
    executed = await runtime.commands.execute(command, SYSTEM)
    assert executed.body
    id: str = next(iter(executed.body.values()))
    return id


async def count_events(runtime: Runtime) -> int:
    async with runtime.pool.connection() as connection:
        [count] = await (await connection.execute("SELECT count(*) FROM events")).fetchone() or [0]
    return int(count)


@pytest.mark.timeout(300)
async def test_no_hostile_file_is_ingested(database_url: str, tmp_path: Path) -> None:
    settings = Settings(database_url=database_url, app_env="test", data_roots=(tmp_path,), scan_reader_seconds=10)
    async with Runtime(settings) as runtime:
        await runtime.plant_seeds()
        camera = await create(runtime, DefineFamily(name="Camera", affordances=["Capturing"]))
        unit = RegisterAsset(name="Camera", tier="Unit", facility_code="facility", family_ids=[camera])
        disk = RegisterSupply(kind="Storage", name="Analysis disk", facility_code="facility")
        fields = {"producing_asset_id": await create(runtime, unit), "supply_id": await create(runtime, disk)}
        trial = IngestTrial(runtime, {**fields, "access_protocol": "POSIX"})
        before = await count_events(runtime)
        cases = [trial.expect_refusal(scan, tmp_path / f"{n}.h5") for n, scan in enumerate(hostile_scans(tmp_path))]
        await asyncio.gather(*cases)
        assert trial.faults == []
        assert trial.refused == len(cases) >= 500
        assert await count_events(runtime) == before
        await trial.ingest(write_data_exchange(tmp_path / "good.h5"))
        assert await count_events(runtime) == before + 3
