"""Lines and columns that a person reads: times, ages, states in colour where there is a terminal."""

import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import typer

COLOURS = {
    "Running": "green",
    "Active": "green",
    "Permitted": "green",
    "Available": "green",
    "Held": "yellow",
    "Blocked": "yellow",
    "Degraded": "yellow",
    "Recovering": "yellow",
    "Unknown": "yellow",
    "NotPermitted": "red",
    "Unavailable": "red",
    "Aborted": "red",
    "Lost": "red",
    "Failed": "red",
    "Refused": "red",
}
GAP = "  "
CONTROL = re.compile(r"\x1b(?!\[[\d;]*m)|[\x00-\x1a\x1c-\x1f\x7f-\x9f]+")  # all that is no text and no colour


def plain_line(text: str) -> str:
    """Return a text as one line that no terminal takes for a command."""
    return CONTROL.sub(" ", text)


def table_lines(head: Sequence[str], rows: Sequence[Sequence[object]], otherwise: str) -> Iterator[str]:
    """Yield a table under its heads, each column as wide as it must be; a sentence where it has no rows."""
    if not rows:
        yield otherwise
        return
    texts = [[value_text(value) for value in row] for row in rows]
    widths = [max(len(row[place]) for row in (list(head), *texts)) for place in range(len(head))]
    yield table_row(head, widths)
    for row in texts:
        yield table_row(row, widths)


def table_row(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return one line of a table; states have their colours."""
    padded = (value.ljust(width) for value, width in zip(row, widths, strict=True))
    return GAP.join(in_colour(value) for value in padded).rstrip()


def in_colour(text: str) -> str:
    """Return a text in the colour of the state that it names, on a terminal."""
    colour = COLOURS.get(text.strip())
    return typer.style(text, fg=colour) if colour is not None and sys.stdout.isatty() else text


def value_text(value: object) -> str:
    """Return a value as a person reads it; nothing is a dash."""
    match value:
        case None | "":
            return "-"
        case datetime():
            return local_time(value)
        case _:
            return " ".join(str(value).split())


def local_time(moment: datetime) -> str:
    """Return a time on the clock of this machine, with its date where that is another day."""
    local, today = moment.astimezone(), datetime.now(UTC).astimezone().date()
    return f"{local:%H:%M:%S}" if local.date() == today else f"{local:%Y-%m-%d %H:%M}"


def age_text(seconds: float | timedelta | None) -> str:
    """Return how long something has lasted, in two units at most."""
    if seconds is None:
        return "-"
    whole = int(seconds.total_seconds() if isinstance(seconds, timedelta) else seconds)
    if whole < 60:
        return f"{max(whole, 0)} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"
