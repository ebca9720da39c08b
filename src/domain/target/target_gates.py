"""The gates of a target: which of them would refuse its start now, what it touches, and the steps that it would register."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from baton.domain.conduct.estimates import UNLIMITED, ConductWalk, walk_of
from baton.domain.equipment.asset_tree import asset_scope
from baton.domain.kernel import Call
from baton.domain.procedure.procedure import MODES
from baton.domain.procedure.touched import load_written_signals, refuse_out_of_limits, refuse_unowned
from baton.domain.recipe.capability import Capability
from baton.domain.recipe.expansion import Expansion, expansion_of
from baton.domain.recipe.recipe import Recipe
from baton.domain.recipe.step_actions import action_names, check_actions, load_actions
from baton.domain.run.gates import Preconditions, load_preconditions
from baton.domain.shared.gates import GateReport
from baton.domain.shared.reads import Reads, require, run_in_thread
from baton.domain.shared.refusals import Refusal
from baton.domain.start import procedure_start, run_start
from baton.domain.step.programs import allowed_programs, check_programs
from baton.domain.target.targets import ConductPlan, ConductRecipe, RecipeConduct

RUN, PHASE = ("start_run",), ("conduct_procedure",)  # The commands that the gates are asked for.
Expansions = list[tuple[RecipeConduct, Expansion | None]]  # What a target registers, each with its steps where they fit.


class AskedTarget(NamedTuple):
    """A target whose gates were asked: the facts that they judge, the assets that it touches, and what it registers."""

    facts: Preconditions | None  # None where what it refers to cannot be loaded.
    asset_ids: frozenset[UUID]
    expansions: Expansions


def ask_plan(report: GateReport, target: ConductPlan, call: Call) -> Reads[AskedTarget]:
    """Ask the gates of starting a run with its phases."""
    start = yield from report.ask_reads("references_found", RUN, run_start.load_start(target.start(), call))
    if start is None:
        return AskedTarget(None, frozenset(), [])
    report.ask_all(run_start.GATES, RUN, start)
    try:
        parameters: Mapping[str, object] = run_start.effective_parameters(start)
    except Refusal:
        return AskedTarget(start, start.plan.asset_ids, [])
    asset_ids, expansions = start.plan.asset_ids, Expansions()
    for phase in target.phases:
        steps = yield from report.ask_reads("steps_prepared", PHASE, expand(phase, parameters))
        signals = yield from load_written_signals(() if steps is None else (*steps.steps, *steps.closing_steps))
        asset_ids |= phase.target_asset_ids | signals.owner_ids
        expansions.append((phase, steps))
    return AskedTarget(start, asset_ids, expansions)


def ask_recipe(report: GateReport, target: ConductRecipe, call: Call) -> Reads[AskedTarget]:
    """Ask the gates of conducting a recipe."""
    steps = yield from report.ask_reads("steps_prepared", PHASE, expand(target, {}))
    if steps is None:
        return AskedTarget(None, target.target_asset_ids, [])
    signals = yield from load_written_signals((*steps.steps, *steps.closing_steps))
    asset_ids = target.target_asset_ids | signals.owner_ids
    report.ask("signals_owned", PHASE, partial(refuse_unowned, signals), signals.owner_ids)
    report.ask("setpoints_within_limits", PHASE, partial(refuse_out_of_limits, steps, signals), signals.owner_ids)
    scope = yield from report.ask_reads("targets_found", PHASE, asset_scope(asset_ids), asset_ids)
    facts = None
    if scope is not None:
        facts = yield from load_preconditions(call, scope, asset_ids, frozenset(), resuming=False)
        report.ask_all(procedure_start.GATES, PHASE, facts)
    return AskedTarget(facts, asset_ids, [(target, steps)])


def expand(what: RecipeConduct, parameters: Mapping[str, object]) -> Reads[Expansion]:
    """Return the steps that a procedure would be registered with; refuse what its registration would refuse."""
    recipe = yield from require(Recipe, what.recipe_id)
    capability = yield from require(Capability, recipe.capability_id)
    programs = yield from allowed_programs((*recipe.steps, *recipe.closing_steps))
    actions = yield from load_actions(action_names(recipe.steps, recipe.closing_steps))
    source = what.registration().source(recipe, capability, parameters, programs, actions)
    steps = yield from run_in_thread(expansion_of, recipe.steps, recipe.closing_steps, source.bindings, source.units)
    check_programs(steps, programs)
    check_actions(steps.steps, steps.closing_steps, actions)
    return steps


def arranged_walk(command: Any, steps: Expansion) -> ConductWalk:
    """Return the walk of the conduct that a command opens from the beginning."""
    return replace(
        walk_of(steps.steps, steps.closing_steps),
        mode=MODES[command.operation.command_name],
        unconverged_cap=getattr(command, "max_consecutive_unconverged_iterations", None),
        budget=getattr(command, "budget", None) or UNLIMITED,
    )
