"""Identifiers that several contexts refer by: the code of a facility, and references to records outside."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from baton.domain.shared.reads import Reads, holder_of
from baton.domain.shared.refusals import Invalid, Refusal
from baton.domain.shared.text import Text, unnameable_character

FACILITY_CODE = "facility-code"  # Claim kind: the facility that holds a code, for ever.


class InvalidFacilityCodeError(Invalid):
    """A facility code has only lower-case letters, digits and hyphens."""


class ExternalIdScheme(StrEnum):
    """Where a persistent identifier is registered."""

    DOI = "DOI"
    HANDLE = "Handle"


FacilityCode = Annotated[str, Text(32, InvalidFacilityCodeError, "facility code")]
"""A facility's code as an input; its characters are judged by `check_facility_code`, in the turn of field values."""


def is_facility_code(code: str) -> bool:
    """Return whether this could be a facility's code; case is not folded."""
    return re.fullmatch(r"[a-z0-9-]{1,32}", code) is not None


def check_facility_code(code: str) -> None:
    """Refuse what cannot be a facility's code."""
    if not is_facility_code(code):
        detail = f"{code!r} is no facility code; use only lower-case letters, digits and hyphens."
        raise InvalidFacilityCodeError(detail, reason="pattern")


def require_facility(code: str, refusal: type[Refusal]) -> Reads[None]:
    """Refuse a code that no facility has ever held; one that cannot be a code is refused among the field values."""
    if is_facility_code(code) and (yield from holder_of(FACILITY_CODE, code)) is None:
        detail = f"No facility has the code {code}; register the facility first or correct the code."
        raise refusal(detail, facts={"facility_code": code})


GivenExternalId = Annotated[str, Field(max_length=1000, description="Without the name of its scheme before it.")]
GivenExternalIdScheme = Annotated[str, Field(max_length=1000)]


def checked_external_id(value: str, scheme: str, refusal: type[Refusal]) -> dict[str, str]:
    """Return an identifier as it is kept, or refuse one that is blank, too long, or begins with a scheme or an address."""
    value, scheme = value.strip(), scheme.strip()
    if not value or not scheme:
        raise refusal("The identifier or its scheme is blank; give both.", reason="blank")
    if len(value) > 200 or len(scheme) > 50:
        raise refusal("The identifier is too long; give 200 characters at most, and 50 of its scheme.", reason="too_long")
    if character := unnameable_character(value + scheme):
        raise refusal(f"The identifier holds {character}, which none has; leave it out.", reason="control_character")
    if value.lower().startswith(f"{scheme.lower()}:"):
        raise refusal(f"The identifier begins with its scheme; leave {scheme}: out.", reason="scheme_prefix")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", value):
        raise refusal("The identifier is an address; leave out everything before the identifier.", reason="address")
    return {"external_id": value, "external_id_scheme": scheme}


def trimmed_refs(refs: Mapping[str, str], refusal: type[Refusal]) -> dict[str, str]:
    """Return references to records outside, by scheme, trimmed and in order; refuse a blank, long or repeated one."""
    for scheme, value in refs.items():
        if not (1 <= len(scheme.strip()) <= 50 and 1 <= len(value.strip()) <= 200):
            detail = "An external reference is blank or too long; use keys of 1-50 and values of 1-200 characters."
            raise refusal(detail, facts={"key": scheme[:50]})
    trimmed = {scheme.strip(): value.strip() for scheme, value in sorted(refs.items())}
    if len(trimmed) < len(refs):
        raise refusal("Two external references have the same key once trimmed; keep one of them.", reason="repeated")
    return trimmed
