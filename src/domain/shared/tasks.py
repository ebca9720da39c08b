"""Tasks: long work of one piece, kept as a row from the request to its answer. A command begins one with `begin_task`; the
worker carries it out, and a repeated attempt continues where the row and the streams say that the first one came to."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import Field

from baton.domain.kernel import Call, Value
from baton.domain.shared.refusals import Refusal, kept_form
from baton.domain.shared.writes import Answer, Put, WorkRecord, Write

Wait = Annotated[int, Field(ge=0, le=60, description="Seconds to wait for the result.")]


class TaskStatus(StrEnum):
    RUNNING = "Running"
    DONE = "Done"
    REFUSED = "Refused"


@dataclass(frozen=True, kw_only=True)
class Task(WorkRecord):
    """One piece of long work: what was asked, by whom, how far it is, and the answer or the refusal it ended with."""

    relation: ClassVar[str] = "tasks"
    key: ClassVar[tuple[str, ...]] = ("work_id",)
    work_id: UUID
    kind: str
    principal_id: UUID
    surface_id: UUID
    correlation_id: UUID
    request: dict[str, Any]
    ids: dict[str, Any]  # What the caller is told at once, besides `work_id`.
    created_at: datetime
    status: TaskStatus = TaskStatus.RUNNING
    done: int = 0
    total: int | None = None
    notes: dict[str, Any] = field(default_factory=dict)  # What an attempt leaves for the next one.
    answer: dict[str, Any] | None = None
    refusal: dict[str, Any] | None = None
    proven_group_ids: list[UUID] = field(default_factory=list)  # The groups that the token of who asked for it told.


class TaskRequest(Value):
    """Which task a workflow carries out."""

    kind: str
    work_id: str


def begin_task(
    kind: str, work_id: UUID, request: Mapping[str, object], ids: Mapping[str, object], call: Call
) -> tuple[Write, ...]:
    """Return what begins a task and answers its ids; they must follow from the request where a repeat is to attach."""
    told = {name: str(id) for name, id in ids.items()}
    return queue_task(kind, work_id, request, told, call), Answer({**told, "work_id": str(work_id)})


def begin_or_join_task(
    kind: str, work_id: UUID, request: Mapping[str, object], ids: Mapping[str, object], earlier: Task | None, call: Call
) -> tuple[Write, ...]:
    """Return what begins a task or, where the same one is under way, answers its ids and leaves it as it is."""
    begun, answer = begin_task(kind, work_id, request, ids, call)
    return (answer,) if earlier is not None and earlier.status is TaskStatus.RUNNING else (begun, answer)


def queue_task(kind: str, work_id: UUID, request: Mapping[str, object], ids: Mapping[str, str], call: Call) -> Put:
    """Return what begins a task that the command does not wait for: the worker finds it on the record."""
    task = Task(
        work_id=work_id,
        kind=kind,
        principal_id=call.principal_id,
        proven_group_ids=sorted(call.proven_group_ids),
        surface_id=call.surface_id,
        correlation_id=call.correlation_id,
        request=dict(request),
        ids=dict(ids),
        created_at=call.now,
    )
    return Put(task)


def with_answer(task: Task, answer: Mapping[str, object]) -> Task:
    """Return the task as done; an empty answer means that there is nothing to tell."""
    return replace(task, status=TaskStatus.DONE, answer=dict(answer))


def with_refusal(task: Task, refusal: Refusal) -> Task:
    """Return the task as refused."""
    return replace(task, status=TaskStatus.REFUSED, refusal=kept_form(refusal))
