"""A real server on loopback that hands out artifacts as a peer does, or misbehaves."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.infrastructure.loopback_server import JsonHandler, serve

TOKEN = "alpha-reader"


@dataclass
class PeerServer:
    """What a peer has published, by path, what was asked for, and how it fails."""

    documents: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """The paths that were asked for, each with the token it came with."""
    failure: int | str | None = None
    """What happens instead: a status, `silent`, `slow`, `cut` in the middle, or `elsewhere`."""
    released: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def publish(self, receipt_id: object, document: bytes) -> None:
        self.documents[f"/federation/artifacts/{receipt_id}"] = document


def handler_of(peer: PeerServer) -> type[JsonHandler]:
    class Handler(JsonHandler):
        def do_GET(self) -> None:
            given = self.headers.get("Authorization")
            peer.asked.append((self.path, given and given.removeprefix("Bearer ")))
            document = peer.documents.get(self.path)
            match peer.failure:
                case int() as status:
                    self.answer(status, b'{"code":"PeerError"}')
                case "silent":
                    peer.released.wait(30)
                    self.close_connection = True
                case "slow":
                    self.begin(200, 10_000_000)
                    while not peer.released.wait(0.02):
                        try:
                            self.wfile.write(b" ")
                        except OSError:
                            break
                    self.close_connection = True
                case "cut":
                    assert document is not None
                    self.begin(200, len(document))
                    self.wfile.write(document[:100])
                    self.close_connection = True
                case "elsewhere":
                    self.begin(302, 0, Location=f"{peer.url}/hidden")
                case _ if document is None:
                    self.answer(404, b"{}")
                case _:
                    self.answer(200, document)

        def answer(self, status: int, body: bytes) -> None:
            try:
                self.say(status, body)
            except OSError:
                self.close_connection = True

    return Handler


@contextmanager
def running_peer() -> Iterator[PeerServer]:
    """A peer that answers until the block ends."""
    peer = PeerServer()
    with serve(handler_of(peer), peer.released.set) as peer.url:
        yield peer
