"""The signals that an action declares to touch: which of its parameters hold addresses. Every process loads this early."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ActionForecast:
    """What an action says that it would do with its parameters, before it does anything."""

    seconds: float | None = None  # How long it would take, where that follows from the parameters.
    files: tuple[str, ...] = ()  # The addresses of files that it would write.
    moves: tuple[tuple[str, Any], ...] = ()  # Every value that it would write, with its address, in their order.
    refusal: tuple[str, str, Mapping[str, Any]] | None = None  # The class, sentence and facts by which it would refuse.


@dataclass(frozen=True)
class ActionSignals:
    """Which parameters of an action hold addresses that it writes to, at them or below, and which it only reads."""

    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    derived_writes: Callable[[Mapping[str, Any]], Iterable[str]] | None = None  # Further addresses, by all parameters.
    rehearse: Callable[[Mapping[str, Any]], ActionForecast] | None = None  # What it would do, by all parameters.
    parameters: Callable[[], Mapping[str, Any]] | None = None  # Returns the JSON Schema of its parameters.
    description: str | None = field(default=None, compare=False)  # What it does, by its docstring.

    def addresses(self, params: Mapping[str, object]) -> tuple[set[str], set[str]]:
        """Return what the action writes and reads with these parameters; raise ValueError where one holds no address."""
        derived = () if self.derived_writes is None else self.derived_writes(params)
        return _addresses_in(params, self.writes) | set(derived), _addresses_in(params, self.reads)


def _addresses_in(params: Mapping[str, object], names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for name in names:
        value = params.get(name)
        values = () if value is None else value if isinstance(value, list | tuple) else (value,)
        if not all(isinstance(one, str) for one in values):
            raise ValueError(f"{name} holds no address")
        found.update(values)
    return found
