"""The actions of a deployment: the built-in ones, and those of installed site packages."""

from collections.abc import Mapping

from baton.application.conduct.actions import ActionBody, UnknownActionError
from baton.infrastructure.actions.acquisition import BUILT_IN
from baton.infrastructure.plugins import installed_bodies


class ActionRegistry:
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
    """Return the built-in actions and those of every installed package, or raise PluginUnusableError."""
    return ActionRegistry({**BUILT_IN, **installed_bodies()})
