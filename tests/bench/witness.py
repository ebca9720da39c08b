"""The witness of Bluesky: what its callback takes from a scan, how soon readings are on record, and what catches up."""

import asyncio
import json
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psutil
import psycopg

from baton_bluesky import BatonWitness, journal
from baton_bluesky.journal import run_journals, used_bytes
from baton_bluesky.keys import run_id, timestamp_text
from tests.bench.observations import open_observation_bench
from tests.support.service import Api
from tests.support.stack import clean_environment
from tests.support.waiting import until
from tests.support.witness.documents import scan_documents
from tests.support.witness.engine_process import end_sender, running_engine, sender_pid
from tests.support.witness.witnessed_beamline import WitnessedBeamline, witnessed_beamline

IMPORTED = """
import sys, time
began = time.perf_counter()
import baton_bluesky
seconds = time.perf_counter() - began
beyond = [name for name in sys.modules if name.partition(".")[0] not in sys.stdlib_module_names and "baton" not in name]
print(seconds, [name for name in beyond if not name.startswith("_") and "editable" not in name])
"""
CHANNELS = 10
AWAY = "http://127.0.0.1:9"


@dataclass
class Callback:
    """What a callback took, in seconds, sorted."""

    events: list[float]
    start: float
    stop: float

    def microseconds(self, part: float) -> float:
        """Return the time of an event that this part of them does not exceed."""
        return self.events[int(len(self.events) * part)] * 1e6


def time_import(rounds: int) -> float:
    """Return the seconds that importing the package takes, at best."""
    found = []
    for _ in range(rounds):
        said = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True).stdout
        seconds, _, beyond = said.strip().partition(" ")
        assert beyond == "[]", f"it loads more than the standard library: {beyond}"
        found.append(float(seconds))
    return min(found)


def time_callback(events: int, *, image: Any = None, **options: Any) -> Callback:
    """Return what the callback takes for each event of ten scalars, with a thousand of them a second or so."""
    with TemporaryDirectory() as directory:
        witness = BatonWitness(AWAY, "plan", journal=directory, observe="all", **options)
        documents = scan_documents("bench", events=events, channels=CHANNELS, period=0.001)
        took: list[float] = []
        ends: list[float] = []
        for name, document in documents:
            if image is not None and name == "event":
                document["data"]["image"] = image
            began = time.perf_counter()
            witness(name, document)
            (took if name == "event" else ends).append(time.perf_counter() - began)
            time.sleep(0.0005)
        end_sender(Path(directory))
        witness.close()
    return Callback(sorted(took), ends[0], ends[-1])


def time_callback_without_disk(events: int) -> Callback:
    """Return what the callback takes while each write to the disk waits for ever."""
    write, stuck = journal.os.write, threading.Event()

    def write_never(descriptor: int, text: bytes) -> int:
        stuck.wait()
        return write(descriptor, text)

    journal.os.write = write_never
    try:
        threading.Timer(0.002 * events + 5, stuck.set).start()
        return time_callback(events, starts_sender=False)
    finally:
        stuck.set()
        journal.os.write = write


async def time_scans(line: WitnessedBeamline, directory: Path, events: int, rounds: int) -> tuple[float, float]:
    """Return the seconds of a scan without a witness and with one, the median of some rounds of both in turn."""
    told: dict[str, Any] = {"environment": line.environment}
    with (
        running_engine(directory / "bare") as bare,
        running_engine(directory / "witnessed", line.api.base_url, line.plan_id, **told) as witnessed,
    ):
        without, having = list[float](), list[float]()
        for engine in (bare, witnessed):
            await engine.run("numbered", num=20, delay=0)
        for _ in range(rounds):
            without.append((await bare.run("numbered", num=events, delay=0)).seconds)
            having.append((await witnessed.run("numbered", num=events, delay=0)).seconds)
            await until(lambda: not run_journals(witnessed.journal))
    return statistics.median(without), statistics.median(having)


@dataclass
class Stream:
    """What became of a stream of events that came at a steady rate."""

    readings: int
    dropped: int
    lag: float
    """Seconds from the last event to its reading on record."""
    processor: float
    """Part of a core that the sender took."""
    journal_bytes: int


async def play_stream(line: WitnessedBeamline, directory: Path, url: str, rate: int, seconds: float, observe: Any) -> Stream:
    """Have a witness see so many events a second of ten channels, and wait until they are on record."""
    program = [sys.executable, "-m", "tests.bench.witness", json.dumps([line.api.base_url, line.plan_id, str(directory)])]
    program += [json.dumps([rate, seconds, observe])]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment_of(line)) as emitter:  # noqa: ASYNC220
        largest, processor, sender = 0, 0.0, None
        while emitter.poll() is None or run_journals(directory):
            await asyncio.sleep(0.2)
            largest = max(largest, used_bytes(directory))
            sender = sender or sender_pid(directory)
            if sender is not None and psutil.pid_exists(sender):
                times = psutil.Process(sender).cpu_times()
                processor = times.user + times.system
        assert emitter.stdout is not None
        said = json.loads(emitter.stdout.read())
    with psycopg.connect(url) as connection:
        asked = "SELECT count(*), extract(epoch FROM max(recorded_at)) FROM entries_run_observations WHERE run_id = %s"
        row = connection.execute(asked, [said["run_id"]]).fetchone()
    assert row is not None
    end_sender(directory)
    return Stream(row[0], said["dropped"], float(row[1]) - said["last"], processor / seconds, largest)


def environment_of(line: WitnessedBeamline) -> dict[str, str]:
    """Return the environment of a process that witnesses."""
    return clean_environment(**line.environment)


def emit(address: str, plan: str, directory: str, rate: int, seconds: float, observe: Any) -> None:
    """Emit the documents of a scan at a steady rate, and print what became of them."""
    witness = BatonWitness(address, plan, journal=directory, observe=observe)
    uid, began = f"bench-{time.time_ns()}", time.time()
    documents = scan_documents(uid, events=int(rate * seconds), began=began, channels=CHANNELS)
    for name, document in documents[:2]:
        witness(name, document)
    first = time.time()
    at = first
    for number, (name, document) in enumerate(documents[2:-1]):
        due = first + number / rate
        while (at := time.time()) < due:
            time.sleep(max(0, min(0.001, due - at)))
        document["time"] = at
        document["timestamps"] = dict.fromkeys(document["data"], at)
        witness(name, document)
    witness(*documents[-1])
    dropped = sum(witness.standing().dropped.values())
    print(json.dumps({"run_id": run_id(uid, timestamp_text(began)), "dropped": dropped, "last": at}))


async def time_catch_up(line: WitnessedBeamline, directory: Path, events: int, url: str, port: int) -> tuple[float, float]:
    """Return the seconds that a sender takes for a journal of hours, and the p99 of holds of another run meanwhile."""
    witness = BatonWitness(line.api.base_url, line.plan_id, journal=directory, observe="all", starts_sender=False)
    documents = scan_documents(f"away-{time.time_ns()}", events=events, channels=CHANNELS, began=time.time() - events)
    for number, (name, document) in enumerate(documents):
        witness(name, document)
        if number % 5_000 == 0:
            witness.flush(30)
    witness.flush(60)
    bench = await open_observation_bench(url, port)
    path = f"http://127.0.0.1:{port}/runs/{bench.other}"
    waits: list[float] = []
    program = [sys.executable, "-m", "baton_bluesky.main", "send", str(directory)]
    began = time.monotonic()
    with subprocess.Popen(program, env=environment_of(line)) as sender:  # noqa: ASYNC220
        async with httpx.AsyncClient(timeout=30) as client:
            while run_journals(directory):
                for verb in ("hold", "resume"):
                    asked = time.perf_counter()
                    answer = await client.post(f"{path}/{verb}", json={})
                    waits.append(time.perf_counter() - asked)
                    assert answer.status_code == 204, answer.text
                await asyncio.sleep(0.05)
        seconds = time.monotonic() - began
        sender.terminate()
    witness.close()
    return seconds, sorted(waits)[int(len(waits) * 0.99)] * 1000


async def time_truncation(line: WitnessedBeamline, directory: Path) -> float:
    """Return the seconds from the death of a RunEngine to the end of its run on record."""
    with running_engine(directory, line.api.base_url, line.plan_id, environment=line.environment) as engine:
        engine.begin("numbered", num=10_000)
        uid = None
        while uid is None or await line.run_of(uid) is None:
            await asyncio.sleep(0.1)
            uid = uid or uid_of(engine.journal)
        engine.kill()
        began = time.monotonic()
        run = await line.ended_run_of(uid)
        seconds = time.monotonic() - began
        assert run["status"] == "Truncated"
        return seconds


def uid_of(directory: Path) -> str | None:
    """Return the uid of the run that is journaled."""
    for run in run_journals(directory):
        records, _ = run.read(journal.BEGINNING)
        if records:
            return str(records[0]["uid"])
    return None


async def measure_witness(bench: Any, port: int) -> None:
    """Measure everything that a witness is to keep, with its budgets."""
    few = 10 if bench.quick else 1
    bench.budget("import baton_bluesky (s)", bench.figure("import baton_bluesky", time_import(5), "s"), 0.3, at_least=False)
    measure_callbacks(bench, 20_000 // few)
    base_url = f"http://127.0.0.1:{port}"
    with TemporaryDirectory(prefix="baton-witness-") as name:
        directory = Path(name)
        async with httpx.AsyncClient(base_url=base_url, timeout=60) as client:
            line = await witnessed_beamline(Api(client, base_url, bench.url, {}))
            without, having = await time_scans(line, directory, 2_000 // few, 3)
            bench.figure(f"scan of {2_000 // few:,} events, no witness", without, "s")
            bench.figure(f"scan of {2_000 // few:,} events, witnessed", having, "s")
            bench.budget("witnessed scan / scan", having / without, 1.03, at_least=False)
            await measure_streams(bench, line, directory)
            events = 28_800 // few
            seconds, holds = await time_catch_up(line, directory / "away", events, bench.url, port)
            bench.figure(f"catch-up with {events:,} events of {CHANNELS} channels", seconds, "s")
            bench.budget("catch-up after 8 hours (s)", seconds * few, 120, at_least=False)
            bench.budget("hold of another run meanwhile, p99 (ms)", holds, 100, at_least=False)
            dead = bench.figure("RunEngine killed to Truncated", await time_truncation(line, directory / "dead"), "s")
            bench.budget("RunEngine killed to Truncated (s)", dead, 5, at_least=False)


def measure_callbacks(bench: Any, events: int) -> None:
    """Measure what each event, start and stop take from the RunEngine."""
    import numpy

    image = numpy.zeros((2048, 2048), dtype="uint16")
    cases = {
        "10 scalars": time_callback(events),
        "10 scalars and 4 megapixels": time_callback(events // 4, image=image),
        "a disk that takes nothing": time_callback_without_disk(events // 4),
    }
    for case, measured in cases.items():
        bench.figure(f"callback, {case}, p50", measured.microseconds(0.5), "µs")
        bench.budget(f"callback, {case}, p50 (µs)", measured.microseconds(0.5), 50, at_least=False)
        bench.figure(f"callback, {case}, p99", measured.microseconds(0.99), "µs")
        bench.budget(f"callback, {case}, p99 (µs)", measured.microseconds(0.99), 500, at_least=False)
        bench.budget(f"start and stop, {case} (ms)", max(measured.start, measured.stop) * 1000, 55, at_least=False)


async def measure_streams(bench: Any, line: WitnessedBeamline, directory: Path) -> None:
    """Measure a thousand events a second of ten channels, thinned and all of them."""
    seconds = max(bench.seconds, 5)
    for observe in ("thinned", "all"):
        seen = await play_stream(line, directory / observe, bench.url, 1_000, seconds, observe)
        bench.figure(f"1,000 events/s, {observe}: readings", seen.readings, "rows")
        bench.budget(f"1,000 events/s, {observe}: dropped", seen.dropped, 0, at_least=False)
        bench.figure(f"1,000 events/s, {observe}: last reading on record after", seen.lag, "s")
        bench.figure(f"1,000 events/s, {observe}: sender", seen.processor * 100, "% of a core")
        bench.figure(f"1,000 events/s, {observe}: journal", seen.journal_bytes / 2**20, "MiB")
        if observe == "thinned":
            bench.budget("thinned: on record within (s)", seen.lag, 2, at_least=False)
            bench.budget("thinned: sender (part of a core)", seen.processor, 0.15, at_least=False)
            bench.budget("thinned: journal (MiB)", seen.journal_bytes / 2**20, 50, at_least=False)
        else:
            assert seen.readings >= 1_000 * CHANNELS * seconds
            bench.budget("all: lag gone within (s)", seen.lag, 300, at_least=False)


if __name__ == "__main__":
    emit(*json.loads(sys.argv[1]), *json.loads(sys.argv[2]))
