"""Planned outages: when supplies are announced to be gone. They are forecasts, and close no gate."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from baton.domain.kernel import Value
from baton.domain.shared.times import Instant


class PlannedOutage(Value):
    """An announced outage of every supply of a kind, from its begin until just before its end."""

    kind: Annotated[str, Field(min_length=1, max_length=100)]
    starts_at: Instant
    ends_at: Instant

    @model_validator(mode="after")
    def _ends_later(self) -> Self:
        if self.ends_at <= self.starts_at:
            raise ValueError("an outage ends after it has begun")
        return self

    def covers(self, kind: str, at: datetime) -> bool:
        """Return whether supplies of this kind are announced to be gone at this moment."""
        return kind == self.kind and self.starts_at <= at < self.ends_at


EVENT = re.compile(r"^BEGIN:VEVENT$(.*?)^END:VEVENT$", re.MULTILINE | re.DOTALL)
TIME = re.compile(r"^DT(?P<which>START|END)(?P<how>[^:]*):(?P<text>\d{8}(T\d{6})?)(?P<utc>Z?)$", re.MULTILINE)
KIND = re.compile(r"^(?:CATEGORIES|SUMMARY)[^:\n]*:(.+)$", re.MULTILINE)


def outages_in(calendar: str) -> tuple[PlannedOutage, ...]:
    """Return the outages of an iCalendar text: each event with begin and end, of the kind that its first category, or else
    its summary, names. Times without a zone are UTC; an event that repeats counts once."""
    unfolded = re.sub(r"\r?\n[ \t]", "", calendar).replace("\r\n", "\n")
    return tuple(outage for event in EVENT.findall(unfolded) for outage in _outage_of(event))


def _outage_of(event: str) -> Iterator[PlannedOutage]:
    times = {found["which"]: _moment(found) for found in TIME.finditer(event)}
    kinds = sorted(KIND.finditer(event), key=lambda found: found[0])  # CATEGORIES before SUMMARY
    if kinds and times.keys() >= {"START", "END"}:
        yield PlannedOutage(kind=kinds[0][1].split(",")[0].strip(), starts_at=times["START"], ends_at=times["END"])


def _moment(found: re.Match[str]) -> datetime:
    form = "%Y%m%dT%H%M%S" if "T" in found["text"] else "%Y%m%d"
    named = re.search(r"TZID=([^;:]+)", found["how"])
    zone = ZoneInfo(named[1]) if named and not found["utc"] else UTC
    return datetime.strptime(found["text"], form).replace(tzinfo=zone).astimezone(UTC)
