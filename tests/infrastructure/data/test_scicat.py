"""SciCat as a catalogue: each dataset once, in a form it accepts, whatever the server does meanwhile."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from baton.application.ports import CatalogueRefusedError, CatalogueUnavailableError
from baton.domain.data.catalogue import CataloguedDataset
from baton.domain.data.dataset import DatasetIntent, DatasetStatus
from baton.infrastructure.catalogues.scicat import SciCat, place_of
from tests.support.domain.world import START, new_id
from tests.support.infrastructure.catalogued_datasets import copy_at, shown_dataset, with_dataset
from tests.support.infrastructure.scicat_server import CONTACT, GROUP, PREFIX, TOKEN, SciCatServer, running_scicat
from tests.support.tables import for_each


@pytest.fixture
def server() -> Iterator[SciCatServer]:
    with running_scicat() as server:
        yield server


@pytest.fixture
async def scicat(server: SciCatServer) -> AsyncIterator[SciCat]:
    scicat = SciCat(server.url, TOKEN, GROUP, CONTACT, PREFIX, deadline=5)
    yield scicat
    await scicat.aclose()


def pid_of(shown: CataloguedDataset) -> str:
    return f"{PREFIX}/{shown.dataset.id}"


async def test_a_raw_dataset_is_entered_in_the_name_of_the_facility(scicat: SciCat, server: SciCatServer) -> None:
    subject = new_id()
    shown = shown_dataset(subject_id=subject)._replace(captured_at=START)
    assert await scicat.enter(shown)
    kept = server.datasets[pid_of(shown)]
    assert (kept["type"], kept["datasetName"], kept["sampleId"]) == ("raw", "scan_001.h5", str(subject))
    assert (kept["owner"], kept["principalInvestigator"]) == ("Lumen Light Source", "Lumen Light Source")
    assert (kept["contactEmail"], kept["ownerGroup"], kept["isPublished"]) == (CONTACT, GROUP, False)
    assert (kept["sourceFolder"], kept["creationLocation"]) == ("/data/pellet", "/lumen")
    assert kept["creationTime"] == "2026-10-06T08:00:00Z"
    assert kept["scientificMetadata"]["checksum"] == "sha256:" + "ab" * 32
    (block,) = server.blocks[pid_of(shown)]
    assert (block["size"], block["chkAlg"], block["dataFileList"][0]["path"]) == (6, "sha256", "scan_001.h5")


async def test_a_derived_dataset_names_what_it_was_made_of(scicat: SciCat, server: SciCatServer) -> None:
    parents = frozenset({new_id(), new_id()})
    shown = shown_dataset(derived_from=parents, used_calibration_ids=frozenset({new_id()}))
    await scicat.enter(shown)
    kept = server.datasets[pid_of(shown)]
    assert (kept["type"], kept["usedSoftware"]) == ("derived", [])
    assert kept["inputDatasets"] == [f"{PREFIX}/{parent}" for parent in sorted(parents)]
    assert len(kept["scientificMetadata"]["used_calibration_ids"]) == 1


@pytest.mark.parametrize("taken_status", [409, 500])
async def test_what_is_there_is_changed_and_its_files_are_listed_once(
    scicat: SciCat, server: SciCatServer, taken_status: int
) -> None:
    server.taken_status = taken_status
    shown = shown_dataset()
    await scicat.enter(shown)
    promoted = with_dataset(shown, intent=DatasetIntent.PRODUCTION, external_id="10.1/2", external_id_scheme="DOI")
    await scicat.enter(promoted._replace(copies=(copy_at(shown, "https://archive.example/1.h5"),)))
    kept = server.datasets[pid_of(shown)]
    assert (kept["type"], kept["validationStatus"]) == ("raw", "Production")
    assert kept["scientificMetadata"]["results_may_rest_on_it"] is True
    assert (kept["scientificMetadata"]["external_id"], kept["scientificMetadata"]["copies"]) == (
        "10.1/2",
        ["https://archive.example/1.h5"],
    )
    assert server.creations == [pid_of(shown)]
    assert len(server.blocks[pid_of(shown)]) == 1


async def test_a_discarded_dataset_stays_and_is_marked_but_is_not_made(scicat: SciCat, server: SciCatServer) -> None:
    shown = shown_dataset()
    discarded = with_dataset(shown, status=DatasetStatus.DISCARDED)
    assert not await scicat.enter(discarded)
    await scicat.enter(shown)
    assert await scicat.enter(discarded)
    assert server.datasets[pid_of(shown)]["keywords"] == ["Discarded", "Trial"]
    assert server.creations == [pid_of(shown)]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ((500, {"message": "Internal server error"}), "failed"),
        ((502, b"<html>maintenance</html>"), "failed"),
        ((302, b""), "failed"),
        ((201, b"{"), "failed"),
        ((429, {"message": "Too many requests"}), "busy"),
        ((401, {"message": "Unauthorized"}), "account_refused"),
        ("lost", "unreachable"),
        ("gone", "unreachable"),
    ],
)
async def test_a_catalogue_that_fails_is_told_again_and_has_the_dataset_once(
    scicat: SciCat, server: SciCatServer, failure: Any, reason: str
) -> None:
    shown = shown_dataset()
    server.failures += [failure]
    if failure[0] == 500:
        server.failures.append((404, {"message": "not found"}))
    with pytest.raises(CatalogueUnavailableError) as unavailable:
        await scicat.enter(shown)
    assert unavailable.value.reason == reason
    assert TOKEN not in unavailable.value.detail
    assert shown.dataset.name not in unavailable.value.detail
    await scicat.enter(shown)
    assert server.creations == [pid_of(shown)]
    assert len(server.blocks[pid_of(shown)]) == 1


async def test_a_file_list_whose_answer_was_lost_is_not_repeated(scicat: SciCat, server: SciCatServer) -> None:
    shown = shown_dataset()
    await scicat.enter(shown)
    server.blocks[pid_of(shown)].clear()
    server.failures += [(409, {}), (200, {}), (200, [])]
    server.failures.append("lost")
    with pytest.raises(CatalogueUnavailableError):
        await scicat.enter(shown)
    await scicat.enter(shown)
    assert len(server.blocks[pid_of(shown)]) == 1


async def test_a_catalogue_that_does_not_answer_in_time_is_given_up(server: SciCatServer) -> None:
    server.failures.append("silent")
    impatient = SciCat(server.url, TOKEN, GROUP, CONTACT, PREFIX, deadline=0.2)
    with pytest.raises(CatalogueUnavailableError, match=r"no answer within 0\.2 s"):
        await impatient.enter(shown_dataset())
    await impatient.aclose()


async def test_what_it_refuses_is_said_with_its_reason(scicat: SciCat, server: SciCatServer) -> None:
    server.refused_names.add("scan_001.h5")
    with pytest.raises(CatalogueRefusedError, match=r"status 400: datasetName is not allowed here.*retry"):
        await scicat.enter(shown_dataset())


async def test_a_group_that_may_not_enter_is_refused(server: SciCatServer) -> None:
    stranger = SciCat(server.url, TOKEN, "others", CONTACT, PREFIX)
    with pytest.raises(CatalogueRefusedError, match="status 403: Unauthorized to create"):
        await stranger.enter(shown_dataset())
    await stranger.aclose()


@for_each(
    ("uri", "place"),
    [
        ("file:///data/a%20b/c.h5", ("/data/a b", "c.h5")),
        ("https://archive.example/x/y.h5", ("https://archive.example/x", "y.h5")),
        ("s3://bucket/y.h5", ("s3://bucket/", "y.h5")),
    ],
)
def test_the_place_of_a_file_is_its_folder_and_its_name(uri: str, place: tuple[str, str]) -> None:
    assert place_of(uri) == place
