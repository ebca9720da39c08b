"""Armed work: the queues and schedules that start something by themselves, everywhere or on some assets."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from uuid import UUID

from baton.domain.procedure.touched import load_written_signals
from baton.domain.queue import queue as queues
from baton.domain.queue.queue import ASSET_QUEUES, Queue
from baton.domain.recipe.plan import Plan
from baton.domain.recipe.recipe import Recipe
from baton.domain.recipe.steps import RecipeActionStep, binding_names
from baton.domain.schedule import schedule as schedules
from baton.domain.schedule.schedule import Schedule, ScheduleEngineState
from baton.domain.shared.reads import Reads, all_holders_of, find_all, records_of
from baton.domain.target.targets import ConductPlan, ConductRecipe, recipes_of

Armed = Queue | Schedule
Targets = tuple[ConductRecipe | ConductPlan, ...]
Touched = Mapping[UUID, AbstractSet[UUID] | None]  # The assets that a recipe or a plan works on; None where nobody can tell.


def load_armed_work(asset_ids: AbstractSet[UUID] | None) -> Reads[tuple[Armed, ...]]:
    """Return the queues and schedules that are not retired, oldest first, or those that may touch one of these assets."""
    found_queues = yield from find_all(Queue, (yield from all_holders_of(ASSET_QUEUES)))
    rows = yield from records_of(ScheduleEngineState, removed=False)
    found_schedules = yield from find_all(Schedule, (row.schedule_id for row in rows))
    found: list[Armed] = [one for one in found_queues.values() if one.status is not queues.RETIRED]
    found += (one for one in found_schedules.values() if one.status is not schedules.RETIRED)
    if asset_ids is not None:
        targets = {one.id: targets_of(one) for one in found}
        touched = yield from load_touched(target for some in targets.values() for target in some)
        found = [one for one in found if may_touch(one, targets[one.id], touched, asset_ids)]
    return tuple(sorted(found, key=lambda one: (one.created_at, one.id)))


def is_armed(work: Armed) -> bool:
    """Return whether it starts something by itself as it is now."""
    return work.status is (queues.ACTIVE if isinstance(work, Queue) else schedules.ACTIVE)


def targets_of(work: Armed) -> Targets:
    """Return everything that a queue or a schedule would start."""
    return tuple(item.aim for item in work.items_left) if isinstance(work, Queue) else (work.aim,)


def load_touched(targets: Iterable[ConductRecipe | ConductPlan]) -> Reads[Touched]:
    """Load the assets that the recipes and plans of these targets work on: what a plan binds, and whose signals a recipe
    writes. Nobody can tell where one is gone, writes what no asset owns, or has an action whose parameters are not known."""
    wanted = tuple(targets)
    recipe_ids = {one.recipe_id for target in wanted for one in recipes_of(target)}
    plan_ids = {target.plan_id for target in wanted if isinstance(target, ConductPlan)}
    plans = yield from find_all(Plan, sorted(plan_ids))
    touched: dict[UUID, AbstractSet[UUID] | None] = {id: one.asset_ids for id, one in plans.items()}
    for id, recipe in (yield from find_all(Recipe, sorted(recipe_ids))).items():
        steps = (*recipe.steps, *recipe.closing_steps)
        signals = yield from load_written_signals(steps)
        bound_later = any(isinstance(step, RecipeActionStep) and any(binding_names((step,))) for step in steps)
        touched[id] = None if signals.unowned_addresses or bound_later else signals.owner_ids
    return touched


def may_touch(work: Armed, targets: Targets, touched: Touched, asset_ids: AbstractSet[UUID]) -> bool:
    """Return whether work that could start may touch one of these assets; an empty queue is on the asset that has it."""
    if isinstance(work, Queue) and not targets:
        return work.asset_id in asset_ids
    for target in targets:
        parts = [touched.get(one.recipe_id) for one in recipes_of(target)]
        parts += [one.target_asset_ids for one in recipes_of(target)]
        parts += [touched.get(target.plan_id)] if isinstance(target, ConductPlan) else []
        if any(part is None or not asset_ids.isdisjoint(part) for part in parts):
            return True
    return False
