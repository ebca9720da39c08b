"""The sender, in a process of its own: the service is away, refuses or lets nobody in; several witnesses see one scan."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton_bluesky import BatonWitness
from baton_bluesky.journal import SENDER_LOCK, STANDING, is_locked, read_document, run_journals
from tests.support.api.rest_beamline import create_plan
from tests.support.databases import fresh_database
from tests.support.infrastructure.epics_servers import free_ports
from tests.support.service import running_api
from tests.support.stack import clean_environment
from tests.support.waiting import until
from tests.support.witness.documents import Document, scan_documents
from tests.support.witness.kills import MomentProxy
from tests.support.witness.witnessed_beamline import WitnessedBeamline, witnessed_beamline

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
async def line(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[WitnessedBeamline]:
    with fresh_database(postgres, template) as url:
        async with running_api(url) as api:
            yield await witnessed_beamline(api)


@contextmanager
def running_sender(directory: Path, line: WitnessedBeamline, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """A sender of a journal, until the end of the block."""
    program = [sys.executable, "-m", "baton_bluesky.main", "send", str(directory)]
    told = clean_environment(**{**line.environment, **environment})
    with subprocess.Popen(program, env=told, stderr=subprocess.PIPE, text=True) as sender:
        yield sender
        sender.terminate()


def witness(directory: Path, line: WitnessedBeamline, stream: Sequence[Document], **options: Any) -> None:
    """Journal these documents as a witness that then ends."""
    told = {"address": line.api.base_url, "plan": line.plan_id, "observe": "all", **options}
    one = BatonWitness(journal=directory, starts_sender=False, **told)
    for name, document in stream:
        one(name, document)
    one.close()


async def wait_until_sent(directory: Path) -> None:
    """Wait until everything journaled is sent."""
    await until(lambda: not run_journals(directory))


def numbers_of(stream: Sequence[Document]) -> list[tuple[str, float]]:
    """Return the channel and value of every reading of some documents, sorted."""
    return sorted((key, value) for name, document in stream if name == "event" for key, value in document["data"].items())


async def recorded_numbers(line: WitnessedBeamline, uid: str) -> list[tuple[str, float]]:
    """Return the channel and value of every reading of a run that has ended."""
    run = await line.ended_run_of(uid)
    return [(channel, value) for channel, value, _ in await line.readings(run["id"])]


async def test_a_scan_while_the_service_is_away_is_on_record_once_it_is_back(
    line: WitnessedBeamline, tmp_path: Path
) -> None:
    [port] = free_ports(1)
    stream = scan_documents(uid := str(uuid4()))
    witness(tmp_path, line, stream, address=f"http://127.0.0.1:{port}")
    with running_sender(tmp_path, line):
        await until(lambda: "refused" in str(read_document(tmp_path / STANDING).get("waiting")))
        proxy = MomentProxy(int(line.api.base_url.rpartition(":")[2]))
        async with await asyncio.start_server(proxy.accept, "127.0.0.1", port):
            await wait_until_sent(tmp_path)
    assert await recorded_numbers(line, uid) == numbers_of(stream)


async def test_of_two_senders_one_sends(line: WitnessedBeamline, tmp_path: Path) -> None:
    stream = scan_documents(uid := str(uuid4()))
    witness(tmp_path, line, stream)
    with running_sender(tmp_path, line):
        await until(lambda: is_locked(tmp_path / SENDER_LOCK))
        with running_sender(tmp_path, line) as second:
            _, said = await asyncio.to_thread(second.communicate)
        await wait_until_sent(tmp_path)
    assert said == "Another process sends this journal.\n"
    assert await recorded_numbers(line, uid) == numbers_of(stream)


async def test_two_sources_of_one_scan_make_one_record(line: WitnessedBeamline, tmp_path: Path) -> None:
    stream = scan_documents(uid := str(uuid4()), events=20)
    for _ in range(2):
        witness(tmp_path, line, stream)
    with running_sender(tmp_path, line):
        await wait_until_sent(tmp_path)
    assert await recorded_numbers(line, uid) == numbers_of(stream)


async def test_a_run_that_is_refused_is_set_aside_and_the_next_one_goes_through(
    line: WitnessedBeamline, tmp_path: Path
) -> None:
    wrong, right = scan_documents("wrong"), scan_documents(uid := str(uuid4()))
    witness(tmp_path, line, wrong, plan=str(uuid4()))
    witness(tmp_path, line, right)
    with running_sender(tmp_path, line):
        await wait_until_sent(tmp_path)
    assert await recorded_numbers(line, uid) == numbers_of(right)
    refused = await asyncio.to_thread((tmp_path / "refused.jsonl").read_text)
    [kept] = [json.loads(one) for one in refused.splitlines()]
    assert (kept["path"], kept["answer"]["status"], kept["body"]["document_uid"]) == ("/runs/witness", 404, "wrong")
    [aside] = await asyncio.to_thread(lambda: list((tmp_path / "refused").rglob("*.jsonl")))
    assert len((await asyncio.to_thread(aside.read_text)).splitlines()) == len(wrong)


async def test_a_plan_that_is_not_there_yet_is_waited_for(line: WitnessedBeamline, tmp_path: Path) -> None:
    name, stream = f"Later {uuid4().hex[:6]}", scan_documents(uid := str(uuid4()))
    witness(tmp_path, line, stream, plan={"scan": name, "default": "another"})
    with running_sender(tmp_path, line):
        await until(lambda: name in str(read_document(tmp_path / STANDING).get("waiting")))
        plan = await create_plan(line.api, line.stage_id)
        practice = (await line.api.get(f"/plans/{plan.plan_id}")).json()["practice_id"]
        named = {"name": name, "practice_id": practice, "asset_ids": [line.stage_id]}
        plan_id = await line.api.create("/plans", named)
        await wait_until_sent(tmp_path)
    assert (await line.ended_run_of(uid))["plan_id"] == plan_id


async def test_an_account_that_may_do_nothing_keeps_everything(line: WitnessedBeamline, tmp_path: Path) -> None:
    person = await line.api.create("/actors", {"name": "Mira Okafor"})
    stream = scan_documents(uid := str(uuid4()))
    witness(tmp_path, line, stream)
    with running_sender(tmp_path, line, BATON_PRINCIPAL_ID=person):
        waiting = await until(lambda: read_document(tmp_path / STANDING).get("waiting"))
    assert waiting.startswith("The service answers 403")
    assert run_journals(tmp_path)
    with running_sender(tmp_path, line):
        await wait_until_sent(tmp_path)
    assert await recorded_numbers(line, uid) == numbers_of(stream)


async def test_the_service_hears_from_a_live_run_every_few_seconds(line: WitnessedBeamline, tmp_path: Path) -> None:
    stream = scan_documents(uid := str(uuid4()))
    told: dict[str, Any] = {"journal": tmp_path, "starts_sender": False, "observe": "all"}
    alive = BatonWitness(line.api.base_url, line.plan_id, **told)
    # Another process asks whether this one lives, so it stays alive until the end.
    for name, document in stream[:-1]:
        alive(name, document)
    with running_sender(tmp_path, line):
        run = await until(lambda: line.run_of(uid))
        first = run["heard_at"]

        async def is_heard_again() -> bool:
            return bool((await line.api.get(f"/runs/{run['id']}")).json()["heard_at"] > first)

        await until(is_heard_again)
        assert run["witness"]["late"], "the documents are old, and the RunEngine lives"
        held = (await line.api.post("/hold-everything", {"reason": "drill"})).json()
        assert run["id"] in [one["id"] for one in held["refused"]]
        alive(*stream[-1])
        await wait_until_sent(tmp_path)
    alive.close()
    assert (await line.ended_run_of(uid))["status"] == "Completed"


async def test_a_clock_that_was_set_back_loses_nothing(line: WitnessedBeamline, tmp_path: Path) -> None:
    stream = scan_documents(uid := str(uuid4()), events=6)
    for place, (name, document) in enumerate(stream):
        if name == "event":
            document["time"] -= 3_600 * (place % 2)
            document["timestamps"] = dict.fromkeys(document["data"], document["time"])
    witness(tmp_path, line, stream)
    with running_sender(tmp_path, line):
        await wait_until_sent(tmp_path)
    assert await recorded_numbers(line, uid) == numbers_of(stream)


async def test_pauses_are_on_record_where_a_stream_tells_of_them(line: WitnessedBeamline, tmp_path: Path) -> None:
    start, descriptor, *events, stop = scan_documents(uid := str(uuid4()), events=2)
    interruptions = {"uid": f"{uid}-i", "run_start": uid, "time": start[1]["time"], "name": "interruptions"}
    told = [("descriptor", {**interruptions, "data_keys": {"interruption": {"source": "RunEngine", "dtype": "string"}}})]
    for number, word in enumerate(("pause", "resume")):
        event = {"descriptor": f"{uid}-i", "uid": f"{uid}-i{number}", "seq_num": number + 1}
        at = start[1]["time"] + 1 + number
        told.append(("event", {**event, "time": at, "data": {"interruption": word}, "timestamps": {"interruption": at}}))
    witness(tmp_path, line, [start, descriptor, events[0], *told, events[1], stop])
    with running_sender(tmp_path, line):
        await wait_until_sent(tmp_path)
    run = await line.ended_run_of(uid)
    history = (await line.api.get(f"/runs/{run['id']}/history", limit=100)).json()["items"]
    changes = [one["payload"]["change"] for one in history if one["event_type"] == "RunWitnessChanged"]
    assert [change for change in changes if change != "described"] == ["paused", "resumed", "ended"]


def test_a_person_reads_how_a_witness_is_doing(line: WitnessedBeamline, tmp_path: Path) -> None:
    witness(tmp_path, line, scan_documents()[:-1])
    program = [sys.executable, "-m", "baton_bluesky.main", "standing", str(tmp_path)]
    said = subprocess.run(program, capture_output=True, text=True, check=True, env=clean_environment()).stdout
    assert said.splitlines()[:2] == ["sender     does not run", "journal    1 runs, 0.0 MiB"]
