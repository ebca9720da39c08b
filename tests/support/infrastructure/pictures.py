"""Pictures as PNG files have them, and files that there are pictures of."""

import struct
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def pixels_of(png: bytes) -> list[list[int]]:
    """Return the lines of a picture in 8 bits of grey; every part of the file must be what the format wants."""
    assert png.startswith(SIGNATURE)
    parts, place = [], len(SIGNATURE)
    while place < len(png):
        (size,) = struct.unpack_from(">I", png, place)
        kind, content = png[place + 4 : place + 8], png[place + 8 : place + 8 + size]
        assert struct.unpack_from(">I", png, place + 8 + size) == (zlib.crc32(kind + content),)
        parts.append((kind, content))
        place += size + 12
    assert [kind for kind, _ in parts] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *form = struct.unpack(">IIBBBBB", parts[0][1])
    assert form == [8, 0, 0, 0, 0], "eight bits of grey, not interlaced"
    lines = zlib.decompress(parts[1][1])
    assert len(lines) == height * (width + 1)
    assert set(lines[:: width + 1]) == {0}, "no line is filtered"
    return [[*lines[start + 1 : start + 1 + width]] for start in range(0, len(lines), width + 1)]


def write_array(path: Path, values: Any, name: str = "entry/data", **options: Any) -> Path:
    """Write a file with one array."""
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=numpy.asarray(values), **options)
    return path
