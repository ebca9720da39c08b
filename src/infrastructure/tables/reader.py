"""The process that reads spreadsheets, confined; it imports nothing of the service but the client's tables.

`python -I -m baton.infrastructure.tables.reader FD`. What is wanted is the table of a file with this suffix; the answer is
the table, or what is wrong with the file."""

import os
import socket
import sys
from datetime import date, datetime, time, timedelta
from typing import Any

from baton.client.spreadsheets import Cell, SpreadsheetError, read_table
from baton.infrastructure.confinement import ReadingLimits, serve

TOO_DEAR = "takes too much to read; copy the table alone into a new file."


def read(file: int, wanted: str, limits: ReadingLimits) -> dict[str, Any]:
    """Return the table in a file, or what is wrong with it."""
    try:
        with open(file, "rb", closefd=False) as opened:
            content = opened.read()
        table = read_table(f"table{wanted}", content)
    except SpreadsheetError as error:
        return {"faults": list(error.faults), "more": error.more}
    except MemoryError:
        return {"faults": [TOO_DEAR], "more": 0}
    rows = [
        {"number": row.number, "cells": {name: plain_cell(one) for name, one in row.cells.items()}} for row in table.rows
    ]
    return {"table": {"columns": table.columns, "rows": rows}}


def plain_cell(cell: Cell) -> Any:
    """Return a cell as JSON has it; times say what they are."""
    match cell:
        case datetime() | date() | time():
            return {"kind": type(cell).__name__, "text": cell.isoformat()}
        case timedelta():
            return {"kind": "timedelta", "text": repr(cell.total_seconds())}
    return cell


def load_libraries() -> None:
    """Load what children need before they are confined, as far as it is installed."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        return


if __name__ == "__main__":
    load_libraries()
    serve(socket.socket(fileno=int(sys.argv[1])), read)
