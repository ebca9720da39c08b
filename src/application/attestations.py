"""Attestations as long work: a copy's bytes are read and the result is recorded, for one copy or for many."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from baton.application.caller import Caller
from baton.application.commands import execute_with_retry
from baton.application.long_work import TaskWork
from baton.application.ports import ByteSource
from baton.application.unit_of_work import load_state, require_state
from baton.domain.data import attestation as rules
from baton.domain.data.attestation import Attestation
from baton.domain.data.distribution import Distribution, DistributionStatus
from baton.domain.shared.tasks import Task

PAGE = 500  # copies that are looked at in one read
AT_ONCE = 4  # copies that a sweep checks at a time
NOTED_EVERY = 1.0  # seconds between two notes of how far a sweep is
COPIES, MISMATCHES = "distribution_ids", "mismatch_count"  # keys of a sweep's notes


@dataclass
class AttestingWork(TaskWork):
    """Work that reads copies where they are, and records what it finds in the name of the one who asked."""

    byte_sources: ByteSource

    async def attest(self, attestation_id: UUID, copy: Distribution, caller: Caller) -> Attestation:
        """Return the attestation of a copy under this id, which is recorded once however many attempts there are."""
        store = self.commands.store
        if (known := await load_state(store, Attestation, attestation_id)) is not None:
            return known
        command = rules.CompleteAttestation(distribution_id=copy.id, reading=await self.byte_sources.read(copy.uri))
        with suppress(rules.attestation.AlreadyExists):  # another attempt was faster
            await execute_with_retry(self.commands, command, caller, new_id=attestation_id)
        return await require_state(store, Attestation, attestation_id)


class Attestations(AttestingWork):
    """Long work: one copy's bytes are checked."""

    workflow = rules.ATTESTATION
    command = rules.RecordAttestation
    readable_with = "GetAttestation"

    async def carry_out(self, task: Task) -> Mapping[str, Any]:
        copy = await require_state(self.commands.store, Distribution, UUID(task.request["distribution_id"]))
        await self.attest(UUID(task.ids["attestation_id"]), copy, self.caller_of(task))
        return {"attestation_id": task.ids["attestation_id"]}


class AttestationSweeps(AttestingWork):
    """Long work: the bytes of many copies are checked. Which ones is settled by the first attempt; what was checked, the
    record says, so that a later attempt reads no copy again that an earlier one had finished."""

    workflow = rules.SWEEP
    command = rules.AttestDistributions
    readable_with = "ListAttestations"

    def progress_text(self, task: Task) -> str:
        count = task.notes.get(MISMATCHES, 0)
        return f"{task.done} of {task.total} checked, {count} {'mismatch' if count == 1 else 'mismatches'}"

    async def carry_out(self, task: Task) -> Mapping[str, Any]:
        ids = await self._chosen_copies(task)
        progress = SweepProgress(self, task, len(ids), await self._find_recorded(task, ids))
        await progress.note()
        remaining = iter([id for id in ids if id not in progress.recorded])
        workers = [asyncio.create_task(self._check_in_turn(task, remaining, progress)) for _ in range(AT_ONCE)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        recorded = await self._find_recorded(task, ids)
        return rules.sweep_result(task, len(ids), recorded).model_dump(mode="json")

    async def _check_in_turn(self, task: Task, remaining: Iterator[UUID], progress: "SweepProgress") -> None:
        """Check one copy after the other until none remains; one that was given up before its turn is passed over."""
        for id in remaining:
            copy = await require_state(self.commands.store, Distribution, id)
            if copy.status is not DistributionStatus.DISCARDED:
                attestation_id = rules.swept_attestation_id(task, id)
                progress.recorded[id] = await self.attest(attestation_id, copy, self.caller_of(task))
            await progress.note()

    async def _chosen_copies(self, task: Task) -> list[UUID]:
        """Return the copies that are checked, as the first attempt chose them."""
        if COPIES not in task.notes:
            chosen = [str(id) for id in await self._due_copies(task)]
            await self.change(task.work_id, lambda now: now if COPIES in now.notes else replace(now, notes={COPIES: chosen}))
            task = await self.load(task.work_id)
        return [UUID(id) for id in task.notes[COPIES]]

    async def _due_copies(self, task: Task) -> list[UUID]:
        caller, limit = Caller.system(task.correlation_id), task.request["limit"]
        due: list[UUID] = []
        for page in pages(await self.commands.read(rules.copies_in_scope(task), caller)):
            due += await self.commands.read(rules.copies_due(task, page), caller)
            if len(due) >= limit:
                break
        return due[:limit]

    async def _find_recorded(self, task: Task, ids: Sequence[UUID]) -> dict[UUID, Attestation]:
        caller, found = Caller.system(task.correlation_id), dict[UUID, Attestation]()
        for page in pages(ids):
            found |= await self.commands.read(rules.find_swept(task, page), caller)
        return found


class SweepProgress:
    """How far an attempt at a sweep is, noted on its row now and then."""

    def __init__(self, sweeps: AttestationSweeps, task: Task, total: int, recorded: dict[UUID, Attestation]) -> None:
        self.recorded = recorded
        self._sweeps = sweeps
        self._work_id = task.work_id
        self._total = total
        self._noted_at = 0.0

    async def note(self) -> None:
        """Note the number of checked copies, at most once a second."""
        now = asyncio.get_running_loop().time()
        if now < self._noted_at + NOTED_EVERY:
            return
        self._noted_at = now
        done = len(self.recorded)
        mismatches = sum(one.outcome is rules.MISMATCH for one in self.recorded.values())

        def with_progress(task: Task) -> Task:
            return replace(task, done=done, total=self._total, notes={**task.notes, MISMATCHES: mismatches})

        await self._sweeps.change(self._work_id, with_progress)


def pages(ids: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    """Yield ids in portions that are read at once."""
    return (ids[start : start + PAGE] for start in range(0, len(ids), PAGE))
