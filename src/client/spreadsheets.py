"""Spreadsheets as tables: a heading, and rows of values with the numbers that people see. Reads .csv and .xlsx; no network.

What is read may come from anybody. It is refused where it is larger than a table of five hundred rows can be, before it is
unpacked, and whatever is wrong with its cells is said at once, each fault with its place.
"""

import csv
import io
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.parsers import expat

from baton.client.refusals import ClientError

MOST_BYTES = 5_000_000
MOST_UNPACKED_BYTES = 25_000_000
MOST_ELEMENTS = {True: 500_000, False: 25_000}  # of sheets and their texts; of styles and the like, which take much longer
MOST_ROW_CELLS, MOST_CELLS = 1_000, 120_000  # of a row and of a sheet, empty ones with a format counted
MOST_PLACES = 1_500_000  # that are looked at for a cell: a few cells may be spread so far that this takes for ever
MOST_PARTS = 1_000
MOST_ROWS, MOST_COLUMNS = 500, 200
LAST_ROW = 1_048_576  # of a worksheet; a file may claim that one is further down
LONGEST_CELL = 10_000
SHOWN_FAULTS = 20
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
OLD_WORKBOOK = bytes.fromhex("d0cf11e0a1b11ae1")  # Excel before 2007, and every workbook with a password
ROOTS_WITH_CELLS = frozenset({"worksheet", "sst"})
TOO_MANY_CELLS = "holds too many cells and styles; copy the table alone into a new file."
ENCRYPTED = 0x1  # of a part of a zip file
Cell = str | int | float | bool | datetime | date | time | timedelta


class SpreadsheetError(ClientError, ValueError):
    """A spreadsheet that cannot be used; `faults` are the first twenty with their places, `more` counts the others."""

    def __init__(self, name: str, faults: Sequence[str], more: int = 0) -> None:
        self.name = name
        self.faults = tuple(faults[:SHOWN_FAULTS])
        self.more = len(faults) - len(self.faults) + more
        super().__init__(" ".join(self.sentences))

    @property
    def sentences(self) -> list[str]:
        """One sentence for each fault that is listed, and one that counts the others."""
        listed = [f"{self.name}, {fault}" if is_placed(fault) else f"{self.name} {fault}" for fault in self.faults]
        return [*listed, *([f"{self.name} has {self.more} more faults."] if self.more else [])]


@dataclass(frozen=True)
class TableRow:
    """One row: its number in the sheet, and its cells by the names of their columns; empty ones are left out."""

    number: int
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Table:
    """What a spreadsheet holds: the names in its heading, and the rows below it."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]


@dataclass(frozen=True)
class SheetFault:
    """What stands in a cell that has no value: an error, or a formula that was never calculated."""

    sentence: str


SheetRow = list[Cell | SheetFault | None]


def read_table_file(path: Path) -> Table:
    """Return the table in a file."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SpreadsheetError(path.name, [too_large(MOST_BYTES)])
        content = path.read_bytes()
    except OSError as error:
        raise SpreadsheetError(path.name, [f"cannot be read: {error.strerror}."]) from None
    return read_table(path.name, content)


def read_table(name: str, content: bytes) -> Table:
    """Return the table in the content of a .csv or .xlsx file of this name."""
    readers: dict[str, Callable[[str, bytes], Iterator[SheetRow]]] = {".csv": csv_rows, ".xlsx": workbook_rows}
    if (reader := readers.get(Path(name).suffix.lower())) is None:
        raise SpreadsheetError(name, ["is no .csv and no .xlsx file; save it as one of them."])
    if len(content) > MOST_BYTES:
        raise SpreadsheetError(name, [too_large(MOST_BYTES)])
    return table_of(name, reader(name, content))


def too_large(limit: int, unpacked: bool = False) -> str:
    """Return the sentence about a file with more bytes than are read."""
    return f"has more than {limit // 1_000_000} MB{' unpacked' if unpacked else ''}; leave out what belongs to no row."


def table_of(name: str, sheet: Iterator[SheetRow]) -> Table:
    """Return the rows of a sheet as a table: the first that is not empty is the heading."""
    numbered = ((number, row) for number, row in enumerate(sheet, start=1) if any(cell is not None for cell in row))
    heading_number, heading = next(numbered, (0, []))
    if not heading:
        raise SpreadsheetError(name, ["is empty; its first row names the columns."])
    rows: list[tuple[int, SheetRow]] = []
    for numbered_row in numbered:
        if len(rows) == MOST_ROWS:
            raise SpreadsheetError(name, [f"has more than {MOST_ROWS} rows; split it."])
        rows.append(numbered_row)
    width = max(len(row) for row in (heading, *(row for _, row in rows)))
    used = [
        place for place in range(width) if any(cell_at(row, place) is not None for row in (heading, *(r for _, r in rows)))
    ]
    if len(used) > MOST_COLUMNS:
        raise SpreadsheetError(name, [f"has more than {MOST_COLUMNS} columns; leave out those that are not needed."])
    names = {place: heading_text(cell_at(heading, place)) for place in used}
    faults = list(heading_faults(heading_number, heading, names))
    for number, row in rows:
        faults += cell_faults(number, row, names)
    if not rows and not faults:
        faults = ["has a heading and no rows."]
    if faults:
        raise SpreadsheetError(name, faults)
    return Table(name, tuple(names.values()), tuple(TableRow(number, filled_cells(row, names)) for number, row in rows))


def filled_cells(row: SheetRow, names: Mapping[int, str]) -> dict[str, Cell]:
    """Return the cells of a row that are not empty, by their columns."""
    cells = ((column, cell_at(row, place)) for place, column in names.items())
    return {column: cell for column, cell in cells if cell is not None and not isinstance(cell, SheetFault)}


def heading_faults(number: int, heading: SheetRow, names: Mapping[int, str]) -> Iterator[str]:
    """Yield what is wrong with a heading: a name twice, none above values, or no text that could be a name."""
    seen: dict[str, int] = {}
    for place, name in names.items():
        cell = cell_at(heading, place)
        if cell is None:
            yield f"column {letters(place)}: there are values and no name above them; name the column or empty it."
        elif isinstance(cell, SheetFault):
            yield f"row {number}, column {letters(place)}: {cell.sentence}"
        elif isinstance(cell, bool | date | time | timedelta) or len(name) > LONGEST_CELL:
            yield f"row {number}, column {letters(place)}: the name of a column must be a text; write one."
        elif name in seen:
            yield f"column {name}: it stands twice, in {letters(seen[name])} and {letters(place)}; name one otherwise."
        seen.setdefault(name, place)


def cell_faults(number: int, row: SheetRow, names: Mapping[int, str]) -> Iterator[str]:
    """Yield what is wrong with the cells of a row, whatever they are for."""
    for place, name in names.items():
        match cell_at(row, place):
            case SheetFault(sentence):
                yield f"{place_text(number, name or letters(place))}: {sentence}"
            case str() as text if len(text) > LONGEST_CELL:
                yield f"{place_text(number, name or letters(place))}: has more than {LONGEST_CELL} characters; shorten it."


def cell_at(row: SheetRow, place: int) -> Cell | SheetFault | None:
    return row[place] if place < len(row) else None


def heading_text(cell: Cell | SheetFault | None) -> str:
    """Return the name of a column."""
    return "" if cell is None or isinstance(cell, SheetFault) else str(cell)


def place_text(row: int, column: str) -> str:
    """Return where a cell is, as people see it."""
    return f"row {row}, column {column}"


def is_placed(fault: str) -> bool:
    """Return whether a fault begins with the place of a cell, row or column."""
    return fault.startswith(("row ", "column "))


def letters(place: int) -> str:
    """Return what a spreadsheet program calls a column: A, B, ... Z, AA."""
    text, rest = "", place + 1
    while rest:
        rest, letter = divmod(rest - 1, 26)
        text = chr(ord("A") + letter) + text
    return text


def csv_rows(name: str, content: bytes) -> Iterator[SheetRow]:
    """Yield the rows of a CSV file; commas, semicolons and tabs are told apart by its heading."""
    if b"\0" in content:
        raise SpreadsheetError(name, ["is no text; save it as CSV in UTF-8, or as .xlsx."])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpreadsheetError(name, [f"is not in UTF-8, from line {line} on; save it as CSV in UTF-8."]) from None
    reader = records(text, delimiter_of(name, text))
    number = 0
    while True:
        number += 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise SpreadsheetError(name, [f"row {number}: cannot be parted into cells: {error}."]) from None
        if row is None:
            return
        yield [cell.strip() or None for cell in row]


def delimiter_of(name: str, text: str) -> str:
    """Return what parts the cells: the delimiter that parts the heading into most of them."""
    counts = dict.fromkeys(DELIMITERS, 0)
    for delimiter in DELIMITERS:
        with suppress(csv.Error):  # quotes end nowhere before a delimiter that is none
            counts[delimiter] = len(next((row for row in records(text, delimiter) if any(map(str.strip, row))), []))
    if (most := max(counts.values())) <= 1:
        return ","  # one column, or nothing
    if len(tied := [DELIMITERS[one] for one, count in counts.items() if count == most]) > 1:
        detail = (
            f"has {' and '.join(tied)} in its heading, so that its cells cannot be told apart; put its names into quotes."
        )
        raise SpreadsheetError(name, [detail])
    return max(counts, key=lambda one: counts[one])


def records(text: str, delimiter: str) -> Iterator[list[str]]:
    """Yield the records of a text; quotes that are not closed are an error."""
    return iter(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))


def workbook_rows(name: str, content: bytes) -> Iterator[SheetRow]:
    """Yield the rows of the first sheet of a workbook that is not hidden: values, not formulas."""
    check_workbook(name, content)
    if find_spec("openpyxl") is None:
        raise SpreadsheetError(name, ["needs openpyxl to be read; install baton-facility[files], or save it as .csv."])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about what else a workbook holds
            rows = list(sheet_rows(name, content))
    except SpreadsheetError:
        raise
    except Exception as error:  # a file that was made to be wrong brings up whatever there is
        detail = f"is no workbook that can be read ({type(error).__name__}: {str(error)[:200]}); save it again as .xlsx."
        raise SpreadsheetError(name, [detail]) from None
    yield from rows


def check_workbook(name: str, content: bytes) -> None:
    """Refuse what would take too much to read, by the directory of the zip file, and what no workbook holds."""
    if content.startswith(OLD_WORKBOOK):
        detail = "is encrypted, or of a program before 2007; save it as .xlsx without a password."
        raise SpreadsheetError(name, [detail])
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
            if any(part.flag_bits & ENCRYPTED for part in parts):
                raise SpreadsheetError(name, ["is encrypted; save it without a password."])
            if sum(part.file_size for part in parts) > MOST_UNPACKED_BYTES or len(parts) > MOST_PARTS:
                raise SpreadsheetError(name, [too_large(MOST_UNPACKED_BYTES, unpacked=True)])
            elements = dict.fromkeys(MOST_ELEMENTS, 0)
            for part in parts:
                check_part(name, archive.read(part), elements)  # never more than the directory says
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, RuntimeError, ValueError) as error:
        if isinstance(error, SpreadsheetError):
            raise
        raise SpreadsheetError(name, ["is no .xlsx file, or a damaged one; save it again as .xlsx."]) from None


def check_part(name: str, content: bytes, elements: dict[bool, int]) -> None:
    """Refuse a part of a workbook with too many elements or cells, whatever it is called; what is no XML holds none."""
    parser = expat.ParserCreate(namespace_separator=" ")
    row_cells = cells = 0
    has_cells: bool | None = None

    def begin(tag: str, _: Any) -> None:
        nonlocal row_cells, cells, has_cells
        local = tag.rpartition(" ")[2]
        if has_cells is None:
            has_cells = local in ROOTS_WITH_CELLS
        elements[has_cells] += 1
        if local == "row":
            row_cells = 0
        elif local == "c":
            row_cells, cells = row_cells + 1, cells + 1
        if elements[has_cells] > MOST_ELEMENTS[has_cells] or row_cells > MOST_ROW_CELLS or cells > MOST_CELLS:
            raise SpreadsheetError(name, [TOO_MANY_CELLS])

    def declare(*_: Any) -> None:
        raise SpreadsheetError(name, ["declares entities, as no workbook does; save it again as .xlsx."])

    parser.StartElementHandler, parser.StartDoctypeDeclHandler = begin, declare
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        if has_cells is None and error.code != expat.errors.codes[expat.errors.XML_ERROR_UNKNOWN_ENCODING]:
            return
        raise SpreadsheetError(name, ["is no workbook that can be read: a part of it is damaged; save it again."]) from None


def sheet_rows(name: str, content: bytes) -> Iterator[SheetRow]:
    """Yield the rows of the first sheet of a workbook that was checked."""
    values, formulas = (first_sheet(name, content, data_only=data_only) for data_only in (True, False))
    filled = places = 0
    for row, written in zip(values, formulas, strict=True):
        places += 1 + len(row)
        if places > MOST_PLACES:
            raise SpreadsheetError(name, [TOO_MANY_CELLS])
        cells = [sheet_cell(*pair) for pair in zip(row, written, strict=True)] if row else []
        filled += any(cell is not None for cell in cells)
        yield cells
        if filled > MOST_ROWS + 1:
            return  # the heading and more rows than are taken: the rest is not read


def first_sheet(name: str, content: bytes, *, data_only: bool) -> Iterator[tuple[object, ...]]:
    """Return the rows of the first sheet that is not hidden, as values or as formulas."""
    from openpyxl import load_workbook

    workbook = load_workbook(io.BytesIO(content), read_only=True, data_only=data_only, keep_links=False)
    sheet = next((one for one in workbook.worksheets if one.sheet_state == "visible"), None)
    if sheet is None:
        raise SpreadsheetError(name, ["has no sheet with cells; put the table on its first sheet."])
    sheet.reset_dimensions()  # a file may say wrongly how large the sheet is
    rows: Iterator[tuple[object, ...]] = sheet.iter_rows(max_row=LAST_ROW)
    return rows


def sheet_cell(cell: Any, written: Any) -> Cell | SheetFault | None:
    """Return the value of a cell, or why it has none."""
    value = cell.value
    if cell.data_type == "e":
        return SheetFault(f"holds the error {value}; correct its formula, or write a value.")
    if value is None and written.data_type == "f":
        return SheetFault("holds a formula without its value; save the file in a spreadsheet program, or write the value.")
    if isinstance(value, str):
        return value.strip() or None
    if value is None or isinstance(value, Cell):
        return value
    return SheetFault(f"holds what is no value of a table ({type(value).__name__}); write a text or a number.")
