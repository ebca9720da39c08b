"""What the annotations of a model say, however deep they stand."""

from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from baton.domain.shared.refusals import Refusal
from baton.domain.shared.text import Text

M = TypeVar("M")


def marks(field: FieldInfo, kind: type[M]) -> list[M]:
    """The annotations of one kind on a field, also inside unions and collections."""
    found = [mark for mark in field.metadata if isinstance(mark, kind)]
    pending = [field.annotation]
    while pending:
        annotation: Any = pending.pop()
        found += [mark for mark in getattr(annotation, "__metadata__", ()) if isinstance(mark, kind)]
        pending += getattr(annotation, "__args__", ())
    return found


def text_refusals(model: type[BaseModel]) -> Iterator[type[Refusal]]:
    """The classes that refuse blank texts of a model."""
    for field in model.model_fields.values():
        for text in marks(field, Text):
            yield text.refusal
        for nested in models_in(field.annotation):
            yield from text_refusals(nested)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from models_in(part)
