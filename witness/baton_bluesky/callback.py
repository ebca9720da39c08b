"""The callback of a RunEngine: it takes documents, journals them, and neither raises nor waits."""

import atexit
import hashlib
import math
import os
import subprocess
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from baton_bluesky.journal import (
    CEILING_BYTES,
    SENDER_LOCK,
    STANDING,
    JournalWriter,
    is_locked,
    make_directory,
    read_document,
    run_directory_name,
)
from baton_bluesky.keys import bucket_of
from baton_bluesky.reduction import DEFAULT_KEYS, MAX_DATA_KEYS, plain_number, reduce_document, reduce_numbers
from baton_bluesky.translation import stream_name

WAIT_SECONDS = 0.05
"""Longest time that a start or a stop waits to be on disk."""
OPEN_RUNS = 1_000
ENDED_RUNS = 1_000
RESOURCES = 5_000
LATEST_TIME = 1e11
Observing = Literal["thinned", "all", "none"]


class WitnessStanding(NamedTuple):
    """How a witness is doing."""

    journaled: int
    """Number of records that are on disk, or were."""
    sent: int
    """Number of requests that the service acknowledged."""
    refused: int
    """Number of requests that the service refused; they are in `refused.jsonl`."""
    dropped: dict[str, int]
    """Number of events that could not be kept, by stream."""
    faults: dict[str, int]
    """Number of documents that could not be understood, by kind."""
    last_error: str | None
    last_word: str | None
    """When the service last answered."""


@dataclass
class Stream:
    """A stream of a run: how many events it had, and the last one that was journaled."""

    name: str
    count: int = 0
    highest: int = 0
    bucket: int | None = None
    channels: int = 0


@dataclass
class OpenRun:
    """A Bluesky run between its start and its stop."""

    uid: str
    directory: str
    """The name of its journal; empty where no Baton Plan is named for its Bluesky plan, so that it is not recorded."""
    streams: dict[str, Stream] = field(default_factory=dict)
    descriptors: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    frames: Counter[str] = field(default_factory=Counter)
    thinned: int = 0
    left_out: int = 0


class WitnessJournal(JournalWriter):
    """A journal whose writer also looks after the sender."""

    starts_sender = True
    _sender: "subprocess.Popen[bytes] | None" = None

    def look(self) -> None:
        if not self.starts_sender or is_locked(self.directory / SENDER_LOCK):
            return
        if self._sender is None or self._sender.poll() is not None:
            self._sender = start_sender(self.directory)


class BatonWitness:
    """Records what a RunEngine does: `RE.subscribe(BatonWitness("https://baton.bl7", plan="Bluesky at BL7"))`."""

    def __init__(
        self,
        address: str,
        plan: str | Mapping[str, str],
        *,
        token: str | None = None,
        simulated: bool | None = None,
        journal: str | os.PathLike[str] | None = None,
        observe: Observing = "thinned",
        metadata: tuple[str, ...] = DEFAULT_KEYS,
        subject_key: str = "sample",
        ceiling: int = CEILING_BYTES,
        starts_sender: bool = True,
        writer: str | None = None,
        follows: bool = False,
    ) -> None:
        if observe not in ("thinned", "all", "none"):
            raise ValueError(f"observe is {observe!r}; give 'thinned', 'all' or 'none'.")
        self.address = address
        self.plan = plan
        self.observe = observe
        self.token = token
        self.subject_key = subject_key
        self.holdable = False
        """Whether its runs wait at their next checkpoint while they are Held: a gate says so."""
        self.directory = default_directory(address) if journal is None else Path(journal).expanduser().absolute()
        self._simulated = simulated
        self._keys = tuple(metadata)
        self._subject_key = subject_key
        self._follows = follows
        self._journal = WitnessJournal(self.directory, {"address": address, "token": token}, ceiling, writer)
        self._journal.starts_sender = starts_sender
        self._runs: dict[str, OpenRun] = {}
        self._ended: dict[str, None] = {}
        self._streams: dict[str, tuple[OpenRun, Stream]] = {}
        self._resources: dict[str, OpenRun] = {}
        self._faults: Counter[str] = Counter()
        self._last_error: str | None = None
        self._takers: dict[str, Callable[[dict[str, Any]], None]] = {
            "start": self._take_start,
            "descriptor": self._take_descriptor,
            "event": self._take_event,
            "event_page": self._take_event_page,
            "resource": self._take_resource,
            "stream_resource": self._take_resource,
            "stream_datum": self._take_stream_datum,
            "datum": self._take_datum,
            "datum_page": self._take_datum,
            "stop": self._take_stop,
        }
        atexit.register(flush_journal, weakref.ref(self._journal))

    def __repr__(self) -> str:
        return f"BatonWitness({self.address!r}, plan={self.plan!r}, observe={self.observe!r})"

    def __call__(self, name: Any, document: Any = None, *_: Any) -> None:
        """Take a document; whatever it is, the RunEngine continues."""
        try:
            self._takers[name](document)
        except Exception as error:
            self._count_fault(name, error)

    def attach(self, engine: Any) -> int:
        """Subscribe to a RunEngine, and see its pauses and stops, behind the state hook that it has."""
        earlier = engine.state_hook

        def see_state(new: Any, old: Any) -> None:
            if earlier is not None:
                earlier(new, old)
            self._take_state(str(new), str(old))

        engine.state_hook = see_state
        return int(engine.subscribe(self))

    def standing(self) -> WitnessStanding:
        """Return how it is doing, with what its sender says."""
        sender, journal = read_document(self.directory / STANDING), self._journal
        return WitnessStanding(
            journal.journaled,
            sender.get("sent", 0),
            sender.get("refused", 0),
            dict(journal.dropped),
            dict(self._faults),
            self._last_error or journal.last_error or sender.get("last_error"),
            sender.get("last_word"),
        )

    def flush(self, seconds: float = 2.0) -> bool:
        """Wait until what was taken is in the journal, for a while at most; return whether it is."""
        return self._journal.flush(seconds)

    @property
    def queued(self) -> int:
        """Number of records that are on their way to the journal."""
        return self._journal.queued

    @property
    def journal_directory(self) -> Path:
        """The directory of its own in the journal, with one for each run that is not delivered."""
        return self.directory / self._journal.name

    def counts_of(self, uid: str) -> dict[str, Any] | None:
        """Return what was counted of an open run; None where there is none."""
        if (run := self._runs.get(uid)) is None:
            return None
        streams = {name: [stream.count, stream.highest] for name, stream in run.streams.items()}
        return {"streams": streams, "frames": dict(run.frames), "thinned": run.thinned, "left_out": run.left_out}

    def continue_counts(self, uid: str, counts: Mapping[str, Any]) -> None:
        """Continue counting an open run where an earlier process ended, whose start and descriptors were taken again."""
        if (run := self._runs.get(uid)) is None:
            return
        for name, (count, highest) in counts["streams"].items():
            if (stream := run.streams.get(name)) is not None:
                stream.count, stream.highest = count, highest
        run.frames.update(counts["frames"])
        run.thinned, run.left_out = counts["thinned"], counts["left_out"]

    def give_up(self, uid: str) -> None:
        """End a run that is over and has no stop document, if it is open: its books are closed."""
        if (run := self._runs.get(uid)) is not None:
            self._end(run, {"kind": "lost"})

    def close(self) -> None:
        """Give up: write what was taken, and count as dead. A process that ends does so by itself."""
        self._journal.close()

    def _count_fault(self, name: Any, error: Exception) -> None:
        try:
            self._faults[name if isinstance(name, str) and name in self._takers else "unknown"] += 1
            self._last_error = f"{type(error).__name__} in a document"
            self._last_error = f"{type(error).__name__}: {error}"[:500]
        except Exception:  # an error without a text
            return

    def _take_start(self, start: dict[str, Any]) -> None:
        uid = start["uid"]
        if not isinstance(uid, str) or not 0 < len(uid.strip()) <= 200 or not uid.isprintable():
            raise ValueError("a start without a uid")
        if uid in self._runs or uid in self._ended:
            raise ValueError("a second start of the same run")
        if len(self._runs) >= OPEN_RUNS:
            raise ValueError(f"{OPEN_RUNS} runs are open")
        plan = self._plan_of(start.get("plan_name"))
        began_at = time_of(start, time.time())
        plain, left_out = reduce_document(
            {key: start[key] for key in (*self._keys, *BEGINNING, self._subject_key) if key in start}
        )
        run = OpenRun(uid, "" if plan is None else run_directory_name(began_at, uid), left_out=left_out)
        self._runs[uid] = run
        told = {"plan": plan, "keys": self._keys, "subject_key": self._subject_key, "simulated": self._simulated}
        record = {"kind": "start", "uid": uid, "time": began_at, "doc": plain, **told, "holdable": self.holdable}
        self._write(run, {**record, "follows": self._follows}, wait=WAIT_SECONDS)

    def _plan_of(self, plan_name: Any) -> str | None:
        if isinstance(self.plan, str):
            return self.plan
        return self.plan.get(plan_name if isinstance(plan_name, str) else "", self.plan.get("default"))

    def _take_descriptor(self, descriptor: dict[str, Any]) -> None:
        run, uid = self._runs[descriptor["run_start"]], descriptor["uid"]
        if not isinstance(uid, str) or uid in self._streams:
            raise ValueError("a descriptor without a uid of its own")
        name = stream_name(descriptor)
        if name not in run.streams and len(run.streams) >= MAX_DATA_KEYS:
            raise ValueError("too many streams")
        data_keys = descriptor["data_keys"]
        chosen = list(dict.items(data_keys))[:MAX_DATA_KEYS]
        run.left_out += len(data_keys) - len(chosen)
        slim = {
            "uid": uid,
            "time": descriptor.get("time"),
            "name": name,
            "data_keys": {key: only(one, "source", "units") for key, one in chosen if isinstance(one, dict)},
            "object_keys": descriptor.get("object_keys"),
            "configuration": descriptor.get("configuration"),
        }
        plain, left_out = reduce_document(slim)
        run.left_out += left_out
        self._streams[uid] = (run, run.streams.setdefault(name, Stream(name)))
        run.descriptors.append(uid)
        self._write(run, {"kind": "descriptor", "doc": plain})

    def _take_event(self, event: dict[str, Any]) -> None:
        run, stream = self._streams[event["descriptor"]]
        seq_num, at = event["seq_num"], event["time"]
        if type(at) is not float:
            at = float(plain_number(at))  # type: ignore[arg-type]
        if not -LATEST_TIME < at < LATEST_TIME or not isinstance(seq_num, int) or not 0 <= seq_num < 2**53:
            raise ValueError("an event without a time or a number")
        if seq_num > stream.highest:
            stream.highest = seq_num
            stream.count += 1
        if stream.name == "interruptions":
            self._write(run, {"kind": "interruption", "word": str(event["data"].get("interruption"))[:100], "t": at})
        if self.observe == "none":
            return
        is_thin = self.observe == "thinned" and stream.name != "baseline"
        if is_thin:
            bucket = bucket_of(at)
            if bucket == stream.bucket:
                run.thinned += stream.channels
                return
        numbers, times, left_out = reduce_numbers(event["data"], event.get("timestamps"))
        run.left_out += left_out
        if not numbers:
            return
        record = {
            "kind": "event",
            "d": event["descriptor"],
            "s": seq_num,
            "t": at,
            "v": numbers,
            "ts": times,
            "n": stream.count,
        }
        if is_thin:
            stream.bucket, stream.channels = bucket, len(numbers)
            record["thin"] = True
        self._write(run, record, stream.name, at)

    def _take_event_page(self, page: dict[str, Any]) -> None:
        faults = 0
        for event in events_of(page):
            try:
                self._take_event(event)
            except Exception:
                faults += 1
        if faults:
            self._faults["event_page"] += faults

    def _take_resource(self, resource: dict[str, Any]) -> None:
        uid = resource["uid"]
        run = self._runs[resource["run_start"]] if "run_start" in resource else self._only_run()
        if not isinstance(uid, str) or uid in self._resources or len(run.resources) >= RESOURCES:
            raise ValueError("a resource without a uid of its own, or too many")
        parameters = resource.get("parameters")
        slim = only(resource, "uid", "uri", "mimetype", "data_key", "root", "resource_path")
        plain, left_out = reduce_document({**slim, "parameters": only(parameters, "dataset", "chunk_shape")})
        run.left_out += left_out
        self._resources[uid] = run
        run.resources.append(uid)
        self._write(run, {"kind": "stream_resource", "doc": plain})

    def _only_run(self) -> OpenRun:
        [run] = self._runs.values()
        return run

    def _take_stream_datum(self, datum: dict[str, Any]) -> None:
        uid = datum["stream_resource"]
        run, stop = self._resources[uid], datum["indices"]["stop"]
        run.frames[uid] = max(run.frames[uid], number_of(stop))
        _, stream = self._streams[datum["descriptor"]]
        last = number_of(datum["seq_nums"]["stop"]) - 1
        if last > stream.highest:
            stream.count, stream.highest = max(stream.count, last), last

    def _take_datum(self, datum: dict[str, Any]) -> None:
        uid, ids = datum["resource"], datum["datum_id"]
        self._resources[uid].frames[uid] += 1 if isinstance(ids, str) else len(ids)

    def _take_stop(self, stop: dict[str, Any]) -> None:
        run = self._runs[stop["run_start"]]
        plain, left_out = reduce_document({key: stop.get(key) for key in ("time", "exit_status", "reason", "num_events")})
        counts = {
            "streams": {name: stream.count for name, stream in run.streams.items()},
            "frames": dict(run.frames),
            "thinned": run.thinned,
            "left_out": run.left_out + left_out,
        }
        self._end(run, {"kind": "stop", "doc": plain, "counts": counts})

    def _end(self, run: OpenRun, record: dict[str, Any]) -> None:
        del self._runs[run.uid]
        self._ended[run.uid] = None
        if len(self._ended) > ENDED_RUNS:
            del self._ended[next(iter(self._ended))]
        for uid in run.descriptors:
            self._streams.pop(uid, None)
        for uid in run.resources:
            self._resources.pop(uid, None)
        self._write(run, record, wait=WAIT_SECONDS, is_last=True)

    def _take_state(self, new: str, old: str) -> None:
        try:
            for run in list(self._runs.values()):
                self._write(run, {"kind": "state", "new": new[:50], "old": old[:50], "t": time.time()})
        except Exception as error:
            self._count_fault("unknown", error)

    def _write(
        self,
        run: OpenRun,
        record: dict[str, Any],
        stream: str | None = None,
        at: float = 0,
        wait: float = 0,
        is_last: bool = False,
    ) -> None:
        if run.directory:
            self._journal.append(run.directory, record, stream, at, wait, is_last)


BEGINNING = ("plan_name", "num_points", "scan_id", "plan_args", "beamline", "baton")
"""Keys of a start document that say what the run is; they are read whether or not they go along as metadata."""


def events_of(page: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the events of a page, row by row."""
    data, timestamps = page["data"], page.get("timestamps", {})
    for row, (seq_num, at) in enumerate(zip(page["seq_num"], page["time"], strict=True)):
        number = plain_number(seq_num)
        yield {
            "descriptor": page["descriptor"],
            "seq_num": number,
            "time": at,
            "data": {key: column[row] for key, column in data.items()},
            "timestamps": {key: column[row] for key, column in timestamps.items()},
        }


def time_of(document: Mapping[str, Any], otherwise: float) -> float:
    """Return the time of a document, or another where it has none."""
    at = plain_number(document.get("time"))
    return float(at) if at is not None and math.isfinite(at) and abs(at) < LATEST_TIME else otherwise


def number_of(value: Any) -> int:
    """Return a number of frames or events."""
    number = int(plain_number(value))  # type: ignore[arg-type]
    if not 0 <= number <= 2**53:
        raise ValueError("no number of frames")
    return number


def only(document: Any, *keys: str) -> dict[str, Any]:
    """Return some keys of a document; an empty one where it is no mapping."""
    return {key: document[key] for key in keys if key in document} if isinstance(document, dict) else {}


def default_directory(address: str) -> Path:
    """Return where a user keeps the journal for a service."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "baton-bluesky" / hashlib.sha256(address.encode(errors="replace")).hexdigest()[:16]


def flush_journal(journal: "weakref.ref[JournalWriter]") -> None:
    """Write what is queued when the process ends."""
    if (alive := journal()) is not None:
        alive.flush()


def start_sender(directory: Path) -> "subprocess.Popen[bytes]":
    """Start a sender of this journal in a process of its own, which outlives this one."""
    make_directory(directory)
    package = str(Path(__file__).resolve().parents[1])
    program = f"import sys; sys.path.append({package!r}); from baton_bluesky.main import main; sys.exit(main())"
    log = os.open(directory / "sender.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-c", program, "send", str(directory), "--while-needed"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    finally:
        os.close(log)
