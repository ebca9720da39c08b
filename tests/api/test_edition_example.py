"""The worked example of editions over REST, with a registry that can fail and workers that are killed."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.cli.embedded.temporal import EmbeddedTemporal
from tests.support.api.editions import BASE_URL, PublishingFacility, open_publishing_facility
from tests.support.databases import fresh_database
from tests.support.infrastructure.doi_registry_server import PREFIX
from tests.support.waiting import until


@pytest.fixture(scope="module")
async def facility(
    postgres: EmbeddedPostgres, template: str, temporal: EmbeddedTemporal, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PublishingFacility]:
    directory: Path = tmp_path_factory.mktemp("publishing")
    with fresh_database(postgres, template) as url:
        async with open_publishing_facility(url, temporal.address, directory) as facility:
            yield facility


@pytest.fixture
def _worker(facility: PublishingFacility) -> Any:
    with facility.worker("worker"):
        yield


@pytest.mark.usefixtures("_worker")
async def test_an_edition_is_sealed_published_and_withdrawn(facility: PublishingFacility) -> None:
    api, registry = facility.api, facility.registry
    raw = await facility.product("scan_001.h5")
    rec = await facility.product("volume.h5", derived_from=[raw])
    mira = await api.create("/actors", {"name": "Mira Okafor"})
    ada = await api.create("/actors", {"name": "Ada Lindqvist"})
    edition_id = await facility.edition(raw, creator_ids=[mira, ada], publisher_facility_code=None)
    await api.execute(f"/editions/{edition_id}/add-dataset", {"dataset_id": rec})
    path = f"/editions/{edition_id}"
    early = await api.get(f"{path}/manifest")
    assert (early.status_code, early.json()["code"]) == (404, "EditionManifestNotFoundError")
    nobody = await api.post(f"{path}/seal")
    assert (nobody.status_code, nobody.json()["code"]) == (404, "EditionPublisherNotFoundError")
    sealing = await api.post(f"{path}/seal", {"publisher_facility_code": "facility", "license": "CC-BY-4.0"})
    assert (sealing.status_code, sealing.content) == (204, b"")
    sealed = await api.get(f"{path}/manifest")
    assert sealed.headers["content-type"] == "application/ld+json"
    assert hashlib.sha256(sealed.content).hexdigest() == (await facility.read(path))["content_hash"]
    assert (await api.request("DELETE", f"/actors/{ada}/profile")).status_code == 204

    published = await api.post(f"{path}/publish", {"wait": 60})
    assert published.status_code == 200, published.text
    doi = f"{PREFIX}/{edition_id}"
    assert published.json() == {"edition_id": edition_id, "external_id": doi, "external_id_scheme": "DOI"}
    record = registry.records[doi]
    assert (record["state"], record["url"]) == ("findable", f"{BASE_URL}/landing{path}")
    assert [one["name"] for one in record["creators"]] == ["Mira Okafor", "<deleted user>"]
    relations = {(one["relationType"], one["relatedIdentifier"]) for one in record["relatedIdentifiers"]}
    assert relations == {("HasPart", f"urn:uuid:{raw}"), ("HasPart", f"urn:uuid:{rec}")}
    manifest = await api.get(f"{path}/manifest")
    shown = await facility.read(path)
    assert hashlib.sha256(manifest.content).hexdigest() == shown["published_content_hash"] != shown["content_hash"]
    (crate,) = [one for one in manifest.json()["@graph"] if one["@id"] == "./"]
    assert crate["identifier"] == doi
    exported = await api.get(f"{path}/datacite")
    assert exported.headers["content-type"] == "application/vnd.datacite.datacite+json"
    assert exported.json()["doi"] == doi
    assert {name: record[name] for name in ("titles", "creators", "relatedIdentifiers", "sizes")} == {
        name: exported.json()[name] for name in ("titles", "creators", "relatedIdentifiers", "sizes")
    }
    again = await api.post(f"{path}/publish")
    assert (again.status_code, again.json()["code"]) == (409, "EditionCannotPublishError")

    withdrawn = await api.post(f"{path}/withdraw", {"withdrawal_reason": "wrong sample", "wait": 60})
    assert (withdrawn.status_code, withdrawn.content) == (204, b"")
    assert (registry.records[doi]["state"], registry.records[doi]["url"]) == ("registered", f"{BASE_URL}/landing{path}")
    assert registry.records[doi]["descriptions"][0]["description"] == "wrong sample"
    position = withdrawn.headers["X-Baton-Position"]
    (row,) = (await facility.read("/editions", dataset_id=rec, status="Withdrawn", min_position=position))["items"]
    assert (row["edition_id"], row["external_id"], row["withdrawal_reason"]) == (edition_id, doi, "wrong sample")
    assert row["creator_ids"] == [mira, ada]
    notice = await api.get(f"/landing{path}")
    assert (notice.status_code, "wrong sample" in notice.text, "Mira" in notice.text) == (200, True, False)
    gone = await api.request("GET", f"/landing{path}", headers={"Accept": "application/json"})
    assert (gone.status_code, gone.json()["code"]) == (410, "LandingPageWithdrawnError")
    assert gone.json()["facts"]["withdrawn_at"] == row["withdrawn_at"]


@pytest.mark.usefixtures("_worker")
async def test_a_registry_that_fails_leaves_the_edition_as_it_was(facility: PublishingFacility) -> None:
    api, registry = facility.api, facility.registry
    edition_id = await facility.sealed_edition()
    path, doi = f"/editions/{edition_id}", f"{PREFIX}/{edition_id}"
    for failure, reason in (((500, b""), "failed"), ("lost", "unreachable")):
        registry.failure = failure
        refused = await api.post(f"{path}/publish", {"wait": 60})
        assert (refused.status_code, refused.json()["code"]) == (502, "PersistentIdentifierMintError")
        assert refused.json()["reason"] == reason
        assert (await facility.read(path))["status"] == "Sealed"
    registry.failure = None
    published = await api.post(f"{path}/publish", {"wait": 60})
    assert (published.status_code, published.json()["external_id"]) == (200, doi)
    registry.failure = (503, b"")
    withdrawal = {"withdrawal_reason": "wrong sample", "wait": 60}
    refused = await api.post(f"{path}/withdraw", withdrawal)
    registry.failure = None
    assert (refused.status_code, refused.json()["code"]) == (502, "PersistentIdentifierTombstoneError")
    assert (await facility.read(path))["status"] == "Published"
    assert (await api.post(f"{path}/withdraw", withdrawal)).status_code == 204
    registered, sealed, published_once, withdrawn = await facility.event_types(edition_id)
    assert [sealed, published_once, withdrawn] == ["EditionSealed", "EditionPublished", "EditionWithdrawn"]
    assert registered == "EditionRegistered"


async def test_an_edition_whose_workers_are_killed_is_published_once_with_one_doi(facility: PublishingFacility) -> None:
    """One worker dies while the registry has minted and not answered yet, one while what was minted is being recorded."""
    api, registry = facility.api, facility.registry
    edition_id = await facility.sealed_edition()
    path, doi = f"/editions/{edition_id}", f"{PREFIX}/{edition_id}"
    registry.failures.append("stalled")
    accepted = await api.post(f"{path}/publish", {"wait": 0}, Idempotency_Key=edition_id)
    assert accepted.status_code == 202, accepted.text
    work_id = accepted.json()["work_id"]
    assert accepted.json() == {"edition_id": edition_id, "work_id": work_id}
    with facility.worker("killed-by-the-registry"):
        await until(lambda: doi in registry.records)
    attached = await api.post(f"{path}/publish", {"wait": 0})
    assert (attached.status_code, attached.json()) == (202, accepted.json())
    async with await psycopg.AsyncConnection.connect(api.database_url) as connection:
        await connection.execute("LOCK TABLE edition_manifests IN SHARE MODE")  # it can be read, and not be written
        with facility.worker("killed-while-recording"):
            await until(lambda: waiting_to_record(connection))
        for (backend,) in await waiting_to_record(connection):  # the server would still write for the dead
            await connection.execute("SELECT pg_terminate_backend(%s, 10000)", [backend])
    assert (await facility.read(path))["status"] == "Sealed"
    with facility.worker("last"):
        repeated = await api.post(f"{path}/publish", {"wait": 60}, Idempotency_Key=edition_id)
        assert (repeated.status_code, repeated.headers["Idempotency-Replayed"]) == (200, "true")
        assert repeated.json() == {"edition_id": edition_id, "external_id": doi, "external_id_scheme": "DOI"}
    assert (await facility.event_types(edition_id)).count("EditionPublished") == 1
    assert [one for one in registry.records if one.endswith(edition_id)] == [doi]
    assert (await facility.read(f"/work-items/{work_id}"))["answer"] == repeated.json()


async def waiting_to_record(connection: psycopg.AsyncConnection[Any]) -> list[tuple[Any, ...]]:
    """Return the processes of the database that wait for the lock on the manifests."""
    query = "SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'edition_manifests'::regclass"
    return await (await connection.execute(query)).fetchall()


@pytest.mark.usefixtures("_worker")
async def test_a_doi_of_a_dataset_is_minted_at_once_and_marked_when_it_can_be(facility: PublishingFacility) -> None:
    api, registry = facility.api, facility.registry
    dataset_id = await facility.product("scan_002.h5")
    path, doi = f"/datasets/{dataset_id}", f"{PREFIX}/{dataset_id}"
    registry.failures.append((500, b""))
    refused = await api.post(f"{path}/mint-external-id")
    assert (refused.status_code, refused.json()["code"]) == (502, "ExternalIdMintError")
    minted = await api.post(f"{path}/mint-external-id")
    assert (minted.status_code, minted.json()) == (201, {"external_id": doi, "external_id_scheme": "DOI"})
    assert (await facility.read(f"{path}/datacite"))["doi"] == doi
    registry.failures += [(503, b""), "lost"]
    demoted = await api.post(f"{path}/demote", {"reason": "Mira mixed up the samples"})
    assert (demoted.status_code, demoted.content) == (204, b"")
    await until(lambda: registry.records[doi]["state"] == "registered")
    notice = registry.records[doi]["descriptions"][0]["description"]
    assert notice == "This dataset was retracted: results should not rest on it."
    refused = await api.post(f"{path}/mint-external-id")
    assert (refused.status_code, refused.json()["reason"]) == (409, "already_assigned")


async def test_two_who_publish_at_once_get_the_same_answer(facility: PublishingFacility) -> None:
    edition_id = await facility.sealed_edition()
    asked = (facility.api.post(f"/editions/{edition_id}/publish", {"wait": 60}) for _ in range(4))
    with facility.worker("worker-of-many"):
        answers = await asyncio.gather(*asked)
    assert {(one.status_code, one.json()["external_id"]) for one in answers} == {(200, f"{PREFIX}/{edition_id}")}
    assert (await facility.event_types(edition_id)).count("EditionPublished") == 1
