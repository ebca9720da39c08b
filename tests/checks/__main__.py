"""The checks that no linter makes: `python -m tests.checks` prints what is wrong, and exits with 1 if anything is.

Class names stand once in `src`; every word of the glossary leads to a place that defines it; functions are no bare
participles; nothing in `src` reads bytecode, which every version of Python changes; commit subjects name no directory of a
machine.
"""

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
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

DEFINITION = r"^ *(?:(?:async )?def |class )?{}\b(?!\.)"
MACHINE_DIRECTORY = re.compile(r"(?<!\w)/(?:home|mnt|private|root|srv|tmp|Users|var|work)/")
BYTECODE = re.compile(r"\b(?:import dis|co_code|co_consts|co_names|get_instructions)\b")


CLASS, FUNCTION = (re.compile(rf"^ *(?:async +)?{word} +(\w+)", re.MULTILINE) for word in ("class", "def"))
"""Lines that look like definitions: only a module with a suspicious one is parsed, which takes a hundred times as long."""


def definitions(path: Path) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every class and function that a module defines, however deep."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def repeated_classes(modules: list[Path]) -> Iterator[str]:
    """Yield a complaint for each class name that is defined more than once."""
    mentions = Counter(name for path in modules for name in CLASS.findall(path.read_text()))
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules:
        if all(mentions[name] == 1 for name in CLASS.findall(path.read_text())):
            continue
        for node in definitions(path):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    for name, where in sorted(places.items()):
        if len(where) > 1:
            yield f"class {name} is defined more than once: {', '.join(where)}"


def unclear_names(modules: list[Path]) -> Iterator[str]:
    """Yield a complaint for each function named by a bare participle, and for each docstring with an avoided phrase."""
    for path in modules:
        text = path.read_text()
        if not AVOIDED.search(text) and not any(map(is_bare_participle, FUNCTION.findall(text))):
            continue
        for node in definitions(path):
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            if (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                and is_bare_participle(node.name)
                and not is_property(node)
            ):
                yield f"{place}: {node.name} says neither what it does nor what it returns"
            if phrase := AVOIDED.search(ast.get_docstring(node) or ""):
                yield f"{place}: the docstring says {phrase[0]!r}; say it plainly"


def is_bare_participle(name: str) -> bool:
    """Tell whether a function's name is a participle alone."""
    return bool(BARE_PARTICIPLE.fullmatch(name)) and name.strip("_") not in NOUNS


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a function is read like an attribute, so that an adjective names it well."""
    return any(isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list)


def read_bytecode(modules: list[Path]) -> Iterator[str]:
    """Yield a complaint for each module that reads bytecode."""
    for path in modules:
        if found := BYTECODE.search(path.read_text()):
            yield f"{path.relative_to(ROOT)}: `{found[0]}` differs between Pythons; read the source (`source_text`)"


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
            elif place["name"] and not re.search(DEFINITION.format(place["name"]), path.read_text(), re.M):
                yield f"docs/glossary.md:{number}: {place['path']} does not define {place['name']}"
    for word in sorted({word for word in words if words.count(word) > 1}):
        yield f"docs/glossary.md: {word} has two entries"


def unclear_subjects() -> Iterator[str]:
    """Yield a complaint for each commit since the last tag whose subject names a directory of a machine."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return
    tag = git("describe", "--tags", "--abbrev=0")
    for subject in git("log", "--format=%s", f"{tag}..HEAD").splitlines() if tag else ():
        if MACHINE_DIRECTORY.search(subject):
            yield f"commit {subject!r}: name the part, not a directory of a machine"


def git(*arguments: str) -> str:
    """Return what git prints; nothing where it fails, as without a tag."""
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False).stdout.strip()


def main() -> None:
    """Print every complaint, and exit with 1 if there is one."""
    modules = sorted((ROOT / "src").rglob("*.py"))
    tests = sorted(path for path in (ROOT / "tests").rglob("*.py") if "data" not in path.parts)
    named = [*repeated_classes(modules), *unclear_names([*modules, *tests]), *lost_words()]
    complaints = [*named, *read_bytecode(modules), *unclear_subjects()]
    for complaint in complaints:
        print(complaint)
    print(f"checks: {len(modules) + len(tests)} modules, {len(complaints)} complaints")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
