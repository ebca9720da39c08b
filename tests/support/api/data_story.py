"""The origin of a measured volume over REST: an alignment, a calibration, a run with a caution and a decision behind it, and
what was captured, computed, copied and published; one result is retracted and one discarded."""

from dataclasses import dataclass
from typing import Any

from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.service import Api


@dataclass(frozen=True)
class DataStory:
    """The ids of everything that the volume's provenance must show, by the name it has in the story."""

    api: Api
    line: Beamline
    ids: dict[str, str]
    position: int

    def name_of(self, id: str) -> str:
        return next((name for name, known in self.ids.items() if known == id), id)


def content(name: str) -> dict[str, Any]:
    digest = {"algorithm": "sha256", "value": name.encode().hex().ljust(64, "0")[:64]}
    place = f"file:///data/{name.replace(' ', '-')}.h5"
    return {"uri": place, "checksum": digest, "byte_size": 4096, "encoding": {"media_type": "application/x-hdf5"}}


async def register_dataset(api: Api, name: str, **origin: Any) -> str:
    return await api.create("/datasets", {"name": name, **content(name), **origin})


async def calibrate(api: Api, line: Beamline, ids: dict[str, str]) -> None:
    """Align the stage by a procedure, and keep the rotation centre it measured."""
    alignment = {"name": "Rotation alignment", "kind": "alignment", "target_asset_ids": [line.rotary_id]}
    ids["alignment"] = await api.create("/procedures", alignment)
    await api.execute(f"/procedures/{ids['alignment']}/start")
    await api.execute(f"/procedures/{ids['alignment']}/complete")
    centre = {"target_id": line.rotary_id, "quantity": "rotation_center"}
    ids["calibration"] = await api.create(
        "/calibrations", {**centre, "operating_point": {"energy": 25, "optics_config": "5x"}}
    )
    measured = {"value": {"center": 1024.5}, "status": "Provisional"}
    source = {"kind": "Measured", "procedure_id": ids["alignment"]}
    ids["centre"] = await api.create(f"/calibrations/{ids['calibration']}/revisions", {**measured, "source": source})


async def measure(api: Api, line: Beamline, ids: dict[str, str]) -> None:
    """Run the plan past a caution, as somebody decided, and register what the camera captured."""
    caution = {
        "target": {"kind": "Asset", "id": line.rotary_id},
        "category": "OperationalWindow",
        "severity": "Caution",
        "text": "Rotation drifts in the first ten minutes",
        "workaround": "Wait",
        "tags": [],
    }
    ids["caution"] = await api.create("/cautions", caution)
    ids["creator"] = await api.create("/actors", {"name": "Mira Okafor"})
    decided = {"decided_by": ids["creator"], "context": "sample_choice", "choice": "measure the second bar"}
    ids["decision"] = await api.create("/decisions", decided)
    pins = {"pinned_calibration_ids": [ids["centre"]], "decided_by_decision_id": ids["decision"]}
    ids["run"] = await line.start_run(subject_id=line.subject_id, **pins)
    await api.execute(f"/runs/{ids['run']}/complete")
    origin = {"producing_run_id": ids["run"], "subject_id": line.subject_id}
    ids["raw"] = await register_dataset(api, "raw projections", **origin, used_calibration_ids=[ids["centre"]])
    captured = {"captured_at": "2026-03-02T10:00:00Z", "producing_run_id": ids["run"]}
    born = {"dataset_id": ids["raw"], "producing_asset_id": line.camera_id, **captured}
    ids["acquisition"] = await api.create("/acquisitions", born)


async def publish(api: Api, ids: dict[str, str]) -> None:
    """Copy the volume, trust it and what it comes from, and put it into an edition."""
    store = {"kind": "Storage", "name": "Archive", "facility_code": "facility"}
    place = {"dataset_id": ids["volume"], "supply_id": await api.create("/supplies", store)}
    ids["copy"] = await api.create("/distributions", {**place, **content("volume"), "access_protocol": "POSIX"})
    for name in ("raw", "volume"):
        await api.execute(f"/datasets/{ids[name]}/promote", {"reason": "looks right"})
    edition = {"kind": "ROCrate", "title": "Fatigue of an alloy bar", "dataset_ids": [ids["volume"]]}
    ids["edition"] = await api.create("/editions", {**edition, "creator_ids": [ids["creator"]]})


async def tell_data_story(api: Api) -> DataStory:
    line = await beamline(api)
    family = await api.create("/families", {"name": "Cameras", "affordances": ["Capturing"]})
    await api.execute(f"/assets/{line.camera_id}/add-family", {"family_id": family})
    ids: dict[str, str] = {"camera": line.camera_id, "plan": line.plan_id, "subject": line.subject_id}
    await calibrate(api, line, ids)
    await measure(api, line, ids)
    ids["volume"] = await register_dataset(api, "volume", derived_from=[ids["raw"]])
    ids["segmentation"] = await register_dataset(api, "segmentation", derived_from=[ids["volume"], ids["raw"]])
    ids["failed"] = await register_dataset(api, "failed <segmentation> & more", derived_from=[ids["volume"]])
    await publish(api, ids)
    better = {"value": {"center": 1024.7}, "status": "Verified", "supersedes_revision_id": ids["centre"]}
    source = {"kind": "Computed", "dataset_id": ids["raw"]}
    ids["better centre"] = await api.create(f"/calibrations/{ids['calibration']}/revisions", {**better, "source": source})
    await api.execute(f"/datasets/{ids['volume']}/demote", {"reason": "wrong centre"})
    position = await api.execute(f"/datasets/{ids['failed']}/discard", {"reason": "empty"})
    return DataStory(api, line, ids, position)
