"""Compression of answers: gzip, where the client takes it and the answer is text of more than a kilobyte."""

import asyncio
import zlib

from baton.api.http import Response

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


async def compress(response: Response, accept_encoding: str | None) -> None:
    """Compress the body of a whole answer, where that is worth it; a stream, and what is compressed, stays as it is."""
    encoded = any(name == b"content-encoding" for name, _ in response.headers)
    if encoded or response.stream is not None or len(response.body) <= SMALLEST:
        return
    if not response.content_type.startswith(TEXTS) and not response.content_type.endswith(b"+json"):
        return
    response.headers.append((b"vary", b"accept-encoding"))
    if accepts_gzip(accept_encoding):
        long = len(response.body) > LONG
        response.body = await asyncio.to_thread(gzip_bytes, response.body) if long else gzip_bytes(response.body)
        response.headers.append((b"content-encoding", b"gzip"))
