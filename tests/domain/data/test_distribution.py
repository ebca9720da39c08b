"""A copy of a dataset: where it may be registered, and when it may go."""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from baton.domain.data.dataset import DemoteDataset, DiscardDataset
from baton.domain.data.distribution import AccessProtocol, DiscardDistribution, DistributionStatus, MarkDistributionStale
from baton.domain.supply.supply import DeregisterSupply, MarkSupplyUnavailable
from tests.support.domain.datasets import (
    CHECKSUM,
    CONTENT,
    copy_of,
    data_world,
    promoted_dataset,
    registered_copy,
    registered_dataset,
    storage,
    verified_copy,
    verify_copy,
)
from tests.support.domain.world import OPERATOR, START, World, expect_refusal, new_id
from tests.support.tables import for_each

DISCARD = DiscardDistribution(reason="disk array lost")
STALE = MarkDistributionStale(reason="disk array lost")
LAST = "DistributionCannotDiscardLastVerifiedError"


@pytest.fixture
def world() -> World:
    return data_world()


def test_a_copy_is_registered_as_it_is_described(world: World) -> None:
    dataset, disk = registered_dataset(world), storage(world)
    id = registered_copy(world, dataset, disk, uri=" nfs://disk/scan_001.h5 ", encoding={"media_type": "application/zip"})
    [event] = world.streams["Distribution", id]
    payload = json.loads(event.payload())
    assert payload == {
        "distribution_id": str(id),
        "dataset_id": str(dataset),
        "supply_id": str(disk),
        "uri": "nfs://disk/scan_001.h5",
        "checksum": CHECKSUM,
        "byte_size": 6,
        "encoding": {"media_type": "application/zip", "conforms_to": []},
        "access_protocol": "POSIX",
        "registered_by": str(OPERATOR),
        "overwritten_distribution_ids": [],
        "occurred_at": payload["occurred_at"],
    }
    state = copy_of(world, id)
    assert (state.status, state.registered_at, state.registered_by) == ("Registered", event.occurred_at, OPERATOR)
    assert (state.verified_at, state.marked_stale_at, state.discarded_at) == (None, None, None)


@for_each(
    ("fields", "code", "reason"),
    [
        ({"uri": "scan.h5"}, "InvalidDistributionUriError", "no_scheme"),
        ({"uri": "javascript:x"}, "InvalidDistributionUriError", "scheme_not_allowed"),
        ({"checksum": {**CHECKSUM, "value": "x"}}, "InvalidDistributionChecksumError", "not_a_digest"),
        ({"byte_size": -1}, "InvalidDistributionByteSizeError", "negative"),
        ({"encoding": {"media_type": " "}}, "InvalidDistributionEncodingError", "media_type"),
        ({"access_protocol": "FTP"}, "InvalidAccessProtocolError", "unknown_protocol"),
        ({"access_protocol": "posix"}, "InvalidAccessProtocolError", "unknown_protocol"),
    ],
)
def test_a_wrong_description_is_refused_before_what_it_is_a_copy_of(fields: dict[str, Any], code: str, reason: str) -> None:
    world = data_world()
    dataset, hose = registered_dataset(world), storage(world, kind="cryogen")
    world.when(DiscardDataset(reason="wrong sample"), on=dataset)
    with expect_refusal(code, reason):
        registered_copy(world, dataset, hose, **fields)


@for_each("protocol", list(AccessProtocol))
def test_a_copy_is_reached_by_every_protocol_of_the_catalog(protocol: str) -> None:
    world = data_world()
    id = registered_copy(world, registered_dataset(world), storage(world), access_protocol=protocol)
    assert copy_of(world, id).access_protocol == protocol


def test_the_dataset_then_the_supply_must_exist(world: World) -> None:
    dataset, nothing = registered_dataset(world), new_id()
    with expect_refusal("DatasetNotFoundError") as caught:
        registered_copy(world, nothing, new_id(), uri="scan.h5")
    assert caught.value.facts == {"missing_ids": [str(nothing)]}
    with expect_refusal("DistributionSupplyNotFoundError") as caught:
        registered_copy(world, dataset, nothing, uri="scan.h5")
    assert caught.value.facts == {"missing_ids": [str(nothing)]}


def test_a_copy_that_is_none_is_refused_by_the_first_difference(world: World) -> None:
    """Each row of the sheet's list of refusals, in its order: what comes later is wrong too."""
    dataset, hose, disk = registered_dataset(world), storage(world, kind="storage"), storage(world)
    gone = registered_dataset(world)
    world.when(DiscardDataset(reason="wrong sample"), on=gone)
    other = {"algorithm": "sha256-tree", "value": "0" * 64}
    for dataset_id, supply_id, fields, code in (
        (gone, hose, {"checksum": other, "byte_size": 7}, "DistributionCannotRegisterOnDiscardedDatasetError"),
        (dataset, hose, {"checksum": other, "byte_size": 7}, "DistributionCannotRegisterOnNonStorageSupplyError"),
        (dataset, disk, {"checksum": other, "byte_size": 7}, "DistributionChecksumAlgorithmMismatchError"),
        (dataset, disk, {"checksum": {**other, "algorithm": "sha256"}, "byte_size": 7}, "DistributionChecksumMismatchError"),
        (dataset, disk, {"byte_size": 7}, "DistributionByteSizeMismatchError"),
    ):
        with expect_refusal(code):
            registered_copy(world, dataset_id, supply_id, **fields)
    registered_copy(world, dataset, disk)


def test_the_status_of_the_supply_and_the_intent_of_the_dataset_are_not_looked_at(world: World) -> None:
    dataset, disk = promoted_dataset(world), storage(world)
    world.when(DemoteDataset(reason="wrong energy"), on=dataset)
    world.when(MarkSupplyUnavailable(reason="power cut"), on=disk)
    registered_copy(world, dataset, disk)
    world.when(DeregisterSupply(reason="scrapped"), on=disk)
    registered_copy(world, dataset, disk, uri="file:///elsewhere/scan_001.h5")


def test_a_place_holds_one_copy_until_it_is_discarded(world: World) -> None:
    dataset, disk = registered_dataset(world), storage(world)
    first = registered_copy(world, dataset, disk)
    with expect_refusal("DistributionAlreadyExistsError", "place_taken"):
        registered_copy(world, dataset, disk, uri=f" {CONTENT['uri']} ", access_protocol="NFS")
    registered_copy(world, dataset, storage(world, "Archive"))
    registered_copy(world, dataset, disk, uri=f"{CONTENT['uri']}.bak")
    registered_copy(world, registered_dataset(world), disk)
    world.when(DISCARD, on=first)
    registered_copy(world, dataset, disk)


def test_marking_stale_states_a_fact_however_often_and_of_the_last_verified_copy_too(world: World) -> None:
    dataset = registered_dataset(world)
    id = verified_copy(world, dataset, storage(world))
    world.when(DiscardDataset(reason="wrong sample"), on=dataset)
    for reason in ("disk array lost", "still lost"):
        [event] = world.when(MarkDistributionStale(reason=reason), on=id)
        assert json.loads(event.payload()) == {
            "distribution_id": str(id),
            "reason": reason,
            "trigger": "Operator",
            "attestation_id": None,
            "marked_stale_by": str(OPERATOR),
            "overwritten_by_distribution_id": None,
            "occurred_at": json.loads(event.payload())["occurred_at"],
        }
        state = copy_of(world, id)
        assert (state.status, state.stale_reason, state.marked_stale_at) == ("Stale", reason, event.occurred_at)
    assert state.verified_at is not None, "what was found out before stays known"


def test_a_stale_copy_that_is_right_again_is_verified(world: World) -> None:
    id = verified_copy(world, registered_dataset(world), storage(world))
    world.when(STALE, on=id)
    verify_copy(world, id)
    state = copy_of(world, id)
    assert (state.status, state.verified_by, state.stale_reason) == ("Verified", OPERATOR, "disk array lost")


WAYS: dict[DistributionStatus, Callable[[World, UUID], object]] = {
    DistributionStatus.REGISTERED: lambda world, id: None,
    DistributionStatus.VERIFIED: verify_copy,
    DistributionStatus.STALE: lambda world, id: world.when(STALE, on=id),
}


@for_each(
    ("own", "other", "elsewhere"),
    [(own, other, elsewhere) for own in WAYS for other in (None, *WAYS) for elsewhere in (True, False)],
)
def test_a_copy_that_was_looked_at_goes_only_while_another_supply_has_a_verified_one(
    own: DistributionStatus, other: DistributionStatus | None, elsewhere: bool
) -> None:
    world = data_world()
    dataset, disk = registered_dataset(world), storage(world)
    id = registered_copy(world, dataset, disk)
    WAYS[own](world, id)
    if other is not None:
        place = storage(world, "Archive") if elsewhere else disk
        WAYS[other](world, registered_copy(world, dataset, place, uri="s3://archive/scan_001.h5"))
    if own is DistributionStatus.REGISTERED or (other is DistributionStatus.VERIFIED and elsewhere):
        [event] = world.when(DISCARD, on=id)
        state = copy_of(world, id)
        assert (state.status, state.discard_reason, state.discarded_by) == ("Discarded", "disk array lost", OPERATOR)
        assert state.discarded_at == event.occurred_at > START
    else:
        with expect_refusal(LAST, "last_verified"):
            world.when(DISCARD, on=id)


def test_a_verified_copy_of_another_dataset_or_one_that_was_discarded_does_not_count(world: World) -> None:
    dataset, disk, archive = registered_dataset(world), storage(world), storage(world, "Archive")
    verified_copy(world, registered_dataset(world), archive)
    given_up = verified_copy(world, dataset, archive)
    third = verified_copy(world, dataset, storage(world, "Tape"))
    world.when(DISCARD, on=given_up)
    world.when(DISCARD, on=registered_copy(world, dataset, disk))
    with expect_refusal(LAST):
        world.when(DISCARD, on=third)


def test_copies_of_a_discarded_dataset_go_down_to_the_last(world: World) -> None:
    dataset = registered_dataset(world)
    id = verified_copy(world, dataset, storage(world))
    with expect_refusal(LAST):
        world.when(DISCARD, on=id)
    world.when(DiscardDataset(reason="wrong sample"), on=dataset)
    world.when(DISCARD, on=id)


def test_a_blank_reason_is_refused_after_the_state_and_before_the_other_copies(world: World) -> None:
    id = verified_copy(world, registered_dataset(world), storage(world))
    with expect_refusal("InvalidDistributionMarkStaleReasonError", "blank"):
        world.when(MarkDistributionStale(reason=" "), on=id)
    with expect_refusal("InvalidDistributionDiscardReasonError", "blank"):
        world.when(DiscardDistribution(reason=" "), on=id)
    unseen = registered_copy(world, registered_dataset(world), storage(world, "Archive"))
    world.when(DISCARD, on=unseen)
    for command in (MarkDistributionStale(reason=" "), DiscardDistribution(reason=" ")):
        with expect_refusal(command.Cannot, "discarded"):
            world.when(command, on=unseen)


OTHER = {"checksum": {**CHECKSUM, "value": "b" * 64}}


def test_other_bytes_registered_at_an_address_make_the_copies_there_stale_and_both_say_so(world: World) -> None:
    old_dataset, new_dataset, disk = registered_dataset(world), registered_dataset(world, **OTHER), storage(world)
    verified = verified_copy(world, old_dataset, disk)
    elsewhere = verified_copy(world, old_dataset, disk, uri="file:///archive/scan_001.h5")
    same_bytes = registered_copy(world, old_dataset, storage(world, name="Mirror"))
    new = registered_copy(world, new_dataset, disk, **OTHER)
    for id in (verified, same_bytes):
        old = copy_of(world, id)
        assert (old.status, old.overwritten_by_distribution_id, old.marked_stale_by) == ("Stale", new, OPERATOR)
        assert old.stale_reason == "Its address has the bytes of another copy now, with another checksum."
    assert copy_of(world, new).overwritten_distribution_ids == {verified, same_bytes}
    assert (copy_of(world, new).status, copy_of(world, elsewhere).status) == ("Registered", "Verified")


def test_only_copies_whose_bytes_are_believed_are_overwritten(world: World) -> None:
    old_dataset, disk = registered_dataset(world), storage(world)
    marked = registered_copy(world, old_dataset, disk)
    world.when(STALE, on=marked)
    gone = registered_copy(world, old_dataset, storage(world, name="Mirror"))
    world.when(DISCARD, on=gone)
    new = registered_copy(world, registered_dataset(world, **OTHER), disk, **OTHER)
    assert copy_of(world, new).overwritten_distribution_ids == frozenset()
    assert (copy_of(world, marked).stale_reason, copy_of(world, gone).status) == (STALE.reason, "Discarded")
