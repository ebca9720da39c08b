"""Verbs to arrange copies of data with, through the command path of a runtime."""

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

from baton.application.attestations import Attestations, AttestationSweeps
from baton.application.caller import Caller
from baton.application.unit_of_work import load_events, load_state
from baton.cli.composition.runtime import Runtime
from baton.domain.data.attestation import Attestation
from baton.domain.data.dataset import RegisterDataset
from baton.domain.data.distribution import Distribution, RegisterDistribution, distribution
from baton.domain.kernel import Command, Event
from baton.domain.supply.supply import RegisterSupply

SYSTEM = Caller.system(UUID(int=7))
FRAMES = b"frames of a scan"


def content_of(uri: str, content: bytes = FRAMES) -> dict[str, Any]:
    """What a dataset and its copies say of these bytes."""
    return {
        "uri": uri,
        "checksum": {"algorithm": "sha256", "value": sha256(content).hexdigest()},
        "byte_size": len(content),
        "encoding": {"media_type": "application/x-hdf5"},
    }


class DataRecord:
    """A dataset on one storage supply, and its copies."""

    def __init__(self, runtime: Runtime, dataset_id: UUID, supply_id: UUID) -> None:
        self.runtime = runtime
        self.dataset_id = dataset_id
        self.supply_id = supply_id

    @classmethod
    async def begin(cls, runtime: Runtime) -> "DataRecord":
        supply = RegisterSupply(kind="Storage", name="Analysis disk", facility_code="facility")
        dataset = RegisterDataset(name="scan_001.h5", **content_of("file:///data/scan_001.h5"))
        ids = [await create(runtime, command) for command in (dataset, supply)]
        return cls(runtime, *ids)

    async def copy(self, uri: str) -> UUID:
        """Register a copy under this address, and return its id."""
        place = {"dataset_id": self.dataset_id, "supply_id": self.supply_id, "access_protocol": "HTTPS"}
        return await create(self.runtime, RegisterDistribution(**place, **content_of(uri)))

    async def copies(self, uris: Sequence[str]) -> list[UUID]:
        """Register copies under these addresses, eight at a time, and return their ids in the order of the addresses."""
        turns = asyncio.Semaphore(8)

        async def register(uri: str) -> UUID:
            async with turns:
                return await self.copy(uri)

        return await asyncio.gather(*map(register, uris))

    async def state(self, copy: UUID) -> Distribution:
        found = await load_state(self.runtime.store, Distribution, copy)
        assert found is not None
        return found

    async def attestation(self, id: UUID | str) -> Attestation:
        found = await load_state(self.runtime.store, Attestation, UUID(str(id)))
        assert found is not None
        return found

    async def events(self, copy: UUID) -> list[Event]:
        return await load_events(self.runtime.store, copy, *distribution.events.values())

    @property
    def attestations(self) -> Attestations:
        return self.runtime.works.of(Attestations)

    @property
    def sweeps(self) -> AttestationSweeps:
        return self.runtime.works.of(AttestationSweeps)


async def create(runtime: Runtime, command: Command, caller: Caller = SYSTEM) -> UUID:
    """Give a command that creates something, or begins work, and return the first id of its answer."""
    executed = await runtime.service.commands.execute(command, caller)
    assert executed.body
    return UUID(next(iter(executed.body.values())))
