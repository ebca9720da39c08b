"""The pages for engineers name modules that are there."""

import re
from pathlib import Path

from tests.support.documents.fenced_blocks import ROOT, prose_of
from tests.support.tables import for_each

MODULE = re.compile(r"[\w/]+\.py\b")
MODULES = {f"/{path.relative_to(ROOT)}" for room in ("src", "tests") for path in (ROOT / room).rglob("*.py")} | {
    "/worker.py"
}
EXAMPLES = {"src/domain/shift/shift.py", *(f"bl7_baton/{name}.py" for name in ("actions", "control", "deciders", "minters"))}
"""Modules that a page has its reader write."""


@for_each("page", ["architecture.md", "developing.md", "extending.md", "operating.md"])
def test_a_module_that_a_page_names_is_there(page: str) -> None:
    named = set(MODULE.findall(prose_of(Path("docs") / page))) - EXAMPLES
    missing = {name for name in named if not any(module.endswith(f"/{name}") for module in MODULES)}
    assert sorted(missing) == []
