"""The lifecycle that all templates of this context share: defined, versioned as often as needed, deprecated for good.

Deprecation prevents new uses of a template; it changes nothing that refers to the template already.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from baton.domain.kernel import Event, State, changed
from baton.domain.shared.text import FreeText


class TemplateStatus(StrEnum):
    """The status of a capability, method, practice, plan or recipe."""

    DEFINED = "Defined"
    VERSIONED = "Versioned"
    DEPRECATED = "Deprecated"


DEFINED, VERSIONED, DEPRECATED = TemplateStatus
CURRENT = (DEFINED, VERSIONED)  # The states a template can be versioned and deprecated from.


@dataclass(frozen=True, kw_only=True)
class Template(State):
    """The part of the state that all templates have."""

    status: TemplateStatus = DEFINED
    version_tag: str | None = None
    versioned_at: datetime | None = None
    deprecated_at: datetime | None = None


class TemplateVersioned(Event):
    """A template was labelled; further keys are fields of its state."""

    version_tag: str


class TemplateDeprecated(Event):
    """A template was deprecated; keys besides the reason are fields of its state."""

    reason: FreeText | None


T = TypeVar("T", bound=Template)


def fold_lifecycle(template: T, event: TemplateVersioned | TemplateDeprecated) -> T:
    """Return the template after it was versioned or deprecated."""
    own = {name: value for name, value in event if name != "reason"}
    if isinstance(event, TemplateVersioned):
        return changed(template, status=VERSIONED, versioned_at=event.occurred_at, **own)
    return changed(template, status=DEPRECATED, deprecated_at=event.occurred_at, **own)
