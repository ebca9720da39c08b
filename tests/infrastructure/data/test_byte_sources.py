"""What every source of bytes promises, and how the real one reads files and servers: whole, or not at all."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import pytest

from baton.application.ports import ByteSource
from baton.domain.data.attestation import ByteReading
from baton.infrastructure import byte_sources
from baton.infrastructure.byte_sources import BLOCK, ByteSources, BytesUnreachableError, file_digest
from baton.infrastructure.data_files import DataFiles
from baton.testing.ports import MemoryByteSource
from tests.support.infrastructure.byte_server import ByteServer, Handler, running_byte_server

FRAMES = os.urandom(2 * BLOCK + 17)


@pytest.fixture
def server() -> Iterator[ByteServer]:
    with running_byte_server() as server:
        yield server


@pytest.fixture
async def source(server: ByteServer, tmp_path: Path) -> AsyncIterator[ByteSources]:
    source = ByteSources(DataFiles([tmp_path]), [f"127.0.0.1:{server.port}"], 20)
    yield source
    await source.aclose()


@dataclass(frozen=True)
class Place:
    """A source of bytes, and how bytes come to a place that it reads."""

    source: ByteSource
    kind: str
    put: Callable[[bytes | None], str]
    """Put bytes, or nothing, at a new address, and return it."""


@pytest.fixture(params=["file", "http", "memory"])
def place(request: pytest.FixtureRequest, source: ByteSources, server: ByteServer, tmp_path: Path) -> Place:
    memory = MemoryByteSource()

    def put_file(content: bytes | None) -> str:
        path = tmp_path / f"{uuid4()}"
        if content is not None:
            path.write_bytes(content)
        return f"file://{path}"

    def put_served(content: bytes | None) -> str:
        path = f"/{uuid4()}"
        if content is not None:
            server.contents[path] = content
        return f"{server.url}{path}"

    def put_remembered(content: bytes | None) -> str:
        uri = f"https://storage.example/{uuid4()}"
        if content is not None:
            memory.contents[uri] = content
        return uri

    return {
        "file": Place(source, "PosixChecksum", put_file),
        "http": Place(source, "HttpRangeChecksum", put_served),
        "memory": Place(memory, "HttpRangeChecksum", put_remembered),
    }[request.param]


@pytest.mark.parametrize("content", [b"", b"x", FRAMES[:BLOCK], FRAMES], ids=["none", "one", "a block", "blocks"])
async def test_all_bytes_are_digested(place: Place, content: bytes) -> None:
    reading = await place.source.read(place.put(content))
    assert reading == ByteReading(
        verifier_kind=place.kind, digest=sha256(content).hexdigest(), byte_size=len(content), error_detail=None
    )


async def test_bytes_that_are_not_there_are_an_answer(place: Place) -> None:
    reading = await place.source.read(place.put(None))
    assert (reading.verifier_kind, reading.digest, reading.byte_size) == (place.kind, None, None)
    assert reading.error_detail


async def test_bytes_under_a_scheme_that_nothing_reads_are_an_answer(place: Place) -> None:
    reading = await place.source.read("s3://raw/scan.h5")
    assert (reading.verifier_kind, reading.digest, reading.byte_size) == ("None", None, None)
    assert reading.error_detail


async def test_readings_do_not_disturb_one_another(place: Place) -> None:
    contents = [os.urandom(1000 * size) for size in range(20)]
    readings = await asyncio.gather(*(place.source.read(place.put(content)) for content in contents))
    assert [reading.digest for reading in readings] == [sha256(content).hexdigest() for content in contents]


async def unreadable(source: ByteSources, uri: str) -> str:
    """Return why bytes cannot be read, in a sentence without the address."""
    reading = await source.read(uri)
    assert (reading.digest, reading.byte_size) == (None, None)
    assert reading.error_detail is not None
    assert uri not in reading.error_detail
    assert "127.0.0.1" not in reading.error_detail
    return reading.error_detail


async def test_a_server_is_asked_for_the_length_and_for_ranges_of_a_mebibyte(
    source: ByteSources, server: ByteServer
) -> None:
    server.contents["/scan.h5"] = FRAMES
    await source.read(f"{server.url}/scan.h5")
    ends = [(0, BLOCK - 1), (BLOCK, 2 * BLOCK - 1), (2 * BLOCK, len(FRAMES) - 1)]
    ranges = [("GET", "/scan.h5", f"bytes={first}-{last}") for first, last in ends]
    assert server.asked == [("HEAD", "/scan.h5", None), *ranges]


async def test_nothing_of_ours_is_sent_and_no_proxy_is_used(
    server: ByteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login operator password secret")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.contents["/scan.h5"] = FRAMES

    def set_cookie(handler: Handler) -> None:
        if handler.command == "HEAD":
            handler.send(200, Content_Length=len(FRAMES), Set_Cookie="session=1")
        else:
            handler.send_range(FRAMES)

    server.behaviours["/cookies"] = set_cookie
    source = ByteSources(DataFiles([]), ["127.0.0.1"], 20)
    for path in ("/scan.h5", "/cookies"):
        assert (await source.read(f"{server.url}{path}")).digest == sha256(FRAMES).hexdigest()
    await source.aclose()
    assert {name.lower() for headers in server.headers for name in headers} == {
        *("host", "accept", "accept-encoding", "connection", "user-agent", "range")
    }
    assert await unreadable(source, server.url.replace("//", "//operator:secret@") + "/scan.h5") == (
        "The address carries a name or password; none are sent from here, leave them out."
    )


@pytest.mark.parametrize(
    ("allowed", "readable"),
    [
        (["127.0.0.1"], True),
        (["storage.example", "127.0.0.1:{port}"], True),
        (["127.0.0.1:1"], False),
        (["localhost", "127.0.0.11", "127.0.0", "0.0.1"], False),
        ([], False),
    ],
)
async def test_only_allowed_hosts_are_asked(server: ByteServer, allowed: list[str], readable: bool) -> None:
    server.contents["/scan.h5"] = b"frames"
    source = ByteSources(DataFiles([]), [host.format(port=server.port) for host in allowed], 20)
    reading = await source.read(f"{server.url}/scan.h5")
    await source.aclose()
    assert (reading.digest is not None) == bool(server.asked) == readable
    assert readable or reading.error_detail == (
        "The host, or one that it redirects to, is not listed in VERIFIER_ALLOWED_HOSTS."
    )


@pytest.mark.parametrize("address", ["http://", "http:///scan.h5", "http://[::1", "http://host:99999/", "https:scan.h5"])
async def test_an_address_without_a_host_is_an_answer_too(source: ByteSources, address: str) -> None:
    await unreadable(source, address)


async def test_a_redirect_is_followed_to_an_allowed_host_only(source: ByteSources, server: ByteServer) -> None:
    server.contents["/scan.h5"] = b"frames"
    with running_byte_server({"/scan.h5": b"frames"}) as foreign:
        targets = {
            "/moved": "/scan.h5",
            "/twice": "/moved",
            "/away": f"{foreign.url}/scan.h5",
            "/file": "file:///etc/passwd",
            "/password": f"http://operator:secret@127.0.0.1:{server.port}/scan.h5",
            "/circle": "/circle",
            "/nonsense": "http://[",
        }
        for path, target in targets.items():
            server.behaviours[path] = lambda handler, target=target: handler.send(302, Location=target)  # type: ignore[misc]
        for path in ("/moved", "/twice"):
            assert (await source.read(f"{server.url}{path}")).digest == sha256(b"frames").hexdigest()
        said = {
            path: await unreadable(source, f"{server.url}{path}") for path in targets if path not in ("/moved", "/twice")
        }
        assert foreign.asked == []
    assert said["/away"] == "The host, or one that it redirects to, is not listed in VERIFIER_ALLOWED_HOSTS."
    assert said["/file"] == "The address, or a redirect from it, is none of http: or https:."
    assert said["/password"].startswith("The address carries a name or password")
    assert said["/circle"] == "The server redirects more than 5 times."


def ignore_ranges(handler: Handler) -> None:
    handler.send(200, b"" if handler.command == "HEAD" else FRAMES, Content_Length=len(FRAMES))


def headed(get: Callable[[Handler], None], **headers: object) -> Callable[[Handler], None]:
    """A server that answers HEAD as it should, with these headers, and GET in its own way."""

    def answer(handler: Handler) -> None:
        if handler.command == "HEAD":
            handler.send(200, **{"Content-Length": len(FRAMES), **headers})
        else:
            get(handler)

    return answer


def send_other_range(handler: Handler) -> None:
    first, last = handler.asked_range
    shifted = FRAMES[first + 1 : last + 1] + b"x"
    handler.send(206, shifted, **{"Content-Range": f"bytes {first + 1}-{last + 1}/{len(FRAMES)}"})


def send_short_range(handler: Handler) -> None:
    first, last = handler.asked_range
    handler.send(206, FRAMES[first:last], **{"Content-Range": f"bytes {first}-{last}/{len(FRAMES)}"})


def send_long_range(handler: Handler) -> None:
    first, last = handler.asked_range
    handler.send(206, FRAMES[first : last + 1] + b"x", **{"Content-Range": f"bytes {first}-{last}/{len(FRAMES)}"})


def send_grown_range(handler: Handler) -> None:
    first, last = handler.asked_range
    handler.send(206, FRAMES[first : last + 1], **{"Content-Range": f"bytes {first}-{last}/{len(FRAMES) + 1}"})


def break_off(handler: Handler) -> None:
    first, last = handler.asked_range
    handler.send(
        206, b"half", **{"Content-Range": f"bytes {first}-{last}/{len(FRAMES)}", "Content-Length": last + 1 - first}
    )
    handler.close_connection = True


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (ignore_ranges, "status 200 instead of 206"),
        (headed(send_other_range), "another range"),
        (headed(send_grown_range), "another range"),
        (headed(send_short_range), "more or fewer bytes"),
        (headed(send_long_range), "more or fewer bytes"),
        (headed(break_off), "broke off"),
        (headed(lambda handler: handler.send(503)), "status 503 instead of 206"),
        (headed(lambda handler: handler.send_range(FRAMES, ETag='"2"'), ETag='"1"'), "changed while they were read"),
        (headed(lambda handler: handler.send_range(FRAMES, Content_Encoding="gzip")), "compresses"),
        (headed(send_short_range, **{"Content-Length": None}), "how many bytes"),
        (headed(send_short_range, **{"Content-Length": "-1"}), "The server"),
        (lambda handler: handler.send(403), "HEAD with status 403"),
        (lambda handler: handler.send(405), "HEAD with status 405"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_server_that_lies_or_fails_is_no_reason_to_judge_the_bytes(
    source: ByteSources, server: ByteServer, behaviour: Callable[[Handler], None], words: str
) -> None:
    server.behaviours["/scan.h5"] = behaviour
    assert words in await unreadable(source, f"{server.url}/scan.h5")


async def test_a_server_that_is_not_there(source: ByteSources, server: ByteServer) -> None:
    with running_byte_server() as gone:
        source = ByteSources(DataFiles([]), ["127.0.0.1"], 20)
    assert await unreadable(source, f"{gone.url}/scan.h5") == "The server cannot be reached, or broke off (ConnectError)."
    await source.aclose()


async def test_a_server_that_drips_is_left_when_the_budget_is_spent(server: ByteServer, tmp_path: Path) -> None:
    def drip(handler: Handler) -> None:
        first, last = handler.asked_range
        handler.send(206, **{"Content-Range": f"bytes {first}-{last}/{len(FRAMES)}", "Content-Length": last + 1 - first})
        while not server.released.wait(0.02):
            handler.wfile.write(b"x")

    server.behaviours["/slow"] = headed(drip)
    server.behaviours["/silent"] = lambda handler: server.released.wait() and None
    server.contents["/scan.h5"] = b"frames"
    source = ByteSources(DataFiles([tmp_path]), ["127.0.0.1"], 0.3)
    late = "Reading it took longer than 0.3 s; see VERIFIER_BUDGET_SECONDS."
    assert await unreadable(source, f"{server.url}/slow") == await unreadable(source, f"{server.url}/silent") == late
    assert (await source.read(f"{server.url}/scan.h5")).digest == sha256(b"frames").hexdigest()
    await source.aclose()


class StoppedFiles(DataFiles):
    """Files on a file system that hangs until it is released."""

    def __init__(self, root: Path) -> None:
        super().__init__([root])
        self.released = threading.Event()
        self.closed = threading.Event()

    def open(self, uri: str) -> int:
        self.released.wait()
        descriptor = super().open(uri)
        self.closed.set()
        return descriptor


async def test_a_file_system_that_hangs_is_left_when_the_budget_is_spent(tmp_path: Path) -> None:
    (tmp_path / "scan.h5").write_bytes(FRAMES)
    files = StoppedFiles(tmp_path)
    source = ByteSources(files, [], 0.2)
    try:
        assert "took longer than 0.2 s" in await unreadable(source, f"file://{tmp_path}/scan.h5")
    finally:
        files.released.set()
        await source.aclose()


async def test_a_reading_that_is_cancelled_stops_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scan.h5").write_bytes(bytes(64 * BLOCK))
    began, released, blocks = threading.Event(), threading.Event(), list[int]()
    read_block = os.read

    def read_slowly(descriptor: int, size: int) -> bytes:
        if size != BLOCK:
            return read_block(descriptor, size)
        began.set()
        released.wait()
        blocks.append(size)
        return read_block(descriptor, size)

    monkeypatch.setattr(byte_sources.os, "read", read_slowly)
    source = ByteSources(DataFiles([tmp_path]), [], 20)
    reading = asyncio.create_task(source.read(f"file://{tmp_path}/scan.h5"))
    await asyncio.to_thread(began.wait)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    released.set()
    source._threads.shutdown(wait=True)
    assert len(blocks) == 1
    await source.aclose()


def test_a_file_that_changes_while_it_is_read_has_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path := tmp_path / "scan.h5").write_bytes(FRAMES)
    read_block = os.read

    def read_and_change(descriptor: int, size: int) -> bytes:
        if path.stat().st_size == len(FRAMES):
            with path.open("ab") as file:
                file.write(b"x")
        return read_block(descriptor, size)

    monkeypatch.setattr(byte_sources.os, "read", read_and_change)
    with pytest.raises(BytesUnreachableError, match="changed while it was read"):
        file_digest(DataFiles([tmp_path]), f"file://{path}", threading.Event())
