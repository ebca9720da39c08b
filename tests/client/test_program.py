"""The types of the client: mypy takes a program of forty operations and refuses wrong calls; `test_runs.py` runs it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from baton.client.index import OPERATIONS

ROOT = Path(__file__).parents[2]
PROGRAM, WRONG = Path(__file__).with_name("program.py"), Path(__file__).with_name("wrong_program.py")


def test_the_program_calls_forty_operations() -> None:
    called = {node.attr for node in ast.walk(ast.parse(PROGRAM.read_text())) if isinstance(node, ast.Attribute)}
    assert len(called & OPERATIONS.keys()) >= 40


@pytest.mark.server
def test_mypy_takes_the_program_and_refuses_every_wrong_call() -> None:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "tests/client/program.py",
        "tests/client/wrong_program.py",
    ]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    refused = {(name, int(line)) for name, line in re.findall(r"^tests/client/(\S+?):(\d+): error", found, re.MULTILINE)}
    marked = {
        (WRONG.name, number) for number, line in enumerate(WRONG.read_text().splitlines(), 1) if line.endswith("# wrong")
    }
    assert refused == marked, found
