"""Redaction of prompts: people known here, addresses and telephone numbers are blanked before a text leaves the facility.
A text is read once, word by word, and every word is looked up, so that the cost does not grow with the number of people."""

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
)  # Ids and times, whose letters and digits name nobody.
INVISIBLE = r"\xad\u200b-\u200d\u2060\ufeff"  # Invisible characters that may stand inside a word.
MARKS = "".join(mark for mark in map(chr, range(0x300, 0x1E00)) if unicodedata.category(mark).startswith("M"))
UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)  # Scripts whose words follow each other without a space, or take endings without one.
WORD = re.compile(rf"(?:[^\W\d_{UNSPACED}]+[{MARKS}{INVISIBLE}]*)+")
UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
ATOM = re.compile(rf"(?:[^\W_]+[{MARKS}{INVISIBLE}]*)+")
BETWEEN_PARTS = re.compile(r"[^\S\r\n]?[.,_'\u2019·・-]?[^\S\r\n]?")  # The separators between the parts of one name.
UNSPELLED = re.compile(rf"[\u0300-\u036f{INVISIBLE}]")  # Accents, which some writers leave out, and invisible characters.
IDEOGRAPHS = re.compile(r"[\u4e00-\u9fff\uac00-\ud7a3]{3,4}")  # A family name and a given name with nothing between them.
SHORTEST_NAME = 3  # Letters of a part of a name that is blanked by itself, however it is written.
SHORTEST_IDENTIFIER, SHORTEST_NUMBER = 3, 5  # Characters of one, digits of the other: anything shorter is a measurement.
TextRange = tuple[int, int]


class KnownPerson(NamedTuple):
    """The names and identifiers of one person."""

    name: str
    email: str | None = None
    phone: str | None = None
    external_id: str | None = None


@dataclass(frozen=True)
class NameBook:
    """Every word that names somebody here."""

    parts: frozenset[str] = frozenset()  # The parts of names that are spelled with spaces between them.
    unspaced: frozenset[str] = frozenset()
    identifiers: frozenset[str] = frozenset()
    openings: frozenset[str] = frozenset()  # The beginnings of the identifiers, by which most words are passed over quickly.
    longest_unspaced: int = 0
    longest_identifier: int = 0

    def redact(self, value: object) -> Any:
        """Return plain data with everybody in its texts blanked; keys stay as they are."""
        match value:
            case str():
                return self._redact_text(value)
            case Mapping():
                return {key: self.redact(item) for key, item in value.items()}
            case Sequence():
                return [self.redact(item) for item in value]
        return value

    def _redact_text(self, text: str) -> str:
        read = unicodedata.normalize("NFC", text)
        inside = {place for match in UNTOUCHED.finditer(read) for place in range(match.start() + 1, match.end())}
        known = {*self._identifiers_in(read), *self._name_parts(read), *self._unspaced_names(read)}
        addresses = (match.span() for pattern in (ADDRESS, TELEPHONE) for match in pattern.finditer(read))
        hits = sorted({*addresses, *filter(inside.isdisjoint, known)})
        return _blank_out(read, hits) if hits else text

    def _name_parts(self, text: str) -> Iterator[TextRange]:
        """Yield the parts of names; a short one counts only where it is written as a name, or stands by one."""
        for run in self._grouped_parts(text) if self.parts else ():
            lengths = [length for *_, length in run]
            named = max(lengths) >= SHORTEST_NAME or lengths.count(SHORTEST_NAME - 1) > 1
            yield from ((start, end) for start, end, length in run if named or (length > 1 and text[start].isupper()))

    def _grouped_parts(self, text: str) -> Iterator[list[tuple[int, int, int]]]:
        """Yield the words that are parts of names, each with its length, grouped where they stand together as one name."""
        run: list[tuple[int, int, int]] = []
        for word in WORD.finditer(text):
            key = normalized_spelling(word.group())
            if key not in self.parts:
                continue
            if run and not _is_one_name(text, run[-1][1], word.start()):
                yield run
                run = []
            run.append((*word.span(), len(key)))
        if run:
            yield run

    def _unspaced_names(self, text: str) -> Iterator[TextRange]:
        """Yield the names inside runs of a script that sets no spaces, the longest first."""
        for run in UNSPACED_RUN.finditer(text) if self.unspaced else ():
            start, end = run.span()
            while start < end:
                lengths = range(min(self.longest_unspaced, end - start), 1, -1)
                length = next((size for size in lengths if text[start : start + size] in self.unspaced), 0)
                if length:
                    yield start, start + length
                start += length or 1

    def _identifiers_in(self, text: str) -> Iterator[TextRange]:
        """Yield numbers and identifiers, however they are grouped."""
        matches = ATOM.finditer(text) if self.identifiers else ()
        atoms = [(*match.span(), normalized_spelling(match.group())) for match in matches]
        for first, (start, _, _) in enumerate(atoms):
            joined = ""
            for _, end, atom in atoms[first : first + self.longest_identifier]:
                joined += atom
                opening = joined[:SHORTEST_IDENTIFIER]
                is_known = len(opening) < SHORTEST_IDENTIFIER or opening in self.openings
                if len(joined) > self.longest_identifier or not is_known:
                    break
                if joined in self.identifiers:
                    yield start, end


def name_book(people: Iterable[KnownPerson]) -> NameBook:
    """Return the book of these people's names and identifiers."""
    parts: set[str] = set()
    unspaced: set[str] = set()
    identifiers: set[str] = set()
    for person in people:
        name = unicodedata.normalize("NFC", person.name)
        parts.update(normalized_spelling(match.group()) for match in WORD.finditer(name))
        unspaced.update(_unspaced_forms(UNSPACED_RUN.findall(name)))
        identifiers.update(map(_canonical_identifier, filter(None, (person.email, person.phone, person.external_id))))
    sought = frozenset(filter(_is_long_enough, identifiers))
    return NameBook(
        parts=frozenset(parts),
        unspaced=frozenset(unspaced),
        identifiers=sought,
        openings=frozenset(identifier[:SHORTEST_IDENTIFIER] for identifier in sought),
        longest_unspaced=max(map(len, unspaced), default=0),
        longest_identifier=max(map(len, sought), default=0),
    )


def normalized_spelling(word: str) -> str:
    """Return the form in which two spellings of a word are the same: without case, width and accents."""
    if word.isascii():
        return word.lower()
    plain = UNSPELLED.sub("", unicodedata.normalize("NFKD", word.casefold()))
    return unicodedata.normalize("NFC", plain).replace("\u0131", "i")


def _unspaced_forms(runs: Sequence[str]) -> Iterator[str]:
    """Yield a name whole, its parts, and what may be the family name or the given name at either end."""
    for name in {*runs, "".join(runs)}:
        if len(name) > 1:
            yield name
        if IDEOGRAPHS.fullmatch(name):
            yield from (end for size in range(2, len(name)) for end in (name[:size], name[-size:]))


def _canonical_identifier(identifier: str) -> str:
    return "".join(map(normalized_spelling, ATOM.findall(unicodedata.normalize("NFC", identifier))))


def _is_long_enough(identifier: str) -> bool:
    return len(identifier) >= (SHORTEST_NUMBER if identifier.isdigit() else SHORTEST_IDENTIFIER)


def _is_one_name(text: str, end: int, start: int) -> bool:
    """Return whether the words before and after this gap are parts of one name."""
    return BETWEEN_PARTS.fullmatch(text, end, start) is not None


def _blank_out(text: str, places: Sequence[TextRange]) -> str:
    """Return the text with these ranges blanked; those that touch, or stand together as one name, become one blank."""
    merged = [places[0]]
    for place in places[1:]:
        last = merged[-1]
        if place[0] <= last[1] or _is_one_name(text, last[1], place[0]):
            merged[-1] = (last[0], max(last[1], place[1]))
        else:
            merged.append(place)
    ends, starts = [0, *(end for _, end in merged)], [*(start for start, _ in merged), len(text)]
    return BLANKED.join(text[end:start] for end, start in zip(ends, starts, strict=True))
