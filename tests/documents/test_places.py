"""The pages for engineers name modules that are there."""

import re
from pathlib import Path

import pytest

from tests.documents.blocks import ROOT, prose_of

MODULE = re.compile(r"[\w/]+\.py\b")
MODULES = {f"/{path.relative_to(ROOT)}" for room in ("src", "tests") for path in (ROOT / room).rglob("*.py")} | {
    "/worker.py"
}
EXAMPLES = {"domain/shift/shift.py"}
"""Modules that a page has its reader write."""


@pytest.mark.parametrize("page", ["architecture.md", "extending.md", "operating.md"])
def test_a_module_that_a_page_names_is_there(page: str) -> None:
    named = set(MODULE.findall(prose_of(Path("docs") / page))) - EXAMPLES
    missing = {name for name in named if not any(module.endswith(f"/{name}") for module in MODULES)}
    assert sorted(missing) == []
