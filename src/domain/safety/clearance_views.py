"""The views of clearances: one form whole, and the list with what each covers."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self
from uuid import UUID

from pydantic import Field

from baton.domain.kernel import Call, IdSet, TimeTravel, Value, values_of
from baton.domain.safety.clearance import Clearance, ClearanceStatus, barred_reviewers, clearance
from baton.domain.safety.hazards import Bindings, Declarations, RecordBinding, ReviewStep, RiskBand
from baton.domain.shared.listing import NamedListQuery, Summary, Where
from baton.domain.shared.reads import Reads
from baton.domain.shared.text import FreeText
from baton.domain.shared.times import Instant


class ClearanceView(Value):
    """A clearance whole, and who may neither review nor approve it."""

    id: UUID
    template_id: UUID
    facility_code: str
    title: FreeText
    bindings: Bindings
    """What the form covers: samples, assets, runs, procedures, or things outside this service."""
    declarations: Declarations
    risk_band: RiskBand | None
    review_steps: tuple[ReviewStep, ...]
    """What the reviewers decided, in order."""
    status: ClearanceStatus
    external_id: str | None
    external_id_scheme: str | None
    parent_id: UUID | None
    valid_from: datetime | None
    valid_until: datetime | None
    barred_reviewer_ids: IdSet
    """The actors who may neither review nor approve the form."""
    clearance_id: UUID
    created_at: datetime


@clearance.query(get="/{clearance_id}", returns=ClearanceView)
class GetClearance(TimeTravel[ClearanceView]):
    """One clearance, folded from its stream; its author is a barred reviewer where CLEARANCE_FOUR_EYES is on."""

    def answer(self, clearance: Clearance, call: Call) -> Reads[ClearanceView]:
        barred = yield from barred_reviewers(clearance)
        return ClearanceView.model_construct(
            **values_of(clearance, ClearanceView), barred_reviewer_ids=barred or frozenset()
        )


class BoundRecords(Value):
    """The records a clearance covers, by kind."""

    subject_ids: IdSet
    """The samples."""
    asset_ids: IdSet
    run_ids: IdSet
    procedure_ids: IdSet


class ClearanceSummary(Summary):
    time: ClassVar[str] = "registered_at"
    clearance_id: UUID
    template_id: UUID
    template_code: str
    facility_code: str
    title: FreeText
    external_id: str | None
    external_id_scheme: str | None
    status: ClearanceStatus
    risk_band: RiskBand | None
    bindings: BoundRecords
    parent_id: UUID | None
    registered_at: datetime
    last_status_changed_at: datetime | None
    last_status_reason: FreeText | None
    last_reviewed_by: UUID | None
    valid_from: datetime | None
    valid_until: datetime | None

    @classmethod
    def of(cls, state: Any) -> Self:
        records = [(f"{one.kind.lower()}_ids", one.id) for one in state.bindings if isinstance(one, RecordBinding)]
        ids = {kind: frozenset(id for name, id in records if name == kind) for kind in BoundRecords.model_fields}
        columns = {name: getattr(state, name) for name in cls.model_fields if name not in ("clearance_id", "bindings")}
        return cls(clearance_id=state.id, bindings=BoundRecords(**ids), **columns)


@clearance.listing(ClearanceSummary)
class ListClearances(NamedListQuery[ClearanceSummary]):
    """Clearances in order of registration."""

    indexed: ClassVar[tuple[str, ...]] = ("bindings", "valid_until")
    template_id: UUID | None = None
    template_code: Annotated[str, Field(min_length=1, max_length=50)] | None = None
    status: ClearanceStatus | None = None
    risk_band: RiskBand | None = None
    facility_code: Annotated[str, Field(min_length=1, max_length=32)] | None = None
    binds_to_subject_id: UUID | None = None
    binds_to_asset_id: UUID | None = None
    binds_to_run_id: UUID | None = None
    binds_to_procedure_id: UUID | None = None
    due_by: Instant | None = None  # Only those that are valid until then at most.

    def where(self) -> Iterator[Where]:
        yield from super().where()
        if self.due_by is not None:
            yield Where("valid_until", "to", self.due_by)
        for kind in BoundRecords.model_fields:
            wanted: UUID | None = getattr(self, f"binds_to_{kind.removesuffix('s')}")
            if wanted is not None:
                yield Where("bindings", "contains", {kind: [str(wanted)]})
