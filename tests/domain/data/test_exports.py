"""Exports, held against what their standards publish: DataCite 4.6, IGSN, PIDINST 1.0 and RO-Crate 1.2."""

import json
import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from datacite import schema45

from baton.domain.access.actor import ForgetActor
from baton.domain.data.acquisition import RecordAcquisition
from baton.domain.data.dataset import AssignDatasetExternalId, DemoteDataset, DiscardDataset, PromoteDataset, tombstone_text
from baton.domain.data.edition import GetEditionManifest
from baton.domain.data.exports import (
    GetDatasetDatacite,
    GetEditionDatacite,
    GetSubjectIgsn,
    MintDatasetExternalId,
    published_citation,
)
from baton.domain.data.landing import landing_page_of
from baton.domain.equipment.asset_external_id import AssignAssetExternalId, GetAssetPidinst, published_record
from baton.domain.equipment.pidinst import citation_of
from baton.domain.run.run import RunCompleted
from baton.domain.shared.citation import RELATED_TYPES, Citation, LandingKind, datacite_json
from baton.domain.shared.tasks import Task
from baton.domain.step.results import ActuationKind
from baton.domain.subject.subject import AssignSubjectExternalId, RegisterSubject
from tests.support.domain.assets import asset_of, family, model, part, root, run_reads
from tests.support.domain.datasets import (
    dataset_of,
    promoted_dataset,
    registered_copy,
    registered_dataset,
    run_with,
    storage,
)
from tests.support.domain.editions import (
    creator,
    edition_of,
    edition_world,
    member,
    record_publication,
    registered_edition,
    sealed_edition,
)
from tests.support.domain.world import START, World, expect_refusal

MIRA_ORCID = "0000-0002-1825-0097"


@pytest.fixture
def world() -> World:
    return edition_world()


def exported(world: World, query: Any, on: UUID) -> dict[str, Any]:
    document = world.ask(query, on=on)
    assert document.media_type == "application/vnd.datacite.datacite+json"
    record: dict[str, Any] = json.loads(document.content)
    check_datacite(record)
    return record


def check_datacite(record: dict[str, Any]) -> None:
    """Hold a record against DataCite 4.6: its mandatory properties, its controlled lists and its formats."""
    # The package has the schema of 4.5, which 4.6 only adds to; it writes the year as text, and DataCite's API as a number.
    schema45.validator.validate({**record, "publicationYear": str(record["publicationYear"])})
    assert all(record[name] for name in ("creators", "titles", "publisher", "publicationYear", "types"))
    assert 1000 <= record["publicationYear"] <= 9999
    assert re.fullmatch(r"10\.\d{4,9}/\S+", record.get("doi", "10.1234/x"))
    for party in (*record["creators"], *record["contributors"]):
        assert party["name"].strip()
        assert all(one["nameIdentifierScheme"] for one in party["nameIdentifiers"])
    for related in record["relatedIdentifiers"]:
        assert related["relatedIdentifierType"] in RELATED_TYPES
        if related["relatedIdentifierType"] == "DOI":
            assert re.fullmatch(r"10\.\d{4,9}/\S+", related["relatedIdentifier"])
    for date in record["dates"]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d(/\d{4}-\d\d-\d\d)?", date["date"])
        assert date["dateType"] != "Other" or date["dateInformation"]


def related(record: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (one["relationType"], one["relatedIdentifierType"], one["relatedIdentifier"]) for one in record["relatedIdentifiers"]
    }


def camera(world: World) -> UUID:
    """An instrument that captures, with an identifier of its own."""
    id = part(world, root(world), family_ids=[family(world, "Camera", None, "Capturing")])
    world.when(AssignAssetExternalId(external_id_scheme="DOI", suffix="camera-1"), on=id)
    return id


def sample(world: World, igsn: str | None = "10.58151/IGSN-B12") -> UUID:
    id = world.create(RegisterSubject(name="Catalyst pellet B-12"))
    if igsn is not None:
        world.when(AssignSubjectExternalId(external_id=igsn), on=id)
    return id


def test_a_dataset_is_cited_with_all_that_it_comes_from(world: World) -> None:
    parent, other_parent = promoted_dataset(world), promoted_dataset(world)
    world.when(AssignDatasetExternalId(external_id="10.1234/parent"), on=parent)
    pellet, camera_id = sample(world), camera(world)
    id = registered_dataset(world, derived_from=[parent, other_parent], subject_id=pellet)
    for days in (1, 3):
        taken = {"dataset_id": id, "producing_asset_id": camera_id, "captured_at": START - timedelta(days=days)}
        world.create(RecordAcquisition(**taken))
    record = exported(world, GetDatasetDatacite(), id)
    assert record["types"] == {"resourceTypeGeneral": "Dataset"}
    assert (record["titles"], record["sizes"]) == ([{"title": "scan_001.h5"}], ["6 bytes"])
    assert (record["formats"], record["publisher"]) == (["application/x-hdf5"], {"name": "Lumen Light Source"})
    assert record["url"] == f"https://baton.example/landing/datasets/{id}"
    assert record["dates"] == [{"dateType": "Collected", "date": "2026-10-03/2026-10-05"}]
    assert related(record) == {
        ("IsDerivedFrom", "DOI", "10.1234/parent"),
        ("IsDerivedFrom", "URN", f"urn:uuid:{other_parent}"),
        ("IsCollectedBy", "DOI", "10.5072/camera-1"),
        ("References", "DOI", "10.58151/IGSN-B12"),
    }
    assert [one["name"] for one in record["creators"]] == [":unav"]
    assert "doi" not in record
    assert "checksum" not in json.dumps(record)


def test_an_instrument_or_a_sample_without_an_identifier_is_not_cited(world: World) -> None:
    camera_id = part(world, root(world), family_ids=[family(world, "Camera", None, "Capturing")])
    id = registered_dataset(world, subject_id=sample(world, None))
    world.create(RecordAcquisition(dataset_id=id, producing_asset_id=camera_id, captured_at=START))
    record = exported(world, GetDatasetDatacite(), id)
    assert (record["relatedIdentifiers"], record["dates"]) == ([], [{"dateType": "Collected", "date": "2026-10-06"}])


@pytest.mark.parametrize(
    ("scheme", "value", "cited"),
    [
        ("IGSN", "IECUR0097", ("IGSN", "IECUR0097")),
        ("igsn", "10.58151/b12", ("DOI", "10.58151/b12")),
        ("ARK", "12345/x", ("ARK", "12345/x")),
        ("LIMS", "B12", None),
    ],
)
def test_what_the_scheme_is_called_here_is_told_as_datacite_calls_it_or_replaced_by_our_own_id(
    world: World, scheme: str, value: str, cited: tuple[str, str] | None
) -> None:
    pellet = sample(world, None)
    world.when(AssignSubjectExternalId(external_id=value, external_id_scheme=scheme), on=pellet)
    record = exported(world, GetDatasetDatacite(), registered_dataset(world, subject_id=pellet))
    assert related(record) == {("References", *(cited or ("URN", f"urn:uuid:{pellet}")))}


def test_an_edition_is_cited_with_its_members_and_what_they_come_from(world: World) -> None:
    disk, raw, outside = storage(world), promoted_dataset(world), promoted_dataset(world)
    volume = promoted_dataset(world, derived_from=[raw, outside], encoding={"media_type": "image/tiff"})
    registered_copy(world, raw, disk)
    registered_copy(world, volume, disk, encoding={"media_type": "image/tiff"})
    mira = creator(world, "Mira Okafor", external_id=MIRA_ORCID, external_id_scheme="orcid")
    crew = creator(world, "Night crew", kind="service_account")
    id = sealed_edition(world, raw, volume, creator_ids=[mira, crew], license="CC-BY-4.0")
    record = exported(world, GetEditionDatacite(), id)
    assert record["types"] == {"resourceTypeGeneral": "Collection"}
    assert related(record) == {
        ("HasPart", "URN", f"urn:uuid:{raw}"),
        ("HasPart", "URN", f"urn:uuid:{volume}"),
        ("IsDerivedFrom", "URN", f"urn:uuid:{outside}"),
    }
    assert (record["sizes"], record["formats"]) == (["12 bytes"], ["application/x-hdf5", "image/tiff"])
    assert record["rightsList"][0]["rightsIdentifier"] == "CC-BY-4.0"
    first, second = record["creators"]
    assert (first["name"], first["nameType"], second["nameType"]) == ("Mira Okafor", "Personal", "Organizational")
    assert first["nameIdentifiers"] == [{"nameIdentifier": MIRA_ORCID, "nameIdentifierScheme": "ORCID"}]
    assert "doi" not in record
    record_publication(world, id)
    assert exported(world, GetEditionDatacite(), id)["doi"] == "10.5072/ed-1"


def test_names_are_shown_to_those_who_may_read_them_and_to_the_registry(world: World) -> None:
    mira = creator(world, "Mira Okafor", external_id=MIRA_ORCID, external_id_scheme="ORCID")
    id = sealed_edition(world, creator_ids=[mira])
    world.denied.add("GetActor")
    (withheld,) = exported(world, GetEditionDatacite(), id)["creators"]
    assert (withheld["name"], withheld["nameIdentifiers"]) == (":unal", [])
    minted = run_reads(world, published_citation(edition_of(world, id), all_named=True))
    assert [one.name for one in minted.creators] == ["Mira Okafor"]
    world.when(ForgetActor(), on=mira)
    forgotten = run_reads(world, published_citation(edition_of(world, id), all_named=True))
    assert [one.name for one in forgotten.creators] == ["<deleted user>"]


def test_an_edition_has_a_manifest_and_is_cited_once_it_is_sealed(world: World) -> None:
    for query in (GetEditionManifest(), GetEditionDatacite()):
        with expect_refusal("EditionManifestNotFoundError", "not_sealed"):
            world.ask(query, on=registered_edition(world))


def test_a_sample_is_registered_as_a_physical_object(world: World) -> None:
    record = exported(world, GetSubjectIgsn(), sample(world))
    assert record["types"] == {"resourceTypeGeneral": "PhysicalObject", "resourceType": "Material sample"}
    assert (record["doi"], record["titles"]) == ("10.58151/IGSN-B12", [{"title": "Catalyst pellet B-12"}])
    assert "doi" not in exported(world, GetSubjectIgsn(), sample(world, None))


def test_a_doi_is_minted_for_a_dataset_once(world: World) -> None:
    minted: list[Citation] = []
    mint = world.ports["mint"]
    world.ports["mint"] = lambda scheme, suffix, citation: (minted.append(citation), mint(scheme, suffix, citation))[1]
    id = member(world)
    world.when(MintDatasetExternalId(), on=id)
    kept = {"external_id": f"10.5072/{id}", "external_id_scheme": "DOI"}
    assert world.answer == kept
    assert {name: getattr(dataset_of(world, id), name) for name in kept} == kept
    record = exported(world, GetDatasetDatacite(), id)
    assert record == datacite_json(minted[0], kept["external_id"])
    with expect_refusal("DatasetCannotMintExternalIdError", "already_assigned"):
        world.when(MintDatasetExternalId(), on=id)
    world.ports["deployment"].minted_schemes = frozenset()
    with expect_refusal("ExternalIdMintingNotConfiguredError", "no_minter"):
        world.when(MintDatasetExternalId(), on=member(world))


def test_only_what_is_production_and_real_gets_a_doi_that_is_found_and_anything_a_draft(world: World) -> None:
    findable: list[bool] = []
    mint = world.ports["mint"]
    world.ports["mint"] = lambda *asked: (findable.append(asked[2].findable), mint(*asked))[1]
    simulated = registered_dataset(
        world, producing_run_id=run_with(world, RunCompleted(actuation_kind=ActuationKind.SIMULATED))
    )
    with expect_refusal("DatasetCannotMintExternalIdError", "simulated"):
        world.when(MintDatasetExternalId(), on=simulated)
    trial = registered_dataset(world)
    with expect_refusal("DatasetCannotMintExternalIdError", "not_promoted"):
        world.when(MintDatasetExternalId(), on=trial)
    world.when(MintDatasetExternalId(draft=True), on=trial)
    page = run_reads(world, landing_page_of(LandingKind.DATASETS, trial))
    assert page is not None
    assert (page.identifier, dataset_of(world, trial).external_id_draft) == (None, True)
    with expect_refusal("DatasetCannotMintExternalIdError", "already_assigned"):
        world.when(MintDatasetExternalId(draft=True), on=trial)
    world.when(PromoteDataset(reason="checked"), on=trial)
    world.when(MintDatasetExternalId(), on=trial)
    page = run_reads(world, landing_page_of(LandingKind.DATASETS, trial))
    assert page is not None
    assert (page.identifier, findable) == (dataset_of(world, trial).external_id, [False, True])
    world.ports["deployment"].drafts_minted = False
    with expect_refusal("ExternalIdMintingNotConfiguredError", "no_drafts"):
        world.when(MintDatasetExternalId(draft=True), on=simulated)


def tombstones(world: World) -> list[Task]:
    return [row for row in world.records.values() if isinstance(row, Task) and row.kind == "dataset-tombstone"]


def test_a_doi_of_ours_is_marked_when_its_dataset_is_demoted_or_discarded(world: World) -> None:
    id = member(world)
    world.when(MintDatasetExternalId(), on=id)
    world.when(DemoteDataset(reason="Mira mixed the samples up"), on=id)
    (task,) = tombstones(world)
    assert task.request == {"dataset_id": str(id)}
    assert tombstone_text(dataset_of(world, id)).startswith("This dataset was retracted")
    world.when(DiscardDataset(reason="Mira mixed the samples up"), on=id)
    assert len(tombstones(world)) == 2
    assert tombstone_text(dataset_of(world, id)).startswith("This dataset was discarded")


def test_a_doi_of_somebody_else_is_left_alone(world: World) -> None:
    plain, foreign = registered_dataset(world), registered_dataset(world)
    world.when(AssignDatasetExternalId(external_id="10.1234/zenodo.7"), on=foreign)
    world.when(PromoteDataset(reason="checked"), on=foreign)
    world.when(DemoteDataset(reason="wrong"), on=foreign)
    for id in (plain, foreign):
        world.when(DiscardDataset(reason="wrong"), on=id)
    assert tombstones(world) == []


PIDINST_RELATIONS = {
    *("IsDescribedBy", "IsNewVersionOf", "IsPreviousVersionOf", "HasComponent", "IsComponentOf", "References"),
    *("HasMetadata", "WasUsedIn", "IsIdentifiedBy", "IsAttachedTo"),
}


def test_an_instrument_is_told_as_pidinst_1_0_has_it_and_minted_as_datacite_4_6_maps_that(world: World) -> None:
    stage = family(world, "RotaryStage")
    line = root(world, owners=[{"name": "Lumen Light Source"}])
    world.when(AssignAssetExternalId(external_id_scheme="DOI", suffix="line"), on=line)
    id = part(
        world,
        line,
        model_id=model(world, stage),
        owners=[{"name": "Lumen Light Source", "identifier": "https://ror.org/1", "identifier_type": "ROR"}],
        alternate_identifiers=[{"kind": "SerialNumber", "value": "A-42"}, {"kind": "EPICS_PV", "value": "lum:m1"}],
    )
    pidinst = world.ask(GetAssetPidinst(), on=id)
    assert (pidinst.schema_version, bool(pidinst.identifier.value), bool(pidinst.identifier.scheme)) == ("1.0", True, True)
    assert pidinst.landing_page.startswith("https://")
    assert min(len(pidinst.name), len(pidinst.owners), len(pidinst.manufacturers)) >= 1
    assert all(one.name for one in (*pidinst.owners, *pidinst.manufacturers))
    assert {one.relation_type for one in pidinst.related_identifiers} <= PIDINST_RELATIONS
    assert {one.kind for one in pidinst.alternate_identifiers} <= {"SerialNumber", "InventoryNumber", "Other"}
    assert {one.type for one in pidinst.dates} <= {"Commissioned", "DeCommissioned"}
    record = datacite_json(citation_of(run_reads(world, published_record(asset_of(world, id)))), "10.5072/rotary")
    check_datacite(record)
    assert record["types"]["resourceTypeGeneral"] == "Instrument"
    assert [one["name"] for one in record["creators"]] == [pidinst.manufacturers[0].name]
    assert [(one["name"], one["contributorType"]) for one in record["contributors"]] == [
        ("Lumen Light Source", "HostingInstitution")
    ]
    assert [(one["dateType"], one["dateInformation"]) for one in record["dates"]] == [("Other", "Commissioned")]
    assert [one["descriptionType"] for one in record["descriptions"]] == ["TechnicalInfo"]
    assert ("IsPartOf", "DOI", "10.5072/line") in related(record)


def check_crate(crate: dict[str, Any]) -> None:
    """Hold a crate against RO-Crate 1.2: descriptor, root, a flat graph, and an entity for everything it refers to."""
    assert crate["@context"] == "https://w3id.org/ro/crate/1.2/context"
    entities = {one["@id"]: one for one in crate["@graph"]}
    assert len(entities) == len(crate["@graph"]), "an entity is described once"
    descriptor = entities["ro-crate-metadata.json"]
    assert descriptor["@type"] == "CreativeWork"
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.2"}
    crate_root = entities[descriptor["about"]["@id"]]
    assert (crate_root["@id"][-1], crate_root["@type"]) == ("/", "Dataset")
    assert re.fullmatch(r"\d{4}(-\d\d(-\d\d)?)?", crate_root["datePublished"])
    assert all(crate_root[name] for name in ("name", "description"))
    for part_of in crate_root["hasPart"]:
        data_entity = entities[part_of["@id"]]
        assert data_entity["@type"] in ("File", "Dataset")
        assert re.match(r"[a-z][a-z0-9+.-]*:", data_entity["@id"]), "what is not beside the crate has an absolute URI"
    for one in crate["@graph"]:
        assert one["@type"]
        assert one.get("name") or one is descriptor
        for name, value in one.items():
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, dict):
                    assert set(inner) == {"@id"}, "the graph is flat"
                    assert inner["@id"] in entities or (name, one) == ("conformsTo", descriptor)


@pytest.mark.parametrize("license", ["CC-BY-4.0", None])
def test_a_manifest_is_a_valid_crate_sealed_and_published(world: World, license: str | None) -> None:
    tree = {"uri": "file:///data/frames/", "checksum": {"algorithm": "sha256-tree", "value": "a" * 64}}
    directory = promoted_dataset(world, **tree)
    registered_copy(world, directory, storage(world), **tree)
    id = sealed_edition(world, member(world), directory, creator_ids=[creator(world), creator(world)], license=license)
    check_crate(json.loads(world.ask(GetEditionManifest(), on=id).content))
    record_publication(world, id)
    crate = json.loads(world.ask(GetEditionManifest(), on=id).content)
    check_crate(crate)
    assert sorted(str(one["@type"]) for one in crate["@graph"] if "sha256" in one) == ["Dataset", "File"]
