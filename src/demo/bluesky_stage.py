"""The stage in which a RunEngine scans beside the service: witnessed, its frames registered, and refused by its gate."""

from time import monotonic
from typing import Any

from baton.demo.beamline_records import PLAN, SETTINGS
from baton.demo.bluesky_scan import GATE, WITNESS, BlueskyScan, missing_packages
from baton.demo.night import Night
from baton.demo.staff import WAIT_SECONDS, StageError, wait_for

SAMPLE = "Alloy bar 8"
[HUTCH] = SETTINGS["MONITORED_ENCLOSURES"]
TITLE = "A RunEngine scans, is seen, and is refused once the hutch is open"


def witness_scan(night: Night) -> None:
    """See a scan of a RunEngine as it happens, its frames as datasets, and the same scan refused by its gate."""
    if missing := missing_packages():
        night.say(f"left out: it needs {', '.join(missing)}, which this environment does not have")
        return
    processes = night.processes
    token = night.staff.witness_token
    scan = BlueskyScan(processes.directory / "bluesky", processes.data, processes.url, token)
    follow_scan(night, scan)
    refuse_scan(night, scan)


def follow_scan(night: Night, scan: BlueskyScan) -> None:
    """Start the scan with the witness in it, and follow it on record from its beginning to its datasets."""
    scientist = night.scientist
    with scan.start(WITNESS, PLAN, SAMPLE) as engine:
        row = scientist.wait_for_row("list_runs", witnessed=True, status="Running")
        begun = monotonic()
        seen = wait_for(lambda: scientist.list_run_channels(row.run_id).items, "no reading of the scan comes")
        night.say(f"{row.name} is on record while it runs: {seen[0].channel_name} is at {seen[0].latest_value:g}")
        _, faults = engine.communicate(timeout=WAIT_SECONDS)
    if engine.returncode:
        raise StageError(f"the scan failed: {faults.strip()[-500:]}")
    run = scientist.runs[row.run_id]
    night.wait_for_status(lambda: run.get().status, "Completed", "the end of the scan is not recorded")
    night.say(f"it ended where it ran, and on record {monotonic() - begun:.1f} s after its first reading")

    def find_datasets() -> list[Any]:
        return list(scientist.every("list_datasets", producing_run_id=row.run_id))

    datasets = wait_for(find_datasets, "the file of the scan is no dataset")
    acquired = scientist.wait_for_row("list_acquisitions", producing_run_id=row.run_id)
    camera = scientist.get_asset(acquired.producing_asset_id).name
    frames = acquired.evidence["data_keys"]["camera"]
    night.say(f"its {frames['frames_found']} frames are a dataset of {camera}: {datasets[0].name}, {frames['path']}")


def refuse_scan(night: Night, scan: BlueskyScan) -> None:
    """Open the hutch, and see the scan with the gate in it refused before it begins."""
    night.processes.put("PSS:B:SEARCH", 0)
    hutch = night.scientist.enclosures[night.ids.hutch_id]
    night.wait_for_status(lambda: hutch.get().permit_status, "NotPermitted", "the hutch is still permitted")
    with scan.start(GATE, PLAN, SAMPLE) as engine:
        _, faults = engine.communicate(timeout=WAIT_SECONDS)
    said = [line for line in faults.splitlines() if "BatonGateClosed" in line]
    if not engine.returncode or not said or HUTCH not in said[-1]:
        raise StageError(f"the scan should be refused by its gate; it said {faults.strip()[-500:]!r}")
    night.say(f"the hutch is open, and the same scan is refused: {said[-1].partition(': ')[2]}")
