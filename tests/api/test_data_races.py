"""Many hands on one dataset: the last right copy stays, a place holds one copy, and trust rests on what still stands."""

from collections import Counter
from typing import Any
from uuid import uuid4

import httpx

from tests.support.api.concurrent_requests import send_at_once
from tests.support.api.data_products import register_copy, register_dataset, verify_copies
from tests.support.api.example_reads import cause
from tests.support.api.sample_parts.data import content_of, create_storage
from tests.support.service import Api

WHY = {"reason": "wrong energy"}
LAST = (409, "DistributionCannotDiscardLastVerifiedError", "last_verified")
ROUNDS = 6
"""How often two requests meet; which one comes first is not for the test to say."""


def outcome(response: httpx.Response) -> Any:
    return response.status_code if response.status_code < 400 else cause(response)


async def test_of_the_two_last_verified_copies_one_stays(api: Api) -> None:
    for _ in range(ROUNDS):
        dataset = await register_dataset(api)
        copies = [await register_copy(api, dataset) for _ in range(2)]
        await verify_copies(api, *copies)
        discards = (api.post(f"/distributions/{id}/discard", {"reason": "disk array lost"}) for id in copies)
        answers = await send_at_once(api.database_url, *discards)
        assert Counter(map(outcome, answers)) == {204: 1, LAST: 1}
        left = [(await api.get(f"/distributions/{id}")).json()["status"] for id in copies]
        assert sorted(left) == ["Discarded", "Verified"]


async def test_a_copy_marked_stale_meanwhile_is_none_to_rely_on(api: Api) -> None:
    """Which comes first is open; that the last Verified copy was discarded when the other was known to be lost is not."""
    for _ in range(ROUNDS):
        dataset = await register_dataset(api)
        kept, other = [await register_copy(api, dataset) for _ in range(2)]
        await verify_copies(api, kept, other)
        stale, discarded = await send_at_once(
            api.database_url,
            api.post(f"/distributions/{kept}/mark-stale", {"reason": "disk array lost"}),
            api.post(f"/distributions/{other}/discard", {"reason": "disk array lost"}),
        )
        assert stale.status_code == 204
        assert outcome(discarded) in (204, LAST)
        if discarded.status_code == 204:
            assert await positions(api, f"/distributions/{other}") < await positions(api, f"/distributions/{kept}")


async def positions(api: Api, path: str) -> tuple[int, int]:
    """Where the last event of a stream stands in the log."""
    last = (await api.get(f"{path}/history", limit=100)).json()["items"][-1]
    return int(last["transaction_id"]), int(last["position"])


async def test_the_same_place_is_registered_once(api: Api) -> None:
    mark, disk = uuid4().hex, await create_storage(api, "Analysis disk")
    dataset = await register_dataset(api, mark)
    copy = {**content_of(mark), "dataset_id": dataset, "supply_id": disk, "access_protocol": "POSIX"}
    answers = await send_at_once(api.database_url, *(api.post("/distributions", copy) for _ in range(4)))
    assert Counter(map(outcome, answers)) == {201: 1, (409, "DistributionAlreadyExistsError", "place_taken"): 3}
    [made] = [answer for answer in answers if answer.status_code == 201]
    listed = await api.get("/distributions", dataset_id=dataset, min_position=made.headers["X-Baton-Position"])
    assert len(listed.json()["items"]) == 1


async def test_nothing_is_derived_from_what_is_discarded_meanwhile(api: Api) -> None:
    for _ in range(ROUNDS):
        parent = await register_dataset(api)
        child = {"name": "volume", **content_of(uuid4().hex), "derived_from": [parent]}
        derived, discarded = await send_at_once(
            api.database_url, api.post("/datasets", child), api.post(f"/datasets/{parent}/discard", WHY)
        )
        assert discarded.status_code == 204
        assert outcome(derived) in (201, (409, "DerivedFromDatasetsDiscardedError", "discarded"))
        if derived.status_code == 201:
            path = f"/datasets/{derived.json()['dataset_id']}"
            assert await positions(api, path) < await positions(api, f"/datasets/{parent}")


async def test_no_copy_is_registered_of_what_is_discarded_meanwhile(api: Api) -> None:
    mark, disk = uuid4().hex, await create_storage(api, "Analysis disk")
    for number in range(ROUNDS):
        dataset = await register_dataset(api, mark)
        copy = {**content_of(mark), "dataset_id": dataset, "supply_id": disk, "access_protocol": "POSIX"}
        made, discarded = await send_at_once(
            api.database_url,
            api.post("/distributions", {**copy, "uri": f"file:///data/{number}"}),
            api.post(f"/datasets/{dataset}/discard", WHY),
        )
        assert discarded.status_code == 204
        assert outcome(made) in (201, (409, "DistributionCannotRegisterOnDiscardedDatasetError", "dataset_discarded"))
        if made.status_code == 201:
            path = f"/distributions/{made.json()['distribution_id']}"
            assert await positions(api, path) < await positions(api, f"/datasets/{dataset}")


async def test_nothing_is_promoted_on_a_parent_that_is_demoted_meanwhile(api: Api) -> None:
    for _ in range(ROUNDS):
        parent = await register_dataset(api)
        await api.execute(f"/datasets/{parent}/promote", WHY)
        child = await register_dataset(api, derived_from=[parent])
        promoted, demoted = await send_at_once(
            api.database_url, api.post(f"/datasets/{child}/promote", WHY), api.post(f"/datasets/{parent}/demote", WHY)
        )
        assert demoted.status_code == 204
        assert outcome(promoted) in (204, (409, "DatasetCannotPromoteError", "parents_not_production"))
        if promoted.status_code == 204:
            assert await positions(api, f"/datasets/{child}") < await positions(api, f"/datasets/{parent}")
