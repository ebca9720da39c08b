"""One stored stream for each event class and version: collected from the databases of the tests, and read by the contract.

`COLLECT_EVENTS=1 make unit` writes what `tests/data/events` lacks; a file that is there is never written again.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

from baton.domain.kernel import Event, StoredEvent

PLACE = Path(__file__).parents[1] / "data" / "events"
COLLECTING = bool(os.environ.get("COLLECT_EVENTS"))
LONGEST = 60
"""Events that a stored stream may have; longer ones say nothing more."""
EVERYTHING = (
    "SELECT stream_type, stream_id, event_type, schema_version, payload::text, occurred_at "
    "FROM events ORDER BY stream_id, version"
)


@dataclass(frozen=True)
class StoredStream:
    """A stream as it was stored, whose last event is the one the file is about."""

    stream_type: str
    event_type: str
    version: int
    shape: dict[str, Any]
    events: list[dict[str, Any]]

    def stored_rows(self) -> list[StoredEvent]:
        """Return the stream as the store hands it to the fold."""
        return [
            StoredEvent(
                UUID(one["stream_id"]),
                number,
                number,
                one["event_type"],
                json.dumps(one["payload"]),
                datetime.fromisoformat(one["occurred_at"]),
                one["schema_version"],
            )
            for number, one in enumerate(self.events, start=1)
        ]


def specimens() -> Iterator[StoredStream]:
    """Yield every stored stream that is kept."""
    for path in sorted(PLACE.glob("*.json")):
        yield StoredStream(**json.loads(path.read_text()))


def path_of(event_type: str, version: int) -> Path:
    """Return the file of one event class and version."""
    return PLACE / f"{event_type}.v{version}.json"


def collect_events(database_url: str) -> None:
    """Keep, for each event class of a database that is still missing, the shortest stream that ends in it."""
    if not COLLECTING:
        return
    from baton.domain.contexts import REGISTRY

    with psycopg.connect(database_url) as connection:
        rows = connection.execute(EVERYTHING).fetchall()
    streams: dict[tuple[str, UUID], list[dict[str, Any]]] = {}
    shortest: dict[Path, StoredStream] = {}
    for stream_type, stream_id, event_type, version, payload, occurred_at in rows:
        events = streams.setdefault((stream_type, stream_id), [])
        one = {"event_type": event_type, "schema_version": version, "stream_id": str(stream_id)}
        events.append({**one, "occurred_at": occurred_at.isoformat(), "payload": json.loads(payload)})
        known = REGISTRY.aggregates[stream_type].events.get(event_type) if stream_type in REGISTRY.aggregates else None
        path = path_of(event_type, version)
        if known is None or path.exists() or len(events) > LONGEST:
            continue
        if path not in shortest or len(events) < len(shortest[path].events):
            shortest[path] = StoredStream(stream_type, event_type, version, shape_of(known), list(events))
    for specimen in shortest.values():
        keep(specimen)


def keep(specimen: StoredStream) -> None:
    """Write a stream unless one of its class and version is there already."""
    path = path_of(specimen.event_type, specimen.version)
    PLACE.mkdir(exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(vars(specimen), indent=1, ensure_ascii=False) + "\n")
    with suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()


def shape_of(event: type[Event]) -> dict[str, Any]:
    """Return the form of an event's payload: names and types of its keys, without words about them."""
    schema = event.model_json_schema(mode="serialization")
    definitions = schema.get("$defs", {})

    def plain(part: Any) -> Any:
        match part:
            case {"$ref": str() as reference}:
                return plain(definitions[reference.rsplit("/", 1)[-1]])
            case {"enum": list() as values}:
                return {"enum": sorted(values, key=str)}
            case dict():
                return {key: plain(value) for key, value in part.items() if key not in ("title", "description", "$defs")}
            case list():
                return [plain(value) for value in part]
        return part

    properties: dict[str, Any] = schema.get("properties", {})
    return {name: plain(value) for name, value in properties.items()}
