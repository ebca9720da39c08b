"""Schedules on a conduct stack: what they conduct, how they are made to fire, and what is recorded of it."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from temporalio.client import ScheduleHandle, WorkflowExecutionStatus

from baton.application.caller import Caller
from baton.application.schedules.firings import Firings
from baton.application.schedules.schedule_reconciliation import PREFIX
from baton.application.unit_of_work import decode_event
from baton.domain.access.actor import RegisterActor
from baton.domain.kernel import SYSTEM_CONDUIT, Command, Event
from baton.domain.launch.launch_ids import LaunchIds
from baton.domain.procedure.procedure import Procedure
from baton.domain.recipe.capability import CODE_PREFIX, DefineCapability, ExecutorShape
from baton.domain.recipe.recipe import DefineRecipe
from baton.domain.run.run import Run
from baton.domain.schedule.schedule import DefineSchedule, Schedule, ScheduleFired, ScheduleFiringRefused, ScheduleTriggered
from baton.domain.schedule.views import GetSchedule, ScheduleView
from baton.domain.target.targets import ConductPlan, ConductRecipe, recipes_of
from baton.domain.trust.policy import DefinePolicy
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.wall_clock import new_id
from tests.support.domain.lifecycle_table import command
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import ConductStack

SELDOM = {"cron": ["0 3 1 1 *"]}
"""A calendar that does not fire while anybody looks."""


@dataclass(frozen=True)
class ScheduleCase:
    """A schedule that was defined, and the engine's calendar of it."""

    stack: ConductStack
    id: UUID

    @property
    def handle(self) -> ScheduleHandle:
        return self.stack.client.get_schedule_handle(f"{PREFIX}{self.id}")

    async def give(self, verb: str, **fields: Any) -> None:
        """Give a command to the schedule, and let the engine know of it."""
        await self.stack.do(command(verb, fields), self.id)
        await self.reconcile()

    async def reconcile(self) -> None:
        await self.stack.runtime.schedule_reconciler.reconcile_changed()
        await self.stack.runtime.schedule_reconciler.reconcile(self.id)

    async def fire_now(self) -> None:
        """Have the engine fire now, as if the calendar said so."""
        await self.handle.trigger()

    async def trigger(self) -> str:
        """Trigger the schedule as people do, and answer the workflow that is started for it."""
        await self.stack.do(command("trigger_schedule", {}), self.id)
        async with self.stack.runtime.store.session() as session:
            rows = await session.history(Schedule.__name__, self.id, 0, 1000)
        event = [row for row in rows if row.event_type == ScheduleTriggered.__name__][-1]
        (job,) = await self.stack.runtime.works.of(Firings).jobs(event)
        assert await self.stack.runtime.engine.start(job)
        assert not await self.stack.runtime.engine.start(job), "it is started once"
        return job.id

    async def state(self) -> Schedule:
        return await load_state(self.stack, Schedule, self.id)

    async def events(self) -> list[Event]:
        async with self.stack.runtime.store.session() as session:
            rows = await session.load_of(Schedule.__name__, (self.id,), list(Schedule.aggregate.events))
        return [decode_event(Schedule.aggregate, row) for row in rows]

    async def outcomes(self, count: int) -> list[Any]:
        """What became of the firings, once there are so many."""

        async def recorded_outcomes() -> list[Event] | None:
            found = [one for one in await self.events() if isinstance(one, ScheduleFired | ScheduleFiringRefused)]
            return found if len(found) >= count else None

        found: list[Any] = await until(recorded_outcomes)
        return found

    async def view(self) -> ScheduleView:
        view: ScheduleView = await self.stack.ask(GetSchedule(), self.id)
        return view

    async def engine_view(self) -> Any:
        return await self.handle.describe()

    async def has_postponed(self, count: int) -> bool:
        """Tell whether the engine has skipped or buffered so many firings."""
        described = await self.engine_view()
        return bool(described.info.num_actions_skipped_overlap + described.raw_description.info.buffer_size == count)

    async def firings(self) -> list[Any]:
        """The workflows that the engine started by the calendar, oldest first."""
        return [action.action.workflow_id for action in (await self.engine_view()).info.recent_actions]

    async def wait_for_end(self, workflow_id: str) -> Any:
        """How the workflow of a firing ended."""
        return await self.stack.client.get_workflow_handle(workflow_id).result()


async def half_begin(
    stack: ConductStack, ids: LaunchIds, target: ConductRecipe | ConductPlan, commands: int, caller: Caller | None = None
) -> None:
    """Do the first few things of a launch by commands of their own, as releases before launches did."""
    run_id = ids.run_id if isinstance(target, ConductPlan) else None
    given: list[tuple[Command, UUID]] = [] if run_id is None else [(target.start(), run_id)]  # type: ignore[union-attr]
    aims = recipes_of(target)
    given += [(one.registration(run_id), id) for one, id in zip(aims, ids.former_procedure_ids(len(aims)), strict=True)]
    for made, id in given[:commands]:
        await stack.runtime.commands.execute(made, caller or stack.caller, new_id=id)


async def load_state(stack: ConductStack, state: type[Any], id: UUID) -> Any:
    """What is on record under this id; None where nothing is."""
    async with stack.runtime.store.session() as session:
        rows = await session.load(state.__name__, [id])
    return state.aggregate.replay(rows)


async def wait_for_procedure(stack: ConductStack, id: UUID, status: str) -> Procedure:
    async def reached_state() -> Any:
        found = await load_state(stack, Procedure, id)
        return found if found is not None and found.status == status else None

    procedure: Procedure = await until(reached_state)
    return procedure


async def wait_for_run(stack: ConductStack, id: UUID, status: str) -> Run:
    async def reached_state() -> Any:
        found = await load_state(stack, Run, id)
        return found if found is not None and found.status == status else None

    run: Run = await until(reached_state)
    return run


async def recipe(stack: ConductStack, steps: Sequence[Any], closing_steps: Sequence[Any] = (), **fields: Any) -> UUID:
    """A recipe of these steps."""
    shapes = frozenset({ExecutorShape.PROCEDURE})
    contract = {"code": f"{CODE_PREFIX}{new_id()}", "name": "Task", "required_affordances": frozenset(), **fields}
    capability = await stack.do(DefineCapability(**contract, executor_shapes=shapes))
    asked = {"name": "steps", "capability_id": (capability.body or {})["capability_id"]}
    made = await stack.do(DefineRecipe(**asked, steps=tuple(steps), closing_steps=tuple(closing_steps)))
    return UUID((made.body or {})["recipe_id"])


async def register_member(stack: ConductStack, may: Iterable[str]) -> tuple[Caller, UUID]:
    """Register an actor with these permissions; return it as a caller, and its policy."""
    id = UUID((await stack.do(RegisterActor(name="Mira Okafor"))).body["actor_id"])
    grant = {"conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP, "permitted_principal_ids": [id]}
    policy = await stack.do(DefinePolicy(name="Crew", **grant, permitted_commands=sorted(may)))
    return Caller(id, SYSTEM_HTTP, new_id()), UUID(policy.body["policy_id"])


def darks_target(recipe_id: UUID, **fields: Any) -> dict[str, Any]:
    return {"kind": "ConductRecipe", "recipe_id": recipe_id, "name": "Darks {fired_at} no. {count}", **fields}


async def define_schedule(
    stack: ConductStack, target: dict[str, Any], caller: Caller | None = None, **fields: Any
) -> ScheduleCase:
    """A schedule of which the engine knows."""
    asked = DefineSchedule(**{"name": "Nightly darks", "calendar": SELDOM, "target": target, **fields})
    made = await stack.runtime.service.execute(asked, caller or stack.caller)
    table = ScheduleCase(stack, UUID((made.body or {})["schedule_id"]))
    await table.reconcile()
    return table


@asynccontextmanager
async def swept_engine(stack: ConductStack) -> AsyncIterator[None]:
    """Leave nothing in the engine that would fire after the block, or still goes on."""
    try:
        yield
    finally:
        runtime = stack.runtime
        async with runtime.pool.connection() as connection:
            rows = await (await connection.execute("SELECT schedule_id FROM schedule_standings")).fetchall()
        for (id,) in rows:
            await runtime.calendars.remove(f"{PREFIX}{id}")
        async for found in stack.client.list_workflows("WorkflowType = 'schedule-firing'"):
            if found.status is WorkflowExecutionStatus.RUNNING:
                await stack.client.get_workflow_handle(found.id).terminate()
