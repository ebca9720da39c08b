"""What differs between two runs of a document: ids, times, hashes and positions, each the same wherever it stands."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

HEX = "[0-9a-f]"
SEEDED = "00000000-0000-0000-0000-|019a0000-0000-7000-8000-"
"""How ids begin that are the same in every deployment."""
VARYING_TEXT = re.compile(
    rf"(?P<id>(?!{SEEDED})\b{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}\b)"
    r"|(?P<time>\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))"
    rf"|(?P<hash>\b{HEX}{{64}}\b)"
    r"|(?:position|transaction_id|last-event-id|^id)\W{1,3}(?P<place>\d+)\b(?!-)"
    r"|(?:\bin |\bafter )(?P<span>\d+:\d\d:\d\d|\d+\.\d s\b)"
    r"|(?P<row>^ *\d+(?=  \d\d:\d\d:\d\d))|(?P<clock>\b\d\d:\d\d:\d\d\b)|(?P<age>\b\d+ (?:s|min))(?= ago)",
    re.MULTILINE | re.IGNORECASE,
)
UNRELATED = frozenset({"span", "row", "clock", "age"})
"""What may be the same in one run and differ in another."""


@dataclass(frozen=True)
class VaryingText:
    """Something that is another in every run, and where it stands in a text."""

    kind: str
    value: str
    start: int
    end: int


def varying_texts(text: str) -> Iterator[VaryingText]:
    """Yield all that varies in a text."""
    for found in VARYING_TEXT.finditer(text):
        kind = found.lastgroup
        assert kind is not None, "every alternative has a name"
        yield VaryingText(kind, found[kind], *found.span(kind))


def skeleton(text: str) -> str:
    """Return a text without what varies."""
    return replace_varying(text, lambda one: f"<{one.kind}>")


def replace_varying(text: str, other: Callable[[VaryingText], str]) -> str:
    """Return a text in which all that varies is replaced."""
    written, at = [], 0
    for one in varying_texts(text):
        written += [text[at : one.start], other(one)]
        at = one.end
    return "".join([*written, text[at:]])


def are_alike(one: str, other: str) -> bool:
    return skeleton(one) == skeleton(other)


@dataclass
class TranscriptMatch:
    """Which id, time, hash or place of a document is which of a run."""

    runs: dict[tuple[str, str], str] = field(default_factory=dict)
    documents: dict[tuple[str, str], str] = field(default_factory=dict)

    def differences(self, document: str, run: str) -> list[str]:
        """What is not the same in both; what was seen for the first time is remembered."""
        if not are_alike(document, run):
            return [f"it says  {document}", f"it was   {self.in_document(run)}"]
        pairs = [
            (here, there)
            for here, there in zip(varying_texts(document), varying_texts(run), strict=True)
            if here.kind not in UNRELATED
        ]
        return [found for here, there in pairs for found in self._pair(here.kind, here.value, there.value)]

    def _pair(self, kind: str, here: str, there: str) -> Iterator[str]:
        known = self.runs.setdefault((kind, here), there)
        if known != there:
            yield f"the {kind} {here} was {known} before, and is {there} now"
        if kind in ("id", "place"):
            back = self.documents.setdefault((kind, there), here)
            if back != here:
                yield f"the {kind} {here} is the one that is {back} elsewhere"

    def in_run(self, text: str) -> str:
        """A text of the document in the terms of the run."""
        return replace_varying(text, lambda one: self.runs.get((one.kind, one.value), one.value))

    def in_document(self, text: str) -> str:
        """A text of the run in the terms of the document, as far as they are known."""
        return replace_varying(text, lambda one: self.documents.get((one.kind, one.value), one.value))
