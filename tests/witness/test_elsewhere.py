"""Runs published over 0MQ or Kafka, and those that Tiled keeps, are recorded as a live witness records them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton_bluesky.callback import BatonWitness
from baton_bluesky.follow import Follower, KafkaSource
from baton_bluesky.journal import Position, run_journals
from baton_bluesky.main import main
from baton_bluesky.tiled_catalog import TiledCatalog
from baton_bluesky.translation import RequestKind, RunTranslation
from tests.support.api.rest_beamline import Beamline, beamline
from tests.support.databases import fresh_database
from tests.support.service import Api, running_api
from tests.support.waiting import until
from tests.support.witness.outside import ROOT, outside_environment, outside_program, tiled_server

pytestmark = pytest.mark.server
Documents = list[tuple[str, dict[str, Any]]]


class Elsewhere:
    """A service, and where the journals of its witnesses are."""

    def __init__(self, api: Api, line: Beamline, directory: Path) -> None:
        self.api, self.line, self.directory = api, line, directory

    def witness_arguments(self, journal: str, *more: str) -> list[str]:
        """Return the arguments that a witness elsewhere needs."""
        told = ["--service", self.api.base_url, "--plan", self.line.plan_id, "--observe", "all"]
        return [*told, "--journal", str(self.directory / journal), *more]

    def witness(self, journal: str, **options: Any) -> BatonWitness:
        directory = self.directory / journal
        return BatonWitness(self.api.base_url, self.line.plan_id, journal=directory, observe="all", **options)

    async def run_of(self, uid: str) -> dict[str, Any] | None:
        """Return the run that records a Bluesky run, if there is one."""
        found = (await self.api.get("/runs", limit=100)).json()["items"]
        views = [(await self.api.get(f"/runs/{one['run_id']}")).json() for one in found]
        same = [view for view in views if view["witness"]["document_uid"] == uid]
        assert len(same) <= 1, "one Bluesky run is one run"
        return same[0] if same else None

    async def ended_run_of(self, uid: str) -> dict[str, Any]:
        """Return the run that records a Bluesky run, once it is over."""

        async def ended_run() -> dict[str, Any] | None:
            view = await self.run_of(uid)
            return view if view is not None and view["status"] not in ("Running", "Held") else None

        return dict(await until(ended_run, 120))

    async def readings(self, run_id: str) -> list[tuple[float, datetime]]:
        """Return every reading of a run."""
        items = (await self.api.get(f"/runs/{run_id}/observations", limit=500)).json()["items"]
        return sorted((one["value"], datetime.fromisoformat(one["sampled_at"])) for one in items)


@pytest.fixture(scope="module")
async def elsewhere(
    postgres: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Elsewhere]:
    with fresh_database(postgres, template) as url:
        async with running_api(url) as api:
            account = await api.create("/actors", {"name": "Bluesky at BL7", "kind": "service_account"})
            os.environ["BATON_PRINCIPAL_ID"] = account
            yield Elsewhere(api, await beamline(api), tmp_path_factory.mktemp("journals"))
            del os.environ["BATON_PRINCIPAL_ID"]


def scan_documents(num: int = 4, rewound: bool = False) -> Documents:
    """Return the documents of a scan, as a JSON reader has them."""
    from bluesky.utils import RunEngineInterrupted

    from tests.support.witness.scans import Diode, make_engine, rewound_steps, steps

    engine, documents = make_engine()
    if rewound:
        with pytest.raises(RunEngineInterrupted):
            engine(rewound_steps(Diode()))
        engine.resume()
    else:
        engine(steps(Diode(), num))
    return [tuple(json.loads(json.dumps(one))) for one in documents]


def measured_values(documents: Documents) -> list[tuple[float, datetime]]:
    """Return every number of the events, with when it was taken."""
    events = [document for name, document in documents if name == "event"]
    return sorted((event["data"]["diode"], datetime.fromtimestamp(event["timestamps"]["diode"], UTC)) for event in events)


def uid_of(documents: Documents) -> str:
    return str(documents[0][1]["uid"])


class Proxy:
    """A 0MQ proxy of Bluesky and a publisher to it."""

    def __init__(self) -> None:
        from bluesky.callbacks import zmq

        self._proxy = zmq.Proxy("127.0.0.1", "127.0.0.1")
        threading.Thread(target=self._proxy.start, daemon=True).start()
        self.address = str(self._proxy.out_port).removeprefix("tcp://")
        self.publish = zmq.Publisher(str(self._proxy.in_port).removeprefix("tcp://"))


@contextmanager
def follower(elsewhere: Elsewhere, proxy: Proxy, journal: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that follows a proxy, as a person starts it."""
    command = [
        sys.executable,
        "-m",
        "baton_bluesky.main",
        "follow",
        "zmq",
        proxy.address,
        *elsewhere.witness_arguments(journal),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "witness")}
    with subprocess.Popen(command, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()


async def is_heard(elsewhere: Elsewhere, proxy: Proxy, documents: Documents) -> None:
    """Publish a scan again and again until it is on record: who listens too late has missed what came before."""

    async def is_recorded() -> bool:
        for name, document in documents:
            proxy.publish(name, document)
        return await elsewhere.run_of(uid_of(documents)) is not None

    await until(is_recorded, 120, longest_pause=0.5)


async def test_a_scan_that_is_seen_live_and_over_0mq_is_one_run_with_each_reading_once(elsewhere: Elsewhere) -> None:
    proxy, witness = Proxy(), elsewhere.witness("live")
    with follower(elsewhere, proxy, "zmq"):
        await is_heard(elsewhere, proxy, await asyncio.to_thread(scan_documents, 1))
        documents = await asyncio.to_thread(scan_documents)
        for one in documents:
            witness(*one)
            proxy.publish(*one)
        run = await elsewhere.ended_run_of(uid_of(documents))
        assert run["status"] == "Completed"
        assert await elsewhere.readings(run["id"]) == measured_values(documents)
        only = await asyncio.to_thread(scan_documents, 3)
        for one in only:
            proxy.publish(*one)
        run = await elsewhere.ended_run_of(uid_of(only))
        assert await elsewhere.readings(run["id"]) == measured_values(only), "one that is published alone"


async def test_a_follower_that_was_killed_continues_the_runs_it_followed(elsewhere: Elsewhere) -> None:
    proxy, documents = Proxy(), await asyncio.to_thread(scan_documents, 6)
    with follower(elsewhere, proxy, "killed") as process:
        await is_heard(elsewhere, proxy, await asyncio.to_thread(scan_documents, 1))
        for one in documents[:5]:
            proxy.publish(*one)

        async def has_three() -> bool:
            run = await elsewhere.run_of(uid_of(documents))
            return run is not None and len(await elsewhere.readings(run["id"])) == 3

        await until(has_three, 60)
        await until(lambda: uid_of(documents) in open_runs_kept(elsewhere.directory / "killed"), 60)
        process.send_signal(signal.SIGKILL)
        process.wait()
    with follower(elsewhere, proxy, "killed"):
        await is_heard(elsewhere, proxy, await asyncio.to_thread(scan_documents, 1))
        run = await elsewhere.run_of(uid_of(documents))
        assert run is not None
        assert run["status"] == "Running", "the death of a follower ends no run"
        for one in documents[5:]:
            proxy.publish(*one)
        run = await elsewhere.ended_run_of(uid_of(documents))
    assert (run["status"], run["end_reason"]) == ("Completed", None)
    assert await elsewhere.readings(run["id"]) == measured_values(documents)


def open_runs_kept(journal: Path) -> str:
    """Return what a follower keeps of open runs."""
    return "".join(path.read_text() for path in journal.glob("*.follow.json"))


class RecordedConsumer:
    """A consumer of Kafka whose messages were recorded; Kafka itself was not played."""

    def __init__(self, payloads: list[bytes]) -> None:
        self.payloads, self.given, self.committed = payloads, 0, 0

    def subscribe(self, topics: list[str]) -> None:
        assert topics == ["bl7"]

    def consume(self, num: int, timeout: float) -> list["RecordedConsumer.Message"]:
        taken = self.payloads[self.given : self.given + min(num, 3)]
        self.given += len(taken)
        return [self.Message(payload) for payload in taken]

    def commit(self, asynchronous: bool) -> None:
        assert not asynchronous
        self.committed = self.given

    def close(self) -> None:
        """Leave the group."""

    class Message:
        def __init__(self, payload: bytes) -> None:
            self._payload = payload

        def error(self) -> None:
            return None

        def value(self) -> bytes:
            return self._payload


def readings_in_journal(witness: BatonWitness) -> dict[str, dict[str, Any]]:
    """Return every reading in the journal of a witness, by its id."""
    found: dict[str, dict[str, Any]] = {}
    for journal in run_journals(witness.directory):
        translation, position = RunTranslation(), Position()
        while (read := journal.read(position))[0]:
            records, position = read
            for record in records:
                for request in translation.translate(record):
                    if request.kind is RequestKind.APPEND:
                        found |= {entry["event_id"]: entry for entry in request.body["entries"]}
    return found


@pytest.mark.parametrize("form", ["msgpack", "pickle", "json"])
def test_offsets_of_kafka_are_committed_when_the_journal_has_the_documents(tmp_path: Path, form: str) -> None:
    documents = scan_documents(7)
    consumer = RecordedConsumer([payload_of(form, list(one)) for one in documents])
    witness = BatonWitness(
        "http://127.0.0.1:9", "none", journal=tmp_path, observe="all", writer="kafka", starts_sender=False
    )
    following = Follower(KafkaSource(["bl7"], "", "", consumer), witness, "kafka")
    following.step(0)
    following.step(0)
    assert (consumer.given, consumer.committed) == (6, 0)
    following.settle()
    assert consumer.committed == 6
    assert len(readings_in_journal(witness)) == 4
    consumer.given = 3  # a consumer that died takes up where the last commit of another was
    again = Follower(KafkaSource(["bl7"], "", "", consumer), witness, "kafka")
    for _ in range(3):
        again.step(0)
    again.settle()
    readings = readings_in_journal(witness)
    assert sorted(one["value"] for one in readings.values()) == [1, 2, 3, 4, 5, 6, 7]


def payload_of(form: str, message: list[Any]) -> bytes:
    """Return a message as a publisher writes it."""
    import pickle

    import msgpack

    return {"msgpack": msgpack.packb, "pickle": pickle.dumps, "json": lambda one: json.dumps(one).encode()}[form](message)


@pytest.fixture(scope="module")
def scans() -> dict[str, Documents]:
    """The documents of a scan, of one that was rewound, and of one that died two days ago."""
    return {"plain": scan_documents(), "rewound": scan_documents(rewound=True), "died": died_documents()}


def died_documents() -> Documents:
    """Return the documents of a scan of two days ago, whose RunEngine died before its end."""
    documents = [one for one in scan_documents() if one[0] != "stop"]
    return [(name, {**document, "time": document["time"] - 2 * 86_400}) for name, document in documents]


@pytest.fixture(scope="module")
def tiled_address(tmp_path_factory: pytest.TempPathFactory, scans: dict[str, Documents]) -> Iterator[str]:
    """A Tiled server that TiledWriter has written the scans to."""
    with tiled_server(tmp_path_factory.mktemp("tiled")) as address:
        lines = "".join(json.dumps(one) + "\n" for documents in scans.values() for one in documents)
        fill = [outside_program("python"), str(ROOT / "tests/support/witness/fill_tiled.py"), address]
        subprocess.run(fill, input=lines.encode(), check=True, env=outside_environment())
        os.environ["TILED_API_KEY"] = "secret"
        yield address
        del os.environ["TILED_API_KEY"]


def read_back(tiled_address: str, documents: Documents) -> Documents:
    """Return the documents that Tiled has of a scan."""
    catalog = TiledCatalog(tiled_address)
    [run] = [run for run in catalog.runs() if run.uid == uid_of(documents)]
    return list(catalog.documents(run))


@pytest.mark.parametrize("scan", ["plain", "rewound"])
def test_f9_tiled_keeps_times_as_they_were_and_both_rows_of_a_rewound_event(
    tiled_address: str, scans: dict[str, Documents], scan: str
) -> None:
    """Rule 11 rests on it: the id of a reading follows from times and numbers, and from no uid of an event."""
    kept = ("seq_num", "time", "data", "timestamps")
    events = [[document[key] for key in kept] for name, document in scans[scan] if name == "event"]
    back = [document for name, document in read_back(tiled_address, scans[scan]) if name == "event"]
    assert [[document[key] for key in kept] for document in back] == events
    assert all("uid" not in document for document in back)
    numbers = [number for number, *_ in events]
    assert (len(set(numbers)) < len(numbers)) is (scan == "rewound")


def test_f9_a_run_is_found_by_a_key_of_its_start_and_its_documents_are_refused(
    tiled_address: str, scans: dict[str, Documents]
) -> None:
    """Rule 24 rests on it: metadata and tables are read, since a plain server answers documents with 406."""
    catalog = TiledCatalog(tiled_address)
    [_, earlier, later] = [run.start["time"] for run in catalog.runs()]
    assert [run.start["time"] for run in catalog.runs(since=later)] == [later]
    assert len(list(catalog.runs(since=earlier))) == 2
    service = catalog._service
    answer = service.get(f"/api/v1/container/full/{uid_of(scans['plain'])}", format="application/json-seq")
    assert answer.status == 406


@pytest.mark.parametrize("scan", ["plain", "rewound"])
def test_what_tiled_keeps_leads_to_the_readings_of_a_live_witness(
    tmp_path: Path, tiled_address: str, scans: dict[str, Documents], scan: str
) -> None:
    told = {"observe": "all", "starts_sender": False}
    live = BatonWitness("http://127.0.0.1:9", "none", journal=tmp_path / "live", **told)
    back = BatonWitness("http://127.0.0.1:9", "none", journal=tmp_path / "tiled", **told)
    for witness, documents in ((live, scans[scan]), (back, read_back(tiled_address, scans[scan]))):
        for one in documents:
            witness(*one)
        assert witness.flush()
    assert readings_in_journal(back) == readings_in_journal(live) != {}


async def test_runs_of_tiled_are_recorded_late_and_once(
    elsewhere: Elsewhere, tiled_address: str, scans: dict[str, Documents], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["backfill", "tiled", tiled_address, *elsewhere.witness_arguments("tiled")]
    assert await asyncio.to_thread(main, [*command, "--dry-run"]) == 0
    assert "3 runs: 3 recorded" in capsys.readouterr().out
    assert await elsewhere.run_of(uid_of(scans["plain"])) is None
    assert await asyncio.to_thread(main, command) == 0
    died = await elsewhere.ended_run_of(uid_of(scans["died"]))
    assert (died["status"], died["end_reason"]) == ("Truncated", "The RunEngine's process ended without a stop document.")
    for documents in (scans["plain"], scans["rewound"]):
        run = await elsewhere.ended_run_of(uid_of(documents))
        assert run["status"] == "Completed"
        assert await elsewhere.readings(run["id"]) == measured_values(documents)
    capsys.readouterr()
    assert await asyncio.to_thread(main, command) == 0
    assert "3 runs: 3 on record already" in capsys.readouterr().out
