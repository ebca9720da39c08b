"""Long work whose state is one row: how it is started, changed and found again under its id."""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Generic, TypeVar
from uuid import UUID

from baton.application.commands import Commands, system_batch
from baton.application.ports import Job, Work, WorkItem, WorkProgress
from baton.application.unit_of_work import load_row
from baton.domain.operation.conduct.work_items import WorkFound
from baton.domain.shared.refusals import Refusal, Unavailable
from baton.domain.shared.writes import Put, WorkRecord

W = TypeVar("W", bound=WorkRecord)


class RowWork(Generic[W]):
    """One kind of long work; the row's first key column is the id of the work."""

    workflow: str  # workflow's type, which also names the lock that changes are made under
    row_type: type[W]
    command_name: str  # command that began the work, which changes of the row are recorded under
    readable_with: str
    running: tuple[StrEnum, ...]  # the statuses of work that is under way

    def __init__(self, commands: Commands) -> None:
        self.commands = commands

    async def job(self, work_id: UUID) -> Job:
        return Job(self.workflow, f"{self.workflow}:{work_id}", str(work_id))

    async def item(self, work_id: UUID) -> WorkItem | None:
        if (row := await self._find(work_id)) is None:
            return None
        ids = {self.row_type.key[0]: str(work_id), "work_id": str(work_id)}
        return WorkItem(row.principal_id, self.readable_with, ids, row.correlation_id)

    async def progress(self, work_id: UUID) -> WorkProgress | None:
        return None

    async def unfinished_ids(self) -> Sequence[UUID]:
        async with self.commands.store.session() as session:
            rows = await session.records(self.row_type, {"status": self.running})
        return [getattr(row, self.row_type.key[0]) for row in rows]

    async def load(self, work_id: UUID) -> W:
        """Return the row of work that was asked for."""
        row = await self._find(work_id)
        assert row is not None, "what is worked on was asked for"
        return row

    async def change(self, work_id: UUID, change: Callable[[W], W]) -> bool:
        """Change a row under way; return false where the work has ended, so that a late attempt changes nothing."""
        async with self.commands.store.session(self.workflow) as session:
            (row,) = await session.records(self.row_type, {self.row_type.key[0]: work_id})
            if row.status not in self.running:
                return False
            if (changed := change(row)) != row:
                clock, new_id, work = self.commands.clock, self.commands.new_id, row.correlation_id
                await session.append(system_batch(self.command_name, clock, new_id, Put(changed), work=work))
            return True

    async def _find(self, work_id: UUID) -> W | None:
        return await load_row(self.commands.store, self.row_type, **{self.row_type.key[0]: work_id})


async def find_work(works: Iterable[Work], work_id: UUID) -> WorkFound | None:
    """Return a piece of long work of any kind with its state; None where there is none under this id."""
    for work in works:
        if (item := await work.item(work_id)) is not None:
            answer, refusal = None, None
            try:
                answer = await work.answer(work_id)
            except Unavailable:
                raise
            except Refusal as ended_with:
                refusal = ended_with
            progress = await work.progress(work_id) if answer is None and refusal is None else None
            message = None if progress is None else progress.message
            return WorkFound(item.principal_id, item.readable_with, item.correlation_id, item.ids, answer, refusal, message)
    return None
