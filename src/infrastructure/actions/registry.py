"""The actions of a deployment: the built-in ones, and those of installed site packages."""

import inspect
from collections.abc import Mapping
from importlib.metadata import entry_points

from baton.application.conduct.actions import ActionBody, UnknownActionError
from baton.infrastructure.actions.acquisition import collect, continuous, discrete, stream

ENTRY_POINTS = "baton.actions"
"""The entry-point group in which an installed package offers actions, each under its name."""
BUILT_IN: Mapping[str, ActionBody] = {"collect": collect, "discrete": discrete, "continuous": continuous, "stream": stream}


class ActionUnusableError(Exception):
    """An action that a package offers cannot be used."""


class ActionRegistry:
    """Actions by name."""

    def __init__(self, bodies: Mapping[str, ActionBody]) -> None:
        self._bodies = bodies

    @property
    def names(self) -> list[str]:
        return sorted(self._bodies)

    def body_of(self, name: str) -> ActionBody:
        if name not in self._bodies:
            raise UnknownActionError(f"There is no action {name} here; there are {', '.join(self.names)}.")
        return self._bodies[name]


def installed_actions() -> ActionRegistry:
    """Return the built-in actions and those of every installed package, or raise ActionUnusableError."""
    bodies = dict(BUILT_IN)
    for point in entry_points(group=ENTRY_POINTS):
        if point.name in bodies:
            raise ActionUnusableError(f"The action {point.name} is offered twice, by {point.value} too; rename one.")
        try:
            body = point.load()
        except Exception as error:
            raise ActionUnusableError(f"The action {point.name} cannot be loaded from {point.value}: {error}.") from error
        if not inspect.iscoroutinefunction(body):
            raise ActionUnusableError(f"The action {point.name} at {point.value} is no async function.")
        bodies[point.name] = body
    return ActionRegistry(bodies)
