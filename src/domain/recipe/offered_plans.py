"""The rows that workers keep of what steps may have carried out: the plans of executors, and their own actions."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from baton.domain.kernel import Value
from baton.domain.shared.writes import Record

PLAN_PREFIX = "plan:"  # Begins the name of an action that is a Bluesky plan.


class PlanTouches(Value):
    """What a Bluesky plan touches, by the names of its parameters or of devices."""

    writes: dict[str, tuple[str, ...]] = {}
    """What it writes, each with the parameters that hold the values that are written."""
    reads: tuple[str, ...] = ()
    """What it only reads."""


class OfferedPlan(Value):
    """A Bluesky plan as its executor offers it."""

    digest: str
    """The digest of everything that the executor says about it."""
    description: str | None = None
    parameters_schema: dict[str, Any] = {}
    touches: PlanTouches | None = None
    gated: bool = False
    """Whether it waits at its checkpoints while its run is held."""
    checkpoints: bool = True
    """Whether it has checkpoints, without which it cannot be paused."""


@dataclass(frozen=True)
class PlanExecutorCatalogue(Record):
    """What an executor offered when it was last asked, and when it last answered."""

    relation: ClassVar[str] = "plan_executors"
    key: ClassVar[tuple[str, ...]] = ("executor",)
    executor: str
    asked_at: datetime
    heard_at: datetime | None
    trouble: str | None
    version: str | None
    environment: str | None
    plans: dict[str, Any]
    devices: list[Any]
    activity: str | None = None  # What the executor says that it is doing.

    def find_plan(self, plan: str) -> OfferedPlan | None:
        """Return a plan as it is offered; None where it is not."""
        found = self.plans.get(plan)
        return None if found is None else OfferedPlan.model_validate(found)
