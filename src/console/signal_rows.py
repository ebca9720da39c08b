"""Signals as rows of pages: which of them an asset has, and what was last read of each, with its unit and its limits."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from baton.console.display import GOOD, LOOK, SIGNS, STOP, number_text
from baton.console.page_queries import Shown
from baton.domain.conduct.control_signals import MAX_READ
from baton.domain.step.step_words import with_unit

QUALITY_LOOKS = {"Good": GOOD, "Uncertain": LOOK, "Bad": STOP}
NOT_READ = "Not read"
TIMES = " \N{MULTIPLICATION SIGN} "


@dataclass(frozen=True)
class SignalRow:
    """A signal as it was last read: its value, how good that is, and between which limits it may be set."""

    address: str
    text: str
    unit: str
    look: str
    word: str
    detail: str
    limits: str
    time: Any

    @property
    def sign(self) -> str:
        return SIGNS[self.look]

    @property
    def shown(self) -> str:
        """The value with its unit; nothing where it was not read."""
        return with_unit(self.text, self.unit) if self.text else ""


def identifiers_of(view: Shown) -> list[str]:
    """Return the names that an asset goes by in the control system."""
    return [one["value"] for one in view["alternate_identifiers"] if one["kind"] == "EPICS_PV"]


def signal_addresses(view: Shown, typed: str) -> tuple[str, ...]:
    """Return the signals that are read for an asset: those it goes by, those with limits, and those that were typed."""
    own = [one for one in identifiers_of(view) if not one.endswith((":", "."))]
    asked = [one for one in typed.replace(",", " ").split() if len(one) <= 300]
    return tuple(dict.fromkeys((*asked[:10], *own, *view["signal_limits"])))[:MAX_READ]


def signal_row(reading: Shown) -> SignalRow:
    """Return a reading as it is shown: what cannot be read, is bad or stands outside its limits is marked."""
    error, quality = reading["error"], reading["quality"]
    look, word, detail = (
        QUALITY_LOOKS.get(quality or "", LOOK),
        quality or "Unknown quality",
        reading["quality_detail"] or "",
    )
    if error is not None:
        look, word, detail = STOP, NOT_READ, error["detail"]
    elif look == GOOD and is_outside(reading["value"], (reading["limits"], reading["control_limits"])):
        look, word = LOOK, "Outside its limits"
    return SignalRow(
        address=reading["address"],
        text="" if error is not None else value_text(reading["value"]),
        unit=reading["unit"] or "",
        look=look,
        word=word,
        detail=detail,
        limits=limits_text(reading["limits"], reading["control_limits"]),
        time=reading["time"],
    )


def value_text(value: object) -> str:
    """Return the value of a signal in a line."""
    match value:
        case bool() | int() | float():
            return number_text(value)
        case {"kind": kind, "shape": list(lengths)}:
            return f"{kind} {TIMES.join(map(str, lengths))}"
        case list() | tuple():
            return ", ".join(value_text(one) for one in value)
        case None:
            return "nothing"
    return str(value)


def is_outside(value: Any, limits: Iterable[Shown | None]) -> bool:
    """Return whether a number stands outside any of these limits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    known = [one for one in limits if one is not None]
    return any(
        (one["low"] is not None and value < one["low"]) or (one["high"] is not None and value > one["high"]) for one in known
    )


def limits_text(own: Shown | None, control: Shown | None) -> str:
    """Return the limits of a signal: those on record, and those that the control system declares."""
    texts = [f"{range_text(one)}{mark}" for one, mark in ((own, " on record"), (control, " in the control system")) if one]
    return "; ".join(texts)


def range_text(limits: Shown) -> str:
    """Return limits in words."""
    low, high = limits["low"], limits["high"]
    if low is not None and high is not None:
        return f"{number_text(low)} to {number_text(high)}"
    return (
        f"at least {number_text(low)}" if low is not None else f"at most {number_text(high)}" if high is not None else "none"
    )
