"""The fenced blocks of the documents: where they stand, of what kind they are, and what a console block asks and answers."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
FENCE = re.compile(r"^( *)```(.*)$")
PROMPT, HEADING = "$ ", "## "


def documents() -> list[Path]:
    """Every page there is, by its path in the repository."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page.relative_to(ROOT) for page in pages]


@dataclass(frozen=True)
class Block:
    """What stands between two fences; the first word behind the opening one is its kind, the second what it is about."""

    page: Path
    section: str
    """The heading it stands under."""
    kind: str
    about: str
    first: int
    """The place of its first line among those of the page."""
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def place(self) -> str:
        """Where a reader finds it."""
        return f"{self.page}:{self.first}"


def blocks_of(page: Path, text: str | None = None) -> Iterator[Block]:
    """The blocks of a page from top to bottom."""
    opened: tuple[str, str, int] | None = None
    section = ""
    lines = ((ROOT / page).read_text() if text is None else text).splitlines()
    for number, line in enumerate(lines):
        if (fence := FENCE.match(line)) is None:
            section = line.removeprefix(HEADING) if opened is None and line.startswith(HEADING) else section
            continue
        if opened is None:
            kind, _, about = fence[2].strip().partition(" ")
            opened = kind, about.strip(), number + 1
        else:
            kind, about, first = opened
            indent = len(fence[1])
            yield Block(page, section, kind, about, first, tuple(inside[indent:] for inside in lines[first:number]))
            opened = None
    assert opened is None, f"{page}:{opened and opened[2]}: a block that does not end"


def code_of(page: Path) -> dict[str, list[str]]:
    """The text of each block, in order, under the heading of its section; drawings are none."""
    found: dict[str, list[str]] = defaultdict(list)
    for block in blocks_of(page):
        if block.kind != "text":
            found[block.section].append(f"{block.text}\n")
    return dict(found)


def prose_of(page: Path, *, with_drawings: bool = True) -> str:
    """A page without its blocks of code; drawings stay unless they are unwanted."""
    lines = (ROOT / page).read_text().splitlines()
    for block in blocks_of(page):
        if block.kind != "text" or not with_drawings:
            lines[block.first : block.first + len(block.lines)] = [""] * len(block.lines)
    return "\n".join(lines)


@dataclass(frozen=True)
class CallScript:
    """A command as it is typed and what the document says that it answers."""

    command: str
    answer: str


def exchanges(block: Block) -> Iterator[CallScript]:
    """The commands of a console block; one goes on in the next line while a quotation is open or after a backslash."""
    lines = list(block.lines)
    while lines:
        command = lines.pop(0)
        assert command.startswith(PROMPT), f"{block.place}: {command!r} is no command"
        command = command.removeprefix(PROMPT)
        while is_unfinished(command):
            assert lines, f"{block.place}: {command!r} does not end"
            command += "\n" + lines.pop(0)
        answer = list(answer_lines(lines))
        del lines[: len(answer)]
        yield CallScript(command, "\n".join(answer))


def answer_lines(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith(PROMPT):
            return
        yield line


def is_unfinished(command: str) -> bool:
    """Whether a shell would wait for the rest of a command."""
    if command.endswith("\\"):
        return True
    try:
        shlex.split(command)
    except ValueError:
        return True
    return False
