"""A real server on loopback that keeps DOIs as DataCite's REST API does, or misbehaves."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.support.infrastructure.loopback_server import JsonHandler, serve

PREFIX, ACCOUNT, PASSWORD = "10.70000", "FAC.BL7", "s3cret"
STATES = {"publish": "findable", "register": "registered", "hide": "registered"}
Answer = tuple[int, Any]


@dataclass
class Registry:
    """What is registered, what was asked for, and how the next requests fail."""

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    failures: list[Answer | str] = field(default_factory=list)
    """What happens to the next requests instead: an answer, or `silent`, `lost` after it was carried out, `stalled` after it
    was carried out until released, `twice`."""
    failure: Answer | str | None = None
    """What happens to every request instead, as long as it is set: work that is taken up again meets it again."""
    released: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def answer(self, method: str, path: str, attributes: dict[str, Any]) -> Answer:
        if method == "POST":
            doi = attributes.pop("doi").lower()
            if doi in self.records:
                return 422, {"errors": [{"source": "doi", "title": "This DOI has already been taken"}]}
            if not doi.startswith(f"{PREFIX}/"):
                return 403, {"errors": [{"status": "403", "title": "You are not authorized to access this resource."}]}
            if not attributes.get("creators"):
                return 422, {"errors": [{"source": "creators", "title": "can't be blank"}]}
            self.records[doi] = {"state": "draft"}
        else:
            doi = unquote(path.removeprefix("/dois/")).lower()
            if doi not in self.records:
                return 404, {"errors": [{"status": "404", "title": "The resource you are looking for doesn't exist."}]}
        record = self.records[doi]
        if (event := attributes.pop("event", None)) is not None:
            record["state"] = STATES[event]
        record.update(attributes)
        return 201 if method == "POST" else 200, {"data": {"id": doi, "type": "dois", "attributes": record}}


def handler_of(registry: Registry) -> type[JsonHandler]:
    allowed = "Basic " + base64.b64encode(f"{ACCOUNT}:{PASSWORD}".encode()).decode()

    class Handler(JsonHandler):
        media_type = "application/vnd.api+json"

        def carry_out(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            registry.asked.append((self.command, self.path))
            failure = registry.failures.pop(0) if registry.failures else registry.failure
            if isinstance(failure, tuple):
                return self.say(*failure)
            if failure == "silent":
                registry.released.wait(30)
                self.close_connection = True
                return None
            if self.headers.get("Authorization") != allowed:
                return self.say(401, {"errors": [{"status": "401", "title": "Bad credentials."}]})
            attributes = json.loads(body)["data"]["attributes"] if body else {}
            answer = registry.answer(self.command, self.path, attributes)
            if failure == "stalled":
                registry.released.wait(30)
            if failure in ("lost", "stalled"):
                self.close_connection = True
                return None
            self.say(*answer)
            if failure == "twice":
                self.say(*answer)

        do_GET = do_POST = do_PUT = carry_out

    return Handler


@contextmanager
def running_registry() -> Iterator[Registry]:
    """A registry on a free port, until the end of the block."""
    registry = Registry()
    with serve(handler_of(registry), registry.released.set) as registry.url:
        yield registry
