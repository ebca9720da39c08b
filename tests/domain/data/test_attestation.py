"""A check of a copy's bytes: what may be checked, what the result says, and what follows from it for the copy."""

import json
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from baton.domain.data.attestation import (
    ATTESTATION,
    MAX_LISTED,
    SWEEP,
    AttestationOutcome,
    AttestationRecorded,
    AttestDistributions,
    ByteReading,
    CompleteAttestation,
    RecordAttestation,
    copies_due,
    copies_in_scope,
    find_swept,
    sweep_result,
    swept_attestation_id,
)
from baton.domain.data.distribution import DiscardDistribution, DistributionMarkedStale, DistributionStatus
from baton.domain.shared.monitoring import TriggerSource
from baton.domain.shared.tasks import Task, TaskStatus
from tests.support.domain.datasets import (
    CHECKSUM,
    copy_of,
    data_world,
    registered_copy,
    registered_dataset,
    storage,
    verified_copy,
    verify_copy,
)
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id

MATCH, MISMATCH, UNREACHABLE = AttestationOutcome
RIGHT = ByteReading(verifier_kind="PosixChecksum", digest=CHECKSUM["value"], byte_size=6)
WRONG = ByteReading(verifier_kind="PosixChecksum", digest=sha256(b"frame").hexdigest(), byte_size=5)
UNREAD = ByteReading(verifier_kind="PosixChecksum", error_detail="There is no such file.")
TREE = {"algorithm": "sha256-tree", "value": "a" * 64}


@pytest.fixture
def world() -> World:
    return data_world()


@pytest.fixture
def copy(world: World) -> UUID:
    return registered_copy(world, registered_dataset(world), storage(world))


def record(world: World, copy: UUID, reading: ByteReading) -> AttestationRecorded:
    (event,) = world.when(CompleteAttestation(distribution_id=copy, reading=reading))
    assert isinstance(event, AttestationRecorded)
    return event


def ask_for_check(world: World, copy: UUID, **fields: Any) -> None:
    asked = {"dataset_id": copy_of(world, copy).dataset_id, "distribution_id": copy, **fields}
    world.when(RecordAttestation(**asked))


def begun_task(world: World) -> Task:
    (task,) = [row for row in world.records.values() if isinstance(row, Task)]
    return task


def test_a_check_begins_as_a_task_whose_id_is_known_at_once(world: World, copy: UUID) -> None:
    ask_for_check(world, copy)
    assert world.call is not None
    task, id = begun_task(world), str(world.call.new_id)
    assert (task.kind, task.status, task.request) == (ATTESTATION, TaskStatus.RUNNING, {"distribution_id": str(copy)})
    assert world.answer == {"attestation_id": id, "work_id": id}


def test_bytes_that_are_right_make_the_copy_verified(world: World, copy: UUID) -> None:
    event = record(world, copy, RIGHT)
    state = copy_of(world, copy)
    assert json.loads(event.payload()) == {
        "attestation_id": str(event.stream_id),
        "dataset_id": str(state.dataset_id),
        "distribution_id": str(copy),
        "kind": "ChecksumVerified",
        "outcome": "Match",
        "evidence": {
            "algorithm": "sha256",
            "value": CHECKSUM["value"],
            "verifier_supply_id": str(state.supply_id),
            "verifier_kind": "PosixChecksum",
            "error_detail": None,
        },
        "attested_by": str(OPERATOR),
        "occurred_at": "2026-10-06T08:00:04Z",
    }
    assert (state.status, state.verified_at, state.verified_by) == ("Verified", event.occurred_at, OPERATOR)


def test_bytes_that_are_wrong_make_the_copy_stale_until_they_are_right_again(world: World, copy: UUID) -> None:
    verify_copy(world, copy)
    event = record(world, copy, WRONG)
    assert (event.outcome, event.evidence.value, event.evidence.error_detail) == (MISMATCH, WRONG.digest, None)
    marked = world.streams["Distribution", copy][-1]
    assert isinstance(marked, DistributionMarkedStale)
    assert (marked.trigger, marked.attestation_id, marked.marked_stale_by) == (TriggerSource.AUTO, event.stream_id, OPERATOR)
    assert copy_of(world, copy).status is DistributionStatus.STALE
    record(world, copy, RIGHT)
    assert copy_of(world, copy).status is DistributionStatus.VERIFIED


@pytest.mark.parametrize("status", ["Registered", "Verified", "Stale"])
def test_bytes_that_could_not_be_read_change_nothing_of_the_copy(world: World, copy: UUID, status: str) -> None:
    if status != "Registered":
        record(world, copy, RIGHT if status == "Verified" else WRONG)
    before = copy_of(world, copy)
    event = record(world, copy, UNREAD)
    assert (event.outcome, event.evidence.value, event.evidence.error_detail) == (UNREACHABLE, None, UNREAD.error_detail)
    assert copy_of(world, copy) == before
    assert before.status == status


@pytest.mark.parametrize("reading", [RIGHT, WRONG, UNREAD])
def test_of_a_copy_given_up_while_it_was_read_only_the_result_is_recorded(
    world: World, copy: UUID, reading: ByteReading
) -> None:
    world.when(DiscardDistribution(reason="moved"), on=copy)
    before = copy_of(world, copy)
    record(world, copy, reading)
    assert copy_of(world, copy) == before


def test_a_check_is_recorded_once_and_checks_as_often_as_wanted(world: World, copy: UUID) -> None:
    id, command = new_id(), CompleteAttestation(distribution_id=copy, reading=RIGHT)
    world.when(command, opening=id)
    before = len(world.streams["Distribution", copy])
    with expect_refusal("AttestationAlreadyExistsError"):
        world.when(command, opening=id)
    assert len(world.streams["Distribution", copy]) == before
    record(world, copy, RIGHT)
    assert len(world.streams["Distribution", copy]) == before + 1


def test_error_details_are_texts_that_only_some_may_read(world: World, copy: UUID) -> None:
    event = record(world, copy, UNREAD)
    shown = AttestationRecorded.without_texts(json.loads(event.payload()))
    assert (shown["evidence"]["error_detail"], shown["evidence"]["verifier_kind"]) == (None, "PosixChecksum")


def test_what_is_checked_must_exist_be_of_the_dataset_and_be_readable(world: World, copy: UUID) -> None:
    supply, other = storage(world, "Tape"), registered_dataset(world, name="other")
    tree = registered_copy(world, registered_dataset(world, checksum=TREE), supply, checksum=TREE)
    bucket = registered_copy(world, other, supply, uri="s3://bucket/scan_001.h5")
    of_tree = {"dataset_id": copy_of(world, tree).dataset_id, "distribution_id": tree}
    for fields, code in (
        ({"dataset_id": new_id(), "distribution_id": new_id(), "kind": "Guess"}, "DatasetNotFoundError"),
        ({"distribution_id": new_id(), "kind": "Guess"}, "AttestationDistributionNotFoundError"),
        ({"dataset_id": other, "kind": "Guess"}, "InvalidAttestationKindError"),
        ({"dataset_id": other}, "AttestationDistributionDatasetMismatchError"),
        (of_tree, "AttestationTreeChecksumNotSupportedError"),
        ({"dataset_id": other, "distribution_id": bucket}, "ChecksumVerifierUnsupportedSchemeError"),
    ):
        with expect_refusal(code):
            ask_for_check(world, copy, **fields)
    assert [row for row in world.records.values() if isinstance(row, Task)] == []


@pytest.mark.parametrize("uri", ["file:///a", "FILE:///a", "http://a/b", "HTTPS://a/b"])
def test_every_scheme_with_a_verifier_is_checked(world: World, copy: UUID, uri: str) -> None:
    dataset_id = copy_of(world, copy).dataset_id
    ask_for_check(world, registered_copy(world, dataset_id, storage(world, "Other"), uri=uri))


def begin_sweep(world: World, **fields: Any) -> Task:
    world.when(AttestDistributions(**fields))
    return begun_task(world)


def due(world: World, sweep: Task) -> list[UUID]:
    ids = world.fulfil(copies_in_scope(sweep))
    found: list[UUID] = world.fulfil(copies_due(sweep, ids))
    return found


def test_a_sweep_is_about_all_copies_that_can_be_read_in_their_order(world: World, copy: UUID) -> None:
    dataset_id, supply = copy_of(world, copy).dataset_id, storage(world, "Archive")
    second = verified_copy(world, dataset_id, supply)
    given_up = registered_copy(world, registered_dataset(world), supply, uri="file:///given-up")
    world.when(DiscardDistribution(reason="moved"), on=given_up)
    registered_copy(world, dataset_id, supply, uri="s3://bucket/scan_001.h5")
    registered_copy(world, registered_dataset(world, checksum=TREE), supply, checksum=TREE)
    sweep = begin_sweep(world)
    later = registered_copy(world, dataset_id, supply, uri="file:///later")
    assert later in world.fulfil(copies_in_scope(sweep))
    assert due(world, sweep) == [copy, second]
    assert (sweep.kind, world.answer) == (SWEEP, None)


def test_a_sweep_may_be_about_a_dataset_or_a_supply(world: World, copy: UUID) -> None:
    state, archive, other = copy_of(world, copy), storage(world, "Archive"), registered_dataset(world)
    second, third = registered_copy(world, state.dataset_id, archive), registered_copy(world, other, archive)
    for fields, wanted in (
        ({"dataset_id": state.dataset_id}, [copy, second]),
        ({"supply_id": archive}, [second, third]),
        ({"dataset_id": other, "supply_id": archive}, [third]),
        ({"dataset_id": other, "supply_id": state.supply_id}, []),
    ):
        world.records.clear()
        assert due(world, begin_sweep(world, **fields)) == wanted
    for fields, code in (
        ({"dataset_id": new_id(), "supply_id": new_id()}, "DatasetNotFoundError"),
        ({"supply_id": new_id()}, "DistributionSupplyNotFoundError"),
    ):
        with expect_refusal(code):
            begin_sweep(world, **fields)


def test_a_sweep_leaves_out_what_was_verified_lately_and_still_is(world: World) -> None:
    dataset_id, supply = registered_dataset(world), storage(world)
    never, once, lately, stale = [registered_copy(world, dataset_id, supply, uri=f"file:///{n}") for n in range(4)]
    record(world, once, RIGHT)
    since = world.now + timedelta(seconds=1)
    record(world, lately, RIGHT)
    assert copy_of(world, lately).verified_at == since
    record(world, stale, RIGHT)
    record(world, stale, WRONG)
    assert due(world, begin_sweep(world, not_verified_since=since)) == [never, once, stale]


def test_a_sweep_needs_the_permission_for_each_check_and_a_whole_time(world: World) -> None:
    world.denied.add("RecordAttestation")
    with expect_refusal("UnauthorizedError", "denied"):
        begin_sweep(world)
    with pytest.raises(ValidationError):
        AttestDistributions.model_validate({"not_verified_since": "2026-10-06"})


def test_the_result_of_a_sweep_counts_outcomes_and_names_what_did_not_match(world: World) -> None:
    dataset_id, supply = registered_dataset(world), storage(world)
    copies = [registered_copy(world, dataset_id, supply, uri=f"file:///{n}") for n in range(5)]
    sweep = begin_sweep(world)
    for copy, reading in zip(copies, (UNREAD, RIGHT, WRONG, RIGHT), strict=False):
        command = CompleteAttestation(distribution_id=copy, reading=reading)
        world.when(command, opening=swept_attestation_id(sweep, copy))
    recorded = world.fulfil(find_swept(sweep, copies))
    assert list(recorded) == copies[:4]
    assert sweep_result(sweep, len(copies), recorded).model_dump(mode="json") == {
        "sweep_id": str(sweep.work_id),
        "match_count": 2,
        "mismatch_count": 1,
        "unreachable_count": 1,
        "skipped_count": 1,
        "not_matched": [
            {
                "distribution_id": str(copies[place]),
                "attestation_id": str(swept_attestation_id(sweep, copies[place])),
                "outcome": outcome,
            }
            for place, outcome in ((2, "Mismatch"), (0, "Unreachable"))
        ],
    }
    many = {new_id(): recorded[copies[2]] for _ in range(MAX_LISTED + 1)}
    result = sweep_result(sweep, len(many), many)
    assert (result.mismatch_count, len(result.not_matched)) == (MAX_LISTED + 1, MAX_LISTED)
