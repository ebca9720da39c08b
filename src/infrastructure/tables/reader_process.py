"""The process that reads spreadsheets, as the API sees it, and what is believed of its answers."""

import asyncio
import os
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError

from baton.client.spreadsheets import (
    MOST_BYTES,
    MOST_COLUMNS,
    MOST_ROWS,
    SHOWN_FAULTS,
    Cell,
    SpreadsheetError,
    Table,
    TableRow,
    too_large,
)
from baton.domain.kernel import Value
from baton.infrastructure.confined_reader import LATE, ConfinedReader, ReaderLostError

MEMORY_BYTES = 256 * 1024 * 1024  # half of it for the libraries
SECONDS = 15
AT_ONCE = 2  # spreadsheets that are read side by side
LONGEST_ANSWER = 16 * 1024 * 1024  # bytes
SUFFIXES = (".csv", ".xlsx")


class TimeCell(Value):
    """A cell with a time, which JSON cannot say."""

    kind: Literal["datetime", "date", "time", "timedelta"]
    text: Annotated[str, Field(max_length=100)]

    def value(self) -> Cell:
        """Return the time; raise ValueError where it is none."""
        if self.kind == "timedelta":
            return timedelta(seconds=float(self.text))
        kinds: dict[str, type[datetime | date | time]] = {"datetime": datetime, "date": date, "time": time}
        return kinds[self.kind].fromisoformat(self.text)


class AnsweredRow(Value):
    """A row as the reading process answers it."""

    number: int
    cells: dict[str, bool | int | float | str | TimeCell]


class AnsweredTable(Value):
    """A table as the reading process answers it."""

    columns: Annotated[tuple[str, ...], Field(max_length=MOST_COLUMNS)]
    rows: Annotated[tuple[AnsweredRow, ...], Field(max_length=MOST_ROWS)]


class TableReport(Value):
    """What the reading process answers; it has looked at a hostile file, and is believed only as far as this form goes."""

    model_config = ConfigDict(strict=True)
    table: AnsweredTable | None = None
    faults: Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(max_length=SHOWN_FAULTS)] = ()
    more: int = 0


class TableReaderProcess(ConfinedReader):
    """Reads spreadsheets in a process that may take so much memory and time for each."""

    module = "baton.infrastructure.tables.reader"
    environment = {"OPENBLAS_NUM_THREADS": "1"}
    longest_answer = LONGEST_ANSWER

    def __init__(self, memory_bytes: int = MEMORY_BYTES, seconds: int = SECONDS) -> None:
        super().__init__(memory_bytes, seconds)
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def read_table(self, name: str, content: bytes) -> Table:
        """Return the table in the content of a .csv or .xlsx file of this name, or refuse it."""
        suffix = Path(name).suffix.lower()
        if suffix not in SUFFIXES:
            raise SpreadsheetError(name, ["is no .csv and no .xlsx file; save it as one of them."])
        if len(content) > MOST_BYTES:
            raise SpreadsheetError(name, [too_large(MOST_BYTES)])
        async with self._turns:
            file = memory_file(content)
            try:
                answer = await self.ask(suffix, file)
            except ReaderLostError:
                detail = "cannot be read: the process that reads files does not run; tell the operators of the service."
                raise SpreadsheetError(name, [detail]) from None
            finally:
                os.close(file)
        return judge_answer(name, answer)


def memory_file(content: bytes) -> int:
    """Return the descriptor of a file in memory, at its beginning."""
    file = os.memfd_create("table")
    with open(file, "wb", closefd=False) as written:
        written.write(content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def judge_answer(name: str, answer: bytes) -> Table:
    """Return the table in an answer, as far as it is to be believed, or refuse the file."""
    if answer is LATE:
        raise SpreadsheetError(name, [f"takes longer than {SECONDS} s to read; copy the table alone into a new file."])
    if not answer.endswith(b"\n"):
        raise SpreadsheetError(name, ["takes too much to read; copy the table alone into a new file."])
    table, report = None, TableReport()
    with suppress(ValidationError, ValueError, OverflowError):
        report = TableReport.model_validate_json(answer)
        table = None if report.table is None else table_of_form(name, report.table)
    if table is None or report.faults:
        raise SpreadsheetError(name, report.faults or ["cannot be read; save it again."], more=max(report.more, 0))
    return table


def table_of_form(name: str, form: AnsweredTable) -> Table:
    """Return the table that an answer describes."""
    rows = (
        TableRow(row.number, {key: one.value() if isinstance(one, TimeCell) else one for key, one in row.cells.items()})
        for row in form.rows
    )
    return Table(name, form.columns, tuple(rows))
