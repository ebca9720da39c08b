"""The checks that no linter makes: `python -m tests.checks` prints what is wrong, and exits with 1 if anything is.

Class names are unique in `src`; every word of the glossary leads to a place that defines it; functions are no bare
participles; nothing in `src` reads bytecode, which every version of Python changes; commit subjects name no directory of a
machine; documents are short, and written in plain sentences.
"""

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.support.documents.fenced_blocks import documents, prose_of

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
        "mapping",
        "meaning",
        "standing",
        "need",
        "nothing",
        "pending",
        "reading",
        "ring",
    ),
    *("seed", "spending", "string", "succeed", "timing", "tracing", "missing", "given", "gated", "disconnected"),
}
"""Words that end like participles and are none, steps of a given-when-then, a decorator of plans, a method of caproto."""
AVOIDED = re.compile(r"\b(whoever|what comes of|be had|its affair|told of|the affair of)\b", re.IGNORECASE)
"""Phrases that readers stumble over; refusal sentences are not touched by this, docstrings are."""

UNCLEAR = re.compile(
    r"\b(?:[Aa]new|[Ww]ho(?:m)?ever|be it that|told of|(?:go|goes|going|went|gone) on|stands)\b|^(?:Who|What)\b[^?]*$"
)
"""Words of documents with a plainer one, and sentences whose subject is a clause; questions have a question mark."""
SENTENCE = re.compile(r"(?<=[.:;?!])\** +(?=\W*[A-Z])")
PARAGRAPH = re.compile(r"\n(?=\s*(?:\n|[-*#|] ?|\d+\. ))")
CODE = re.compile(r"`[^`]*`")
LONGEST = 1_500  # words of a document, code apart
LONG = {"docs/performance.md": "tables of figures", "docs/glossary.md": "a table of words"}
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


def lost_words(glossary: str) -> Iterator[str]:
    """Yield a complaint for each entry of the glossary that is malformed or leads nowhere."""
    words: list[str] = []
    for number, line in enumerate(glossary.splitlines(), start=1):
        if not line.startswith("| **"):
            continue
        entry = ENTRY.match(line)
        if entry is None:
            yield f"docs/glossary.md:{number}: an entry is `| **word** | meaning | place | what it is not |`"
            continue
        words.append(entry["word"])
        place = NAME.fullmatch(entry["place"])
        if place is None:
            yield f"docs/glossary.md:{number}: {entry['word']} names no place as `src/path.py:Name`"
        elif not (ROOT / place["path"]).exists():
            yield f"docs/glossary.md:{number}: there is no {place['path']}"
        elif fault := fault_of_place(entry["word"], ROOT / place["path"], place["name"]):
            yield f"docs/glossary.md:{number}: {fault}"
    for word in sorted({word for word in words if words.count(word) > 1}):
        yield f"docs/glossary.md: {word} has two entries"


def fault_of_place(word: str, path: Path, name: str | None) -> str | None:
    """Return why a module is not the place of a word: it does not define the name, or no name or docstring says the word."""
    module = ast.parse(path.read_text())
    said = [*path.relative_to(ROOT).with_suffix("").parts, ast.get_docstring(module) or ""]
    if name is not None:
        found = next((node for node in ast.walk(module) if name in defined_names(node)), None)
        if found is None:
            return f"{path.relative_to(ROOT)} does not define {name}"
        docstring = ast.get_docstring(found) if isinstance(found, ast.ClassDef | ast.FunctionDef) else None
        said = [*said, name, docstring or ""]
    text = re.sub(r"\W|_", "", "".join(said)).lower()
    return None if any(part in text for part in word.lower().split()) else f"{':'.join(said[-2:])!r} says nothing of {word}"


def defined_names(node: ast.AST) -> list[str]:
    """Return the names that a statement defines: a class, a function, or what is assigned to."""
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return [node.name]
        case ast.Assign():
            return [target.id for target in node.targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


def unclear_prose(page: str, prose: str) -> Iterator[str]:
    """Yield a complaint for each turn of phrase in a document that readers stumble over, and for a document that is long."""
    number = 1
    for paragraph in PARAGRAPH.split(prose):
        text = " ".join(CODE.sub("code", paragraph).split()).lstrip("-* ")
        if not text.startswith(("#", "|")):  # headings and tables are no sentences
            for found in filter(None, map(UNCLEAR.search, SENTENCE.split(text))):
                yield f"{page}:{number}: {found[0][:60]!r}: give the sentence a plain subject and verb"
        number += paragraph.count("\n") + 1
    words = len(prose.split())
    if words > LONGEST and page not in LONG:
        yield f"{page}: {words} words; a document of more than {LONGEST} words is two documents"


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
    modules = sorted(path for place in ("src", "witness/baton_bluesky") for path in (ROOT / place).rglob("*.py"))
    tests = sorted(path for path in (ROOT / "tests").rglob("*.py") if "data" not in path.parts)
    named = [*repeated_classes(modules), *unclear_names([*modules, *tests]), *lost_words(GLOSSARY.read_text())]
    pages = [page for page in documents() if "reference" not in page.parts]
    unclear = [complaint for page in pages for complaint in unclear_prose(str(page), prose_of(page, with_drawings=False))]
    complaints = [*named, *read_bytecode(modules), *unclear_subjects(), *unclear]
    for complaint in complaints:
        print(complaint)
    print(f"checks: {len(modules) + len(tests)} modules, {len(complaints)} complaints")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
