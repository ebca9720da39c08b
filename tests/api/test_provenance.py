"""Where data comes from, over REST: everything behind a volume, the same as a picture and as PROV-JSON, and thousands of
datasets in one answer."""

import time
from statistics import median
from typing import Any
from uuid import uuid4
from xml.etree import ElementTree

import pytest
from prov.model import ProvDocument

from baton.application.queries import PROJECTIONS
from baton.domain.kernel import NIL
from baton.infrastructure.postgres.pool import runtime_pool
from baton.infrastructure.postgres.store import PostgresStore
from tests.support.api.data_story import DataStory, tell_data_story
from tests.support.infrastructure.dataset_graphs import append_streams, generations
from tests.support.service import Api
from tests.support.waiting import until

KNOWN = {
    *("volume wasDerivedFrom raw", "segmentation wasDerivedFrom volume", "segmentation wasDerivedFrom raw"),
    *("failed wasDerivedFrom volume", "raw wasGeneratedBy run", "raw wasGeneratedBy acquisition"),
    *("raw wasInfluencedBy centre", "raw wasInfluencedBy subject", "acquisition wasAssociatedWith camera"),
    *("acquisition wasInformedBy run", "run hadPlan plan", "run used centre", "run used subject", "run used caution"),
    *("run wasInfluencedBy decision", "decision wasAttributedTo creator", "centre wasGeneratedBy alignment"),
    *("edition hadMember volume", "edition wasAttributedTo creator"),
}


@pytest.fixture(scope="module")
async def story(api: Api) -> DataStory:
    return await tell_data_story(api)


async def provenance(story: DataStory, name: str, **asked: Any) -> dict[str, Any]:
    path = f"/datasets/{story.ids[name]}/provenance"
    answer = await story.api.get(path, min_position=story.position, **asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def names_of(story: DataStory, found: dict[str, Any], kind: str) -> set[str]:
    return {story.name_of(node["id"]) for node in found["nodes"] if node["kind"] == kind}


def relations_of(story: DataStory, found: dict[str, Any]) -> set[str]:
    return {f"{story.name_of(edge['from'])} {edge['relation']} {story.name_of(edge['to'])}" for edge in found["edges"]}


async def test_everything_behind_a_volume_and_all_that_came_of_it(story: DataStory) -> None:
    found = await provenance(story, "volume", copies=True)
    by_name = {story.name_of(node["id"]): node for node in found["nodes"]}
    assert by_name.keys() >= {*story.ids} - {"calibration", "better centre"}
    assert relations_of(story, found) >= {*KNOWN, "copy specializationOf volume"}
    assert (by_name["volume"]["status"], by_name["volume"]["details"]["intent"]) == ("Registered", "Retracted")
    assert by_name["volume"]["details"]["checksum"]["algorithm"] == "sha256"
    assert by_name["failed"]["status"] == "Discarded"
    assert (by_name["run"]["label"], by_name["run"]["status"]) == ("Load step 1", "Completed")
    assert by_name["centre"]["details"]["superseded_by_revision_id"] == story.ids["better centre"]
    assert by_name["acquisition"]["at"] == "2026-03-02T10:00:00Z"
    assert by_name["creator"]["label"] == "Mira Okafor"
    assert by_name["alignment"]["label"] == "Rotation alignment"
    nobody = [node["label"] for node in found["nodes"] if node["id"] == str(NIL)]
    assert nobody == ["Baton, or not signed in"]
    assert {node["kind"] for node in found["nodes"]} >= {"practice", "method"}
    assert found["truncated"] is False
    ends = {node["id"] for node in found["nodes"]}
    assert all(edge["from"] in ends and edge["to"] in ends for edge in found["edges"])


async def test_a_direction_a_depth_and_a_limit_bound_the_answer(story: DataStory) -> None:
    back = await provenance(story, "volume", direction="ancestors")
    assert (names_of(story, back, "dataset"), back["truncated"]) == ({"volume", "raw"}, False)
    forward = await provenance(story, "volume", direction="descendants")
    assert names_of(story, forward, "dataset") == {"volume", "segmentation", "failed"}
    assert names_of(story, forward, "run") == set()
    near = await provenance(story, "raw", max_depth=1)
    assert (names_of(story, near, "dataset"), near["truncated"]) == ({"raw", "volume", "segmentation"}, True)
    few = await provenance(story, "volume", limit=2)
    assert (names_of(story, few, "dataset"), few["truncated"]) == ({"raw", "volume"}, True)
    assert names_of(story, few, "distribution") == set()
    missing = await story.api.get(f"/datasets/{uuid4()}/provenance")
    assert (missing.status_code, missing.json()["code"]) == (404, "DatasetNotFoundError")
    greedy = await story.api.get(f"/datasets/{story.ids['raw']}/provenance", limit=20_001)
    assert greedy.status_code == 422


async def test_the_picture_and_the_export_show_the_same(story: DataStory) -> None:
    path = f"/datasets/{story.ids['volume']}"
    found = await provenance(story, "volume", copies=True)
    picture = await story.api.get(f"{path}/provenance.svg", copies=True)
    assert picture.headers["Content-Type"] == "image/svg+xml"
    drawn = [element.text for element in ElementTree.fromstring(picture.text).iter() if element.get("class") == "t"]
    assert len(drawn) == sum(node["kind"] != "actor" for node in found["nodes"])
    assert "volume" in drawn
    export = await story.api.get(f"{path}/prov", copies=True)
    assert export.headers["Content-Type"] == "application/json"
    document = ProvDocument.deserialize(content=export.text, format="json")
    plans = sum(edge["relation"] == "hadPlan" for edge in found["edges"])
    assert "Mira Okafor" not in export.text + picture.text, "what leaves the service has ids alone"
    assert len(document.get_records()) == len(found["nodes"]) + len(found["edges"]) - plans


async def test_a_thousand_datasets_of_five_generations_in_one_answer(api: Api) -> None:
    await compare_generations(api, 1, 10, 50, 100, 839)


@pytest.mark.soak
async def test_ten_thousand_datasets_of_five_generations_in_one_answer(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    path = await compare_generations(api, 1, 10, 100, 1000, 8889)
    for limit in (1000, 10_000):
        seconds = []
        for _ in range(5):
            begun = time.process_time()
            await api.get(path, limit=limit)
            seconds.append(time.process_time() - begun)
        with capsys.disabled():
            print(f"\nprovenance of {limit} datasets over REST: p50 {median(seconds):.2f} s of processor time")
        assert median(seconds) < 10


async def compare_generations(api: Api, *sizes: int) -> str:
    """Check that one answer shows all datasets of these generations, another no more than it may, and a picture the last;
    return their path."""
    ids, streams = generations(*sizes, parents=2)
    async with runtime_pool(api.database_url, 2) as pool:
        store = PostgresStore(pool)
        await append_streams(store, streams)
        end = (await store.end()).position
        await until(lambda: store.has_passed(PROJECTIONS, end))
    path, whole = f"/datasets/{ids[0][0]}/provenance", sum(sizes)
    for limit, shown in ((whole // 10, whole // 10), (20_000, whole)):
        found = (await api.get(path, limit=limit)).json()
        assert sum(node["kind"] == "dataset" for node in found["nodes"]) == shown
        assert found["truncated"] is (shown < whole)
    picture = await api.get(f"{path}.svg", limit=20_000)
    assert f"{sizes[-1]:,} datasets" in picture.text
    return path
