"""Lineage: which datasets one was derived from, and which were derived from it, over any number of generations."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from baton.domain.kernel import Event, State
from baton.domain.shared.listing import Summary


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


class LineagePort(Protocol):
    """Reads the origins of many datasets at once."""

    async def dataset_lineage(
        self, dataset_ids: Sequence[UUID], direction: LineageDirection, max_depth: int, limit: int
    ) -> Lineage:
        """Return what leads to or from these datasets, by the projection, within so many generations and datasets."""

    async def summary_rows(
        self, summary: type[Summary], columns: Sequence[str], column: str, values: Sequence[UUID], limit: int
    ) -> Sequence[Mapping[str, Any]]:
        """Return these columns, or all, of the rows of a projection whose column is or holds one of these values."""

    async def stream_recorders(self, state: type[State], ids: Sequence[UUID]) -> Mapping[UUID, UUID]:
        """Return who recorded the first event of each of these streams."""

    async def events_of_streams(
        self, ids: Sequence[UUID], events: Sequence[type[Event]], keys: Sequence[str]
    ) -> Sequence[Event]:
        """Return the events of these types on many streams that have something under one of these keys, oldest first; all
        of them where no key is given."""
