"""Small workbooks that are made to take much to read."""

import io
import zipfile
from typing import Any

from openpyxl import Workbook

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
SHEET = "xl/worksheets/sheet1.xml"


def workbook_bytes(rows: list[list[Any]]) -> bytes:
    workbook, into = Workbook(), io.BytesIO()
    for row in rows:
        workbook.active.append(row)  # type: ignore[union-attr]
    workbook.save(into)
    return into.getvalue()


def hostile_workbook(cells: int, named: str, prefix: str = "", encoding: str = "utf-8") -> bytes:
    """A small workbook whose sheet, called so by its relationship, has one row of so many empty cells."""
    into, mark = io.BytesIO(), f"{prefix}:" if prefix else ""
    space = MAIN.replace("xmlns", f"xmlns:{prefix}") if prefix else MAIN
    row = f"<{mark}row>{f'<{mark}c/>' * cells}</{mark}row>"
    data = f"<{mark}sheetData>{row}</{mark}sheetData>"
    sheet = f'<?xml version="1.0" encoding="{encoding}"?><{mark}worksheet {space}>{data}</{mark}worksheet>'
    with (
        zipfile.ZipFile(io.BytesIO(workbook_bytes([["a"], [1]]))) as given,
        zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as made,
    ):
        for part in given.namelist():
            content = sheet.encode(encoding) if part == SHEET else given.read(part).replace(b"sheet1.xml", named.encode())
            made.writestr(f"xl/worksheets/{named}" if part == SHEET else part, content, compresslevel=9)
    return into.getvalue()
