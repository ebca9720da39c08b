"""Compression of answers: gzip, where the client takes it and the answer is text of more than a kilobyte."""

import asyncio
import zlib

from baton.api.http import Headers

SMALLEST = 1024  # bytes; what is smaller is not worth it
LONG = 64 * 1024  # bytes; what is longer is compressed in a thread
LEVEL = 5
GZIP = 31  # the window of zlib, with the header and trailer of gzip
TEXTS = (b"text/", b"application/json", b"image/svg+xml")


def accepts_gzip(accept_encoding: str | None) -> bool:
    """Return whether an `Accept-Encoding` header allows gzip."""
    for part in (accept_encoding or "").split(","):
        name, _, weight = part.partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return weight.replace(" ", "").lower() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def gzip_bytes(content: bytes) -> bytes:
    """Return content compressed."""
    compressor = zlib.compressobj(LEVEL, wbits=GZIP)
    return compressor.compress(content) + compressor.flush()


async def compress(body: bytes, headers: Headers, accept_encoding: str | None) -> bytes:
    """Return the body of a whole answer, compressed where that is worth it, which its headers then say."""
    if len(body) <= SMALLEST or any(name == b"content-encoding" for name, _ in headers):
        return body
    content_type = next((value for name, value in headers if name == b"content-type"), b"")
    if not content_type.startswith(TEXTS) and not content_type.endswith(b"+json"):
        return body
    headers.append((b"vary", b"accept-encoding"))
    if not accepts_gzip(accept_encoding):
        return body
    headers.append((b"content-encoding", b"gzip"))
    return await asyncio.to_thread(gzip_bytes, body) if len(body) > LONG else gzip_bytes(body)
