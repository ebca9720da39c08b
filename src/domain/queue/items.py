"""The items of a queue: their states, their order, and what becomes of it when one is added, moved, started or ended."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from baton.domain.conduct.run_conduct import MAX_PHASES
from baton.domain.kernel import Value
from baton.domain.launch.launch_ids import LaunchIds
from baton.domain.recipe.template_versions import TemplateVersion
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import FreeText, Text
from baton.domain.target.targets import MAX_NAME_LENGTH, ConductPlan, ConductRecipe, RecipeConduct, target_of

MAX_REMAINING = 1000  # Items of a queue that have not ended.
MAX_ENDED = 1000  # Items that have ended and are kept: the last ones.


class QueueItemStatus(StrEnum):
    WAITING = "Waiting"
    BLOCKED = "Blocked"  # The first of those that wait, and something keeps it from starting that may pass.
    RUNNING = "Running"
    COMPLETED = "Completed"
    STOPPED = "Stopped"  # Somebody ended its run or procedure early.
    FAILED = "Failed"
    REFUSED = "Refused"  # Nothing of it was conducted.
    REMOVED = "Removed"


WAITING, BLOCKED, RUNNING, COMPLETED, STOPPED, FAILED, REFUSED, REMOVED = QueueItemStatus
AHEAD = (WAITING, BLOCKED)
ENDED = (COMPLETED, STOPPED, FAILED, REFUSED, REMOVED)


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
    versions: tuple[TemplateVersion, ...] = ()  # Of what the target names, when it was given or confirmed.
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

    def with_values(self, **values: object) -> "QueueItem":
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
    if items and items[0].item_id == item_id:
        return items[1:]
    return tuple(item for item in items if item.item_id != item_id)


def insert_items(ahead: Items, added: Items, before_item_id: UUID | None) -> Items:
    """Return those that wait with others before one of them, or at the end."""
    if before_item_id is None:
        return (*ahead, *added)
    place = next(index for index, item in enumerate(ahead) if item.item_id == before_item_id)
    return unblock_later((*ahead[:place], *added, *ahead[place:]))


def move_item(ahead: Items, item_id: UUID, before_item_id: UUID | None) -> Items:
    """Return those that wait with one of them before another, or at the end."""
    moved = tuple(item for item in ahead if item.item_id == item_id)
    if before_item_id == item_id:
        return ahead
    return unblock_later(insert_items(without_item(ahead, item_id), moved, before_item_id))


def unblock_later(ahead: Items) -> Items:
    """Return those that wait, of which only the first can be blocked: the others are judged in their turn."""
    return (*ahead[:1], *(item.as_waiting() for item in ahead[1:]))


def replace_item(items: Items, changed: QueueItem) -> Items:
    """Return the items with one of them changed, in its place."""
    return tuple(changed if item.item_id == changed.item_id else item for item in items)


def append_ended(ended: Items, *items: QueueItem) -> Items:
    """Return the items that have ended with further ones at the end; the last thousand are kept."""
    return (*ended, *items)[-MAX_ENDED:]
