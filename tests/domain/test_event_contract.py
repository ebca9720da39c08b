"""Events are a contract: what was stored once loads, folds and is written again as it was, as long as there is a log."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate, Event, State, UnknownEventError
from tests.support import stored_events
from tests.support.domain.world import START
from tests.support.stored_events import StoredStream, path_of, shape_of, specimens
from tests.support.tables import for_each

EVENTS = [event for aggregate in REGISTRY.aggregates.values() for event in aggregate.events.values()]
KEPT = list(specimens())


@for_each("event", EVENTS)
def test_a_stored_payload_of_every_version_is_kept(event: type[Event]) -> None:
    for version in range(1, event.schema_version + 1):
        assert path_of(event.__name__, version).exists(), "run the suite with COLLECT_EVENTS=1, and commit what it writes"


@for_each("kept", KEPT)
def test_a_stored_stream_loads_folds_and_is_written_again_as_it_was(kept: StoredStream) -> None:
    aggregate = REGISTRY.aggregates[kept.stream_type]
    stored = kept.stored_rows()
    assert isinstance(aggregate.replay(stored), State)
    last = stored[-1]
    event = aggregate.decode(last.event_type, last.payload, last.stream_id, last.occurred_at, last.schema_version)
    again = aggregate.decode(last.event_type, event.payload(), last.stream_id, last.occurred_at, event.schema_version)
    assert again == event
    if last.schema_version == event.schema_version:
        assert json.loads(event.payload()) == json.loads(last.payload), "raise the version of the event, and add an upcaster"


@for_each("kept", KEPT)
def test_a_payload_changes_its_shape_only_with_its_version(kept: StoredStream) -> None:
    event = REGISTRY.aggregates[kept.stream_type].events[kept.event_type]
    if event.schema_version == kept.version:
        assert shape_of(event) == kept.shape, "raise the version of the event, and add an upcaster"


def test_a_stored_stream_that_is_kept_is_never_written_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stored_events, "PLACE", tmp_path)
    longer = next(kept for kept in KEPT if len(kept.events) > 1)
    stored_events.keep(longer)
    stored_events.keep(replace(longer, events=longer.events[-1:]))
    assert list(specimens()) == [longer]
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"], "no draft is left behind"


def test_an_event_at_a_later_version_needs_an_upcaster_from_each_earlier_one() -> None:
    with pytest.raises(TypeError, match="give an upcaster"):
        type("Moved", (Event,), {}, version=3, upcasters={1: dict})


class Lamp(State):
    brightness: float


def lamp() -> Aggregate[Any]:
    """An aggregate that is registered nowhere."""
    aggregate: Aggregate[Any] = object.__new__(Aggregate)
    aggregate.name, aggregate.events = "Lamp", {}
    return aggregate


def test_older_payloads_are_brought_up_step_by_step() -> None:
    aggregate = lamp()

    class LampDimmed(
        Event,
        version=3,
        upcasters={1: lambda old: {"percent": old["brightness"] * 100}, 2: lambda old: {**old, "reason": "not said"}},
    ):
        percent: float
        reason: str

    aggregate.events["LampDimmed"] = LampDimmed
    for version, payload in {1: {"brightness": 0.5}, 2: {"percent": 50}, 3: {"percent": 50, "reason": "not said"}}.items():
        event = aggregate.decode("LampDimmed", json.dumps(payload), UUID(int=1), START, version)
        assert (event.percent, event.reason) == (50, "not said")  # type: ignore[attr-defined]
    with pytest.raises(UnknownEventError, match="stored at version 4; this build knows 3"):
        aggregate.decode("LampDimmed", "{}", UUID(int=1), START, 4)
