"""What each document of a Bluesky run becomes: the requests by which the service records it.

A `RunTranslation` takes the records of one run in their order; it reads no clock and talks to nobody, and its state is plain
data, so that a sender that was killed continues with the state that is on disk. Records are what the callback journals:

| kind | has |
|---|---|
| start | `doc`, `uid`, `time`, and what the witness was told: `plan`, `keys`, `subject_key`, `simulated`, `holdable` |
| descriptor, resource, stream_resource | `doc` |
| event | `d` descriptor, `s` seq_num, `t` time, `v` numbers, `ts` their times, `n` events of the stream so far, `thin` |
| state | `new` and `old` state of the RunEngine, `t` |
| interruption | `word`, `t`: a pause or its end, by the stream that records them |
| stop | `doc`, `counts` |
| lost | nothing: the run is over, and no stop document came |
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from baton_bluesky.keys import file_address, reading_id, run_id, thinned_reading_id, timestamp_text
from baton_bluesky.reduction import MAX_DATA_KEYS, MAX_KEY, UNWRITABLE, chosen_metadata

MAX_METADATA = 32_000  # Bytes of JSON; the service takes 65,536 with the parameters.
MAX_SETTINGS = 16_000  # Bytes of JSON, of one object's configuration.
MAX_FILES = 500
MAX_REASON = 500
SIMULATIONS = ("soft://", "sim://", "mock+")
DIED = "The RunEngine's process ended without a stop document."


class RequestKind(StrEnum):
    BEGIN = "begin"
    APPEND = "append"
    CHANGE = "change"
    FILES = "files"
    TRUNCATE = "truncate"


PATHS = {
    RequestKind.BEGIN: "/runs/witness",
    RequestKind.APPEND: "/runs/{run_id}/observations",
    RequestKind.CHANGE: "/runs/{run_id}/witness",
    RequestKind.FILES: "/runs/{run_id}/register-files",
    RequestKind.TRUNCATE: "/runs/{run_id}/truncate",
}


class WitnessRequest(NamedTuple):
    """A request to the service. The sender names the plan and the subject of a beginning by their ids."""

    kind: RequestKind
    body: dict[str, Any]
    plan: str | None = None
    subject: str | None = None

    @property
    def ends_run(self) -> bool:
        """Whether the run takes no readings afterwards."""
        return self.kind is RequestKind.TRUNCATE or (self.kind is RequestKind.CHANGE and self.body["change"] == "ended")


@dataclass
class RunTranslation:
    """The state of one Bluesky run between two of its records."""

    uid: str = ""
    run_id: str = ""
    """The id that the run gets, unless the service answers another."""
    simulated: bool | None = None
    num_points: int | None = None
    last_time: float = 0.0
    streams: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What is known of each descriptor: its stream, and the unit, source and object of its keys."""
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The configuration of each object."""
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    """Number of events seen of each stream."""
    dropped: int = 0
    paused: bool = False
    stopped: bool = False
    hooked: bool = False
    """Whether states of the RunEngine are seen, which tell of pauses."""
    simulated_sources: bool = False
    ended: bool = False

    @property
    def last_at(self) -> str:
        """The time of the last document that had one."""
        return self._text(self.last_time)

    def as_document(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return asdict(self)

    def translate(self, record: Mapping[str, Any]) -> Iterator[WitnessRequest]:
        """Return the requests that a record leads to."""
        self.dropped = record.get("dropped", self.dropped)
        match record.get("kind"):
            case "start" if not self.uid:
                yield self._begin(record)
            case "descriptor":
                yield from self._describe(record["doc"])
            case "event":
                yield from self._read(record)
            case "resource" | "stream_resource":
                self.resources.setdefault(str(record["doc"].get("uid")), record["doc"])
            case "state":
                yield from self._change_state(record)
            case "interruption" if not self.hooked:
                yield from self._pause(record["word"] != "resume", record["t"])
            case "stop" if not self.ended:
                yield from self._end(record)
            case "lost" if not self.ended:
                yield from self.requests_of_death()

    def requests_of_death(self) -> Iterator[WitnessRequest]:
        """Return the requests for a run whose RunEngine died without a stop document."""
        self.ended = True
        yield WitnessRequest(RequestKind.TRUNCATE, {"reason": DIED, "interrupted_at": self.last_at})
        yield from self._register_files({}, {})

    def _begin(self, record: Mapping[str, Any]) -> WitnessRequest:
        start: dict[str, Any] = record["doc"]
        self.uid = record["uid"]
        self.simulated = record.get("simulated")
        self.last_time = record["time"]
        began_at = self._text(record["time"])
        self.run_id = run_id(self.uid, began_at)
        self.num_points = count(start.get("num_points"))
        plan_name, scan_id = text(start.get("plan_name"), 200), start.get("scan_id")
        scan = str(scan_id)[:60] if isinstance(scan_id, int | str) and str(scan_id).strip() else None
        baton = start["baton"] if isinstance(start.get("baton"), dict) else {}
        plan_args = start.get("plan_args")
        body: dict[str, Any] = {
            "document_uid": self.uid,
            "name": run_name(plan_name, scan, text(start.get("beamline"), 60)),
            "began_at": began_at,
            "holdable": record.get("holdable") is True or baton.get("holdable") is True,
            "simulated": self.simulated,
            "parameters": small_parts(plan_args, MAX_METADATA) if isinstance(plan_args, dict) else {},
            "metadata": small_parts(chosen_metadata(start, tuple(record.get("keys", ()))), MAX_METADATA),
            "external_refs": {"bluesky": self.uid, **({"bluesky_scan": scan} if scan else {})},
        }
        if plan_name:
            body["plan_name"] = plan_name
        if reason := text(baton.get("override_reason"), MAX_REASON):
            body["override_reason"] = reason
        return WitnessRequest(
            RequestKind.BEGIN, body, record.get("plan"), subject_name(start.get(record.get("subject_key", "sample")))
        )

    def _describe(self, descriptor: Mapping[str, Any]) -> Iterator[WitnessRequest]:
        uid, name, time = str(descriptor.get("uid")), stream_name(descriptor), self._time(descriptor)
        data_keys = {key: one for key, one in mapping(descriptor, "data_keys").items() if isinstance(one, dict)}
        objects = {
            key: obj
            for obj, keys in mapping(descriptor, "object_keys").items()
            if isinstance(keys, list)
            for key in keys
            if isinstance(key, str)
        }
        sources = {
            key: source
            for key, one in data_keys.items()
            if (source := text(one.get("source"), 500)) and not source.startswith("file:")
        }
        self.streams[uid] = {
            "name": name,
            "units": {key: unit for key, one in data_keys.items() if (unit := text(one.get("units"), 64))},
            "simulated": [key for key, source in sources.items() if source.startswith(SIMULATIONS)],
            "sources": sources,
            "objects": objects,
        }
        self.simulated_sources |= bool(self.streams[uid]["simulated"])
        self.events.setdefault(name, 0)
        if sources:
            described = tuple(dict.fromkeys(sources.values()))[:MAX_DATA_KEYS]
            yield WitnessRequest(RequestKind.CHANGE, {"change": "described", "at": self._text(time), "sources": described})
        entries = []
        for obj, configuration in mapping(descriptor, "configuration").items():
            if not isinstance(configuration, dict):
                continue
            data, times = mapping(configuration, "data"), mapping(configuration, "timestamps")
            self.settings[obj] = small_parts(data, MAX_SETTINGS)
            units = {
                key: one.get("units") for key, one in mapping(configuration, "data_keys").items() if isinstance(one, dict)
            }
            for key, value in data.items():
                channel = f"{obj}.{key}"
                if is_number(value) and is_channel(channel):
                    id = reading_id(self.uid, name, "configuration", time, channel)
                    at = self._text(times.get(key), time)
                    entries.append(
                        entry(id, channel, value, at, "baseline", text(units.get(key), 64), self.simulated is True)
                    )
        if entries:
            yield WitnessRequest(RequestKind.APPEND, {"entries": entries[:MAX_DATA_KEYS]})

    def _read(self, record: Mapping[str, Any]) -> Iterator[WitnessRequest]:
        stream = self.streams.get(record["d"])
        if stream is None:
            return
        name, time, times = stream["name"], float(record["t"]), record.get("ts", {})
        self.last_time = time
        self.events[name] = max(self.events.get(name, 0), record.get("n", 0))
        sampling = "baseline" if name == "baseline" else "monitor"
        entries = []
        for key, value in record["v"].items():
            channel = key if name == "primary" else f"{name}/{key}"
            if not is_number(value) or not is_channel(channel):
                continue
            if record.get("thin"):
                id = thinned_reading_id(self.uid, name, time, channel)
            else:
                id = reading_id(self.uid, name, record["s"], time, channel)
            simulated = self.simulated is True or key in stream["simulated"]
            at = self._text(times.get(key), time)
            entries.append(entry(id, channel, value, at, sampling, stream["units"].get(key), simulated))
        if entries:
            yield WitnessRequest(RequestKind.APPEND, {"entries": entries})

    def _change_state(self, record: Mapping[str, Any]) -> Iterator[WitnessRequest]:
        self.hooked = True
        match record["old"], record["new"]:
            case _, "paused":
                yield from self._pause(True, record["t"])
            case "paused", "running":
                yield from self._pause(False, record["t"])
            case _, "stopping":
                self.stopped = True

    def _pause(self, is_pause: bool, time: float) -> Iterator[WitnessRequest]:
        if is_pause is not self.paused:
            self.paused = is_pause
            change = "paused" if is_pause else "resumed"
            yield WitnessRequest(RequestKind.CHANGE, {"change": change, "at": self._text(time)})

    def _end(self, record: Mapping[str, Any]) -> Iterator[WitnessRequest]:
        self.ended = True
        stop, counts = record["doc"], record.get("counts", {})
        time = self._time(stop)
        announced = {name: one for name, given in mapping(stop, "num_events").items() if (one := count(given)) is not None}
        seen = {**dict.fromkeys(announced, 0), **self.events, **counts.get("streams", {})}
        status = stop.get("exit_status")
        end = {
            "exit_status": status if status in ("success", "abort", "fail") else "fail",
            "reason": text(stop.get("reason"), MAX_REASON),
            "stopped": self.stopped,
            "num_points": self.num_points,
            "streams": {
                name: {"announced": announced.get(name), "recorded": number}
                for name, number in list(seen.items())[:MAX_DATA_KEYS]
            },
            "thinned": counts.get("thinned", 0),
            "dropped": self.dropped,
            "left_out": counts.get("left_out", 0),
            "simulated_sources": self.simulated_sources,
        }
        yield WitnessRequest(RequestKind.CHANGE, {"change": "ended", "at": self._text(time), "end": end})
        yield from self._register_files(announced, counts.get("frames", {}))

    def _register_files(self, announced: Mapping[str, int], frames: Mapping[str, int]) -> Iterator[WitnessRequest]:
        """Return the request for the files; several resources that name one file are one dataset."""
        files: dict[str, dict[str, Any]] = {}
        for uid, resource in self.resources.items():
            uri = resource_uri(resource)
            if uri is None:
                continue
            key = str(resource.get("data_key") or "")
            stream = next((one for one in self.streams.values() if key in one["sources"] or key in one["objects"]), None)
            file = files.setdefault(file_address(uri), {"uri": file_address(uri)})
            evidence = file.setdefault("evidence", {"data_keys": {}})
            if mimetype := text(resource.get("mimetype"), 255):
                file["mimetype"] = mimetype
            if stream is not None:
                if key in stream["sources"]:
                    file.setdefault("source", stream["sources"][key])
                if (obj := stream["objects"].get(key)) in self.settings:
                    file.setdefault("settings", self.settings[obj])
                if stream["name"] in announced:
                    evidence["frames_announced"] = announced[stream["name"]]
            parameters = mapping(resource, "parameters")
            found = {
                "frames_found": frames.get(uid),
                "path": parameters.get("dataset"),
                "chunk_shape": parameters.get("chunk_shape"),
            }
            evidence["data_keys"][key or uid] = {name: value for name, value in found.items() if value is not None}
        listed = list(files.values())
        for first in range(0, len(listed), MAX_FILES):
            yield WitnessRequest(RequestKind.FILES, {"files": listed[first : first + MAX_FILES], "wait": 0})

    def _time(self, document: Mapping[str, Any]) -> float:
        """Return the time of a document, or that of the last one that had one."""
        time = document.get("time")
        if is_number(time):
            self.last_time = float(time)  # type: ignore[arg-type]
        return self.last_time

    def _text(self, *times: Any) -> str:
        """Return the first of these times that is one; the beginning of time, where none is."""
        for time in times:
            if is_number(time):
                try:
                    return timestamp_text(time)
                except ValueError:
                    continue
        return timestamp_text(0)


def entry(id: str, channel: str, value: float, at: str, sampling: str, unit: str | None, simulated: bool) -> dict[str, Any]:
    """Return a reading as append_observations takes it."""
    reading: dict[str, Any] = {
        "event_id": id,
        "channel_name": channel,
        "value": int(value) if value is True or value is False else value,
        "sampled_at": at,
        "sampling_procedure": sampling,
    }
    if unit:
        reading["units"] = unit
    if simulated:
        reading["simulated"] = True
    return reading


def run_name(plan_name: str | None, scan: str | None, beamline: str | None) -> str:
    """Return what a run is called: its plan, the number of the scan, the beamline."""
    name = " ".join(one for one in (plan_name or "scan", scan) if one)
    return (f"{name}, {beamline}" if beamline else name)[:200]


def subject_name(value: Any) -> str | None:
    """Return the name of the sample in the metadata: a text, or a mapping with a name."""
    return text(value.get("name") if isinstance(value, dict) else value, 200)


def resource_uri(resource: Mapping[str, Any]) -> str | None:
    """Return the address of a resource; one of the older form is a path below a root."""
    if uri := text(resource.get("uri"), 2048):
        return uri
    path = text(resource.get("resource_path"), 1000)
    if path is None:
        return None
    root = text(resource.get("root"), 1000) or "/"
    return f"file://localhost/{root.strip('/')}/{path.lstrip('/')}".replace("localhost//", "localhost/")


def stream_name(descriptor: Mapping[str, Any]) -> str:
    """Return the stream of a descriptor."""
    return text(descriptor.get("name"), 100) or "primary"


def text(value: Any, size: int) -> str | None:
    """Return a text that the service stores, cut to a size; None for what is none, or blank."""
    if not isinstance(value, str):
        return None
    return UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", value)[:size].strip() or None


def mapping(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a part of a document that is a mapping; an empty one where it is none."""
    part = document.get(key)
    return part if isinstance(part, dict) else {}


def count(value: Any) -> int | None:
    """Return a number of things, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2**53 else None


def is_number(value: Any) -> bool:
    """Return whether a reduced value is a number or a boolean."""
    return isinstance(value, int | float)


def is_channel(name: str) -> bool:
    """Return whether a reading can have this as its channel."""
    return len(name) <= MAX_KEY and bool(name.strip())


def small_parts(document: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Return the parts of a document for which there is room, the small ones before the big ones."""
    kept: set[str] = set()
    room = size
    for cost, key in sorted((len(json.dumps([key, value])), key) for key, value in document.items()):
        if (room := room - cost) < 0:
            break
        kept.add(key)
    return {key: value for key, value in document.items() if key in kept}
