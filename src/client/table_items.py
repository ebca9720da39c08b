"""The rows of a table as items of a queue: columns are the parameters of one plan or recipe, and what else an item has.
Every cell is read by the schema of its parameter, and every fault of the table is found before anything is sent."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import partial
from typing import Any

from baton.client.parameter_schemas import Schema, is_closed, merge_patch, types_of, value_faults
from baton.client.spreadsheets import Cell, SpreadsheetError, Table, TableRow, place_text

TITLE, NOT_BEFORE, PAUSE_AFTER, SUBJECT = "title", "not_before", "pause_after", "subject"
PARAMETER_PREFIX = "parameters."  # of a column whose parameter is named like one of an item's own columns
LONGEST_TITLE = 200
FIRED_AT, COUNT = "{fired_at}", "{count}"  # what a title may have filled in
FILLED = {FIRED_AT: "2026-05-20T14:30:00Z", COUNT: "1000000000"}  # and with what at the longest
YES, NO = frozenset({"yes", "true", "1"}), frozenset({"no", "false", "0"})
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
DIGITS = re.compile(r"[+-]?[0-9]+")
READ_IN_TURN = ("integer", "number", "boolean", "array", "object", "null", "string")
EXAMPLE_TIME = "2026-05-20T14:30:00+02:00"


class CellError(ValueError):
    """A cell that does not hold what its column wants; the sentence says what it must be."""


@dataclass(frozen=True)
class RowForm:
    """What the rows of a table are for: a plan or recipe, the schema of its parameters, and which it has of itself."""

    label: str
    name: str
    schema: Schema | None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    needed: frozenset[str] = frozenset()  # parameters without which nothing can be conducted, whatever the schema says
    has_subject: bool = False

    @property
    def properties(self) -> Mapping[str, Schema]:
        """The parameters that are declared, with their schemas."""
        found: Mapping[str, Schema] = (self.schema or {}).get("properties", {})
        return found

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The columns that are no parameters."""
        return (TITLE, NOT_BEFORE, PAUSE_AFTER, *((SUBJECT,) if self.has_subject else ()))

    @property
    def takes_any(self) -> bool:
        """Whether a parameter may have any name: the schema declares none, and is open."""
        return self.schema is not None and not self.properties and not is_closed(self.schema)


@dataclass(frozen=True)
class RowItem:
    """One row as an item of a queue."""

    row: int
    title: str
    parameters: Mapping[str, Any]
    subject: str | None = None
    not_before: datetime | None = None
    pause_after: bool = False


def items_of(table: Table, form: RowForm, zone: tzinfo | None = None) -> list[RowItem]:
    """Return the items of a table; refuse it with all its faults. Times without a zone are on the clock of `zone`."""
    items, faults = read_items(table, form, zone)
    if faults:
        raise SpreadsheetError(table.name, faults)
    return items


def read_items(table: Table, form: RowForm, zone: tzinfo | None = None) -> tuple[list[RowItem], list[str]]:
    """Return the items of a table and every fault of it; an item of a row with a fault lacks what is faulty."""
    faults = list(unknown_columns(table, form))
    parameters = {column: name for column in table.columns if (name := parameter_of(column, form)) is not None}
    faults += repeated_parameters(parameters)
    for name in sorted((form.needed - form.defaults.keys()) - set(parameters.values())):
        faults.append(f"has no column {name}, which the {form.label} {form.name} needs; add it.")
    items: list[RowItem] = []
    beside: dict[str, None] = {}  # faults that are no row's own, each once
    for row in table.rows:
        item, found = read_row(row, parameters, form, zone)
        items.append(item)
        for column, fault in parameter_faults(item, parameters, form):
            if column is None:
                beside[fault] = None
            else:
                found.setdefault(column, fault)
        faults += (f"{place_text(row.number, column)}: {found[column]}" for column in table.columns if column in found)
    return items, [*faults, *beside]


def unknown_columns(table: Table, form: RowForm) -> Iterator[str]:
    """Yield a fault for each column that neither a parameter nor an item has."""
    known = ", ".join((*form.own_columns, *form.properties))
    for column in table.columns:
        if column not in form.own_columns and parameter_of(column, form) is None:
            yield f"column {column}: the {form.label} {form.name} has no such parameter; the columns may be {known}."


def parameter_of(column: str, form: RowForm) -> str | None:
    """Return the parameter that a column is for; None where it is one of an item's own, or of nothing."""
    if column in form.own_columns:
        return None
    name = column.removeprefix(PARAMETER_PREFIX)
    if column in form.properties:
        return column
    return name if name in form.properties or (form.takes_any and name) else None


def repeated_parameters(parameters: Mapping[str, str]) -> Iterator[str]:
    """Yield a fault for each column whose parameter another column has already."""
    seen: dict[str, str] = {}
    for column, name in parameters.items():
        if name in seen:
            yield f"column {column}: its parameter is in the column {seen[name]} already; leave one of them out."
        seen.setdefault(name, column)


def read_row(
    row: TableRow, parameters: Mapping[str, str], form: RowForm, zone: tzinfo | None
) -> tuple[RowItem, dict[str, str]]:
    """Return the item of one row, and what is wrong with its cells by their columns."""
    faults: dict[str, str] = {}

    def read(column: str, reader: Callable[[Cell], object]) -> Any:
        if (cell := row.cells.get(column)) is None:
            return None
        try:
            return reader(cell)
        except CellError as error:
            faults[column] = str(error)
            return None

    given = {
        name: read(column, partial(read_value, level=form.properties.get(name, {})))
        for column, name in parameters.items()
        if column in row.cells
    }
    item = RowItem(
        row=row.number,
        title=read(TITLE, read_title) or default_title(form.name, row.number),
        parameters={name: value for name, value in given.items() if name not in {parameters.get(one) for one in faults}},
        subject=read(SUBJECT, read_text) if form.has_subject else None,
        not_before=read(NOT_BEFORE, lambda cell: read_time(cell, zone)),
        pause_after=bool(read(PAUSE_AFTER, read_boolean)),
    )
    return item, faults


def default_title(name: str, row: int) -> str:
    """Return the title of a row that has none."""
    number = f", row {row}"
    return name[: LONGEST_TITLE - len(number)] + number


def parameter_faults(item: RowItem, parameters: Mapping[str, str], form: RowForm) -> Iterator[tuple[str | None, str]]:
    """Yield what the schema has against the parameters of an item, with the column where there is one for it."""
    columns = {name: column for column, name in parameters.items()}
    values = merge_patch(form.defaults, item.parameters)
    for name in sorted(form.needed & columns.keys()):
        if name not in values:
            yield columns[name], f"the {form.label} {form.name} needs a value; write one."
    if form.schema is None or not values:
        return
    for fault in value_faults(form.schema, values):
        name = fault.place[0] if fault.place else ""
        if name in columns:
            inner = "" if fault.place == (name,) else f"{'.'.join(fault.place[1:])} "
            yield columns[name], f"{inner}{fault.sentence}."
        elif fault.keyword == "required" and name not in form.needed:
            yield None, f"has no column {fault.path}, which {fault.sentence}."
        elif fault.keyword != "required":
            yield None, f"cannot be used with the {form.label} {form.name}: {fault.path} {fault.sentence}."


def read_value(cell: Cell, level: Schema) -> Any:
    """Return the value in a cell as the schema of its parameter wants it; which limits it breaks is said later."""
    types = types_of(level)
    if isinstance(cell, date | time | timedelta):
        raise CellError("holds a date or time, and the parameter is none; format the cell as text or number.")
    if not types:
        return read_any(cell, level)
    for kind in READ_IN_TURN:
        if kind in types:
            try:
                return READERS[kind](cell)
            except CellError:
                if len(types) == 1:
                    raise
    raise CellError(f"{quoted_text(cell)} is none of {', '.join(sorted(types))}; correct the value.")


def read_any(cell: Cell, level: Schema) -> object:
    """Return the value in a cell whose parameter may be of any type: JSON, or else text."""
    if not isinstance(cell, str) or cell in level.get("enum", ()):
        return cell
    try:
        return read_json(cell)
    except ValueError:
        return cell


def read_number(cell: Cell) -> int | float:
    """Return the number in a cell; digits alone are an integer."""
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        value: int | float = cell
    elif isinstance(cell, str) and NUMBER.fullmatch(cell):
        value = int(cell) if DIGITS.fullmatch(cell) and len(cell) < 1000 else float(cell)
    elif isinstance(cell, str) and NUMBER.fullmatch(cell.replace(",", ".", 1)):
        raise CellError(f"{quoted_text(cell)} is no number; write its decimals behind a point.")
    else:
        raise CellError(f"{quoted_text(cell)} is no number; correct the value.")
    if isinstance(value, float) and not math.isfinite(value):
        raise CellError(f"{quoted_text(cell)} is no finite number; correct the value.")
    return value


def read_integer(cell: Cell) -> int:
    """Return the integer in a cell; one with zeros behind the point is one."""
    value = read_number(cell)
    if isinstance(value, float) and not value.is_integer():
        raise CellError(f"{quoted_text(cell)} is no integer; correct the value.")
    return int(value)


def read_boolean(cell: Cell) -> bool:
    """Return what a cell says: yes or no, true or false, 1 or 0."""
    word = str(int(cell) if isinstance(cell, int | float) and cell in (0, 1) else cell).lower()
    if word not in YES | NO:
        raise CellError(f"{quoted_text(cell)} is neither yes nor no; write yes, no, true, false, 1 or 0.")
    return word in YES


def read_text(cell: Cell) -> str:
    """Return the text in a cell; a number is one as it is written."""
    match cell:
        case str():
            return cell
        case bool():
            raise CellError(f"{quoted_text(cell)} is no text; format the cell as text.")
        case int():
            return str(cell)
        case float():
            return repr(cell)
        case _:
            raise CellError("holds a date or time, and no text; format the cell as text.")


def read_title(cell: Cell) -> str:
    """Return the title in a cell, which names what is conducted, too."""
    title = read_text(cell)
    if unknown := sorted(set(re.findall(r"{[^{}]*}", title)) - FILLED.keys()):
        raise CellError(f"Nothing is known to be filled in for {unknown[0]}; use {FIRED_AT} or {COUNT}.")
    filled = title
    for placeholder, text in FILLED.items():
        filled = filled.replace(placeholder, text)
    if len(filled) > LONGEST_TITLE:
        raise CellError(f"Filled in, the name {title!r} is longer than {LONGEST_TITLE} characters; shorten it.")
    return title


def read_nested(kind: type[object], example: str) -> Callable[[Cell], object]:
    """Return what reads an array or an object, which is written as JSON."""

    def read(cell: Cell) -> Any:
        try:
            value = read_json(cell) if isinstance(cell, str) else None
        except ValueError:
            value = None
        if not isinstance(value, kind):
            raise CellError(f"{quoted_text(cell)} is not written as JSON; write it like {example}.")
        return value

    return read


def read_null(cell: Cell) -> None:
    """Read the word that takes a value away."""
    if cell != "null":
        raise CellError(f"{quoted_text(cell)} is not null; leave the cell empty.")


READERS: dict[str, Callable[[Cell], Any]] = {
    "integer": read_integer,
    "number": read_number,
    "boolean": read_boolean,
    "array": read_nested(list, "[1, 2, 3]"),
    "object": read_nested(dict, '{"x": 1, "y": 2}'),
    "null": read_null,
    "string": read_text,
}


def read_json(text: str) -> object:
    """Return the value that a text is in JSON; numbers that are not finite are none."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    def finite(word: str) -> float:
        if not math.isfinite(value := float(word)):
            raise ValueError(word)
        return value

    try:
        return json.loads(text, parse_constant=refuse, parse_float=finite)
    except RecursionError:
        raise ValueError("nested too deep") from None


def read_time(cell: Cell, zone: tzinfo | None) -> datetime:
    """Return the time in a cell; one without a zone is on the clock of `zone`, and refused where there is none."""
    match cell:
        case datetime():
            moment = cell
        case date():
            moment = datetime.combine(cell, time())
        case str():
            try:
                moment = datetime.fromisoformat(cell)
            except ValueError:
                raise CellError(f"{quoted_text(cell)} is no time; write it like {EXAMPLE_TIME}.") from None
        case _:
            raise CellError(f"{quoted_text(cell)} is no time with its date; write it like {EXAMPLE_TIME}.")
    if moment.tzinfo is not None:
        return moment_in_utc(moment)
    if zone is None:
        detail = f"{moment.isoformat()} has no time zone; write it like {EXAMPLE_TIME}, or say which zone the table is in."
        raise CellError(detail)
    return placed_time(moment, zone)


def placed_time(moment: datetime, zone: tzinfo) -> datetime:
    """Return a time on the clock of a zone; refuse one that the clock shows twice or never, where it is put back or on."""
    first, second = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        detail = f"{moment.isoformat()} is shown twice or never by the clock of {zone}, which is changed then"
        raise CellError(f"{detail}; write it like {EXAMPLE_TIME}.")
    return moment_in_utc(first)


def moment_in_utc(moment: datetime) -> datetime:
    """Return a time in UTC; refuse one outside the years that are counted."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise CellError(f"{moment.isoformat()} is outside the years 1 to 9999; correct the time.") from None


def quoted_text(cell: Cell) -> str:
    """Return a cell as it is quoted in a sentence."""
    text = cell if isinstance(cell, str) else str(cell)
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
