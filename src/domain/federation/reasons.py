"""Why something of this context was ended or put off, where whoever does it says so."""

from typing import Annotated

from baton.domain.shared.refusals import Invalid
from baton.domain.shared.text import Text


class InvalidReasonError(Invalid, context="federation"):
    """A reason, where one is given, must not be blank."""


OptionalReason = Annotated[str, Text(500, InvalidReasonError, "reason", personal=True)] | None
