"""Whatever documents come, the callback raises nothing, and the good ones behind them are translated as if alone."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given

from baton_bluesky import BatonWitness
from baton_bluesky.journal import RunJournal, run_journals
from baton_bluesky.reduction import MAX_DOCUMENT, reduce_document
from baton_bluesky.sender import Delivery
from baton_bluesky.translation import WitnessRequest
from tests.support.witness.documents import (
    BEGAN,
    Document,
    RaisingLength,
    RaisingMapping,
    cyclic,
    hostile_streams,
    scan_documents,
    values,
)


@contextmanager
def journal_of(stream: list[Document], **options: Any) -> Iterator[tuple[BatonWitness, list[RunJournal]]]:
    """A witness that took these documents, and the journals of their runs."""
    with TemporaryDirectory() as directory:
        witness = BatonWitness("http://127.0.0.1:1", "plan", journal=directory, starts_sender=False, **options)
        for name, document in stream:
            witness(name, document)
        witness.close()
        yield witness, run_journals(Path(directory))


def requests_of(journal: RunJournal) -> list[WitnessRequest]:
    """Return what a run's journal leads to."""
    delivery, found = Delivery.load(journal), list[WitnessRequest]()
    while True:
        before = delivery.position
        delivery.read()
        found += delivery.requests
        delivery.requests.clear()
        if delivery.position == before:
            return found


def requests_of_run(journals: list[RunJournal], uid: str) -> list[WitnessRequest]:
    """Return what the journal of the run with this uid leads to."""
    by_uid = {found[0].body["document_uid"]: found for found in map(requests_of, journals) if found}
    return by_uid[uid]


@given(stream=hostile_streams())
def test_no_stream_of_documents_raises_or_spoils_a_good_scan_among_it(stream: list[Document]) -> None:
    with journal_of(list(scan_documents("good", events=3))) as (_, journals):
        alone = requests_of_run(journals, "good")
    with journal_of(stream) as (witness, journals):
        among = requests_of_run(journals, "good")
        json.dumps([requests_of(journal) for journal in journals])
        assert witness.standing().journaled > 0
    good = [request for request in among if request.kind != "change" or request.body["change"] != "paused"]
    ended = [request.body for request in good if request.body.get("change") == "ended"]
    assert good == alone
    assert len(ended) == 1


@given(value=values())
def test_what_is_reduced_is_small_plain_data(value: Any) -> None:
    plain, _ = reduce_document({"value": value})
    assert len(json.dumps(plain, allow_nan=False)) < 2 * MAX_DOCUMENT


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (RaisingLength(), {"kind": "RaisingLength", "shape": None}),
        (b"12345", {"kind": "bytes", "shape": [5]}),
        ({1, 2}, {"kind": "set", "shape": [2]}),
        ("x" * 10**7, "x" * 1_000),
        ("a\x00b", "a\N{REPLACEMENT CHARACTER}b"),
        ({"a": [1, 2.5, True, None]}, {"a": [1, 2.5, True, None]}),
        (RaisingMapping(a=1), {"a": 1}),
    ],
)
def test_a_value_becomes_plain_data(value: Any, plain: Any) -> None:
    assert reduce_document({"value": value}) == ({"value": plain}, 0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400])
def test_what_is_no_finite_number_is_left_out_and_counted(value: Any) -> None:
    assert reduce_document({"value": value, "other": 1}) == ({"other": 1}, 1)


def test_numbers_of_numpy_are_numbers_and_its_arrays_are_not_read() -> None:
    numpy = pytest.importorskip("numpy", reason="numpy is not installed, so nothing of it comes in documents.")
    given = {
        "scalar": numpy.float32(1.5),
        "flag": numpy.bool_(True),
        "zero": numpy.array(3),
        "image": numpy.zeros((2048, 2048)),
    }
    plain, _ = reduce_document(given)
    assert plain == {"scalar": 1.5, "flag": True, "zero": 3, "image": {"kind": "ndarray", "shape": [2048, 2048]}}


def test_what_holds_itself_is_cut_at_a_depth_and_a_size() -> None:
    plain, left_out = reduce_document({"value": cyclic(), "behind": 1})
    assert len(json.dumps(plain)) < 2 * MAX_DOCUMENT
    assert left_out > 0


def test_a_descriptor_of_a_hundred_thousand_keys_keeps_two_hundred_and_counts_the_rest() -> None:
    documents = scan_documents(channels=100_000, events=1)
    with journal_of(documents) as (_, [journal]):
        requests = requests_of(journal)
    end = requests[-1].body["end"]
    readings = [entry for request in requests if request.kind == "append" for entry in request.body["entries"]]
    assert len([entry for entry in readings if entry["sampling_procedure"] == "monitor"]) == 200
    assert end["left_out"] >= 2 * (100_000 - 200)


@pytest.mark.parametrize(
    ("kind", "documents"),
    [
        ("stop", [("stop", {"run_start": "unknown", "time": BEGAN})]),
        ("start", [("start", {"time": BEGAN})]),
        ("start", [("start", {"uid": "twice", "time": BEGAN}), ("start", {"uid": "twice", "time": BEGAN})]),
        ("stop", [*scan_documents(), scan_documents()[-1]]),
        ("event", [scan_documents()[2]]),
        ("unknown", [("bulk_events", {})]),
        ("event", [*scan_documents()[:2], ("event", {**scan_documents()[2][1], "time": "now"})]),
        ("event", [*scan_documents()[:2], ("event", {**scan_documents()[2][1], "seq_num": 10**5000})]),
        ("descriptor", [scan_documents()[0], ("descriptor", {**scan_documents()[1][1], "data_keys": None})]),
    ],
)
def test_a_bad_document_is_counted_under_its_kind(kind: str, documents: list[Document]) -> None:
    with journal_of(documents) as (witness, _):
        assert Counter(witness.standing().faults) == {kind: 1}


@pytest.mark.parametrize("time", [BEGAN + 86_400, -5.0, 0.0])
def test_a_clock_that_is_wrong_is_recorded_as_it_is(time: float) -> None:
    start, *rest = scan_documents(events=1)
    with journal_of([("start", {**start[1], "time": time}), *rest]) as (_, [journal]):
        [begin, *_] = requests_of(journal)
    assert datetime.fromisoformat(begin.body["began_at"]).timestamp() == time
