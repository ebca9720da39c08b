"""Plans started and recipes conducted by the client, and their conducts watched to the end."""

import asyncio
import io
from collections.abc import AsyncIterator
from html import escape
from typing import Any
from uuid import UUID, uuid4

import pytest
from rich.console import Console

from baton.client import AsyncBaton, Baton
from baton.client.launching import RecipeChoiceError
from baton.client.operations import (
    AsyncRunThing,
    ConductView,
    EndFrame,
    LaunchAccepted,
    RunConductResult,
    RunConductView,
    StepFrame,
)
from baton.client.refusals import Refusal
from baton.client.watching import NothingToWatchError
from tests.client.program import BuiltBeamline, look_around, scan
from tests.support.api.launches import PLAN_LAUNCH, RECIPE_LAUNCH
from tests.support.waiting import until
from tests.support.workflows.conduct_service import PAUSE, ConductService
from tests.support.workflows.step_json import capture, setpoint


@pytest.fixture(scope="module")
async def client(listing_service: ConductService) -> AsyncIterator[AsyncBaton]:
    async with AsyncBaton(listing_service.api.base_url) as client:
        yield client


async def define_plan(client: AsyncBaton, built: BuiltBeamline, *recipes: list[Any]) -> tuple[str, list[str]]:
    """Define a plan with a capability of its own, and recipes of these steps for it; return the names."""
    mark = uuid4().hex[:8]
    capability = await client.define_capability(
        code=f"baton.capability.own_{mark}", name=mark, required_affordances=[], executor_shapes=["METHOD", "PROCEDURE"]
    )
    method = await client.define_method(name=f"Method {mark}", capability_id=capability.capability_id, needed_supplies=[])
    facility = await anext(client.facilities.list(code="facility"))
    practice = await client.define_practice(name=f"Practice {mark}", method_id=method.method_id, site_id=facility.reference)
    await client.define_plan(name=f"Plan {mark}", practice_id=practice.practice_id, asset_ids=[built.stage_id])
    names = [f"Recipe {number} {mark}" for number, _ in enumerate(recipes)]
    for name, steps in zip(names, recipes, strict=True):
        await client.define_recipe(name=name, capability_id=capability.capability_id, steps=steps)
    return f"Plan {mark}", names


async def count_runs(client: AsyncBaton, plan: str) -> int:
    return len([run async for run in client.runs.list(plan_id=plan)])


async def test_the_program_runs(client: AsyncBaton, listing_service: ConductService, built: BuiltBeamline) -> None:
    def run() -> bool:
        with Baton(listing_service.api.base_url) as baton:
            return scan(baton, built).succeeded

    assert await asyncio.to_thread(run)
    assert len(await look_around(client, built)) == 2


async def test_the_frames_of_a_run_are_typed_and_come_in_order(client: AsyncBaton, built: BuiltBeamline) -> None:
    plan, _ = await define_plan(client, built, [setpoint("a", 1), setpoint("a", 2)])
    run = await client.plans[plan].start(name="Watched")
    frames = [frame async for frame in run.watch()]
    assert isinstance(frames[0], RunConductView)
    steps = [(frame.step_index, frame.state) for frame in frames if isinstance(frame, StepFrame)]
    assert steps == sorted(set(steps), key=steps.index), "each once"
    assert steps[-1] == (1, "ok")
    assert [type(frame) for frame in frames if isinstance(frame, EndFrame)] == [EndFrame]
    last = frames[-1]
    assert isinstance(last, RunConductView)
    assert last.result is not None
    assert last.result.succeeded
    assert (await run.get()).name == "Watched"


async def test_several_recipes_are_refused_with_the_candidates_and_nothing_starts(
    client: AsyncBaton, built: BuiltBeamline
) -> None:
    plan, names = await define_plan(client, built, [setpoint("a", 1)], [setpoint("a", 2)])
    with pytest.raises(RecipeChoiceError, match=f"2 recipes realise what the plan {plan} is for; name those") as refused:
        await client.plans[plan].start()
    assert sorted(refused.value.candidates.values()) == names
    assert await count_runs(client, plan) == 0


async def test_recipes_are_conducted_in_the_order_that_was_chosen(client: AsyncBaton, built: BuiltBeamline) -> None:
    plan, (first, second) = await define_plan(client, built, [setpoint("a", 1)], [setpoint("a", 2)])
    run = await client.plans[plan].start(recipes=[second, first])
    result = await run.watch().result()
    assert result.succeeded
    phases = [(await client.get_procedure(phase.procedure_id)).name for phase in result.phases]
    assert phases == [second, first]


async def test_a_plan_without_recipes_is_refused(client: AsyncBaton, built: BuiltBeamline) -> None:
    plan, _ = await define_plan(client, built)
    with pytest.raises(RecipeChoiceError, match="No recipe realises what the plan"):
        await client.plans[plan].start()
    assert await count_runs(client, plan) == 0


async def test_a_plan_whose_phase_is_refused_is_not_started(client: AsyncBaton, built: BuiltBeamline) -> None:
    plan, _ = await define_plan(client, built, [setpoint("a", 1)])
    with pytest.raises(Refusal) as refused:
        await client.plans[plan].start(recipes=[built.recipe])  # its binding is no parameter of this plan
    assert refused.value.code == "UnboundRecipeBindingError"
    assert await count_runs(client, plan) == 0


async def test_a_start_can_be_asked_for_and_tried_without_starting(client: AsyncBaton, built: BuiltBeamline) -> None:
    before = await count_runs(client, built.plan)
    verdict = await client.plans[built.plan].preflight(exposure=0.02)
    assert verdict.effective_parameters == {"exposure": 0.02}
    rehearsed = await client.plans[built.plan].rehearse(exposure=0.02)
    assert (rehearsed.walked_count > 0, len(rehearsed.phases)) == (True, 1)
    assert rehearsed._repr_html_().startswith(f"<p>{escape(rehearsed.message)}</p>")
    would = await client.plans[built.plan].start(exposure=0.02, dry_run=True)
    assert [one.event_type for one in would.would] == PLAN_LAUNCH
    assert await count_runs(client, built.plan) == before


async def test_a_launch_that_is_waited_for_answers_with_the_result_of_its_conduct(
    client: AsyncBaton, built: BuiltBeamline
) -> None:
    plan, _ = await define_plan(client, built, [setpoint("a", 1)])
    done = await client.launch(plan_id=plan, wait=60)
    assert isinstance(done, RunConductResult)
    assert (done.succeeded, [phase.succeeded for phase in done.phases]) == (True, [True])
    launched = await client.launch(plan_id=plan)
    assert isinstance(launched, LaunchAccepted)
    ended = await client.runs[launched.run_id].watch().result()
    assert ended.succeeded
    view = await client.get_launch(launched.launch_id)
    assert (view.run_id, view.status, view.outcome) == (launched.run_id, "Ended", "Completed")


async def test_a_recipe_is_conducted_on_an_asset(client: AsyncBaton, built: BuiltBeamline) -> None:
    stage = (await client.get_asset(built.stage_id)).name
    procedure = await client.recipes[built.recipe].conduct(on=stage, exposure=0.5)
    frames = [frame async for frame in procedure.watch()]
    assert isinstance(frames[0], ConductView)
    assert isinstance(frames[-1], EndFrame)
    assert frames[-1].result.succeeded
    assert frames[-1].result.substrate_writes["a"] == 0.5
    would = await client.recipes[built.recipe].conduct(on=[stage], exposure=0.5, dry_run=True)
    assert [one.event_type for one in would.would] == RECIPE_LAUNCH


async def test_a_run_that_ended_without_a_conduct_is_nothing_to_watch(client: AsyncBaton, built: BuiltBeamline) -> None:
    with pytest.raises(NothingToWatchError, match="The run is Completed and was never conducted"):
        await client.runs[built.run_id].watch().result()


def terminal() -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, force_terminal=True, width=120, color_system=None), written


async def begin_paused_run(client: AsyncBaton, built: BuiltBeamline) -> AsyncRunThing:
    plan, (first, second) = await define_plan(client, built, [setpoint("a", 1)], [setpoint("a", 2), PAUSE, setpoint("a", 3)])
    return await client.plans[plan].start(recipes=[first, second])


async def test_a_run_that_is_held_while_it_is_watched_is_shown_to_its_end(
    client: AsyncBaton, listing_service: ConductService, built: BuiltBeamline
) -> None:
    run = await begin_paused_run(client, built)
    await listing_service.pauses.wait_until_reached()
    console, written = terminal()
    url, run_id = listing_service.api.base_url, run.reference
    assert isinstance(run_id, UUID)

    def watch() -> list[Any]:
        with Baton(url) as baton:
            return list(baton.runs[run_id].watch(console=console))

    watching = asyncio.create_task(asyncio.to_thread(watch))
    await until(lambda: "phase 2 of 2 · step 2 of 3, action pause" in written.getvalue())
    await run.hold(reason="lunch")
    listing_service.pauses.end()
    await until(lambda: "waiting for its run to be resumed" in written.getvalue())
    await run.resume()
    frames = await watching
    conducts = {frame.conduct_id for frame in frames if isinstance(frame, ConductView | EndFrame)}
    assert len(conducts) == 1, "the phase that was over when it was looked at is not told again"
    assert frames[-1].result.succeeded
    assert written.getvalue().endswith("\x1b[2K"), "the bar is wiped away"


async def test_a_run_that_is_stopped_while_it_is_watched_ends_the_watch(
    client: AsyncBaton, listing_service: ConductService, built: BuiltBeamline
) -> None:
    run = await begin_paused_run(client, built)
    await listing_service.pauses.wait_until_reached()
    watch = run.watch()
    watching = asyncio.create_task(watch.result())
    await until(lambda: watch.work.count)
    await run.abort(reason="fire drill")
    listing_service.pauses.end()
    result = await watching
    assert not result.succeeded
    assert next(watch.work.result_lines()).startswith("failed after 0:00:0")


async def test_the_feed_is_followed_from_a_position(client: AsyncBaton, built: BuiltBeamline) -> None:
    events = client.follow_events(stream_type=["Run"], after=0)
    assert (await anext(events)).event_type == "RunStarted"
    await events.aclose()  # type: ignore[attr-defined]


async def test_the_points_of_a_procedure_are_rows(client: AsyncBaton, listing_service: ConductService) -> None:
    steps = [step for n in range(3) for step in (setpoint("a", n), capture("a", f"height_{n}"))]
    procedure_id, conduct_id = await listing_service.start_conduct(*steps)
    await listing_service.result(conduct_id)
    points = await client.procedures[procedure_id].points()
    assert [(one["a"], one["height"], one["step"]) for one in points] == [(0, 0, 1), (1, 1, 3), (2, 2, 5)]


@pytest.mark.parametrize("terminal", [True, False])
async def test_points_are_drawn_in_a_terminal_and_are_rows_elsewhere(
    client: AsyncBaton, listing_service: ConductService, terminal: bool
) -> None:
    steps = [step for n in range(4) for step in (setpoint("a", n), capture("a", f"height_{n}"))]
    procedure_id, _ = await listing_service.start_conduct(*steps[:4], PAUSE, *steps[4:])
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=terminal, force_interactive=terminal, width=120, color_system=None)
    await listing_service.pauses.wait_until_reached()
    watching = client.procedures[procedure_id].watch(console=console, lines=True, plot="a:height")
    listing_service.pauses.end()
    await watching.result()
    assert [point.axes["a"] for point in watching.work.points.values()] == [0, 1, 2, 3], "also what was over before"
    if terminal:
        assert "height 0 to 3" in shown.getvalue()
        assert "\u2800" in shown.getvalue()
    else:
        assert "a 3  height 3" in shown.getvalue()
