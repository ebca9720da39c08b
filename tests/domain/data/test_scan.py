"""What a scan file becomes once it was read, and what is refused on the way there."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from baton.domain.data.acquisition import Acquisition
from baton.domain.data.dataset import Dataset, DiscardDataset
from baton.domain.data.distribution import Distribution
from baton.domain.data.scan import IngestScan, RecordScan, ScanDescription, start_time
from baton.domain.shared.tasks import Task
from tests.support.domain.assets import root
from tests.support.domain.datasets import data_world, registered_dataset, run_with, storage
from tests.support.domain.lifecycles.data import capture_fields
from tests.support.domain.world import START, World, expect_refusal, new_id
from tests.support.tables import for_each

LOCATOR = "file:///data/2026-07/pellet%20b12/scan_001.h5"
DIGEST = "ab" * 32
CAPTURED = "2026-07-01T12:00:00+02:00"
DESCRIPTION: dict[str, Any] = {
    "layout": "DataExchange",
    "projection_count": 1500,
    "flat_count": 20,
    "dark_count": 0,
    "invalid_count": 0,
    "projection_angle_count": 1500,
    "projection_angle_first": 0.0,
    "projection_angle_last": 180.0,
    "commanded_projection_count": 1500,
    "start_date_raw": CAPTURED,
}


@pytest.fixture
def world() -> World:
    return data_world()


@pytest.fixture
def fields(world: World) -> dict[str, Any]:
    camera = capture_fields(world)["producing_asset_id"]
    return {"locator": LOCATOR, "producing_asset_id": camera, "supply_id": storage(world), "access_protocol": "POSIX"}


def record(world: World, fields: dict[str, Any], said: dict[str, Any] | None = None, digest: str = DIGEST) -> RecordScan:
    read = {"description": ScanDescription(**(said or DESCRIPTION)), "digest": digest, "byte_size": 7}
    return RecordScan(**fields, distribution_id=new_id(), acquisition_id=new_id(), **read)


def evidence_of(world: World, fields: dict[str, Any], **said: Any) -> dict[str, Any]:
    told = {name: value for name, value in {**DESCRIPTION, **said}.items() if value is not None}
    command = record(world, fields, told, digest=new_id().hex * 2)
    world.when(command, opening=new_id())
    acquired: Acquisition = world.state(Acquisition, command.acquisition_id)
    return acquired.evidence


def test_a_file_becomes_a_dataset_a_copy_and_an_acquisition(world: World, fields: dict[str, Any]) -> None:
    run, id = run_with(world), new_id()
    command = record(world, {**fields, "producing_run_id": run})
    world.when(command, opening=id)
    dataset: Dataset = world.state(Dataset, id)
    assert (dataset.name, dataset.uri, dataset.byte_size) == ("scan_001.h5", LOCATOR, 7)
    assert (dataset.checksum.algorithm, dataset.checksum.value) == ("sha256", DIGEST)
    assert dataset.encoding.media_type == "application/x-hdf5"
    assert dataset.encoding.conforms_to == {"https://doi.org/10.1107/S160057751401604X"}
    assert (dataset.producing_run_id, dataset.producing_run_end_state, dataset.intent) == (run, "Running", "Trial")
    assert (dataset.derived_from, dataset.used_calibration_ids) == (frozenset(), frozenset())
    copied: Distribution = world.state(Distribution, command.distribution_id)
    assert (copied.dataset_id, copied.supply_id, copied.access_protocol) == (id, fields["supply_id"], "POSIX")
    assert (copied.uri, copied.checksum, copied.byte_size) == (dataset.uri, dataset.checksum, dataset.byte_size)
    acquired: Acquisition = world.state(Acquisition, command.acquisition_id)
    assert (acquired.dataset_id, acquired.producing_asset_id) == (id, fields["producing_asset_id"])
    assert (acquired.producing_run_id, acquired.settings) == (run, {})
    assert acquired.captured_at == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert acquired.evidence == {
        "reader_kind": "DataExchange",
        "checksum_computer_kind": "PosixChecksum",
        "captured_at_source": "start_date",
        "projection_count": 1500,
        "flat_count": 20,
        "dark_count": 0,
        "invalid_count": 0,
        "projection_angle_count": 1500,
        "projection_angle_first": 0.0,
        "projection_angle_last": 180.0,
        "commanded_projection_count": 1500,
        "dropped_frame_count": 0,
        "start_date_raw": CAPTURED,
    }


def test_what_the_file_does_not_tell_has_no_key(world: World, fields: dict[str, Any]) -> None:
    known = evidence_of(world, fields, commanded_projection_count=1507, commanded_flat_count=20)
    assert (known["dropped_frame_count"], known["commanded_flat_count"]) == (7, 20)
    assert "commanded_dark_count" not in known
    more_than_asked = evidence_of(world, fields, commanded_projection_count=1499)
    assert more_than_asked["commanded_projection_count"] == 1499
    assert "dropped_frame_count" not in more_than_asked
    assert "dropped_frame_count" not in evidence_of(world, fields, commanded_projection_count=None)
    measured = evidence_of(world, fields, quantities={"energy": {"value": 25.0, "unit": "keV"}})
    assert measured["energy"] == {"value": 25.0, "unit": "keV"}
    unclear = evidence_of(world, fields, unchecked=("frame_values", "energy"))
    assert unclear["unchecked"] == ["frame_values", "energy"]


def test_a_run_hands_its_subject_on(world: World, fields: dict[str, Any]) -> None:
    subject, run, id = new_id(), run_with(world), new_id()
    [started] = world.streams["Run", run]
    world.streams["Run", run] = []
    world.given(run, started.model_copy(update={"subject_id": subject}))
    world.when(record(world, {**fields, "producing_run_id": run}), opening=id)
    assert world.state(Dataset, id).subject_id == subject


@for_each(
    ("text", "captured_at"),
    [
        (CAPTURED, datetime(2026, 7, 1, 10, tzinfo=UTC)),
        (" 2026-07-01T10:00:00Z ", datetime(2026, 7, 1, 10, tzinfo=UTC)),
        ("2026-07-01 05:00:00-0500", datetime(2026, 7, 1, 10, tzinfo=UTC)),
        ("2026-07-01T10:00:00", None),
        ("2026-07-01", None),
        ("1782900000", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("yesterday", None),
        (None, None),
    ],
)
def test_a_start_time_counts_only_with_its_offset(text: str | None, captured_at: datetime | None) -> None:
    assert start_time(text) == captured_at


def test_the_caller_says_when_only_where_the_file_does_not(world: World, fields: dict[str, Any]) -> None:
    asked = {**fields, "captured_at": START - timedelta(days=1)}
    with expect_refusal("InvalidScanFileError", "captured_at_ambiguous"):
        world.when(record(world, asked))
    vague = {**DESCRIPTION, "start_date_raw": "2026-07-01T12:00:00"}
    with expect_refusal("InvalidScanFileError", "captured_at_missing"):
        world.when(record(world, fields, vague))
    command = record(world, asked, vague)
    world.when(command, opening=new_id())
    acquired: Acquisition = world.state(Acquisition, command.acquisition_id)
    assert (acquired.captured_at, acquired.evidence["captured_at_source"]) == (asked["captured_at"], "operator")
    assert acquired.evidence["start_date_raw"] == "2026-07-01T12:00:00"


def test_the_same_bytes_are_ingested_again_only_once_their_dataset_is_discarded(
    world: World, fields: dict[str, Any]
) -> None:
    first, second = new_id(), new_id()
    world.when(record(world, fields), opening=first)
    with expect_refusal("DatasetAlreadyIngestedError", "already_ingested") as caught:
        world.when(record(world, {**fields, "locator": "file:///data/copy.h5"}), opening=second)
    assert caught.value.facts == {"dataset_id": str(first), "duplicate_of": str(first)}
    world.when(DiscardDataset(reason="wrong sample"), on=first)
    world.when(record(world, fields), opening=second)
    world.when(record(world, {**fields, "locator": "file:///data/copy.h5", "allow_duplicate": True}))


@for_each(
    ("fields_given", "said", "code"),
    [
        ({"access_protocol": "FTP"}, {}, "InvalidAccessProtocolError"),
        ({"locator": f"file:///data/{'x' * 201}"}, {}, "InvalidDatasetNameError"),
        ({}, {"start_date_raw": "2126-07-01T12:00:00+02:00"}, "InvalidAcquisitionCapturedAtError"),
        ({}, {"quantities": {"energy\0": {"value": 1, "unit": "keV"}}}, "InvalidAcquisitionEvidenceError"),
    ],
)
def test_the_rules_of_the_three_records_come_last(fields_given: dict[str, Any], said: dict[str, Any], code: str) -> None:
    world = data_world()
    camera = capture_fields(world)["producing_asset_id"]
    fields = {"locator": LOCATOR, "producing_asset_id": camera, "supply_id": storage(world), "access_protocol": "POSIX"}
    command = record(world, {**fields, **fields_given}, {**DESCRIPTION, **said})
    with expect_refusal(code):
        world.when(command)
    registered_dataset(world, checksum={"algorithm": "sha256", "value": DIGEST})
    with expect_refusal("DatasetAlreadyIngestedError"):
        world.when(command)


def test_an_ingest_begins_with_its_ids(world: World, fields: dict[str, Any]) -> None:
    assert world.when(IngestScan(**fields, wait=0)) == []
    [task] = [row for row in world.records.values() if isinstance(row, Task)]
    assert world.answer == {**task.ids, "work_id": str(task.work_id)}
    assert set(task.ids) == {"dataset_id", "distribution_id", "acquisition_id"}
    assert len({UUID(id) for id in task.ids.values()}) == 3
    assert all(UUID(id).version == 7 for id in task.ids.values())
    assert (task.kind, task.request["locator"], "wait" in task.request) == ("scan-ingest", LOCATOR, False)
    json.dumps(task.request)


def test_asset_supply_and_run_must_exist_then_fit_before_the_file_is_looked_at(world: World, fields: dict[str, Any]) -> None:
    nobody, rotary = new_id(), root(world, name="Rotary stage")
    water = storage(world, name="Cooling water", kind="Water")
    wrong = {
        **fields,
        "locator": "file:///data/",
        "producing_asset_id": nobody,
        "supply_id": nobody,
        "producing_run_id": nobody,
    }
    for name, right, code in (
        ("producing_asset_id", rotary, "AcquisitionAssetNotFoundError"),
        ("supply_id", water, "DistributionSupplyNotFoundError"),
        ("producing_run_id", None, "ProducingRunNotFoundError"),
        ("supply_id", fields["supply_id"], "DistributionCannotRegisterOnNonStorageSupplyError"),
        ("producing_asset_id", fields["producing_asset_id"], "AcquisitionCannotRecordWithoutCapturingError"),
        ("locator", LOCATOR, "InvalidScanFileError"),
    ):
        with expect_refusal(code):
            world.when(IngestScan(**wrong))
        if name != "locator":
            with expect_refusal(code):
                world.when(record(world, wrong))
        wrong[name] = right
    world.when(IngestScan(**wrong))


@for_each("locator", ["file:///data/", "file:///data/..", "file:///", "file:", "file:///data/%20", "file:///data/?x"])
def test_a_locator_that_names_a_folder_is_refused(locator: str) -> None:
    world = data_world()
    camera = capture_fields(world)["producing_asset_id"]
    fields = {"producing_asset_id": camera, "supply_id": storage(world), "access_protocol": "POSIX"}
    with expect_refusal("InvalidScanFileError", "locator_missing_filename"):
        world.when(IngestScan(locator=locator, **fields))
