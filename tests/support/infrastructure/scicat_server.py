"""A real server on loopback that keeps datasets as version 3 of SciCat's REST API does, or misbehaves."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from tests.support.infrastructure.loopback_server import JsonHandler, serve

TOKEN, GROUP, CONTACT, PREFIX = "t0ken", "bl7-ingest", "data@lumen.example", "20.500.12345"
Answer = tuple[int, Any]
Test = Callable[[Any], bool]


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_mailbox(value: Any) -> bool:
    return is_text(value) and re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", value) is not None


def is_time(value: Any) -> bool:
    try:
        return is_text(value) and datetime.fromisoformat(value) is not None
    except ValueError:
        return False


def is_files(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(not faults_of(file, FILE, FILE_NEEDS) for file in value)


COMMON: dict[str, Test] = {
    **dict.fromkeys(("owner", "ownerGroup", "sourceFolder", "datasetName", "description", "proposalId"), is_text),
    **dict.fromkeys(("validationStatus", "license", "runNumber", "comment", "classification"), is_text),
    **dict.fromkeys(("keywords", "sharedWith", "accessGroups"), is_texts),
    **dict.fromkeys(("size", "packedSize", "numberOfFiles", "numberOfFilesArchived"), is_whole),
    "contactEmail": is_mailbox,
    "ownerEmail": is_mailbox,
    "creationTime": is_time,
    "isPublished": is_flag,
    "scientificMetadata": is_object,
}
COMMON_NEEDS = ("owner", "ownerGroup", "contactEmail", "sourceFolder", "creationTime")
RAW = COMMON | dict.fromkeys(
    ("principalInvestigator", "creationLocation", "dataFormat", "sampleId", "instrumentId"), is_text
)
DERIVED = COMMON | {"investigator": is_text, "inputDatasets": is_texts, "usedSoftware": is_texts, "jobParameters": is_object}
NEEDS = {
    "raw": (*COMMON_NEEDS, "principalInvestigator", "creationLocation"),
    "derived": (*COMMON_NEEDS, "investigator", "inputDatasets", "usedSoftware"),
}
FORMS = {"raw": RAW, "derived": DERIVED}
FILE: dict[str, Test] = {"path": is_text, "size": is_whole, "time": is_time, "chk": is_text}
FILE_NEEDS = ("path", "size", "time")
BLOCK: dict[str, Test] = {"size": is_whole, "chkAlg": is_text, "dataFileList": is_files}
BLOCK_NEEDS = ("size", "dataFileList")


def faults_of(given: Any, form: Mapping[str, Test], needed: tuple[str, ...]) -> list[str]:
    """What a strict validation says: unknown properties, wrong types and what is missing."""
    if not is_object(given):
        return ["body should be an object"]
    unknown = [f"property {name} should not exist" for name in given if name not in form]
    wrong = [f"{name} has the wrong form" for name, value in given.items() if name in form and not form[name](value)]
    return [*unknown, *wrong, *(f"{name} should not be empty" for name in needed if name not in given)]


@dataclass
class SciCatServer:
    """What is catalogued, what was asked for, and how the next requests fail."""

    datasets: dict[str, dict[str, Any]] = field(default_factory=dict)
    blocks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    creations: list[str] = field(default_factory=list)
    """The identifier of every dataset that was made, as often as it was."""
    failures: list[Answer | str] = field(default_factory=list)
    """What happens to the next requests instead: an answer, or `silent`, or `lost` after it was carried out."""
    refused_names: set[str] = field(default_factory=set)
    """The names of datasets that it does not take."""
    down: bool = False
    taken_status: int = 409
    gate: threading.Event = field(default_factory=threading.Event)
    """Requests wait here while it is not set."""
    closes_after: int | None = None
    """The gate closes when so many datasets were made."""
    url: str = ""

    def __post_init__(self) -> None:
        self.gate.set()

    def answer(self, method: str, path: str, content: Any) -> Answer:
        parts = [unquote(part) for part in path.removeprefix("/api/v3/").split("/")]
        match method, parts:
            case "POST", ["datasets"]:
                return self.create(content)
            case "PATCH", ["datasets", pid]:
                return self.change(pid, content)
            case "GET" | "POST", ["datasets", pid, "origdatablocks"] if pid in self.datasets:
                return (200, self.blocks[pid]) if method == "GET" else self.add_block(pid, content)
        return 404, {"statusCode": 404, "message": "not found"}

    def create(self, content: Any) -> Answer:
        content = dict(content)
        pid, kind = content.pop("pid", None), content.pop("type", None)
        if kind not in FORMS or not is_text(pid):
            return bad_request("type must be one of raw, derived; pid must be a string")
        if faults := faults_of(content, FORMS[kind], NEEDS[kind]):
            return bad_request(*faults)
        if content.get("datasetName") in self.refused_names:
            return bad_request("datasetName is not allowed here")
        if content["ownerGroup"] != GROUP or not pid.startswith(f"{PREFIX}/"):
            return 403, {"statusCode": 403, "message": "Unauthorized to create this dataset"}
        if pid in self.datasets:
            return self.taken_status, {"statusCode": self.taken_status, "message": f"dataset {pid} exists"}
        self.datasets[pid] = {"pid": pid, "type": kind, **content}
        self.blocks[pid] = []
        self.creations.append(pid)
        if len(self.creations) == self.closes_after:
            self.gate.clear()
        return 201, self.datasets[pid]

    def change(self, pid: str, content: Any) -> Answer:
        if (kept := self.datasets.get(pid)) is None:
            return 404, {"statusCode": 404, "message": f"dataset: {pid} not found"}
        if faults := faults_of(content, FORMS[kept["type"]], ()):
            return bad_request(*faults)
        kept.update(content)
        return 200, kept

    def add_block(self, pid: str, content: Any) -> Answer:
        if faults := faults_of(content, BLOCK, BLOCK_NEEDS):
            return bad_request(*faults)
        self.blocks[pid].append({"_id": str(len(self.blocks[pid])), "datasetId": pid, **content})
        return 201, self.blocks[pid][-1]


def bad_request(*faults: str) -> Answer:
    return 400, {"statusCode": 400, "message": list(faults), "error": "Bad Request"}


def handler_of(scicat: SciCatServer) -> type[JsonHandler]:
    class Handler(JsonHandler):
        def carry_out(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            scicat.gate.wait(30)
            scicat.asked.append((self.command, self.path))
            failure = scicat.failures.pop(0) if scicat.failures else None
            if scicat.down or failure == "gone":
                self.close_connection = True
                return None
            if isinstance(failure, tuple):
                return self.say(*failure)
            if failure == "silent":
                threading.Event().wait(1)
                self.close_connection = True
                return None
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                return self.say(401, {"statusCode": 401, "message": "Unauthorized"})
            answer = scicat.answer(self.command, self.path, json.loads(body) if body else None)
            if failure == "lost":
                self.close_connection = True
                return None
            return self.say(*answer)

        do_GET = do_POST = do_PATCH = carry_out

    return Handler


@contextmanager
def running_scicat() -> Iterator[SciCatServer]:
    """A catalogue on a free port, until the end of the block."""
    scicat = SciCatServer()
    with serve(handler_of(scicat), scicat.gate.set) as address:
        scicat.url = f"{address}/api/v3"
        yield scicat
