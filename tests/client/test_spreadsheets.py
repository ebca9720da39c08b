"""Spreadsheets as tables: what is read of both formats, and every file that is refused."""

import csv
import io
import zipfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook
from openpyxl.styles import Font

from baton.client import spreadsheets
from baton.client.spreadsheets import (
    MOST_BYTES,
    MOST_UNPACKED_BYTES,
    SpreadsheetError,
    Table,
    TableRow,
    letters,
    read_table,
    read_table_file,
)
from tests.support.tables import for_each

SHEET = "xl/worksheets/sheet1.xml"
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def csv_file(rows: Sequence[Sequence[str]], delimiter: str = ",") -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue().encode()


def workbook_bytes(workbook: Workbook) -> bytes:
    file = io.BytesIO()
    workbook.save(file)
    return file.getvalue()


def workbook_of(rows: Sequence[Sequence[Any]]) -> Workbook:
    workbook = Workbook()
    for number, row in enumerate(rows, start=1):
        for place, value in enumerate(row, start=1):
            workbook.active.cell(number, place, value)
    return workbook


def xlsx_file(rows: Sequence[Sequence[Any]]) -> bytes:
    return workbook_bytes(workbook_of(rows))


def with_part(content: bytes, name: str, part: str | bytes) -> bytes:
    """Return a workbook with another part of this name."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for one in old.infolist():
            if one.filename != name:
                new.writestr(one, old.read(one))
        new.writestr(name, part)
    return file.getvalue()


def with_sheet(rows: str) -> bytes:
    """Return a workbook whose sheet has these rows, as XML."""
    return with_part(xlsx_file([]), SHEET, f"<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>")


def faults(name: str, content: bytes) -> list[str]:
    """Return what a file is refused for."""
    with pytest.raises(SpreadsheetError) as refused:
        read_table(name, content)
    return list(refused.value.faults)


def fault(name: str, content: bytes) -> str:
    [only] = faults(name, content)
    return only


@for_each("delimiter", [",", ";", "\t"])
@for_each("mark", [b"", b"\xef\xbb\xbf"])
def test_a_csv_file_is_read_whatever_parts_its_cells(delimiter: str, mark: bytes) -> None:
    content = mark + csv_file([["title", "exposure"], ["Größe, first; again", "0,5"], ["", "2"]], delimiter)
    assert read_table("Scans.CSV", content) == Table(
        "Scans.CSV",
        ("title", "exposure"),
        (TableRow(2, {"title": "Größe, first; again", "exposure": "0,5"}), TableRow(3, {"exposure": "2"})),
    )


def test_names_in_quotes_part_no_heading() -> None:
    table = read_table("a.csv", b'"title";"angle, end";"x;y"\r\n"a, b";1;2\r\n')
    assert table.columns == ("title", "angle, end", "x;y")
    assert table.rows == (TableRow(2, {"title": "a, b", "angle, end": "1", "x;y": "2"}),)


def test_rows_have_the_numbers_that_people_see() -> None:
    table = read_table("a.csv", b'\n\na,b\n"1\n2",x\n\n , \n3,y\n')
    assert [row.number for row in table.rows] == [4, 7]
    assert table.rows[0].cells["a"] == "1\n2"
    workbook = workbook_of([[], [], ["a", "b"], [1, "x"], [], [" ", None], [3, "y"]])
    assert [row.number for row in read_table("a.xlsx", workbook_bytes(workbook)).rows] == [4, 7]


def test_empty_rows_and_columns_are_left_out() -> None:
    rows = [["", "a", "", "b", ""], ["", "1", "", "", ""], [""] * 5, ["", "", "", "2", ""]]
    expected = (("a", "b"), (TableRow(2, {"a": "1"}), TableRow(4, {"b": "2"})))
    for name, content in (("a.csv", csv_file(rows)), ("a.xlsx", xlsx_file(rows))):
        table = read_table(name, content)
        assert (table.columns, table.rows) == expected


def test_cells_of_a_workbook_have_their_types() -> None:
    at = datetime(2026, 5, 20, 14, 30)
    rows = [["n", "i", "b", "s", "t"], [0.5, 3, True, " x ", at], [1e-9, -2, False, "007", None]]
    table = read_table("a.xlsx", xlsx_file(rows))
    assert [dict(row.cells) for row in table.rows] == [
        {"n": 0.5, "i": 3, "b": True, "s": "x", "t": at},
        {"n": 1e-9, "i": -2, "b": False, "s": "007"},
    ]
    assert type(table.rows[0].cells["i"]) is int
    assert type(table.rows[0].cells["b"]) is bool


def test_the_first_sheet_that_is_not_hidden_is_read() -> None:
    workbook = workbook_of([["old"], [1]])
    workbook.active.sheet_state = "hidden"
    workbook.create_sheet("Second").append(["a"])
    workbook["Second"].append([7])
    workbook.create_sheet("Third").append(["c"])
    assert read_table("a.xlsx", workbook_bytes(workbook)).rows == (TableRow(2, {"a": 7}),)
    content = workbook_bytes(workbook)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        all_hidden = archive.read("xl/workbook.xml").replace(b'state="visible"', b'state="hidden"')
    assert fault("a.xlsx", with_part(content, "xl/workbook.xml", all_hidden)).startswith("has no sheet with cells")


def test_values_of_formulas_are_read_and_formulas_without_one_are_refused() -> None:
    heading = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c></row>'
    calculated = with_sheet(f'{heading}<row r="2"><c r="A2"><f>1+1</f><v>2</v></c></row>')
    assert read_table("a.xlsx", calculated).rows == (TableRow(2, {"a": 2}),)
    assert fault("a.xlsx", xlsx_file([["a"], ["=1+1"]])).startswith("row 2, column a: holds a formula without its value")
    wrong = with_sheet(f'{heading}<row r="2"><c r="A2" t="e"><f>1/0</f><v>#DIV/0!</v></c></row>')
    assert fault("a.xlsx", wrong).startswith("row 2, column a: holds the error #DIV/0!")


def test_a_sheet_is_read_whatever_it_says_of_its_size() -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}" t="inlineStr"><is><t>x{n}</t></is></c></row>' for n in (1, 2, 3))
    part = f'<worksheet {MAIN}><dimension ref="A1"/><sheetData>{rows}</sheetData></worksheet>'
    assert len(read_table("a.xlsx", with_part(xlsx_file([]), SHEET, part)).rows) == 2


def test_formats_beside_the_table_are_no_rows() -> None:
    workbook = workbook_of([["a"], [1]])
    for number in range(3, 3000):
        workbook.active.cell(number, 5).font = Font(bold=True)
    assert read_table("a.xlsx", workbook_bytes(workbook)).rows == (TableRow(2, {"a": 1}),)


words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
tables = st.lists(words, min_size=1, max_size=5, unique=True).flatmap(
    lambda heading: st.tuples(
        st.just(heading),
        st.lists(st.lists(st.none() | words, min_size=len(heading), max_size=len(heading)), min_size=1, max_size=6),
    )
)


def expected_rows(heading: list[str], rows: list[list[Any]]) -> tuple[TableRow, ...]:
    """Return the rows that a table of these has."""
    numbered = enumerate(rows, start=2)
    cells = ((n, {name: cell for name, cell in zip(heading, row, strict=True) if cell is not None}) for n, row in numbered)
    return tuple(TableRow(number, filled) for number, filled in cells if filled)


@given(tables, st.sampled_from(",;\t"))
def test_a_table_that_was_written_as_csv_comes_back(written: tuple[list[str], list[list[Any]]], delimiter: str) -> None:
    heading, rows = ["title", "second", *written[0]], [["x", "y", *row] for row in written[1]]
    if len(set(heading)) != len(heading):
        return
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([heading, *rows])
    table = read_table("t.csv", file.getvalue().encode())
    assert table == Table("t.csv", tuple(heading), expected_rows(heading, rows))


values = (
    st.none()
    | words
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(-1e6, 1e6).map(lambda x: round(x + 0.5, 6))  # a workbook keeps 16 digits
)


@given(st.lists(st.tuples(values, values, values), min_size=1, max_size=5))
def test_a_table_that_was_written_as_a_workbook_comes_back(rows: list[tuple[Any, ...]]) -> None:
    heading = ["a", "b", "c"]
    safe = [[None if isinstance(cell, str) and cell.startswith(("=", "#")) else cell for cell in row] for row in rows]
    expected = expected_rows(heading, safe)
    if not expected:
        return
    assert read_table("t.xlsx", xlsx_file([heading, *safe])).rows == expected


def test_every_fault_of_a_file_is_said_with_its_place() -> None:
    content = csv_file([["a", "b", "a", "", "e"], ["1", "2", "3", "4", "5"], ["1", "2", "3", "", "5" * 10_001]])
    assert faults("a.csv", content) == [
        "column a: it stands twice, in A and C; name one otherwise.",
        "column D: there are values and no name above them; name the column or empty it.",
        "row 3, column e: has more than 10000 characters; shorten it.",
    ]


def test_twenty_faults_are_listed_and_the_others_counted() -> None:
    content = xlsx_file([["a"], *[["=1+1"]] * 33])
    with pytest.raises(SpreadsheetError) as refused:
        read_table("a.xlsx", content)
    error = refused.value
    assert (len(error.faults), error.more) == (20, 13)
    assert error.sentences[0].startswith("a.xlsx, row 2, column a: holds a formula")
    assert error.sentences[-1] == "a.xlsx has 13 more faults."


@for_each(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\n , \n", "is empty"),
        ("a.csv", b"a,b\n", "has a heading and no rows"),
        ("a.csv", b"a,b\n1,2,3\n", "column C: there are values and no name above them"),
        ("a.csv", b"a,b;c\n1,2\n", "has commas and semicolons in its heading"),
        ("a.csv", "a,b\nGröße,1\n".encode("latin-1"), "is not in UTF-8, from line 2 on"),
        ("a.csv", "a,b\n1,2\n".encode("utf-16"), "is no text"),
        ("a.csv", b'a,b\n"1,2\n', "row 2: cannot be parted into cells: unexpected end of data"),
        ("a.csv", b'a,b\n1,2\n"1"x,2\n', "row 3: cannot be parted into cells"),
        ("a.csv", bytes(range(256)) * 10, "is no text"),
        ("a.csv", b"a\n" + b"1\n" * 501, "has more than 500 rows"),
        ("a.csv", csv_file([[f"c{n}" for n in range(201)], ["1"]]), "has more than 200 columns"),
        ("a.csv", b"a," * MOST_BYTES, "has more than 5 MB"),
        ("a.txt", b"a,b\n1,2\n", "is no .csv and no .xlsx file"),
        ("a.xls", b"a,b\n1,2\n", "is no .csv and no .xlsx file"),
        ("a.xlsx", b"", "is no .xlsx file, or a damaged one"),
        ("a.xlsx", b"a,b\n1,2\n", "is no .xlsx file, or a damaged one"),
        ("a.xlsx", bytes(range(256)) * 10, "is no .xlsx file, or a damaged one"),
        ("a.xlsx", bytes.fromhex("d0cf11e0a1b11ae1") + bytes(1000), "is encrypted, or of a program before 2007"),
        ("a.xlsx", xlsx_file([]), "is empty"),
        ("a.xlsx", xlsx_file([["a"], [1]])[:-30], "is no .xlsx file, or a damaged one"),
        ("a.xlsx", xlsx_file([["a"], *[[1]] * 501]), "has more than 500 rows"),
        ("a.xlsx", xlsx_file([[f"c{n}" for n in range(201)], [1]]), "has more than 200 columns"),
        ("a.xlsx", xlsx_file([[datetime(2026, 5, 20)], [1]]), "row 1, column A: the name of a column must be a text"),
        ("a.xlsx", with_part(xlsx_file([["a"], [1]]), SHEET, "<worksheet"), "is no workbook that can be read"),
        ("a.xlsx", with_part(xlsx_file([["a"], [1]]), "xl/workbook.xml", "<x/>"), "has no sheet with cells"),
    ],
)
def test_a_file_that_is_no_table_is_refused(name: str, content: bytes, sentence: str) -> None:
    assert fault(name, content).startswith(sentence)


def test_600_rows_are_refused_in_both_formats() -> None:
    rows = [["a"], *[["1"]] * 600]
    assert fault("a.csv", csv_file(rows)) == fault("a.xlsx", xlsx_file(rows)) == "has more than 500 rows; split it."
    assert (
        len(read_table("a.csv", csv_file(rows[:501])).rows) == len(read_table("a.xlsx", xlsx_file(rows[:501])).rows) == 500
    )


def test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    large = with_part(xlsx_file([["a"], [1]]), "xl/media/image1.bin", bytes(MOST_UNPACKED_BYTES + 1))
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as archive:
        for number in range(1001):
            archive.writestr(f"part{number}", "")
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_, **__: pytest.fail("it was unpacked"))
    for bomb in (large, many.getvalue()):
        assert len(bomb) < 200_000
        assert fault("a.xlsx", bomb).startswith("has more than 25 MB unpacked")


def test_a_size_in_the_directory_that_is_not_true_unpacks_no_more() -> None:
    """The directory says a hundred bytes; what is packed are many more."""
    bomb = bytearray(with_part(xlsx_file([["a"], [1]]), SHEET, b"<" + b" " * 10_000_000))
    place = bomb.rindex(SHEET.encode()) - 46  # its record in the directory
    assert bomb[place : place + 4] == b"PK\x01\x02"
    bomb[place + 24 : place + 28] = (100).to_bytes(4, "little")
    assert fault("a.xlsx", bytes(bomb)).startswith("is no ")


def test_an_encrypted_part_is_refused() -> None:
    content = bytearray(xlsx_file([["a"], [1]]))
    place = content.rindex(SHEET.encode()) - 46
    content[place + 8] |= 1
    assert fault("a.xlsx", bytes(content)).startswith("is encrypted")


@for_each("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(encoding: str) -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    doctype = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]>'
    sheet = f"{doctype}<worksheet {MAIN}>&l9;</worksheet>"
    content = with_part(xlsx_file([["a"], [1]]), SHEET, sheet.encode(encoding))
    assert fault("a.xlsx", content).startswith("declares entities")


@for_each(
    ("content", "sentence"),
    [
        (with_sheet("<row/>" * 1_000_000), "holds too many cells"),
        (with_sheet('<row><c r="ZZZ1"/></row>' * 1000), "holds too many cells"),
        (
            with_part(xlsx_file([["a"], [1]]), "xl/styles.xml", f"<styleSheet {MAIN}>{'<x/>' * 50_000}</styleSheet>"),
            "holds too many",
        ),
    ],
)
def test_what_would_take_for_ever_to_read_is_refused(content: bytes, sentence: str) -> None:
    assert len(content) < 50_000
    assert fault("a.xlsx", content).startswith(sentence)


def test_a_row_that_claims_to_be_far_below_the_sheet_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreadsheets, "LAST_ROW", 20_000)
    far = with_sheet('<row r="1"><c r="A1"><v>1</v></c></row><row r="100000000000"><c r="A2"><v>1</v></c></row>')
    assert fault("a.xlsx", far).startswith("has a heading")


def test_a_file_is_read_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "scans.csv"
    with pytest.raises(SpreadsheetError, match=r"scans\.csv cannot be read: No such file or directory\."):
        read_table_file(path)
    path.write_bytes(b"a\n1\n")
    assert read_table_file(path).rows == (TableRow(2, {"a": "1"}),)
    path.write_bytes(b"a" * (MOST_BYTES + 1))
    with pytest.raises(SpreadsheetError, match="has more than 5 MB"):
        read_table_file(path)


def test_columns_are_called_as_in_a_spreadsheet() -> None:
    assert [letters(place) for place in (0, 25, 26, 51, 52, 701, 702)] == ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]
