"""Bluesky's documents as pure functions: whatever is on record, what they hold passes the schemas of event-model."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from event_model import DocumentNames, schema_validators
from hypothesis import given
from hypothesis import strategies as st

from baton.domain.data import bluesky_documents as bluesky
from baton.domain.data.acquisition import frame_layout
from baton.domain.data.bluesky_documents import NamedDocument
from baton.domain.run.logbooks import Observation
from baton.domain.run.run import Run, RunStarted, RunTruncated, RunWitnessed
from tests.support.domain.world import new_id
from tests.support.tables import for_each

AT = datetime(2026, 10, 6, 8, 0, tzinfo=UTC)
TYPED = (
    "hints",
    "scan_id",
    "sample",
    "group",
    "owner",
    "project",
    "data_session",
    "data_groups",
    "projections",
    "data_type",
)
keys = st.sampled_from([*TYPED, "dimensions", "a.b", "c/d", "", "plan_args", "uid", "time", "baton"]) | st.text(max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
channels = st.sampled_from(["bl7:m1.RBV", "primary/det", "det"]) | st.text(min_size=1, max_size=255)


def check(document: NamedDocument) -> dict[str, Any]:
    """Return a document that its schema lets through, and that is JSON."""
    name, content = document
    read: dict[str, Any] = json.loads(json.dumps(content))
    schema_validators[DocumentNames[name]].validate(read)
    return read


RUN_ID = UUID("0197a100-0000-7000-8000-000000000001")
STARTED = RunStarted(
    name="Load step 1",
    plan_id=RUN_ID,
    subject_id=None,
    raid=None,
    override_parameters={},
    effective_parameters={},
    parameters_schema_revision=1,
    pinned_calibration_ids=frozenset(),
    trigger_source=None,
    external_refs={},
    acknowledged_cautions=(),
    campaign_id=None,
    decided_by_decision_id=None,
).stamp(RUN_ID, AT)
RUN = Run.aggregate.fold([STARTED])
WITNESSED = RunWitnessed(
    name="count 1",
    plan_id=RUN_ID,
    subject_id=None,
    document_uid="abc",
    plan_name="count",
    began_at=AT,
    holdable=False,
    simulated=None,
    late=False,
    override_parameters={},
    effective_parameters={},
    parameters_schema_revision=1,
    external_refs={},
    metadata={},
    acknowledged_cautions=(),
    gates=(),
    override_reason=None,
    witnessed_by=RUN_ID,
).stamp(RUN_ID, AT)


@given(parameters=st.dictionaries(keys, values, max_size=4), references=st.dictionaries(keys, st.text(), max_size=3))
def test_any_parameters_pass(parameters: dict[str, Any], references: dict[str, str]) -> None:
    changed = STARTED.model_copy(update={"effective_parameters": parameters, "external_refs": references})
    told = check(bluesky.start_document(RUN, changed.stamp(RUN.id, AT), "Spring block", None))
    if not any(bluesky.UNFIT.search(key) for key in parameters):
        assert told["plan_args"].keys() == parameters.keys()


@given(metadata=st.dictionaries(keys, values, max_size=6))
def test_any_metadata_of_a_witnessed_run_pass(metadata: dict[str, Any]) -> None:
    told = check(bluesky.witnessed_start_document(RUN, WITNESSED, metadata))
    assert (told["uid"], told["time"]) == ("abc", AT.timestamp())


@given(one=channels, other=channels)
def test_names_of_streams_are_safe_and_tell_channels_apart(one: str, other: str) -> None:
    names = [bluesky.stream_name(channel, "monitor") for channel in (one, other)]
    assert (names[0] == names[1]) == (one == other)
    assert all(not bluesky.STREAM_NAME.search(name) for name in names)


@given(channel=channels, value=st.floats(allow_nan=False, allow_infinity=False), units=st.none() | st.text(max_size=5))
def test_any_reading_passes(channel: str, value: float, units: str | None) -> None:
    known: dict[str, Any] = {"channel_name": channel, "value": value, "units": units, "simulated": False}
    reading = Observation.model_construct(
        event_id=new_id(), run_id=RUN.id, sampled_at=AT, sampling_procedure="monitor", **known
    )
    descriptor = check(bluesky.reading_descriptor(reading))
    event = check(bluesky.reading_event(reading, reading.event_id, 1))
    assert event["descriptor"] == descriptor["uid"]
    assert event["data"].keys() == descriptor["data_keys"].keys() == {bluesky.fit_key(channel)}


LAYOUT = {"path": "/exchange/data", "count": 3, "shape": [4, 5], "dtype": "<u2"}


@for_each(
    "frames",
    [
        None,
        7,
        {},
        {**LAYOUT, "shape": [0, 5]},
        {**LAYOUT, "dtype": "object"},
        {**LAYOUT, "path": ""},
        {**LAYOUT, "count": -1},
        {**LAYOUT, "more": 1},
    ],
)
def test_evidence_of_another_form_tells_no_layout(frames: object) -> None:
    assert frame_layout({"frames": frames}) is None
    known = frame_layout({"frames": LAYOUT})
    assert known is not None
    assert known.shape == (4, 5)


def test_what_died_by_itself_failed_at_the_time_it_did() -> None:
    last = AT - timedelta(minutes=5)
    told = {"reason": "power cut", "decided_by_decision_id": None, "actuation_kind": None}
    ended = RunTruncated(**told, interrupted_at=last).stamp(RUN_ID, AT)
    stop = check(bluesky.stop_document(RUN, ended, failed=False, adjusted=False))
    assert (stop["exit_status"], stop["time"], stop["reason"]) == ("fail", last.timestamp(), "power cut")
