"""The items of a queue: their states, their order, and what becomes of it when one is added, moved, started or ended."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from baton.domain.kernel import Value
from baton.domain.operation.launch.launch_ids import LaunchIds
from baton.domain.operation.launch.targets import MAX_NAME_LENGTH, ConductPlan, ConductRecipe, RecipeConduct, target_of
from baton.domain.run.conduct import MAX_PHASES
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import FreeText, Text

MAX_UNENDED = 1000  # Items of a queue that have not ended.
MAX_ENDED = 1000  # Items that have ended and are kept: the last ones.


class QueueItemStatus(StrEnum):
    WAITING = "Waiting"
    BLOCKED = "Blocked"  # The first of those that wait, and something keeps it from starting that may pass.
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    REFUSED = "Refused"  # Nothing of it was conducted.
    REMOVED = "Removed"


WAITING, BLOCKED, RUNNING, COMPLETED, FAILED, REFUSED, REMOVED = QueueItemStatus
AHEAD = (WAITING, BLOCKED)
ENDED = (COMPLETED, FAILED, REFUSED, REMOVED)


class InvalidQueueItemTargetError(Invalid, context="operation"):
    """What the item is to do is not said in a way that could be done."""


QueueTargetName = Annotated[str, Text(MAX_NAME_LENGTH, InvalidQueueItemTargetError, "name", personal=True)]
QueueProcedureKind = Annotated[str, Text(50, InvalidQueueItemTargetError, "procedure kind")]


class QueuedRecipeConduct(RecipeConduct):
    """A procedure to register from a recipe, and how it is conducted; where that is not said, its steps once."""

    name: QueueTargetName
    procedure_kind: QueueProcedureKind = "queued"


class ConductQueuedRecipe(ConductRecipe):
    """Register a procedure from a recipe and conduct it."""

    name: QueueTargetName
    procedure_kind: QueueProcedureKind = "queued"


class ConductQueuedPlan(ConductPlan):
    """Start a run with all its gates, register its phases, and conduct them; what they leave unbound the run binds."""

    kind: Literal["ConductPlan"]
    phases: Annotated[tuple[QueuedRecipeConduct, ...], Field(max_length=MAX_PHASES)]


QueueTarget = Annotated[ConductQueuedRecipe | ConductQueuedPlan, Field(discriminator="kind")]


@dataclass(frozen=True)
class ItemLaunch(LaunchIds):
    """The ids of what one attempt at an item makes."""

    item_id: UUID
    attempt: int

    @property
    def id(self) -> UUID:
        return derived_uuid7(self.item_id.int >> 80, str(self.item_id), f"attempt {self.attempt}")


class QueueItem(Value):
    """One thing to conduct, as whom, and what became of it; `number` counts the items that were ever added."""

    item_id: UUID
    number: int
    title: FreeText
    target: dict[str, Any]
    added_by: UUID
    surface_id: UUID
    conduit_id: UUID
    not_before: datetime | None = None
    pause_after: bool = False
    status: QueueItemStatus = WAITING
    attempt: int = 1  # The next attempt at it or, once it runs, the present one.
    run_id: UUID | None = None
    procedure_id: UUID | None = None
    code: str | None = None
    detail: FreeText | None = None  # What blocks, refused or failed it, or why it was removed.
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def aim(self) -> ConductRecipe | ConductPlan:
        """The target as it was requested."""
        return target_of(self.target)

    @property
    def launch(self) -> ItemLaunch:
        """The ids of the present attempt."""
        return ItemLaunch(self.item_id, self.attempt)

    def with_values(self, **values: Any) -> "QueueItem":
        """Return the item with these values."""
        return self.model_copy(update=values)

    def as_waiting(self) -> "QueueItem":
        """Return the item as one that nothing is known to block."""
        return self if self.status is WAITING else self.with_values(status=WAITING, code=None, detail=None)


Items = tuple[QueueItem, ...]


def find_item(items: Items, item_id: UUID) -> QueueItem | None:
    """Return the item with this id, or None."""
    return next((item for item in items if item.item_id == item_id), None)


def without_item(items: Items, item_id: UUID) -> Items:
    """Return the items but this one."""
    return tuple(item for item in items if item.item_id != item_id)


def in_order(items: Iterable[QueueItem]) -> Items:
    """Return the items that have ended, as they ended, then the running one, then those that wait. Only the first of these
    can be blocked: another one has not been judged in its turn."""
    known = tuple(items)
    ended = tuple(item for item in known if item.status in ENDED)
    running = tuple(item for item in known if item.status is RUNNING)
    first, rest = (ahead := tuple(item for item in known if item.status in AHEAD))[:1], ahead[1:]
    return (*ended[-MAX_ENDED:], *running, *first, *(item.as_waiting() for item in rest))


def with_added(items: Items, added: Items, before_item_id: UUID | None) -> Items:
    """Return the items with others before one of them, or at the end."""
    if before_item_id is None:
        return in_order((*items, *added))
    place = next(index for index, item in enumerate(items) if item.item_id == before_item_id)
    return in_order((*items[:place], *added, *items[place:]))


def with_moved(items: Items, item_id: UUID, before_item_id: UUID | None) -> Items:
    """Return the items with one of them before another, or at the end."""
    moved = tuple(item for item in items if item.item_id == item_id)
    return items if before_item_id == item_id else with_added(without_item(items, item_id), moved, before_item_id)


def with_changed(items: Items, item_id: UUID, **values: Any) -> Items:
    """Return the items with new values of one of them, in its place."""
    return in_order(item.with_values(**values) if item.item_id == item_id else item for item in items)


def with_started(items: Items, item_id: UUID, **values: Any) -> Items:
    """Return the items with one that is under way."""
    return with_changed(items, item_id, status=RUNNING, code=None, detail=None, **values)


def with_blocked(items: Items, item_id: UUID, **values: Any) -> Items:
    """Return the items with one that is blocked, at the front of those that wait."""
    blocked = {"status": BLOCKED, "run_id": None, "procedure_id": None, "started_at": None, **values}
    changed = tuple(item.with_values(**blocked) for item in items if item.item_id == item_id)
    return in_order((*changed, *without_item(items, item_id)))


def with_ended(items: Items, item_id: UUID, **values: Any) -> Items:
    """Return the items with one that has ended, as the last of those that have."""
    ended = tuple(item.with_values(**values) for item in items if item.item_id == item_id)
    return in_order((*without_item(items, item_id), *ended))
