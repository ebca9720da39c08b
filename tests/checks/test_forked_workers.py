"""Workers that are forked run every test once, whatever becomes of it, and report it as one process would."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.server
ROOT = Path(__file__).parents[2]
SUITE = {
    "conftest.py": """
import pytest
from tests.support.forked_workers import ForkedRun

def pytest_runtestloop(session):
    ForkedRun(session, lambda item: item.nodeid.partition("::")[0]).run(2)
    return True

@pytest.fixture(scope="module")
def shared():
    yield []
    print("closed")
""",
    "test_outcomes.py": """
import warnings
import pytest

def test_passes(shared):
    shared.append(1)

def test_fails(shared):
    print("said before")
    assert shared == [2]

@pytest.mark.skip(reason="not here")
def test_is_skipped(shared): ...

def test_warns(shared):
    warnings.warn("look out", UserWarning)
    assert shared == [1]
""",
    "test_death.py": """
import os

def test_before(): ...
def test_dies(): os._exit(7)
def test_after(): ...
""",
    **{f"test_more_{number}.py": "def test_one(): ...\ndef test_two(): ...\n" for number in range(3)},
}


def run_suite(directory: Path, *options: str) -> tuple[int, str, dict[str, list[str]]]:
    """Return how a run of the suite ended, what it printed, and the outcomes of each test."""
    for name, text in SUITE.items():
        (directory / name).write_text(text)
    plain = ("-c", os.devnull, "-p", "no:schemathesis", "--rootdir", ".", "--junitxml=results.xml")
    command = [sys.executable, "-m", "pytest", *plain, *options, "."]
    done = subprocess.run(
        command, cwd=directory, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600
    )
    cases = ElementTree.parse(directory / "results.xml").iter("testcase")
    return done.returncode, done.stdout + done.stderr, {case.attrib["name"]: [part.tag for part in case] for case in cases}


def test_every_test_is_run_and_reported_even_if_a_worker_dies(tmp_path: Path) -> None:
    code, printed, outcomes = run_suite(tmp_path)
    assert code == pytest.ExitCode.TESTS_FAILED, printed
    assert "2 failed, 10 passed, 1 skipped, 1 warning" in printed
    assert {name: parts for name, parts in outcomes.items() if parts} == {
        "test_fails": ["failure"],
        "test_is_skipped": ["skipped"],
        "test_dies": ["failure"],
    }
    assert "a worker ended with 7" in printed
    assert "said before" in printed
    assert "look out" in printed


def test_a_run_ends_with_the_first_failure_where_that_is_asked_for(tmp_path: Path) -> None:
    code, printed, _ = run_suite(tmp_path, "-x")
    assert code == pytest.ExitCode.TESTS_FAILED, printed
    assert "stopping after 1 failures" in printed
