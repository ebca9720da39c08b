"""Editions: what may become a member, what a seal asks for and in which order, and manifests that can be told again."""

import hashlib
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from baton.domain.data.dataset import DatasetDemoted, DatasetDiscarded
from baton.domain.data.distribution import DistributionMarkedStale, MarkDistributionStale
from baton.domain.data.edition import (
    AddDatasetToEdition,
    EditionManifest,
    EditionPublished,
    EditionRegistered,
    EditionSealed,
    EditionWithdrawn,
    GetEditionManifest,
    PublishEdition,
    RecordEditionPublication,
    RegisterEdition,
    RemoveDatasetFromEdition,
    SealEdition,
    WithdrawEdition,
)
from baton.domain.data.manifest import EditionKind
from baton.domain.shared.canonical import canonical_json
from baton.domain.shared.monitoring import TriggerSource
from baton.domain.shared.tasks import Task, TaskStatus
from tests.support.domain.assets import LUMEN
from tests.support.domain.datasets import (
    promoted_dataset,
    registered_copy,
    registered_dataset,
    storage,
    verified_copy,
    verify_copy,
)
from tests.support.domain.editions import (
    DOI,
    creator,
    edition_of,
    edition_world,
    member,
    record_publication,
    record_withdrawal,
    registered_edition,
    sealed_edition,
)
from tests.support.domain.world import OPERATOR, World, expect_refusal, new_id


@pytest.fixture
def world() -> World:
    return edition_world()


def discard(world: World, dataset_id: UUID) -> None:
    world.given(dataset_id, DatasetDiscarded(reason="wrong sample", discarded_by=OPERATOR))


def mark_stale(world: World, copy_id: UUID) -> None:
    stale = {"reason": "disk lost", "trigger": TriggerSource.OPERATOR, "attestation_id": None}
    world.given(copy_id, DistributionMarkedStale(**stale, marked_stale_by=OPERATOR))


def manifest_of(world: World, id: UUID) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(world.ask(GetEditionManifest(), on=id).content)
    return content


def entity(manifest: dict[str, Any], id: str) -> dict[str, Any]:
    (found,) = [one for one in manifest["@graph"] if one["@id"] == id]
    return dict(found)


def test_an_edition_keeps_authors_in_their_order_and_what_is_not_settled_open(world: World) -> None:
    second, first = creator(world, "Second"), creator(world, "First")
    dataset_id = member(world)
    id = registered_edition(
        world, dataset_id, creator_ids=[first, second], publisher_facility_code=None, title="  Pellet B-12 "
    )
    assert world.streams["Edition", id] == [
        EditionRegistered(
            kind=EditionKind.RO_CRATE,
            title="Pellet B-12",
            dataset_ids=frozenset({dataset_id}),
            creator_ids=(first, second),
            publisher_facility_code=None,
            publication_year=None,
            license=None,
            registered_by=OPERATOR,
        )
    ]
    state = edition_of(world, id)
    assert (state.registered_at, state.registered_by, state.content_hash) == (world.now, OPERATOR, None)


@pytest.mark.parametrize(
    ("fields", "code", "reason"),
    [
        ({"title": "  "}, "InvalidEditionTitleError", "blank"),
        ({"kind": "Croissant"}, "InvalidEditionKindError", "not_written_here"),
        ({"kind": "NeXus"}, "InvalidEditionKindError", "not_written_here"),
        ({"license": "CC BY"}, "InvalidSpdxIdentifierError", "pattern"),
        ({"license": " "}, "InvalidSpdxIdentifierError", "blank"),
        ({"publication_year": 1899}, "InvalidPublicationYearError", "out_of_range"),
        ({"publication_year": 2032}, "InvalidPublicationYearError", "out_of_range"),
        ({"publisher_facility_code": "Lumen!"}, "InvalidFacilityCodeError", "pattern"),
        ({"creator_ids": []}, "InvalidCreatorsError", "count"),
    ],
)
def test_wrong_values_are_refused(world: World, fields: dict[str, Any], code: str, reason: str) -> None:
    with expect_refusal(code, reason):
        registered_edition(world, **fields)


@pytest.mark.parametrize("fields", [{"publication_year": 1900}, {"publication_year": 2031}, {"license": "CC-BY-4.0+x.1"}])
def test_values_at_the_edge_are_taken(world: World, fields: dict[str, Any]) -> None:
    registered_edition(world, **fields)


def test_creators_are_a_hundred_at_most_and_each_named_once(world: World) -> None:
    people = [creator(world, f"Author {number}") for number in range(101)]
    registered_edition(world, creator_ids=people[:100])
    with expect_refusal("InvalidCreatorsError", "count"):
        registered_edition(world, creator_ids=people)
    with expect_refusal("InvalidCreatorsError", "repeated"):
        registered_edition(world, creator_ids=people[:2] * 2)


def test_members_and_creators_must_be_there(world: World) -> None:
    missing, author = new_id(), new_id()
    with expect_refusal("DatasetNotFoundError") as refused:
        registered_edition(world, member(world), missing, title=" ", creator_ids=[author])
    assert refused.value.facts == {"missing_ids": [str(missing)]}
    with expect_refusal("EditionCreatorsNotFoundError") as refused:
        registered_edition(world, creator_ids=[author])
    assert refused.value.facts == {"missing_ids": [str(author)]}


def test_an_edition_begins_with_something_that_still_counts(world: World) -> None:
    with expect_refusal("EmptyDatasetIdsAtRegistrationError", "empty"):
        world.create(RegisterEdition(kind="ROCrate", title="None", dataset_ids=[], creator_ids=[creator(world)]))
    gone = member(world)
    discard(world, gone)
    with expect_refusal("EditionCannotBindToDiscardedDatasetError", "dataset_discarded") as refused:
        registered_edition(world, gone)
    assert refused.value.facts == {"dataset_ids": [str(gone)]}


def test_members_come_and_go_until_one_is_left(world: World) -> None:
    first, second = member(world), registered_dataset(world)
    id = registered_edition(world, first)
    world.when(AddDatasetToEdition(dataset_id=second), on=id)
    assert edition_of(world, id).dataset_ids == {first, second}
    with expect_refusal("EditionDatasetAlreadyMemberError"):
        world.when(AddDatasetToEdition(dataset_id=second), on=id)
    with expect_refusal("DatasetNotFoundError"):
        world.when(AddDatasetToEdition(dataset_id=new_id()), on=id)
    discard(world, gone := member(world))
    with expect_refusal("EditionCannotBindToDiscardedDatasetError"):
        world.when(AddDatasetToEdition(dataset_id=gone), on=id)
    world.when(RemoveDatasetFromEdition(dataset_id=first), on=id)
    with expect_refusal("EditionDatasetNotMemberError"):
        world.when(RemoveDatasetFromEdition(dataset_id=first), on=id)
    with expect_refusal("EditionCannotBeEmptyError"):
        world.when(RemoveDatasetFromEdition(dataset_id=second), on=id)


def test_an_edition_has_a_thousand_members_at_most(world: World) -> None:
    ids = frozenset(new_id() for _ in range(1000))
    id = registered_edition(world)
    first = world.streams["Edition", id][0]
    world.streams["Edition", id][0] = first.model_copy(update={"dataset_ids": ids}).stamp(id, world.now)
    with expect_refusal("EditionCannotAddDatasetError", "full"):
        world.when(AddDatasetToEdition(dataset_id=registered_dataset(world)), on=id)


def test_a_seal_settles_publisher_year_and_license(world: World) -> None:
    dataset_id = member(world)
    id = registered_edition(world, dataset_id, publication_year=2024, license="MIT", publisher_facility_code="nowhere")
    given = {"publisher_facility_code": LUMEN, "publication_year": 2025, "license": "CC-BY-4.0"}
    [sealed] = world.when(SealEdition(**given), on=id)
    [manifest] = [row for row in world.records.values() if isinstance(row, EditionManifest)]
    assert sealed == EditionSealed(
        sealed_dataset_ids=frozenset({dataset_id}), **given, content_hash=manifest.content_hash, sealed_by=OPERATOR
    )
    state = edition_of(world, id)
    assert (state.publisher_facility_code, state.publication_year, state.license) == (LUMEN, 2025, "CC-BY-4.0")
    assert (state.sealed_at, state.sealed_by) == (world.now, OPERATOR)


def test_without_a_year_it_is_the_year_of_the_seal_in_utc(world: World) -> None:
    id = registered_edition(world)
    world.now += timedelta(days=365)
    world.when(SealEdition(), on=id)
    assert edition_of(world, id).publication_year == 2027


def test_a_seal_looks_at_its_conditions_in_the_order_that_is_promised(world: World) -> None:
    """Everything is wrong at first, and mended one by one: each time the next condition is the one that refuses."""
    gone, trial, bare = promoted_dataset(world), registered_dataset(world), promoted_dataset(world)
    id = registered_edition(world, gone, trial, bare, kind="DataCite", publisher_facility_code=None)
    discard(world, gone)
    with expect_refusal("InvalidSpdxIdentifierError"):
        world.when(SealEdition(license="no license"), on=id)
    with expect_refusal("EditionCannotSealOnDiscardedDatasetError") as refused:
        world.when(SealEdition(), on=id)
    assert refused.value.facts == {"dataset_ids": [str(gone)]}
    world.when(RemoveDatasetFromEdition(dataset_id=gone), on=id)
    with expect_refusal("EditionDatasetsNotAllProductionError") as refused:
        world.when(SealEdition(), on=id)
    assert refused.value.facts == {"intents": {str(trial): "Trial"}}
    world.when(RemoveDatasetFromEdition(dataset_id=trial), on=id)
    with expect_refusal("EditionDatasetDistributionNotFoundError") as refused:
        world.when(SealEdition(), on=id)
    assert refused.value.facts == {"dataset_ids": [str(bare)]}
    registered_copy(world, bare, storage(world))
    for fields in ({}, {"publisher_facility_code": "nowhere"}):
        with expect_refusal("EditionPublisherNotFoundError"):
            world.when(SealEdition(**fields), on=id)
    with expect_refusal("EditionLicenseRequiredForKindError"):
        world.when(SealEdition(publisher_facility_code=LUMEN), on=id)
    world.when(SealEdition(publisher_facility_code=LUMEN, license="CC-BY-4.0"), on=id)
    with expect_refusal("EditionCannotSealError", "sealed"):
        world.when(SealEdition(license="no license"), on=id)


def test_a_retracted_member_is_not_sealed(world: World) -> None:
    dataset_id = member(world)
    world.given(dataset_id, DatasetDemoted(reason="wrong sample", demoted_by=OPERATOR))
    with expect_refusal("EditionDatasetsNotAllProductionError") as refused:
        sealed_edition(world, dataset_id)
    assert refused.value.facts == {"intents": {str(dataset_id): "Retracted"}}


def test_a_verified_copy_is_cited_before_a_registered_one_and_a_stale_one_never(world: World) -> None:
    dataset_id = promoted_dataset(world)
    copies = [
        registered_copy(world, dataset_id, storage(world, f"Disk {name}"), uri=f"file:///{name}/scan.h5") for name in "abcd"
    ]
    assert copies == sorted(copies)
    mark_stale(world, copies[0])

    def cited() -> str:
        return str(entity(manifest_of(world, sealed_edition(world, dataset_id)), f"urn:uuid:{dataset_id}")["contentUrl"])

    assert cited() == "file:///b/scan.h5"
    verify_copy(world, copies[3])
    assert cited() == "file:///d/scan.h5"
    verify_copy(world, copies[2])
    assert cited() == "file:///c/scan.h5"
    for copy in copies[1:]:
        world.when(MarkDistributionStale(reason="disk lost"), on=copy)
    with expect_refusal("EditionDatasetDistributionNotFoundError"):
        cited()


def test_the_crate_tells_what_the_edition_consists_of(world: World) -> None:
    second, first = creator(world, "Second"), creator(world, "First")
    disk = storage(world)
    plain = promoted_dataset(world, name="volume", encoding={"media_type": "image/tiff"})
    profiles = ["https://example.org/b", "https://example.org/a"]
    copied = {"encoding": {"media_type": "application/x-hdf5", "conforms_to": profiles}, "byte_size": 6}
    profiled = promoted_dataset(world, name="scan")
    verified_copy(world, plain, disk, encoding={"media_type": "image/tiff"})
    verified_copy(world, profiled, disk, **copied)
    id = sealed_edition(world, profiled, plain, creator_ids=[first, second], license="CC-BY-4.0")
    manifest = manifest_of(world, id)
    root = entity(manifest, "./")
    assert (root["name"], root["datePublished"], root["identifier"]) == ("Pellet B-12", "2026", f"edition:{id}")
    assert root["creator"] == [{"@id": f"urn:uuid:{first}"}, {"@id": f"urn:uuid:{second}"}]
    assert root["hasPart"] == [{"@id": f"urn:uuid:{one}"} for one in sorted([plain, profiled])]
    assert entity(manifest, root["publisher"]["@id"])["name"] == LUMEN
    assert entity(manifest, root["license"]["@id"])["name"] == "CC-BY-4.0"
    person = {"@id": f"urn:uuid:{first}", "@type": "Person", "identifier": str(first), "name": f"Creator {first}"}
    assert entity(manifest, f"urn:uuid:{first}") == person
    scan = entity(manifest, f"urn:uuid:{profiled}")
    assert scan["conformsTo"] == [{"@id": "https://example.org/a"}, {"@id": "https://example.org/b"}]
    assert (scan["@type"], scan["contentSize"], scan["encodingFormat"]) == ("File", "6", "application/x-hdf5")
    assert len(scan["sha256"]) == 64
    assert "conformsTo" not in entity(manifest, f"urn:uuid:{plain}")
    assert "Okafor" not in json.dumps(manifest)


def test_the_hash_is_that_of_the_canonical_bytes_and_every_version_is_kept(world: World) -> None:
    id = sealed_edition(world)
    sealed = world.ask(GetEditionManifest(), on=id)
    assert sealed.media_type == "application/ld+json"
    assert hashlib.sha256(sealed.content).hexdigest() == edition_of(world, id).content_hash
    assert canonical_json(json.loads(sealed.content)) == sealed.content
    record_publication(world, id)
    published, state = world.ask(GetEditionManifest(), on=id), edition_of(world, id)
    assert hashlib.sha256(published.content).hexdigest() == state.published_content_hash != state.content_hash
    assert entity(json.loads(published.content), "./")["identifier"] == DOI["external_id"]
    hashes = {row.content_hash for row in world.records.values() if isinstance(row, EditionManifest)}
    assert hashes == {state.content_hash, state.published_content_hash}


def test_a_record_for_datacite_is_a_manifest_too_and_names_nobody(world: World) -> None:
    author, dataset_id = creator(world), member(world)
    id = sealed_edition(world, dataset_id, kind="DataCite", license="CC0-1.0", creator_ids=[author])
    document = world.ask(GetEditionManifest(), on=id)
    manifest = json.loads(document.content)
    assert document.media_type == "application/vnd.datacite.datacite+json"
    assert [one["nameIdentifiers"][0]["nameIdentifier"] for one in manifest["creators"]] == [f"urn:uuid:{author}"]
    assert b"Okafor" not in document.content
    assert [one["relatedIdentifier"] for one in manifest["relatedIdentifiers"]] == [f"urn:uuid:{dataset_id}"]


def test_publishing_is_one_piece_of_work_however_often_it_is_asked_for(world: World) -> None:
    id = sealed_edition(world)
    assert world.when(PublishEdition(), on=id) == []
    first = dict(world.answer)
    assert first["edition_id"] == str(id)
    world.when(PublishEdition(wait=0), on=id)
    assert world.answer == first
    [task] = [row for row in world.records.values() if isinstance(row, Task)]
    assert (str(task.work_id), task.kind, task.request) == (first["work_id"], "edition-publication", {"edition_id": str(id)})


def test_what_failed_is_begun_anew_under_the_same_id(world: World) -> None:
    id = sealed_edition(world)
    world.when(PublishEdition(), on=id)
    key, task = next((key, row) for key, row in world.records.items() if isinstance(row, Task))
    world.records[key] = replace(task, status=TaskStatus.REFUSED)
    world.when(PublishEdition(), on=id)
    assert world.answer["work_id"] == str(task.work_id)
    assert world.records[key].status is TaskStatus.RUNNING  # type: ignore[attr-defined]


def test_without_a_registry_nothing_is_published_or_withdrawn(world: World) -> None:
    id = sealed_edition(world)
    offered, world.ports["deployment"].minted_schemes = world.ports["deployment"].minted_schemes, frozenset()
    with expect_refusal("ExternalIdMintingNotConfiguredError", "no_minter"):
        world.when(PublishEdition(), on=id)
    world.ports["deployment"].minted_schemes = offered
    record_publication(world, id)
    world.ports["deployment"].minted_schemes = frozenset()
    with expect_refusal("ExternalIdMintingNotConfiguredError", "no_minter"):
        world.when(WithdrawEdition(withdrawal_reason="wrong sample"), on=id)


def test_a_member_that_lost_its_copies_keeps_the_edition_from_being_published(world: World) -> None:
    dataset_id = promoted_dataset(world)
    copy_id = registered_copy(world, dataset_id, storage(world))
    id = sealed_edition(world, dataset_id)
    mark_stale(world, copy_id)
    for command in (PublishEdition(), RecordEditionPublication(**DOI)):
        with expect_refusal("EditionDatasetDistributionNotFoundError"):
            world.when(command, on=id)
    assert edition_of(world, id).status == "Sealed"


def test_a_published_edition_has_its_doi_and_a_withdrawn_one_keeps_it(world: World) -> None:
    id = sealed_edition(world)
    record_publication(world, id)
    state = edition_of(world, id)
    [published] = world.streams["Edition", id][-1:]
    assert published == EditionPublished(**DOI, published_content_hash=state.published_content_hash, published_by=OPERATOR)
    with expect_refusal("InvalidEditionWithdrawalReasonError", "blank"):
        world.when(WithdrawEdition(withdrawal_reason=" "), on=id)
    world.when(WithdrawEdition(withdrawal_reason="wrong sample"), on=id)
    record_withdrawal(world, id)
    assert world.streams["Edition", id][-1] == EditionWithdrawn(withdrawal_reason="wrong sample", withdrawn_by=OPERATOR)
    state = edition_of(world, id)
    assert (state.status, state.external_id, state.withdrawn_at) == ("Withdrawn", DOI["external_id"], world.now)
    assert entity(manifest_of(world, id), "./")["identifier"] == DOI["external_id"]


def test_a_manifest_that_cannot_be_written_seals_nothing(world: World) -> None:
    dataset_id = member(world)
    id = registered_edition(world, dataset_id)
    first = world.streams["Dataset", dataset_id][0]
    unwritable = first.model_copy(update={"name": "half of a pair \ud800"})
    world.streams["Dataset", dataset_id][0] = unwritable.stamp(dataset_id, world.now)
    with expect_refusal("EditionSerializerError", "not_serializable"):
        world.when(SealEdition(), on=id)
    assert edition_of(world, id).status == "Registered"
