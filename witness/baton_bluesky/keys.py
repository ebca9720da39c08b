"""Ids that follow from what Bluesky's documents say, so that a document that is delivered again is recorded once."""

import hashlib
from datetime import UTC, datetime
from urllib.parse import urlsplit

BUCKETS_PER_SECOND = 10
"""Of a thinned channel, the first reading of each of these parts of a second is recorded."""


def derived_uuid7(milliseconds: int, namespace: str, name: str) -> str:
    """Return a UUIDv7-shaped id of a time and a hash, the same that the service derives."""
    digest = int.from_bytes(hashlib.sha256(f"{namespace}\0{name}".encode(errors="replace")).digest()[:10], "big")
    bits = (milliseconds & (2**48 - 1)) << 80 | digest
    bits = bits & ~(0xF << 76) & ~(0x3 << 62) | (0x7 << 76) | (0x2 << 62)
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def timestamp_text(seconds: float) -> str:
    """Return a time of a document as the service reads it; raise ValueError where there is no such day."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, OSError) as error:
        raise ValueError(f"{seconds!r} is no time.") from error


def run_id(uid: str, began_at: str) -> str:
    """Return the id of the run that records the Bluesky run with this uid, begun at this time."""
    return derived_uuid7(int(datetime.fromisoformat(began_at).timestamp() * 1000), "bluesky-run", uid)


def reading_id(uid: str, stream: str, seq_num: int | str, time: float, channel: str) -> str:
    """Return the id of a reading: a rewound scan emits a seq_num again, with another time, and both were measured."""
    return derived_uuid7(
        int(time * 1000), "bluesky-reading", "\0".join((uid, stream, str(seq_num), repr(float(time)), channel))
    )


def bucket_of(time: float) -> int:
    """Return the number of the tenth of a second that a time lies in."""
    return int(time * BUCKETS_PER_SECOND // 1)


def thinned_reading_id(uid: str, stream: str, time: float, channel: str) -> str:
    """Return the id of a reading of a thinned stream, the same for every reading of one tenth of a second."""
    bucket = bucket_of(time)
    name = "\0".join((uid, stream, str(bucket), channel))
    return derived_uuid7(bucket * 1000 // BUCKETS_PER_SECOND, "bluesky-thinned-reading", name)


def file_address(uri: str) -> str:
    """Return the address of a file without credentials, query and fragment: what names one file is one dataset."""
    parts = urlsplit(uri)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl() if parts.scheme else uri
