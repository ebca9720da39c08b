"""What work was done on: real equipment, a simulation of it, or both."""

from collections.abc import Iterable
from enum import StrEnum


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
