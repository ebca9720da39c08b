"""Lineage: which datasets one was derived from, and which were derived from it, over any number of generations."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID


class LineageDirection(StrEnum):
    ANCESTORS = "ancestors"  # What a dataset was derived from.
    DESCENDANTS = "descendants"  # What was derived from a dataset.


class LineageNode(NamedTuple):
    """A dataset of a lineage, how many derivations it is away from the nearest one that was asked about, and its parents."""

    dataset_id: UUID
    depth: int
    derived_from: Sequence[UUID]


class Lineage(NamedTuple):
    """The datasets that were asked about and those found from them, nearest first."""

    nodes: tuple[LineageNode, ...]
    truncated: bool  # Whether there is more than the depth or the limit shows.

    @property
    def edges(self) -> tuple[tuple[UUID, UUID], ...]:
        """Return the derivations among the nodes, as (parent, child)."""
        ids = {node.dataset_id for node in self.nodes}
        return tuple((id, node.dataset_id) for node in self.nodes for id in node.derived_from if id in ids)
