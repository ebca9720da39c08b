"""Bluesky's documents of a run, as pure functions of what is on record. Every id follows from the run, so the same record
gives the same documents; each passes the schemas of event-model 1.24. Names of people are in none of them."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from baton.domain.data.acquisition import FRAMES, AcquisitionSummary, FrameLayout
from baton.domain.data.dataset import Dataset
from baton.domain.run.logbooks import Observation
from baton.domain.run.run import (
    ENDINGS,
    Run,
    RunAborted,
    RunCompleted,
    RunEnded,
    RunStarted,
    RunTruncated,
    RunWitnessChanged,
    RunWitnessed,
)
from baton.domain.run.witness import ExitStatus
from baton.domain.shared.canonical import derived_uuid7

UNFIT = re.compile(r"^$|[./]")  # What no key of a start, descriptor or stop document may have.
STREAM_NAME = re.compile(r"[^A-Za-z0-9_-]+")  # What stands for one `_` in the name of a stream.
MAX_STREAM_NAME = 80
LOCAL = "file://localhost"

Members = dict[str, Any]
NamedDocument = tuple[str, Members]  # The name of a document, and the document.
ReadingMark = tuple[str | None, bool]  # What a descriptor says of its readings: the unit, and whether they are simulated.


class RunSample(NamedTuple):
    """The subject of a run, as far as the caller may see it."""

    id: UUID
    name: str | None


def start_document(run: Run, began: RunStarted, plan_name: str | None, sample: RunSample | None) -> NamedDocument:
    """Return how a run of the service's own began: its plan, its parameters and its subject."""
    ids = {"plan_id": str(run.plan_id), "launch_id": _text(began.launch_id), "campaign_id": _text(began.campaign_id)}
    told: Members = {
        "plan_name": plan_name,
        "plan_type": "baton",
        "plan_args": fit_value(began.effective_parameters),
        "sample": None if sample is None else told_only({"name": sample.name, "subject_id": str(sample.id)}),
        "run_name": run.name,
        "raid": began.raid,
        "external_refs": fit_value(began.external_refs),
        "baton": told_only({"run_id": str(run.id), **ids}),
    }
    return "start", {"uid": str(run.id), "time": began.occurred_at.timestamp(), **told_only(told)}


def witnessed_start_document(run: Run, began: RunWitnessed, metadata: Mapping[str, Any] | None) -> NamedDocument:
    """Return how a run began that happens elsewhere, under its own uid there; its metadata as far as they may be seen."""
    fitting = {name: value for name, value in (metadata or {}).items() if fits_start(name, value)}
    told = {**fitting, "plan_name": began.plan_name, "baton": {"run_id": str(run.id), "plan_id": str(run.plan_id)}}
    return "start", {**told_only(told), "uid": began.document_uid, "time": began.began_at.timestamp()}


def stop_document(run: Run, ended: RunEnded, *, failed: bool, adjusted: bool) -> NamedDocument:
    """Return how a run of the service's own ended; where it was adjusted, under which parameters."""
    match ended:
        case RunTruncated():
            status = ExitStatus.FAIL
        case RunAborted():
            status = ExitStatus.FAIL if failed else ExitStatus.ABORT
        case _:
            status = ExitStatus.SUCCESS
    own = {
        "status": ENDINGS[type(ended)].value,
        "actuation_kind": run.actuation_kind,
        "parameters": fit_value(run.effective_parameters) if adjusted else None,
    }
    reason = None if isinstance(ended, RunCompleted) else ended.reason
    return "stop", _stop(str(run.id), run.id, time_of_end(ended), status, reason, told_only(own))


def witnessed_stop_document(run: Run, uid: str, ended: RunEnded, last: RunWitnessChanged | None) -> NamedDocument:
    """Return how a run ended that happens elsewhere, by the last word of its witness; one that nobody saw end failed."""
    own = {"status": run.status.value}
    if last is None or last.end is None:
        return "stop", _stop(uid, run.id, time_of_end(ended), ExitStatus.FAIL, run.end_reason, own)
    stop = _stop(uid, run.id, last.at, last.end.exit_status, last.end.reason, own)
    return "stop", {**stop, "num_events": {name: count.announced or 0 for name, count in last.end.streams.items()}}


def time_of_end(ended: RunEnded) -> datetime:
    """Return when a run ended, as far as that is known."""
    interrupted_at = ended.interrupted_at if isinstance(ended, RunTruncated) else None
    return interrupted_at or ended.occurred_at


def _stop(uid: str, run_id: UUID, at: datetime, status: ExitStatus, reason: str | None, own: Members) -> Members:
    stop = {"uid": document_uid(run_id, "stop", uid), "run_start": uid, "time": at.timestamp(), "exit_status": status.value}
    return {**stop, "reason": reason or "", "baton": own}


def mark_of(reading: Observation) -> ReadingMark:
    """Return what the descriptor of a reading says of it."""
    return reading.units, reading.simulated


def reading_descriptor(reading: Observation) -> NamedDocument:
    """Return the descriptor that the readings of a channel behind this one belong to, as long as its mark stays."""
    scheme = "sim" if reading.simulated else "baton"
    key = {"source": f"{scheme}://{reading.channel_name}", "dtype": "number", "dtype_numpy": "<f8", "shape": []}
    keys = {fit_key(reading.channel_name): {**key, **told_only({"units": reading.units})}}
    uid = reading_descriptor_uid(reading.run_id, reading.event_id)
    name = stream_name(reading.channel_name, reading.sampling_procedure)
    return "descriptor", _descriptor(uid, reading.run_id, reading.sampled_at, name, keys)


def reading_event(reading: Observation, first_id: UUID, number: int) -> NamedDocument:
    """Return the event of a reading; its descriptor is that of the reading with the first id."""
    name, at = fit_key(reading.channel_name), reading.sampled_at.timestamp()
    told = {"data": {name: reading.value}, "timestamps": {name: at}, "filled": {}}
    descriptor = reading_descriptor_uid(reading.run_id, first_id)
    return "event", {"uid": str(reading.event_id), "descriptor": descriptor, "seq_num": number, "time": at, **told}


def frame_documents(
    run_id: UUID, dataset: Dataset, acquisition: AcquisitionSummary, layout: FrameLayout, number: int
) -> Sequence[NamedDocument]:
    """Return the descriptor, the resource and the datum of a dataset's frames; each dataset is a stream of its own."""
    id, at = acquisition.acquisition_id, acquisition.captured_at
    descriptor_uid, resource_uid = document_uid(run_id, "frame descriptor", id), str(id)
    shape: dict[str, Any] = {"shape": list(layout.shape), "dtype": "array", "dtype_numpy": layout.dtype}
    keys = {FRAMES: {**shape, "source": f"baton://{acquisition.producing_asset_id}", "external": "STREAM:"}}
    descriptor = _descriptor(descriptor_uid, run_id, at, f"{FRAMES}_{number}", keys)
    descriptor["configuration"] = {"dataset": configuration_of(dataset, acquisition)}
    resource = {
        "uid": resource_uid,
        "run_start": str(run_id),
        "data_key": FRAMES,
        "mimetype": dataset.encoding.media_type,
        "uri": local_uri(dataset.uri),
        "parameters": {"dataset": layout.path, "chunk_shape": [1, *layout.shape], "swmr": False},
    }
    datum = {
        "uid": f"{resource_uid}/0",
        "descriptor": descriptor_uid,
        "stream_resource": resource_uid,
        "indices": {"start": 0, "stop": layout.count},
        "seq_nums": {"start": 1, "stop": layout.count + 1},
    }
    return ("descriptor", descriptor), ("stream_resource", resource), ("stream_datum", datum)


def configuration_of(dataset: Dataset, acquisition: AcquisitionSummary) -> Members:
    """Return which dataset the frames are, and with which settings that are numbers they were captured."""
    about = {"dataset_id": str(dataset.id), "name": dataset.name, "checksum": dataset.checksum.value}
    numbers = {fit_key(name): value for name, value in acquisition.settings.items() if is_number(value)}
    data = {**numbers, **about}
    keys: dict[str, Members] = {
        name: {"source": "baton://acquisition", "dtype": "string" if isinstance(value, str) else "number", "shape": []}
        for name, value in data.items()
    }
    return {"data": data, "timestamps": dict.fromkeys(data, acquisition.captured_at.timestamp()), "data_keys": keys}


def is_number(value: object) -> bool:
    """Return whether a value of JSON is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _descriptor(uid: str, run_id: UUID, at: datetime, name: str, keys: Mapping[str, Members]) -> Members:
    objects = {key: [key] for key in keys}
    about = {"uid": uid, "run_start": str(run_id), "time": at.timestamp(), "name": name}
    return {**about, "data_keys": dict(keys), "object_keys": objects, "configuration": {}, "hints": {}}


def stream_name(channel: str, procedure: str) -> str:
    """Return the name of the stream of a channel: letters, digits, `_` and `-`, which every catalogue takes, and what tells
    it from another channel where that changed it."""
    plain = STREAM_NAME.sub("_", channel)[:MAX_STREAM_NAME]
    own = plain if plain == channel else f"{plain}_{digest(channel)[:6]}"
    return f"{own}_{procedure}"


def digest(text: str) -> str:
    """Return sixteen hexadecimal digits that tell a text from others."""
    return sha256(text.encode()).hexdigest()[:16]


def reading_descriptor_uid(run_id: UUID, first_id: UUID) -> str:
    """Return the uid of the descriptor that begins with this reading."""
    return document_uid(run_id, "descriptor", first_id)


def document_uid(run_id: UUID, what: str, name: object) -> str:
    """Return the uid of a document that is on record under no id of its own."""
    return str(derived_uuid7(run_id.int >> 80, f"document:{run_id}:{what}", str(name)))


def local_uri(uri: str) -> str:
    """Return an address with the host that Bluesky writes for files of one's own."""
    return f"{LOCAL}{uri.removeprefix('file://')}" if uri.startswith("file:///") else uri


def told_only(members: Mapping[str, Any]) -> Members:
    """Return the members that say something."""
    return {name: value for name, value in members.items() if value is not None}


def _text(id: UUID | None) -> str | None:
    return None if id is None else str(id)


def fit_key(name: str) -> str:
    """Return a name as a key of a document: itself, or one without dots and slashes that tells it from others."""
    return f"{UNFIT.sub('_', name)}_{digest(name)[:6]}" if UNFIT.search(name) else name


def fit_value(value: Any) -> Any:
    """Return a value as start and stop documents may hold it: where a key has a dot or a slash, a list of pairs."""
    match value:
        case Mapping():
            members = {str(name): fit_value(one) for name, one in value.items()}
            return [[*pair] for pair in members.items()] if any(map(UNFIT.search, members)) else members
        case list() | tuple():
            return [fit_value(one) for one in value]
    return value


TYPES: dict[str, type | tuple[type, ...]] = {
    "scan_id": int,
    "sample": (str, dict),
    **dict.fromkeys(("group", "owner", "project", "data_session"), str),
}  # What the schema says of some keys of a start document.
OWN = frozenset({"uid", "time", "baton", "data_type", "data_groups", "projections"})  # What metadata cannot say.


def fits_start(name: str, value: object) -> bool:
    """Return whether a start document may hold this member of a witnessed run's metadata."""
    if name in OWN or UNFIT.search(name) or (isinstance(value, bool) and name in TYPES):
        return False
    if name == "hints":
        return isinstance(value, dict) and all(key == "dimensions" and are_dimensions(one) for key, one in value.items())
    return isinstance(value, TYPES.get(name, object)) and fit_value(value) == value


def are_dimensions(value: object) -> bool:
    """Return whether a value is a list of axes, each the names of its keys and the stream they are in."""
    return isinstance(value, list) and all(isinstance(axis, list) and all(map(is_axis_part, axis)) for axis in value)


def is_axis_part(part: object) -> bool:
    """Return whether a part of an axis is a name or a list of names."""
    return isinstance(part, str) or (isinstance(part, list) and all(isinstance(one, str) for one in part))
