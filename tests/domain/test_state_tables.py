"""Every verb in every state: allowed where the tables say so, refused by its own class everywhere else."""

from typing import Any
from uuid import UUID

import pytest

from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation, snake_case
from baton.domain.shared.refusals import Refusal
from tests.support.domain.lifecycle_table import Lifecycle, StateByAxis
from tests.support.domain.lifecycles.every import LIVES, OF_NO_STREAM, STATELESS
from tests.support.domain.world import World
from tests.support.tables import for_each

CELLS = [(life, standing, name) for life in (*LIVES, *STATELESS) for standing in life.states() for name in life.verbs]
REACHED = [(life, standing) for life in LIVES for standing in life.states()]


@for_each(("life", "standing", "name"), CELLS)
def test_a_verb_succeeds_exactly_where_it_is_allowed(life: Lifecycle, standing: StateByAxis, name: str) -> None:
    if life.verbs[name].allows(standing):
        succeeds(life, standing, name)
    else:
        is_refused(life, standing, name)


def succeeds(life: Lifecycle, standing: StateByAxis, name: str) -> None:
    verb = life.verbs[name]
    world, id, scene = life.prepare_verb(name, standing)
    assert state_by_axis(world, life, id) == standing
    events = world.when(life.command(name, scene), on=id)
    assert state_by_axis(world, life, id) == {**standing, **verb.leads_to}
    stays = all(standing[axis] == state for axis, state in verb.leads_to.items())
    if verb.quiet and stays:
        assert events == []
    else:
        assert [type(event).__name__ for event in events if event.aggregate.name == life.aggregate]


def is_refused(life: Lifecycle, standing: StateByAxis, name: str) -> None:
    verb = life.verbs[name]
    world, id, scene = life.reach_state(standing)
    before = written_state(world)
    with pytest.raises(Refusal) as caught:
        world.when(life.command(name, scene), on=id)
    assert caught.value.code == verb.refusal
    assert caught.value.status == 409
    assert caught.value.reason == (verb.reason or snake_case(verb.forbidding_state(standing) or ""))
    assert written_state(world) == before


@for_each("life", LIVES)
def test_an_aggregate_begins_in_its_first_state(life: Lifecycle) -> None:
    world, id, _ = life.reach_state(next(life.states()))
    first = world.streams[life.aggregate, id][0]
    begun = first.aggregate.fold([first])
    assert {axis: getattr(begun, axis) for axis in life.ways} == next(life.states())


@for_each(("life", "standing"), REACHED)
def test_every_state_is_reached_by_its_own_verbs(life: Lifecycle, standing: StateByAxis) -> None:
    world, id, _ = life.reach_state(standing)
    assert state_by_axis(world, life, id) == standing


@for_each("life", LIVES)
def test_no_state_is_missing_from_the_tables(life: Lifecycle) -> None:
    world, id, _ = life.reach_state(next(life.states()))
    state = world.state(REGISTRY.aggregates[life.aggregate].state, id)
    for axis, ways in life.ways.items():
        assert {option.value for option in type(getattr(state, axis))} == set(ways)


@for_each("name", sorted(REGISTRY.aggregates))
def test_no_verb_is_missing_from_the_tables(name: str) -> None:
    tabulated = {life.aggregate: {*life.begun_by, *life.verbs} for life in (*LIVES, *STATELESS)}
    declared = {operation.name for operation in commands_of(name)} - OF_NO_STREAM
    assert declared == tabulated.get(name), f"{name} has no complete table in tests/support/domain/lifecycles"


@for_each("life", STATELESS)
def test_a_stateless_aggregate_has_no_states(life: Lifecycle) -> None:
    world, id, _ = life.reach_state({})
    aggregate = REGISTRY.aggregates[life.aggregate]
    assert not hasattr(world.state(aggregate.state, id), aggregate.axis)
    assert not [operation.name for operation in commands_of(life.aggregate) if operation.allowed is not None]


@for_each("life", LIVES)
def test_what_the_documentation_says_is_allowed_is_what_the_table_says(life: Lifecycle) -> None:
    axis, states = next(iter(life.ways.items()))
    for operation in commands_of(life.aggregate):
        if operation.allowed is not None:
            verb = life.verbs[operation.name]
            assert {state.value for state in operation.allowed} == {s for s in states if verb.allows({axis: s})}


def commands_of(aggregate: str) -> list[Operation]:
    return [operation for operation in REGISTRY.aggregates[aggregate].operations if operation.kind == "command"]


def state_by_axis(world: World, life: Lifecycle, id: UUID) -> StateByAxis:
    state = world.state(REGISTRY.aggregates[life.aggregate].state, id)
    return {axis: str(getattr(state, axis)) for axis in life.ways}


def written_state(world: World) -> tuple[Any, ...]:
    """Everything a command could have written."""
    streams = {key: tuple(events) for key, events in world.streams.items() if events}
    members = {key: frozenset(ids) for key, ids in world.members.items() if ids}
    return streams, dict(world.claims), members, dict(world.records)


@for_each(("life", "standing", "name"), CELLS)
def test_the_way_that_a_refusal_names_leads_to_what_was_asked_for(life: Lifecycle, standing: StateByAxis, name: str) -> None:
    wanted = life.verbs[name]
    if wanted.allows(standing):
        return
    world, id, scene = life.reach_state(standing)
    with pytest.raises(Refusal) as caught:
        world.when(life.command(name, scene), on=id)
    for step in caught.value.next_steps:
        assert step.arguments[REGISTRY.operations[step.operation].target or ""] == str(id)
        if step.operation != name:
            world.when(life.command(step.operation, scene), on=id)
    if caught.value.next_steps:
        reached = state_by_axis(world, life, id)
        assert wanted.allows(reached) if step.operation == name else reached.items() >= wanted.leads_to.items()


@for_each("life", LIVES)
def test_a_verb_leads_where_its_declaration_says(life: Lifecycle) -> None:
    axis = REGISTRY.aggregates[life.aggregate].axis
    for operation in (REGISTRY.operations[name] for name in life.verbs):
        if operation.allowed and not operation.destructive:
            leads_to = None if operation.leads_to is None else operation.leads_to.value
            assert leads_to == life.verbs[operation.name].leads_to.get(axis), operation.name
