"""Annotations of models: the units that numbers declare, and the marks that fields carry, however deep."""

from collections.abc import Iterator
from typing import TypeVar

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from baton.domain.shared.refusals import Refusal
from baton.domain.shared.text import Text


def _unit(description: str, system: str, code: str) -> object:
    return Field(description=description, json_schema_extra={"unit": {"system": system, "code": code}})


Seconds = _unit("In seconds.", "udunits", "s")
Milliseconds = _unit("In milliseconds.", "udunits", "ms")
Dollars = _unit("In US dollars.", "qudt", "CCY_USD")
DollarsPerMillionTokens = _unit("In US dollars per million tokens.", "qudt", "CCY_USD")

M = TypeVar("M")


def marks(field: FieldInfo, kind: type[M]) -> list[M]:
    """Return the annotations of one kind on a field, also inside unions and collections."""
    found = [mark for mark in field.metadata if isinstance(mark, kind)]
    pending = [field.annotation]
    while pending:
        annotation: object = pending.pop()
        found += [mark for mark in getattr(annotation, "__metadata__", ()) if isinstance(mark, kind)]
        pending += getattr(annotation, "__args__", ())
    return found


def text_refusals(model: type[BaseModel]) -> Iterator[type[Refusal]]:
    """Yield the classes that refuse blank texts of a model."""
    for field in model.model_fields.values():
        for text in marks(field, Text):
            yield text.refusal
        for nested in models_in(field.annotation):
            yield from text_refusals(nested)


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from models_in(part)
