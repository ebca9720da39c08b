"""Actuation: whether work was done on real equipment, on a simulation of it, or on both."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Protocol, TypeVar


class ActuationKind(StrEnum):
    PHYSICAL = "Physical"
    SIMULATED = "Simulated"
    HYBRID = "Hybrid"


class Actuation(StrEnum):
    """What the writes of a deployment can reach, as far as its routes declare it; nobody is asked whether it answers."""

    INERT = "inert"
    SIMULATED = "simulated"
    REACHABLE = "reachable"


def merged_kind(kinds: Iterable[ActuationKind | None]) -> ActuationKind | None:
    """Return the kind of all this work taken together, or None."""
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


class WritableRoute(DeclaredRoute, Protocol):
    """What a deployment declares of a route besides: that nothing is written there."""

    @property
    def read_only(self) -> bool: ...


Route = TypeVar("Route", bound=DeclaredRoute)


def route_of(address: str, routes: Iterable[Route]) -> Route | None:
    """Return the route with the longest prefix of an address, or None."""
    leading = (route for route in routes if address.startswith(route.prefix))
    return max(leading, key=lambda route: len(route.prefix), default=None)


def touched_kind(addresses: Iterable[str], routes: Collection[DeclaredRoute]) -> ActuationKind | None:
    """Return what the routes of these addresses declare, taken together."""
    found = (route_of(address, routes) for address in addresses)
    return merged_kind(ActuationKind.SIMULATED if route.simulated else ActuationKind.PHYSICAL for route in found if route)


def actuation_of(routes: Iterable[WritableRoute], writes_enabled: bool) -> Actuation:
    """Return what can be written to: real equipment where a writable route is not declared simulated."""
    writable = [route for route in routes if writes_enabled and not route.read_only]
    if not writable:
        return Actuation.INERT
    return Actuation.SIMULATED if all(route.simulated for route in writable) else Actuation.REACHABLE
