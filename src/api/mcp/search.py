"""Search of operations by words, so that an agent need not load hundreds of schemas to find one."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from itertools import takewhile
from math import log
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AliasChoices, Field

from baton.api.mcp.field_words import POLITE_BEGINNINGS, QUESTION_WORDS, STOP_WORDS, SYNONYMS
from baton.api.mcp.toolsets import TOOLSETS
from baton.domain.kernel import Value
from baton.domain.registry import Operation, snake_case

PHRASES: Mapping[str, tuple[str, ...]] = {
    name: tuple(said.split("; "))
    for name, said in json.loads(files(__package__).joinpath("phrases.json").read_bytes()).items()
}
"""How people ask for each operation, in their own words."""

WORD = re.compile(r"[a-z0-9]+")
CODE = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+")  # the name of an operation, a refusal or its reason
SHORTEST_STEM = 3
LONGEST_PHRASE = 4  # words
NAME, SAID, SUMMARY, REST, REFUSAL = 6.0, 3.0, 2.0, 1.0, 0.5  # how much a word counts, by where it stands
PHRASE = 8.0  # how much the phrase counts that is most like what is asked
LENGTH = 0.3  # how much of a phrase's worth depends on its length
COVERAGE = 0.8  # how much of a phrase's worth depends on the share of the question that it has
MEANT = 0.8  # how much a word counts that was not said itself but stands for what was said
HINTED = 0.4  # how much of that is left where a phrase does not say the word either
TOPIC = 1.6  # how much more a word counts that says what a text is about
EXACT = 6.0  # how much a name or a code counts that is said as it is written
CUE = 0.5  # how much a word counts that stands for a word such as `who`
SIMILAR = 0.7  # how much a known word counts that an unknown one resembles
RESEMBLANCE = 0.84  # from this ratio on, a word is taken for another one that is misspelt
OFTEN = 1.1  # how much more an operation counts that is in some toolset
UNLIKELY = 0.6  # how much a command counts where something is asked, and a query where something is to be done
UNASKED = 0.25  # how much is lost for a word of the name that was not asked for

Key = TypeVar("Key", bound=Hashable)
Reading = Mapping[str, float]
"""The words that one word of a text may mean, each with how much it counts."""


class SearchOperations(Value):
    """Find operations by what you want to do, in your own words or by a refusal code; the best match comes first.

    Call what you find with call_operation, or directly by its name.
    """

    words: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            description="For instance: pause the scan",
            validation_alias=AliasChoices("words", "query"),  # as other servers call it
        ),
    ]
    kind: Literal["command", "query"] | None = Field(default=None, description="Only commands, or only queries.")
    limit: Annotated[int, Field(ge=1, le=50, description="Number of operations, at most.")] = 10
    input_schemas: bool = Field(default=False, description="Whether to show the schema of each operation's arguments.")
    part: Annotated[str | None, Field(max_length=200, description="Show the schema of this argument or form alone.")] = None


class FoundOperation(Value):
    """One operation, the names of its arguments, and on request their schema."""

    name: str
    summary: str
    kind: Literal["command", "query"]
    context: str
    example: dict[str, Any] | None = None
    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    input_schema: dict[str, Any] | None = None


class FoundOperations(Value):
    """The operations that match, best first."""

    operations: tuple[FoundOperation, ...]


class Postings(Generic[Key]):
    """Texts by their words, each word with its weight in the text and with how telling it is."""

    def __init__(self, texts: Mapping[Key, Reading], telling: Mapping[str, float]) -> None:
        self._entries: dict[str, list[tuple[Key, float]]] = defaultdict(list)
        for key, words in texts.items():
            for word, weight in words.items():
                self._entries[word].append((key, weight * telling.get(word, 1.0)))

    def hits(self, wanted: Iterable[Reading]) -> tuple[dict[Key, float], dict[Key, int]]:
        """Return for each text that has any of the words how well it fits the readings together, and how many it fits."""
        worth: dict[Key, float] = defaultdict(float)
        count: dict[Key, int] = defaultdict(int)
        for words in wanted:
            best: dict[Key, float] = {}
            for word, share in words.items():
                for key, weight in self._entries.get(word, ()):
                    if (value := weight * share) > best.get(key, 0.0):
                        best[key] = value
            for key, value in best.items():
                worth[key] += value
                count[key] += 1
        return worth, count


class Index:
    """The words and the phrases of each operation, by which a text finds it."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        operations = list(operations)
        fields = {operation.name: words_of(operation) for operation in operations}
        self._rarity = rarity([word for word, weight in words.items() if weight >= SUMMARY] for words in fields.values())
        self._fields = Postings(fields, self._rarity)
        self._name_stems = {name: stems(name) for name in fields}
        phrases = [(one.name, phrase) for one in operations for phrase in phrases_of(one)]
        self._telling = rarity({*all_stems(" ".join(phrases_of(one)))} for one in operations)
        self._phrases = Postings({place: phrase_words(said) for place, (_, said) in enumerate(phrases)}, self._telling)
        lengths = [sum(self._telling[word] for word in set(all_stems(said))) for _, said in phrases]
        usual = sum(lengths) / max(len(lengths), 1)
        self._said_for = [
            (name, 1 - LENGTH + LENGTH * length / usual) for (name, _), length in zip(phrases, lengths, strict=True)
        ]
        self._known = sorted(self._rarity.keys() | self._telling.keys())
        self._verbs = frozenset(stem(one.name.split("_")[0]) for one in operations if one.kind == "command")

    def rank(self, text: str, among: Iterable[Operation]) -> list[Operation]:
        """Return the operations that have any of these words, best first; queries before commands where they are equal."""
        wanted = list(readings(text, self._similar))
        scores = self._phrase_scores(wanted)
        for name, score in self._field_scores(wanted).items():
            scores[name] += score
        unlikely = "command" if is_question(text) else "query" if self._is_order(text) else None
        found = []
        for operation in among:
            score = scores[operation.name] * (OFTEN if operation.name in often_used() else 1.0)
            if score > 0:
                score *= UNLIKELY if operation.kind == unlikely else 1.0
                found.append(((-round(score, 6), operation.kind == "command", operation.name), operation))
        return [operation for _, operation in sorted(found, key=lambda entry: entry[0])]

    def _phrase_scores(self, wanted: list[Reading]) -> dict[str, float]:
        """Return the worth of each operation's best phrase: many phrases are worth no more than one that fits."""
        whole = sum(max(self._telling.get(word, 1.0) * share for word, share in words.items()) for words in wanted)
        scores: dict[str, float] = defaultdict(float)
        worth, _ = self._phrases.hits(wanted)
        for place, hits in worth.items():
            name, length = self._said_for[place]
            score = PHRASE * hits * (1 - COVERAGE + COVERAGE * hits / whole) / length
            if score > scores[name]:
                scores[name] = score
        return scores

    def _field_scores(self, wanted: list[Reading]) -> dict[str, float]:
        """Return the worth of the words in each operation's name and description."""
        asked = {word for words in wanted for word in words}
        count = sum(not asked_words.keys() <= stop_stems() for asked_words in wanted)
        scores = {}
        worth, fitting = self._fields.hits(wanted)
        for name, hits in worth.items():
            unasked = sum(self._rarity.get(word, 0) for word in self._name_stems[name] if word not in asked)
            scores[name] = max(hits * (1 + fitting[name] / count) / 2 - UNASKED * unasked, 0.001)
        return scores

    def _is_order(self, text: str) -> bool:
        """Return whether a text begins with a word that some command begins with, or that stands for one."""
        first = WORD.search(text.lower())
        meant = set() if first is None else {stem(first[0]), *synonyms().get((stem(first[0]),), ())}
        return not meant.isdisjoint(self._verbs)

    def _similar(self, word: str) -> list[str]:
        """Return the known words that an unknown one is short for, begins with, or is a misspelling of."""
        if len(word) < SHORTEST_STEM or word in self._rarity or word in self._telling or word.isdecimal():
            return []
        return [other for other in self._known if other[:2] == word[:2] and "_" not in other and resembles(word, other)]


def resembles(word: str, other: str) -> bool:
    """Return whether two words begin alike up to their endings, or differ by a slip of the pen."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False)))
    shorter = min(len(word), len(other))
    if same == shorter and (same == len(word) or same > SHORTEST_STEM):
        return True
    if same > SHORTEST_STEM + 1 and same >= shorter - 2:
        return True
    slip = shorter > SHORTEST_STEM and abs(len(word) - len(other)) <= 1
    return slip and SequenceMatcher(None, word, other).ratio() > RESEMBLANCE


def rarity(texts: Iterable[Iterable[str]]) -> dict[str, float]:
    """Return for each word how telling it is: the fewer texts have it, the more."""
    each = list(texts)
    counts = Counter(word for words in each for word in words)
    return {word: log(1 + len(each) / (1 + count)) for word, count in counts.items()}


@cache
def often_used() -> frozenset[str]:
    """Return the operations that some toolset has."""
    return frozenset().union(*TOOLSETS.values())


def is_question(text: str) -> bool:
    """Return whether a text asks to know something rather than to have something done."""
    words = WORD.findall(text.lower())
    polite = (begin.split() for begin in POLITE_BEGINNINGS.split(","))
    return bool(words) and words[0] in QUESTION_WORDS.split() and not any(words[: len(one)] == one for one in polite)


def words_of(operation: Operation) -> dict[str, float]:
    """Return the words of an operation with their weights."""
    refusals = " ".join(refusal.__name__ for refusal in operation.refusals)
    places = [
        (REFUSAL, f"{refusals} {' '.join(operation.own_reasons)}"),
        (REST, f"{operation.input.__doc__ or ''} {operation.path} {operation.context}"),
        (SUMMARY, operation.summary),
        (SAID, " ".join(PHRASES.get(operation.name, ()))),
        (NAME, operation.name),
    ]
    words = {word: weight for weight, text in places for word in stems(text)}
    codes = (operation.name, *operation.own_reasons, *(refusal.__name__ for refusal in operation.refusals))
    return words | {snake_case(code): NAME for code in codes}


def phrases_of(operation: Operation) -> tuple[str, ...]:
    """Return the phrases by which an operation is asked for; the words of its name are one."""
    return (*PHRASES.get(operation.name, ()), operation.name.replace("_", " "))


def phrase_words(phrase: str) -> dict[str, float]:
    """Return the words that a phrase says, and with less weight those that they stand for."""
    said = set(all_stems(phrase))
    hinted = {word: HINTED * share for words in readings(phrase) for word, share in words.items() if word not in said}
    return hinted | dict.fromkeys(said, 1.0)


def readings(text: str, similar: Callable[[str], Iterable[str]] = lambda word: ()) -> Iterator[Reading]:
    """Yield for each word or phrase of a text the words that it may mean; a word counts once, where it counts most."""
    counted: dict[str, float] = {}
    for words in all_readings(text, similar):
        more = {word: share for word, share in words.items() if share > counted.get(word, 0)}
        if more:
            counted |= more
            yield more


def all_readings(text: str, similar: Callable[[str], Iterable[str]]) -> Iterator[Reading]:
    """Yield for each word or phrase of a text the words that it may mean, whether or not they were meant before."""
    for code in CODE.findall(snake_case(text)):
        yield {code: EXACT}
    words = all_stems(text)
    for place, word in enumerate(words):
        for length in range(2, LONGEST_PHRASE + 1):
            phrase = tuple(words[place : place + length])
            if len(phrase) == length and phrase in synonyms():
                yield synonyms()[phrase]
        share = CUE if word in stop_stems() else MEANT
        meant = {other: worth * share for other, worth in synonyms().get((word,), {}).items()}
        yield {**dict.fromkeys(similar(word), SIMILAR), **meant, word: 1.0}


@cache
def synonyms() -> dict[tuple[str, ...], dict[str, float]]:
    """Return what is said, as stems in order, and the stems of what is meant by it, with how much each counts."""
    entries = (line.split(":") for line in SYNONYMS.strip().splitlines())
    return {
        tuple(stem(word) for word in one.split()): {
            stem(word.removeprefix("!")): TOPIC if word.startswith("!") else 1.0 for word in meant.split()
        }
        for said, meant in entries
        for one in said.split(",")
    }


@cache
def stop_stems() -> frozenset[str]:
    """Return the stems that say nothing by themselves."""
    return frozenset(map(stem, STOP_WORDS.split()))


def stems(text: str) -> list[str]:
    """Return the distinct words of a text as stems, with compound names split and without words that say nothing."""
    return [word for word in dict.fromkeys(all_stems(text)) if word not in stop_stems()]


def all_stems(text: str) -> list[str]:
    """Return the words of a text in order as stems, with compound names split."""
    return [stem(word) for word in WORD.findall(snake_case(text))]


@cache
def stem(word: str) -> str:
    """Return a word without its grammatical ending, so that `measured`, `measuring` and `measures` are one word."""
    for ending, instead in (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("ation", "at"), ("s", ""), ("al", "")):
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= SHORTEST_STEM:
            word = word.removesuffix(ending) + instead
            if ending in ("ing", "ed") and len(word) > SHORTEST_STEM and word[-1] == word[-2] and word[-1] not in "sl":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > SHORTEST_STEM else word
