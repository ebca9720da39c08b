"""The sender: a process of its own that brings what is journaled to the service, and outlives the RunEngine.

Each run is a `Delivery` of its own: its records are sent in their order, and runs do not wait for each other. Everything may
be sent twice, since ids follow from the documents; what a run has come to is kept beside its journal.
"""

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from baton_bluesky.journal import (
    BEGINNING,
    SENDER_LOCK,
    SETTINGS,
    STANDING,
    WRITER_LOCK,
    Position,
    RunJournal,
    is_locked,
    make_directory,
    read_document,
    run_journals,
    subdirectories,
    try_lock,
    write_whole,
    writer_directories,
)
from baton_bluesky.service import BatonService, HttpAnswer, NoServiceError
from baton_bluesky.translation import PATHS, RequestKind, RunTranslation, WitnessRequest

READ_SECONDS = 0.15
"""Seconds between two looks into a journal that had nothing new."""
SHORTEST_WAIT, LONGEST_WAIT = 0.5, 30.0  # Seconds before a request is tried again.
DENIED_WAIT = 60.0  # Seconds between two requests to a service that lets the witness do nothing.
MISSING_WAIT = 5.0  # Seconds between two looks for a plan that is not there.
HEARD_SECONDS = 5.0
REQUEST_SECONDS = 10.0
SYNC_SECONDS = 1.0
ORPHAN_SECONDS = 3_600.0  # What has no start is kept this long.
READINGS = 500  # Readings of a request.
DELIVERIES_AT_ONCE = 4
LOST_RACES = ("ConcurrencyError", "IdempotencyClaimLostError")
"""Refusals by which the service asks for the same request again."""
REFUSED_BYTES = 64 * 2**20
PROGRESS = "progress.json"


class AccessDeniedError(Exception):
    """The service does not let this account do it: nothing is sent, and everything is kept."""


class NotThereError(Exception):
    """The plan that the witness was told is not at the service."""


@dataclass
class SenderStanding:
    """How a sender is doing, as it keeps it for its witnesses."""

    pid: int = 0
    sent: int = 0
    refused: int = 0
    waiting: str | None = None
    """Why nothing is sent at the moment."""
    last_error: str | None = None
    last_word: str | None = None
    lag_seconds: float = 0


@dataclass
class Delivery:
    """One run on its way to the service: where its journal is read, and what has not been sent yet."""

    journal: RunJournal
    translation: RunTranslation = field(default_factory=RunTranslation)
    position: Position = BEGINNING
    """Where records are read next."""
    requests: list[WitnessRequest] = field(default_factory=list)
    """What the records before that position lead to and is not acknowledged."""
    run_id: str | None = None
    """The id that the service answered."""
    is_refused: bool = False
    """Whether the service refused the run itself."""
    follows: bool = False
    due: float = 0.0
    attempts: int = 0
    known_at: str | None = None
    """When its journal was last read to its end; None before that."""
    oldest: float | None = None
    """Since when something is not delivered."""
    refused: int = 0
    is_done: bool = False

    @property
    def is_live(self) -> bool:
        """Whether the run is on record and has not ended."""
        return self.run_id is not None and not self.translation.ended

    @property
    def is_watched(self) -> bool:
        """Whether somebody still sees the run, or saw more of it than is delivered."""
        return bool(self.requests) or is_locked(self.journal.writer / WRITER_LOCK)

    @classmethod
    def load(cls, journal: RunJournal) -> "Delivery":
        """Return the delivery of a run as it stood when its progress was last kept."""
        kept = read_document(journal.directory / PROGRESS)
        if not kept:
            return cls(journal)
        requests = [WitnessRequest(RequestKind(kind), *rest) for kind, *rest in kept["requests"]]
        names = ("run_id", "is_refused", "follows", "refused")
        own = {name: kept[name] for name in names}
        known_fields = {one.name for one in fields(RunTranslation)} & kept["translation"].keys()
        translation = RunTranslation(**{name: kept["translation"][name] for name in known_fields})
        return cls(journal, translation, Position(*kept["position"]), requests, **own)

    def keep(self) -> None:
        """Keep what the run has come to; what is sent after this is sent again by a sender that takes over."""
        own = {name: getattr(self, name) for name in ("run_id", "is_refused", "follows", "refused")}
        document = {
            **own,
            "translation": self.translation.as_document(),
            "position": self.position,
            "requests": self.requests,
        }
        is_over = self.translation.ended or self.journal.segments()[:1] != [self.position.segment]
        write_whole(self.journal.directory / PROGRESS, document, durable=is_over)
        if not self.is_refused:
            self.journal.discard_before(self.position)

    def read(self) -> None:
        """Read what is new and not too much, and translate it; readings of several records become one request."""
        records, position = self.journal.read(self.position)
        for record in records:
            if record.get("kind") == "start":
                self.follows = record.get("follows") is True
            try:
                translated = list(self.translation.translate(record))
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
                self.journal.unreadable += 1
                continue
            for request in translated:
                self._add(request)
        self.position = position
        if self.requests and self.oldest is None:
            self.oldest = time.time()

    def _add(self, request: WitnessRequest) -> None:
        last = self.requests[-1] if self.requests else None
        if request.kind is RequestKind.APPEND and last is not None and last.kind is RequestKind.APPEND:
            entries = request.body["entries"]
            room = READINGS - len(last.body["entries"])
            last.body["entries"].extend(entries[:room])
            if not entries[room:]:
                return
            request = request._replace(body={"entries": entries[room:]})
        self.requests.append(request)


class Sender:
    """Sends the journals of one directory to the service that its settings name."""

    def __init__(self, directory: Path, service: BatonService | None = None) -> None:
        self.directory = directory
        settings = read_document(directory / SETTINGS)
        self._service = service or BatonService(settings.get("address", ""), settings.get("token"), REQUEST_SECONDS)
        self.standing = SenderStanding(
            **{**known_counts(read_document(directory / STANDING)), "pid": os.getpid(), "waiting": None}
        )
        self._deliveries: dict[Path, Delivery] = {}
        self._ids: dict[tuple[str, str], str] = {}
        self._counting = threading.Lock()
        self._ending = threading.Event()
        self._denied_until = 0.0
        self._told: dict[str, float] = {}

    def run(self, *, while_needed: bool = False) -> None:
        """Send until told to end; or while a witness lives here or something is not sent."""
        heard = threading.Thread(target=self._give_word, name="baton-witness-heard", daemon=True)
        heard.start()
        pool = ThreadPoolExecutor(DELIVERIES_AT_ONCE, "baton-witness-delivery")
        under_way: dict[Path, Future[None]] = {}
        looked = kept = 0.0
        try:
            while not self._ending.is_set():
                now = time.monotonic()
                if now - looked >= 0.25:
                    looked = now
                    self._find_journals()
                    if while_needed and not self._deliveries and not under_way and not self._has_witness():
                        break
                for path, future in list(under_way.items()):
                    if future.done():
                        del under_way[path]
                        self._settle(path, future)
                for path, delivery in self._deliveries.items():
                    if path not in under_way and delivery.due <= now and len(under_way) < DELIVERIES_AT_ONCE:
                        under_way[path] = pool.submit(self._step, delivery)
                if now - kept >= SYNC_SECONDS:
                    kept = now
                    self._keep_standing()
                    for delivery in self._deliveries.values():
                        delivery.journal.sync()
                self._ending.wait(0.02 if under_way else 0.05)
        finally:
            self._ending.set()
            pool.shutdown(wait=True)
            self._keep_standing()

    def end(self) -> None:
        """Have it end behind the request that is under way."""
        self._ending.set()

    def _find_journals(self) -> None:
        found = {journal.directory: journal for journal in run_journals(self.directory)}
        for path, journal in found.items():
            if path not in self._deliveries:
                self._deliveries[path] = Delivery.load(journal)
        for path in [path for path, delivery in self._deliveries.items() if delivery.is_done or path not in found]:
            del self._deliveries[path]
        for writer in writer_directories(self.directory):
            if not subdirectories(writer) and not is_locked(writer / WRITER_LOCK):
                with contextlib.suppress(OSError):
                    (writer / WRITER_LOCK).unlink()
                    writer.rmdir()

    def _has_witness(self) -> bool:
        return any(is_locked(writer / WRITER_LOCK) for writer in writer_directories(self.directory))

    def _settle(self, path: Path, future: "Future[None]") -> None:
        """See to a step that ended with an error of our own: the run waits, and the others go on."""
        error = future.exception()
        if error is not None:
            delivery = self._deliveries.get(path)
            if delivery is not None:
                delivery.due = time.monotonic() + LONGEST_WAIT
            self._tell(f"{type(error).__name__}: {error}")

    def _step(self, delivery: Delivery) -> None:
        """Do the next thing for a run: send one request, or look for new records."""
        now = time.monotonic()
        if delivery.is_done:
            return
        if now < self._denied_until:
            delivery.due = self._denied_until
            return
        delivery.due = now
        if not delivery.requests:
            self._read(delivery)
        if not delivery.requests:
            return
        request = delivery.requests[0]
        try:
            self._send(delivery, request)
        except AccessDeniedError as denied:
            self._denied_until = time.monotonic() + DENIED_WAIT
            self._wait(f"{denied} Nothing is sent, and everything is kept.")
        except NotThereError as missing:
            delivery.due = time.monotonic() + MISSING_WAIT
            self._wait(str(missing))
        except NoServiceError as unreachable:
            delivery.due = time.monotonic() + min(SHORTEST_WAIT * 2**delivery.attempts, LONGEST_WAIT)
            delivery.attempts = min(delivery.attempts + 1, 10)
            self._wait(str(unreachable))
        else:
            delivery.attempts = 0
            delivery.requests.pop(0)
            if not delivery.requests:
                delivery.oldest = None
            if request.kind is RequestKind.BEGIN or request.ends_run or not delivery.requests:
                delivery.keep()

    def _read(self, delivery: Delivery) -> None:
        """Read new records; where there are none, see whether the run is over, or its RunEngine dead."""
        now = time.monotonic()
        was_alive = is_locked(delivery.journal.writer / WRITER_LOCK)
        delivery.read()
        if delivery.requests:
            if any(request.ends_run for request in delivery.requests):
                delivery.keep()
            return
        delivery.known_at = datetime.now(UTC).isoformat()
        if delivery.translation.ended:
            self._finish(delivery)
        elif not was_alive and not delivery.follows:
            if delivery.translation.uid:
                delivery.requests.extend(delivery.translation.requests_of_death())
                delivery.keep()
            elif self._is_orphan(delivery.journal):
                self._finish(delivery)
        delivery.due = now + READ_SECONDS

    def _is_orphan(self, journal: RunJournal) -> bool:
        with contextlib.suppress(OSError):
            return time.time() - journal.directory.stat().st_mtime > ORPHAN_SECONDS
        return True

    def _finish(self, delivery: Delivery) -> None:
        delivery.is_done = True
        if delivery.is_refused:  # a person may mend what was wrong, and has the documents
            aside = self.directory / "refused"
            make_directory(aside)
            delivery.journal.directory.rename(aside / delivery.journal.directory.name)
        else:
            delivery.journal.remove()

    def _send(self, delivery: Delivery, request: WitnessRequest) -> None:
        """Send a request; one that the service refuses is kept aside, and the next one follows."""
        if delivery.is_refused:
            self._count_refused(delivery)
            return
        if request.ends_run:
            delivery.keep()  # everything before is acknowledged, and is not sent to a run that has ended
        body = self._named_body(request) if request.kind is RequestKind.BEGIN else request.body
        path = PATHS[request.kind].format(run_id=delivery.run_id)
        answer = self._answer(self._service.post(path, body))
        if answer.status < 300:
            if request.kind is RequestKind.BEGIN:
                delivery.run_id = str(answer.body["run_id"])
            with self._counting:
                self.standing.sent += 1
                self.standing.last_word = datetime.now(UTC).isoformat()
                self.standing.waiting = None
        elif not (request.kind is RequestKind.TRUNCATE and answer.body.get("code") == "RunCannotTruncateError"):
            self._keep_aside(delivery, path, body, answer)
            delivery.is_refused = request.kind is RequestKind.BEGIN

    def _answer(self, answer: HttpAnswer) -> HttpAnswer:
        """Return an answer that says something about the request; raise where it says something about the service."""
        if answer.status in (401, 403):
            raise AccessDeniedError(f"The service answers {answer.sentence}")
        if answer.status >= 500 or answer.status in (408, 429) or answer.body.get("code") in LOST_RACES:
            raise NoServiceError(f"The service answers {answer.sentence}")
        return answer

    def _named_body(self, request: WitnessRequest) -> dict[str, Any]:
        """Return the body of a beginning, with the ids of its plan and its subject."""
        body = {**request.body, "plan_id": self._plan_id(request.plan or "")}
        if request.subject is not None and (subject_id := self._only_id("/subjects", "subject_id", request.subject)):
            body["subject_id"] = subject_id
        return body

    def _plan_id(self, plan: str) -> str:
        with contextlib.suppress(ValueError):
            return str(UUID(plan))
        if (id := self._only_id("/plans", "plan_id", plan)) is None:
            raise NotThereError(
                f"There is not exactly one plan of the name {plan!r} at the service; name it by its id, or make it."
            )
        return id

    def _only_id(self, path: str, field: str, name: str) -> str | None:
        """Return the id of the only thing of this name, or None."""
        if (known := self._ids.get((path, name))) is None:
            answer = self._answer(self._service.get(path, name=name, limit="2"))
            items = answer.body.get("items", []) if answer.status == 200 else []
            exact = [item for item in items if item.get("name") == name]
            if len(exact) != 1 or answer.body.get("next_cursor"):
                return None
            known = self._ids[path, name] = str(exact[0][field])
        return known

    def _keep_aside(self, delivery: Delivery, path: str, body: dict[str, Any], answer: HttpAnswer) -> None:
        self._count_refused(delivery)
        self._tell(f"{path}: {answer.sentence}")
        aside = self.directory / "refused.jsonl"
        line = (
            json.dumps({"at": datetime.now(UTC).isoformat(), "path": path, "body": body, "answer": answer._asdict()}) + "\n"
        )
        with contextlib.suppress(OSError), self._counting:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                if os.fstat(descriptor).st_size < REFUSED_BYTES:
                    os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)

    def _count_refused(self, delivery: Delivery) -> None:
        delivery.refused += 1
        with self._counting:
            self.standing.refused += 1

    def _give_word(self) -> None:
        """Tell the service every few seconds that live runs are witnessed, and how it goes, whatever else is under way."""
        while not self._ending.wait(HEARD_SECONDS):
            for delivery in list(self._deliveries.values()):
                if delivery.is_live and delivery.is_watched and time.monotonic() >= self._denied_until:
                    with contextlib.suppress(NoServiceError):
                        self._service.post(PATHS[RequestKind.CHANGE].format(run_id=delivery.run_id), self._word(delivery))

    def _word(self, delivery: Delivery) -> dict[str, Any]:
        standing = {
            "lag_seconds": 0 if delivery.oldest is None else max(0.0, time.time() - delivery.oldest),
            "refused": delivery.refused,
            "dropped": delivery.translation.dropped,
            "events": dict(delivery.translation.events),
        }
        return {"change": "heard", "at": delivery.known_at or delivery.translation.last_at, "standing": standing}

    def _wait(self, why: str) -> None:
        with self._counting:
            self.standing.waiting = why
        self._tell(why)

    def _tell(self, sentence: str) -> None:
        """Say something into the log, the same at most once a minute."""
        with self._counting:
            self.standing.last_error = sentence[:500]
            now = time.monotonic()
            if now - self._told.get(sentence, float("-inf")) < 60:
                return
            if len(self._told) > 1_000:
                self._told.clear()
            self._told[sentence] = now
        print(f"{datetime.now(UTC).isoformat(timespec='seconds')} {sentence}", file=sys.stderr, flush=True)

    def _keep_standing(self) -> None:
        waiting = [delivery.oldest for delivery in self._deliveries.values() if delivery.oldest is not None]
        self.standing.lag_seconds = max(0.0, time.time() - min(waiting)) if waiting else 0.0
        with contextlib.suppress(OSError):
            write_whole(self.directory / STANDING, asdict(self.standing))


def known_counts(
    document: dict[str, Any], names: Iterable[str] = ("sent", "refused", "last_error", "last_word")
) -> dict[str, Any]:
    """Return what an earlier sender left of these."""
    return {name: document[name] for name in names if name in document}


def send_journal(directory: Path, *, while_needed: bool = False, patience: float = 2.0) -> bool:
    """Send a journal while no other process does; return whether this one did."""
    deadline = time.monotonic() + patience
    while (lock := try_lock(directory / SENDER_LOCK)) is None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.1)
    try:
        Sender(directory).run(while_needed=while_needed)
    finally:
        os.close(lock)
    return True
