"""What leaves the facility in a prompt names nobody: people known here, addresses and telephone numbers are blanked.

A text is read once, word by word, and every word is looked up, so its cost does not grow with the number of people.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

BLANKED = "[someone]"
ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(\.[\w-]+)+")
TELEPHONE = re.compile(r"\+\d[\d \xa0\u202f()/-]{6,}\d")
UNTOUCHED = re.compile(
    r"(?<![^\W_])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![^\W_])"
    r"|(?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)",
    re.IGNORECASE,
)
"""Ids and times, whose letters and digits are nobody's."""
INVISIBLE = r"\xad\u200b-\u200d\u2060\ufeff"
"""What may stand inside a word unseen."""
MARKS = "".join(mark for mark in map(chr, range(0x300, 0x1E00)) if unicodedata.category(mark).startswith("M"))
UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Scripts whose words follow each other without a space, or take endings without one."""
WORD = re.compile(rf"(?:[^\W\d_{UNSPACED}]+[{MARKS}{INVISIBLE}]*)+")
UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
ATOM = re.compile(rf"(?:[^\W_]+[{MARKS}{INVISIBLE}]*)+")
BETWEEN_PARTS = re.compile(r"[^\S\r\n]?[.,_'\u2019·・-]?[^\S\r\n]?")
"""What stands between the parts of one name."""
UNSPELLED = re.compile(rf"[\u0300-\u036f{INVISIBLE}]")
"""Accents, which one writer sets and another leaves out, and what nobody sees."""
IDEOGRAPHS = re.compile(r"[\u4e00-\u9fff\uac00-\ud7a3]{3,4}")
"""Names of this form have a family name and a given name in them, and nothing shows where one ends."""
SHORTEST_NAME = 3
"""Letters of a part of a name that is looked for by itself, however it is written."""
SHORTEST_IDENTIFIER, SHORTEST_NUMBER = 3, 5
"""Characters of an identifier, and digits of a number: anything shorter is a measurement."""

Place = tuple[int, int]


class Person(NamedTuple):
    """What people are known by."""

    name: str
    email: str | None = None
    phone: str | None = None
    external_id: str | None = None


@dataclass(frozen=True)
class NameBook:
    """Every word that names somebody here, for texts to be held against."""

    parts: frozenset[str] = frozenset()
    """The parts of names that are spelled with spaces between them."""
    unspaced: frozenset[str] = frozenset()
    identifiers: frozenset[str] = frozenset()
    openings: frozenset[str] = frozenset()
    """What identifiers begin with, so that most words are passed over at a glance."""
    longest_unspaced: int = 0
    longest_identifier: int = 0

    def discreet(self, value: Any) -> Any:
        """Plain data with everybody in its texts blanked; keys stay as they are."""
        match value:
            case str():
                return self._blanked(value)
            case Mapping():
                return {key: self.discreet(item) for key, item in value.items()}
            case Sequence():
                return [self.discreet(item) for item in value]
        return value

    def _blanked(self, text: str) -> str:
        read = unicodedata.normalize("NFC", text)
        inside = {place for match in UNTOUCHED.finditer(read) for place in range(match.start() + 1, match.end())}
        known = {*self._identified(read), *self._named(read), *self._run_together(read)}
        hits = sorted({*_addresses(read), *filter(inside.isdisjoint, known)})
        return _without(read, hits) if hits else text

    def _named(self, text: str) -> Iterator[Place]:
        """Parts of names. A short one is a word like any other unless it is written as a name, or stands by one."""
        for run in self._runs_of_parts(text) if self.parts else ():
            lengths = [length for *_, length in run]
            named = max(lengths) >= SHORTEST_NAME or lengths.count(SHORTEST_NAME - 1) > 1
            yield from ((start, end) for start, end, length in run if named or (length > 1 and text[start].isupper()))

    def _runs_of_parts(self, text: str) -> Iterator[list[tuple[int, int, int]]]:
        """Words that are parts of names, each with its length, together where they stand as one name does."""
        run: list[tuple[int, int, int]] = []
        for word in WORD.finditer(text):
            key = spelled(word.group())
            if key not in self.parts:
                continue
            if run and not _one_name(text, run[-1][1], word.start()):
                yield run
                run = []
            run.append((*word.span(), len(key)))
        if run:
            yield run

    def _run_together(self, text: str) -> Iterator[Place]:
        """Names inside runs of a script that sets no spaces, the longest first."""
        for run in UNSPACED_RUN.finditer(text) if self.unspaced else ():
            start, end = run.span()
            while start < end:
                lengths = range(min(self.longest_unspaced, end - start), 1, -1)
                length = next((size for size in lengths if text[start : start + size] in self.unspaced), 0)
                if length:
                    yield start, start + length
                start += length or 1

    def _identified(self, text: str) -> Iterator[Place]:
        """Numbers and identifiers, however they are grouped."""
        atoms = [(*match.span(), spelled(match.group())) for match in ATOM.finditer(text)] if self.identifiers else []
        for first, (start, _, _) in enumerate(atoms):
            joined = ""
            for _, end, atom in atoms[first : first + self.longest_identifier]:
                joined += atom
                if len(joined) > self.longest_identifier or not self._may_open(joined):
                    break
                if joined in self.identifiers:
                    yield start, end

    def _may_open(self, joined: str) -> bool:
        return len(joined) < SHORTEST_IDENTIFIER or joined[:SHORTEST_IDENTIFIER] in self.openings


def book_of(people: Iterable[Person]) -> NameBook:
    """The book of these people."""
    parts: set[str] = set()
    unspaced: set[str] = set()
    identifiers: set[str] = set()
    for person in people:
        name = unicodedata.normalize("NFC", person.name)
        parts.update(spelled(match.group()) for match in WORD.finditer(name))
        unspaced.update(_spelled_without_spaces(UNSPACED_RUN.findall(name)))
        identifiers.update(map(_squeezed, filter(None, (person.email, person.phone, person.external_id))))
    sought = frozenset(filter(_tells_somebody, identifiers))
    return NameBook(
        parts=frozenset(parts),
        unspaced=frozenset(unspaced),
        identifiers=sought,
        openings=frozenset(identifier[:SHORTEST_IDENTIFIER] for identifier in sought),
        longest_unspaced=max(map(len, unspaced), default=0),
        longest_identifier=max(map(len, sought), default=0),
    )


def spelled(word: str) -> str:
    """The form under which two spellings of a word count as the same: without case, width and accents."""
    if word.isascii():
        return word.lower()
    plain = UNSPELLED.sub("", unicodedata.normalize("NFKD", word.casefold()))
    return unicodedata.normalize("NFC", plain).replace("\u0131", "i")


def _spelled_without_spaces(runs: Sequence[str]) -> Iterator[str]:
    """A name whole, its parts, and what may be the family name or the given name at either end."""
    for name in {*runs, "".join(runs)}:
        if len(name) > 1:
            yield name
        if IDEOGRAPHS.fullmatch(name):
            yield from (end for size in range(2, len(name)) for end in (name[:size], name[-size:]))


def _squeezed(identifier: str) -> str:
    return "".join(map(spelled, ATOM.findall(unicodedata.normalize("NFC", identifier))))


def _tells_somebody(identifier: str) -> bool:
    return len(identifier) >= (SHORTEST_NUMBER if identifier.isdigit() else SHORTEST_IDENTIFIER)


def _addresses(text: str) -> Iterator[Place]:
    """Whatever looks like an address or an international number, whoever has it."""
    for pattern in (ADDRESS, TELEPHONE):
        yield from (match.span() for match in pattern.finditer(text))


def _one_name(text: str, end: int, start: int) -> bool:
    """Whether what ends here and what starts there are parts of one name."""
    return BETWEEN_PARTS.fullmatch(text, end, start) is not None


def _without(text: str, places: Sequence[Place]) -> str:
    """The text with these places blanked; those that touch, or stand together as one name does, are one blank."""
    merged = [places[0]]
    for place in places[1:]:
        last = merged[-1]
        if place[0] <= last[1] or _one_name(text, last[1], place[0]):
            merged[-1] = (last[0], max(last[1], place[1]))
        else:
            merged.append(place)
    told, before = [], 0
    for start, end in merged:
        told += [text[before:start], BLANKED]
        before = end
    return "".join([*told, text[before:]])
