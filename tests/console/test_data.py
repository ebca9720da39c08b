"""Data: datasets with their copies and their lineage, and who may take the picture of it along."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4
from xml.etree import ElementTree

import httpx
import pytest

from baton.cli.embedded.postgres import EmbeddedPostgres
from baton.domain.contexts import REGISTRY
from tests.support.api.data_story import DataStory, tell_data_story
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.console.page_source import PageSource
from tests.support.console.page_text import text_of
from tests.support.databases import fresh_database
from tests.support.service import Api, running_api

READER = ["GetDataset", "GetDatasetProvenancePicture"]


@dataclass(frozen=True)
class Archive:
    """A told story of data, and those who may see all of it, some of it and none of it."""

    story: DataStory
    curator: Api
    reader: Api
    stranger: Api

    async def page(self, path: str, **query: Any) -> str:
        answer = await self.curator.get(f"/console{path.format(**self.ids)}", position=self.story.position, **query)
        assert answer.status_code == 200, answer.text
        return answer.text

    @property
    def ids(self) -> dict[str, str]:
        return {name.replace(" ", "_"): id for name, id in self.story.ids.items()}


@pytest.fixture(scope="module")
async def archive(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[Archive]:
    with fresh_database(postgres, template) as url:
        async with running_api(url) as api:
            story = await tell_data_story(api)
        admin = str(uuid4())
        async with running_api(url, authorization_mode="policy", bootstrap_principal_id=admin) as api:
            boss = api.acting_as(admin)
            everything = sorted({operation.command_name for operation in REGISTRY})
            people = [await boss.create("/actors", {"name": name}) for name in ("Curator", "Reader")]
            for person, commands in zip(people, (everything, READER), strict=True):
                grant = {"name": f"Grant of {person}", "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
                permitted = {"permitted_principal_ids": [person], "permitted_commands": commands}
                await boss.create("/policies", {**grant, **permitted})
            curator, reader, stranger = (api.acting_as(person) for person in (*people, uuid4()))
            yield Archive(story, curator, reader, stranger)


async def test_the_newest_datasets_stand_first_beside_what_needs_a_check(archive: Archive) -> None:
    text = text_of(await archive.page("/data"))
    assert text.index("segmentation ▲ Trial") < text.index("raw projections ✓ Production Load step 1")
    assert "Never checked 1 volume at Archive" in text
    assert "Fatigue of an alloy bar" in text


async def test_datasets_are_found_by_name_and_intent(archive: Archive) -> None:
    html = await archive.page("/data", q="proj", intent="Production")
    assert [one.text for one in PageSource.of(html).all("th") if one.get("scope") == "row"] == ["raw projections"]
    assert "No dataset fits. Loosen the filters." in await archive.page("/data", q="nowhere")


async def test_a_dataset_shows_its_origin_its_copies_and_what_closes_its_verbs(archive: Archive) -> None:
    html = await archive.page("/datasets/{volume}")
    text = text_of(html)
    assert "Promote The dataset is Retracted; this is possible only from Trial." in text
    assert "POSIX copy at Archive" in text
    assert "file:///data/volume.h5 never checked" in text
    assert "No catalogue is configured" in text
    checks = [one.get("href") for one in PageSource.of(html).all("a") if one.text == "Check its bytes"]
    assert f"distribution_id={archive.ids['copy']}" in checks[0]
    raw = text_of(await archive.page("/datasets/{raw}"))
    assert "run Load step 1" in raw
    assert "1 revision, in the lineage below" in raw


async def test_the_lineage_is_a_picture_and_a_list(archive: Archive) -> None:
    html = await archive.page("/datasets/{volume}")
    text = text_of(html)
    made_from, became = text.split("Made from")[1], text.split("Became")[1]
    assert "dataset raw projections ✓ Production" in made_from.split("Made by")[0]
    assert "dataset segmentation" in became
    assert "edition Fatigue of an alloy bar" in became
    assert "calibration revision Rotation center" in text
    (image,) = PageSource.of(html).all("img")
    picture = await archive.curator.request("GET", image.get("src"))
    assert picture.headers["content-type"] == "image/svg+xml"
    assert ElementTree.fromstring(picture.text).tag.endswith("svg")
    assert "script-src" not in picture.headers["content-security-policy"]
    assert picture.headers["content-security-policy"].startswith("default-src 'none'")


async def test_the_picture_is_for_those_who_may_see_it(archive: Archive) -> None:
    path = f"/console/datasets/{archive.ids['volume']}"
    answers: list[httpx.Response] = [await one.get(f"{path}/lineage.svg") for one in (archive.reader, archive.stranger)]
    assert [one.status_code for one in answers] == [200, 403]
    assert "GetDatasetProvenancePicture" in answers[1].text
    assert "svg xmlns" not in answers[1].text
    assert (await archive.reader.get(f"{path}/datacite.json")).status_code == 403


async def test_a_stranger_sees_no_data(archive: Archive) -> None:
    for path in (
        "/console/data",
        f"/console/datasets/{archive.ids['volume']}",
        f"/console/editions/{archive.ids['edition']}",
    ):
        html = (await archive.stranger.get(path)).text
        assert "volume" not in text_of(html).replace(archive.ids["volume"], "")
        assert "Fatigue" not in html


async def test_a_reader_of_datasets_sees_them_without_what_else_it_takes(archive: Archive) -> None:
    text = text_of((await archive.reader.get(f"/console/datasets/{archive.ids['volume']}")).text)
    assert "volume" in text
    assert "ListDistributions" in text
    assert "Archive" not in text


async def test_an_edition_shows_its_members_and_what_it_takes_to_seal_it(archive: Archive) -> None:
    text = text_of(await archive.page("/editions/{edition}"))
    assert "Members 1 volume" in text
    assert "It can be sealed when every member is Production" in text
    assert "Seal" in text
    refused = await archive.curator.get(f"/console/editions/{archive.ids['edition']}/manifest.json")
    assert (refused.status_code, "seal it first" in refused.text) == (404, True)


async def test_what_can_be_taken_along_is_a_file(archive: Archive) -> None:
    for name, kind in (("datacite.json", "application/vnd.datacite.datacite+json"), ("prov.json", "application/json")):
        answer = await archive.curator.get(f"/console/datasets/{archive.ids['volume']}/{name}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
        assert answer.json()
