"""Readings of monitors: where they come from, their reason, and how old the last one is. A repeated reading is accepted
before its texts are looked at, so these texts are judged by the decision itself."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Protocol

from pydantic import Field

from baton.domain.kernel import Command, Value
from baton.domain.shared.refusals import Invalid, Refusal
from baton.domain.shared.text import FreeText


class TriggerSource(StrEnum):
    OPERATOR = "Operator"
    MONITOR = "Monitor"
    AUTO = "Auto"


class Contact(Protocol):
    """The row of a thing's last observation."""

    @property
    def contacted_at(self) -> datetime: ...


def observation_age(contact: Contact | None, now: datetime) -> float | None:
    """Return the seconds since the last observation, or None when there was none."""
    return None if contact is None else (now - contact.contacted_at).total_seconds()


def age_objection(contact: Contact | None, now: datetime, lifetime: timedelta) -> str | None:
    """Return why work cannot rest on the last observation, or None; one from the future proves as little as an old one."""
    if contact is None:
        return "has no contact on record"
    age = now - contact.contacted_at
    if abs(age) <= lifetime:
        return None
    where = "ago" if age > timedelta() else "ahead of the clock"
    return f"was last observed {abs(age).total_seconds():.0f} s {where}, not within {lifetime.total_seconds():.0f} s"


class InvalidMonitorRefError(Invalid):
    """A monitor names its source by a kind without a colon and an id, neither of them blank."""


class MonitorRef(Value):
    """The signal a reading comes from."""

    source_kind: Annotated[str, Field(min_length=1, max_length=50)]
    """The kind of source, such as EPICS."""
    source_id: Annotated[str, Field(min_length=1, max_length=200)]

    def text(self) -> str:
        """Return the reference as events carry it; the first colon parts kind and id."""
        kind, id = self.source_kind.strip(), self.source_id.strip()
        if not (kind and id):
            detail = "source_kind or source_id is blank; name the signal the reading comes from."
            raise InvalidMonitorRefError(detail, reason="blank")
        if ":" in kind:
            raise InvalidMonitorRefError("source_kind contains a colon; only source_id may.", reason="colon")
        return f"{kind}:{id}"


class MonitorReading(Command):
    """A reading that a monitor reports."""

    monitor_ref: MonitorRef
    reason: Annotated[FreeText, Field(min_length=1, max_length=500)]

    def cause(self, refusal: type[Refusal]) -> dict[str, str]:
        """Return reason and source as events carry them; refuse a blank reason by `refusal`, then a bad source."""
        if not (reason := self.reason.strip()):
            raise refusal("The reason is blank; give it at least one visible character.", reason="blank")
        return {"reason": reason, "monitor_ref": self.monitor_ref.text()}
