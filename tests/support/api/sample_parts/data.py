"""A dataset that used a calibration, a copy of it, the capture it began with, and a dataset derived from it."""

from hashlib import sha256
from typing import Any
from uuid import UUID

from baton.application.caller import Caller
from baton.domain.data.attestation import ByteReading, CompleteAttestation
from baton.infrastructure.wall_clock import new_id
from tests.support.service import Api


def content_of(mark: str) -> dict[str, Any]:
    """The description of some bytes, as a dataset and its copies give it."""
    return {
        "uri": f"file:///data/{mark}/scan_001.h5",
        "checksum": {"algorithm": "sha256", "value": sha256(mark.encode()).hexdigest()},
        "byte_size": 4096,
        "encoding": {"media_type": "application/x-hdf5", "conforms_to": ["https://doi.org/10.1107/S160057751401604X"]},
    }


async def create_camera(api: Api, mark: str) -> str:
    """Register an asset that captures data."""
    family = await api.create("/families", {"name": f"Detector {mark}", "affordances": ["Capturing"]})
    unit = await api.create("/assets", {"name": "Imaging", "tier": "Unit", "facility_code": "facility"})
    device = {"name": f"Camera {mark}", "tier": "Device", "parent_id": unit, "family_ids": [family]}
    return await api.create("/assets", device)


async def create_storage(api: Api, name: str) -> str:
    """Register a supply that keeps copies."""
    return await api.create("/supplies", {"kind": "Storage", "name": name, "facility_code": "facility"})


async def create_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    run = {"name": f"Scan {mark}", "plan_id": ids["plan_id"], "pinned_calibration_ids": [ids["superseded_revision_id"]]}
    origin = {"producing_run_id": await api.create("/runs", run), "subject_id": ids["subject_id"]}
    used = {"used_calibration_ids": run["pinned_calibration_ids"]}
    raw = {"name": "scan_001.h5", **content_of(mark)}
    ids["dataset_id"] = await api.create("/datasets", {**raw, **origin, **used})
    await api.create("/datasets", {**raw, "name": "volume", "derived_from": [ids["dataset_id"]], "allow_duplicate": True})
    disk = await create_storage(api, f"Disk {mark}")
    place = {"dataset_id": ids["dataset_id"], "supply_id": disk, "access_protocol": "POSIX"}
    ids["distribution_id"] = await api.create("/distributions", {**content_of(mark), **place})
    captured = {"producing_asset_id": await create_camera(api, mark), "captured_at": "2026-10-06T09:12:00Z"}
    birth = {"dataset_id": ids["dataset_id"], "producing_run_id": origin["producing_run_id"], **captured}
    ids["acquisition_id"] = await api.create("/acquisitions", {**birth, "evidence": {"projection_count": 1500}})
    ids["attestation_id"] = await record_attestation(api, ids["distribution_id"])


async def create_edition_samples(api: Api, ids: dict[str, str], mark: str) -> None:
    ids["edition_id"] = await create_edition(api, ids["actor_id"], mark)
    await api.execute(f"/editions/{ids['edition_id']}/seal")


async def create_edition(api: Api, creator_id: str, mark: str, **fields: Any) -> str:
    """Register an edition of one Production dataset, which has a copy."""
    dataset_id = await api.create("/datasets", {"name": "scan_003.h5", **content_of(f"{mark} published")})
    await api.execute(f"/datasets/{dataset_id}/promote", {"reason": "checked"})
    place = {"dataset_id": dataset_id, "supply_id": await create_storage(api, f"Archive {mark}"), "access_protocol": "POSIX"}
    await api.create("/distributions", {**content_of(f"{mark} published"), **place})
    package = {"dataset_ids": [dataset_id], "creator_ids": [creator_id], "publisher_facility_code": "facility"}
    return await api.create("/editions", {"kind": "ROCrate", "title": f"Pellet {mark}", **package, **fields})


async def record_attestation(api: Api, distribution_id: str, content: bytes | None = None) -> str:
    """Record what reading a copy came to, as the worker does: these bytes, or none."""
    found = {"error_detail": "There is no such file."} if content is None else {"digest": sha256(content).hexdigest()}
    reading = ByteReading(verifier_kind="PosixChecksum", **found)
    command = CompleteAttestation(distribution_id=UUID(distribution_id), reading=reading)
    recorded = await api.runtime.commands.execute(command, Caller.system(new_id()))
    assert recorded.body is not None
    return str(recorded.body["attestation_id"])
