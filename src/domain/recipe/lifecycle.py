"""The lifecycle that all templates of this context share: defined, versioned as often as needed, deprecated for good, which
prevents new uses of a template and changes nothing that refers to it already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from baton.domain.kernel import Event, State, copy_with
from baton.domain.shared.canonical import content_hash
from baton.domain.shared.text import FreeText


class TemplateStatus(StrEnum):
    """The status of a capability, method, practice, plan or recipe."""

    DEFINED = "Defined"
    VERSIONED = "Versioned"
    DEPRECATED = "Deprecated"


DEFINED, VERSIONED, DEPRECATED = TemplateStatus
CURRENT = (DEFINED, VERSIONED)  # The states a template can be versioned and deprecated from.


class TemplateVersioned(Event):
    """A template was labelled; further keys of the name of a field of its state set that."""

    version_tag: str


class TemplateDeprecated(Event):
    """A template was deprecated; further keys of the name of a field of its state set that."""

    reason: FreeText | None


@dataclass(frozen=True, kw_only=True)
class Template(State):
    """The part of the state that all templates have."""

    status: TemplateStatus = DEFINED
    version_tag: str | None = None
    versioned_at: datetime | None = None
    deprecated_at: datetime | None = None

    @property
    def content(self) -> Mapping[str, Any]:
        """What it says, apart from its name, its label and its status."""
        own = self.__dataclass_fields__.keys() - Template.__dataclass_fields__.keys() - {"name"}
        return {name: getattr(self, name) for name in own}

    @cached_property
    def content_hash(self) -> str:
        """The hash of what it says."""
        return content_hash(plain_data(self.content))

    def fold_lifecycle(self, event: TemplateVersioned | TemplateDeprecated, **more: object) -> Self:
        """Return the template after it was versioned or deprecated."""
        own = {name: value for name, value in event if name in self.__dataclass_fields__}
        if isinstance(event, TemplateVersioned):
            return copy_with(self, status=VERSIONED, versioned_at=event.occurred_at, **own, **more)
        return copy_with(self, status=DEPRECATED, deprecated_at=event.occurred_at, **own, **more)


def plain_data(value: object) -> object:
    """Return a value as JSON has it, with sets in order."""
    match value:
        case BaseModel():
            return value.model_dump(mode="json")
        case Mapping():
            return {str(name): plain_data(part) for name, part in value.items()}
        case frozenset():
            return sorted(str(part) for part in value)
        case Sequence() if not isinstance(value, str):
            return [plain_data(part) for part in value]
        case _:
            return to_jsonable_python(value)
