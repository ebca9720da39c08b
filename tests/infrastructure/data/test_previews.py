"""Pictures of files: which frame is shown and how, what is not followed, and what is refused; and how they are served."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest

from baton.domain.data.preview import DatasetPreviewUnavailableError, RegisteredFile
from baton.domain.data.scan import InvalidScanFileError
from baton.infrastructure.data_files import DataFiles
from baton.infrastructure.scans import reader_process
from baton.infrastructure.scans.previews import AT_ONCE, KEPT, LocalPreviews
from baton.infrastructure.scans.reader_process import GreyPicture, ReaderProcess
from tests.support.infrastructure import hostile_scans
from tests.support.infrastructure.hostile_scans import compressed_zeros
from tests.support.infrastructure.pictures import pixels_of, write_array
from tests.support.infrastructure.scan_files import write_data_exchange
from tests.support.tables import for_each
from tests.support.waiting import until

pytestmark = pytest.mark.server
MEMORY = 512 * 1024 * 1024
RAMP = numpy.arange(20, dtype="u2").reshape(4, 5)
SHADES = [[0, 13, 27, 40, 54], [67, 81, 94, 107, 121], [134, 148, 161, 174, 188], [201, 215, 228, 242, 255]]
"""The ramp, from black to white."""


@pytest.fixture(scope="module")
def reader() -> Iterator[ReaderProcess]:
    reader = ReaderProcess(MEMORY, 30)
    yield reader
    reader.close()


@pytest.fixture
def previews(reader: ReaderProcess, tmp_path: Path) -> LocalPreviews:
    return LocalPreviews(DataFiles([tmp_path]), reader)


def registered(path: Path) -> RegisteredFile:
    """The file as it would be registered now."""
    return RegisteredFile(path.as_uri(), path.stat().st_size, datetime.now(UTC))


async def pixels_shown(previews: LocalPreviews, path: Path) -> list[list[int]]:
    return pixels_of(await previews.picture([registered(path)]))


async def refusal(previews: LocalPreviews, *files: RegisteredFile) -> DatasetPreviewUnavailableError:
    with pytest.raises(DatasetPreviewUnavailableError) as caught:
        await previews.picture(files)
    assert (caught.value.status, caught.value.detail.endswith(".")) == (409, True)
    return caught.value


async def test_an_image_is_shown_from_black_to_white(previews: LocalPreviews, tmp_path: Path) -> None:
    assert await pixels_shown(previews, write_array(tmp_path / "scan.h5", RAMP)) == SHADES


async def test_of_many_frames_the_middle_one_is_shown(previews: LocalPreviews, tmp_path: Path) -> None:
    for number, outer in enumerate([(1,), (3,), (4,), (2, 3), (2, 1, 5)]):
        values = numpy.zeros((*outer, *RAMP.shape), dtype="f4")
        values[tuple(length // 2 for length in outer)] = RAMP
        assert await pixels_shown(previews, write_array(tmp_path / f"{number}.h5", values)) == SHADES


@for_each("options", [{}, {"chunks": (1, 500, 320)}, {"chunks": (2, 70, 64), "compression": "gzip", "shuffle": True}])
async def test_of_a_large_frame_every_so_many_pixels_are_shown(
    options: dict[str, Any], previews: LocalPreviews, tmp_path: Path
) -> None:
    frames = numpy.random.default_rng(7).integers(0, 60_000, (3, 1000, 640), dtype="u2")
    path = write_array(tmp_path / f"{len(options)}.h5", frames, **options)
    picture = numpy.array(await pixels_shown(previews, path))
    chosen = frames[1, ::4, ::4].astype(float)
    assert picture.shape == chosen.shape == (250, 160)
    ordered = numpy.sort(chosen, axis=None)
    dark, bright = ordered[400], ordered[-401]
    assert (picture == numpy.clip(numpy.rint((chosen - dark) / (bright - dark) * 255), 0, 255)).all()


FRAMES: dict[str, tuple[Any, Any]] = {
    "one value": ([[7.0, 7.0]], [[128, 128]]),
    "one pixel": ([[7]], [[128]]),
    "nothing but NaN": ([[numpy.nan, numpy.inf]], [[128, 128]]),
    "NaN among numbers": ([[numpy.nan, 1.0], [2.0, numpy.inf]], [[0, 0], [255, 0]]),
    "the largest numbers": ([[-1.7e308, 1.7e308], [0.0, 0.0]], [[0, 255], [128, 128]]),
    "below zero": ([[-3, -2], [-1, 0]], [[0, 85], [170, 255]]),
    "one spot in the dark": (numpy.eye(1, 300), [[255] + [0] * 299]),
    "one hot pixel": ([[*range(52)] * 4 + [10**9]], [[5 * one for one in range(52)] * 4 + [255]]),
}


@for_each("case", FRAMES)
async def test_shades_follow_the_values(case: str, previews: LocalPreviews, tmp_path: Path) -> None:
    values, expected = FRAMES[case]
    assert await pixels_shown(previews, write_array(tmp_path / f"{case}.h5", values)) == expected


def write_several(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["a/list"] = numpy.arange(10_000)
        file["a/text"] = [["long"] * 50] * 50
        file["b/small"] = RAMP[:2]
        file["b/image"] = RAMP
        file["c/again"] = file["b/image"]
        file["b/back"] = file["/"]
        file.create_dataset("d/nothing", (0, 1000, 1000), dtype="u1")
        file["d/flags"] = numpy.ones((100, 100), dtype=bool)
        file["d/soft"] = h5py.SoftLink("/b/image")


def write_links(path: Path) -> None:
    other = write_array(path.with_name("other.h5"), numpy.zeros((100, 100)), "large").name
    with h5py.File(path, "w") as file:
        file["image"] = RAMP
        file["external"] = h5py.ExternalLink(other, "/large")
        layout = h5py.VirtualLayout((100, 100), dtype="f8")
        layout[:] = h5py.VirtualSource(other, "large", (100, 100))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("raw", (100, 100), dtype="f8", external=[(other, 0, 80_000)])


def write_many(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["early"] = RAMP
        for place in range(12_000):
            file.id.links.create_soft(b"many%d" % place, b"/nowhere")
        file["with the last"] = numpy.zeros((100, 100))


@for_each("write", [write_several, write_links, write_many])
async def test_the_largest_array_within_the_file_is_chosen(
    write: Callable[[Path], None], previews: LocalPreviews, tmp_path: Path
) -> None:
    write(path := tmp_path / f"{write.__name__}.h5")
    assert await pixels_shown(previews, path) == SHADES


def write_deep(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["/".join(["deep"] * 40)] = RAMP


def write_virtual(path: Path) -> None:
    write_links(path)
    with h5py.File(path, "r+") as file:
        del file["image"]


@for_each("write", [lambda path: write_array(path, range(100)), write_deep, write_virtual])
async def test_a_file_without_an_image_has_no_picture(
    write: Callable[[Path], object], previews: LocalPreviews, tmp_path: Path
) -> None:
    write(path := tmp_path / "scan.h5")
    refused = await refusal(previews, registered(path))
    assert (refused.reason, "two or more axes" in refused.detail) == ("no_picture", True)
    path.unlink()


def declare(path: Path, shape: tuple[int, ...], **options: Any) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("data", shape, **{"dtype": "u1", **options})


def write_bomb(path: Path) -> None:
    declare(path, (10, 10), chunks=(10, 10), compression="gzip")
    with h5py.File(path, "r+") as file:
        file["data"].id.write_direct_chunk((0, 0), compressed_zeros(20))


def cut_off(path: Path) -> None:
    path.write_bytes(write_array(path, numpy.zeros((500, 500))).read_bytes()[:100_000])


UNREADABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no HDF5 file": (lambda path: path.write_bytes(b"II*\0" + bytes(5000)), "no HDF5 file"),
    "an empty file": (lambda path: path.write_bytes(b""), "no HDF5 file"),
    "cut off": (cut_off, "damaged"),
    "never written": (lambda path: write_data_exchange(path), "never written"),
    "another compression": (lambda path: write_array(path, RAMP, compression="lzf"), "something else than gzip"),
    "a compressed bomb": (write_bomb, "larger than its content"),
    "a huge piece": (lambda path: declare(path, (1, 12_000, 12_000), chunks=(1, 12_000, 12_000)), "more than 128 MiB"),
    "many pieces": (lambda path: declare(path, (200, 200), chunks=(1, 1)), "more than 20000 pieces"),
    "a huge array": (lambda path: declare(path, (2**31, 2**20, 2**10), chunks=(1, 8, 8)), "more than 20000 pieces"),
}


@for_each("case", UNREADABLE)
async def test_a_file_that_cannot_be_read_says_why(case: str, previews: LocalPreviews, tmp_path: Path) -> None:
    write, said = UNREADABLE[case]
    write(path := tmp_path / f"{case}.h5")
    refused = await refusal(previews, registered(path))
    assert refused.reason == "unreadable"
    assert said in refused.detail


async def test_hostile_files_are_shown_or_refused_and_end_nothing(reader: ReaderProcess, tmp_path: Path) -> None:
    whole, path = write_array(tmp_path / "whole.h5", RAMP).read_bytes(), tmp_path / "scan.h5"
    families = chain(
        *(hostile_scans.cut_off_files(whole), hostile_scans.garbled_files(whole), hostile_scans.crowded_files()),
        *(hostile_scans.linked_files(tmp_path / "whole.h5"), hostile_scans.scattered_files(tmp_path / "whole.h5")),
    )
    outcomes: Counter[str | None] = Counter()
    for scan in families:
        path.unlink(missing_ok=True)
        scan.write(path)
        try:
            await LocalPreviews(DataFiles([tmp_path]), reader).picture([registered(path)])
            outcomes["shown"] += 1
        except DatasetPreviewUnavailableError as refused:
            outcomes[refused.reason] += 1
    assert outcomes.keys() <= {"shown", "unreadable", "no_picture"}
    assert outcomes.total() > 150


async def test_what_cannot_be_opened_is_passed_over(reader: ReaderProcess, tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    outside, inside = write_array(tmp_path / "scan.h5", RAMP.T), write_array(root / "scan.h5", RAMP)
    (root / "link.h5").symlink_to(outside)
    previews = LocalPreviews(DataFiles([root]), reader)
    uris = [outside.as_uri(), (root / "link.h5").as_uri(), (root / "none.h5").as_uri(), root.as_uri(), "s3://b/k"]
    unreachable = [RegisteredFile(uri, 1, datetime.now(UTC)) for uri in uris]
    for file in unreachable:
        refused = await refusal(previews, file)
        assert (refused.reason, "DATA_ROOTS" in refused.detail) == ("no_file", True)
        assert str(tmp_path) not in refused.detail
    assert (await refusal(previews)).reason == "no_file"
    assert pixels_of(await previews.picture([*unreachable, registered(inside)])) == SHADES
    assert (await refusal(LocalPreviews(DataFiles([]), reader), registered(inside))).reason == "no_file"


async def test_a_file_that_differs_from_what_was_registered_says_so_and_another_copy_is_shown(
    previews: LocalPreviews, tmp_path: Path
) -> None:
    path, copy = write_array(tmp_path / "scan.h5", RAMP.T), write_array(tmp_path / "copy.h5", RAMP)
    file = registered(path)
    longer, older = file._replace(byte_size=file.byte_size + 1), file._replace(known_at=file.known_at - timedelta(hours=1))
    for changed, how in ((longer, f"it has {file.byte_size} bytes, not {file.byte_size + 1}"), (older, "it was written to")):
        refused = await refusal(previews, changed, RegisteredFile("s3://b/k", 1, file.known_at))
        assert (refused.reason, f"changed since it was registered ({how})" in refused.detail) == ("changed", True)
        assert pixels_of(await previews.picture([changed, registered(copy)])) == SHADES


async def test_without_the_libraries_a_picture_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reader_process, "NEEDED", ("h5py", "no_such_library"))
    previews = LocalPreviews(DataFiles([tmp_path]), ReaderProcess(MEMORY, 30))
    refused = await refusal(previews, registered(write_array(tmp_path / "scan.h5", RAMP)))
    assert (refused.reason, "baton-facility[scans]" in refused.detail) == ("reader_missing", True)


class CountingReader(ReaderProcess):
    """Reads nothing; counts how often it is asked, and answers while it is free."""

    def __init__(self) -> None:
        self.asked, self.free = 0, asyncio.Event()
        self.free.set()

    async def take_picture(self, file: int) -> GreyPicture:
        self.asked += 1
        await self.free.wait()
        return GreyPicture(width=1, height=1, pixels=b"gA==")


async def test_few_pictures_are_taken_at_a_time_and_a_file_that_has_not_changed_is_read_once(tmp_path: Path) -> None:
    reader = CountingReader()
    previews = LocalPreviews(DataFiles([tmp_path]), reader)
    paths = [tmp_path / f"{number}.h5" for number in range(10)]
    for path in paths:
        path.write_bytes(b"content")
    reader.free.clear()
    asking = asyncio.gather(*(previews.picture([registered(path)]) for path in paths))
    await until(lambda: reader.asked == AT_ONCE)
    for _ in paths:
        await asyncio.to_thread(os.listdir, tmp_path)  # any other file could have been opened meanwhile
    assert reader.asked == AT_ONCE
    reader.free.set()
    first = await asking
    assert reader.asked == 10
    again = await asyncio.gather(*(previews.picture([registered(path)]) for path in paths))
    assert (reader.asked, again) == (10, first)
    os.utime(paths[3], ns=(0, 0))
    await previews.picture([registered(paths[3])])
    assert reader.asked == 11


async def test_only_the_latest_pictures_are_kept(tmp_path: Path) -> None:
    reader = CountingReader()
    previews = LocalPreviews(DataFiles([tmp_path]), reader)
    paths = [tmp_path / f"{number}.h5" for number in range(KEPT + 1)]
    for path in paths:
        path.write_bytes(b"")
        await previews.picture([registered(path)])
        await previews.picture([registered(paths[0])])
    assert reader.asked == KEPT + 1
    await previews.picture([registered(paths[0])])
    assert reader.asked == KEPT + 1, "what is asked for stays"
    await previews.picture([registered(paths[1])])
    assert reader.asked == KEPT + 2


async def test_no_descriptor_is_left_open(previews: LocalPreviews, tmp_path: Path) -> None:
    path = write_array(tmp_path / "scan.h5", RAMP)
    await previews.picture([registered(path)])
    before = os.listdir("/proc/self/fd")
    changed = registered(path)._replace(byte_size=1)
    for file in (registered(path), changed, registered(write_array(tmp_path / "list.h5", [1, 2])), registered(tmp_path)):
        try:
            await previews.picture([file])
        except DatasetPreviewUnavailableError:
            continue
    assert os.listdir("/proc/self/fd") == before


def test_a_picture_that_makes_no_sense_is_not_believed(reader: ReaderProcess) -> None:
    good = b'{"picture": {"width": 2, "height": 1, "pixels": "AAE="}}\n'
    assert reader._judge("picture", good).pixels == b"\0\1"
    changed = [(b'"width": 2', b'"width": 3'), (b'"width": 2', b'"width": 0'), (b'"height": 1', b'"height": 321')]
    for old, new in (*changed, (b"AAE=", b"AA"), (b"AAE=", b"!"), (b"picture", b"description"), (b"\n", b"")):
        with pytest.raises(InvalidScanFileError) as caught:
            reader._judge("picture", good.replace(old, new))
        assert caught.value.reason == "unreadable"
