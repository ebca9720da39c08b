"""Where long work is found again, whatever kind it is of."""

from collections.abc import Iterable
from uuid import UUID

from baton.application.ports import Work
from baton.domain.operation.conduct.work_items import WorkFound
from baton.domain.shared.refusals import Refusal, Unavailable


async def found_work(works: Iterable[Work], work_id: UUID) -> WorkFound | None:
    """A piece of long work and how it stands; None where there is none under this id."""
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
            return WorkFound(
                principal_id=item.principal_id,
                readable_with=item.readable_with,
                correlation_id=item.correlation_id,
                ids=item.ids,
                answer=answer,
                refusal=refusal,
                message=None if progress is None else progress.message,
            )
    return None
