"""What data products rest on, over REST: storage, cameras, runs that are over; and copies that are Verified."""

from typing import Any
from uuid import UUID, uuid4

from baton.application.ports import Batch, StreamAppend
from baton.domain.data.distribution import DistributionVerified
from baton.domain.kernel import NIL, Call
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from baton.infrastructure.wall_clock import clock, new_id
from tests.support.api.rest_beamline import Beamline
from tests.support.api.sample_parts.data import content_of, create_storage
from tests.support.service import Api


async def register_dataset(api: Api, mark: str | None = None, **fields: Any) -> str:
    content = {**content_of(mark or uuid4().hex), "allow_duplicate": True}
    return await api.create("/datasets", {"name": "scan_001.h5", **content, **fields})


async def register_copy(api: Api, dataset_id: str, supply_id: str | None = None, **fields: Any) -> str:
    """Register a copy of a dataset, with the bytes that the dataset has, on a supply of its own unless one is given."""
    dataset = (await api.get(f"/datasets/{dataset_id}")).json()
    same = {name: dataset[name] for name in ("uri", "checksum", "byte_size", "encoding")}
    place = {"dataset_id": dataset_id, "supply_id": supply_id or await create_storage(api, f"Disk {uuid4().hex}")}
    return await api.create("/distributions", {**same, **place, "access_protocol": "POSIX", **fields})


async def verify_copies(api: Api, *distribution_ids: str) -> None:
    """Leave on copies what an attestation that found the right bytes leaves, in the log of the service."""
    call = Call(NIL, NIL, clock(), new_id(), new_id())
    appends = []
    for id in map(UUID, distribution_ids):
        event = DistributionVerified(attestation_id=new_id(), verified_by=NIL).stamp(id, call.now)
        version = len((await api.get(f"/distributions/{id}/history", limit=100)).json()["items"])
        appends.append(StreamAppend("Distribution", id, version, [(new_id(), event)]))
    async with runtime_pool(api.database_url, 1) as pool, PostgresStore(pool).session() as session:
        await session.append(Batch(call, "RecordAttestation", appends))


async def completed_run(line: Beamline, **fields: Any) -> str:
    """The id of a run that is over, as it was meant to be."""
    run = await line.start_run(**fields)
    await line.api.execute(f"/runs/{run}/complete")
    return run


async def revisions_of_a_centre(api: Api, count: int) -> tuple[str, list[str]]:
    """The id of a calibration and of its revisions, each of which supersedes the one before."""
    point = {"energy": 25, "optics_config": uuid4().hex}
    centre = {"target_id": str(uuid4()), "quantity": "rotation_center", "operating_point": point}
    calibration_id = await api.create("/calibrations", centre)
    made: list[str] = []
    for number in range(count):
        source = {"kind": "Computed", "dataset_id": str(uuid4())}
        body = {"value": {"center": 1024.5 + number}, "status": "Verified", "source": source}
        superseded = {"supersedes_revision_id": made[-1]} if made else {}
        made.append(await api.create(f"/calibrations/{calibration_id}/revisions", {**body, **superseded}))
    return calibration_id, made
