"""The record and the engine compared: what one says is under way and the other does not know of is given up."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import structlog

from application.commands import Commands
from application.conducts import workflow_id
from application.ports import Batch, Caller, Clock, Engine, EngineView, IdGenerator, Store
from domain.operation.progress import ConductPhase, ConductProgress
from domain.operation.stopping import RecordConductEnd, lost
from domain.shared.refusals import Conflict
from domain.shared.writes import Put

log = structlog.get_logger()

LIVE = tuple(phase.value for phase in ConductPhase if phase is not ConductPhase.ENDED)


class ConductReconciler:
    """Gives up conducts that nobody began in time, or that the engine has lost; says of others that they are stalled."""

    def __init__(
        self,
        store: Store,
        commands: Commands,
        engine: Engine,
        clock: Clock,
        new_id: IdGenerator,
        restart_limit: timedelta,
    ) -> None:
        self._store = store
        self._commands = commands
        self._engine = engine
        self._clock = clock
        self._new_id = new_id
        self._restart_limit = restart_limit

    async def compare(self) -> None:
        """Look at every live conduct once; raises EngineUnavailableError, after what needs no engine."""
        live = await self._live(LIVE)
        for progress in live:
            if self._is_late(progress):
                of = progress.procedure_id, progress.conduct_id, progress.command_name
                await self._end(progress, RecordConductEnd.expired(*of))
        for progress in live:
            if progress.phase != ConductPhase.OPENED.value:
                await self._compare(progress)

    def _is_late(self, progress: ConductProgress) -> bool:
        """Whether nobody began the conduct while it might still have been begun."""
        begun = progress.phase != ConductPhase.OPENED.value
        return not begun and self._clock() - progress.started_at > self._restart_limit

    async def _compare(self, progress: ConductProgress) -> None:
        match await self._engine.look(workflow_id(progress.procedure_id)):
            case EngineView.ABSENT:
                if await self._still(progress):  # the record ends before the workflow does
                    await self._end(progress, RecordConductEnd(result=lost(progress)))
            case EngineView.STALLED:
                if (now := await self._still(progress)) is not None:
                    await self._put(replace(now, phase=ConductPhase.STALLED.value))
            case EngineView.OPEN:
                pass

    async def _end(self, progress: ConductProgress, command: RecordConductEnd) -> None:
        """Put the end on the record; where somebody else did meanwhile, that stands."""
        assert command.result.failure is not None, "nobody gives up what succeeded"
        try:
            await self._commands.execute(command, Caller.system(self._new_id()), target_id=progress.procedure_id)
        except Conflict as refusal:
            log.info("conduct_ended_meanwhile", conduct_id=str(progress.conduct_id), code=refusal.code)
        else:
            log.warning("conduct_given_up", conduct_id=str(progress.conduct_id), because=command.result.failure.error_class)

    async def _live(self, phases: tuple[str, ...]) -> Sequence[ConductProgress]:
        async with self._store.session() as session:
            rows: Any = await session.records(ConductProgress, {"phase": phases})
        found: Sequence[ConductProgress] = rows
        return found

    async def _still(self, progress: ConductProgress) -> ConductProgress | None:
        """Where the conduct stands now, if it is still live."""
        async with self._store.session() as session:
            rows: Any = await session.records(ConductProgress, {"procedure_id": progress.procedure_id})
        live = [row for row in rows if row.conduct_id == progress.conduct_id and row.phase != ConductPhase.ENDED.value]
        return live[0] if live else None

    async def _put(self, progress: ConductProgress) -> None:
        call = Caller.system(self._new_id()).call(self._clock(), self._new_id())
        async with self._store.session() as session:
            await session.append(Batch(call, "ReconcileConducts", puts=[Put(progress)]))
