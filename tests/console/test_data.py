"""Data: datasets with their copies and their lineage, and who may take the picture of it along."""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4
from xml.etree import ElementTree

import httpx
import pytest

from baton.domain.contexts import REGISTRY
from tests.support.api.data_products import register_copy, register_dataset
from tests.support.api.data_story import DataStory, tell_data_story
from tests.support.api.samples import SYSTEM_CONDUIT, SYSTEM_HTTP
from tests.support.console.page_source import PageSource
from tests.support.console.page_text import text_of
from tests.support.infrastructure.pictures import pixels_of, write_array
from tests.support.service import Api, running_api
from tests.support.waiting import until

READER = ["GetDataset", "GetDatasetProvenancePicture"]
FRAME = [[0, 51, 102], [153, 204, 255]]


@dataclass(frozen=True)
class Archive:
    """A told story of data, and those who may see all of it, some of it and none of it."""

    story: DataStory
    root: Path
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
async def archive(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Archive]:
    root = tmp_path_factory.mktemp("data")
    async with running_api(module_database) as api:
        story = await tell_data_story(api)
    admin = str(uuid4())
    enforced = {"authorization_mode": "policy", "bootstrap_principal_id": admin, "data_roots": (root,)}
    async with running_api(module_database, **enforced) as api:
        boss = api.acting_as(admin)
        everything = sorted({operation.command_name for operation in REGISTRY})
        people = [await boss.create("/actors", {"name": name}) for name in ("Curator", "Reader")]
        for person, commands in zip(people, (everything, READER), strict=True):
            grant = {"name": f"Grant of {person}", "conduit_id": SYSTEM_CONDUIT, "surface_id": SYSTEM_HTTP}
            permitted = {"permitted_principal_ids": [person], "permitted_commands": commands}
            await boss.create("/policies", {**grant, **permitted})
        curator, reader, stranger = (api.acting_as(person) for person in (*people, uuid4()))
        yield Archive(story, root, curator, reader, stranger)


async def test_the_newest_datasets_stand_first_beside_what_needs_a_check(archive: Archive) -> None:
    text = text_of(await archive.page("/data"))
    assert text.index("segmentation ▲ Trial") < text.index("raw projections ✓ Production")
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
    checks = [one.get("formaction") for one in PageSource.of(html).all("button") if one.text == "Check its bytes"]
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
    (image,) = [one for one in PageSource.of(html).all("img") if "lineage" in one.get("src")]
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


async def test_a_dataset_is_shown_by_a_picture_of_its_file(archive: Archive) -> None:
    html = await archive.page("/datasets/{raw}")
    (image,) = [one for one in PageSource.of(html).all("img") if "preview" in one.get("src")]
    assert (image.get("alt"), image.get("loading")) == ("Picture of the dataset raw projections", "lazy")
    path = write_array(archive.root / "raw.h5", FRAME)
    size = os.stat(path).st_size
    shown = await register_dataset(archive.curator, name="shown", uri=path.as_uri(), byte_size=size)
    picture = await archive.curator.get(image.get("src").replace(archive.ids["raw"], shown))
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    assert (picture.headers["cache-control"], picture.headers["vary"]) == ("private, max-age=60", "cookie")
    assert pixels_of(picture.content) == FRAME


async def test_an_overwritten_copy_says_so_in_place_of_its_picture(archive: Archive) -> None:
    path = write_array(archive.root / "night.h5", FRAME)
    fields = {"uri": path.as_uri(), "byte_size": os.stat(path).st_size}
    first, second = [await register_dataset(archive.curator, name=name, **fields) for name in ("Bar 7", "Bar 8")]
    old = await register_copy(archive.curator, first)
    new = await register_copy(archive.curator, second)
    assert (await archive.curator.get(f"/distributions/{old}")).json()["overwritten_by_distribution_id"] == new

    async def is_said() -> bool:
        page = text_of((await archive.curator.get(f"/console/datasets/{first}")).text)
        return "It was overwritten: its address has the bytes of another copy now." in page

    await until(is_said)
    card = await archive.curator.get(f"/console/datasets/{first}/preview.png")
    assert (card.headers["content-type"], "is Stale" in card.text) == ("image/svg+xml", True)
    assert (await archive.curator.get(f"/console/datasets/{second}/preview.png")).headers["content-type"] == "image/png"


async def test_where_there_is_no_picture_a_card_says_why(archive: Archive) -> None:
    path = f"/console/datasets/{archive.ids['segmentation']}/preview.png"
    card = await archive.curator.get(path)
    assert (card.status_code, card.headers["content-type"]) == (200, "image/svg+xml")
    assert card.headers["content-security-policy"].startswith("default-src 'none'")
    title = ElementTree.fromstring(card.text).findtext("{http://www.w3.org/2000/svg}title", "")
    assert title.startswith("No copy of this dataset is a file that the API can read")
    assert "no picture" in card.text
    refused = await archive.reader.get(path)
    assert (refused.status_code, "GetDatasetPreview" in refused.text) == (403, True)
    html = (await archive.reader.get(f"/console/datasets/{archive.ids['segmentation']}")).text
    assert "preview.png" not in html, "no picture is asked for that would be refused"


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
