"""What the page on coverage says is missing is missing, and nothing else that was specified is."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from baton.domain.contexts import REGISTRY

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coverage.md").read_text()
SPECIFICATION = ROOT.parent / "shared" / "spec" / "operations.json"
LINES: list[dict[str, Any]] = json.loads((ROOT / "tests" / "data" / "operations.json").read_text())
BEYOND = {line["name"] for line in LINES if "beyond" in line}
"""What is offered beyond the specification."""
OFFERED = REGISTRY.operations.keys() - BEYOND
MISSING = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))


def test_nothing_that_is_offered_is_called_missing() -> None:
    assert MISSING & REGISTRY.operations.keys() == set()


def test_the_page_counts_what_is_offered() -> None:
    specified, offered = map(int, re.findall(r"\b(\d{3})\b", PAGE)[:2])
    assert (specified, offered) == (len(MISSING) + len(OFFERED), len(OFFERED))


@pytest.mark.skipif(not SPECIFICATION.exists(), reason="the specification does not lie beside this repository")
def test_everything_specified_is_offered_or_called_missing() -> None:
    specified: dict[str, dict[str, Any]] = {row["name"]: row for row in json.loads(SPECIFICATION.read_text())}
    assert specified.keys() - OFFERED == MISSING
    for operation in (one for one in REGISTRY if one.name in OFFERED):
        row = specified[operation.name]
        declared = (operation.kind, operation.command_name, operation.method, operation.mcp, without_names(operation.path))
        assert declared == (row["kind"], row["command_name"], row["method"], row["mcp"], without_names(row["path"]))


def without_names(path: str) -> str:
    """Return a path without the names of its placeholders."""
    return re.sub(r"\{[^}]+\}", "{}", path)
