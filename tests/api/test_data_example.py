"""The worked example of data products over REST: a scan, its copies, a reconstruction, and a disk that dies."""

from typing import Any
from uuid import uuid4

import pytest

from tests.support.api.data_products import (
    completed_run,
    register_copy,
    register_dataset,
    revisions_of_a_centre,
    verify_copies,
)
from tests.support.api.example_reads import cause, payloads, refusal
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.api.sample_parts.data import content_of, create_camera, create_storage
from tests.support.service import Api

WHY = {"reason": "frame count and flats checked"}


@pytest.fixture
async def line(api: Api) -> Beamline:
    return await beamline(api)


async def test_a_scan_is_kept_promoted_reconstructed_and_outlives_a_disk(line: Beamline) -> None:
    api, mark = line.api, uuid4().hex
    disk, archive = await create_storage(api, "Analysis disk"), await create_storage(api, "Archive")
    scan_run = await completed_run(line, subject_id=line.subject_id)
    content = content_of(mark)
    raw = await register_dataset(api, mark, producing_run_id=scan_run, subject_id=line.subject_id)
    d1 = await register_copy(api, raw, disk)
    camera = await create_camera(api, mark)
    evidence = {"projection_count": 1500, "flat_count": 20, "dark_count": 20, "dropped_frame_count": 0}
    birth = {"dataset_id": raw, "producing_asset_id": camera, "producing_run_id": scan_run, "evidence": evidence}
    a1 = await api.create("/acquisitions", {**birth, "captured_at": "2026-07-01T10:15:00+02:00"})
    captured = (await api.get(f"/acquisitions/{a1}")).json()
    assert (captured["captured_at"], captured["status"]) == ("2026-07-01T08:15:00Z", "Recorded")
    assert captured["recorded_at"] > captured["captured_at"]
    await verify_copies(api, d1)

    s3 = {"uri": "s3://archive/pellet-b12/scan_001.h5", "access_protocol": "S3"}
    d2 = await register_copy(api, raw, archive, **s3)
    assert (await api.get(f"/distributions/{d2}")).json()["status"] == "Registered"
    again = {**content, "dataset_id": raw, "supply_id": archive, **s3}
    assert refusal(await api.post("/distributions", again)) == (409, "DistributionAlreadyExistsError")

    promoted = await api.post(f"/datasets/{raw}/promote", WHY)
    assert (promoted.status_code, promoted.content) == (204, b"")
    assert cause(await api.post(f"/datasets/{raw}/promote", WHY)) == (409, "DatasetCannotPromoteError", "production")

    _, (r2, r9) = await revisions_of_a_centre(api, 2)
    recon_run = await completed_run(line, name="Reconstruction", pinned_calibration_ids=[r2])
    volume: dict[str, Any] = {"name": "pellet b12 volume", **content_of(f"{mark} volume")}
    volume |= {"producing_run_id": recon_run, "derived_from": [raw]}
    rec = await api.create("/datasets", {**volume, "used_calibration_ids": [r2]})
    foreign = await api.post("/datasets", {**volume, "used_calibration_ids": [r9]})
    assert cause(foreign) == (409, "DatasetCalibrationsNotSubsetError", "not_pinned")
    assert foreign.json()["facts"] == {"revision_ids": [r9]}
    await api.execute(f"/datasets/{rec}/promote", WHY)

    await api.execute(f"/distributions/{d1}/mark-stale", {"reason": "disk array lost"})
    lost = await api.post(f"/distributions/{d1}/discard", {"reason": "disk array lost"})
    assert cause(lost) == (409, "DistributionCannotDiscardLastVerifiedError", "last_verified")
    await verify_copies(api, d2)
    await api.execute(f"/distributions/{d1}/discard", {"reason": "disk array lost"})
    shown = (await api.get(f"/distributions/{d1}")).json()
    assert (shown["status"], shown["stale_reason"], shown["discard_reason"]) == ("Discarded", *["disk array lost"] * 2)
    assert [kind for kind, _ in await payloads(api, f"/distributions/{d1}")] == [
        *("DistributionRegistered", "DistributionVerified", "DistributionMarkedStale", "DistributionDiscarded")
    ]

    position = await api.execute(f"/datasets/{rec}/assign-external-id", {"external_id": "10.0000/ds-b12"})
    shown = (await api.get(f"/datasets/{raw}")).json()
    assert shown == {
        "id": raw,
        "dataset_id": raw,
        "created_at": shown["created_at"],
        "name": "scan_001.h5",
        **content,
        "producing_run_id": scan_run,
        "producing_procedure_id": None,
        "producing_run_end_state": "Completed",
        "producing_actuation_kind": None,
        "subject_id": line.subject_id,
        "derived_from": [],
        "used_calibration_ids": [],
        "status": "Registered",
        "intent": "Production",
        "external_id": None,
        "external_id_draft": False,
        "external_id_scheme": None,
    }
    for asked in ({"derived_from": raw}, {"used_calibration_id": r2}, {"producing_run_id": recon_run}):
        [row] = (await api.get("/datasets", **asked, min_position=position)).json()["items"]
        assert (row["dataset_id"], row["intent"], row["used_calibration_ids"]) == (rec, "Production", [r2])


async def test_a_dataset_of_a_run_under_way_is_promoted_when_the_run_is_over(line: Beamline) -> None:
    api, run = line.api, await line.start_run()
    id = await register_dataset(api, producing_run_id=run)
    early = await api.post(f"/datasets/{id}/promote", WHY)
    assert cause(early) == (409, "DatasetCannotPromoteError", "run_not_good")
    assert early.json()["facts"] == {"run_id": run, "run_status": "Running"}
    await api.execute(f"/runs/{run}/stop", {"reason": "enough"})
    await api.execute(f"/datasets/{id}/promote", WHY)
    assert (await api.get(f"/datasets/{id}")).json()["producing_run_end_state"] == "Running"


async def test_a_run_pins_only_revisions_that_exist(line: Beamline) -> None:
    missing = str(uuid4())
    for path in ("/runs", "/runs/preflight"):
        asked = {"name": "Scan", "plan_id": line.plan_id, "pinned_calibration_ids": [missing]}
        refused = await line.api.post(path, asked)
        assert refusal(refused) == (404, "CalibrationRevisionNotFoundError")
        assert refused.json()["facts"] == {"missing_ids": [missing]}


async def test_what_used_a_replaced_value_is_listed_with_all_that_was_derived_from_it(line: Beamline) -> None:
    api = line.api
    calibration_id, [r1, r2] = await revisions_of_a_centre(api, 2)
    path = f"/calibrations/{calibration_id}/at-risk-results"
    assert (await api.get(path)).json() == {"items": [], "next_cursor": None}
    run = await completed_run(line, pinned_calibration_ids=[r1])
    volume = await register_dataset(api, name="volume", producing_run_id=run, used_calibration_ids=[r1])
    idle = await register_dataset(api, producing_run_id=run)
    segmented = await register_dataset(api, name="segmentation", derived_from=[volume, idle])
    measured = await api.post("/datasets", {"name": "areas", **content_of("areas"), "derived_from": [segmented]})
    areas, position = measured.json()["dataset_id"], measured.headers["X-Baton-Position"]

    [used, *derived] = (await api.get(path, min_position=position)).json()["items"]
    better = (await api.get(f"/calibrations/{calibration_id}")).json()["revisions"][1]
    assert used == {
        "dataset_id": volume,
        "name": "volume",
        "intent": "Trial",
        "producing_run_id": run,
        "subject_id": None,
        "revision_id": r1,
        "exposure": "Used",
        "superseded_by_revision_id": r2,
        "superseded_by_status": "Verified",
        "superseded_at": better["established_at"],
        "at_risk": True,
    }
    assert [(row["dataset_id"], row["exposure"], row["revision_id"]) for row in derived] == [
        (segmented, "Derived", r1),
        (areas, "Derived", r1),
    ]
    found, asked = [], {"limit": 1, "order": "desc"}
    while True:
        page = (await api.get(path, **asked)).json()
        found += [row["dataset_id"] for row in page["items"]]
        if page["next_cursor"] is None:
            break
        asked["cursor"] = page["next_cursor"]
    assert found == [volume, areas, segmented]
    assert (await api.get(path, revision_id=r2)).json()["items"] == []
    assert refusal(await api.get(path, revision_id=str(uuid4()))) == (404, "CalibrationRevisionNotFoundError")
