"""The pages name modules that are there."""

import re
from pathlib import Path

from tests.support.documents.fenced_blocks import ROOT, documents, prose_of
from tests.support.tables import for_each

MODULE = re.compile(r"[\w/]+\.py\b")
MODULES = {f"/{path.relative_to(ROOT)}" for room in ("src", "tests") for path in (ROOT / room).rglob("*.py")} | {
    "/worker.py"
}
OF_SITE = ("actions", "kiln", "control", "deciders", "minters")
EXAMPLES = {"src/domain/shift/shift.py", *(f"bl7_baton/{name}.py" for name in OF_SITE)}
"""Modules that a page has its reader write."""


@for_each("page", [page for page in documents() if "reference" not in page.parts])
def test_a_module_that_a_page_names_is_there(page: Path) -> None:
    named = set(MODULE.findall(prose_of(page))) - EXAMPLES
    missing = {name for name in named if not any(module.endswith(f"/{name}") for module in MODULES)}
    assert sorted(missing) == []
