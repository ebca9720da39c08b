"""How values look: times on the facility's clock, durations, numbers, and the sign and colour of each state."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, get_args
from uuid import UUID
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from baton.domain.agent.prompts import DebriefChoice
from baton.domain.contexts import REGISTRY
from baton.domain.kernel import Aggregate
from baton.domain.shared.naming import referred_aggregate
from baton.domain.step.results import SourceKind

GOOD, LOOK, STOP, LIVE, PLAIN = "good", "look", "stop", "live", "plain"
SIGNS = {GOOD: "✓", LOOK: "▲", STOP: "✗", LIVE: "●", PLAIN: "○"}
LOOKS = {
    GOOD: """Active Approved Arrived Attested Available Built CarriedOut Completed Converged Entered Granted Healthy InForce
        Installed Match Measured Mounted Nominal Permitted Present Production Published Sealed Succeeded
        Trusted Usable Valid Verified Versioned ok""",
    LOOK: """Caution Degraded Draft Expiring Held Maintenance Notice OnHold Pending Planned Proposed Recovering
        Republishing RetirementAnnounced Rotating Stale Submitted Suspended Trial Truncated UnderReview
        Unknown Warning awaited warning""",
    STOP: """Abandoned Aborted Blocked Cancelled Danger Decommissioned Deregistered Discarded Expired Failed
        Faulted Forbidden Invalid Lost Mismatch NotPermitted Refused Rejected Retired Retracted Revoked
        Stalled Unavailable Unreachable Unverifiable Voided Withdrawn lost wrong""",
    LIVE: "Closing Conducting InProgress Live Ongoing Running Started heard",
}  # The states of every aggregate by how they look; a state that stands nowhere is shown plainly.
LOOK_OF = {state: look for look, states in LOOKS.items() for state in states.split()}
WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
ERROR_CLASS = r"(?:[A-Z]+[a-z0-9]+){2,}: "
STEP_FAILURE = re.compile(rf"\b(?:{'|'.join(get_args(SourceKind))})(?:\[(\d+)\])? (\S.*?) failed: {ERROR_CLASS}")
OTHER_FAILURE = re.compile(rf'(?:(?<= failed: )|(?<=")){ERROR_CLASS}')
DAY, HOUR, MINUTE = 86400, 3600, 60


@cache
def named_on_record() -> frozenset[str]:
    """Return the names of events, of their things and of the verdicts on runs."""
    events = (name for aggregate in REGISTRY.aggregates.values() for name in aggregate.events)
    return frozenset((*events, *REGISTRY.aggregates, *(one.value for one in DebriefChoice)))


def look_of(state: object) -> str:
    """Return how a state looks."""
    return LOOK_OF.get(str(getattr(state, "value", state)), PLAIN)


def sign_of(state: object) -> str:
    """Return the sign of a state, which says without colour how it looks."""
    return SIGNS[look_of(state)]


def shown_status(view: Mapping[str, object]) -> Any:
    """Return the status of a run or procedure as it is shown: what is Running on the record alone is lost."""
    return "Lost" if view.get("lost") and view["status"] == "Running" else view["status"]


PLAIN_WORDS = {
    "distribution": "copy",
    "distributions": "copies",
    "attestation": "check",
    "attestations": "checks",
    "attest": "check",
    "subject": "sample",
    "subjects": "samples",
}
"""The words of pages for words of the record."""


def words_of(name: object) -> str:
    """Return a name of the code in words of the pages: `hold_run` -> `Hold run`, `mount_subject` -> `Mount sample`."""
    text = WORD.sub(" ", str(getattr(name, "value", name))).strip()
    rest = [part if part.isupper() and len(part) > 1 else part.lower() for part in text.split(" ")]
    if "actor" not in rest:  # whose subject is that of a token
        rest = [PLAIN_WORDS.get(part, part) for part in rest]
    return " ".join(rest)[:1].upper() + " ".join(rest)[1:]


def reason_text(reason: str) -> str:
    """Return a reason on record for people: its step is counted from 1, and classes of errors are left out."""

    def describe(failure: re.Match[str]) -> str:
        return "" if failure[1] is None else f"step {int(failure[1]) + 1}, {failure[2]} failed: "

    return OTHER_FAILURE.sub("", STEP_FAILURE.sub(describe, reason))


INSTANT = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
CLASS_NAME = re.compile(r"\b(?:[A-Z][a-z]+){2,}\b")


def instant_of(value: object) -> datetime | None:
    """Return a time that plain data holds."""
    if isinstance(value, datetime) or value is None:
        return value
    return datetime.fromisoformat(str(value).replace("Z", "+00:00"))


def duration_text(seconds: float) -> str:
    """Return a duration as people say it, in its two largest units."""
    if seconds < 0.001:
        return "< 1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE} s" if whole % MINUTE else f"{whole // MINUTE} min"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"
    return f"{whole // DAY} d {whole % DAY // HOUR} h"


def number_text(value: float) -> str:
    """Return a number in as many figures as are worth reading."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return f"{value:.6g}"


class Display:
    """The filters of the templates, on the clock of one facility."""

    def __init__(self, zone: ZoneInfo) -> None:
        self.zone = zone

    def clock(self, value: object) -> Markup:
        """Return a time on the facility's clock."""
        at = instant_of(value)
        if at is None:
            return Markup('<span class="none">none</span>')
        local = at.astimezone(self.zone)
        return Markup('<time datetime="{}" title="{}">{}</time>').format(
            at.isoformat(), local.strftime("%Y-%m-%d %H:%M:%S %Z"), local.strftime("%Y-%m-%d %H:%M:%S")
        )

    def age(self, value: object) -> Markup:
        """Return a time as an age, which the page counts on."""
        at = instant_of(value)
        if at is None:
            return Markup('<span class="none">never</span>')
        local = at.astimezone(self.zone)
        return Markup('<time datetime="{}" title="{}" data-age>{}</time>').format(
            at.isoformat(), local.strftime("%Y-%m-%d %H:%M:%S %Z"), local.strftime("%d %b %H:%M:%S")
        )

    def hour(self, value: object) -> Markup:
        """Return the time of day."""
        at = instant_of(value)
        if at is None:
            return Markup("")
        local = at.astimezone(self.zone)
        title = local.strftime("%Y-%m-%d %H:%M:%S %Z")
        return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), title, local.strftime("%H:%M"))

    def moment(self, seconds: float) -> Markup:
        """Return a second since 1970 as the time of day."""
        return self.hour(datetime.fromtimestamp(seconds, UTC))

    def day_clock(self, value: object) -> Markup:
        """Return the time of day with its day."""
        at = instant_of(value)
        if at is None:
            return Markup("")
        local = at.astimezone(self.zone)
        title = local.strftime("%Y-%m-%d %H:%M:%S %Z")
        return Markup('<time datetime="{}" title="{}">{}</time>').format(
            at.isoformat(), title, local.strftime("%a %d %b %H:%M")
        )

    def duration_now(self, seconds: float) -> Markup:
        """Return how long something lasts that is not over, perhaps."""
        return Markup('<time datetime="PT{}S">{}</time>').format(round(seconds), duration_text(seconds))

    def narrative(self, text: str) -> str:
        """Return what an agent has written for people: times on the facility's clock, and names of the record in words."""

        def clock(found: re.Match[str]) -> str:
            at = instant_of(found[0])
            return found[0] if at is None else at.astimezone(self.zone).strftime("%H:%M:%S")

        def words(found: re.Match[str]) -> str:
            return words_of(found[0]).lower() if found[0] in named_on_record() else found[0]

        return CLASS_NAME.sub(words, INSTANT.sub(clock, text))

    def chip(self, state: object) -> Markup:
        """Return a state as a sign, a colour and a word."""
        return Markup('<span class="chip {}"><span aria-hidden="true">{}</span> {}</span>').format(
            look_of(state), sign_of(state), words_of(state)
        )

    def link(self, aggregate: str | Aggregate, id: Any, name: Any = None) -> Markup:
        """Return a link to the page of a thing, by its name where that is known."""
        if not id:
            return Markup('<span class="none">none</span>')
        return Markup('<a href="{}">{}</a>').format(href_of(aggregate, id), name or short_id(id))

    def value(self, value: object, field: str = "", beside: Mapping[str, object] | None = None) -> Markup:
        """Return any value of plain data as it is best read."""
        match value:
            case _ if value in (None, "", [], {}, ()) and not isinstance(value, bool | int | float):
                return Markup('<span class="none">none</span>')
            case bool():
                return Markup("yes" if value else "no")
            case int() | float():
                return Markup("{}").format(number_text(value))
            case datetime():
                return self.clock(value)
            case timedelta():
                return Markup("{}").format(duration_text(value.total_seconds()))
            case Enum():
                return self.chip(value)
            case UUID():
                return self._reference(str(value), field, beside)
            case str() if is_uuid(value):
                return self._reference(value, field, beside)
            case str() if is_instant(value, field):
                return self.clock(value)
            case str() if field in ("status", "lifecycle", "condition", "permit_status", "severity", "phase", "intent"):
                return self.chip("Lost" if value == "Running" and (beside or {}).get("lost") else value)
            case str() if field.endswith("reason"):
                return Markup("{}").format(reason_text(value))
            case str():
                return Markup("{}").format(value)
            case dict() if set(value) == {"id", "name"}:
                aggregate = referred_aggregate(f"{field}_id") or referred_aggregate(f"{field.removesuffix('s')}_id")
                named = value["name"] or short_id(value["id"])
                return self.link(aggregate, value["id"], named) if aggregate else escape(named)
            case dict():
                named = ((k if ":" in k else words_of(k), self.value(v, k, value)) for k, v in value.items())
                rows = (Markup("<dt>{}</dt><dd>{}</dd>").format(*one) for one in named)
                return Markup('<dl class="inner">{}</dl>').format(Markup("").join(rows))
            case list() | tuple():
                if all(not isinstance(one, dict) or set(one) == {"id", "name"} for one in value):
                    return Markup(", ").join(self.value(one, field, beside) for one in value)
                items = Markup("").join(Markup("<li>{}</li>").format(self.value(one, field, beside)) for one in value)
                return Markup('<ul class="values">{}</ul>').format(items)
        return Markup("{}").format(str(value))

    def _reference(self, id: str, field: str, beside: Mapping[str, object] | None) -> Markup:
        aggregate = referred_aggregate(field) if field and field != "id" else None
        known = (beside or {}).get(f"{field}_name")
        return self.link(aggregate, id, known) if aggregate else Markup("<code>{}</code>").format(id)


def href_of(aggregate: str | Aggregate, id: Any) -> str:
    """Return the address of a thing's page."""
    kind = REGISTRY.aggregates[aggregate] if isinstance(aggregate, str) else aggregate
    return f"/console{kind.path}/{id}"


def short_id(id: object) -> str:
    """Return the part of an id that tells it from others at a glance: its end, as its beginning is a time."""
    return f"…{str(id)[-8:]}"


def is_uuid(text: str) -> bool:
    """Return whether a text is an id."""
    return len(text) == 36 and text[8] == text[13] == "-" and all(part.isalnum() for part in text.split("-"))


def is_instant(text: str, field: str) -> bool:
    """Return whether a field holds a time."""
    named = field.endswith(("_at", "_until", "_from", "_since", "_start", "_end", "_before")) or field in (
        "since",
        "until",
        "at",
    )
    return named and len(text) >= 19 and text[10:11] == "T"
