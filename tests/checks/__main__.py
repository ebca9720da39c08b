"""The checks of names that no linter makes: `python -m tests.checks` prints what is wrong, and exits with 1 if anything is.

Class names stand once in `src`; every word of the glossary leads to a place that has it; functions are no bare participles.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
ENTRY = re.compile(r"^\| \*\*(?P<word>[^*]+)\*\* \| (?P<meaning>.+?) \| (?P<place>.+?) \| (?P<other>.*?) \|$")
NAME = re.compile(r"`(?:(?P<path>src/[\w/.]+|worker\.py)(?::(?P<name>\w+))?)`")
BARE_PARTICIPLE = re.compile(
    "_*([a-z]+(ed|ing)|told|found|had|seen|kept|shown|given|taken|brought|known|left|made|met|said|written|driven|heard|led"
    "|begun)_*"
)
"""Names that say of a function neither what it does nor what it returns."""
NOUNS = {
    *(
        "binding",
        "everything",
        "exceed",
        "feed",
        "heed",
        "listing",
        "meaning",
        "need",
        "nothing",
        "pending",
        "reading",
        "ring",
    ),
    *("seed", "spending", "string", "succeed", "timing", "tracing", "missing", "given", "disconnected"),
}
"""Words that end like participles and are none, the steps of a given-when-then, and a method of caproto."""
AVOIDED = re.compile(r"\b(whoever|what comes of|be had|its affair|told of|the affair of)\b", re.IGNORECASE)
"""Phrases that readers stumble over; refusal sentences are not touched by this, docstrings are."""


def definitions(path: Path) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every class and function that a module defines, however deep."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def repeated_classes(modules: list[Path]) -> Iterator[str]:
    """Yield a complaint for each class name that is defined more than once."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules:
        for node in definitions(path):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    for name, where in sorted(places.items()):
        if len(where) > 1:
            yield f"class {name} is defined more than once: {', '.join(where)}"


def unclear_names(modules: list[Path]) -> Iterator[str]:
    """Yield a complaint for each function named by a bare participle, and for each docstring with an avoided phrase."""
    for path in modules:
        for node in definitions(path):
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            if not isinstance(node, ast.ClassDef) and is_bare_participle(node):
                yield f"{place}: {node.name} says neither what it does nor what it returns"
            if phrase := AVOIDED.search(ast.get_docstring(node) or ""):
                yield f"{place}: the docstring says {phrase[0]!r}; say it plainly"


def is_bare_participle(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a function is named by a participle alone; a property may be, since it is read like an adjective."""
    is_property = any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list)
    return bool(BARE_PARTICIPLE.fullmatch(node.name)) and node.name.strip("_") not in NOUNS and not is_property


def lost_words() -> Iterator[str]:
    """Yield a complaint for each entry of the glossary that is malformed or leads nowhere."""
    words: list[str] = []
    for number, line in enumerate(GLOSSARY.read_text().splitlines(), start=1):
        if not line.startswith("| **"):
            continue
        entry = ENTRY.match(line)
        if entry is None:
            yield f"docs/glossary.md:{number}: an entry is `| **word** | what it is | where it lives | what it is not |`"
            continue
        words.append(entry["word"])
        places = list(NAME.finditer(entry["place"]))
        if not places:
            yield f"docs/glossary.md:{number}: {entry['word']} names no place as `src/path.py:Name`"
        for place in places:
            path = ROOT / place["path"]
            if not path.exists():
                yield f"docs/glossary.md:{number}: there is no {place['path']}"
            elif place["name"] and not re.search(rf"\b{place['name']}\b", path.read_text()):
                yield f"docs/glossary.md:{number}: {place['path']} has no {place['name']}"
    for word in sorted({word for word in words if words.count(word) > 1}):
        yield f"docs/glossary.md: {word} has two entries"


def main() -> None:
    """Print every complaint, and exit with 1 if there is one."""
    modules = sorted((ROOT / "src").rglob("*.py"))
    tests = sorted(path for path in (ROOT / "tests").rglob("*.py") if "data" not in path.parts)
    complaints = [*repeated_classes(modules), *unclear_names([*modules, *tests]), *lost_words()]
    for complaint in complaints:
        print(complaint)
    print(f"names: {len(modules) + len(tests)} modules, {len(complaints)} complaints")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
