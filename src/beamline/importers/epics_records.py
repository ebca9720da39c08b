"""Records of an EPICS database: read from `.db` and `.template` files, with macros and substitutions."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from baton.beamline.importers.macros import MacroError, expand
from baton.beamline.importers.sources import UnreadableSourceError, read_text

MOST_RECORDS = 200_000
DEEPEST_INCLUDE = 10
MACRO = r"\$\((?:[^()\n]|\([^()\n]*\))*\)|\$\{(?:[^{}\n]|\{[^{}\n]*\})*\}"
TOKEN = re.compile(rf'\s+|#[^\n]*|"(?:[^"\\\n]|\\.)*"|[(){{}},=]|(?:{MACRO}|[^\s(){{}},="#])+')


@dataclass(frozen=True)
class Token:
    """A word, a quoted text or a sign of a file, and the line it stands in."""

    text: str
    line: int
    quoted: bool = False


@dataclass(frozen=True)
class EpicsRecord:
    """One record: its type, its name, its fields."""

    type: str
    name: str
    fields: Mapping[str, str]
    source: str
    aliases: tuple[str, ...] = ()


@dataclass
class Reader:
    """The tokens of one file, taken one after the other."""

    path: Path
    tokens: list[Token] = field(default_factory=list)
    place: int = 0

    def __post_init__(self) -> None:
        self.tokens = list(tokens_of(read_text(self.path), self.path))

    @property
    def next(self) -> Token | None:
        """The token that comes next; None at the end."""
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def take(self, *wanted: str) -> Token:
        """Take the next token, which must be one of those wanted if any are named."""
        if (token := self.next) is None:
            raise self.error("the file ends too early", self.tokens[-1].line if self.tokens else 1)
        if wanted and (token.quoted or token.text not in wanted):
            raise self.error(f"{' or '.join(wanted)} should stand where {token.text[:40]!r} stands", token.line)
        self.place += 1
        return token

    def meets(self, text: str) -> bool:
        """Take the next token if it is this sign, and return whether it was."""
        if self.next is None or self.next.quoted or self.next.text != text:
            return False
        self.place += 1
        return True

    def arguments(self) -> list[Token]:
        """Take the words between round brackets."""
        self.take("(")
        words: list[Token] = []
        while not self.meets(")"):
            words.append(self.take())
            self.meets(",")
        return words

    def error(self, detail: str, line: int) -> UnreadableSourceError:
        """Return the refusal of this file with the line that is at fault."""
        return UnreadableSourceError(f"{self.path.name}, line {line}: {detail}.")


def tokens_of(text: str, path: Path) -> Iterator[Token]:
    """Yield the tokens of a text, comments and blanks left out."""
    line, place = 1, 0
    while place < len(text):
        found = TOKEN.match(text, place)
        if found is None:
            raise UnreadableSourceError(f"{path.name}, line {line}: a quoted text is not closed.")
        token = found[0]
        if token[0] == '"':
            yield Token(re.sub(r"\\(.)", r"\1", token[1:-1]), line, quoted=True)
        elif not token[0].isspace() and token[0] != "#":
            yield Token(token, line)
        line += token.count("\n")
        place = found.end()


def read_records(path: Path, macros: Mapping[str, str], depth: int = 0) -> Iterator[EpicsRecord]:
    """Yield the records of a database or template."""
    if depth > DEEPEST_INCLUDE:
        raise UnreadableSourceError(f"{path.name} includes itself, directly or by others.")
    reader = Reader(path)
    while reader.next is not None:
        word = reader.take()
        match word.text:
            case "record" | "grecord":
                yield read_record(reader, word.line, macros)
            case "include":
                yield from read_records(file_beside(path, fill_macros(reader, reader.take(), macros)), macros, depth + 1)
            case "alias":
                reader.arguments()  # another name of a record that stands elsewhere
            case "path" | "addpath":
                reader.take()
            case other:
                raise reader.error(f"{other[:40]!r} is neither record, include nor alias", word.line)


def read_record(reader: Reader, line: int, macros: Mapping[str, str]) -> EpicsRecord:
    """Read a record whose first word is taken."""
    words = reader.arguments()
    if len(words) != 2:
        raise reader.error("a record has a type and a name", line)
    kind, name = (fill_macros(reader, word, macros) for word in words)
    fields: dict[str, str] = {}
    aliases: list[str] = []
    if reader.meets("{"):
        while not reader.meets("}"):
            part = reader.take("field", "info", "alias")
            values = [fill_macros(reader, word, macros) for word in reader.arguments()]
            if part.text == "field" and len(values) == 2:
                fields[values[0]] = values[1]
            elif part.text == "alias" and len(values) == 1:
                aliases.append(values[0])
            elif part.text != "info":
                raise reader.error(f"{part.text} has the wrong number of values", part.line)
    return EpicsRecord(kind, name, fields, f"{reader.path.name}, line {line}", tuple(aliases))


def read_substitutions(path: Path, macros: Mapping[str, str]) -> Iterator[EpicsRecord]:
    """Yield the records of every template that a substitutions file names, once for each set of values."""
    reader = Reader(path)
    common = dict(macros)
    while reader.next is not None:
        word = reader.take("global", "file")
        if word.text == "global":
            common |= read_pairs(reader, common)
            continue
        template = file_beside(path, fill_macros(reader, reader.take(), common))
        for values in read_sets(reader, common):
            yield from read_records(template, values)


def read_sets(reader: Reader, macros: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the macros of each set of a `file` block: pairs, or values in the order of a pattern."""
    reader.take("{")
    common = dict(macros)
    names: list[str] | None = None
    if reader.meets("pattern"):
        names = [token.text for token in read_words(reader)]
    while not reader.meets("}"):
        if reader.meets("global"):
            common |= read_pairs(reader, common)
        elif names is None:
            yield common | read_pairs(reader, common)
        else:
            values = read_words(reader)
            if len(values) > len(names):
                raise reader.error(f"the pattern has {len(names)} names, and here are {len(values)} values", values[0].line)
            yield common | dict(zip(names, (fill_macros(reader, value, common) for value in values), strict=False))


def read_words(reader: Reader) -> list[Token]:
    """Take the words between curly brackets."""
    reader.take("{")
    words: list[Token] = []
    while not reader.meets("}"):
        words.append(reader.take())
        reader.meets(",")
    return words


def read_pairs(reader: Reader, macros: Mapping[str, str]) -> dict[str, str]:
    """Take the pairs `NAME=value` between curly brackets."""
    pairs: dict[str, str] = {}
    reader.take("{")
    while not reader.meets("}"):
        name = reader.take()
        reader.take("=")
        has_value = reader.next is not None and (reader.next.quoted or reader.next.text not in {",", "}"})
        pairs[name.text] = fill_macros(reader, reader.take(), macros) if has_value else ""
        reader.meets(",")
    return pairs


def fill_macros(reader: Reader, token: Token, macros: Mapping[str, str]) -> str:
    """Return the text of a token with its macros replaced."""
    try:
        return expand(token.text, macros)
    except MacroError as error:
        raise reader.error(str(error).rstrip("."), token.line) from None


def file_beside(path: Path, name: str) -> Path:
    """Return the file that another one names: beside it, or where its own path says."""
    return path.parent / name
