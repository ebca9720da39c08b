"""Conducts of runs as long work: how the engine is told of one, and where its answer is read."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from application.commands import Commands
from application.conducts import LIVE
from application.ports import Batch, Caller, Job, Progress, Store, WorkItem
from application.reconciling import LiveConduct
from application.unit import decoded
from domain.operation.progress import ConductPhase
from domain.run.conducting import ConductRun, RecordRunConductEnd
from domain.run.driving import RunConductOrder
from domain.run.progress import OpenedRunConduct, RunConductProgress, WaitingFor
from domain.run.run import Run, RunConducted
from domain.shared.refusals import ConcurrencyError
from domain.shared.writes import Put


class RunConducts:
    """Long work: the phases of a run, conducted."""

    workflow = "conduct-run"

    def __init__(self, store: Store, commands: Commands, facility_code: str) -> None:
        self._store = store
        self._commands = commands
        self._facility_code = facility_code

    async def job(self, work_id: UUID) -> Job | None:
        """Nothing is to be told of a conduct that was taken up, or that is not the live one any more."""
        opened, progress = await self._standing(work_id)
        if opened is None or progress is None or progress.phase != ConductPhase.OPENED.value:
            return None
        return Job(
            self.workflow,
            workflow_id(opened.run_id),
            RunConductOrder(
                run_id=opened.run_id,
                conduct_id=work_id,
                principal_id=opened.principal_id,
                surface_id=opened.surface_id,
                conduit_id=opened.conduit_id,
                correlation_id=opened.correlation_id,
            ),
            attributes={
                "BatonFacility": self._facility_code,
                "BatonCommand": ConductRun.__name__,
                "BatonPrincipal": str(opened.principal_id),
                "BatonRun": str(opened.run_id),
                "BatonState": ConductPhase.OPENED.value,
            },
            summary=f"{ConductRun.__name__} of run {opened.run_id}",
            succeeds=True,
        )

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        opened, progress = await self._standing(work_id)
        if opened is None or progress is not None:
            return None
        async with self._store.session() as session:
            rows = await session.load_of(Run.__name__, opened.run_id, [RunConducted.__name__])
        for row in reversed(rows):
            ended: Any = decoded(Run.aggregate, row)
            if ended.conduct_id == work_id:
                result: Mapping[str, Any] = ended.result.model_dump(mode="json")
                return result
        return None

    async def unfinished(self) -> Sequence[UUID]:
        """The conducts that nobody has taken up."""
        async with self._store.session() as session:
            rows: Any = await session.records(RunConductProgress, {"phase": ConductPhase.OPENED.value})
        return [row.conduct_id for row in rows]

    async def item(self, work_id: UUID) -> WorkItem | None:
        opened, _ = await self._standing(work_id)
        if opened is None:
            return None
        ids = {"run_id": str(opened.run_id), "conduct_id": str(work_id), "work_id": str(work_id)}
        return WorkItem(opened.principal_id, "GetRun", ids, opened.correlation_id)

    async def progress(self, work_id: UUID) -> Progress | None:
        opened, progress = await self._standing(work_id)
        return None if opened is None or progress is None else told(opened, progress)

    async def live(self) -> Sequence[LiveConduct]:
        """Every conduct that has not ended."""
        async with self._store.session() as session:
            rows: Any = await session.records(RunConductProgress, {"phase": LIVE})
        return [
            LiveConduct(row.conduct_id, workflow_id(row.run_id), row.phase != ConductPhase.OPENED.value, row.started_at)
            for row in rows
        ]

    async def is_live(self, conduct_id: UUID) -> bool:
        return (await self._standing(conduct_id))[1] is not None

    async def expire(self, conduct_id: UUID) -> None:
        """Give up a conduct that nobody began in time."""
        await self.end(RecordRunConductEnd.expired(conduct_id))

    async def lose(self, conduct_id: UUID) -> None:
        """Say that nobody works on a conduct any more; the run stays as it is, and a person decides."""
        await self.end(RecordRunConductEnd.lost(conduct_id))

    async def stall(self, conduct_id: UUID) -> None:
        """Say that the engine cannot make progress with a conduct."""
        opened, progress = await self._standing(conduct_id)
        if opened is not None and progress is not None:
            call = Caller.system(opened.correlation_id).call(progress.started_at, conduct_id)
            stalled = Put(replace(progress, phase=ConductPhase.STALLED.value))
            async with self._store.session() as session:
                await session.append(Batch(call, ConductRun.__name__, puts=[stalled]))

    async def end(self, command: RecordRunConductEnd) -> None:
        """Put the end of a conduct on the record, as the service itself; once it is there, nothing more is said."""
        opened, _ = await self._standing(command.conduct_id)
        assert opened is not None, "what ends was opened"
        while True:
            try:
                await self._commands.execute(command, Caller.system(opened.correlation_id), target_id=opened.run_id)
                return
            except ConcurrencyError:
                await asyncio.sleep(0)

    async def _standing(self, conduct_id: UUID) -> tuple[OpenedRunConduct | None, RunConductProgress | None]:
        """The conduct, and where it stands while it is live."""
        async with self._store.session() as session:
            found: Any = await session.records(OpenedRunConduct, {"conduct_id": conduct_id})
            if not found:
                return None, None
            rows: Any = await session.records(RunConductProgress, {"run_id": found[0].run_id})
        live = [row for row in rows if row.conduct_id == conduct_id and row.phase != ConductPhase.ENDED.value]
        return found[0], live[0] if live else None


def workflow_id(run_id: UUID) -> str:
    """The id under which the engine knows the conduct of a run."""
    return f"{RunConducts.workflow}:{run_id}"


WAITING = {
    WaitingFor.RUN: "waiting for the run to be resumed",
    WaitingFor.PHASE: "waiting for somebody to take it up again",
    WaitingFor.GATE: "not allowed to start; waiting for the run to be resumed",
}


def told(opened: OpenedRunConduct, progress: RunConductProgress) -> Progress:
    """How far a conduct is, in words for whoever waits for it."""
    at = progress.phase_index or 0
    waiting = "" if progress.waiting is None else f", {WAITING[WaitingFor(progress.waiting['for'])]}"
    return Progress(at, opened.phase_count, f"phase {min(at + 1, opened.phase_count)} of {opened.phase_count}{waiting}")
