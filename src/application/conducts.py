"""Conducts as long work: how the engine is told of one, and where its answer is read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from application.commands import Commands
from application.conduct_sights import ConductSights
from application.ports import Batch, Caller, Clock, Job, Progress, Store, WorkItem
from application.reconciling import LiveConduct
from application.unit import decoded
from domain.operation.conduct_views import LOOPS, MeasuredObjective, told_of
from domain.operation.procedure import MODES, Procedure, ProcedureConducted
from domain.operation.progress import ConductPhase, ConductProgress, OpenedConduct
from domain.operation.results import Failure
from domain.operation.stopping import EXPIRED, LOST, RecordConductEnd, given_up
from domain.operation.walking import ConductOrder, reason_of
from domain.shared.writes import Put

LIVE = tuple(phase.value for phase in ConductPhase if phase is not ConductPhase.ENDED)


class Conducts:
    """Long work: the steps of a procedure, conducted."""

    workflow = "conduct"

    def __init__(self, store: Store, commands: Commands, facility_code: str, sights: ConductSights, clock: Clock) -> None:
        self._store = store
        self._commands = commands
        self._facility_code = facility_code
        self._sights = sights
        self._clock = clock

    async def job(self, work_id: UUID) -> Job | None:
        """Nothing is to be told of a conduct that was taken up, or that is not the live one any more."""
        opened, progress = await self._standing(work_id)
        if opened is None or progress is None or progress.phase != ConductPhase.OPENED.value:
            return None
        async with self._store.session() as session:
            rows = await session.load(Procedure.__name__, [opened.procedure_id])
        procedure: Procedure | None = Procedure.aggregate.replay(rows)
        assert procedure is not None, "a conduct has a procedure"
        return Job(
            self.workflow,
            workflow_id(opened.procedure_id),
            ConductOrder(
                procedure_id=opened.procedure_id,
                conduct_id=work_id,
                principal_id=opened.principal_id,
                surface_id=opened.surface_id,
                conduit_id=opened.conduit_id,
                correlation_id=opened.correlation_id,
            ),
            attributes=attributes_of(opened, procedure, self._facility_code),
            summary=f"{opened.command_name} of procedure {opened.procedure_id}",
            succeeds=True,
        )

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        opened, progress = await self._standing(work_id)
        if opened is None or progress is not None:
            return None
        async with self._store.session() as session:
            rows = await session.load_of(Procedure.__name__, opened.procedure_id, [ProcedureConducted.__name__])
        for row in reversed(rows):
            ended: Any = decoded(Procedure.aggregate, row)
            if ended.conduct_id == work_id:
                result: Mapping[str, Any] = ended.result.model_dump(mode="json")
                return result
        return None

    async def unfinished(self) -> Sequence[UUID]:
        """The conducts that nobody has taken up."""
        async with self._store.session() as session:
            rows: Any = await session.records(ConductProgress, {"phase": ConductPhase.OPENED.value})
        return [row.conduct_id for row in rows]

    async def item(self, work_id: UUID) -> WorkItem | None:
        opened, _ = await self._standing(work_id)
        if opened is None:
            return None
        ids = {"procedure_id": str(opened.procedure_id), "conduct_id": str(work_id), "work_id": str(work_id)}
        return WorkItem(opened.principal_id, "GetProcedure", ids, opened.correlation_id)

    async def progress(self, work_id: UUID) -> Progress | None:
        opened, progress = await self._standing(work_id)
        if opened is None or progress is None:
            return None
        looping = MODES.get(opened.command_name) in LOOPS
        measured = await self._sights.measured(opened.procedure_id, work_id) if looping else None
        return told(opened, progress, measured, self._clock())

    async def live(self) -> Sequence[LiveConduct]:
        """Every conduct that has not ended."""
        async with self._store.session() as session:
            rows: Any = await session.records(ConductProgress, {"phase": LIVE})
        return [
            LiveConduct(
                row.conduct_id, workflow_id(row.procedure_id), row.phase != ConductPhase.OPENED.value, row.started_at
            )
            for row in rows
        ]

    async def is_live(self, conduct_id: UUID) -> bool:
        return (await self._standing(conduct_id))[1] is not None

    async def expire(self, conduct_id: UUID) -> None:
        """Give up a conduct that nobody began in time."""
        await self._end(conduct_id, EXPIRED, reason_of(EXPIRED))

    async def lose(self, conduct_id: UUID) -> None:
        """Say that nobody works on a conduct any more; its procedure stays as it is, and a person decides."""
        await self._end(conduct_id, LOST, None)

    async def stall(self, conduct_id: UUID) -> None:
        """Say that the engine cannot make progress with a conduct."""
        opened, progress = await self._standing(conduct_id)
        if opened is not None and progress is not None:
            call = Caller.system(opened.correlation_id).call(self._clock(), conduct_id)
            stalled = Put(replace(progress, phase=ConductPhase.STALLED.value))
            async with self._store.session() as session:
                await session.append(Batch(call, opened.command_name, puts=[stalled]))

    async def _end(self, conduct_id: UUID, failure: Failure, abort_reason: str | None) -> None:
        opened, _ = await self._standing(conduct_id)
        assert opened is not None, "what ends was opened"
        result = given_up(opened.procedure_id, conduct_id, opened.command_name, failure)
        command = RecordConductEnd(result=result, abort_reason=abort_reason)
        await self._commands.execute(command, Caller.system(opened.correlation_id), target_id=opened.procedure_id)

    async def _standing(self, conduct_id: UUID) -> tuple[OpenedConduct | None, ConductProgress | None]:
        """The conduct, and where it stands while it is live."""
        async with self._store.session() as session:
            found: Any = await session.records(OpenedConduct, {"conduct_id": conduct_id})
            if not found:
                return None, None
            rows: Any = await session.records(ConductProgress, {"procedure_id": found[0].procedure_id})
        live = [row for row in rows if row.conduct_id == conduct_id and row.phase != ConductPhase.ENDED.value]
        return found[0], live[0] if live else None


def workflow_id(procedure_id: UUID) -> str:
    """The id under which the engine knows the conduct of a procedure."""
    return f"{Conducts.workflow}:{procedure_id}"


def attributes_of(opened: OpenedConduct, procedure: Procedure, facility_code: str) -> dict[str, str]:
    """What people find a conduct by in the engine; of several target assets, the first."""
    found = {
        "BatonFacility": facility_code,
        "BatonCommand": opened.command_name,
        "BatonPrincipal": str(opened.principal_id),
        "BatonState": ConductPhase.OPENED.value,
    }
    if procedure.target_asset_ids:
        found["BatonAsset"] = str(min(procedure.target_asset_ids))
    if procedure.parent_run_id is not None:
        found["BatonRun"] = str(procedure.parent_run_id)
    return found


def told(opened: OpenedConduct, progress: ConductProgress, measured: MeasuredObjective | None, now: datetime) -> Progress:
    """How far a conduct is: how many steps lie behind it, of how many where there are no passes, and where it stands."""
    at, passes = progress.step_index or 0, max(0, (progress.iteration_index or 1) - 1)
    if progress.phase == ConductPhase.CLOSING.value:
        at += opened.step_count
    looping = MODES.get(opened.command_name) in LOOPS
    total = None if looping else float(opened.step_count + opened.closing_count)
    return Progress(passes * opened.step_count + at, total, told_of(opened, progress, measured, now))
