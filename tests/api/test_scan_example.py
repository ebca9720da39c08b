"""The worked example of scan ingest over REST, with a real worker: both layouts, and every refusal with its reason."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from tests.support.api.rest_beamline import beamline
from tests.support.databases import fresh_database
from tests.support.infrastructure.scan_files import write_data_exchange, write_nxtomo
from tests.support.service import Api
from tests.support.waiting import until
from tests.support.workflows.conduct_service import open_conduct_service

COMMANDED = {
    "rotation/num_angles": 1500,
    "flat_fields/num_flat_fields": 10,
    "flat_fields/flat_field_mode": "Both",
    "dark_fields/num_dark_fields": 20,
    "dark_fields/dark_field_mode": "End",
}


@dataclass(frozen=True)
class ScanSite:
    """A camera and a disk, and the directory whose files may be ingested."""

    api: Api
    root: Path
    camera_id: str
    disk_id: str

    def request(self, path: Path, **fields: Any) -> dict[str, Any]:
        place = {"locator": path.as_uri(), "producing_asset_id": self.camera_id, "supply_id": self.disk_id}
        return {**place, "access_protocol": "POSIX", **fields}

    async def ingest(self, path: Path, **fields: Any) -> httpx.Response:
        return await self.api.post("/scans/ingest", self.request(path, **fields))

    async def read(self, kind: str, id: str) -> dict[str, Any]:
        read: dict[str, Any] = (await self.api.get(f"/{kind}/{id}")).json()
        return read

    def scan(self, **fields: Any) -> Path:
        """A file of its own in the Data Exchange layout; no two of them have the same bytes."""
        return write_data_exchange(
            self.root / f"{uuid4()}.h5", **{"commanded": {**COMMANDED, "mark": str(uuid4())}, **fields}
        )


@pytest.fixture(scope="module")
async def site(
    postgres: EmbeddedPostgres, template: str, temporal: EmbeddedTemporal, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ScanSite]:
    root = tmp_path_factory.mktemp("data")
    roots = {"data_roots": (root,)}
    with fresh_database(postgres, template) as url:
        async with open_conduct_service(url, temporal.address, service=roots, **roots) as service:
            api = service.operator
            family = await api.create("/families", {"name": "Camera", "affordances": ["Capturing"]})
            device = {"name": "Camera", "tier": "Unit", "facility_code": "facility", "family_ids": [family]}
            disk = {"kind": "Storage", "name": "Analysis disk", "facility_code": "facility"}
            yield ScanSite(api, root, await api.create("/assets", device), await api.create("/supplies", disk))


async def test_a_scan_of_a_run_becomes_dataset_copy_and_acquisition(site: ScanSite) -> None:
    line = await beamline(site.api)
    run = await line.start_run(subject_id=line.subject_id)
    await site.api.execute(f"/runs/{run}/complete")
    path = site.scan()
    answer = await site.ingest(path, producing_run_id=run)
    assert answer.status_code == 201, answer.text
    ids = answer.json()
    assert ids.pop("unchecked") == ["frame_values", "angle_unit"]
    assert ids.pop("duplicate_of") is None
    assert set(ids) == {"dataset_id", "distribution_id", "acquisition_id"}
    digest = {"algorithm": "sha256", "value": sha256(path.read_bytes()).hexdigest()}
    profile = "https://doi.org/10.1107/S160057751401604X"
    described = {
        "uri": path.as_uri(),
        "checksum": digest,
        "byte_size": os.stat(path).st_size,
        "encoding": {"media_type": "application/x-hdf5", "conforms_to": [profile]},
    }
    dataset = await site.read("datasets", ids["dataset_id"])
    assert dataset.items() >= {**described, "name": path.name, "status": "Registered", "intent": "Trial"}.items()
    origin = {"producing_run_id": run, "producing_run_end_state": "Completed", "subject_id": line.subject_id}
    assert dataset.items() >= {**origin, "derived_from": [], "used_calibration_ids": []}.items()
    copied = await site.read("distributions", ids["distribution_id"])
    place = {"dataset_id": ids["dataset_id"], "supply_id": site.disk_id, "access_protocol": "POSIX"}
    assert copied.items() >= {**described, **place, "status": "Registered"}.items()
    acquired = await site.read("acquisitions", ids["acquisition_id"])
    born = {"dataset_id": ids["dataset_id"], "producing_asset_id": site.camera_id, "producing_run_id": run, "settings": {}}
    assert acquired.items() >= {**born, "captured_at": "2026-07-01T10:00:00Z"}.items()
    assert acquired["evidence"] == {
        "reader_kind": "DataExchange",
        "checksum_computer_kind": "PosixChecksum",
        "captured_at_source": "start_date",
        "projection_count": 1500,
        "flat_count": 20,
        "dark_count": 20,
        "invalid_count": 0,
        "commanded_projection_count": 1500,
        "commanded_flat_count": 20,
        "commanded_dark_count": 20,
        "dropped_frame_count": 0,
        "projection_angle_count": 1500,
        "projection_angle_first": 0.0,
        "projection_angle_last": 180.0,
        "start_date_raw": "2026-07-01T12:00:00+02:00",
        "unchecked": ["frame_values", "angle_unit"],
        "frames": {"path": "/exchange/data", "count": 1500, "shape": [2, 2], "dtype": "<u2"},
    }
    envelopes = []
    for kind in ("dataset", "distribution", "acquisition"):
        [event] = (await site.read(f"{kind}s", f"{ids[f'{kind}_id']}/history"))["items"]
        envelopes.append((event["command_name"], event["principal_id"], event["correlation_id"], event["causation_id"]))
    assert len(set(envelopes)) == 1
    assert envelopes[0][:2] == ("IngestScan", site.api.headers["X-Principal-Id"])
    promoted = await site.api.post(f"/datasets/{ids['dataset_id']}/promote", {"reason": "frame count and flats checked"})
    assert promoted.status_code == 204, promoted.text


async def test_an_nxtomo_file_without_a_run_has_no_subject(site: ScanSite) -> None:
    answer = await site.ingest(
        write_nxtomo(site.root / "scan_002.nx", start="2026-07-02T08:00:00"), captured_at="2026-07-02T08:00:00+02:00"
    )
    assert answer.status_code == 201, answer.text
    dataset = await site.read("datasets", answer.json()["dataset_id"])
    assert dataset["encoding"]["conforms_to"] == ["https://manual.nexusformat.org/classes/applications/NXtomo"]
    assert (dataset["name"], dataset["subject_id"], dataset["producing_run_id"]) == ("scan_002.nx", None, None)
    acquired = await site.read("acquisitions", answer.json()["acquisition_id"])
    evidence = acquired["evidence"]
    counts = [evidence[f"{kind}_count"] for kind in ("projection", "flat", "dark", "invalid", "projection_angle")]
    assert (counts, evidence["captured_at_source"]) == ([5, 3, 2, 1, 5], "operator")
    assert acquired["captured_at"] == "2026-07-02T06:00:00Z"
    assert not {"commanded_projection_count", "dropped_frame_count"} & set(evidence)


async def test_a_repeat_attaches_to_the_same_ids(site: ScanSite) -> None:
    request, key = site.request(site.scan()), {"Idempotency_Key": str(uuid4())}
    accepted = await site.api.post("/scans/ingest", {**request, "wait": 0}, **key)
    assert accepted.status_code in (201, 202), accepted.text
    answer = await site.api.post("/scans/ingest", {**request, "wait": 30}, **key)
    assert (answer.status_code, answer.headers["Idempotency-Replayed"]) == (201, "true")
    ids = answer.json()
    further = {"unchecked": ["frame_values", "angle_unit"], "duplicate_of": None}
    assert {**accepted.json(), **ids} == {**accepted.json(), **further}
    if work_id := accepted.json().get("work_id"):
        work = (await site.api.get(f"/work-items/{work_id}")).json()
        assert (work["state"], work["answer"]) == ("done", ids)


async def test_the_same_bytes_are_ingested_again_once_their_dataset_is_discarded(site: ScanSite) -> None:
    path = site.scan()
    first = (await site.ingest(path)).json()["dataset_id"]
    (copied := site.root / "copied.h5").write_bytes(path.read_bytes())
    again = await site.ingest(copied)
    assert (again.status_code, again.json()["code"]) == (409, "DatasetAlreadyIngestedError")
    assert again.json()["facts"] == {"dataset_id": first, "duplicate_of": first}
    twin = (await site.ingest(copied, allow_duplicate=True)).json()
    assert twin["duplicate_of"] == first
    known = (await site.api.get(f"/datasets/{first}")).json()
    same = {name: known[name] for name in ("name", "uri", "checksum", "byte_size", "encoding")}
    assert (await site.api.post("/datasets", same)).json()["code"] == "DatasetAlreadyIngestedError"
    await site.api.execute(f"/datasets/{twin['dataset_id']}/discard", {"reason": "the same"})
    await site.api.execute(f"/datasets/{first}/discard", {"reason": "wrong sample"})
    second = await site.ingest(copied)
    assert (second.status_code, second.json()["dataset_id"] != first) == (201, True)


async def test_of_two_simultaneous_ingests_one_is_refused_and_names_the_other(site: ScanSite) -> None:
    for _ in range(3):
        path = site.scan()
        answers = await asyncio.gather(*(site.ingest(path) for _ in range(4)))
        [made] = [answer.json()["dataset_id"] for answer in answers if answer.status_code == 201]
        refused = [answer.json() for answer in answers if answer.status_code == 409]
        assert [(one["code"], one["facts"]) for one in refused] == [
            ("DatasetAlreadyIngestedError", {"dataset_id": made, "duplicate_of": made})
        ] * 3


async def test_a_wrong_file_is_refused_with_its_reason(site: ScanSite, tmp_path: Path) -> None:
    text = site.root / "notes.h5"
    text.write_text("no HDF5 file")
    cases = [
        (text, {}, "unreadable"),
        (site.root / "missing.h5", {}, "unreadable"),
        (write_data_exchange(tmp_path / "outside.h5"), {}, "unreadable"),
        (write_nxtomo(site.root / "short.nx", frames=3), {}, "unrecognized"),
        (site.scan(angles=[]), {}, "structurally_incomplete"),
        (site.scan(projections=60, angles=[3.0 * number for number in range(59)]), {}, "structurally_incomplete"),
        (site.scan(unit="parrots"), {}, "structurally_incomplete"),
        (site.scan(), {"captured_at": "2026-07-01T12:00:00Z"}, "captured_at_ambiguous"),
        (site.scan(start="2026-07-01T12:00:00"), {}, "captured_at_missing"),
        (site.scan(start=None), {"locator": f"{site.root.as_uri()}/"}, "locator_missing_filename"),
    ]
    before = await count_events(site)
    for path, fields, reason in cases:
        answer = await site.ingest(path, **fields)
        assert (answer.status_code, answer.json()["code"], answer.json()["reason"]) == (400, "InvalidScanFileError", reason)
        assert str(site.root) not in answer.json()["detail"]
    assert await count_events(site) == before


async def count_events(site: ScanSite) -> int:
    async with await psycopg.AsyncConnection.connect(site.api.database_url) as connection:
        [count] = await (await connection.execute("SELECT count(*) FROM events")).fetchone() or [0]
    return int(count)


async def test_what_an_ingest_refers_to_is_checked_before_the_file(site: ScanSite) -> None:
    path, nobody = site.root / "missing.h5", str(uuid4())
    water = await site.api.create("/supplies", {"kind": "Water", "name": "Cooling", "facility_code": "facility"})
    stage = await site.api.create("/assets", {"name": "Stage", "tier": "Unit", "facility_code": "facility"})
    wrong = {"producing_asset_id": nobody, "supply_id": nobody, "producing_run_id": nobody}
    for change, status, code in (
        ({}, 404, "AcquisitionAssetNotFoundError"),
        ({"producing_asset_id": stage}, 404, "DistributionSupplyNotFoundError"),
        ({"supply_id": water}, 404, "ProducingRunNotFoundError"),
        ({"producing_run_id": None}, 409, "DistributionCannotRegisterOnNonStorageSupplyError"),
        ({"supply_id": site.disk_id}, 409, "AcquisitionCannotRecordWithoutCapturingError"),
        ({"producing_asset_id": site.camera_id}, 400, "InvalidScanFileError"),
    ):
        wrong.update(change)
        answer = await site.ingest(path, **wrong)
        assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_values_of_the_three_records_are_checked_after_the_file(site: ScanSite) -> None:
    year = datetime.now(UTC).year + 1
    for path, fields, code in (
        (site.scan(), {"access_protocol": "FTP"}, "InvalidAccessProtocolError"),
        (site.scan(start=f"{year}-12-01T12:00:00Z"), {}, "InvalidAcquisitionCapturedAtError"),
        (site.scan(start=f"{year}-12-01T12:00:00Z"), {"captured_at": "2026-07-01T12:00:00Z"}, "InvalidScanFileError"),
    ):
        answer = await site.ingest(path, **fields)
        assert (answer.status_code, answer.json()["code"]) == (400, code), answer.text


async def test_an_ingest_tells_how_it_ended_after_the_caller_has_gone(site: ScanSite) -> None:
    accepted = await site.ingest(site.scan(), wait=0)
    assert accepted.status_code in (201, 202)
    refused = await site.ingest(site.scan(start=None), wait=0)
    work_id = refused.json().get("work_id")
    if work_id is None:
        assert refused.json()["reason"] == "captured_at_missing"
        return

    async def ended_work() -> dict[str, Any] | None:
        work: dict[str, Any] = (await site.api.get(f"/work-items/{work_id}")).json()
        return None if work["state"] == "running" else work

    work = await until(ended_work)
    assert (work["state"], work["error"]["reason"]) == ("failed", "captured_at_missing")
