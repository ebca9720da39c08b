"""Runs witnessed from elsewhere: documents published over 0MQ or Kafka, into the same journal under the same keys."""

import contextlib
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from baton_bluesky.callback import BatonWitness, events_of
from baton_bluesky.journal import QUEUED_DOCUMENTS, RunJournal, read_document, subdirectories, write_whole
from baton_bluesky.run_order import RunOrder

RECEIVE_SECONDS = 0.2
SETTLE_SECONDS = 1.0
FLUSH_SECONDS = 10.0
Message = tuple[str, Any]


class DocumentSource(Protocol):
    """Where documents come from."""

    faults: Counter[str]
    """Number of messages that were no documents, by why."""

    def receive(self, seconds: float) -> Iterable[Message]:
        """Return the names and documents that came, after this many seconds at most."""

    def commit(self) -> None:
        """Note that what was received is on disk, and need not be sent again."""

    def close(self) -> None:
        """Close the connection."""


class Follower:
    """Brings the documents of a source into the journal of a witness. What it knows of open runs is kept beside the
    journal, so that a follower that was killed continues its runs."""

    def __init__(self, source: DocumentSource, witness: BatonWitness, name: str) -> None:
        self._source, self._witness, self._name = source, witness, name
        self.order = RunOrder()
        self.received = 0
        self._settled_at, self._settled = time.monotonic(), 0
        self._remembered = witness.directory / f"{name}.follow.json"
        self._restore()

    def run(self, is_over: Any = lambda: False) -> None:
        """Follow until told to end."""
        while not is_over():
            self.step()
        self.settle()

    def step(self, seconds: float = RECEIVE_SECONDS) -> None:
        """Take what came, and see once a second that it is on disk."""
        for name, document in self._source.receive(seconds):
            self.received += 1
            for ready in self.order.take(name, document, time.monotonic()):
                hand_over(self._witness, *ready)
        if time.monotonic() - self._settled_at >= SETTLE_SECONDS:
            self.settle()

    def settle(self) -> None:
        """Have what was taken on disk, and only then tell the source."""
        now = time.monotonic()
        self.order.forget_old(now)
        if self.received != self._settled and self._witness.flush(FLUSH_SECONDS):
            for directory in subdirectories(self._witness.directory / self._name):
                RunJournal(directory).sync()
            self._remember()
            self._source.commit()
            self._settled = self.received
        self._settled_at = now

    def _remember(self) -> None:
        runs = {
            uid: {"documents": documents, "counts": counts}
            for uid, documents in self.order.runs.items()
            if (counts := self._witness.counts_of(uid)) is not None
        }
        write_whole(self._remembered, {"runs": runs}, durable=True)

    def _restore(self) -> None:
        for uid, run in read_document(self._remembered).get("runs", {}).items():
            for name, document in run["documents"]:
                for ready in self.order.take(name, document, time.monotonic()):
                    self._witness(*ready)
            self._witness.continue_counts(uid, run["counts"])


class ZmqSource:
    """Documents that a RunEngine publishes through a 0MQ proxy; those sent while nobody listens are lost."""

    def __init__(self, address: str, prefix: bytes = b"") -> None:
        import zmq

        self.faults: Counter[str] = Counter()
        self._prefix, self._again = prefix, zmq.Again
        self._socket: Any = zmq.Context.instance().socket(zmq.SUB)
        self._socket.setsockopt(zmq.RCVHWM, 100_000)
        self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        self._socket.connect(address if "://" in address else f"tcp://{address}")

    def receive(self, seconds: float) -> Iterable[Message]:
        """Return what came; a message is a prefix, a name and a document, parted by spaces."""
        from baton_bluesky.payloads import read_payload

        if not self._socket.poll(seconds * 1000):
            return
        with contextlib.suppress(self._again):
            for _ in range(1_000):
                prefix, _, rest = self._socket.recv(1).partition(b" ")  # 1 is NOBLOCK
                name, _, payload = rest.partition(b" ")
                if self._prefix and prefix != self._prefix:
                    continue
                try:
                    yield name.decode(), read_payload(payload)
                except ValueError as error:
                    self.faults[str(error)[:100]] += 1

    def commit(self) -> None:
        """0MQ keeps nothing."""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close(linger=0)


class KafkaSource:
    """Documents in topics of Kafka: an offset is committed when the journal is on disk."""

    def __init__(self, topics: list[str], servers: str, group: str, consumer: Any = None) -> None:
        if consumer is None:
            from confluent_kafka import Consumer

            settings = {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False}
            consumer = Consumer({**settings, "auto.offset.reset": "latest"})
        self.faults: Counter[str] = Counter()
        self._consumer = consumer
        self._consumer.subscribe(topics)

    def receive(self, seconds: float) -> Iterable[Message]:
        """Return what came; a message is a pair of a name and a document."""
        from baton_bluesky.payloads import read_payload

        for message in self._consumer.consume(1_000, seconds):
            if message.error() is not None:
                self.faults[str(message.error())[:100]] += 1
                continue
            try:
                name, document = read_payload(message.value())
                yield str(name), document
            except (ValueError, TypeError) as error:
                self.faults[str(error)[:100]] += 1

    def commit(self) -> None:
        """Commit what was received."""
        with contextlib.suppress(Exception):  # nothing to commit, or no broker: what is received again is recorded once
            self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


def hand_over(witness: BatonWitness, name: str, document: Any) -> None:
    """Have a witness take a document, no faster than it writes: nothing is dropped, since nothing is measured here."""
    if name == "event_page":
        for event in events_of(document):
            hand_over(witness, "event", event)
        return
    witness(name, document)
    if witness.queued > QUEUED_DOCUMENTS // 4:
        witness.flush(FLUSH_SECONDS)


def follow_until_told(source: DocumentSource, witness: BatonWitness, name: str) -> None:
    """Follow until the process is told to end, and say once a minute what could not be understood."""
    ending: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: ending.append(number))
    follower = Follower(source, witness, name)
    print(f"Following; the journal is in {witness.directory}.", flush=True)
    told: Mapping[str, int] = {}
    told_at = time.monotonic()
    while not ending:
        follower.step()
        lost = {**follower.order.given_up, **source.faults}
        if lost != told and time.monotonic() - told_at > 60:
            print(f"Not understood so far: {lost}", file=sys.stderr, flush=True)
            told, told_at = lost, time.monotonic()
    follower.settle()
    source.close()


def journal_directory(given: str | None) -> Path | None:
    """Return the directory that was named for the journal."""
    return None if given is None else Path(given)
