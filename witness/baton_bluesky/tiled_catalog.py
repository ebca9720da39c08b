"""Bluesky runs in a Tiled server, read back as documents over its REST interface; Tiled's own client is not needed.

A run is a container with its start and stop as metadata, a stream a container in it with its descriptor as metadata. In it a
table holds the numbers of the events, and every other part names the file that it is in. Tiled keeps no uid of an event.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from baton_bluesky.service import BatonService, HttpAnswer, NoServiceError

API = "/api/v1"
PAGE = 100
COLUMNS = 60
"""Number of columns that are read at once."""
MAX_ANSWER = 256 * 2**20
TIMEOUT_SECONDS = 60.0
API_KEY = "TILED_API_KEY"
Document = dict[str, Any]


class TiledError(Exception):
    """Tiled does not answer, or not as it should."""


class TiledRun(NamedTuple):
    """A Bluesky run in the catalogue."""

    path: str
    start: Document
    stop: Document | None

    @property
    def uid(self) -> str:
        """The uid of its start document."""
        return str(self.start.get("uid"))


class TiledService(BatonService):
    """A client of a Tiled server."""

    max_answer = MAX_ANSWER

    def credentials(self) -> dict[str, str]:
        """Return the header with the key of the environment."""
        key = os.environ.get(API_KEY)
        return {"Authorization": f"Apikey {key}"} if key else {}


class TiledCatalog:
    """The Bluesky runs below one address: that of a server, or of a container such as `http://tiled:8000/raw`."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        server = f"{parts.scheme}://{parts.netloc}"
        path = parts.path.removeprefix(f"{API}/metadata").removeprefix(API)
        self._service, self._path = TiledService(server, timeout=TIMEOUT_SECONDS), path.strip("/")

    def runs(self, since: float | None = None) -> Iterator[TiledRun]:
        """Return the runs that began since a time, the oldest first."""
        filters: dict[str, list[str]] = {
            "filter[specs][condition][include]": ['["BlueskyRun"]'],
            "filter[specs][condition][exclude]": ["[]"],
            "sort": ["start.time"],
        }
        if since is not None:
            comparison = {"operator": "ge", "key": "start.time", "value": json.dumps(since)}
            filters |= {f"filter[comparison][condition][{name}]": [value] for name, value in comparison.items()}
        for item in self._search(self._path, **filters):
            metadata = part(part(item, "attributes"), "metadata")
            if isinstance(start := metadata.get("start"), dict):
                stop = metadata.get("stop")
                yield TiledRun(path_of(self._path, item["id"]), start, stop if isinstance(stop, dict) else None)

    def documents(self, run: TiledRun) -> Iterator[tuple[str, Document]]:
        """Return the documents of a run; its events have no uid, and files stand for their data."""
        yield "start", run.start
        for stream in self._search(run.path):
            if "BlueskyEventStream" in [spec.get("name") for spec in part(stream, "attributes").get("specs") or ()]:
                yield from self._stream(run, stream)
        if run.stop is not None:
            yield "stop", run.stop

    def _stream(self, run: TiledRun, stream: Document) -> Iterator[tuple[str, Document]]:
        metadata, path = part(part(stream, "attributes"), "metadata"), path_of(run.path, stream["id"])
        uid = str(metadata.get("uid"))
        descriptor = {
            **{key: metadata.get(key) for key in ("time", "data_keys", "configuration", "hints")},
            "uid": uid,
            "run_start": run.uid,
            "name": stream["id"],
            "object_keys": keys_by_object(part(metadata, "data_keys")),
        }
        yield "descriptor", descriptor
        for update in metadata.get("_config_updates") or ():
            configuration = merge_configuration(part(metadata, "configuration"), part(update, "configuration"))
            yield "descriptor", {**descriptor, "uid": update["uid"], "time": update["time"], "configuration": configuration}
        columns: dict[str, list[Any]] = {}
        others: list[Document] = []
        for child in self._search(path, include_data_sources=["true"]):
            attributes = part(child, "attributes")
            if attributes.get("structure_family") == "table":
                columns |= self._table(path_of(path, child["id"]), part(attributes, "structure").get("columns") or [])
            else:
                others.append(child)
        announced = part(run.stop or {}, "num_events").get(stream["id"])
        for child in others:
            yield from files_of(run, uid, child, 0 if columns else int(announced or 0))
        yield from events_of_columns(uid, columns)

    def _table(self, path: str, names: list[str]) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {}
        for first in range(0, len(names), COLUMNS):
            chosen = names[first : first + COLUMNS]
            columns |= self._get(f"/table/full/{quote(path)}", format=["application/json"], column=chosen)
        return columns

    def _search(self, path: str, **parameters: list[str]) -> Iterator[Document]:
        """Return the children of a container, page by page."""
        offset = 0
        while True:
            page = {"page[offset]": [str(offset)], "page[limit]": [str(PAGE)]}
            items = self._get(f"/search/{quote(path)}", **page, **parameters)["data"]
            yield from items
            if len(items) < PAGE:
                return
            offset += PAGE

    def _get(self, path: str, **parameters: list[str]) -> Any:
        try:
            answer: HttpAnswer = self._service.request("GET", f"{API}{path}?{urlencode(parameters, doseq=True)}")
        except NoServiceError as error:
            raise TiledError(f"Tiled at {self._service.address} does not answer: {error}.") from error
        if answer.status != 200:
            raise TiledError(f"Tiled answers {answer.sentence} to {path}.")
        return answer.body


def events_of_columns(descriptor: str, columns: Mapping[str, list[Any]]) -> Iterator[tuple[str, Document]]:
    """Return the events of a table, row by row; a rewound scan has two rows of one number, and both were measured."""
    keys = [key for key in columns if key not in ("seq_num", "time") and f"ts_{key}" in columns]
    for row, (seq_num, time) in enumerate(zip(columns.get("seq_num", ()), columns.get("time", ()), strict=True)):
        present = [key for key in keys if columns[key][row] is not None]
        yield (
            "event",
            {
                "descriptor": descriptor,
                "seq_num": int(seq_num),
                "time": float(time),
                "data": {key: columns[key][row] for key in present},
                "timestamps": {key: columns[f"ts_{key}"][row] for key in present},
            },
        )


def files_of(run: TiledRun, descriptor: str, child: Document, events: int) -> Iterator[tuple[str, Document]]:
    """Return the resources of a part of a stream that is in files, with its frames, and the events that have no row."""
    attributes = part(child, "attributes")
    shape = part(attributes, "structure").get("shape") or [0]
    for source in attributes.get("data_sources") or ():
        for number, asset in enumerate(source.get("assets") or ()):
            if source.get("management") != "external" or not asset.get("data_uri"):
                continue
            uid = f"{descriptor}-{child['id']}-{number}"
            yield (
                "stream_resource",
                {
                    "uid": uid,
                    "run_start": run.uid,
                    "data_key": child["id"],
                    "uri": asset["data_uri"],
                    "mimetype": source.get("mimetype"),
                    "parameters": source.get("parameters") or {},
                },
            )
            frames = {"start": 0, "stop": int(shape[0])}
            numbers = {"start": 1, "stop": events + 1}
            datum = {"uid": f"{uid}/0", "stream_resource": uid, "descriptor": descriptor}
            yield "stream_datum", {**datum, "indices": frames, "seq_nums": numbers}


def keys_by_object(data_keys: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the data keys of each object; Tiled keeps the object beside the key."""
    objects: dict[str, list[str]] = {}
    for key, described in data_keys.items():
        if isinstance(described, dict) and isinstance(name := described.get("object_name"), str):
            objects.setdefault(name, []).append(key)
    return objects


def merge_configuration(configuration: Document, update: Document) -> Document:
    """Return a configuration with what a later descriptor says; units stand in the first one."""
    return {name: {**part(configuration, name), **part(update, name)} for name in {**configuration, **update}}


def part(document: Mapping[str, Any], key: str) -> Document:
    """Return a part of a document that is a mapping; an empty one where it is none."""
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def path_of(*segments: str) -> str:
    """Return the path of a part of a container."""
    return "/".join(segment for segment in segments if segment)
