"""Conducts as long work: how the engine is told of one, and where its answer is read."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from application.ports import Job, Progress, Store, WorkItem
from application.unit import decoded
from domain.operation.procedure import Procedure, ProcedureConducted
from domain.operation.progress import ConductPhase, ConductProgress, OpenedConduct, WaitingFor
from domain.operation.walking import ConductOrder


class Conducts:
    """Long work: the steps of a procedure, conducted."""

    workflow = "conduct"

    def __init__(self, store: Store, facility_code: str) -> None:
        self._store = store
        self._facility_code = facility_code

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
        return WorkItem(opened.principal_id, "GetProcedure", ids)

    async def progress(self, work_id: UUID) -> Progress | None:
        opened, progress = await self._standing(work_id)
        return None if opened is None or progress is None else told(opened, progress)

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


def told(opened: OpenedConduct, progress: ConductProgress) -> Progress:
    """How far a conduct is, in words for whoever waits for it."""
    closing = progress.phase == ConductPhase.CLOSING.value
    total = opened.closing_count if closing else opened.step_count
    at = 0 if progress.step_index is None else progress.step_index
    loop = "" if progress.iteration_index is None else f"iteration {progress.iteration_index}, "
    match progress.waiting_for:
        case WaitingFor.RUN.value:
            doing = "waiting for its run to be resumed"
        case WaitingFor.ADVICE.value:
            doing = "waiting for advice"
        case _:
            doing = f"{'closing step' if closing else 'step'} {min(at + 1, total)} of {total}"
    return Progress(at, total, f"{loop}{doing}")
