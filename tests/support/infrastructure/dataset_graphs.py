"""Datasets by the thousand, appended through the store as their registrations would have been."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from baton.application.ports import Batch, Store
from baton.domain.data.dataset import CHILDREN, DatasetIntent, DatasetRegistered
from baton.domain.data.values import Checksum, ChecksumAlgorithm, Encoding
from baton.domain.kernel import Call, Event
from baton.domain.shared.writes import Enlist
from baton.domain.trust.surface import SYSTEM_HTTP
from tests.support.domain.world import OPERATOR, START, new_id

BATCH = 2000


def registered_dataset(name: str, derived_from: Iterable[UUID] = (), **others: Any) -> DatasetRegistered:
    """The registration of a dataset of a few bytes."""
    unknown = dict.fromkeys(
        ["producing_run_id", "producing_procedure_id", "producing_run_end_state", "producing_actuation_kind", "subject_id"]
    )
    values: dict[str, Any] = {
        "uri": f"file:///data/{name}.h5",
        "checksum": Checksum(algorithm=ChecksumAlgorithm.SHA256, value=f"{abs(hash(name)):064x}"),
        "byte_size": 12,
        "encoding": Encoding(media_type="application/x-hdf5", conforms_to=frozenset()),
        "used_calibration_ids": frozenset(),
        "intent": DatasetIntent.TRIAL,
        "registered_by": OPERATOR,
        **unknown,
        **others,
    }
    return DatasetRegistered(name=name, derived_from=frozenset(derived_from), **values)


async def append_streams(store: Store, streams: Mapping[UUID, Sequence[Event]], command_name: str = "Written") -> None:
    """Append new streams, thousands in one statement."""
    ids = list(streams)
    for first in range(0, len(ids), BATCH):
        batch = Batch(Call(OPERATOR, SYSTEM_HTTP, START, new_id(), new_id()), command_name)
        for id in ids[first : first + BATCH]:
            batch.add(streams[id], id, lambda *stream: 0, new_id)
            parents = (
                parent for event in streams[id] if isinstance(event, DatasetRegistered) for parent in event.derived_from
            )
            batch.enlistments += [(Enlist(CHILDREN, str(parent)), id) for parent in parents]
        async with store.session() as session:
            await session.append(batch)


def generations(*sizes: int, parents: int = 1, **others: Any) -> tuple[list[list[UUID]], dict[UUID, list[Event]]]:
    """Generations of datasets of these sizes, each derived from so many of the one before it; every one has children."""
    ids = [[new_id() for _ in range(size)] for size in sizes]
    streams: dict[UUID, list[Event]] = {}
    for depth, generation in enumerate(ids):
        before = ids[depth - 1] if depth else []
        for place, id in enumerate(generation):
            chosen = {before[(place + offset) % len(before)] for offset in range(min(parents, len(before)))}
            streams[id] = [registered_dataset(f"level-{depth}-{place}", chosen, **others)]
    return ids, streams
