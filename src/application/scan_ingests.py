"""Scan ingests: what is done with a scan file between the request and the three records it becomes."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from baton.application.commands import execute_with_retry
from baton.application.long_work import TaskWork
from baton.application.ports import ScanFile, ScanFiles
from baton.application.unit_of_work import load_state, require_state
from baton.domain.data.acquisition import Acquisition
from baton.domain.data.dataset import Dataset, first_with_bytes
from baton.domain.data.scan import SCAN_INGEST, GivenScan, IngestScan, RecordScan, time_of_capture
from baton.domain.shared.refusals import Refusal
from baton.domain.shared.tasks import Task

PROGRESS_SECONDS = 1.0


@dataclass
class ScanIngests(TaskWork):
    """Long work: a scan file is described and digested, and its three records are written in one transaction."""

    workflow = SCAN_INGEST
    command = IngestScan
    readable_with = "GetDataset"
    scan_files: ScanFiles

    def progress_text(self, task: Task) -> str:
        return f"{task.done / 1e6:.0f} of {(task.total or 0) / 1e6:.0f} MB read"

    async def carry_out(self, task: Task) -> Mapping[str, Any]:
        """Read the file, then record it, unless an earlier attempt did."""
        if not await self._is_recorded(task):
            await self._record(task, await self._read(task))
        acquisition = await require_state(self.commands.store, Acquisition, UUID(task.ids["acquisition_id"]))
        dataset = await require_state(self.commands.store, Dataset, acquisition.dataset_id)
        first_id = await self.commands.read(first_with_bytes(dataset.checksum.value), self.caller_of(task))
        duplicate_of = None if first_id in (None, dataset.id) else str(first_id)
        return {**task.ids, "unchecked": acquisition.evidence.get("unchecked", []), "duplicate_of": duplicate_of}

    async def _read(self, task: Task) -> RecordScan:
        """Read what the file says and its digest, and return the command that records it."""
        scan = GivenScan.model_validate(task.request)
        async with self.scan_files.open(scan.locator.strip()) as file:
            description = await file.describe()
            time_of_capture(scan, description)
            digest = await self._digest(task, file)
            await file.refuse_changed()
            ids = {name: task.ids[name] for name in ("distribution_id", "acquisition_id")}
            read = {"description": description, "digest": digest, "byte_size": file.byte_size}
            return RecordScan.model_validate({**dict(scan), **ids, **read})

    async def _digest(self, task: Task, file: ScanFile) -> str:
        """Return the file's digest, and note every second how far it is."""
        digest = asyncio.ensure_future(file.digest())
        try:
            while not (await asyncio.wait({digest}, timeout=PROGRESS_SECONDS))[0]:
                await self.note(task.work_id, done=file.digested_bytes, total=file.byte_size)
            return digest.result()
        finally:
            digest.cancel()

    async def _record(self, task: Task, command: RecordScan) -> None:
        """Record the scan as its caller; one that a simultaneous attempt recorded is recorded."""
        dataset_id = UUID(task.ids["dataset_id"])
        try:
            await execute_with_retry(self.commands, command, self.caller_of(task), new_id=dataset_id)
        except Refusal:
            if not await self._is_recorded(task):
                raise

    async def _is_recorded(self, task: Task) -> bool:
        return await load_state(self.commands.store, Dataset, UUID(task.ids["dataset_id"])) is not None
