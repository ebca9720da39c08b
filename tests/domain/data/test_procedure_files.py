"""The files that a ledger tells of, and what follows from them for datasets."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from baton.domain.data.dataset import DISCARDED, Dataset
from baton.domain.data.procedure_files import FileRow, ProcedureFile, dataset_name, files_in, parents_of, product_id
from tests.support.domain.datasets import data_world, registered_dataset
from tests.support.domain.world import START, World, new_id
from tests.support.tables import for_each

DIGEST = "ab" * 32


def recorded(uri: Any, at: int = 0, **said: Any) -> FileRow:
    result = {"name": "stream", "params": {"dwell": 0.02}, "result_data": {"uri": uri, **said}}
    return FileRow("action", "outcome", at, START + timedelta(seconds=at), result)


def written(uri: str, at: int = 0, inputs: tuple[str, ...] = (), **more: Any) -> FileRow:
    artifact = {"uri": uri, "checksum_algorithm": "sha256", "checksum_value": DIGEST, "byte_size": 7, **more}
    said = {"command": ["reconstruct"], "input_uris": list(inputs), "artifacts": [artifact]}
    return FileRow("compute", "outcome", at, START + timedelta(seconds=at), said)


def deposited(uri: str, name: str) -> FileRow:
    return FileRow("compute", "deposit", 0, START, {"output_ref_name": name, "artifact": {"uri": uri}})


def test_what_an_action_recorded_has_its_parameters_and_no_checksum() -> None:
    (file,) = files_in([recorded("file:///data/darks_0001.h5", events=10)])
    assert (file.name, file.recorded, file.checksum, file.byte_size) == ("darks_0001.h5", True, None, None)
    assert (file.settings, file.evidence) == ({"action": "stream", "dwell": 0.02}, {"events": 10})
    assert (file.media_type, file.protocol) == ("application/x-hdf5", "POSIX")


def test_an_action_may_tell_of_several_files_or_of_none() -> None:
    rows = [recorded(None, uris=["file:///a.h5", "file:///b.h5"]), recorded("picture 7"), recorded(7)]
    assert [file.uri for file in files_in(rows)] == ["file:///a.h5", "file:///b.h5"]


def test_what_a_program_wrote_has_what_its_artifact_says() -> None:
    output, profile = "file:///data/slice.zarr", "https://example.org/slice"
    (file,) = files_in([written(output, inputs=("file:///data/scan.h5",), conforms_to=profile), deposited(output, "slice")])
    assert (file.recorded, file.output_name, file.input_uris) == (False, "slice", ("file:///data/scan.h5",))
    assert file.checksum is not None
    assert (file.checksum.algorithm, file.checksum.value, file.byte_size) == ("sha256", DIGEST, 7)
    assert file.encoding is not None
    assert (file.encoding.media_type, file.encoding.conforms_to) == ("application/x-zarr", {profile})


def test_a_file_written_again_is_listed_once_as_it_was_written_last() -> None:
    rows = [written("file:///a.h5", 1), written("file:///b.h5", 2), written("file:///a.h5", 3, byte_size=9)]
    assert [(file.uri, file.step_index, file.byte_size) for file in files_in(rows)] == [
        ("file:///b.h5", 2, 7),
        ("file:///a.h5", 3, 9),
    ]


@for_each(
    ("uri", "media_type", "protocol"),
    [
        ("file:///data/a%20b.NXS", "application/x-hdf5", "POSIX"),
        ("s3://bucket/frames.tiff", "image/tiff", "S3"),
        ("https://store.example/x.bin", "application/octet-stream", "HTTPS"),
        ("tape:silo/7", "application/octet-stream", None),
    ],
)
def test_form_and_protocol_follow_from_the_address(uri: str, media_type: str, protocol: str | None) -> None:
    (file,) = files_in([recorded(uri)])
    assert (file.media_type, file.protocol) == (media_type, protocol)


def dataset_at(world: World, uri: str) -> Dataset:
    dataset: Dataset = world.state(Dataset, registered_dataset(world, uri=uri))
    return dataset


def test_a_program_derives_from_the_datasets_among_its_inputs() -> None:
    world = data_world()
    scan, darks, other = (dataset_at(world, f"file:///data/{name}") for name in ("scan.h5", "night/darks.h5", "other.h5"))
    discarded = replace(dataset_at(world, "file:///data/night/flats.h5"), status=DISCARDED)
    (file,) = files_in([written("file:///data/night/slice.h5", inputs=("file:///data/scan.h5", "file:///data/night/"))])
    own = replace(other, uri=file.uri)
    assert parents_of(file, [scan, darks, other, discarded, own]) == {scan.id, darks.id}


def test_ids_follow_from_procedure_and_address_and_differ_in_kind() -> None:
    procedure: Any = SimpleNamespace(id=new_id(), registered_at=START)
    one, other = ProcedureFile("file:///a", 0, True, START), ProcedureFile("file:///b", 0, True, START)
    assert product_id(procedure.id, procedure.registered_at, one, "dataset") == product_id(
        procedure.id, procedure.registered_at, one._replace(step_index=4), "dataset"
    )
    ids = [
        product_id(procedure.id, procedure.registered_at, file, what)
        for file in (one, other)
        for what in ("dataset", "distribution")
    ]
    assert len(set(ids)) == 4


def test_a_dataset_is_named_by_its_file_and_run_within_bounds() -> None:
    file = ProcedureFile("file:///data/scan.h5", 0, True, START)
    assert dataset_name(SimpleNamespace(name="Load step 1"), file) == "scan.h5 of Load step 1"  # type: ignore[arg-type]
    assert len(dataset_name(SimpleNamespace(name="r" * 200), file)) == 200  # type: ignore[arg-type]
