"""Long work: what outlasts the request that began it is read under its id."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol
from uuid import UUID

from baton.domain.kernel import Call, Query
from baton.domain.registry import standalone_query
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.shared.reads import Reads, ask, is_permitted
from baton.domain.shared.refusals import NotFound, Refusal, kept_form


class WorkNotFoundError(NotFound, context="operation"):
    """There is no work with this id, or the caller may not read it."""


class WorkState(StrEnum):
    RUNNING = "running"  # It is on the record and has not come to its end.
    DONE = "done"
    FAILED = "failed"  # It was refused on its way; what it would have answered, `error` says why not.


@dataclass(frozen=True)
class WorkFound:
    """A piece of long work: its owner, who else may read it, and its state."""

    principal_id: UUID
    readable_with: str
    correlation_id: UUID | None  # That of the request which began it, where that is kept.
    ids: Mapping[str, Any]
    answer: Mapping[str, Any] | None = None
    refusal: Refusal | None = None
    message: str | None = None


class WorkError(AnswerForm):
    """Why work came to nothing: the body that its command would have been refused with."""

    detail: str
    code: str
    """The class name of the refusal."""
    context: str
    """The context whose rule refused."""
    reason: str | None = None
    """The machine-readable cause of the refusal."""
    facts: dict[str, Any] | None = None
    correlation_id: UUID


class WorkView(AnswerForm):
    """A piece of long work: its ids while it runs, besides its answer once it is done, or its error."""

    work_id: UUID
    state: WorkState
    """Whether it is running, done or failed."""
    ids: dict[str, Any]
    """The ids of what the work is about."""
    message: str | None = None  # How far it is, in words, where that is known.
    """How the work goes, in a sentence."""
    answer: dict[str, Any] | None = None
    """What the work came to, once it is done."""
    error: WorkError | None = None
    """Why the work came to nothing."""


class WorkPort(Protocol):
    """Knows all long work."""

    async def find_work(self, work_id: UUID) -> WorkFound | None:
        """Return a piece of long work with its state."""


@standalone_query("/work-items/{work_id}", context="operation", returns=WorkView, refuses=(WorkNotFoundError,))
class GetWork(Query[WorkView]):
    """How long work stands that a request has begun: running, done with its answer, or failed with its error."""

    personal: ClassVar[bool] = True
    work_id: UUID

    def answer(self, call: Call) -> Reads[WorkView]:
        found = yield from ask(WorkPort.find_work, self.work_id)
        if found is None or not (found.principal_id == call.principal_id or (yield from is_permitted(found.readable_with))):
            detail = f"There is no work {self.work_id} that you may read; check the id, or ask as whoever began it."
            raise WorkNotFoundError(detail)
        state, error = WorkState.RUNNING if found.answer is None else WorkState.DONE, None
        if (refusal := found.refusal) is not None:
            began = found.correlation_id or call.correlation_id
            error = WorkError(**kept_form(refusal), context=refusal.context, correlation_id=began)
        return WorkView(
            work_id=self.work_id,
            state=state if found.refusal is None else WorkState.FAILED,
            ids=dict(found.ids),
            message=found.message,
            answer=None if found.answer is None else dict(found.answer),
            error=error,
        )
