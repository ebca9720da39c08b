"""Events outlive the code that wrote them: lives of every aggregate, however lived, are stored, read back and folded."""

import json
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel, JsonValue, ValidationError

from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate, Event, State, UnknownEventError
from baton.domain.recipe.patterns import AroundPattern, GridPattern, LinePattern, ListPattern
from baton.domain.registry import snake_case
from baton.domain.shared.refusals import Refusal
from baton.domain.steering.steering import SteeringObjective, SteeringObjectiveKind, SteeringSpace
from tests.support.domain.lifecycle_table import Lifecycle
from tests.support.domain.lifecycles.every import LIVES, STATELESS
from tests.support.domain.stored_bytes import stored_bytes
from tests.support.domain.world import START, World, new_id
from tests.support.tables import for_each

AGGREGATES = list(REGISTRY.aggregates.values())
EVENTS = [event for aggregate in AGGREGATES for event in aggregate.events.values()]
ALL_LIVES = (*LIVES, *STATELESS)


def test_every_aggregate_has_a_life() -> None:
    assert {life.aggregate for life in ALL_LIVES} == REGISTRY.aggregates.keys()


@st.composite
def lives(draw: st.DrawFn, life: Lifecycle) -> tuple[World, UUID]:
    """A world in which an aggregate went through any of its verbs in any order, refused ones included."""
    world, id, scene = life.reach_state({})
    verbs = st.lists(st.sampled_from(sorted(life.verbs)), max_size=12) if life.verbs else st.just([])
    for name in draw(verbs):
        command = life.command(name, scene)
        try:
            world.when(command, on=id)
        except Refusal as refusal:
            check_documented(command, refusal)
    return world, id


def check_documented(command: Any, refusal: Refusal) -> None:
    """Check that a refusal and its reason stand in the verb's documentation."""
    operation = command.operation
    assert type(refusal) in operation.refusals, refusal
    if isinstance(refusal, command.Cannot):
        states = {snake_case(option.value) for allowed in operation.allowed or () for option in type(allowed)}
        assert refusal.reason in {*operation.own_reasons, operation.state_reason, *states}, refusal


def stored_rows(events: list[Event]) -> list[tuple[str, str, datetime]]:
    return [(type(event).__name__, event.payload(), event.occurred_at) for event in events]


def read_back(aggregate: Aggregate[Any], id: UUID, rows: list[tuple[str, str, datetime]]) -> Iterator[Event]:
    for event_type, payload, occurred_at in rows:
        yield aggregate.decode(event_type, payload, id, occurred_at)


@for_each("life", ALL_LIVES)
@settings(max_examples=max(5, settings().max_examples // 5))
@given(data=st.data())
def test_any_life_folds_in_parts_and_from_the_store_as_it_was_lived(life: Lifecycle, data: st.DataObject) -> None:
    world, id = data.draw(lives(life))
    aggregate = REGISTRY.aggregates[life.aggregate]
    events = world.streams[life.aggregate, id]
    whole = aggregate.fold(events)
    for cut in range(1, len(events) + 1):
        begun = aggregate.fold(events[:cut])
        assert isinstance(begun, State)
        assert (begun.id, begun.created_at) == (id, events[0].occurred_at)
        assert aggregate.fold(events[cut:], begun) == whole
    again = list(read_back(aggregate, id, stored_rows(events)))
    assert again == events
    assert aggregate.fold(again) == whole


@for_each("life", ALL_LIVES)
def test_a_payload_names_its_aggregate_and_its_time(life: Lifecycle) -> None:
    world, id, _ = life.reach_state({})
    aggregate = REGISTRY.aggregates[life.aggregate]
    for event in world.streams[life.aggregate, id]:
        payload = json.loads(event.payload())
        assert next(iter(payload)) == aggregate.id_name
        assert UUID(payload[aggregate.id_name]) == id
        assert datetime.fromisoformat(payload["occurred_at"]) == event.occurred_at
        assert payload["occurred_at"].endswith("Z")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(lambda time: time.replace(tzinfo=UTC))
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).map(str.strip).filter(bool)


def patterns(kind: str, more: dict[str, st.SearchStrategy[Any]], **axis: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return patterns of a kind, with more fields, whose axes have these fields besides an address."""
    fields = {"kind": st.just(kind), "settle_seconds": st.floats(0, 600), "returns": st.booleans(), **more}
    one = st.fixed_dictionaries({"address": texts, **axis})
    axes = st.lists(one, min_size=1, max_size=3, unique_by=lambda axis: axis["address"])
    return st.fixed_dictionaries({**fields, "axes": axes})


counts, places = st.integers(2, 9), st.floats(-9, 9)
spans = st.fixed_dictionaries({"name": texts, "lower": st.floats(-9, 0), "upper": st.floats(1, 9)})
RULED: dict[Any, st.SearchStrategy[Any]] = {
    SteeringObjective: st.fixed_dictionaries(
        {"kind": st.sampled_from(SteeringObjectiveKind), "target_measurement_name": texts, "target_value": st.floats(0, 9)}
    ),
    SteeringSpace: st.fixed_dictionaries(
        {"axes": st.lists(spans, min_size=1, max_size=3, unique_by=lambda axis: axis["name"])}
    ),
    LinePattern: patterns("line", {"num": counts}, start=places, stop=places),
    GridPattern: patterns("grid", {}, start=places, stop=places, num=counts),
    ListPattern: patterns("list", {}, positions=st.lists(places, min_size=2, max_size=2)),
    AroundPattern: patterns("around", {}, centre=places, span=st.floats(1, 9), num=counts),
}
"""Types with rules that random fields would rarely keep."""


def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    """Anything of a type, as plain Python values."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        pattern = next((mark.pattern for mark in parts[1:] if getattr(mark, "pattern", None)), None)
        return values_of(parts[0]) if pattern is None else st.from_regex(pattern.removesuffix("$") + r"\Z")
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values_of, parts))
    if origin is Literal:
        return st.sampled_from(parts)
    if origin is tuple:
        return st.lists(values_of(parts[0]), max_size=3)
    if origin is frozenset:
        return st.lists(values_of(parts[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(values_of(parts[0]), values_of(parts[1]), max_size=3)
    if annotation in RULED:
        return RULED[annotation]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return st.fixed_dictionaries(
            {info.alias or name: values_of(info.rebuild_annotation()) for name, info in annotation.model_fields.items()}
        )
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return st.sampled_from(list(annotation))
    return {
        Any: json_values,
        JsonValue: json_values,
        UUID: st.uuids(),
        str: texts,
        int: st.integers(0, 2**31),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
        datetime: moments,
        AwareDatetime: moments,
        types.NoneType: st.none(),
    }[annotation]


@cache
def fields_of(event: type[Event]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({name: values_of(info.rebuild_annotation()) for name, info in event.model_fields.items()})


def make_event(event: type[Event], fields: dict[str, Any]) -> Event:
    """Make an event of these fields, or reject the example where its type does not admit them."""
    try:
        return event(**fields).stamp(new_id(), START)
    except ValidationError:
        reject()


@for_each("event", EVENTS)
@settings(max_examples=max(3, settings().max_examples // 8))
@given(data=st.data())
def test_any_event_is_read_back_as_it_was_written_whatever_key_a_later_release_added(
    event: type[Event], data: st.DataObject
) -> None:
    written = make_event(event, data.draw(fields_of(event)))
    payload = written.payload()
    read = event.aggregate.decode(event.__name__, payload, written.stream_id, written.occurred_at)
    assert read == written
    assert (read.stream_id, read.occurred_at) == (written.stream_id, written.occurred_at)
    assert read.payload() == payload
    with_later_key = json.dumps({"added_later": {"by": [1, None]}, **json.loads(payload)})
    assert event.aggregate.decode(event.__name__, with_later_key, written.stream_id, written.occurred_at) == written


@for_each("aggregate", AGGREGATES)
def test_an_event_nobody_knows_fails_the_load(aggregate: Aggregate[Any]) -> None:
    stranger = "ZoneDefined" if aggregate.name != "Zone" else "SurfaceDefined"
    for event_type in ("SomethingHappened", stranger):
        with pytest.raises(UnknownEventError, match=event_type):
            aggregate.decode(event_type, "{}", new_id(), START)


@pytest.mark.server
def test_sets_and_expansions_have_equal_bytes_in_every_process() -> None:
    elsewhere = subprocess.run(
        [sys.executable, "-m", "tests.support.domain.stored_bytes"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert elsewhere == stored_bytes()
    assert elsewhere.count("=") >= 8
