"""Checks of copies on the record: each verdict on real bytes, once however many attempts there are, and many in a sweep."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from baton.application import attestations
from baton.application.attestations import COPIES, Attestations, AttestationSweeps
from baton.application.caller import Caller
from baton.application.settings import Settings
from baton.application.unit_of_work import load_events, load_row
from baton.cli.composition.runtime import Runtime
from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.access.actor import DeactivateActor, RegisterActor
from baton.domain.conduct.work_items import GetWork
from baton.domain.data.attestation import (
    AttestationOutcome,
    AttestationRecorded,
    AttestDistributions,
    ByteReading,
    RecordAttestation,
    swept_attestation_id,
)
from baton.domain.data.distribution import DiscardDistribution, DistributionStatus, MarkDistributionStale
from baton.domain.kernel import NIL
from baton.domain.shared.refusals import UnauthorizedError
from baton.domain.shared.tasks import Task, TaskStatus
from baton.testing.ports import MemoryByteSource
from tests.support.application.data_copies import FRAMES, SYSTEM, DataRecord, create
from tests.support.infrastructure.byte_server import ByteServer, running_byte_server
from tests.support.waiting import until
from tests.support.workflows.conduct_stack import OPERATOR, open_conduct_stack

MATCH, MISMATCH, UNREACHABLE = AttestationOutcome
REGISTERED, VERIFIED, STALE, DISCARDED = DistributionStatus


@pytest.fixture
def server() -> Iterator[ByteServer]:
    with running_byte_server({"/scan.h5": FRAMES, "/wrong.h5": b"others"}) as server:
        yield server


@pytest.fixture
async def record(database_url: str, server: ByteServer, tmp_path: Path) -> AsyncIterator[DataRecord]:
    hosts = (f"127.0.0.1:{server.port}",)
    settings = Settings(database_url=database_url, data_roots=(tmp_path / "data",), verifier_allowed_hosts=hosts)
    async with Runtime(settings) as runtime:
        await runtime.plant_seeds()
        yield await DataRecord.begin(runtime)


async def begin_check(record: DataRecord, copy: UUID, **fields: Any) -> UUID:
    """Ask for a check that the record knows and no engine carries."""
    return await create(record.runtime, RecordAttestation(dataset_id=record.dataset_id, distribution_id=copy, **fields))


async def check(record: DataRecord, copy: UUID) -> tuple[AttestationOutcome, DistributionStatus, str | None]:
    """Check a copy to the end; return the outcome, the copy's status and what is said of the failure."""
    id = await begin_check(record, copy)
    await record.attestations.run(id)
    assert await record.attestations.answer(id) == {"attestation_id": str(id)}
    found = await record.attestation(id)
    assert (found.distribution_id, found.dataset_id, found.attested_by) == (copy, record.dataset_id, SYSTEM.principal_id)
    return found.outcome, (await record.state(copy)).status, found.evidence.error_detail


async def test_each_verdict_on_files_and_servers(record: DataRecord, server: ByteServer, tmp_path: Path) -> None:
    (root := tmp_path / "data").mkdir()
    (root / "scan.h5").write_bytes(FRAMES)
    (root / "truncated.h5").write_bytes(FRAMES[:-1])
    (root / "empty.h5").touch()
    (root / "folder").mkdir()
    (tmp_path / "secret.h5").write_bytes(FRAMES)
    (root / "link.h5").symlink_to(tmp_path / "secret.h5")
    with running_byte_server({"/scan.h5": FRAMES}) as foreign:
        server.behaviours["/away"] = lambda handler: handler.send(302, Location=f"{foreign.url}/scan.h5")
        cases = {
            f"file://{root}/scan.h5": (MATCH, VERIFIED, None),
            f"file://localhost{root}/truncated.h5": (MISMATCH, STALE, None),
            f"file://{root}/empty.h5": (MISMATCH, STALE, None),
            f"file://{root}/absent.h5": (UNREACHABLE, REGISTERED, "no such file"),
            f"file://{root}/folder": (UNREACHABLE, REGISTERED, "a directory"),
            f"file://{root}/../secret.h5": (UNREACHABLE, REGISTERED, "outside the directories"),
            f"file://{root}/link.h5": (UNREACHABLE, REGISTERED, "outside the directories"),
            f"{server.url}/scan.h5": (MATCH, VERIFIED, None),
            f"{server.url}/wrong.h5": (MISMATCH, STALE, None),
            f"{server.url}/absent.h5": (UNREACHABLE, REGISTERED, "HEAD with status 404"),
            f"{server.url}/away": (UNREACHABLE, REGISTERED, "not listed in VERIFIER_ALLOWED_HOSTS"),
            f"{foreign.url}/scan.h5": (UNREACHABLE, REGISTERED, "not listed in VERIFIER_ALLOWED_HOSTS"),
        }
        for uri, (outcome, status, words) in cases.items():
            found = await check(record, await record.copy(uri))
            assert found[:2] == (outcome, status), uri
            assert (found[2] is None) if words is None else (words in str(found[2])), (uri, found)
        assert foreign.asked == []


async def test_a_copy_that_is_mended_is_verified_again_and_one_that_is_away_keeps_its_status(
    record: DataRecord, server: ByteServer
) -> None:
    copy = await record.copy(f"{server.url}/wrong.h5")
    assert await check(record, copy) == (MISMATCH, STALE, None)
    server.contents["/wrong.h5"] = FRAMES
    assert await check(record, copy) == (MATCH, VERIFIED, None)
    del server.contents["/wrong.h5"]
    assert (await check(record, copy))[:2] == (UNREACHABLE, VERIFIED)


class InterruptedSource(MemoryByteSource):
    """Bytes in memory; something else happens while they are read."""

    def __init__(self, contents: dict[str, bytes], meanwhile: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(contents)
        self._meanwhile = meanwhile

    async def read(self, uri: str) -> ByteReading:
        reading = await super().read(uri)
        await self._meanwhile()
        return reading


async def test_a_copy_given_up_while_it_is_read_stays_discarded(record: DataRecord) -> None:
    commands = record.runtime.commands
    copy = await record.copy("https://storage.example/scan.h5")
    discard = DiscardDistribution(reason="moved to tape")
    source = InterruptedSource(
        {"https://storage.example/scan.h5": FRAMES}, lambda: commands.execute(discard, SYSTEM, target_id=copy)
    )
    id = await begin_check(record, copy)
    await Attestations(commands, source).run(id)
    assert ((await record.attestation(id)).outcome, (await record.state(copy)).status) == (MATCH, DISCARDED)


async def test_a_check_among_rivals_is_recorded_in_the_end(record: DataRecord) -> None:
    commands, uri = record.runtime.commands, "https://storage.example/scan.h5"
    copy = await record.copy(uri)
    work = Attestations(commands, MemoryByteSource({uri: FRAMES}))
    ids = [await begin_check(record, copy) for _ in range(8)]
    await asyncio.gather(*map(work.run, ids))
    events = [type(event).__name__ for event in await record.events(copy)]
    assert events == ["DistributionRegistered", *["DistributionVerified"] * 8]


@pytest.mark.parametrize("content", [FRAMES, b"others", None], ids=["match", "mismatch", "unreachable"])
async def test_attempts_at_once_and_one_that_comes_late_record_one_result(record: DataRecord, content: bytes | None) -> None:
    commands, uri = record.runtime.commands, "https://storage.example/scan.h5"
    copy = await record.copy(uri)
    everybody_read = asyncio.Barrier(3)
    source = InterruptedSource({} if content is None else {uri: content}, everybody_read.wait)
    work = Attestations(commands, source)
    id = await begin_check(record, copy)
    await asyncio.gather(*(work.run(id) for _ in range(3)))
    await work.run(id)
    assert len(source.read_uris) == 3
    assert len(await load_events(record.runtime.store, id, AttestationRecorded)) == 1
    assert len(await record.events(copy)) == (1 if content is None else 2)


async def test_a_repeated_request_attaches_to_the_check(record: DataRecord) -> None:
    command = RecordAttestation(dataset_id=record.dataset_id, distribution_id=await record.copy("file:///data/scan.h5"))
    commands = record.runtime.service.commands
    once, again = [await commands.execute(command, SYSTEM, key="the same check") for _ in range(2)]
    assert once.body == again.body
    assert len(await record.attestations.unfinished_ids()) == 1


async def begin_sweep(record: DataRecord, caller: Caller = SYSTEM, **fields: Any) -> Task:
    return await record.sweeps.load(await create(record.runtime, AttestDistributions(**fields), caller))


async def test_a_sweep_checks_every_copy_and_says_which_did_not_match(record: DataRecord, server: ByteServer) -> None:
    right, wrong, away = await record.copies([f"{server.url}/{path}" for path in ("scan.h5", "wrong.h5", "absent.h5")])
    await record.copy("s3://bucket/scan.h5")
    sweep = await begin_sweep(record)
    later = await record.copy(f"{server.url}/scan.h5?later")
    await record.sweeps.run(sweep.work_id)
    answer: Any = await record.sweeps.answer(sweep.work_id)
    named = [
        {"distribution_id": str(copy), "attestation_id": str(swept_attestation_id(sweep, copy)), "outcome": outcome}
        for copy, outcome in ((wrong, "Mismatch"), (away, "Unreachable"))
    ]
    counts = {"match_count": 1, "mismatch_count": 1, "unreachable_count": 1, "skipped_count": 0}
    assert answer == {"sweep_id": str(sweep.work_id), **counts, "not_matched": named}
    statuses = [(await record.state(copy)).status for copy in (right, wrong, away, later)]
    assert statuses == [VERIFIED, STALE, REGISTERED, REGISTERED]
    again = await begin_sweep(record, not_verified_since=sweep.created_at, limit=2)
    await record.sweeps.run(again.work_id)
    assert sorted((await record.sweeps.load(again.work_id)).notes[COPIES]) == sorted(map(str, (wrong, away)))


async def test_attempts_at_once_record_each_copy_once_and_a_later_one_reads_none_again(record: DataRecord) -> None:
    commands = record.runtime.commands
    uris = [f"https://storage.example/{number}" for number in range(30)]
    copies = await record.copies(uris)
    sources = [MemoryByteSource(dict.fromkeys(uris, FRAMES)) for _ in range(3)]
    works = [AttestationSweeps(commands, source) for source in sources]
    sweep = await begin_sweep(record)
    interrupted = asyncio.create_task(works[0].run(sweep.work_id))
    await until(lambda: len(sources[0].read_uris) >= 10, longest_pause=0.001)
    interrupted.cancel()
    await asyncio.gather(interrupted, return_exceptions=True)
    store = record.runtime.store
    done = [copy for copy in copies if await load_events(store, swept_attestation_id(sweep, copy), AttestationRecorded)]
    assert 0 < len(done) < len(copies)
    await asyncio.gather(*(work.run(sweep.work_id) for work in works[1:]))
    finished = {(await record.state(copy)).uri for copy in done}
    assert finished.isdisjoint([*sources[1].read_uris, *sources[2].read_uris])
    for copy in copies:
        assert len(await load_events(store, swept_attestation_id(sweep, copy), AttestationRecorded)) == 1
        assert len(await record.events(copy)) == 2
    assert (await works[0].answer(sweep.work_id) or {})["match_count"] == len(copies)


async def test_a_sweep_tells_how_far_it_is_and_passes_over_what_was_given_up(
    record: DataRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attestations, "NOTED_EVERY", 0)
    monkeypatch.setattr(attestations, "AT_ONCE", 1)
    commands, uris = record.runtime.commands, [f"https://storage.example/{number}" for number in range(8)]
    copies = [await record.copy(uri) for uri in uris]
    discard = DiscardDistribution(reason="moved to tape")
    told: list[str] = []

    async def give_up_and_look() -> None:
        progress = await work.progress(sweep.work_id)
        assert progress is not None
        told.append(progress.message)
        if len(told) == 1:
            await commands.execute(discard, SYSTEM, target_id=copies[-1])

    source = InterruptedSource({**dict.fromkeys(uris, FRAMES), uris[0]: b"others"}, give_up_and_look)
    work = AttestationSweeps(commands, source)
    sweep = await begin_sweep(record, dataset_id=record.dataset_id)
    await work.run(sweep.work_id)
    answer: Any = await work.answer(sweep.work_id)
    assert (answer["match_count"], answer["mismatch_count"], answer["skipped_count"]) == (6, 1, 1)
    assert uris[-1] not in source.read_uris
    assert told == ["0 of 8 checked, 0 mismatches", *(f"{count} of 8 checked, 1 mismatch" for count in range(1, 7))]


async def test_a_sweep_ends_when_its_caller_may_not_act_any_more(record: DataRecord) -> None:
    commands, uris = record.runtime.commands, [f"https://storage.example/{number}" for number in range(8)]
    copies = await record.copies(uris)
    operator = await create(record.runtime, RegisterActor(name="Night shift"))
    as_operator = Caller(operator, NIL, UUID(int=8))
    sweep = await begin_sweep(record, as_operator)
    gone = asyncio.Event()

    async def deactivate() -> None:
        if len(source.read_uris) == 1:
            await commands.execute(DeactivateActor(), SYSTEM, target_id=operator)
            gone.set()
        await gone.wait()

    source = InterruptedSource(dict.fromkeys(uris, FRAMES), deactivate)
    work = AttestationSweeps(commands, source)
    await work.run(sweep.work_id)
    ended = await load_row(record.runtime.store, Task, work_id=sweep.work_id)
    assert ended is not None
    assert ended.status is TaskStatus.REFUSED
    with pytest.raises(UnauthorizedError):
        await work.answer(sweep.work_id)
    assert [len(await record.events(copy)) for copy in copies] == [1] * len(copies)


async def test_marking_stale_and_checking_at_once_lose_nothing_of_one_another(record: DataRecord) -> None:
    commands, uri = record.runtime.commands, "https://storage.example/scan.h5"
    copy = await record.copy(uri)
    mark = MarkDistributionStale(reason="the disk makes noises")
    source = InterruptedSource({uri: FRAMES}, lambda: commands.execute(mark, SYSTEM, target_id=copy))
    id = await begin_check(record, copy)
    await Attestations(commands, source).run(id)
    assert ((await record.attestation(id)).outcome, (await record.state(copy)).status) == (MATCH, VERIFIED)


async def test_a_check_and_a_sweep_are_carried_out_by_a_worker_and_answered_in_time_or_later(
    database_url: str, temporal: EmbeddedTemporal, tmp_path: Path
) -> None:
    (tmp_path / "scan.h5").write_bytes(FRAMES)
    async with open_conduct_stack(database_url, temporal.address, data_roots=(tmp_path,)) as stack:
        record = await DataRecord.begin(stack.runtime)
        copy = await record.copy(f"file://{tmp_path}/scan.h5")
        asked = {"dataset_id": record.dataset_id, "distribution_id": copy}
        done = await stack.do(RecordAttestation(**asked, wait=60))
        assert (done.status, list(done.body or {})) == (201, ["attestation_id"])
        assert (await record.attestation((done.body or {})["attestation_id"])).attested_by == OPERATOR
        later = await stack.do(RecordAttestation(**asked, wait=0))
        assert (later.status, sorted(later.body or {})) == (202, ["attestation_id", "work_id"])

        async def find_answer() -> Any:
            return (await stack.ask(GetWork(work_id=UUID((later.body or {})["work_id"])))).answer

        assert await until(find_answer) == {"attestation_id": (later.body or {})["attestation_id"]}
        swept = await stack.do(AttestDistributions(supply_id=record.supply_id, wait=60))
        assert (swept.status, (swept.body or {})["match_count"]) == (200, 1)
