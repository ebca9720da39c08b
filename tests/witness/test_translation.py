"""What each document of a run becomes, as requests."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton_bluesky.translation import RequestKind, WitnessRequest
from tests.support.witness.documents import BEGAN, Document, scan_documents
from tests.witness.test_hostile_documents import journal_of, requests_of


def requests_for(stream: list[Document], **options: Any) -> list[WitnessRequest]:
    """Return the requests that the documents of one run lead to."""
    with journal_of(stream, **options) as (_, [journal]):
        return requests_of(journal)


def of_kind(requests: list[WitnessRequest], kind: RequestKind) -> list[dict[str, Any]]:
    """Return the bodies of the requests of a kind."""
    return [request.body for request in requests if request.kind is kind]


def readings(requests: list[WitnessRequest], sampling: str = "monitor") -> list[dict[str, Any]]:
    """Return the readings among some requests."""
    found = [entry for body in of_kind(requests, RequestKind.APPEND) for entry in body["entries"]]
    return [entry for entry in found if entry["sampling_procedure"] == sampling]


def with_fields(stream: list[Document], kind: str, **fields: Any) -> list[Document]:
    """Return a stream whose documents of a kind have other fields."""
    return [(name, {**document, **fields} if name == kind else document) for name, document in stream]


def test_a_start_says_what_the_run_is() -> None:
    stream = scan_documents(
        beamline="bl7", sample={"name": "Bar 7"}, operator="Mira Okafor", plan_args={"num": 5, "detectors": ["<camera>"]}
    )
    [begin, *_] = requests_for(stream, metadata=("plan_name", "sample"), simulated=False)
    assert (begin.kind, begin.plan, begin.subject) == (RequestKind.BEGIN, "plan", "Bar 7")
    assert begin.body == {
        "document_uid": "scan-1",
        "plan_name": "scan",
        "name": "scan 7, bl7",
        "began_at": "2026-09-21T14:13:20+00:00",
        "holdable": False,
        "simulated": False,
        "parameters": {"num": 5, "detectors": ["<camera>"]},
        "metadata": {"plan_name": "scan", "sample": {"name": "Bar 7"}},
        "external_refs": {"bluesky": "scan-1", "bluesky_scan": "7"},
    }


def test_what_a_gate_wrote_into_the_start_goes_along() -> None:
    [begin, *_] = requests_for(scan_documents(baton={"holdable": True, "override_reason": "commissioning"}))
    assert (begin.body["holdable"], begin.body["override_reason"]) == (True, "commissioning")


def test_a_scan_that_no_plan_is_named_for_is_not_recorded() -> None:
    with journal_of([], observe="none") as (witness, _):
        witness.plan = {"count": "another"}
        for document in scan_documents():
            witness(*document)
        witness.flush()
        assert (witness.standing().faults, witness.standing().journaled) == ({}, 0)


def test_readings_have_the_unit_the_time_and_the_channel_of_their_key() -> None:
    stream = scan_documents(events=1, channels=1)
    event = stream[2][1]
    event["timestamps"] = {"channel_0": BEGAN + 0.05}
    [reading] = readings(requests_for(stream, observe="all"))
    assert (reading["channel_name"], reading["value"], reading["units"]) == ("channel_0", 0.0, "mm")
    assert reading["sampled_at"] == "2026-09-21T14:13:20.050000+00:00"
    [elsewhere] = readings(requests_for(with_fields(stream, "descriptor", name="monitor"), observe="all"))
    assert elsewhere["channel_name"] == "monitor/channel_0"
    [before] = [
        one
        for one in readings(requests_for(with_fields(stream, "descriptor", name="baseline")), "baseline")
        if one["channel_name"].startswith("baseline/")
    ]
    assert before["value"] == 0.0


def test_numeric_configuration_is_a_baseline() -> None:
    [reading] = readings(requests_for(scan_documents()), "baseline")
    assert (reading["channel_name"], reading["value"]) == ("stage.velocity", 2.5)


@pytest.mark.parametrize(
    ("source", "declared", "reading", "run"),
    [
        ("soft://x", False, True, True),
        ("ca://x", False, False, False),
        ("mock+ca://x", None, True, True),
        ("ca://x", True, True, False),
    ],
)
def test_what_comes_from_a_simulation_is_marked(source: str, declared: bool | None, reading: bool, run: bool) -> None:
    keys = {"channel_0": {"source": source, "dtype": "number", "shape": []}}
    stream = with_fields(scan_documents(events=1, channels=1), "descriptor", data_keys=keys)
    requests = requests_for(stream, simulated=declared)
    assert [one.get("simulated", False) for one in readings(requests)] == [reading]
    assert requests[-1].body["end"]["simulated_sources"] is run


@given(period=st.sampled_from([0.001, 0.013, 0.1, 0.5]), events=st.integers(1, 60))
def test_of_a_thinned_stream_the_first_reading_of_each_tenth_of_a_second_is_kept(period: float, events: int) -> None:
    stream = scan_documents(events=events, period=period, channels=2)
    times = [document["time"] for name, document in stream if name == "event"]
    requests = requests_for(stream)
    kept = readings(requests)
    assert len(kept) == 2 * len({int(time * 10) for time in times})
    assert len(kept) + requests[-1].body["end"]["thinned"] == 2 * events
    assert requests[-1].body["end"]["streams"] == {"primary": {"announced": events, "recorded": events}}


def test_nothing_is_observed_where_nothing_is_asked_for() -> None:
    requests = requests_for(scan_documents(), observe="none")
    assert readings(requests) == []
    assert requests[-1].body["end"]["streams"]["primary"]["recorded"] == 5


def test_resources_of_one_file_are_one_file_with_what_was_found() -> None:
    *stream, stop = scan_documents()
    uri = "file://mira:secret@localhost/data/frames.h5"
    for number, key in enumerate(("channel_0", "channel_1")):
        parameters = {"dataset": f"/entry/{key}", "chunk_shape": [1, 4, 4], "secret": "left out"}
        resource = {
            "uid": f"r{number}",
            "run_start": "scan-1",
            "data_key": key,
            "mimetype": "application/x-hdf5",
            "uri": uri,
        }
        stream.append(("stream_resource", {**resource, "parameters": parameters}))
        datum = {"stream_resource": f"r{number}", "descriptor": "scan-1-primary", "uid": f"r{number}/0"}
        stream.append(("stream_datum", {**datum, "indices": {"start": 0, "stop": 4}, "seq_nums": {"start": 1, "stop": 5}}))
    [files] = of_kind(requests_for([*stream, stop]), RequestKind.FILES)
    [file] = files["files"]
    assert (file["uri"], file["mimetype"]) == ("file://localhost/data/frames.h5", "application/x-hdf5")
    assert (file["source"], file["settings"]) == ("ca://BL7:channel_0", {"velocity": 2.5, "mode": "fast"})
    found = {"frames_found": 4, "chunk_shape": [1, 4, 4]}
    assert file["evidence"] == {
        "data_keys": {key: {**found, "path": f"/entry/{key}"} for key in ("channel_0", "channel_1")},
        "frames_announced": 5,
    }


def test_a_resource_of_the_older_form_is_a_path_below_its_root() -> None:
    *stream, stop = scan_documents()
    older = {"uid": "r", "spec": "AD_HDF5", "root": "/data", "resource_path": "bl7/frames.h5", "resource_kwargs": {}}
    stream += [("resource", older), ("datum", {"resource": "r", "datum_id": "r/0", "datum_kwargs": {}})]
    stream += [("datum_page", {"resource": "r", "datum_id": ["r/1", "r/2"], "datum_kwargs": {}})]
    [files] = of_kind(requests_for([*stream, stop]), RequestKind.FILES)
    assert files["files"][0]["uri"] == "file://localhost/data/bl7/frames.h5"
    assert files["files"][0]["evidence"]["data_keys"]["r"] == {"frames_found": 3}


def test_a_page_of_events_is_its_events() -> None:
    start, descriptor, *events, stop = scan_documents()
    rows = [document for _, document in events]
    page = {
        "descriptor": "scan-1-primary",
        **{key: [row[key] for row in rows] for key in ("uid", "seq_num", "time")},
        **{part: {key: [row[part][key] for row in rows] for key in rows[0][part]} for part in ("data", "timestamps")},
    }
    paged = requests_for([start, descriptor, ("event_page", page), stop], observe="all")
    assert paged == requests_for([start, descriptor, *events, stop], observe="all")


@pytest.mark.parametrize("status", ["success", "abort", "fail", "strange", None])
def test_an_end_says_how_it_was(status: str | None) -> None:
    requests = requests_for(with_fields(scan_documents(), "stop", exit_status=status, reason=" stalled\x00 "))
    end = requests[-1].body["end"]
    assert end["exit_status"] == (status if status in ("success", "abort", "fail") else "fail")
    assert end["reason"] == "stalled\N{REPLACEMENT CHARACTER}"
