"""Every field that a surface shows has a description, short enough for a model, and numbers say what they count."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from baton.api.mcp.tools import arguments_schema
from baton.beamline.schema import file_schema
from baton.domain.contexts import REGISTRY
from baton.domain.shared.field_meanings import MEANINGS, TOPICS, describe, meaning_of, written_meaning
from baton.domain.shared.json_schema import VALUES
from tests.support.api.openapi_document import document
from tests.support.tables import for_each

pytestmark = pytest.mark.slow

LONGEST = 140
COUNTED = re.compile(
    r"\b(seconds|milliseconds|US dollars|bytes|in mm|in rad|numbers?|year|fraction|index|the unit of|the units? that|"
    r"in its unit|the id of|unit beside it|units? of the|output units|output unit|of its stream)\b",
    re.IGNORECASE,
)
"""What the description of a number says: its unit, or that it is a number of something or a place in an order."""


def fields_of(form: Any, model: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every property and parameter of a document, named by its model and its name, with its schema."""
    match form:
        case {"name": str(name), "in": str(), "schema": dict(schema)}:
            yield f"{model}.{name}", {**schema, "description": form.get("description") or schema.get("description", "")}
        case {"properties": dict(properties)}:
            title = form.get("title", model)
            yield from ((f"{title}.{name}", schema) for name, schema in properties.items() if isinstance(schema, dict))
    match form:
        case dict():
            for key, part in form.items():
                if key not in VALUES:
                    yield from fields_of(part, form.get("operationId", model) if key != "properties" else model)
        case list():
            for part in form:
                yield from fields_of(part, model)


def is_number(schema: dict[str, Any]) -> bool:
    options = [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    types = {option.get("type") for option in options} - {"null", None}
    return bool(types) and types <= {"integer", "number"}


@cache
def fields(surface: str) -> dict[str, dict[str, Any]]:
    """Return the fields that a surface shows, by model and name."""
    return dict(fields_of(SURFACES[surface]()))


SURFACES: dict[str, Callable[[], Any]] = {
    "OpenAPI": document,
    "MCP": lambda: [{**arguments_schema(operation), "title": operation.input.__name__} for operation in REGISTRY],
    "beamline file": file_schema,
}


@for_each("surface", SURFACES)
def test_every_field_is_described(surface: str) -> None:
    assert len(fields(surface)) > 50, "the walk finds some"
    assert sorted(name for name, schema in fields(surface).items() if not schema.get("description")) == []


@for_each("surface", SURFACES)
def test_no_description_is_long(surface: str) -> None:
    described = {name: schema.get("description", "") for name, schema in fields(surface).items()}
    assert {name: text for name, text in described.items() if len(text) > LONGEST} == {}


@for_each("surface", SURFACES)
def test_every_number_says_what_it_counts(surface: str) -> None:
    numbers = {name: schema["description"] for name, schema in fields(surface).items() if is_number(schema)}
    assert {name: text for name, text in numbers.items() if not COUNTED.search(text)} == {}


def test_a_field_has_one_meaning() -> None:
    known = Counter(name for topic in TOPICS for name in topic.MEANINGS)
    assert [name for name, times in known.items() if times > 1] == []


def test_every_meaning_is_of_a_field_that_exists() -> None:
    shown = {name for surface in SURFACES for name in fields(surface)}
    names = {name.rpartition(".")[2] for name in shown} | {f"List*.{name.partition('.')[2]}" for name in shown}
    assert sorted(MEANINGS.keys() - names - shown) == []


def test_a_meaning_of_a_models_own_field_goes_before_that_of_the_name() -> None:
    form = {"title": "SetpointStep", "properties": {"unit": {"type": "string"}, "kind": {"const": "setpoint"}}}
    described = describe(form)["properties"]
    assert described["unit"]["description"] == MEANINGS["SetpointStep.unit"] != MEANINGS["unit"]
    assert described["kind"]["description"] == MEANINGS["kind"]


def test_the_text_below_a_field_is_its_meaning_in_every_form_that_is_derived_from_its_class() -> None:
    texts = [written_meaning(model, "adjustment_count") for model in ("Run", "RunView", "RunSummary", "RunItem")]
    assert texts == ["Number of times that the parameters were adjusted."] * 4
    assert meaning_of("adjustment_count", "RunView") == texts[0]
    assert written_meaning("Plan", "adjustment_count") is None


def test_a_description_that_a_field_has_stays() -> None:
    form = {"properties": {"wait": {"anyOf": [{"type": "integer", "description": "In hours."}, {"type": "null"}]}}}
    assert describe(form)["properties"]["wait"]["description"] == "In hours."


def test_values_are_no_schemas() -> None:
    example = {"properties": {"gain": {"type": "number"}}}
    assert describe({"properties": {"settings_schema": {"type": "object", "examples": [example]}}})["properties"][
        "settings_schema"
    ]["examples"] == [example]


def test_ids_times_and_actors_are_described_by_their_names() -> None:
    assert meaning_of("mount_id") == "The id of the mount."
    assert meaning_of("marked_stale_at") == "When it was marked stale."
    assert meaning_of("revoked_by") == "The actor by whom it was revoked."
    assert meaning_of("unheard_of") is None
