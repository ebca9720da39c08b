"""Pictures in shades of grey, written as PNG."""

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
LONGEST_SIDE = 320  # pixels of a picture


def grey_png(width: int, height: int, pixels: bytes) -> bytes:
    """Return a picture of 8 bits a pixel, which are given line by line from the top."""
    lines = b"".join(b"\0" + pixels[start : start + width] for start in range(0, width * height, width))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(lines)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
