"""Files that must not be ingested: broken, cut off, mistaken and hostile ones, the same ones every time."""

import random
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy

from tests.support.infrastructure.scan_files import write_data_exchange, write_nxtomo

UNREADABLE = frozenset({"unreadable"})
UNRECOGNIZED = frozenset({"unrecognized"})
INCOMPLETE = frozenset({"structurally_incomplete"})
BROKEN = UNREADABLE | UNRECOGNIZED | INCOMPLETE
UNTIMED = frozenset({"captured_at_missing"})
Write = Callable[[Path], object]


class HostileScan(NamedTuple):
    """A file, and the reasons for which it may be refused."""

    family: str
    write: Write
    reasons: frozenset[str]


def hostile_scans(directory: Path) -> Iterator[HostileScan]:
    """Yield all files; those that others are made from are written to the directory."""
    exchange = write_data_exchange(directory / "exchange.h5", start=None)
    for path in (exchange, write_nxtomo(directory / "nexus.h5", start=None)):
        yield from foreign_files(path.read_bytes())
        yield from cut_off_files(path.read_bytes())
        yield from garbled_files(path.read_bytes())
    yield from incomplete_layouts()
    yield from mistaken_values()
    yield from wrong_units()
    yield from wrong_times()
    yield from linked_files(exchange)
    yield from scattered_files(exchange)
    yield from bomb_files()
    yield from crowded_files()


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def foreign_files(whole: bytes) -> Iterator[HostileScan]:
    """Files of other kinds, and HDF5 signatures with nothing behind them."""
    beginnings = [b"", b"\0", b"PK\x03\x04", b"\xff\xd8\xff\xe0", b"CDF\x01", b"%PDF-1.7", b"#!/bin/sh\nexit\n", whole[:8]]
    for place, beginning in enumerate(beginnings):
        for size in (0, 7, 4096):
            content = beginning + random.Random(place * size).randbytes(size)
            yield HostileScan("no HDF5 file", partial(_write_bytes, content=content), UNREADABLE)


def cut_off_files(whole: bytes) -> Iterator[HostileScan]:
    """Files that end too early, at many places."""
    for step in range(50):
        yield HostileScan("cut off", partial(_write_bytes, content=whole[: len(whole) * step // 50]), UNREADABLE)


def garbled_files(whole: bytes) -> Iterator[HostileScan]:
    """Files with random bytes among those that say where everything is; where none of these mattered, no time is found."""
    for seed in range(60):
        chance, content = random.Random(seed), bytearray(whole)
        for _ in range(1 + seed):
            content[chance.randrange(8, min(len(whole), 4096))] ^= chance.randrange(1, 256)
        yield HostileScan("garbled", partial(_write_bytes, content=bytes(content)), BROKEN | UNTIMED)


def exchange_with(change: Callable[[h5py.File], object]) -> Write:
    """Return what writes a Data CallScript file and then changes it."""
    return partial(_write_changed, base=write_data_exchange, change=change)


def nxtomo_with(change: Callable[[h5py.Group], object]) -> Write:
    """Return what writes an NXtomo file and then changes its entry."""
    return partial(_write_changed, base=write_nxtomo, change=lambda file: change(file["entry0000"]))


def _write_changed(path: Path, base: Callable[[Path], Path], change: Callable[[h5py.File], object]) -> None:
    with h5py.File(base(path), "r+") as file:
        change(file)


def _delete(name: str, group: h5py.Group) -> None:
    del group[name]


def _replace(name: str, value: Any, group: h5py.Group) -> None:
    """Put another value, an array or a link, in the place of something."""
    if name in group:
        del group[name]
    group[name] = value


def _declare(name: str, shape: tuple[int, ...], options: dict[str, Any], group: h5py.Group) -> None:
    """Put an array that is declared and not written in the place of another."""
    if name in group:
        del group[name]
    group.create_dataset(name, shape, **{"dtype": "f8", **options})


def _set_unit(name: str, unit: Any, group: h5py.Group) -> None:
    group[name].attrs["units"] = unit


def incomplete_layouts() -> Iterator[HostileScan]:
    """Files without something that their layout needs."""
    exchange = {"exchange": UNRECOGNIZED, "exchange/data": UNRECOGNIZED, "exchange/theta": INCOMPLETE}
    for name, reasons in exchange.items():
        yield HostileScan("incomplete", exchange_with(partial(_delete, name)), reasons)
    detector = "instrument/detector"
    unrecognized = ["definition", "instrument", detector, f"{detector}/data", f"{detector}/image_key"]
    for name in unrecognized:
        yield HostileScan("incomplete", nxtomo_with(partial(_delete, name)), UNRECOGNIZED)
    for name in ("sample", "sample/rotation_angle"):
        yield HostileScan("incomplete", nxtomo_with(partial(_delete, name)), INCOMPLETE)
    for definition in ("NXtomoproc", "nxtomo", "", 7):
        yield HostileScan("incomplete", nxtomo_with(partial(_replace, "definition", definition)), UNRECOGNIZED)
    for count in (0, 1, 10, 12, 1000):
        write = partial(write_nxtomo, frames=count)
        yield HostileScan("frames without keys", write, UNRECOGNIZED)
        angles = numpy.zeros(count)
        yield HostileScan("frames without angles", partial(write_nxtomo, angles=angles), INCOMPLETE)
    for keys in ([4] * 11, [-1] * 11, [0.5] * 11, [float("nan")] * 11, ["0"] * 11, [[0] * 11], 0):
        yield HostileScan("wrong keys", nxtomo_with(partial(_replace, f"{detector}/image_key", keys)), UNRECOGNIZED)
    twice = nxtomo_with(lambda entry: entry.file.copy(entry, "entry0001"))
    yield HostileScan("two entries", twice, UNRECOGNIZED)


def mistaken_values() -> Iterator[HostileScan]:
    """Files with something else where numbers belong."""
    compound = numpy.zeros(1500, dtype=[("angle", "f8"), ("time", "f8")])
    others = [
        *("90 degrees", ["0", "90"], [b"0"] * 1500, 7.5, numpy.zeros((1500, 2)), numpy.zeros((1, 1500)), compound),
        *(numpy.zeros(1500, dtype=bool), numpy.zeros(1500, dtype="c16"), numpy.zeros(1500, dtype="V16"), h5py.Empty("f8")),
    ]
    for other in others:
        yield HostileScan("no angles", exchange_with(partial(_replace, "exchange/theta", other)), INCOMPLETE)
        yield HostileScan("no angles", nxtomo_with(partial(_replace, "sample/rotation_angle", other)), INCOMPLETE)
    for frames in ("frames", [b"frame"] * 10, 7, compound, h5py.Empty("u2"), numpy.zeros(3, dtype="V16")):
        for name in ("data", "data_white", "data_dark"):
            yield HostileScan("no frames", exchange_with(partial(_replace, f"exchange/{name}", frames)), UNRECOGNIZED)
        yield HostileScan("no frames", nxtomo_with(partial(_replace, "instrument/detector/data", frames)), UNRECOGNIZED)
    for value in (float("nan"), float("inf"), -float("inf")):
        for place in (0, 1, 750, 1499):
            angles = numpy.linspace(0, 180, 1500)
            angles[place] = value
            yield HostileScan("angles that are no numbers", partial(write_data_exchange, angles=angles), INCOMPLETE)
    yield HostileScan("no angles", partial(write_data_exchange, angles=[]), INCOMPLETE)
    references = h5py.ref_dtype, h5py.regionref_dtype, h5py.vlen_dtype(numpy.float64), h5py.string_dtype()
    for kind in references:
        for name, reasons in (("data", UNRECOGNIZED), ("theta", INCOMPLETE)):
            declared = partial(_declare, f"exchange/{name}", (1500,), {"dtype": kind})
            yield HostileScan("references", exchange_with(declared), reasons)
    for name, reasons in (("data", UNRECOGNIZED), ("theta", INCOMPLETE)):
        yield HostileScan("a group", exchange_with(partial(_regroup, f"exchange/{name}")), reasons)
        named_type = partial(_replace, f"exchange/{name}", numpy.dtype("f8"))
        yield HostileScan("a type", exchange_with(named_type), reasons)


def _regroup(name: str, group: h5py.Group) -> None:
    del group[name]
    group.create_group(name)


def wrong_units() -> Iterator[HostileScan]:
    """Files whose angles have a unit that is none, or none of an angle."""
    names = ["kg", "mm", "s", "count", "percent", "dimensionless", "degC", "parrots", "1", "rad/s", "10**10**10", "°" * 33]
    odd = [7, 1.5, ["degree", "rad"], b"\xff\xfe", "x" * 60000, "", numpy.zeros(100), "__import__('os').abort()"]
    for unit in (*names, *odd):
        yield HostileScan("wrong unit", exchange_with(partial(_set_unit, "exchange/theta", unit)), INCOMPLETE)
        yield HostileScan("wrong unit", nxtomo_with(partial(_set_unit, "sample/rotation_angle", unit)), INCOMPLETE)
    radians = numpy.linspace(0, 1e308, 1500)
    yield HostileScan("wrong unit", partial(write_data_exchange, angles=radians, unit="rad"), INCOMPLETE)


def wrong_times() -> Iterator[HostileScan]:
    """Files that are in order, but for the time of their start."""
    times = ["", "yesterday", "2026-07-01", "2026-07-01T12:00:00", "9999-99-99T00:00:00Z", "x" * 100000, b"\xff" * 20, 7]
    for time in (*times, [b"2026-07-01T12:00:00Z"] * 2, h5py.Empty("S20"), numpy.zeros(3)):
        name = "process/acquisition/start_date"
        yield HostileScan("wrong time", exchange_with(partial(_replace, name, time)), UNTIMED)
        yield HostileScan("wrong time", nxtomo_with(partial(_replace, "start_time", time)), UNTIMED)


def linked_files(other: Path) -> Iterator[HostileScan]:
    """Files whose parts are links: out of the file, in circles, to nothing."""
    needed = {"data": UNRECOGNIZED, "data_white": UNRECOGNIZED, "theta": INCOMPLETE}
    for name, reasons in needed.items():
        for target in (str(other), "/etc/passwd", "/dev/zero", "missing.h5", f"/proc/self/fd/{3}", "/dev/stdin"):
            link = h5py.ExternalLink(target, f"/exchange/{name}")
            yield HostileScan("external link", exchange_with(partial(_replace, f"exchange/{name}", link)), reasons)
        circle = h5py.SoftLink(f"/exchange/{name}")
        yield HostileScan("circle of links", exchange_with(partial(_replace, f"exchange/{name}", circle)), reasons)
        yield HostileScan("circle of links", exchange_with(partial(_chain, f"exchange/{name}", 2)), reasons)
        yield HostileScan("long chain of links", exchange_with(partial(_chain, f"exchange/{name}", 40)), reasons)
        far = h5py.SoftLink("/" + "x/" * 5000)
        yield HostileScan("long link", exchange_with(partial(_replace, f"exchange/{name}", far)), reasons)
    whole = h5py.ExternalLink(str(other), "/exchange")
    yield HostileScan("external link", exchange_with(partial(_replace, "exchange", whole)), UNRECOGNIZED)
    yield HostileScan("soft link into another file", exchange_with(partial(_outward, other)), UNRECOGNIZED)
    yield HostileScan("external link", nxtomo_with(partial(_replace, "sample", whole)), INCOMPLETE)
    for name in ("data", "theta"):
        nothing = partial(_replace, f"exchange/{name}", h5py.SoftLink("/nowhere"))
        yield HostileScan("link to nothing", exchange_with(nothing), needed[name])
    yield HostileScan("circle of groups", exchange_with(_circle), UNRECOGNIZED)


def _chain(name: str, length: int, file: h5py.File) -> None:
    """Put a chain of soft links in the place of something; a short one leads back to its beginning."""
    del file[name]
    for place in range(length):
        file[f"hop{place}"] = h5py.SoftLink(f"/hop{place + 1}")
    file[name] = h5py.SoftLink("/hop0")
    file[f"hop{length}"] = h5py.SoftLink(f"/{name}")


def _outward(other: Path, file: h5py.File) -> None:
    del file["exchange/data"]
    file["away"] = h5py.ExternalLink(str(other), "/exchange")
    file["exchange/data"] = h5py.SoftLink("/away/data")


def _circle(file: h5py.File) -> None:
    """Make the group of the data its own content, and take the data away."""
    del file["exchange/data"]
    file["exchange/data"] = file["exchange"]


def scattered_files(other: Path) -> Iterator[HostileScan]:
    """Files whose values are in other files."""
    needed = {"data": ((1500, 2, 2), UNRECOGNIZED), "data_dark": ((20, 2, 2), UNRECOGNIZED), "theta": ((1500,), INCOMPLETE)}
    for name, (shape, reasons) in needed.items():
        for target in (str(other), "/dev/zero", ".", "missing.h5"):
            virtual = partial(_make_virtual, f"exchange/{name}", shape, target, 10)
            yield HostileScan("virtual dataset", exchange_with(virtual), reasons)
        for target in (str(other), "/etc/passwd", "/dev/zero"):
            outside = {"external": [(target, 0, h5py.h5f.UNLIMITED)]}
            declared = partial(_declare, f"exchange/{name}", shape, outside)
            yield HostileScan("external storage", exchange_with(declared), reasons)
    growing = partial(_make_virtual, "exchange/data", (1500, 2, 2), str(other), None)
    yield HostileScan("virtual dataset", exchange_with(growing), UNRECOGNIZED)


def _make_virtual(name: str, shape: tuple[int, ...], source: str, end: int | None, file: h5py.File) -> None:
    """Put an array in the place of another that takes its values from another file; without an end, as many as it has."""
    del file[name]
    layout = h5py.VirtualLayout(shape, dtype="f8", maxshape=(None, *shape[1:]))
    taken = h5py.VirtualSource(source, name, shape, dtype="f8", maxshape=(None, *shape[1:]))
    if end is None:
        unlimited = (slice(0, h5py.h5s.UNLIMITED), *(slice(None) for _ in shape[1:]))
        layout[unlimited] = taken[unlimited]
    else:
        layout[:end] = taken[:end]
    file.create_virtual_dataset(name, layout)


def bomb_files() -> Iterator[HostileScan]:
    """Files that are small, and would take much memory or time to read."""
    chunks = {"chunks": (1,)}
    for size in (1_000_001, 2**31, 2**40, 2**60):
        for options in ({"chunks": (1,)}, {"chunks": (1000,), "compression": "gzip"}):
            declared = partial(_declare, "exchange/theta", (size,), options)
            yield HostileScan("huge list", exchange_with(declared), INCOMPLETE)
        frames = partial(_declare, "exchange/data", (size, 1, 1), {"chunks": (1, 1, 1)})
        yield HostileScan("huge array", exchange_with(frames), UNRECOGNIZED)
        keys = partial(_declare, "instrument/detector/image_key", (size,), {"chunks": (1,), "dtype": "u1"})
        yield HostileScan("huge list", nxtomo_with(keys), UNRECOGNIZED)
    for size in (100_001, 1_000_000):
        yield HostileScan("tiny chunks", exchange_with(partial(_declare, "exchange/theta", (size,), chunks)), INCOMPLETE)
    for size in (2**21, 2**28):
        large = partial(_declare, "exchange/theta", (1500,), {"chunks": (size,), "maxshape": (None,)})
        yield HostileScan("huge chunk", exchange_with(large), INCOMPLETE)
    for megabytes in (64, 200):
        yield HostileScan("compressed bomb", exchange_with(partial(_make_bomb, 1000, 1, megabytes)), INCOMPLETE)
    yield HostileScan("compressed bomb", exchange_with(partial(_make_bomb, 1000, 200, 20)), INCOMPLETE)
    yield HostileScan("compressed bomb", exchange_with(partial(_make_bomb, 1_000_000, 1, 1000)), INCOMPLETE)
    yield HostileScan("many small bombs", exchange_with(_make_small_bombs), BROKEN)
    unwritten = partial(_declare, "exchange/theta", (1500,), {})
    yield HostileScan("never written", exchange_with(unwritten), INCOMPLETE)
    foreign = partial(_declare, "exchange/theta", (1500,), {"chunks": (100,), "compression": "lzf"})
    yield HostileScan("foreign filter", exchange_with(foreign), INCOMPLETE)
    for size in (5000, 2**24):
        text = partial(_replace, "process/acquisition/start_date", numpy.array(b"x", dtype=f"S{size}"))
        yield HostileScan("long text", exchange_with(text), UNTIMED)


def _make_bomb(chunk: int, count: int, megabytes: int, file: h5py.File) -> None:
    """Put angles in the place of others whose pieces are said to be small, and become very large."""
    del file["exchange/theta"]
    options = {"dtype": "f8", "chunks": (chunk,), "compression": "gzip"}
    theta = file.create_dataset("exchange/theta", (chunk * count,), **options)
    content = compressed_zeros(megabytes)
    for place in range(count):
        theta.id.write_direct_chunk((place * chunk,), content)


def _make_small_bombs(file: h5py.File) -> None:
    """Put angles in the place of others whose pieces are small when they are stored, and then a thousand times as large."""
    del file["exchange/theta"]
    options = {"dtype": "f8", "chunks": (10,), "compression": "gzip"}
    theta = file.create_dataset("exchange/theta", (200_000,), **options)
    piece = zlib.compress(bytes(100_000), 9)
    for place in range(0, 200_000, 10):
        theta.id.write_direct_chunk((place,), piece)


def compressed_zeros(megabytes: int) -> bytes:
    """Return zeros as gzip stores them; its blocks do not depend on one another here, so one is enough."""
    compressor = zlib.compressobj(9)
    begin = compressor.compress(b"") + compressor.flush(zlib.Z_FULL_FLUSH)
    return begin + (compressor.compress(bytes(1 << 20)) + compressor.flush(zlib.Z_FULL_FLUSH)) * megabytes


def crowded_files() -> Iterator[HostileScan]:
    """Files with very much in them, and nothing that is wanted."""
    for count, libver in ((1001, "earliest"), (1001, "latest"), (50_000, "earliest"), (20_000, "latest")):
        yield HostileScan("crowded group", partial(_write_crowd, count=count, libver=libver), UNRECOGNIZED)
    for depth in (100, 2000):
        yield HostileScan("deep nesting", partial(_write_nest, depth=depth), UNRECOGNIZED)


def _write_crowd(path: Path, count: int, libver: str) -> None:
    with h5py.File(path, "w", libver=libver) as file:
        root = h5py.h5g.open(file.id, b"/")
        for place in range(count):
            root.links.create_soft(b"%d" % place, b"/nowhere")


def _write_nest(path: Path, depth: int) -> None:
    with h5py.File(path, "w") as file:
        group = file
        for _ in range(depth):
            group = group.create_group("exchange")
