"""From which states a verb is allowed, where it leads and what it records, by the tables that the verbs are tested by."""

from collections.abc import Iterator
from functools import cache
from typing import get_type_hints

from baton.domain.contexts import REGISTRY
from tests.documents.reference.forms import table
from tests.support.domain.lifecycle_table import Lifecycle, StateByAxis, Verb
from tests.support.domain.lifecycles.every import LIVES, STATELESS

OF_AGGREGATE = {life.aggregate: life for life in (*LIVES, *STATELESS)}


def states_table(life: Lifecycle) -> str:
    """Every verb in every state."""
    axis, states = next(iter(life.ways.items()))
    return table(("", *states), (row_of(life, name, axis, list(states)) for name in life.verbs))


def row_of(life: Lifecycle, name: str, axis: str, states: list[str]) -> Iterator[str]:
    yield f"[{name}](#{name})"
    verb, as_given = life.verbs[name], names_its_state(life, name)
    for state in states:
        yield ("as given" if as_given else cell(verb, axis, state)) if verb.allows({axis: state}) else ""


def names_its_state(life: Lifecycle, name: str) -> bool:
    """Whether it is the input that says where a verb leads."""
    aggregate = REGISTRY.aggregates[life.aggregate]
    of_the_axis = get_type_hints(aggregate.state).get(aggregate.axis)
    return any(field.annotation is of_the_axis for field in REGISTRY.operations[name].input.model_fields.values())


def cell(verb: Verb, axis: str, state: str) -> str:
    """Where a verb leads from a state that allows it."""
    led = {along: to for along, to in verb.leads_to.items() if (along, to) != (axis, state)}
    return ", ".join(to if along == axis else f"{along} {to}" for along, to in led.items()) or "stays"


@cache
def recorded_events(aggregate: str) -> dict[str, list[str]]:
    """Return the events that each verb recorded in every state that allows it."""
    life = OF_AGGREGATE[aggregate]
    seen = {name: list(dict.fromkeys(events_of(life, name))) for name in life.verbs}
    world, id, _ = life.reach_state(next(life.states()))
    return {life.creation: [type(world.streams[aggregate, id][0]).__name__], **seen}


def events_of(life: Lifecycle, name: str) -> Iterator[str]:
    for standing in life.states():
        if life.verbs[name].allows(standing):
            yield from drive_verb(life, name, standing)


def drive_verb(life: Lifecycle, name: str, standing: StateByAxis) -> Iterator[str]:
    """Yield the events that one verb records from one state, on any stream."""
    world, id, scene = life.prepare_verb(name, standing)
    before = {key: len(events) for key, events in world.streams.items()}
    world.when(life.command(name, scene), on=id)
    for key, events in world.streams.items():
        for event in events[before.get(key, 0) :]:
            yield type(event).__name__
