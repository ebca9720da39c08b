"""The options of a conduct: chosen by the request, else the procedure, else its recipe, else by default."""

from typing import Any
from uuid import UUID

import pytest

from baton.domain.conduct.arranged_conduct import DEFAULT_ARRANGEMENT
from baton.domain.conduct.conduct import (
    Conduct,
    ConductFromProcedure,
    ConductOrHoldProcedure,
    ConductProcedure,
    ConductUntilConverged,
)
from baton.domain.conduct.preflight import PreflightProcedure
from baton.domain.conduct.run_conduct import ConductRun
from baton.domain.procedure.procedure import ProcedureResumed, ProcedureStepsResolved
from baton.domain.recipe.capability import CODE_PREFIX
from baton.domain.recipe.conduct_options import ChosenOptions, ConductOptions, OnUnknownOutcome, WatchedGate, conduct_options
from baton.domain.recipe.recipe import (
    DefineRecipe,
    GetRecipe,
    ListRecipeVersions,
    RecipeVersionTagConflictError,
    VersionRecipe,
)
from baton.domain.start.registration import RegisterProcedureFromRecipe
from tests.support.domain.conducts import (
    FOCUS_STEPS,
    LOOP,
    STEPS,
    end_in_hold,
    open_and_hold,
    procedure_of,
    register_procedure,
)
from tests.support.domain.templates import capability
from tests.support.domain.world import World, new_id

ABORT, HOLD = OnUnknownOutcome
ENCLOSURE, SUPPLY = WatchedGate


def recipe(world: World, **options: Any) -> UUID:
    realised = capability(world, code=f"{CODE_PREFIX}{new_id()}", executor_shapes=["PROCEDURE"])
    return world.create(DefineRecipe(name="focus", capability_id=realised, steps=FOCUS_STEPS, **options))


def procedure_from(world: World, recipe_id: UUID, **options: Any) -> UUID:
    return world.create(RegisterProcedureFromRecipe(name="Focus", kind="focus", recipe_id=recipe_id, **options))


def pin_of(world: World, id: UUID) -> ProcedureStepsResolved:
    (pin,) = (event for event in world.streams["Procedure", id] if isinstance(event, ProcedureStepsResolved))
    return pin


def chosen(world: World, id: UUID, command: Conduct) -> tuple[set[str], str]:
    """What the pin of a conduct says."""
    world.when(command, on=id)
    return set(pin_of(world, id).watch), pin_of(world, id).on_unknown_outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        (ConductProcedure(steps=STEPS), ABORT),
        (ConductOrHoldProcedure(steps=STEPS), HOLD),
        (ConductUntilConverged(**LOOP, steps=STEPS), ABORT),
    ],
)
def test_enclosures_are_watched_and_unknown_outcomes_abort_unless_faults_hold(
    world: World, command: Conduct, outcome: OnUnknownOutcome
) -> None:
    assert chosen(world, register_procedure(world), command) == ({ENCLOSURE}, outcome)


@pytest.mark.parametrize(
    ("recipe_options", "own", "asked", "expected"),
    [
        ({"watch": ["supply"]}, {}, {}, ({SUPPLY}, ABORT)),
        ({"watch": ["supply"]}, {"watch": []}, {}, (set(), ABORT)),
        ({"watch": ["supply"]}, {"watch": []}, {"watch": ["enclosure", "supply"]}, ({ENCLOSURE, SUPPLY}, ABORT)),
        ({"on_unknown_outcome": "hold"}, {"watch": []}, {}, (set(), HOLD)),
        ({"on_unknown_outcome": "hold"}, {"on_unknown_outcome": "abort"}, {}, ({ENCLOSURE}, ABORT)),
        ({}, {"on_unknown_outcome": "abort"}, {"on_unknown_outcome": "hold"}, ({ENCLOSURE}, HOLD)),
    ],
)
def test_the_request_counts_before_the_procedure_and_that_before_the_recipe(
    world: World, recipe_options: dict[str, Any], own: dict[str, Any], asked: dict[str, Any], expected: tuple[set[str], str]
) -> None:
    id = procedure_from(world, recipe(world, **recipe_options), **own)
    assert chosen(world, id, ConductProcedure(**asked)) == expected


def test_a_choice_to_abort_holds_for_conduct_or_hold_too(world: World) -> None:
    id = procedure_from(world, recipe(world, on_unknown_outcome="abort"))
    assert chosen(world, id, ConductOrHoldProcedure())[1] is ABORT


def test_a_procedure_keeps_the_options_of_the_recipe_version_it_was_registered_from(world: World) -> None:
    recipe_id = recipe(world, watch=["supply"])
    id = procedure_from(world, recipe_id)
    world.when(VersionRecipe(version_tag="v2", steps=FOCUS_STEPS, watch=[]), on=recipe_id)
    assert chosen(world, id, ConductProcedure())[0] == {SUPPLY}
    assert chosen(world, procedure_from(world, recipe_id), ConductProcedure())[0] == set()


def test_a_recipe_shows_the_options_of_each_version(world: World) -> None:
    recipe_id = recipe(world, watch=["supply"])
    world.when(VersionRecipe(version_tag="v2", steps=FOCUS_STEPS, on_unknown_outcome="hold"), on=recipe_id)
    current = world.ask(GetRecipe(), on=recipe_id)
    assert (current.watch, current.on_unknown_outcome) == (None, HOLD)
    versions = world.ask(ListRecipeVersions(), on=recipe_id).items
    assert [(one.watch, one.on_unknown_outcome) for one in versions] == [({SUPPLY}, None), (None, HOLD)]
    with pytest.raises(RecipeVersionTagConflictError):
        world.when(VersionRecipe(version_tag="v2", steps=FOCUS_STEPS), on=recipe_id)
    world.when(VersionRecipe(version_tag="v2", steps=FOCUS_STEPS, on_unknown_outcome="hold"), on=recipe_id)


def test_who_takes_it_up_may_change_the_options_for_what_follows(world: World) -> None:
    id = register_procedure(world)
    open_and_hold(world, ConductProcedure(steps=STEPS), on=id)
    changed = world.when(ConductFromProcedure(watch=[], on_unknown_outcome="hold"), on=id)[-1]
    assert isinstance(changed, ProcedureResumed)
    assert (changed.watch, changed.on_unknown_outcome) == (frozenset(), HOLD)
    end_in_hold(world, id)
    kept = world.when(ConductFromProcedure(), on=id)[-1]
    assert isinstance(kept, ProcedureResumed)
    assert (kept.watch, kept.on_unknown_outcome) == (None, None)
    in_force = conduct_options(kept, changed, pin_of(world, id))
    assert in_force == ConductOptions(watch=frozenset(), on_unknown_outcome=HOLD)


def test_preflight_says_what_would_be_chosen(world: World) -> None:
    id = procedure_from(world, recipe(world, watch=["supply"]))
    assert world.ask(PreflightProcedure(), on=id).options == ConductOptions(watch=frozenset({SUPPLY}))
    open_and_hold(world, ConductProcedure(on_unknown_outcome="hold"), on=id)
    assert world.ask(PreflightProcedure(), on=id).options == ConductOptions(
        watch=frozenset({SUPPLY}), on_unknown_outcome=HOLD
    )
    open_and_hold(world, ConductFromProcedure(watch=[]), on=id)
    assert world.ask(PreflightProcedure(), on=id).options == ConductOptions(watch=frozenset(), on_unknown_outcome=HOLD)
    assert procedure_of(world, id).watch == {SUPPLY}, "its own choice is shown as it was registered"


def test_options_of_a_run_hold_for_every_phase_that_does_not_choose(world: World) -> None:
    first, second = new_id(), new_id()
    phases = [{"procedure_id": first}, {"procedure_id": second, "conduct": {"watch": []}}]
    listed = ConductRun(phases=phases, watch=["supply"], on_unknown_outcome="hold").listed_phases()
    assert [(one.conduct["watch"], one.conduct["on_unknown_outcome"]) for one in listed] == [
        (["supply"], "hold"),
        ([], "hold"),
    ]
    plain = ConductRun(procedure_ids=[first]).listed_phases()
    assert plain[0].conduct == DEFAULT_ARRANGEMENT.stored_form()
    assert not ChosenOptions.model_fields.keys() & plain[0].conduct.keys(), "a phase without options is stored as before"


def test_what_is_not_chosen_does_not_count_as_said() -> None:
    assert "watch" not in ConductProcedure().model_dump(exclude_unset=True)
