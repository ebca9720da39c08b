"""What both EPICS protocols share: names and alarms."""

import re

from baton.application.control import MalformedControlAddressError, Quality


def check_name(address: str) -> str:
    if not re.fullmatch(r"[!-~]+", address):
        detail = f"{address!r} is no name of an EPICS signal; these are of letters, digits and signs, without spaces."
        raise MalformedControlAddressError(detail)
    return address


def quality(severity: int) -> Quality:
    """Return how far a value with this alarm severity can be trusted; an undefined severity is bad."""
    return {0: Quality.GOOD, 1: Quality.UNCERTAIN, 2: Quality.UNCERTAIN}.get(severity, Quality.BAD)


def alarm_text(severity: int, status: str) -> str | None:
    if severity == 0:
        return None
    name = {1: "MINOR", 2: "MAJOR", 3: "INVALID"}.get(severity, f"severity {severity}")
    return f"{name} {status}".strip()
