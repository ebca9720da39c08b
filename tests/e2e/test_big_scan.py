"""A scan file of five gigabytes on the whole stack, in bounded memory; only with BIG_SCAN=1, since it takes minutes.

`BIG_SCAN=1 BIG_SCAN_DIRECTORY=/scratch .venv/bin/python -m pytest -s tests/e2e/test_big_scan.py`
"""

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy
import psutil
import pytest

from tests.support.stack import Stack, eventually, running_stack

FRAMES, SIDE = 2560, 1024
"""Frames of two bytes a pixel, so many that the file has more than five gigabytes."""
GROWTH = 64 << 20
"""Bytes by which a worker may grow while it ingests a file, however large that is."""


def write_scan(path: Path) -> None:
    """Write a file whose frames are all there; nothing in it can be left out by the disk."""
    noise = numpy.random.default_rng(7).integers(0, 2**16, (64, SIDE, SIDE), dtype="u2")
    with h5py.File(path, "w") as file:
        data = file.create_dataset("exchange/data", (FRAMES, SIDE, SIDE), dtype="u2")
        for start in range(0, FRAMES, len(noise)):
            data[start : start + len(noise)] = noise
        file["exchange/theta"] = numpy.linspace(0, 180, FRAMES)
        file["process/acquisition/start_date"] = "2026-07-01T12:00:00+02:00"


class MemoryWatch:
    """Keeps the largest memory of a process and of each process below it, while the block lasts."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.worker = 0
        self.readers = 0

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self.worker = max(self.worker, self._process.memory_info().rss)
            for child in self._process.children(recursive=True):
                try:
                    self.readers = max(self.readers, child.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue


def seconds_of(*command: str | Path) -> tuple[str, float]:
    """Run a program that prints a digest; return what it prints, and how long it takes."""
    began = time.monotonic()
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return said, time.monotonic() - began


@pytest.mark.skipif(not os.environ.get("BIG_SCAN"), reason="BIG_SCAN=1 makes a file of five gigabytes")
@pytest.mark.timeout(1800)
def test_five_gigabytes_are_ingested_in_bounded_memory(tmp_path: Path) -> None:
    with TemporaryDirectory(dir=os.environ.get("BIG_SCAN_DIRECTORY", "/var/tmp")) as directory:
        write_scan(path := Path(directory) / "big.h5")
        with running_stack(tmp_path / "stack", DATA_ROOTS=json.dumps([directory])) as stack:
            ingest_and_report(stack, path)


def ingest_and_report(stack: Stack, path: Path) -> None:
    size = path.stat().st_size
    family = stack.create("/families", {"name": "Camera", "affordances": ["Capturing"]})
    unit = {"name": "Camera", "tier": "Unit", "facility_code": "facility", "family_ids": [family]}
    disk = {"kind": "Storage", "name": "Analysis disk", "facility_code": "facility"}
    place = {"producing_asset_id": stack.create("/assets", unit), "supply_id": stack.create("/supplies", disk)}
    request = {"locator": path.as_uri(), "access_protocol": "POSIX", "wait": 0, **place}
    worker = stack.piece("worker")
    said, reference = seconds_of("sha256sum", path)
    with MemoryWatch(worker) as memory:
        before, began, progress = worker.memory_info().rss, time.monotonic(), set[str]()
        accepted = stack.client.post("/scans/ingest", json=request).json()

        def ended_work() -> dict[str, object] | None:
            work: dict[str, object] = stack.client.get(f"/work-items/{accepted['work_id']}").json()
            progress.add(str(work))
            return None if work["state"] == "running" else work

        work = eventually(ended_work, 600)
        took = time.monotonic() - began
    _, again = seconds_of("sha256sum", path)
    _, openssl = seconds_of("openssl", "dgst", "-sha256", path)
    print(f"\n{size / 1e9:.2f} GB: ingested in {took:.1f} s ({size / took / 1e6:.0f} MB/s), ", end="")
    print(f"sha256sum {reference:.1f} and {again:.1f} s ({size / min(reference, again) / 1e6:.0f} MB/s), ", end="")
    print(f"openssl dgst {openssl:.1f} s ({size / openssl / 1e6:.0f} MB/s)")
    print(f"worker {before / 1e6:.0f} MB before, {memory.worker / 1e6:.0f} MB at most; reader {memory.readers / 1e6:.0f} MB")
    assert work is not None
    assert work["state"] == "done", work
    dataset = stack.client.get(f"/datasets/{accepted['dataset_id']}").json()
    assert (dataset["checksum"]["value"], dataset["byte_size"]) == (said.split()[0], size)
    assert memory.worker - before < GROWTH
    assert size > 5e9
    assert len(progress) > 2, progress
