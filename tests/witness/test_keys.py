"""Ids of a witness follow from documents, and are those that the service derives."""

from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.data.run_files import RunFile
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.start.run_witness import WitnessRun
from baton_bluesky import keys
from tests.support.witness.documents import BEGAN

TIMES = st.floats(min_value=0, max_value=4e9)


@given(time=TIMES, uid=st.text(min_size=1, max_size=50).filter(str.isprintable))
def test_the_id_of_a_run_is_the_one_that_the_service_makes(time: float, uid: str) -> None:
    began_at = keys.timestamp_text(time)
    asked: dict[str, Any] = {"document_uid": uid, "plan_id": UUID(int=7), "name": "scan", "began_at": began_at}
    command = WitnessRun.model_construct(**{**asked, "began_at": datetime.fromisoformat(began_at)})
    assert keys.run_id(uid, began_at) == str(command.run_id)


@given(milliseconds=st.integers(-(10**14), 10**14), name=st.text(max_size=30))
def test_ids_are_derived_as_the_service_derives_them(milliseconds: int, name: str) -> None:
    derived = keys.derived_uuid7(milliseconds, "bluesky-reading", name.encode(errors="replace").decode())
    assert derived == str(derived_uuid7(milliseconds, "bluesky-reading", name.encode(errors="replace").decode()))
    assert UUID(derived).version == 7


def test_what_is_measured_again_after_a_rewind_is_another_reading() -> None:
    first = keys.reading_id("run", "primary", 1, BEGAN, "stage")
    assert first == keys.reading_id("run", "primary", 1, BEGAN, "stage")
    others = [
        ("run", "primary", 1, BEGAN + 1, "stage"),
        ("run", "primary", 2, BEGAN, "stage"),
        ("run", "monitor", 1, BEGAN, "stage"),
    ]
    assert len({first, *(keys.reading_id(*other) for other in others)}) == 4


@given(time=TIMES, shift=st.floats(0, 0.099))
def test_every_reading_of_a_tenth_of_a_second_has_one_id(time: float, shift: float) -> None:
    ids = {keys.thinned_reading_id("run", "primary", one, "stage") for one in (time, time + shift)}
    assert len(ids) == len({keys.bucket_of(time), keys.bucket_of(time + shift)})


@pytest.mark.parametrize(
    "uri",
    [
        "file://localhost/data/frames.h5",
        "https://mira:secret@store.example/frames.h5?sig=abc#top",
        "s3://bucket/frames.h5",
        "/data/frames.h5",
        "not a uri",
    ],
)
def test_a_file_has_the_address_that_the_service_gives_it(uri: str) -> None:
    assert keys.file_address(uri) == RunFile(uri=uri).address
    assert "secret" not in keys.file_address(uri)
