"""Identifiers that several contexts refer by: the code of a facility."""

import re
from typing import Annotated

from domain.shared.refusals import Invalid
from domain.shared.text import Text

FACILITY_CODE = "facility-code"
"""Claim kind: the facility that holds a code, for ever."""


class InvalidFacilityCodeError(Invalid):
    """A facility code has only lower-case letters, digits and hyphens."""


FacilityCode = Annotated[str, Text(32, InvalidFacilityCodeError, "facility code")]
"""A facility's code as an input; its characters are judged by `check_facility_code`, in the turn of field values."""


def is_facility_code(code: str) -> bool:
    """Whether this could be a facility's code; case is not folded."""
    return re.fullmatch(r"[a-z0-9-]{1,32}", code) is not None


def check_facility_code(code: str) -> None:
    """Refuse what cannot be a facility's code."""
    if not is_facility_code(code):
        raise InvalidFacilityCodeError(
            f"{code!r} is no facility code; use only lower-case letters, digits and hyphens.", reason="pattern"
        )
