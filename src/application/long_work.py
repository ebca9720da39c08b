"""Long work: each kind is declared once, as a class. What starts and wakes it, how unfinished work is found on the record,
what its command answers and which activities a worker offers for it all follow from the declaration."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from enum import Enum, StrEnum
from importlib import import_module
from inspect import getmembers, isfunction
from pkgutil import walk_packages
from typing import Any, ClassVar, Generic, Self, TypeVar
from uuid import UUID

import baton.application
from baton.application.caller import Caller
from baton.application.commands import Commands, system_batch
from baton.application.ports import CalendarEntry, EventRow, Job, WorkItem, WorkProgress
from baton.application.settings import Settings
from baton.application.unit_of_work import load_row
from baton.domain.conduct.work_items import WorkFound
from baton.domain.kernel import Command, Event
from baton.domain.schedule.calendar import EveryCalendar
from baton.domain.shared.refusals import ConcurrencyError, Refusal, UnauthorizedError, Unavailable, kept_refusal
from baton.domain.shared.tasks import Task, TaskRequest, TaskStatus, with_answer, with_refusal
from baton.domain.shared.writes import Put, WorkRecord
from baton.domain.trust.authorization import ApprovalRequiredError

DENIALS = (UnauthorizedError, ApprovalRequiredError)  # how a task ends whose caller may not do what it takes
SHORTEST_CATCH_UP_SECONDS = 10  # within which a missed occasion of a calendar is made up for
TASKS = "task"  # the workflow that carries out every kind of task

F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K", bound="LongWork")
W = TypeVar("W", bound=WorkRecord)


class Pace(Enum):
    """How an activity shows that it is alive, and whether it waits."""

    QUICK = "quick"  # it is done in a moment
    SHORT = "short"  # it takes a moment, and heartbeats are sent for it meanwhile
    BEATING = "beating"  # it gets its `Attempt` and sends the heartbeats itself
    WAITING = "waiting"  # likewise, and it leaves its wait to another worker when its own one stops


MARKS: dict[Callable[..., Any], tuple[str, Pace]] = {}  # the activity that a method carries out, and its pace
KINDS: "list[type[LongWork]]" = []  # every kind that was declared, in the order of their modules


def carries_out(activity: str, pace: Pace = Pace.SHORT) -> Callable[[F], F]:
    """Declare a method as what carries out the activity of this name."""

    def mark(method: F) -> F:
        MARKS[method] = activity, pace
        return method

    return mark


def marked_methods(owner: type) -> Mapping[str, tuple[str, Pace]]:
    """Return the methods of a class that carry out activities, by their names."""
    return {name: MARKS[method] for name, method in getmembers(owner, isfunction) if method in MARKS}


def event_memo(event: EventRow) -> dict[str, str]:
    """Return the memo of a workflow that was started for an event."""
    return {"event_id": str(event.event_id)}


@dataclass(frozen=True)
class Recurrence:
    """A calendar of the engine that starts a kind of work at regular intervals, and whether it is wanted. An occasion
    that is missed for longer than one interval is not made up for."""

    id: str
    workflow: str
    seconds: int
    on: bool

    @property
    def entry(self) -> CalendarEntry:
        calendar, window = EveryCalendar(every=self.seconds), max(self.seconds, SHORTEST_CATCH_UP_SECONDS)
        return CalendarEntry(self.id, self.workflow, calendar, catchup_window=window, note="A turn of an agent.")


class LongWork(ABC):
    """One kind of long work. A class that names its workflow declares a kind, which every process knows and every worker
    runs. Its methods that carry out activities are declared as such, on it or on what `actors` returns."""

    workflow: ClassVar[str]  # the workflow's type, or the kind of task
    reaction: ClassVar[str] = ""  # the name of its bookmark in the log, where events wake it
    wakes_on: ClassVar[tuple[type[Event], ...]] = ()
    listens: ClassVar[bool] = False  # whether its workflow waits for news, which then comes with every event

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "workflow" in vars(cls):
            KINDS.append(cls)

    @classmethod
    def build(cls, parts: Any) -> Self:
        """Build this kind, a dataclass, from the parts of a process that its fields are named after."""
        own: Any = cls
        return cls(
            *(getattr(parts, field.name) for field in fields(own) if field.default is field.default_factory is MISSING)
        )

    @classmethod
    def recurrence(cls, settings: Settings) -> Recurrence | None:
        """Return the calendar that starts it; None where nothing does."""
        return None

    @property
    def enabled(self) -> bool:
        """Whether events wake it; a kind that is off passes over the events of that time for good."""
        return True

    @property
    def actors(self) -> Sequence[object]:
        """What carries its activities out."""
        return (self,)

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        """Return the jobs to start for an event, under ids that follow from it; none where it does not concern it."""
        return ()


class RecordedWork(LongWork):
    """Long work that is found on the record under its id for as long as it is unfinished, and started from there."""

    @abstractmethod
    async def job(self, work_id: UUID) -> Job | None:
        """Return the job to start; None where there is nothing left to do."""

    @abstractmethod
    async def unfinished_ids(self) -> Sequence[UUID]:
        """Return the work under way on the record, which the engine may not know of."""

    async def concerned_ids(self, event: EventRow) -> Sequence[UUID]:
        """Return the work that an event may give something to do."""
        return (event.stream_id,)

    async def jobs(self, event: EventRow) -> Sequence[Job]:
        found = [await self.job(id) for id in await self.concerned_ids(event)]
        return [replace(job, news=self.listens, memo=event_memo(event)) for job in found if job is not None]


class AwaitedWork(RecordedWork):
    """Recorded work that somebody waits for: the answer of its command, and what `get_work` shows."""

    @abstractmethod
    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        """Return the answer once the work is done; raise the refusal it ended with."""

    @abstractmethod
    async def item(self, work_id: UUID) -> WorkItem | None:
        """Return the work under this id; None where there is none of this kind."""

    async def progress(self, work_id: UUID) -> WorkProgress | None:
        """Return the progress, where it is known."""
        return None

    async def question(self, work_id: UUID) -> Mapping[str, Any] | None:
        """Return the question that the work waits for an answer to; None where it asks none."""
        return None


class LookUpWork(RecordedWork):
    """Work that belongs to a stream, which is enlisted under a look-up kind for as long as it is unfinished."""

    unfinished: ClassVar[str]
    commands: Commands

    async def unfinished_ids(self) -> Sequence[UUID]:
        async with self.commands.store.session() as session:
            return await session.all_members(self.unfinished)


class RowWork(AwaitedWork, Generic[W]):
    """Work that is a row: the first column of the row's key is the id of the work, and the kind names the lock that changes
    are made under."""

    commands: Commands
    row_type: type[W]
    command_name: str  # command that began the work, which changes of the row are recorded under
    readable_with: str
    running: tuple[StrEnum, ...]  # the statuses of work that is under way
    own_rows: Mapping[str, Any] = {}  # the values that tell the rows of this kind from others

    async def job(self, work_id: UUID) -> Job:
        return Job(self.workflow, f"{self.workflow}:{work_id}", str(work_id))

    async def item(self, work_id: UUID) -> WorkItem | None:
        if (row := await self._find(work_id)) is None:
            return None
        ids = {self.row_type.key[0]: str(work_id), "work_id": str(work_id)}
        return WorkItem(row.principal_id, self.readable_with, ids, row.correlation_id)

    async def unfinished_ids(self) -> Sequence[UUID]:
        async with self.commands.store.session() as session:
            rows = await session.records(self.row_type, {"status": self.running, **self.own_rows})
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
        return await load_row(self.commands.store, self.row_type, **{self.row_type.key[0]: work_id}, **self.own_rows)


@dataclass
class TaskWork(RowWork[Task]):
    """Long work that one activity carries out, kept as a task. `workflow` is the kind of task that commands begin, and
    `command` the one whose refusals it may end with."""

    row_type = Task
    command: ClassVar[type[Command]]
    running = (TaskStatus.RUNNING,)
    commands: Commands

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if hasattr(cls, "command"):
            cls.command_name, cls.own_rows = cls.command.__name__, {"kind": cls.workflow}

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


class LongWorks(Mapping[str, Any]):
    """The kinds of long work by their names, each built from the parts of the process when it is first asked for."""

    def __init__(self, parts: Any) -> None:
        self._parts = parts
        self._kinds = {kind.workflow: kind for kind in declared_kinds()}
        self._built: dict[type[LongWork], Any] = {}

    def of(self, kind: type[K]) -> K:
        """Return the work of a kind."""
        if kind not in self._built:
            self._built[kind] = kind.build(self._parts)
        built: K = self._built[kind]
        return built

    def all_of(self, kinds: type[K]) -> tuple[K, ...]:
        """Return the work of every kind that is declared as one of these."""
        return tuple(self.of(kind) for kind in self._kinds.values() if issubclass(kind, kinds))

    @property
    def reacting(self) -> tuple[LongWork, ...]:
        """The kinds that follow the log."""
        return tuple(work for work in self.all_of(LongWork) if work.reaction)

    def __getitem__(self, name: str) -> Any:
        return self.of(self._kinds[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    async def find_work(self, work_id: UUID) -> WorkFound | None:
        """Return a piece of long work of any kind with its state; None where there is none under this id."""
        for work in self.all_of(AwaitedWork):
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
                about = (item.principal_id, item.readable_with, item.correlation_id, item.ids)
                return WorkFound(*about, answer, refusal, message)
        return None


def reaction_names() -> list[str]:
    """Return the names of everything in this build that follows the log; a bookmark of another name is an older build's."""
    return [kind.reaction for kind in declared_kinds() if kind.reaction]


def declared_kinds() -> Sequence[type[LongWork]]:
    """Return every kind of long work that was declared; the modules of the application are imported for that."""
    for module in walk_packages(baton.application.__path__, f"{baton.application.__name__}."):
        import_module(module.name)
    return tuple(KINDS)
