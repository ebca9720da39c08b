"""Many hands on one dataset: the last right copy stays, a place holds one copy, and trust rests on what still stands."""

from collections import Counter
from typing import Any
from uuid import uuid4

import httpx

from baton.domain.kernel import NIL
from tests.support.api.concurrent_requests import overtake, send_at_once
from tests.support.api.data_products import register_copy, register_dataset, verify_copies
from tests.support.api.example_reads import cause
from tests.support.api.sample_parts.data import content_of, create_storage
from tests.support.service import Api

WHY = {"reason": "wrong energy"}
DISCARDED = {**WHY, "discarded_by": str(NIL)}
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
    """The discard has found the other copy Verified, and waits to be written when that one is marked Stale."""
    dataset = await register_dataset(api)
    kept, other = [await register_copy(api, dataset) for _ in range(2)]
    await verify_copies(api, kept, other)
    discard = api.post(f"/distributions/{other}/discard", {"reason": "disk array lost"})
    stale = {"reason": "disk array lost", "trigger": "Operator", "attestation_id": None, "marked_stale_by": str(NIL)}
    assert outcome(await overtake(api.database_url, discard, kept, "DistributionMarkedStale", stale)) == LAST
    left = [(await api.get(f"/distributions/{id}")).json()["status"] for id in (kept, other)]
    assert left == ["Stale", "Verified"]


async def test_the_same_place_is_registered_once(api: Api) -> None:
    mark, disk = uuid4().hex, await create_storage(api, f"Analysis disk {uuid4().hex}")
    dataset = await register_dataset(api, mark)
    copy = {**content_of(mark), "dataset_id": dataset, "supply_id": disk, "access_protocol": "POSIX"}
    answers = await send_at_once(api.database_url, *(api.post("/distributions", copy) for _ in range(4)))
    assert Counter(map(outcome, answers)) == {201: 1, (409, "DistributionAlreadyExistsError", "place_taken"): 3}
    [made] = [answer for answer in answers if answer.status_code == 201]
    listed = await api.get("/distributions", dataset_id=dataset, min_position=made.headers["X-Baton-Position"])
    assert len(listed.json()["items"]) == 1


async def test_nothing_is_derived_from_what_is_discarded_meanwhile(api: Api) -> None:
    parent = await register_dataset(api)
    derive = api.post("/datasets", {"name": "volume", **content_of(uuid4().hex), "derived_from": [parent]})
    answer = await overtake(api.database_url, derive, parent, "DatasetDiscarded", DISCARDED)
    assert outcome(answer) == (409, "DerivedFromDatasetsDiscardedError", "discarded")


async def test_no_copy_is_registered_of_what_is_discarded_meanwhile(api: Api) -> None:
    mark, disk = uuid4().hex, await create_storage(api, f"Analysis disk {uuid4().hex}")
    dataset = await register_dataset(api, mark)
    copy = {**content_of(mark), "dataset_id": dataset, "supply_id": disk, "access_protocol": "POSIX"}
    answer = await overtake(api.database_url, api.post("/distributions", copy), dataset, "DatasetDiscarded", DISCARDED)
    assert outcome(answer) == (409, "DistributionCannotRegisterOnDiscardedDatasetError", "dataset_discarded")


async def test_nothing_is_promoted_on_a_parent_that_is_demoted_meanwhile(api: Api) -> None:
    parent = await register_dataset(api)
    await api.execute(f"/datasets/{parent}/promote", WHY)
    child = await register_dataset(api, derived_from=[parent])
    demoted = {**WHY, "demoted_by": str(NIL)}
    answer = await overtake(api.database_url, api.post(f"/datasets/{child}/promote", WHY), parent, "DatasetDemoted", demoted)
    assert outcome(answer) == (409, "DatasetCannotPromoteError", "parents_not_production")
    assert (await api.get(f"/datasets/{child}")).json()["intent"] == "Trial"


async def test_of_files_registered_at_one_address_at_once_only_the_last_is_believed(api: Api) -> None:
    """A file at the address of others makes those Stale in its own append, whichever comes first."""
    disk = await create_storage(api, f"Analysis disk {uuid4().hex}")
    for _ in range(ROUNDS):
        uri = f"file:///data/{uuid4().hex}.h5"
        contents = [{**content_of(uuid4().hex), "uri": uri} for _ in range(3)]
        datasets = [await register_dataset(api, **content) for content in contents]
        bodies = [
            {**content, "dataset_id": dataset, "supply_id": disk, "access_protocol": "POSIX"}
            for content, dataset in zip(contents, datasets, strict=True)
        ]
        answers = await send_at_once(api.database_url, *(api.post("/distributions", body) for body in bodies))
        late = [body for body, answer in zip(bodies, answers, strict=True) if answer.status_code == 409]
        assert {answer.json()["code"] for answer in answers if answer.status_code == 409} <= {"ConcurrencyError"}
        answers = [
            *(one for one in answers if one.status_code == 201),
            *[await api.post("/distributions", one) for one in late],
        ]
        copies = [(await api.get(f"/distributions/{one.json()['distribution_id']}")).json() for one in answers]
        by_status = Counter(copy["status"] for copy in copies)
        assert by_status == {"Registered": 1, "Stale": 2}
        replaced = {copy["distribution_id"]: set(copy["overwritten_distribution_ids"]) for copy in copies}
        for copy in copies:
            if copy["status"] == "Stale":
                assert copy["distribution_id"] in replaced[copy["overwritten_by_distribution_id"]]
