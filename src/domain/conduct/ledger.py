"""The ledger of conducts as decisions and answers read it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from baton.domain.conduct.twin import LastValue
from baton.domain.shared.answer_form import AnswerForm
from baton.domain.step.results import ActuationKind


class MeasuredObjective(AnswerForm):
    """What a loop is judged by, as the pass that came this far last measured it."""

    name: str
    value: float
    """The value measured last, in the unit of what was captured."""
    iteration_index: int


class StepRow(NamedTuple):
    """What the ledger says about one step of one conduct."""

    conduct_id: UUID
    step_index: int
    mark: str
    attempt: int
    event_id: UUID
    recorded_at: datetime
    payload: Mapping[str, Any]


class ListPlace(NamedTuple):
    """A part of a list of steps: of which pass (0 outside passes) and list, from which step on, how many at most."""

    iteration_index: int
    closing: bool
    first: int
    limit: int


class LedgerPart(NamedTuple):
    """What the ledger holds of a part of a list: its rows, the last step that each conduct came to, and its rows as well,
    and every closing step that failed."""

    rows: Sequence[StepRow]
    reached: Mapping[UUID, int]
    failed: Sequence[int]


class PointRow(NamedTuple):
    """A row of the ledger as far as it tells of points: a setpoint of an axis, or a step that measures."""

    iteration_index: int
    step_index: int
    kind: str
    is_done: bool
    recorded_at: datetime
    address: str | None = None
    value: Any = None  # What was set or captured.
    unit: str | None = None
    read_back: Any = None  # What was read of a setpoint, or by a capture that failed.
    quality: str | None = None
    capture_name: str | None = None
    measurements: Sequence[Mapping[str, Any]] = ()
    outputs: Sequence[str] = ()  # The names of the files that it left.


class WalkedSpan(NamedTuple):
    """The steps of the main list that one conduct walked and no later one: from the first to before the last."""

    conduct_id: UUID
    first: int
    behind: int


class PointPlace(NamedTuple):
    """Where reading of points begins: in which pass, at which step, and which steps before it are read as well."""

    iteration_index: int
    step_index: int
    seeds: Sequence[int]


class LedgerPort(Protocol):
    """Reads the ledger of conducts."""

    async def measured_objective(self, procedure_id: UUID, conduct_id: UUID) -> MeasuredObjective | None:
        """Return the objective of a loop as measured last."""

    async def image_count(self, procedure_id: UUID) -> int:
        """Return how many images the actions of a procedure took and its setpoints to an `Acquire` signal began."""

    async def completed_step_count(self, conduct_id: UUID) -> int:
        """Return how many steps of its pass a conduct has completed, by its ledger."""

    async def last_values(self, addresses: Sequence[str]) -> Mapping[str, LastValue]:
        """Return what steps wrote to signals or read of them last; what never was is left out."""

    async def actuation_kind(self, conduct_id: UUID) -> ActuationKind | None:
        """Return what the steps of a conduct were done on so far, by its ledger."""

    async def ledger_part(self, conduct_ids: tuple[UUID, ...], place: ListPlace) -> LedgerPart:
        """Return what the ledger holds of a part of a list, of each of these conducts."""

    async def point_rows(
        self, spans: Sequence[WalkedSpan], axes: Sequence[str], place: PointPlace, limit: int
    ) -> Sequence[PointRow]:
        """Return the seeds of a place and at most so many rows from it on, in the order of their places."""
