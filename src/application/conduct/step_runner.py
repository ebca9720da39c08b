"""The steps of conducts as a worker does them: which it is at, and who else may be."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from baton.application.conduct.compute import Compute
from baton.application.conduct.conduct_plan import ConductPlan
from baton.application.conduct.heartbeat import Attempt, ActivityShield, boot_time
from baton.application.conduct.ledger import Ledger, StoredRow
from baton.application.conduct.step_effects import StepEffects
from baton.application.conduct.step_execution import StepExecution, out_of_turn
from baton.application.conduct.submitters import Submitters
from baton.application.ports import Clock
from baton.domain.operation.conduct.messages import NextStep, StepPlace, StepReport, describe_step
from baton.domain.operation.procedure.activity_logbook import StepKind
from baton.domain.operation.steering.steering import Point
from baton.domain.recipe.steps import RecipeStep


@dataclass(frozen=True)
class Limits:
    """How long things may take, in seconds."""

    action: float
    compute: float
    restart: float


@dataclass(frozen=True)
class Worker:
    """Who does steps: its name, and how to tell of another whether it is dead for certain."""

    name: str
    is_dead: Callable[[str], bool]


class StepRunner:
    """Does the steps of conducts."""

    def __init__(
        self,
        ledger: Ledger,
        effects: StepEffects,
        compute: Compute,
        clock: Clock,
        limits: Limits,
        worker: Worker,
        submitters: Submitters,
        silence_clock: Callable[[], float] = boot_time,
    ) -> None:
        self.ledger = ledger
        self.effects = effects
        self.compute = compute
        self.clock = clock
        self.limits = limits
        self.worker = worker
        self.submitters = submitters
        self.silence_clock = silence_clock
        """What the silence of a step is measured by; it counts while the machine is suspended, too."""
        self._perseverance = ActivityShield()
        self.at_work: Counter[UUID] = Counter()
        """The `in_flight` rows whose effects are being had here, or will be as soon as the row is known to be written."""

    def is_over(self, marker: StoredRow) -> bool:
        """Whether nobody can be at work any more on what this row says was begun."""
        by = marker.payload["worker"]
        return marker.event_id not in self.at_work if by == self.worker.name else self.worker.is_dead(by)

    def leave(self, marker: UUID) -> None:
        """Be at work no more on what this row says was begun; another try may be."""
        self.at_work[marker] -= 1
        if not self.at_work[marker]:
            del self.at_work[marker]

    def ahead(self, step: RecipeStep | None) -> NextStep | None:
        """What there is to know of a step before it begins."""
        return None if step is None else describe_step(step, self.limits.action, self.limits.compute)

    async def do(self, score: ConductPlan, place: StepPlace, point: Point, deadline: datetime | None, attempt: Attempt) -> StepReport:
        """Do one step of a pass at this point; a program is only submitted. Where there is no such step, nothing is done."""
        if not score.has(place):
            return out_of_turn(place)
        doing = StepExecution(self, score, place, point, attempt)
        work = doing.submit() if doing.kind is StepKind.COMPUTE else doing.do(deadline)
        return await self._perseverance.see_through(work, attempt)

    async def collect(self, score: ConductPlan, place: StepPlace, point: Point, job_id: str, attempt: Attempt) -> StepReport:
        """Wait for a program that was submitted, and deposit what it brings."""
        if not score.has(place) or score.step(place).kind != StepKind.COMPUTE.value:
            return out_of_turn(place)
        work = StepExecution(self, score, place, point, attempt).collect(job_id)
        return await self._perseverance.see_through(work, attempt)

    async def close(self) -> None:
        """Stop what still goes on although nobody waits for it."""
        await self._perseverance.close()
