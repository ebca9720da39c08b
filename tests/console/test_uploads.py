"""What somebody uploads is read in a confined process: a hostile spreadsheet is refused soon, and costs the API nothing."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from datetime import time as time_of_day

import psutil
import pytest

from baton.client.spreadsheets import SpreadsheetError, read_table
from baton.infrastructure.tables.reader_process import TableReaderProcess, judge_answer
from tests.support.hostile_workbooks import hostile_workbook, workbook_bytes
from tests.support.tables import for_each

MIB = 2**20


@pytest.fixture
async def reader() -> AsyncIterator[TableReaderProcess]:
    reader = TableReaderProcess()
    await reader.read_table("warm.csv", b"a\n1\n")
    yield reader
    reader.close()


FORMS = {
    "a part of another name": {"cells": 1_500_000, "named": "sheet1.dat"},
    "its own name": {"cells": 240_000, "named": "sheet1.xml"},
    "another prefix": {"cells": 1_000_000, "named": "sheet1.bin", "prefix": "zz"},
    "another encoding": {"cells": 1_000_000, "named": "sheet1.dat", "encoding": "utf-16"},
    "letters that hide the signs": {"cells": 240_000, "named": "sheet1.dat", "encoding": "cp037"},
}


@pytest.mark.parametrize("form", FORMS)
async def test_a_hostile_workbook_is_refused_soon_and_cheaply(reader: TableReaderProcess, form: str) -> None:
    content, own, begun = hostile_workbook(**FORMS[form]), psutil.Process(), time.process_time()  # type: ignore[arg-type]
    before, most, done = own.memory_info().rss, [0], asyncio.Event()
    assert len(content) < 40_000

    async def watch() -> None:
        while not done.is_set():
            most.append(memory_of_children(own))
            await asyncio.sleep(0.005)

    idle = memory_of_children(own)
    watching = asyncio.create_task(watch())
    with pytest.raises(SpreadsheetError) as refused:
        await reader.read_table("night.xlsx", content)
    done.set()
    await watching
    assert refused.value.faults[0].startswith(("holds too many cells", "is no workbook"))
    assert time.process_time() - begun < 2
    assert own.memory_info().rss - before < 20 * MIB
    assert max(most) - idle < 200 * MIB  # the child shares the libraries of the process that it is a copy of


def memory_of_children(process: psutil.Process) -> int:
    """Return the memory of the processes below one, without those that end meanwhile."""
    used = 0
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            used += child.memory_info().rss
    return used


async def test_a_table_comes_back_as_it_is(reader: TableReaderProcess) -> None:
    heading = ["text", "whole", "part", "truth", "moment", "day", "hour", "span"]
    row = ["0042", 7, 0.5, True, datetime(2026, 5, 20, 14, 30), date(2026, 5, 20), time_of_day(8, 15), timedelta(hours=30)]
    for name, content in (("a.xlsx", workbook_bytes([heading, row, ["b"]])), ("a.csv", b"a;b\n1;2\n3;\n")):
        assert await reader.read_table(name, content) == read_table(name, content)


async def test_faults_come_back_as_they_are(reader: TableReaderProcess) -> None:
    for name, content in (("a.csv", b"a,a\n1,2\n"), ("a.xlsx", workbook_bytes([["a"], *[["=1"]] * 30])), ("a.ods", b"")):
        with pytest.raises(SpreadsheetError) as here:
            read_table(name, content)
        with pytest.raises(SpreadsheetError) as there:
            await reader.read_table(name, content)
        assert (there.value.sentences, there.value.more) == (here.value.sentences, here.value.more)


@for_each(
    "answer",
    [
        *(
            b"",
            b"{}\n",
            b"{",
            b"no JSON\n",
            b"late",
            b'{"table": {"columns": ["a"], "rows": [{"number": 1, "cells": {"a": []}}]}}\n',
        ),
        b'{"table": {"columns": ["a"], "rows": [{"number": 1, "cells": {"a": {"kind": "date", "text": "never"}}}]}}\n',
    ],
)
def test_an_answer_that_makes_no_sense_is_not_believed(answer: bytes) -> None:
    with pytest.raises(SpreadsheetError):
        judge_answer("a.csv", answer)
