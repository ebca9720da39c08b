"""Forms: every command has one, what is typed into it is the JSON that a program would send, and units are converted."""

import re
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from uuid_utils.compat import uuid7

from baton.api.schemas import input_schema
from baton.console.forms import COUNT, FieldFaults, FormField, FormReader, change_rows, errors_by_place, flatten, read_fields
from baton.console.units import other_units, parse_quantity
from baton.domain.contexts import REGISTRY
from baton.domain.registry import Operation
from baton.domain.shared.units import UnitError, convert
from tests.support.tables import for_each

BERLIN = ZoneInfo("Europe/Berlin")
COMMANDS = [operation for operation in REGISTRY if operation.kind == "command"]
PLACEHOLDER = re.compile(r"<\w+>")


def form_of(operation: Operation, typed: dict[str, str]) -> list[FormField]:
    schema = input_schema(operation)
    reader = FormReader(schema.get("$defs", {}), BERLIN)
    return reader.fields(schema, typed, operation.aggregate, operation.path_fields)


def with_ids(value: Any) -> Any:
    """Return an example with an id wherever it has a placeholder for one."""
    match value:
        case str() if PLACEHOLDER.fullmatch(value):
            return str(uuid7())
        case dict():
            return {name: with_ids(part) for name, part in value.items()}
        case list():
            return [with_ids(part) for part in value]
    return value


@pytest.mark.slow
@for_each("operation", COMMANDS)
def test_the_example_of_a_command_can_be_typed_into_its_form(operation: Operation) -> None:
    example = with_ids(operation.example or {})
    body = {name: value for name, value in example.items() if name not in operation.placeholders}
    schema = input_schema(operation)
    typed = FormReader(schema.get("$defs", {}), BERLIN).type_in(schema, body)
    fields = form_of(operation, typed)
    assert {one.name for one in fields} == set(operation.input.model_json_schema()["properties"]) - {
        *operation.internal,
        *operation.path_fields,
    }
    read = read_fields(fields, typed, BERLIN)
    places = {name: str(uuid7()) for name in operation.path_fields}
    assert operation.input.model_validate({**places, **read}) == operation.input.model_validate({**places, **body})


def test_numbers_are_typed_in_any_unit_that_fits_and_sent_in_the_declared_one() -> None:
    assert parse_quantity("35 ms", "s") == pytest.approx(0.035)
    assert parse_quantity("1 500", None) == 1500
    assert parse_quantity("0,5 mm", "um") == pytest.approx(500)
    assert parse_quantity("-1e-3", "m") == pytest.approx(-0.001)
    assert parse_quantity("90 deg", "rad") == pytest.approx(1.5707963)
    assert convert(20.0, "degC", "K") == pytest.approx(293.15)
    assert other_units("mm")[0] == "mm"
    assert "um" in other_units("mm")
    assert other_units("counts") == ()


@for_each(("text", "unit"), [("soon", "s"), ("3 kg", "s"), ("3 s", None), ("1e999", "s"), ("", "s"), ("nan", "s")])
def test_what_is_no_number_of_the_unit_is_refused(text: str, unit: str | None) -> None:
    with pytest.raises(UnitError):
        parse_quantity(text, unit)


def test_what_cannot_be_read_is_said_beside_its_field() -> None:
    operation = REGISTRY.operations["define_schedule"]
    typed = {"name": "Nightly darks", "calendar._show": "EveryCalendar", "calendar.every": "often", "jitter": "2 min"}
    with pytest.raises(FieldFaults) as refused:
        read_fields(form_of(operation, typed), typed, BERLIN)
    assert refused.value.faults == {"calendar.every": "this is no number; give a number in s, or with its unit"}
    typed["calendar.every"] = "1 h"
    read = read_fields(form_of(operation, typed), typed, BERLIN)
    assert (read["calendar"], read["jitter"]) == ({"every": 3600}, 120)


def test_times_are_typed_on_the_facilitys_clock() -> None:
    operation = REGISTRY.operations["register_clearance"]
    typed = {"valid_until": "2026-07-01T18:00:00"}
    assert read_fields(form_of(operation, typed), typed, BERLIN)["valid_until"] == "2026-07-01T16:00:00Z"


def test_rows_are_added_and_removed_without_losing_what_was_typed() -> None:
    operation = REGISTRY.operations["register_clearance"]
    typed = {"bindings._count": "2", "bindings.0._show": "External", "bindings.0.scheme": "a", "bindings.1._show": "Run"}
    change_rows(typed | {})
    typed["_add"] = "bindings"
    change_rows(typed)
    assert typed[f"bindings.{COUNT}"] == "3"
    typed["_remove"] = "bindings.1"
    change_rows(typed)
    rows = next(one for one in form_of(operation, typed) if one.name == "bindings").children
    assert [row.value for row in rows] == ["External", "Asset"]
    assert typed["bindings.0.scheme"] == "a"


def test_a_refusal_of_a_field_deep_in_an_input_stands_beside_it() -> None:
    operation = REGISTRY.operations["register_clearance"]
    typed = {"bindings._count": "1", "bindings.0._show": "External"}
    problem = {
        "errors": [{"loc": ["body", "bindings", 0, "External", "scheme"], "msg": "Field required", "type": "missing"}]
    }
    fields = form_of(operation, typed)
    assert errors_by_place(problem, fields) == {"bindings.0.scheme": ["Field required"]}
    assert "bindings.0.scheme" in {one.place for one in flatten(fields)}
