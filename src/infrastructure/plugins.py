"""Plugins: the actions, control adapters, deciders, minters and executors of Bluesky plans that installed site packages
offer by entry points."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from baton.application.conduct.actions import ActionBody, FindableAction, UnknownActionError, declared_signals
from baton.application.conduct.deciders import Decider
from baton.application.control import Control
from baton.application.plan_settings import PlanExecutorKind
from baton.application.plant import Substrate
from baton.application.settings import PidMinter, Settings
from baton.domain.shared.action_signals import ActionSignals
from baton.domain.steering.steering import DecideSubstrate
from baton.infrastructure.actions.acquisition import BUILT_IN

if TYPE_CHECKING:  # the ports load the whole domain, and every process looks for plugins before it does anything else
    from baton.application.conduct.plan_executors import PlanExecutor
    from baton.application.ports import Minter

T = TypeVar("T")


class PluginUnusableError(Exception):
    """A plugin cannot be used; the message is one sentence that names it and says why."""


@lru_cache(maxsize=1)
def installed_points(path: tuple[str, ...]) -> Any:
    """Return the entry points of every package on this path, which is the interpreter's."""
    return entry_points()


@dataclass(frozen=True)
class PluginKind(Generic[T]):
    """One entry-point group: what its plugins are called, which names are taken, and what a plugin must have."""

    group: str
    noun: str
    built_in: frozenset[str]
    members: tuple[str, ...] = ()  # what the object that a factory makes must have; an action is no factory

    def offers(self) -> dict[str, EntryPoint]:
        """Return the entry points of this group by name, or raise PluginUnusableError where a name is taken."""
        found: dict[str, EntryPoint] = {}
        for point in installed_points(tuple(sys.path)).select(group=self.group):
            if (name := point.name) in found or name in self.built_in:
                raise PluginUnusableError(f"The {self.noun} {name} is offered twice, by {point.value} too; rename one.")
            found[point.name] = point
        return found

    def load(self, point: EntryPoint) -> Callable[..., T]:
        """Return the function that an entry point names, or raise PluginUnusableError."""
        try:
            found = point.load()
        except Exception as error:
            detail = f"The {self.noun} {point.name} cannot be loaded from {point.value}: {error}."
            raise PluginUnusableError(detail) from error
        if self.members and not callable(found):
            raise PluginUnusableError(f"The {self.noun} {point.name} at {point.value} cannot be called.")
        if not self.members and not inspect.iscoroutinefunction(found) and not isinstance(found, FindableAction):
            raise PluginUnusableError(f"The {self.noun} {point.name} at {point.value} is no async function.")
        return found  # type: ignore[no-any-return]

    def make(self, name: str, *arguments: object) -> T:
        """Return what the factory of a plugin makes, or raise PluginUnusableError."""
        if (point := self.offers().get(name)) is None:
            raise PluginUnusableError(f"No installed package offers the {self.noun} {name}; install the one that does.")
        factory = self.load(point)
        try:
            made = factory(*arguments)
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            raise PluginUnusableError(f"The {self.noun} {name} at {point.value} cannot be made: {fault}.") from error
        if missing := [member for member in self.members if not hasattr(made, member)]:
            raise PluginUnusableError(f"The {self.noun} {name} at {point.value} lacks {', '.join(missing)}.")
        return made


ACTIONS = PluginKind[Any]("baton.actions", "action", frozenset(BUILT_IN))
ADAPTER = ("read", "write", "subscribe", "close")
CONTROL = PluginKind[Control]("baton.control", "control adapter", frozenset(Substrate), ADAPTER)
DECIDERS = PluginKind[Decider]("baton.deciders", "decider", frozenset(DecideSubstrate), ("advise_next", "close"))
REGISTRATION = ("schemes", "mint", "tombstone", "aclose")
MINTERS: "PluginKind[Minter]" = PluginKind("baton.minters", "minter", frozenset(PidMinter), REGISTRATION)
CARRYING_OUT = ("catalogue", "prepare", "submit", "find", "state", "pause", "resume", "stop", "abort", "close")
PLAN_EXECUTORS: "PluginKind[PlanExecutor]" = PluginKind(
    "baton.plan_executors", "plan executor", frozenset(PlanExecutorKind), CARRYING_OUT
)
KINDS: tuple[PluginKind[Any], ...] = (ACTIONS, CONTROL, DECIDERS, MINTERS, PLAN_EXECUTORS)


class ActionRegistry:
    def __init__(self, bodies: Mapping[str, ActionBody | FindableAction]) -> None:
        self._bodies = bodies

    def with_plans(self, plans: Mapping[str, FindableAction]) -> "ActionRegistry":
        """Return these actions and the Bluesky plans of configured executors."""
        return ActionRegistry({**self._bodies, **plans})

    @property
    def names(self) -> list[str]:
        return sorted(self._bodies)

    def body_of(self, name: str) -> ActionBody | FindableAction:
        if name not in self._bodies:
            raise UnknownActionError(f"There is no action {name} here; there are {', '.join(self.names)}.")
        return self._bodies[name]

    @property
    def signals(self) -> dict[str, ActionSignals]:
        """What each action declares to touch, by name; one that declares nothing is left out."""
        declared = {name: declared_signals(body) for name, body in self._bodies.items()}
        return {name: signals for name, signals in declared.items() if signals is not None}


def installed_actions() -> ActionRegistry:
    """Return the built-in actions and those of every installed package, or raise PluginUnusableError."""
    return ActionRegistry({**BUILT_IN, **{name: ACTIONS.load(point) for name, point in ACTIONS.offers().items()}})


def plugin_objections(settings: Settings) -> list[str]:
    """Return why no process may start: a plugin's name is taken, or a setting names a plugin that is not installed."""
    objections = []
    for kind in KINDS:
        try:
            offered = kind.offers()
        except PluginUnusableError as error:
            objections.append(str(error))
            continue
        for variable, name in _named_plugins(kind, settings):
            if name not in offered:
                objections.append(
                    f"{variable} names the {kind.noun} {name}, which is neither built in nor of an installed package; "
                    "correct the name, or install the package."
                )
    return objections


def load_named_plugins(settings: Settings) -> None:
    """Load every plugin that the settings name, so that one that cannot be loaded keeps the process from starting."""
    for kind in KINDS:
        offered = kind.offers()
        for _, name in _named_plugins(kind, settings):
            kind.load(offered[name])


def _named_plugins(kind: PluginKind[object], settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield every setting that names a plugin of this kind, with the name."""
    named: dict[str, tuple[str, Sequence[str]]] = {
        CONTROL.group: ("CONTROL_ROUTES", [route.substrate for route in settings.control_routes]),
        DECIDERS.group: ("DECIDE_SUBSTRATES", settings.decide_substrates),
        MINTERS.group: ("PID_MINTER", [settings.pid_minter]),
        PLAN_EXECUTORS.group: ("PLAN_EXECUTORS", [executor.kind for executor in settings.plan_executors]),
    }
    variable, names = named.get(kind.group, ("", ()))
    yield from ((variable, name) for name in dict.fromkeys(names) if name not in kind.built_in)
