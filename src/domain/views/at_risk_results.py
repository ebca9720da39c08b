"""Which results rest on a calibration value that was replaced: the datasets that used it, and what was derived from them.
Nothing is changed by asking: to demote a dataset is for a person to do."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, NamedTuple
from uuid import UUID

from baton.domain.calibration.calibration import (
    Calibration,
    CalibrationRevisionNotFoundError,
    CalibrationStatus,
    Revision,
    calibration,
    required_revision,
)
from baton.domain.data.dataset import USERS, Dataset, DatasetIntent, DatasetStatus
from baton.domain.data.lineage import LineageDirection, LineagePort
from baton.domain.kernel import Call, CursorText, LogPosition, PageLimit, Query, Value
from baton.domain.shared.listing import Order, Page, decode_cursor, encode_cursor, malformed_cursor
from baton.domain.shared.reads import Reads, ask, find_all, members_by_key
from baton.domain.shared.refusals import Conflict, InvalidCursorError
from baton.domain.shared.text import FreeText

MAX_LINEAGE = 100_000  # Datasets that are followed, and generations.
READ_AT_ONCE = 200  # Datasets that are loaded together to show those of them that are Registered.


class TooManyAtRiskResultsError(Conflict, context="calibration"):
    """More datasets rest on these revisions than are followed for one answer."""


class Exposure(StrEnum):
    USED = "Used"
    DERIVED = "Derived"


class CalibrationAtRiskResult(Value):
    """A dataset that used a suspect value, or was derived from one that did."""

    dataset_id: UUID
    name: FreeText
    intent: DatasetIntent
    """Whether results may rest on it: not yet (Trial), yes (Production), no longer (Retracted)."""
    producing_run_id: UUID | None
    subject_id: UUID | None
    revision_id: UUID
    exposure: Exposure
    """Whether the dataset used the suspect value itself or was derived from one that did."""
    superseded_by_revision_id: UUID | None
    superseded_by_status: CalibrationStatus | None
    """Whether the value that replaces it is provisional or verified."""
    superseded_at: datetime | None
    """When a newer value replaced it."""
    at_risk: bool


class Exposed(NamedTuple):
    """A dataset that rests on a revision."""

    exposure: Exposure
    dataset_id: UUID
    revision_id: UUID


@calibration.query(
    get="/{calibration_id}/at-risk-results",
    returns=Page[CalibrationAtRiskResult],
    refuses=[CalibrationRevisionNotFoundError, TooManyAtRiskResultsError],
)
class ListCalibrationAtRiskResults(Query[Page[CalibrationAtRiskResult]]):
    """Datasets that used a superseded revision, then those derived from them; with a revision named, what used that one.

    Discarded datasets are not shown, but what was derived from them is.
    """

    reads_projections: ClassVar[bool] = True

    revision_id: UUID | None = None
    limit: PageLimit = 50
    cursor: CursorText | None = None
    order: Order = Order.ASC
    min_position: LogPosition | None = None

    def answer(self, calibration: Calibration, call: Call) -> Reads[Page[CalibrationAtRiskResult]]:
        after = None if self.cursor is None else place_in(self.cursor, self.order)
        if self.revision_id is None:
            suspects = [one for one in calibration.revisions if one.superseded_by_revision_id is not None]
        else:
            suspects = [required_revision(calibration, self.revision_id)]
        exposed = sorted((yield from exposed_datasets(suspects)), key=lambda one: place_of(one, self.order))
        behind = [one for one in exposed if after is None or place_of(one, self.order) > after]
        rows = yield from registered_rows(calibration, behind, self.limit + 1)
        last = rows[self.limit - 1] if len(rows) > self.limit else None
        cursor = None if last is None else encode_cursor(self.order, last.exposure, last.dataset_id, last.revision_id)
        return Page(tuple(rows[: self.limit]), cursor)


def exposed_datasets(revisions: Iterable[Revision]) -> Reads[list[Exposed]]:
    """Return what rests on these revisions, each dataset once for a revision."""
    found = yield from members_by_key(USERS, *(revision.revision_id for revision in revisions))
    users = {UUID(key): ids for key, ids in found.items()}
    if not users:
        return []
    lineage = yield from ask(
        LineagePort.dataset_lineage,
        sorted({id for ids in users.values() for id in ids}),
        LineageDirection.DESCENDANTS,
        MAX_LINEAGE,
        MAX_LINEAGE,
    )
    if lineage.truncated:
        detail = f"More than {MAX_LINEAGE} datasets rest on these revisions; name one of them as revision_id."
        raise TooManyAtRiskResultsError(detail, reason="too_many", facts={"revision_ids": sorted(users)})
    children: dict[UUID, list[UUID]] = {}
    for parent, child in lineage.edges:
        children.setdefault(parent, []).append(child)
    return [one for revision_id, ids in users.items() for one in exposed_to(revision_id, ids, children)]


def exposed_to(revision_id: UUID, user_ids: Sequence[UUID], children: Mapping[UUID, Sequence[UUID]]) -> Iterator[Exposed]:
    """Yield the datasets that used a revision, and those derived from them over any number of generations."""
    yield from (Exposed(Exposure.USED, id, revision_id) for id in user_ids)
    seen, pending = set(user_ids), deque(user_ids)
    while pending:
        for id in children.get(pending.popleft(), ()):
            if id not in seen:
                seen.add(id)
                pending.append(id)
                yield Exposed(Exposure.DERIVED, id, revision_id)


def registered_rows(
    calibration: Calibration, exposed: Sequence[Exposed], limit: int
) -> Reads[list[CalibrationAtRiskResult]]:
    """Return the first of these whose dataset is Registered, as they are shown."""
    rows: list[CalibrationAtRiskResult] = []
    for start in range(0, len(exposed), READ_AT_ONCE):
        some = exposed[start : start + READ_AT_ONCE]
        datasets = yield from find_all(Dataset, (one.dataset_id for one in some))
        counting = ((one, datasets[one.dataset_id]) for one in some)
        rows += [
            result_row(calibration, one, dataset) for one, dataset in counting if dataset.status is DatasetStatus.REGISTERED
        ]
        if len(rows) >= limit:
            break
    return rows[:limit]


def result_row(calibration: Calibration, exposed: Exposed, dataset: Dataset) -> CalibrationAtRiskResult:
    """Return how a dataset that rests on a revision is shown."""
    by_id = required_revision(calibration, exposed.revision_id).superseded_by_revision_id
    by = None if by_id is None else required_revision(calibration, by_id)
    return CalibrationAtRiskResult(
        dataset_id=dataset.id,
        name=dataset.name,
        intent=dataset.intent,
        producing_run_id=dataset.producing_run_id,
        subject_id=dataset.subject_id,
        revision_id=exposed.revision_id,
        exposure=exposed.exposure,
        superseded_by_revision_id=by_id,
        superseded_by_status=None if by is None else by.status,
        superseded_at=None if by is None else by.established_at,
        at_risk=by is not None,
    )


Place = tuple[int, int, int]  # Of a row in its list: what used a revision first, then by the ids, which tell the time.


def place_of(exposed: Exposed, order: Order) -> Place:
    """Return where a row stands in a list of this order."""
    sign = 1 if order is Order.ASC else -1
    return list(Exposure).index(exposed.exposure), sign * exposed.dataset_id.int, sign * exposed.revision_id.int


def place_in(cursor: str, order: Order) -> Place:
    """Return where the page ended that gave out this cursor; refuse one that is malformed or of another order."""
    written, exposure, dataset_id, revision_id = decode_cursor(cursor, 4)
    try:
        place = place_of(Exposed(Exposure(exposure), UUID(dataset_id), UUID(revision_id)), order)
        given = Order(written)
    except ValueError as error:
        raise malformed_cursor() from error
    if given is not order:
        raise InvalidCursorError(f"This cursor belongs to order={given}; use it with that order.", reason="other_order")
    return place
