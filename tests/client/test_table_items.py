"""Rows of tables as items of a queue: cells are read by the schemas of their parameters, and every fault has its place."""

import json
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.client.spreadsheets import Cell, SpreadsheetError, Table, TableRow, read_table
from baton.client.table_items import RowForm, RowItem, items_of
from tests.support.tables import for_each

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PROPERTIES: dict[str, Any] = {
    "exposure": {"type": "number", "minimum": 0.01, "unit": {"system": "udunits", "code": "s"}},
    "count": {"type": "integer", "maximum": 5000},
    "dark": {"type": "boolean"},
    "mode": {"type": "string", "enum": ["fly", "step"]},
    "label": {"type": "string"},
    "angles": {"type": "array", "items": {"type": "number"}},
    "region": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
    "gain": {"type": ["integer", "null"]},
    "either": {"type": ["number", "string"]},
    "anything": {},
}
SCHEMA = {"$schema": DIALECT, "type": "object", "properties": PROPERTIES, "additionalProperties": False}
FORM = RowForm("plan", "Tomography", SCHEMA, has_subject=True)


def table_of(*rows: dict[str, Cell], columns: tuple[str, ...] = ()) -> Table:
    named = columns or tuple(dict.fromkeys(name for row in rows for name in row))
    return Table("scans.xlsx", named, tuple(TableRow(number, row) for number, row in enumerate(rows, start=2)))


def item(*, form: RowForm = FORM, zone: Any = None, **cells: Cell) -> RowItem:
    [only] = items_of(table_of(cells), form, zone)
    return only


def faults(table: Table, form: RowForm = FORM) -> list[str]:
    with pytest.raises(SpreadsheetError) as refused:
        items_of(table, form)
    return list(refused.value.faults)


@for_each(
    ("name", "cell", "value"),
    [
        ("exposure", "0.5", 0.5),
        ("exposure", "5", 5),
        ("exposure", "+1e-1", 0.1),
        ("exposure", ".5", 0.5),
        ("exposure", 0.25, 0.25),
        ("count", "7", 7),
        ("count", "7.00", 7),
        ("count", 7.0, 7),
        ("count", "1e3", 1000),
        ("dark", "yes", True),
        ("dark", "NO", False),
        ("dark", "True", True),
        ("dark", False, False),
        ("dark", 1, True),
        ("dark", 0.0, False),
        ("label", "007", "007"),
        ("label", 7, "7"),
        ("label", 7.5, "7.5"),
        ("label", "null", "null"),
        ("angles", "[0, 90.5]", [0, 90.5]),
        ("region", '{"x": 3}', {"x": 3}),
        ("gain", "null", None),
        ("gain", "3", 3),
        ("either", "3", 3),
        ("either", "low", "low"),
        ("anything", "low", "low"),
        ("anything", "[1]", [1]),
        ("anything", 2.5, 2.5),
    ],
)
def test_a_cell_is_read_as_its_parameter_wants_it(name: str, cell: Cell, value: Any) -> None:
    read = item(**{name: cell}).parameters
    assert read == {name: value}
    assert type(read[name]) is type(value)


@for_each(
    ("name", "cell", "sentence"),
    [
        ("exposure", "0,5", "'0,5' is no number; write its decimals behind a point."),
        ("exposure", "fast", "'fast' is no number; correct the value."),
        ("exposure", "1_000", "'1_000' is no number; correct the value."),
        ("exposure", "nan", "'nan' is no number; correct the value."),
        ("exposure", "1e999", "'1e999' is no finite number; correct the value."),
        ("exposure", True, "'True' is no number; correct the value."),
        ("exposure", "0.001", "must be at least 0.01 s; correct the value."),
        ("exposure", datetime(2026, 5, 20), "holds a date or time, and the parameter is none"),
        ("count", "1.5", "'1.5' is no integer; correct the value."),
        ("count", "9" * 5000, "is no finite number"),
        ("count", "5001", "must be at most 5000; correct the value."),
        ("dark", "maybe", "'maybe' is neither yes nor no; write yes, no, true, false, 1 or 0."),
        ("dark", 2, "'2' is neither yes nor no"),
        ("mode", "fast", 'must be one of ["fly", "step"]; choose one of them.'),
        ("label", True, "'True' is no text; format the cell as text."),
        ("label", date(2026, 5, 20), "holds a date or time"),
        ("angles", "1;2", "'1;2' is not written as JSON; write it like [1, 2, 3]."),
        ("angles", '{"x": 1}', "is not written as JSON"),
        ("angles", "[NaN]", "is not written as JSON"),
        ("angles", "[1e999]", "is not written as JSON"),
        ("angles", "[" * 9000, "is not written as JSON"),
        ("angles", '[1, "x"]', '1 must be of type "number"; correct the value.'),
        ("region", "{}", "x is required; give it too."),
        ("gain", "low", "'low' is none of integer, null; correct the value."),
    ],
)
def test_a_cell_that_does_not_fit_its_parameter_is_refused(name: str, cell: Cell, sentence: str) -> None:
    [only] = faults(table_of({name: cell}))
    place, _, said = only.partition(": ")
    assert place == f"row 2, column {name}"
    assert sentence in said


def test_an_empty_cell_leaves_its_parameter_out() -> None:
    first, second = items_of(table_of({"exposure": "1", "label": "a"}, {"exposure": "2"}), FORM)
    assert (first.parameters, second.parameters) == ({"exposure": 1, "label": "a"}, {"exposure": 2})


def test_an_item_has_what_its_own_columns_say() -> None:
    given = item(title="Bar 7", not_before="2026-05-20T14:30:00+02:00", pause_after="yes", subject=7, exposure="1")
    assert given == RowItem(2, "Bar 7", {"exposure": 1}, "7", datetime(2026, 5, 20, 12, 30, tzinfo=UTC), True)
    assert item(exposure="1") == RowItem(2, "Tomography, row 2", {"exposure": 1})
    assert len(item(form=RowForm("plan", "x" * 200, SCHEMA), exposure="1").title) == 200


@for_each(
    ("column", "cell", "sentence"),
    [
        ("title", "x" * 201, "is longer than 200 characters"),
        ("title", "Bar {sample}", "Nothing is known to be filled in for {sample}; use {fired_at} or {count}."),
        ("title", True, "is no text"),
        ("pause_after", "later", "is neither yes nor no"),
        ("not_before", "tomorrow", "'tomorrow' is no time; write it like 2026-05-20T14:30:00+02:00."),
        ("not_before", "14:30", "'14:30' is no time"),
        ("not_before", 46162.5, "is no time with its date"),
        ("not_before", time(14, 30), "is no time with its date"),
        ("not_before", timedelta(hours=3), "is no time with its date"),
        ("not_before", "2026-05-20T14:30:00", "2026-05-20T14:30:00 has no time zone; write it like"),
        ("not_before", datetime(2026, 5, 20, 14, 30), "2026-05-20T14:30:00 has no time zone; write it like"),
        ("not_before", "9999-12-31T23:59:59-10:00", "is outside the years 1 to 9999"),
        ("subject", True, "is no text"),
    ],
)
def test_a_cell_of_an_item_that_cannot_be_used_is_refused(column: str, cell: Cell, sentence: str) -> None:
    [only] = faults(table_of({column: cell, "exposure": "1"}))
    assert only.startswith(f"row 2, column {column}: ")
    assert sentence in only


def test_times_without_a_zone_are_on_the_clock_that_is_named() -> None:
    zone = ZoneInfo("Europe/Berlin")
    expected = datetime(2026, 5, 20, 12, 30, tzinfo=UTC)
    assert item(not_before=datetime(2026, 5, 20, 14, 30), zone=zone).not_before == expected
    assert item(not_before="2026-05-20 14:30", zone=zone).not_before == expected
    assert item(not_before="2026-05-20 12:30Z", zone=zone).not_before == expected
    assert item(not_before=date(2026, 5, 20), zone=zone).not_before == datetime(2026, 5, 19, 22, tzinfo=UTC)
    for changed in ("2026-03-29 02:30", "2026-10-25 02:30"):
        with pytest.raises(SpreadsheetError, match="is shown twice or never by the clock of Europe/Berlin"):
            item(not_before=changed, zone=zone)


def test_a_column_that_nothing_has_is_refused_with_those_that_exist() -> None:
    small = {**SCHEMA, "properties": {"exposure": {"type": "number"}}}
    plan, recipe = RowForm("plan", "Tomography", small, has_subject=True), RowForm("recipe", "Scan", small)
    assert faults(table_of({"exposre": "1"}), plan) == [
        "column exposre: the plan Tomography has no such parameter; "
        "the columns may be title, not_before, pause_after, subject, exposure."
    ]
    assert faults(table_of({"subject": "Bar 7", "exposure": "1"}), recipe)[0].endswith(
        "may be title, not_before, pause_after, exposure."
    )
    assert len(faults(table_of({"title": "a", "exposure": "1"}), RowForm("recipe", "Scan", None))) == 1
    assert item(form=RowForm("plan", "Free", {}), gain="3", name="x").parameters == {"gain": 3, "name": "x"}


def test_a_parameter_may_be_called_like_a_column_of_items() -> None:
    form = RowForm("plan", "Odd", {**SCHEMA, "properties": {"title": {"type": "integer"}}})
    assert item(form=form, **{"title": "Bar 7", "parameters.title": "7"}).parameters == {"title": 7}
    doubled = table_of({"exposure": "1", "parameters.exposure": "2"})
    assert faults(doubled)[0].startswith("column parameters.exposure: its parameter is in the column exposure already")


def test_parameters_are_judged_together_with_those_of_the_plan() -> None:
    schema = {**SCHEMA, "required": ["exposure", "mode"]}
    form = RowForm("plan", "Tomography", schema, defaults={"mode": "fly"})
    assert item(form=form, exposure="1").parameters == {"exposure": 1}
    rows = table_of({"title": "a", "exposure": "1"}, {"title": "b"}, {"title": "c"}, columns=("title", "exposure"))
    assert faults(rows, form) == [f"row {row}, column exposure: is required; give it too." for row in (3, 4)]
    assert faults(table_of({"title": "a"}, {"title": "b"}), form) == [
        "has no column exposure, which is required; give it too."
    ]
    broken = RowForm("plan", "Tomography", schema, defaults={"mode": "old"})
    assert faults(table_of({"exposure": "1"}, {"exposure": "2"}), broken) == [
        'cannot be used with the plan Tomography: mode must be one of ["fly", "step"]; choose one of them.'
    ]


def test_what_a_recipe_leaves_open_must_be_given() -> None:
    form = RowForm("recipe", "Scan", SCHEMA, needed=frozenset({"exposure", "count"}))
    assert item(form=form, exposure="1", count="2").parameters == {"exposure": 1, "count": 2}
    rows = table_of({"exposure": "1"}, {"title": "x"})
    assert faults(rows, form) == [
        "has no column count, which the recipe Scan needs; add it.",
        "row 3, column exposure: the recipe Scan needs a value; write one.",
    ]


def test_all_faults_of_a_table_are_said_at_once() -> None:
    content = b"title,exposure,count,spare\nfirst,0.001,1.5,\nsecond,0.5,9999,x\nthird,fast,1,\n"
    assert [one.partition(": ")[0] for one in faults(read_table("scans.csv", content))] == [
        "column spare",
        "row 2, column exposure",
        "row 2, column count",
        "row 3, column count",
        "row 4, column exposure",
    ]


parameters = st.fixed_dictionaries(
    {},
    optional={
        "exposure": st.floats(0.01, 1e9) | st.integers(1, 10**15),
        "count": st.integers(-(10**15), 5000),
        "dark": st.booleans(),
        "mode": st.sampled_from(["fly", "step"]),
        "label": st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=10),
        "angles": st.lists(st.floats(-1e3, 1e3), max_size=4),
        "region": st.builds(lambda x: {"x": x}, st.integers(-99, 99)),
    },
)


@given(st.lists(parameters, min_size=1, max_size=6))
def test_parameters_that_were_written_as_text_come_back(rows: list[dict[str, Any]]) -> None:
    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value)

    table = table_of(*({"title": "t", **{name: text(value) for name, value in row.items()}} for row in rows))
    assert [one.parameters for one in items_of(table, FORM)] == rows
