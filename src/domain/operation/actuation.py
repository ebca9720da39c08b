"""What work was done on: real equipment, a simulation of it, or both."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Protocol, TypeVar


class ActuationKind(StrEnum):
    PHYSICAL = "Physical"
    SIMULATED = "Simulated"
    HYBRID = "Hybrid"


def merged_kind(kinds: Iterable[ActuationKind | None]) -> ActuationKind | None:
    """The kind of all this work taken together; None where none was seen."""
    seen = {kind for kind in kinds if kind is not None}
    if not seen:
        return None
    return seen.pop() if len(seen) == 1 else ActuationKind.HYBRID


class DeclaredRoute(Protocol):
    """What a deployment declares of all addresses with one prefix; that they are simulated is never inferred."""

    @property
    def prefix(self) -> str: ...
    @property
    def simulated(self) -> bool: ...


Route = TypeVar("Route", bound=DeclaredRoute)


def route_of(address: str, routes: Iterable[Route]) -> Route | None:
    """The route of the longest prefix that an address begins with."""
    leading = (route for route in routes if address.startswith(route.prefix))
    return max(leading, key=lambda route: len(route.prefix), default=None)


def touched_kind(addresses: Iterable[str], routes: Collection[DeclaredRoute]) -> ActuationKind | None:
    """What the routes of these addresses declare, taken together; an address without a route says nothing."""
    found = (route_of(address, routes) for address in addresses)
    return merged_kind(ActuationKind.SIMULATED if route.simulated else ActuationKind.PHYSICAL for route in found if route)
