"""Times in requests: written with their UTC offset, kept in UTC, and within the years everything here can write."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BeforeValidator

from baton.domain.shared.refusals import Invalid

FORM = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")


def _read(written: object) -> Any:
    """Return a time from its ISO 8601 form; general parsers would also take a bare number, or a date for its midnight."""
    if not isinstance(written, str):
        return written
    try:
        if FORM.fullmatch(written.upper()):
            return datetime.fromisoformat(written.upper())
    except ValueError:
        pass
    raise ValueError("give a date and a time of day with its UTC offset")


def _in_utc(time: datetime) -> datetime:
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError("give a time within the years 1 to 9999 in UTC") from None


Instant = Annotated[AwareDatetime, BeforeValidator(_read), AfterValidator(_in_utc)]  # A moment as an input.


def check_told_time(time: datetime, refusal: type[Invalid], now: datetime, since: datetime, beginning: str) -> None:
    """Refuse the time of something that is recorded after it happened, where it lies in the future or before its subject."""
    if time > now:
        detail = "This time lies in the future; give the time it happened at."
        raise refusal(detail, reason="in_the_future", facts={"now": now})
    if time < since:
        detail = f"This time lies before {beginning}, which was at {since.isoformat()}; give the time it happened at."
        raise refusal(detail, reason="before_its_subject", facts={"not_before": since})
