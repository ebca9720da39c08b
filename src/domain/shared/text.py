"""Bounded text: the edge refuses a raw length out of bounds and strips the rest; blank text, or a name with control
characters, is only marked, so that the decision path can refuse it in its turn (after 404 and state) by its own class."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, reduce
from typing import Annotated, Any, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from baton.domain.shared.refusals import Invalid, Refusal

PERSONAL_MARK = "x-may-contain-personal-data"
UNWRITABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters except tab and line feed, and halves of surrogate pairs: the database does not take all of them."""
UNSTORABLE = re.compile("[\\x00\\ud800-\\udfff]")
"""What the database takes in no text at all: NUL and halves of surrogate pairs."""
UNNAMEABLE = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]")
"""What no name holds: control characters, line breaks, and what turns the direction of the text around it."""
PROSE = (
    *("reason", "text", "notes", "description", "workaround", "mitigation", "endpoint note", "comment"),
    *("choice", "alternative"),
)  # The labels of texts that run over lines; every other text is a name.


class Blank(str):
    """Text that had nothing but whitespace in it, and the class that refuses it."""

    refusal: type[Refusal]
    label: str

    def to_refusal(self) -> Refusal:
        """Return the refusal of this text."""
        return self.refusal(f"The {self.label} is blank; give it at least one visible character.", reason="blank")


class Unnameable(Blank):
    """A name with a character that no name holds."""

    def to_refusal(self) -> Refusal:
        detail = f"The {self.label} holds {unnameable_character(self)}, which no name has; leave it out."
        return self.refusal(detail, reason="control_character")


@dataclass(frozen=True)
class MayContainPersonalData:
    """Marks free text: the feed and the histories show it only to callers who hold `ReadEventTexts`, unless it belongs to a
    state that they may see."""

    part_of_state: bool = False

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), PERSONAL_MARK: True}


FreeText = Annotated[str, MayContainPersonalData()]  # Free text on an event.
StateReason = Annotated[str, MayContainPersonalData(part_of_state=True)]
"""Why something is held, stopped, aborted, refused or in its status: a caller who may see the state may read it."""


@dataclass(frozen=True)
class TextsMayContainPersonalData:
    """Marks plain data of which the texts are free, those apart that are ids or stand under the key of a code."""

    codes: frozenset[str] = frozenset()

    def without_texts(self, value: object, key: str = "") -> Any:
        """The data with its free texts null."""
        match value:
            case str() if key not in self.codes and not _is_id(value):
                return None
            case dict():
                return {name: self.without_texts(item, name) for name, item in value.items()}
            case list():
                return [self.without_texts(item, key) for item in value]
        return value


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


Hiding = Callable[[Any], Any]  # What is left of a stored value for somebody who may not read free texts.


def hiding_of(annotation: object, metadata: Iterable[object] = ()) -> Hiding | None:
    """How the free texts in a value of this type are hidden, however deep they are; None where there are none."""
    for mark in metadata:
        if isinstance(mark, MayContainPersonalData):
            return None if mark.part_of_state else lambda _: None
        if isinstance(mark, TextsMayContainPersonalData):
            return mark.without_texts
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return hiding_of(parts[0], parts[1:])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _hiding_fields(annotation)
    inner = [found for part in parts if (found := hiding_of(part)) is not None]
    if not inner:
        return None
    if origin is dict:
        return lambda value: {key: inner[-1](item) for key, item in value.items()} if isinstance(value, dict) else value
    if origin in (tuple, list, set, frozenset):
        return lambda value: [inner[0](item) for item in value] if isinstance(value, list) else value
    return lambda value: reduce(lambda left, hide: hide(left), inner, value)


@cache
def _hiding_fields(model: type[BaseModel]) -> Hiding | None:
    hides = {info.alias or name: hiding_of(info.annotation, info.metadata) for name, info in model.model_fields.items()}
    fields = {name: hide for name, hide in hides.items() if hide is not None}
    if not fields:
        return None

    def hide_fields(value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {key: fields[key](item) if key in fields and item is not None else item for key, item in value.items()}

    return hide_fields


@dataclass(frozen=True)
class Text:
    """A text of 1 to `max_length` characters; blank after trimming is refused by `refusal`."""

    max_length: int
    refusal: type[Refusal]
    label: str = "text"
    personal: bool = False

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        bounded = core_schema.str_schema(min_length=1, max_length=self.max_length)
        return core_schema.no_info_after_validator_function(self._trim, bounded)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), **({PERSONAL_MARK: True} if self.personal else {})}

    def _trim(self, raw: str) -> str:
        text = raw.strip()
        if text and (self.label in PROSE or not UNNAMEABLE.search(text)):
            return text
        marked = Unnameable(text) if text else Blank()
        marked.refusal = self.refusal
        marked.label = self.label
        return marked


class InvalidReasonError(Invalid):
    """A reason must not be blank."""


Reason = Annotated[str, Text(500, InvalidReasonError, "reason", personal=True)]
OptionalReason = Reason | None

VISIBLE = r"[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
"""Any character that trimming leaves, spelled out: dialects of patterns differ in what they call a space."""

TRIMMED = rf"^{VISIBLE}([\s\S]*{VISIBLE})?(?![\s\S])"
"""A text that trimming leaves as it is; the end is spelled out, for in some dialects `$` lets a line break follow."""


@dataclass(frozen=True)
class Word:
    """A text of 1 to `max_length` characters whose blankness no class refuses, so that the edge does; stored trimmed."""

    max_length: int

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        bounded = core_schema.str_schema(min_length=1, max_length=self.max_length)
        return core_schema.no_info_after_validator_function(self._trim, bounded)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), "pattern": VISIBLE}

    def _trim(self, raw: str) -> str:
        if text := raw.strip():
            return text
        raise ValueError("give it at least one visible character")


@dataclass(frozen=True)
class Remark:
    """A text of up to `max_length` characters that may be missing; blank counts as missing."""

    max_length: int
    personal: bool = False

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        bounded = core_schema.nullable_schema(core_schema.str_schema(max_length=self.max_length))
        return core_schema.no_info_after_validator_function(lambda raw: (raw or "").strip() or None, bounded)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), **({PERSONAL_MARK: True} if self.personal else {})}


ATOMS = frozenset({str, bool, int, float, type(None), UUID, datetime})  # They hold no blank text, which has its own class.


def refuse_blank_text(value: object) -> None:
    """Raise the refusal of the first blank text or unfit name found in a model, however deep."""
    match value:
        case Blank():
            raise value.to_refusal()
        case BaseModel():
            for item in value.__dict__.values():
                if type(item) not in ATOMS:
                    refuse_blank_text(item)
        case str() | bytes():
            return
        case dict():
            refuse_blank_text(list(value.values()))
        case Iterable():
            for item in value:
                refuse_blank_text(item)


def unnameable_character(text: str) -> str | None:
    """The first character of a text that no name holds, by its code point, or None."""
    found = UNNAMEABLE.search(text)
    return None if found is None else f"the control character U+{ord(found[0]):04X}"


def shorten(text: str, length: int = 200) -> str:
    """A text as far as a sentence can quote it, or as so many characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def name_key(name: str) -> str:
    """The form under which two names count as the same: normalised, trimmed, lower case."""
    return unicodedata.normalize("NFC", name).strip().lower()


def writable(value: object) -> bool:
    """Whether no text in plain data, keys included, has a character that nobody writes."""
    rest = [value]
    while rest:
        match rest.pop():
            case str() as text if UNWRITABLE.search(text):
                return False
            case Mapping() as pairs:
                rest += [*pairs.keys(), *pairs.values()]
            case list() | tuple() as items:
                rest += items
    return True
