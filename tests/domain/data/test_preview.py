"""The preview of a dataset: which files are asked for."""

from baton.domain.data.dataset import DiscardDataset
from baton.domain.data.distribution import DiscardDistribution, MarkDistributionStale
from baton.domain.data.preview import MAX_TRIED, GetDatasetPreview, PreviewPort, RegisteredFile
from tests.support.domain.datasets import (
    CONTENT,
    copy_of,
    data_world,
    registered_copy,
    registered_dataset,
    storage,
    verify_copy,
)
from tests.support.domain.world import expect_refusal


def test_the_files_of_the_dataset_and_its_copies_are_asked_for_each_once() -> None:
    world = data_world()
    dataset, disk = registered_dataset(world), storage(world)
    places = ("file:///archive/scan.h5", CONTENT["uri"], "s3://bucket/scan.h5", "FILE:///backup/scan.h5")
    copies = [registered_copy(world, dataset, disk, uri=uri) for uri in places]
    asked = world.ask(GetDatasetPreview(), dataset)
    assert (asked.method, [file.uri for file in asked.arguments[0]]) == (
        PreviewPort.preview,
        [CONTENT["uri"], places[0], places[3]],
    )
    world.when(DiscardDistribution(reason="disk array lost"), on=copies[0])
    world.when(DiscardDataset(reason="of another sample"), on=dataset)
    assert [file.uri for file in world.ask(GetDatasetPreview(), dataset).arguments[0]] == [CONTENT["uri"], places[3]]


def test_a_dataset_that_is_no_file_asks_for_none_and_one_with_many_copies_for_a_few() -> None:
    world = data_world()
    dataset, disk = registered_dataset(world, uri="https://data.example/scan.h5"), storage(world)
    assert world.ask(GetDatasetPreview(), dataset).arguments == ((),)
    for number in range(MAX_TRIED + 2):
        registered_copy(world, dataset, disk, uri=f"file:///data/{number}.h5")
    assert len(world.ask(GetDatasetPreview(), dataset).arguments[0]) == MAX_TRIED


def test_a_file_is_asked_for_as_it_was_registered_or_verified_last_and_a_stale_one_not_at_all() -> None:
    world = data_world()
    dataset, disk = registered_dataset(world), storage(world)
    here, there = (registered_copy(world, dataset, disk, uri=uri) for uri in (CONTENT["uri"], "file:///archive/scan.h5"))
    verify_copy(world, there)
    files = world.ask(GetDatasetPreview(), dataset).arguments[0]
    assert files == (
        RegisteredFile(CONTENT["uri"], 6, copy_of(world, here).registered_at),
        RegisteredFile("file:///archive/scan.h5", 6, copy_of(world, there).verified_at),
    )
    world.when(MarkDistributionStale(reason="of another sample"), on=here)
    assert world.ask(GetDatasetPreview(), dataset).arguments[0] == files[1:]
    world.when(MarkDistributionStale(reason="of another sample"), on=there)
    with expect_refusal("DatasetPreviewUnavailableError", "changed"):
        world.ask(GetDatasetPreview(), dataset)
