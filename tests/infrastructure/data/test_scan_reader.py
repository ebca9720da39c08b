"""The process that reads scan files: what it finds in both layouts, and what happens when it is slow, killed or missing."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest

from baton.domain.data.scan import InvalidScanFileError, ScanDescription, ScanReaderMissingError
from baton.infrastructure.data_files import DataFiles
from baton.infrastructure.scans import reader_process
from baton.infrastructure.scans.reader_process import ReaderProcess
from baton.infrastructure.scans.scan_files import LocalScanFile, LocalScanFiles
from tests.support.infrastructure.hostile_scans import exchange_with
from tests.support.infrastructure.scan_files import CAPTURED, write_data_exchange, write_nxtomo
from tests.support.tables import for_each
from tests.support.waiting import until

pytestmark = pytest.mark.server
MEMORY = 512 * 1024 * 1024


@pytest.fixture(scope="module")
def reader() -> Iterator[ReaderProcess]:
    reader = ReaderProcess(MEMORY, 30)
    yield reader
    reader.close()


async def description(reader: ReaderProcess, path: Path) -> ScanDescription:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return await reader.describe(descriptor)
    finally:
        os.close(descriptor)


async def refusal(reader: ReaderProcess, path: Path) -> InvalidScanFileError:
    with pytest.raises(InvalidScanFileError) as caught:
        await description(reader, path)
    return caught.value


async def test_a_data_exchange_file_tells_its_counts_and_angles(reader: ReaderProcess, tmp_path: Path) -> None:
    commanded = {
        "rotation/num_angles": 1510,
        "flat_fields/num_flat_fields": [10],
        "flat_fields/flat_field_mode": "Both",
        "dark_fields/num_dark_fields": 20.0,
        "dark_fields/dark_field_mode": numpy.array([b"Start"], dtype="S256"),
    }
    told = await description(reader, write_data_exchange(tmp_path / "scan.h5", commanded=commanded))
    assert told.model_dump(exclude_none=True) == {
        "layout": "DataExchange",
        "projection_count": 1500,
        "flat_count": 20,
        "dark_count": 20,
        "invalid_count": 0,
        "projection_angle_count": 1500,
        "projection_angle_first": 0.0,
        "projection_angle_last": 180.0,
        "commanded_projection_count": 1510,
        "commanded_flat_count": 20,
        "commanded_dark_count": 20,
        "start_date_raw": CAPTURED,
        "quantities": {},
        "unchecked": ("frame_values", "angle_unit"),
        "frames": {"path": "/exchange/data", "count": 1500, "shape": (2, 2), "dtype": "<u2"},
    }


async def test_unknown_stays_unknown_and_none_is_none(reader: ReaderProcess, tmp_path: Path) -> None:
    path = write_data_exchange(tmp_path / "scan.h5", flats=None, darks=0, start=None)
    told = await description(reader, path)
    assert (told.flat_count, told.dark_count) == (0, 0)
    assert (told.commanded_projection_count, told.commanded_flat_count, told.start_date_raw) == (None, None, None)
    odd = {"rotation/num_angles": -5, "flat_fields/num_flat_fields": 10, "flat_fields/flat_field_mode": "Sometimes"}
    told = await description(reader, write_data_exchange(tmp_path / "odd.h5", commanded=odd))
    assert (told.commanded_projection_count, told.commanded_flat_count) == (None, None)
    without = {"dark_fields/num_dark_fields": 20, "dark_fields/dark_field_mode": "None"}
    told = await description(reader, write_data_exchange(tmp_path / "without.h5", commanded=without))
    assert told.commanded_dark_count == 0


async def test_an_nxtomo_file_tells_its_frames_apart(reader: ReaderProcess, tmp_path: Path) -> None:
    told = await description(reader, write_nxtomo(tmp_path / "scan.nx"))
    assert told.model_dump(exclude_none=True) == {
        "layout": "NXtomo",
        "projection_count": 5,
        "flat_count": 3,
        "dark_count": 2,
        "invalid_count": 1,
        "projection_angle_count": 5,
        "projection_angle_first": 50.0,
        "projection_angle_last": 90.0,
        "start_date_raw": CAPTURED,
        "quantities": {"pixel_size_x": {"value": pytest.approx(6.5), "unit": "um"}},
        "unchecked": ("frame_values", "angle_unit", "commanded_counts", "pixel_size_y"),
        "frames": {"path": "/entry0000/instrument/detector/data", "count": 11, "shape": (2, 2), "dtype": "<u2"},
    }
    flats = await description(reader, write_nxtomo(tmp_path / "flats.nx", keys=numpy.ones(4, dtype="u1")))
    assert (flats.projection_count, flats.projection_angle_count, flats.projection_angle_first) == (0, 0, None)


@for_each(
    ("unit", "last"),
    [("rad", 180.0), ("mrad", 0.18), ("degrees", numpy.pi), ("deg", numpy.pi), ("°", numpy.pi), ("arcmin", numpy.pi / 60)],
)
async def test_angles_are_converted_to_degrees(unit: str, last: float, reader: ReaderProcess, tmp_path: Path) -> None:
    path = write_data_exchange(tmp_path / "scan.h5", angles=numpy.linspace(0, numpy.pi, 1500), unit=unit)
    told = await description(reader, path)
    assert (told.projection_angle_first, told.projection_angle_last) == (0.0, pytest.approx(last))
    assert told.unchecked == ("frame_values", "commanded_counts")


@for_each("angle_count", [0, 59, 61])
async def test_a_data_exchange_file_has_one_angle_for_each_projection(
    angle_count: int, reader: ReaderProcess, tmp_path: Path
) -> None:
    path = write_data_exchange(tmp_path / "scan.h5", projections=60, angles=numpy.linspace(0, 180, angle_count))
    refused = await refusal(reader, path)
    assert (refused.reason, f"{angle_count} angles for 60 projections" in refused.detail) == (
        "structurally_incomplete",
        True,
    )


async def test_quantities_count_only_with_their_unit(reader: ReaderProcess, tmp_path: Path) -> None:
    def measure(file: h5py.File) -> None:
        instrument = file.create_group("measurement/instrument")
        instrument["monochromator/energy"] = 25000.0
        instrument["monochromator/energy"].attrs["units"] = "eV"
        instrument["detector/pixel_size"] = 0.65

    exchange_with(measure)(path := tmp_path / "scan.h5")
    told = await description(reader, path)
    assert {name: (one.value, one.unit) for name, one in told.quantities.items()} == {"energy": (25.0, "keV")}


async def test_links_within_the_file_and_compressed_angles_are_read(reader: ReaderProcess, tmp_path: Path) -> None:
    def rearrange(file: h5py.File) -> None:
        angles = file["exchange/theta"][:]
        del file["exchange/theta"]
        file.create_dataset("angles/real", data=angles, chunks=(7,), compression="gzip", shuffle=True, fletcher32=True)
        file["exchange/theta"] = h5py.SoftLink("/angles/other")
        file["angles/other"] = h5py.SoftLink("./real")

    exchange_with(rearrange)(path := tmp_path / "scan.h5")
    told = await description(reader, path)
    assert (told.projection_angle_count, told.projection_angle_last) == (1500, 180.0)


async def test_a_file_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe.h5")
    waiting = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # whoever opens it again waits until something writes to it
    reader = ReaderProcess(MEMORY, 1)
    try:
        with pytest.raises(InvalidScanFileError, match="takes longer than 1 s") as caught:
            await reader.describe(waiting)
        assert caught.value.reason == "unreadable"
        assert (await description(reader, write_data_exchange(tmp_path / "next.h5"))).projection_count == 1500
    finally:
        os.close(waiting)
        reader.close()


async def test_memory_is_limited_after_the_libraries_are_loaded(tmp_path: Path) -> None:
    reader = ReaderProcess(96 * 1024 * 1024, 30)
    try:
        refused = await refusal(reader, write_data_exchange(tmp_path / "scan.h5", angles=numpy.zeros(900_000)))
        assert refused.reason in ("unreadable", "structurally_incomplete")
    finally:
        reader.close()


async def test_a_process_that_was_killed_is_started_again(reader: ReaderProcess, tmp_path: Path) -> None:
    path = write_data_exchange(tmp_path / "scan.h5")
    await description(reader, path)
    assert reader._process is not None
    os.kill(reader._process.pid, signal.SIGKILL)
    assert (await description(reader, path)).projection_count == 1500


async def test_files_are_read_side_by_side(reader: ReaderProcess, tmp_path: Path) -> None:
    paths = [write_data_exchange(tmp_path / f"{count}.h5", projections=count) for count in range(1, 11)]
    told = await asyncio.gather(*(description(reader, path) for path in paths))
    assert [one.projection_count for one in told] == list(range(1, 11))


def children_of(pid: int) -> list[int]:
    return [int(id) for id in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def environment_of(pid: int) -> set[str]:
    entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return {entry.partition(b"=")[0].decode() for entry in entries if entry}


async def test_nothing_is_left_running_where_nobody_waits_any_more(tmp_path: Path) -> None:
    reader, path = ReaderProcess(MEMORY, 30), write_data_exchange(tmp_path / "scan.h5")
    try:
        await description(reader, path)
        assert reader._process is not None
        os.kill(process := reader._process.pid, signal.SIGSTOP)
        waiting = asyncio.create_task(description(reader, path))
        await asyncio.sleep(0)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        os.kill(process, signal.SIGCONT)
        assert (await description(reader, path)).projection_count == 1500
        await until(lambda: not children_of(process))
        assert reader._process.pid == process
    finally:
        reader.close()


async def test_the_reader_has_nothing_of_the_workers_environment(reader: ReaderProcess, tmp_path: Path) -> None:
    await description(reader, write_data_exchange(tmp_path / "scan.h5"))
    assert reader._process is not None
    assert environment_of(reader._process.pid) <= {*reader_process.ENVIRONMENT, "LC_CTYPE"}


async def test_a_worker_without_the_libraries_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reader_process, "NEEDED", ("h5py", "no_such_library"))
    with pytest.raises(ScanReaderMissingError, match=r"lacks no_such_library; install baton-facility\[scans\]") as caught:
        await description(ReaderProcess(MEMORY, 30), write_data_exchange(tmp_path / "scan.h5"))
    assert (caught.value.status, caught.value.reason) == (409, "not_installed")


async def test_an_answer_that_makes_no_sense_is_not_believed(reader: ReaderProcess) -> None:
    answers: list[Any] = [b"", b"{}\n", b"{", b"no JSON\n", b'{"description": {"layout": "DataExchange"}}\n', b"x" * 150_000]
    for answer in answers:
        with pytest.raises(InvalidScanFileError) as caught:
            reader._judge("description", answer)
        assert caught.value.reason == "unreadable"


@pytest.fixture
async def file(reader: ReaderProcess, tmp_path: Path) -> AsyncIterator[LocalScanFile]:
    path = write_data_exchange(tmp_path / "scan.h5")
    async with LocalScanFiles(DataFiles([tmp_path]), reader).open(path.as_uri()) as file:
        yield file


async def test_the_digest_is_that_of_all_bytes(file: LocalScanFile, tmp_path: Path) -> None:
    content = (tmp_path / "scan.h5").read_bytes()
    assert await file.digest() == sha256(content).hexdigest()
    assert file.digested_bytes == file.byte_size == len(content)
    await file.refuse_changed()


async def refuse_changed(file: LocalScanFile) -> None:
    await file.digest()
    with pytest.raises(InvalidScanFileError) as caught:
        await file.refuse_changed()
    assert caught.value.reason == "changed_while_reading"


async def test_a_file_that_grows_meanwhile_is_refused(file: LocalScanFile, tmp_path: Path) -> None:
    with (tmp_path / "scan.h5").open("ab") as growing:
        growing.write(b"more")
    await refuse_changed(file)


async def test_a_file_that_is_written_to_meanwhile_is_refused(file: LocalScanFile, tmp_path: Path) -> None:
    os.utime(tmp_path / "scan.h5", ns=(0, 0))
    await refuse_changed(file)


async def test_a_file_that_is_replaced_or_removed_meanwhile_is_refused(file: LocalScanFile, tmp_path: Path) -> None:
    path, other = tmp_path / "scan.h5", tmp_path / "other.h5"
    status = path.stat()
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.rename(path)
    await refuse_changed(file)
    path.unlink()
    with pytest.raises(InvalidScanFileError):
        await file.refuse_changed()


async def test_a_file_outside_the_roots_cannot_be_read(reader: ReaderProcess, tmp_path: Path) -> None:
    outside = write_data_exchange(tmp_path / "scan.h5")
    (root := tmp_path / "root").mkdir()
    (root / "link.h5").symlink_to(outside)
    files = LocalScanFiles(DataFiles([root]), reader)
    for uri in (outside.as_uri(), (root / "link.h5").as_uri(), (root / "none.h5").as_uri(), "s3://bucket/scan.h5"):
        with pytest.raises(InvalidScanFileError) as caught:
            async with files.open(uri):
                pass
        assert caught.value.reason == "unreadable"
        assert str(tmp_path) not in caught.value.detail
    with pytest.raises(InvalidScanFileError, match="locator_missing_filename"):
        async with files.open(root.as_uri()):
            pass


CONFINED = """
import os, resource, socket, sys
from baton.infrastructure.scans.reader import ReadingLimits, confine
file = os.open(sys.argv[1], os.O_RDWR)
confine(file, ReadingLimits(memory_bytes=1 << 30, seconds=10))
os.open(f"/proc/self/fd/{file}", os.O_RDONLY)
for attempt in (lambda: os.open("/etc/passwd", os.O_RDONLY), socket.socket, lambda: os.write(file, b"x"), os.pipe):
    try:
        attempt()
    except OSError as error:
        print(error.errno)
    else:
        print("done")
"""


def test_a_confined_reader_opens_its_file_and_nothing_else(tmp_path: Path) -> None:
    path = write_data_exchange(tmp_path / "scan.h5")
    content = path.read_bytes()
    command = [
        sys.executable,
        "-I",
        "-c",
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + CONFINED,
        str(path),
    ]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
    assert said == [str(number) for number in (errno.EMFILE, errno.EMFILE, errno.EFBIG, errno.EMFILE)]
    assert path.read_bytes() == content


def test_the_reader_imports_nothing_that_could_reach_the_service() -> None:
    """The reading process has no business with the database, the engine or the network."""
    program = "import sys, baton.infrastructure.scans.reader; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, check=True, text=True).stdout.split()
    assert not {"psycopg", "temporalio", "httpx", "fastapi", "baton.domain", "baton.application"} & set(loaded)
