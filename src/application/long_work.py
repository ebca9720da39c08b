"""Long work whose state is one row: how it is started, changed and found again under its id."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Generic, TypeVar
from uuid import UUID

from baton.application.caller import Caller
from baton.application.commands import Commands, system_batch
from baton.application.ports import Job, Work, WorkItem, WorkProgress
from baton.application.unit_of_work import load_row
from baton.domain.conduct.work_items import WorkFound
from baton.domain.kernel import Command
from baton.domain.shared.refusals import ConcurrencyError, Refusal, UnauthorizedError, Unavailable, kept_refusal
from baton.domain.shared.tasks import Task, TaskRequest, TaskStatus, with_answer, with_refusal
from baton.domain.shared.writes import Put, WorkRecord
from baton.domain.trust.authorization import ApprovalRequiredError

DENIALS = (UnauthorizedError, ApprovalRequiredError)  # how a task ends whose caller may not do what it takes
TASKS = "task"  # the workflow that carries out every kind of task

W = TypeVar("W", bound=WorkRecord)


def task_kind(workflow_id: str) -> str:
    """Return the kind of the task that a workflow carries out."""
    return workflow_id.partition(":")[0]


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


class TaskWork(RowWork[Task], ABC):
    """Long work that one activity carries out, kept as a task. `workflow` is the kind of task that commands begin, and
    `command` the one whose refusals it may end with."""

    row_type = Task
    command: type[Command]
    running = (TaskStatus.RUNNING,)

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "command"):
            cls.command_name = cls.command.__name__

    async def job(self, work_id: UUID) -> Job:
        request = TaskRequest(kind=self.workflow, work_id=str(work_id))
        return Job(TASKS, f"{self.workflow}:{work_id}", request, succeeds=True)

    async def item(self, work_id: UUID) -> WorkItem | None:
        if (task := await self._find(work_id)) is None:
            return None
        return WorkItem(task.principal_id, self.readable_with, {**task.ids, "work_id": str(work_id)}, task.correlation_id)

    async def progress(self, work_id: UUID) -> WorkProgress | None:
        task = await self.load(work_id)
        return WorkProgress(task.done, task.total, self.progress_text(task)) if task.total else None

    def progress_text(self, task: Task) -> str:
        """Return how far a task is, as a sentence."""
        return f"{task.done} of {task.total} done"

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        task = await self.load(work_id)
        match task.status:
            case TaskStatus.RUNNING:
                return None
            case TaskStatus.DONE:
                return task.answer
            case TaskStatus.REFUSED:
                assert task.refusal is not None, "a refused task says why"
                raise kept_refusal(task.refusal, (*self.command.operation.refusals, *DENIALS))

    async def unfinished_ids(self) -> Sequence[UUID]:
        async with self.commands.store.session() as session:
            tasks = await session.records(Task, {"status": self.running, "kind": self.workflow})
        return [task.work_id for task in tasks]

    async def run(self, work_id: UUID) -> None:
        """Carry a task out, unless it has ended; a refusal ends it."""
        task = await self.load(work_id)
        if task.status is not TaskStatus.RUNNING:
            return
        try:
            answer = await self.carry_out(task)
        except (Unavailable, ConcurrencyError):
            raise
        except Refusal as refusal:
            ended = refusal
            await self.change(work_id, lambda current: with_refusal(current, ended))
        else:
            await self.change(work_id, lambda current: with_answer(current, answer))

    @abstractmethod
    async def carry_out(self, task: Task) -> Mapping[str, Any]:
        """Do the work and return its answer, or raise the refusal that it ends with. Another attempt may have done a part
        or all of it, and may still be at it."""

    async def note(self, work_id: UUID, **values: Any) -> None:
        """Note how far a task is."""
        await self.change(work_id, lambda current: replace(current, **values))

    def caller_of(self, task: Task) -> Caller:
        """Return who asked for a task, as whom its commands are given."""
        who, groups = (task.principal_id, task.surface_id, task.correlation_id), frozenset(task.proven_group_ids)
        return Caller(*who, causation_id=task.work_id, proven_group_ids=groups)

    async def _find(self, work_id: UUID) -> Task | None:
        return await load_row(self.commands.store, Task, work_id=work_id, kind=self.workflow)


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
