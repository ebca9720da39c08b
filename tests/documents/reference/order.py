"""One order of everything, whichever module was loaded first."""

from collections.abc import Iterable
from typing import Any, TypeVar

from baton.domain.contexts import MODULES
from baton.domain.kernel import Aggregate
from baton.domain.registry import Operation, Registry

T = TypeVar("T")


def place(module: str) -> tuple[int, str]:
    """Where a reader meets a module; what stands in one of its own is in the order in which it was declared."""
    return (MODULES.index(module), "") if module in MODULES else (len(MODULES), module)


def operations_in_order(operations: Iterable[Operation]) -> list[Operation]:
    return sorted(operations, key=lambda operation: place(operation.input.__module__))


def classes_in_order(classes: Iterable[type[T]]) -> list[type[T]]:
    return sorted(classes, key=lambda one: place(one.__module__))


def aggregates_in_order(registry: Registry) -> list[Aggregate[Any]]:
    return sorted(registry.aggregates.values(), key=lambda aggregate: place(aggregate.state.__module__))
