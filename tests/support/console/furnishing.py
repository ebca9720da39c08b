"""What a record holds after some weeks of work, so that every page has something to show."""

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from math import sin
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy
from uuid_utils.compat import uuid7

from baton.client import Baton
from tests.support.infrastructure.pictures import write_array

APPROVAL = {"role": "BeamlineScientist", "decision": "Approved"}


def furnish(client: Baton, run_id: UUID, files: Path) -> None:
    """Put on record what belongs to a run and to a facility: data, cautions, calibrations, forms in review, a calendar."""
    tomography, rotary, camera = (client.assets[name].id for name in ("Tomography", "Rotary", "Camera"))
    describe_run(client, run_id)
    describe_data(client, run_id, files)
    client.register_caution(
        target={"kind": "Asset", "id": rotary},
        category="OperationalWindow",
        severity="Caution",
        text="Backlash above 0.4 degree since the belt was changed.",
        workaround="Approach from below.",
        tags=["rotation"],
    )
    me = client.get_my_access().principal_id
    calibration = client.define_calibration(
        target_id=camera, quantity="rotation_center", operating_point={"energy": 25, "optics_config": "5x"}
    ).calibration_id
    asserted = {"kind": "Asserted", "asserted_by": me}
    client.append_calibration_revision(calibration, value={"center": 1024.5}, status="Provisional", source=asserted)
    template = next(client.every("list_clearance_templates")).template_id
    form = {"template_id": template, "facility_code": "facility", "bindings": [{"kind": "Asset", "id": tomography}]}
    in_review = client.register_clearance(title="Cryostream at 100 K", risk_band="Yellow", **form).clearance_id
    client.submit_clearance(in_review)
    client.start_clearance_review(in_review, first_reviewer_role="BeamlineScientist")
    client.append_clearance_review_step(in_review, step_index=0, **APPROVAL)
    client.register_clearance(title="Laser alignment", **form)
    target = {"kind": "ConductRecipe", "recipe_id": client.recipes["Wait, then acquire"].id, "name": "Darks {fired_at}"}
    for name, cron in (("Nightly darks", "0 2 * * *"), ("Morning alignment", "30 6 * * 1-5")):
        client.define_schedule(name=name, calendar={"cron": [cron]}, time_zone="Europe/Berlin", target=target)
    client.enter_asset_maintenance(camera)
    client.exit_asset_maintenance(camera)


def describe_run(client: Baton, run_id: UUID) -> None:
    """Put measurements, notes and a decision about a run on record."""
    begun = datetime.now(UTC) - timedelta(minutes=4)
    sampled = {"channel_name": "ring_current", "units": "mA", "sampling_procedure": "monitor"}
    readings = [
        {**sampled, "event_id": uuid7(), "value": 102.4 + sin(i / 7), "sampled_at": begun + timedelta(seconds=i)}
        for i in range(120)
    ]
    client.append_observations(run_id, entries=readings)
    client.append_run_logbook_entries(
        run_id, entries=[{"event_id": uuid7(), "text": "The bar slipped by 20 um at the end."}]
    )
    client.register_decision(
        decided_by=client.get_my_access().principal_id,
        context="RunAbort",
        choice="go on",
        reasoning="The slip is below a pixel.",
        confidence=0.9,
        confidence_source="human",
        alternatives=["remount"],
    )


def describe_data(client: Baton, run_id: UUID, files: Path) -> None:
    """Put a scan, what was made of it, and a copy of it on record; the files are there."""
    storage = client.register_supply(kind="Storage", name="Disk of beamline 7", facility_code="facility").supply_id
    client.mark_supply_available(storage, reason="mounted")
    taken = describe_file(write_array(files / "scan_0042.h5", [bar_from_the_side(angle) for angle in range(3)]))
    scan = client.register_dataset(name="scan_0042.h5", producing_run_id=run_id, **taken).dataset_id
    camera, captured_at = client.assets["Camera"].id, datetime.now(UTC)
    client.record_acquisition(dataset_id=scan, producing_asset_id=camera, captured_at=captured_at)
    made = describe_file(write_array(files / "slice_0042.h5", bar_cut_through()))
    client.register_dataset(name="slice_0042.h5", derived_from=[scan], producing_run_id=run_id, **made)
    copy = {**taken, "uri": "https://archive.lumen.example/scan_0042.h5"}
    client.register_distribution(dataset_id=scan, supply_id=storage, access_protocol="HTTPS", **copy)


def describe_file(path: Path) -> dict[str, Any]:
    """Return what a dataset says of its file."""
    content = path.read_bytes()
    checksum = {"algorithm": "sha256", "value": sha256(content).hexdigest()}
    form = {"uri": path.as_uri(), "checksum": checksum, "byte_size": len(content)}
    return {**form, "encoding": {"media_type": "application/x-hdf5"}}


def bar_from_the_side(angle: int) -> Any:
    """Return a projection of a bar with pores, in the shadow of which less light arrives."""
    rows, columns = numpy.mgrid[0:240, 0:320]
    shadow = numpy.sqrt(numpy.clip(100**2 - (columns - 160) ** 2, 0, None)) / 50
    for row, column, size in ((60, 120, 22), (130, 190, 30), (190, 140, 16)):
        shadow -= numpy.sqrt(numpy.clip(size**2 - (rows - row) ** 2 - (columns - column - 4 * angle) ** 2, 0, None)) / 50
    return numpy.exp(-shadow)


def bar_cut_through() -> Any:
    """Return a slice of the bar: brighter where it is, dark where the pores are."""
    rows, columns = numpy.mgrid[0:240, 0:240]
    slice = ((rows - 120) ** 2 + (columns - 120) ** 2 < 100**2).astype(float)
    for row, column, size in ((80, 100, 18), (130, 160, 26), (170, 90, 12)):
        slice[(rows - row) ** 2 + (columns - column) ** 2 < size**2] = 0.2
    return slice + numpy.random.default_rng(7).normal(0, 0.05, slice.shape)
