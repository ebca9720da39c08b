"""The forecast of a queue: which gates would refuse its first items now, and when they would start and end."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from baton.domain.conduct.conduct import ConductProcedure
from baton.domain.conduct.estimates import StepDuration
from baton.domain.conduct.rehearsal import RehearsalBasis, RehearsalsBusyError
from baton.domain.equipment.asset import EnterAssetMaintenance
from baton.domain.queue.forecast import FORECAST, ItemForecast, judge_item
from baton.domain.queue.queue import HoldQueue, RemoveQueueItem
from baton.domain.queue.views import GetQueue, ListQueueItems, QueueView
from baton.domain.recipe.recipe import DeprecateRecipe
from baton.domain.views.beamline_now import GetBeamlineNow
from tests.support.domain.assets import run_reads
from tests.support.domain.conducts import STEPS, open_conduct, register_procedure
from tests.support.domain.queues import add_items, item_of, open_queue, queue_of, start_item
from tests.support.domain.run_beamline import Beamline, beamline
from tests.support.domain.schedules import darks, recipe, series
from tests.support.domain.world import START, World
from tests.support.tables import for_each
from tests.support.workflows.step_json import check, setpoint

BEGUN = START + timedelta(hours=2)
SECONDS = StepDuration(count=3, median=10.0, p90=12.0)


def queue_at(line: Beamline) -> UUID:
    return open_queue(line.world, asset_id=line.hutch.beamline)


def add_survey(line: Beamline, id: UUID, **fields: Any) -> UUID:
    own = {name: line.request[name] for name in ("subject_id", "campaign_id")}
    (item_id,) = add_items(line.world, id, "survey", target=series(line.plan_id, recipe(line.world), **own), **fields)
    return item_id


def forecast_of(world: World, id: UUID) -> tuple[ItemForecast, ...]:
    view: QueueView = world.ask(GetQueue(), on=id)
    return view.forecast


PASSING = {
    "clearance_present",
    "clearance_active",
    "supply_present",
    "supply_available",
    "enclosure_permitted",
    "subject_mounted",
    "families_covered",
    "wires_connected",
    "roles_played",
}


@for_each("gate", [*sorted(PASSING), "plan_current", "assets_in_service", "campaign_open"])
def test_a_plan_is_judged_by_the_gates_of_its_run(gate: str) -> None:
    line = beamline(gate)
    id = queue_at(line)
    add_survey(line, id)
    (forecast,) = forecast_of(line.world, id)
    closed = {one.gate: one.may_pass for one in forecast.closed_gates}
    assert gate in closed
    assert closed[gate] is (gate in PASSING)
    assert forecast.expected_start is None


def test_nothing_is_closed_on_a_beamline_that_is_ready() -> None:
    line = beamline()
    id = queue_at(line)
    add_survey(line, id)
    add_items(line.world, id, "darks", target=darks(recipe(line.world), target_asset_ids=[line.hutch.camera]))
    first, second = forecast_of(line.world, id)
    assert (first.closed_gates, second.closed_gates) == ((), ())
    assert first.expected_start == line.world.now
    assert (first.expected_end, second.expected_start) == (None, None), "nobody knows how long the steps take"


def test_a_recipe_is_judged_by_the_gates_of_a_procedure_on_its_targets() -> None:
    line = beamline("enclosure_permitted")
    id = queue_at(line)
    line.world.when(EnterAssetMaintenance(), on=line.hutch.camera)
    add_items(line.world, id, "darks", target=darks(recipe(line.world), target_asset_ids=[line.hutch.camera]))
    (forecast,) = forecast_of(line.world, id)
    assert [(one.gate, one.may_pass) for one in forecast.closed_gates] == [
        ("assets_ready", True),
        ("enclosures_permitted", True),
    ]


def test_a_recipe_that_is_deprecated_would_be_refused() -> None:
    line = beamline()
    id = queue_at(line)
    recipe_id = recipe(line.world)
    add_items(line.world, id, "darks", target=darks(recipe_id))
    add_survey(line, id)
    line.world.when(DeprecateRecipe(reason="superseded"), on=recipe_id)
    first, second = forecast_of(line.world, id)
    (gate,) = first.closed_gates
    assert (gate.gate, gate.code, gate.may_pass) == ("steps_prepared", "ProcedureBoundRecipeDeprecatedError", False)
    assert second.closed_gates == ()


def test_an_asset_that_another_conduct_has_blocks_a_recipe_and_a_plan() -> None:
    line = beamline()
    id = queue_at(line)
    add_items(line.world, id, "darks", target=darks(recipe(line.world), target_asset_ids=[line.hutch.camera]))
    add_survey(line, id)
    rival = register_procedure(line.world, target_asset_ids=[line.hutch.camera])
    open_conduct(line.world, ConductProcedure(steps=STEPS), on=rival)
    for forecast in forecast_of(line.world, id):
        (gate,) = forecast.closed_gates
        assert (gate.gate, gate.reason, gate.may_pass) == ("targets_unclaimed", "asset_in_use", True)


def test_what_the_running_item_has_is_free_in_the_turn_of_the_next() -> None:
    line = beamline()
    id = queue_at(line)
    target = darks(recipe(line.world), target_asset_ids=[line.hutch.camera])
    first, _ = add_items(line.world, id, "a", "b", target=target)
    start_item(line.world, id, first)
    running = item_of(line.world, id, first)
    assert running.procedure_id is not None
    registration = running.aim.registration()  # type: ignore[union-attr]
    line.world.when(registration, opening=running.procedure_id)
    open_conduct(line.world, ConductProcedure(), on=running.procedure_id)
    (forecast,) = forecast_of(line.world, id)
    assert forecast.closed_gates == ()


def test_a_refusal_that_does_not_pass_counts_before_one_that_may() -> None:
    line = beamline("clearance_active", "plan_current")
    id = queue_at(line)
    item_id = add_survey(line, id)
    judgement = judge(line.world, id, item_id)
    assert judgement.refusal.code == "RunBoundPlanDeprecatedError"
    assert [one.passing for one in judgement.report.refusals] == [True, False]


def judge(world: World, id: UUID, item_id: UUID) -> Any:
    assert world.call is not None
    return run_reads(world, judge_item(item_of(world, id, item_id), queue_of(world, id).running, world.call))


def hold(line: Beamline, id: UUID) -> None:
    line.world.when(HoldQueue(reason="wait"), on=id)


@for_each(
    ("change", "fields", "starts"),
    [
        (None, {}, [0, 30]),
        (None, {"not_before": BEGUN + timedelta(hours=1)}, [3600, 3630]),
        (None, {"pause_after": True}, [0, None]),
        (hold, {}, [None, None]),
    ],
)
def test_items_follow_one_another_by_how_long_their_steps_took_before(
    change: Callable[[Beamline, UUID], None] | None, fields: dict[str, Any], starts: list[int | None]
) -> None:
    line = beamline()
    world, id = line.world, queue_at(line)
    world.ports["step_durations"] = lambda keys: dict.fromkeys(keys, SECONDS)
    target = darks(recipe(world))
    add_items(world, id, "a", target=target, **fields)
    add_items(world, id, "b", target=target)
    if change is not None:
        change(line, id)
    world.now = BEGUN
    first, second = forecast_of(world, id)
    assert first.estimate is not None
    assert first.estimate.remaining_seconds == 30.0, "two steps and a closing step, ten seconds each"
    expected = [None if at is None else BEGUN + timedelta(seconds=at) for at in starts]
    assert [first.expected_start, second.expected_start] == expected
    assert first.expected_end == (None if expected[0] is None else expected[0] + timedelta(seconds=30))


def test_every_item_that_has_not_ended_says_how_long_it_takes() -> None:
    line = beamline()
    world, id = line.world, queue_at(line)
    world.ports["step_durations"] = lambda keys: dict.fromkeys(keys, SECONDS)
    gone, *_ = (add_items(world, id, title, target=darks(recipe(world)))[0] for title in "abcdefgh")
    world.when(RemoveQueueItem(item_id=gone, reason="no beam"), on=id)
    items = world.ask(ListQueueItems(), on=id).items
    assert [one.estimate and one.estimate.remaining_seconds for one in items] == [None, *[30.0] * 7]
    known = [one.estimate is not None for one in world.ask(GetQueue(), on=id).items]
    assert known == [*[True] * FORECAST, False, False], "those that have a forecast"


def test_the_overview_of_a_beamline_has_its_queue_with_the_gate_that_keeps_the_next_item() -> None:
    line = beamline()
    assert queue_in_overview(line) is None
    id = queue_at(line)
    hold(line, id)
    assert queue_in_overview(line).next is None
    add_items(line.world, id, "darks", target=darks(recipe(line.world), target_asset_ids=[line.hutch.camera]))
    add_survey(line, id)
    line.world.when(EnterAssetMaintenance(), on=line.hutch.camera)
    shown = queue_in_overview(line)
    assert (shown.queue_id, shown.status, shown.waiting_count, shown.running) == (id, "Held", 2, None)
    assert (shown.next.title, shown.closed_gates[0].code) == ("darks", "ProcedureAssetNotReadyError")


def queue_in_overview(line: Beamline) -> Any:
    return line.world.ask(GetBeamlineNow(), on=line.hutch.beamline).queue


def test_an_item_says_where_it_may_stop_on_the_twin_that_those_before_it_leave() -> None:
    line = beamline()
    world, id = line.world, queue_at(line)
    steps = {"sets": [setpoint("bl7:x", 1.0)], "checks": [check("bl7:x", 1.0)], "fails": [check("bl7:x", 2.0)]}
    for title, listed in steps.items():
        add_items(world, id, title, target=darks(recipe(world, listed)))
    stops = [one.may_stop_at for one in forecast_of(world, id)]
    assert stops[:2] == [None, None]
    assert stops[2] is not None
    assert "It stops at step 0 of Darks" in stops[2]


def test_a_forecast_does_without_a_rehearsal_that_others_hold_off() -> None:
    line = beamline()
    id = queue_at(line)
    add_items(line.world, id, "fails", target=darks(recipe(line.world, [setpoint("bl7:x", 1.0), check("bl7:x", 2.0)])))

    def refuse(basis: RehearsalBasis) -> None:
        raise RehearsalsBusyError("Others are under way.")

    line.world.ports["rehearse"] = refuse
    assert [one.may_stop_at for one in forecast_of(line.world, id)] == [None]
