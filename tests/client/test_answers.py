"""Answers as the client reads them: the members of the JSON with ids and times, whichever version of it wrote them."""

import json
import pickle
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from itertools import product
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.client import wording
from baton.client.answers import ServiceAnswer, form_class, json_value, read_value
from baton.client.launching import DEPRECATED
from baton.client.parameter_schemas import value_faults
from baton.client.queue_items import AHEAD
from baton.client.watching import FRAME_FORMS, LIVE
from baton.domain.conduct import estimates, messages, views
from baton.domain.conduct.frames import FrameKind
from baton.domain.procedure.procedure import UNDER_WAY as UNDER_WAY_PROCEDURES
from baton.domain.procedure.procedure import PendingRequest
from baton.domain.queue import items
from baton.domain.recipe import lifecycle
from baton.domain.run import run
from baton.domain.shared.schema import violations_of
from baton.domain.step.results import Failure

ID, OTHER_ID = uuid4(), uuid4()


def test_ids_and_times_are_those_of_python_and_states_are_texts() -> None:
    event = read_value("EventView", {"event_id": str(ID), "recorded_at": "2026-05-20T14:30:00.5Z", "event_type": "RunHeld"})
    assert event.event_id == ID
    assert event.recorded_at == datetime(2026, 5, 20, 14, 30, 0, 500000, tzinfo=UTC)
    assert event.event_type == "RunHeld"
    assert event.principal_id is None


def test_sets_mappings_and_lists_are_read_with_what_is_in_them() -> None:
    view = read_value(
        "AssetView",
        {
            "asset_id": str(ID),
            "family_ids": [str(ID), str(OTHER_ID)],
            "schema_revisions": {str(ID): 3},
            "ports": [{"name": "out", "direction": "Output"}],
            "signal_limits": {"x": {"low": 1.0, "high": None}},
        },
    )
    assert view.family_ids == frozenset({ID, OTHER_ID})
    assert view.schema_revisions == {ID: 3}
    assert view.ports[0].name == "out"
    assert view.signal_limits["x"].low == 1.0
    assert hash(view.ports[0]) == hash(read_value("Port", {"name": "out", "direction": "Output"}))


def test_one_of_several_forms_is_known_by_its_marks_and_its_keys() -> None:
    steps = [
        {"kind": "setpoint", "address": "m1", "value": {"__binding__": "angle"}, "verify": True},
        {"kind": "action", "name": "expose", "params": {"n": 3, "t": {"__binding__": "exposure"}}},
        {"kind": "setpoint", "address": "m1", "value": [1, 2], "verify": {"tolerance": 0.1}},
    ]
    recipe = read_value("RecipeView", {"recipe_id": str(ID), "steps": steps, "closing_steps": []})
    assert [type(step).__name__ for step in recipe.steps] == ["RecipeSetpointStep", "RecipeActionStep", "RecipeSetpointStep"]
    assert recipe.steps[0].value.name == "angle"
    assert recipe.steps[2].value == (1, 2)
    pairs = zip(recipe.to_dict()["steps"], steps, strict=True)
    written = [{name: one for name, one in step.items() if name in given} for step, given in pairs]
    assert written == [*steps[:2], {**steps[2], "verify": written[2]["verify"]}]


def test_a_value_of_another_version_stays_as_it_came() -> None:
    view = read_value("EventView", {"event_id": "no id", "recorded_at": 7, "newer": 1})
    assert (view.event_id, view.recorded_at) == ("no id", 7)
    assert not hasattr(view, "newer")
    kept = read_value("EventView", {"newer": 1}, keep_others=True)
    assert kept.newer == 1


def test_an_answer_is_a_value() -> None:
    first, second = (read_value("SupplyItem", {"supply_id": str(ID), "name": "Beam"}) for _ in range(2))
    assert first == second
    assert first != read_value("SupplyItem", {"supply_id": str(OTHER_ID), "name": "Beam"})
    assert pickle.loads(pickle.dumps(first)) == first
    assert type(pickle.loads(pickle.dumps(first))) is form_class("SupplyItem")
    assert repr(first).startswith(f"SupplyItem(supply_id={ID!r}, ")
    assert first.to_dict()["supply_id"] == str(ID)
    with pytest.raises(AttributeError, match="SupplyItem is an answer of the service"):
        first.name = "Other"
    page = read_value("Page[SupplyItem]", {"items": [{"supply_id": str(ID)}], "next_cursor": None})
    assert pickle.loads(pickle.dumps(page)) == page


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Place:
    at: UUID
    parts: tuple[Any, ...]


class Count:
    def __index__(self) -> int:
        return 7


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (ID, str(ID)),
        (datetime(2026, 5, 20, 14, 30, tzinfo=UTC), "2026-05-20T14:30:00Z"),
        (date(2026, 5, 20), "2026-05-20"),
        (timedelta(minutes=1.5), 90.0),
        (Colour.RED, "red"),
        (Place(ID, (Colour.RED, frozenset({2, 1}))), {"at": str(ID), "parts": ["red", [1, 2]]}),
        ({ID: None}, {str(ID): None}),
        (Count(), 7),
        (form_class("BindingRef")(name="angle"), {"__binding__": "angle"}),
    ],
    ids=str,
)
def test_arguments_are_written_as_the_service_reads_them(value: Any, written: Any) -> None:
    assert json_value(value) == written
    json.dumps(json_value(value))


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        json_value(object())


def answer_of(model: Any) -> ServiceAnswer:
    """Return a model of the domain as the client reads it."""
    read: ServiceAnswer = read_value(type(model).__name__, model.model_dump(mode="json", by_alias=True))
    return read


def test_the_client_says_the_same_as_the_service() -> None:
    for seconds, basis, to_cap in product((None, 0.0, 4.9, 5, 58, 61, 3601, 7300), estimates.EstimateBasis, (True, False)):
        found = estimates.Estimate.model_construct(remaining_seconds=seconds, basis=basis, to_cap=to_cap)
        known = SimpleNamespace(remaining_seconds=seconds, basis=basis.value, to_cap=to_cap)
        assert wording.remaining_text(known) == estimates.remaining_text(found)
    now = datetime(2026, 5, 20, 14, 30, tzinfo=UTC)
    step = views.StepInProgress(step_index=1, closing=False, kind="action", label="expose")
    for request, at, until in product(PendingRequest, (None, step), (None, now)):
        pending = views.PendingRequestView(request=request, since=now, step=at, until=until)
        assert wording.pending_text(answer_of(pending)) == views.pending_text(pending)
    for index in (None, 3):
        failure = Failure(source_kind="action", step_index=index, target="expose", error_class="Fault", message="m" * 600)
        assert wording.step_failure_text(answer_of(failure)) == messages.reason_of(failure)


def test_the_client_knows_the_states_that_it_asks_about() -> None:
    assert tuple(LIVE) == tuple(run.LIVE) == tuple(UNDER_WAY_PROCEDURES)
    assert set(AHEAD) == set(items.AHEAD)
    assert lifecycle.DEPRECATED == DEPRECATED
    assert FRAME_FORMS.keys() == set(FrameKind)


NAMES = st.sampled_from(["a", "b", "c"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
LIMITS = {
    "type": st.sampled_from(["integer", "number", "string", "boolean", "array", "object", "null", ["integer", "null"]]),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "minimum": st.integers(-2, 2),
    "maximum": st.integers(-2, 2),
    "minLength": st.integers(0, 2),
    "maxLength": st.integers(0, 2),
    "minItems": st.integers(0, 2),
    "maxItems": st.integers(0, 2),
    "unit": st.just({"system": "udunits", "code": "mm"}),
}
LEVELS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.fixed_dictionaries({}, optional=LIMITS),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            **LIMITS,
            "items": inner,
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans(),
        },
    ),
    max_leaves=5,
)


@given(LEVELS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_the_client_judges_values_as_the_service_does(schema: dict[str, Any], values: dict[str, Any]) -> None:
    found = [(fault.place, fault.sentence) for fault in value_faults(schema, values)]
    assert sorted(set(found)) == sorted({(one.place, one.sentence) for one in violations_of(schema, values)})
