"""Points of conducts as rows: what was measured at each place, by the names of axes and values."""

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from baton.client.exchanges import CallScript, ClientSession
from baton.client.index import OPERATIONS
from baton.client.notebook import frame_of

PAGE = 1000


class Points(list[dict[str, Any]]):
    """Points, a row for each; a value in two units has a name for each of them."""

    def to_pandas(self) -> Any:
        """Return the points as a data frame of pandas."""
        return frame_of(self)


def every_point(session: ClientSession, procedure_ids: Iterable[UUID]) -> CallScript[Points]:
    """Return all points of procedures, page by page."""
    found, several = Points(), len(ids := list(procedure_ids)) > 1
    for id in ids:
        after: int | None = 0
        while after is not None:
            place = {"procedure_id": id, "after": after, "limit": PAGE}
            page = yield from session.call(OPERATIONS["list_procedure_points"], place)
            found += ({**({"procedure_id": id} if several else {}), **row} for row in rows_of(page))
            after = page.next_after
    return found


def rows_of(page: Any) -> Iterator[dict[str, Any]]:
    """Yield the points of a page by the names of their columns."""
    counts: dict[str, int] = {}
    for column in page.values:
        counts[column.name] = counts.get(column.name, 0) + 1
    names = [one.name if counts[one.name] == 1 else f"{one.name} ({one.unit})" for one in page.values]
    for one in page.items:
        axes = zip((axis.name for axis in page.axes), one.axes, strict=True)
        place = {"at": one.at, "pass": one.iteration_index, "step": one.step_index}
        yield {**place, **dict(axes), **dict(zip(names, one.values, strict=True))}
