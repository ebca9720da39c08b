"""How the life of an aggregate is tabulated, apart from the code that must obey the table.

A life says how its aggregate begins, by which verbs each state is reached, and for every verb the states it is allowed
from, where it leads, how it is refused elsewhere, and the smallest input with which it succeeds.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Command
from tests.support.domain.world import World

Scene = SimpleNamespace
"""What the world holds beside the aggregate, by name."""
EVERY = "every state"


def no_fields(scene: Scene) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Verb:
    """One row of a table of states and verbs."""

    allowed: str = EVERY
    """The states of the first axis that it is allowed from."""
    leads_to: Mapping[str, str] = field(default_factory=dict)
    refusal: str = ""
    reason: str = ""
    """The machine cause of the refusal; where none is tabulated, the state itself."""
    quiet: bool = False
    """Whether a repeat succeeds without an event."""
    given: Callable[[Scene], Mapping[str, Any]] = no_fields
    before: tuple[tuple[str, Callable[[Scene], Mapping[str, Any]]], ...] = ()
    """Verbs that must have happened for this one to succeed, with their input."""
    arranged: Callable[[World, UUID, Scene], None] | None = None
    """What must be true for this one to succeed, where no verb leads there from this state any more."""
    allowed_beside: Mapping[str, str] = field(default_factory=dict)
    """The states of other axes that it is allowed from, where it is not allowed from all of them."""

    def allows(self, state: "StateByAxis") -> bool:
        return self.forbidding_state(state) is None

    def forbidding_state(self, state: "StateByAxis") -> str | None:
        """Return the state that does not allow this verb, on the first axis that forbids it; None where none does."""
        allowed = {**dict.fromkeys(list(state)[:1], self.allowed), **self.allowed_beside}
        limits = ((at, allowed.get(axis, EVERY)) for axis, at in state.items())
        return next((at for at, states in limits if states != EVERY and at not in states.split()), None)


StateByAxis = Mapping[str, str]
"""Where an aggregate stands on each of its axes."""


@dataclass(frozen=True, eq=False)
class Lifecycle:
    """An aggregate with states: its beginning, its axes (the first one is what verbs are allowed by) and its verbs."""

    aggregate: str
    creation: str
    """The verb that begins one; empty where no verb of its own does."""
    begin: Callable[[World], tuple[UUID, Scene]]
    ways: Mapping[str, Mapping[str, str]]
    verbs: Mapping[str, Verb]
    world: Callable[[], World] = World
    also_by: tuple[str, ...] = ()
    """Other verbs that begin one."""
    from_elsewhere: Mapping[str, Callable[[World, UUID, Scene], None]] = field(default_factory=dict)
    """What happens to it by verbs of other aggregates, under the names that its ways call them by."""

    @property
    def begun_by(self) -> tuple[str, ...]:
        """The verbs that begin one."""
        return tuple(filter(None, (self.creation, *self.also_by)))

    def states(self) -> Iterator[StateByAxis]:
        """Every state; on several axes, every combination."""
        for states in itertools.product(*self.ways.values()):
            yield dict(zip(self.ways, states, strict=True))

    def reach_state(self, standing: StateByAxis) -> tuple[World, UUID, Scene]:
        """Return a world in which the aggregate was brought to a state by its own verbs, its id and the scene."""
        world, id, scene = _reach_standing(self, tuple(standing.items()))
        return world.copy(), id, copy(scene)

    def prepare_verb(self, name: str, standing: StateByAxis) -> tuple[World, UUID, Scene]:
        """Return the same, with everything the verb needs to succeed."""
        world, id, scene = self.reach_state(standing)
        verb = self.verbs[name]
        for earlier, fields in verb.before:
            world.when(command(earlier, fields(scene)), on=id)
        if verb.arranged is not None:
            verb.arranged(world, id, scene)
        return world, id, scene

    def command(self, name: str, scene: Scene) -> Command:
        return command(name, self.verbs[name].given(scene))


@cache
def _reach_standing(life: Lifecycle, standing: tuple[tuple[str, str], ...]) -> tuple[World, UUID, Scene]:
    world = life.world()
    id, scene = life.begin(world)
    for axis, state in reversed(standing):  # The first axis comes last, since its states may forbid every other verb.
        for name in life.ways[axis][state].split():
            if name in life.from_elsewhere:
                life.from_elsewhere[name](world, id, scene)
            else:
                world.when(life.command(name, scene), on=id)
    return world, id, scene


def command(name: str, fields: Mapping[str, Any]) -> Command:
    """A command by the name of its operation."""
    made = REGISTRY.operations[name].input(**fields)
    assert isinstance(made, Command)
    return made


def at(status: str) -> dict[str, str]:
    return {"status": status}


def reason_fields(scene: Scene) -> dict[str, Any]:
    return {"reason": "beam dump"}
