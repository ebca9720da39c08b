"""The life every template of this context leads: defined, versioned as often as needed, deprecated for good.

Deprecating touches nothing that refers to the template already; it keeps new use from beginning.
"""

from enum import StrEnum
from typing import Annotated

from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import Text


class TemplateStatus(StrEnum):
    """Where a capability, method, practice, plan or recipe stands."""

    DEFINED = "Defined"
    VERSIONED = "Versioned"
    DEPRECATED = "Deprecated"


DEFINED, VERSIONED, DEPRECATED = TemplateStatus
CURRENT = (DEFINED, VERSIONED)
"""The states a template can be versioned and deprecated from."""


class InvalidReasonError(Invalid, context="recipe"):
    """A reason, where one is given, must not be blank."""


OptionalReason = Annotated[str, Text(500, InvalidReasonError, "reason", personal=True)] | None
