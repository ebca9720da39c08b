"""The preview of a dataset: which files are asked for."""

from baton.domain.data.dataset import DiscardDataset
from baton.domain.data.distribution import DiscardDistribution
from baton.domain.data.preview import MAX_TRIED, GetDatasetPreview
from baton.domain.shared.ports import Ports
from baton.domain.shared.reads import AskPort
from tests.support.domain.datasets import CONTENT, data_world, registered_copy, registered_dataset, storage


def test_the_files_of_the_dataset_and_its_copies_are_asked_for_each_once() -> None:
    world = data_world()
    dataset, disk = registered_dataset(world), storage(world)
    places = ("file:///archive/scan.h5", CONTENT["uri"], "s3://bucket/scan.h5", "FILE:///backup/scan.h5")
    copies = [registered_copy(world, dataset, disk, uri=uri) for uri in places]
    asked = world.ask(GetDatasetPreview(), dataset)
    assert asked == AskPort(Ports.preview, ((CONTENT["uri"], places[0], places[3]),))
    world.when(DiscardDistribution(reason="disk array lost"), on=copies[0])
    world.when(DiscardDataset(reason="of another sample"), on=dataset)
    assert world.ask(GetDatasetPreview(), dataset).arguments == ((CONTENT["uri"], places[3]),)


def test_a_dataset_that_is_no_file_asks_for_none_and_one_with_many_copies_for_a_few() -> None:
    world = data_world()
    dataset, disk = registered_dataset(world, uri="https://data.example/scan.h5"), storage(world)
    assert world.ask(GetDatasetPreview(), dataset).arguments == ((),)
    for number in range(MAX_TRIED + 2):
        registered_copy(world, dataset, disk, uri=f"file:///data/{number}.h5")
    assert len(world.ask(GetDatasetPreview(), dataset).arguments[0]) == MAX_TRIED
