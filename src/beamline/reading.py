"""Reading beamline files: YAML 1.2 or JSON, several of them as one; what is wrong is said with file, line and column."""

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from baton.beamline.file import BeamlineFile
from baton.domain.shared.field_faults import fault_text

LARGEST_FILE = 64 * 1024 * 1024  # bytes
MOST_VALUES = 5_000_000  # values of a file, counted again wherever an alias repeats them
DEEPEST = 200  # levels of lists and objects
STR = "tag:yaml.org,2002:str"
NULL = re.compile(r"null|Null|NULL|~|")
BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
INT = re.compile(r"[-+]?[0-9]+")
OCTAL_OR_HEX = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
STRANGE_FLOAT = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
FACILITY_SECTIONS = ("enclosures", "assets", "supplies", "clearances")  # those whose entries name a facility
ValuePath = tuple[str | int, ...]
Mark = tuple[int, int]  # Line and column, from 0.
TOO_DEEP = f"lists and objects nest deeper than {DEEPEST} levels"


class BeamlineFileError(Exception):
    """A file cannot be read, or does not say what a beamline file may say; `faults` are sentences with their places."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


@dataclass(frozen=True)
class Source:
    """The text of one file, and what it is called."""

    name: str
    text: str

    def place(self, path: ValuePath) -> str:
        """Return where a value stands, or the deepest there is on the way to it: `name:line:column`."""
        found = (self.marks[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self.marks)
        line, column = next(found, (0, 0))
        return f"{self.name}:{line + 1}:{column + 1}"

    @cached_property
    def marks(self) -> dict[ValuePath, Mark]:
        """Where every value stands, by the path to it; the text is read once more for all of them."""
        marks: dict[ValuePath, Mark] = {}
        with suppress(YAMLError):
            marks.update(value_marks(self.text))
        return marks


@dataclass(frozen=True)
class LoadedFile:
    """One file as it was read, with its source to look places up in."""

    source: Source
    content: BeamlineFile


def read_files(paths: Iterable[Path]) -> list[LoadedFile]:
    """Read files; raise one error with every fault of all of them."""
    loaded: list[LoadedFile] = []
    faults: list[str] = []
    for path in paths:
        try:
            loaded.append(read_text(source_of(path)))
        except BeamlineFileError as error:
            faults += error.faults
    if faults:
        raise BeamlineFileError(faults)
    return loaded


def source_of(path: Path) -> Source:
    """Return the text of a file; `-` is standard input."""
    name = "standard input" if str(path) == "-" else str(path)
    try:
        data = sys.stdin.buffer.read(LARGEST_FILE + 1) if str(path) == "-" else path.read_bytes()
        if len(data) > LARGEST_FILE:
            raise BeamlineFileError([f"{name} is larger than {LARGEST_FILE // 2**20} MB; divide it."])
        return Source(name, data.decode("utf-8-sig"))
    except OSError as error:
        raise BeamlineFileError([f"{name} cannot be read: {error.strerror or error}."]) from None
    except UnicodeDecodeError as error:
        raise BeamlineFileError([f"{name} is not UTF-8: byte {error.start} cannot be read; save it as UTF-8."]) from None


def read_text(source: Source) -> LoadedFile:
    """Return a file in its form; raise the faults of all its values at once."""
    data = plain_data(source)
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise BeamlineFileError([f"{source.name}:1:1: a beamline file is an object with sections such as assets."])
    try:
        content = BeamlineFile.model_validate(data)
    except ValidationError as error:
        faults = {fault_of(source, data, one): None for one in error.errors(include_url=False)}
        raise BeamlineFileError(list(faults)) from None
    return LoadedFile(source, with_facility(content))


def fault_of(source: Source, data: Any, fault: Mapping[str, Any]) -> str:
    """Return what is wrong with a value, with its place and the path to it."""
    path = known_path(data, fault["loc"])
    return f"{source.place(path)}: {'.'.join(map(str, path)) or 'the file'}: {fault_text(fault)}."


def known_path(data: Any, location: Sequence[str | int]) -> ValuePath:
    """Return the part of a fault's location that is in the data: names of union members are passed over."""
    path: list[str | int] = []
    for part in location:
        members = data if isinstance(data, dict) else dict(enumerate(data)) if isinstance(data, list) else {}
        if part in members:
            data = members[part]
            path.append(part)
    return tuple(path)


def with_facility(content: BeamlineFile) -> BeamlineFile:
    """Return the content with the file's facility in every entry that names none."""
    if content.facility is None:
        return content
    filled = {
        section: tuple(
            entry if entry.facility is not None else entry.model_copy(update={"facility": content.facility})
            for entry in getattr(content, section)
        )
        for section in FACILITY_SECTIONS
    }
    return content.model_copy(update=filled)


def plain_data(source: Source) -> Any:
    """Return the one document of a YAML text as plain data, by the core schema of YAML 1.2; JSON is YAML."""
    if source.text.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):  # what is no JSON is read as YAML, which says where it is wrong
            data = json.loads(source.text, object_pairs_hook=single_members, parse_constant=refuse_constant)
            refuse_deep(source, data)
            return data
    try:
        return Events(source).document()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{source.name}:{mark.line + 1}:{mark.column + 1}" if mark else source.name
        raise BeamlineFileError([f"{at}: {error.problem or error.context or 'this is no YAML'}."]) from None
    except (YAMLError, ValueError) as error:
        raise BeamlineFileError([f"{source.name}: {str(error).splitlines()[0]}."]) from None


def refuse_deep(source: Source, data: Any) -> None:
    """Refuse data that nests deeper than what is written as YAML may."""
    level = [data]
    for _ in range(DEEPEST + 1):
        if not (level := [one for held in level for one in members_of(held) if isinstance(one, dict | list)]):
            return
    raise BeamlineFileError([f"{source.name}: {TOO_DEEP}; write them flatter."])


def members_of(data: Any) -> Iterable[Any]:
    """Return what an object or a list holds."""
    return data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()


def single_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; refuse one that names a member twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member stands twice")
    return members


def refuse_constant(text: str) -> Any:
    """Refuse a number that is not finite."""
    raise ValueError(f"{text} is no finite number")


def parse_events(text: str) -> Iterator[Any]:
    """Return the events of a YAML text; the parser in C is used where it is installed."""
    return iter(YAML(typ="safe").parse(text))


class Events:
    """Builds plain data from the events of a document; an alias repeats the events of its anchor."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.events = parse_events(source.text)
        self.anchors: dict[str, Any] = {}
        self.count = 0

    def document(self) -> Any:
        """Return the data of the only document."""
        documents = 0
        data = None
        for event in self.events:
            if isinstance(event, NodeEvent):
                documents += 1
                if documents > 1:
                    raise self.fault(event, "a beamline file has one document; write a further one into its own file")
                data = self.value(event, 0)
        return data

    def value(self, event: Any, depth: int) -> Any:
        """Return the value that an event begins."""
        if isinstance(event, ScalarEvent):
            self.count += 1
            return self.remember(event, self.scalar(event))
        if depth > DEEPEST:
            raise BeamlineFileError([f"{self.source.name}: {TOO_DEEP}; write them flatter."])
        if isinstance(event, AliasEvent):
            return self.repeat(event)
        before = self.count
        self.count += 1
        data = self.read_object(depth) if isinstance(event, MappingStartEvent) else self.read_list(depth)
        return self.remember(event, data, self.count - before)

    def read_object(self, depth: int) -> dict[str, Any]:
        """Return an object; its keys are texts and stand once."""
        data: dict[str, Any] = {}
        for event in self.events:
            if isinstance(event, MappingEndEvent):
                return data
            if not isinstance(event, ScalarEvent):
                raise self.fault(event, "a key is a plain text")
            key = event.value
            if key in data:
                raise self.fault(event, f"{key} stands twice in this object; keep one")
            data[key] = self.value(next(self.events), depth + 1)
        raise ValueError("the file ends within an object")

    def read_list(self, depth: int) -> list[Any]:
        """Return a list."""
        data: list[Any] = []
        for event in self.events:
            if isinstance(event, SequenceEndEvent):
                return data
            data.append(self.value(event, depth + 1))
        raise ValueError("the file ends within a list")

    def remember(self, event: Any, data: Any, size: int = 1) -> Any:
        """Keep a value that has an anchor for its aliases."""
        if event.anchor is not None:
            self.anchors[event.anchor] = (data, size)
        if self.count > MOST_VALUES:
            raise self.fault(event, f"the file has more than {MOST_VALUES:,} values, aliases counted; divide it")
        return data

    def repeat(self, event: Any) -> Any:
        """Return the value of an alias."""
        if event.anchor not in self.anchors:
            raise self.fault(event, f"nothing above is marked with the anchor {event.anchor}")
        data, size = self.anchors[event.anchor]
        self.count += size
        if self.count > MOST_VALUES:
            raise self.fault(event, f"the file has more than {MOST_VALUES:,} values, aliases counted; divide it")
        return data

    def scalar(self, event: Any) -> Any:
        """Return a scalar by the core schema of YAML 1.2; a quoted one is a text."""
        text: str = event.value
        if event.tag is not None and event.tag not in (STR, "!"):
            raise self.fault(event, f"the tag {event.tag} is not understood; write the value without it")
        if event.tag is not None or not event.implicit[0]:
            return text
        if not text or text[0] in "-+.0123456789":
            return self.number(event, text)
        if text in BOOL:
            return BOOL[text]
        return None if NULL.fullmatch(text) else text

    def number(self, event: Any, text: str) -> Any:
        """Return the number in a plain scalar, or its text where it is none."""
        if not text:
            return None
        if INT.fullmatch(text):
            if len(text) > 40:
                raise self.fault(event, "the number has too many digits; put it in quotes where it is a text")
            return int(text)
        if OCTAL_OR_HEX.fullmatch(text):
            return int(text, 0)
        if FLOAT.fullmatch(text):
            if math.isfinite(number := float(text)):
                return number
            raise self.fault(event, f"{text} is no finite number")
        if STRANGE_FLOAT.fullmatch(text):
            raise self.fault(event, f"{text} is no finite number")
        return text

    def fault(self, event: Any, sentence: str) -> BeamlineFileError:
        """Return the fault of what an event begins."""
        mark = event.start_mark
        return BeamlineFileError([f"{self.source.name}:{mark.line + 1}:{mark.column + 1}: {sentence}."])


def value_marks(text: str) -> Iterator[tuple[ValuePath, Mark]]:
    """Yield the path of each value and where it stands; a member of an object stands where its key does."""
    opened: list[OpenValue] = []
    for event in parse_events(text):
        if isinstance(event, MappingEndEvent | SequenceEndEvent):
            opened.pop()
        elif isinstance(event, NodeEvent):
            start = event.start_mark.line, event.start_mark.column
            path, mark = opened[-1].next_path(event, start) if opened else ((), start)
            if path is None:
                continue
            yield path, mark
            if isinstance(event, MappingStartEvent | SequenceStartEvent):
                opened.append(OpenValue(path, isinstance(event, MappingStartEvent)))


class OpenValue:
    """An object or list of which the events come one after the other."""

    def __init__(self, path: ValuePath, is_object: bool) -> None:
        self.path = path
        self.is_object = is_object
        self.count = 0
        self.key: tuple[str, Mark] | None = None

    def next_path(self, event: Any, start: Mark) -> tuple[ValuePath | None, Mark]:
        """Return the path of the value that an event begins, and where it stands; no path where it is a key itself."""
        if not self.is_object:
            self.count += 1
            return (*self.path, self.count - 1), start
        if self.key is None:
            self.key = getattr(event, "value", ""), start
            return None, start
        (name, mark), self.key = self.key, None
        return (*self.path, name), mark
