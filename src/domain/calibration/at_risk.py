"""Results at risk: which datasets rest on a calibration value that was replaced later."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Never
from uuid import UUID

from baton.domain.calibration.calibration import (
    Calibration,
    CalibrationRevisionNotFoundError,
    CalibrationStatus,
    calibration,
    required_revision,
)
from baton.domain.kernel import Call, CursorText, LogPosition, PageLimit, Query, Value
from baton.domain.shared.listing import Cursor, Order, Page
from baton.domain.shared.reads import Reads
from baton.domain.shared.refusals import Conflict


class CalibrationAtRiskResultsUnknownError(Conflict, context="calibration"):
    """No datasets are recorded here, so which results rest on a calibration cannot be known."""


class Exposure(StrEnum):
    USED = "Used"
    DERIVED = "Derived"


@dataclass(frozen=True)
class Suspect:
    """A revision whose results are asked for, and what replaced it; one that nothing replaced puts nothing at risk."""

    revision_id: UUID
    superseded_by_revision_id: UUID | None
    superseded_by_status: CalibrationStatus | None
    superseded_at: datetime | None

    @property
    def at_risk(self) -> bool:
        return self.superseded_by_revision_id is not None


def suspects(calibration: Calibration, revision_id: UUID | None) -> tuple[Suspect, ...]:
    """The named revision whatever became of it, or else every superseded one, oldest first."""
    if revision_id is None:
        chosen = [revision for revision in calibration.revisions if revision.superseded_by_revision_id is not None]
    else:
        chosen = [required_revision(calibration, revision_id)]
    found = []
    for revision in chosen:
        successor_id = revision.superseded_by_revision_id
        successor = None if successor_id is None else calibration.revision(successor_id)
        found.append(
            Suspect(
                revision.revision_id,
                successor_id,
                successor.status if successor else None,
                successor.established_at if successor else None,
            )
        )
    return tuple(found)


class AtRiskResult(Value):
    """A dataset that used a suspect value, or was derived from one that did."""

    dataset_id: UUID
    name: str
    intent: str
    producing_run_id: UUID | None
    subject_id: UUID | None
    revision_id: UUID
    exposure: Exposure
    superseded_by_revision_id: UUID | None
    superseded_by_status: CalibrationStatus | None
    superseded_at: datetime | None
    at_risk: bool


@calibration.query(
    get="/{calibration_id}/at-risk-results",
    returns=Page[AtRiskResult],
    refuses=[CalibrationRevisionNotFoundError, CalibrationAtRiskResultsUnknownError],
)
class ListCalibrationAtRiskResults(Query):
    """Datasets that used a superseded revision, then those derived from them; with a revision named, what used that one."""

    revision_id: UUID | None = None
    limit: PageLimit = 50
    cursor: CursorText | None = None
    order: Order = Order.ASC
    min_position: LogPosition | None = None

    def answer(self, calibration: Calibration, call: Call) -> Reads[Never]:
        """Refuse, since no dataset is recorded that could cite a revision; an empty page would say that none does."""
        if self.cursor:
            Cursor.parse(self.cursor, self.order)
        revision_ids = [str(suspect.revision_id) for suspect in suspects(calibration, self.revision_id)]
        raise CalibrationAtRiskResultsUnknownError(
            "No datasets are recorded here, so which results rest on this calibration cannot be known; look for the "
            "revisions in facts where the results are kept.",
            reason="datasets_not_recorded",
            facts={"revision_ids": revision_ids},
        )
        yield
