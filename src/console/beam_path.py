"""The beam path of a beamline as a picture: its source, and the assets below its root in the order that they are on record,
each with its state, within the hutches that they stand in."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup, escape

from baton.console.display import SIGNS

WIDTH, EDGE, TOP, BEAM, HEIGHT = 1000, 16, 26, 74, 148
BOX, TALL = 30, 34
BARE_TOP = 48  # where the picture begins that has no hutch
MOST_STATIONS = 9
CHARACTER = 6.6  # width of one, as texts are set


@dataclass(frozen=True)
class PathStation:
    """One thing on the beam path: what it is called, how it is, and what it reads."""

    name: str
    href: str
    look: str
    word: str
    hutch: str = ""
    hutch_look: str = ""
    hutch_word: str = ""
    reading: str = ""
    in_use: bool = False


def beam_path(stations: Sequence[PathStation], left_out: int, label: str) -> Markup:
    """Return the picture; the first station is the source."""
    if not stations:
        return Markup("")
    step = (WIDTH - 2 * EDGE) / len(stations)
    places = [EDGE + (number + 0.5) * step for number in range(len(stations))]
    parts = [f'<path class="beam" d="M{places[0]:.0f} {BEAM}H{places[-1]:.0f}"/>']
    parts += hutches(stations, step)
    parts += [
        station_svg(one, x, step, is_source=number == 0)
        for number, (one, x) in enumerate(zip(stations, places, strict=True))
    ]
    if left_out:
        parts.append(f'<text x="{WIDTH - EDGE}" y="{HEIGHT - 4}" text-anchor="end">and {left_out} more below</text>')
    top = 0 if any(one.hutch for one in stations) else BARE_TOP
    size = f'viewBox="0 {top} {WIDTH} {HEIGHT - top}" width="{WIDTH}" height="{HEIGHT - top}"'
    return Markup(f'<svg class="path" {size} role="group" aria-label="{escape(label)}">{"".join(parts)}</svg>')


def hutches(stations: Sequence[PathStation], step: float) -> list[str]:
    """Return the frames around stations that stand in one hutch, side by side."""
    drawn, first = [], 0
    for hutch, same in groupby(stations, key=lambda one: (one.hutch, one.hutch_look, one.hutch_word)):
        count, (name, look, word) = len(list(same)), hutch
        if name:
            x, width = EDGE + first * step + 4, count * step - 8
            said = escape(short(f"{name} {SIGNS[look]} {word}", width - 12))
            frame = f'x="{x:.0f}" y="{TOP - 20}" width="{width:.0f}" height="{HEIGHT - TOP + 2}"'
            text = f'<text class="s" x="{x + 8:.0f}" y="{TOP - 5}">{said}</text>'
            drawn.append(f'<g class="{look}"><rect class="hutch" {frame} rx="8"/>{text}</g>')
        first += count
    return drawn


def station_svg(station: PathStation, x: float, step: float, *, is_source: bool) -> str:
    """Return one station: a circle for the source, a box for everything else, with its name and state below."""
    shape = (
        f'<circle class="box" cx="{x:.0f}" cy="{BEAM}" r="{BOX / 2 + 3}"/>'
        if is_source
        else f'<rect class="box" x="{x - BOX / 2:.0f}" y="{BEAM - TALL / 2}" width="{BOX}" height="{TALL}" rx="5"/>'
    )
    name, state = short(station.name, step - 6), short(station.reading or station.word, step - 20)
    said = ", ".join(part for part in (station.word, station.reading) if part)
    texts = ((5, "sign", SIGNS[station.look]), (36, "t", name), (53, "s", state))
    words = "".join(
        f'<text class="{kind}" x="{x:.0f}" y="{BEAM + below}" text-anchor="middle">{escape(text)}</text>'
        for below, kind, text in texts
    )
    classes = f"{station.look} used" if station.in_use else station.look
    title = f"<title>{escape(station.name)}: {escape(said)}</title>"
    return f'<a href="{escape(station.href)}" class="{classes}">{title}{shape}{words}</a>'


def short(text: str, width: float) -> str:
    """Return a text that fits into a width."""
    most = max(3, int(width / CHARACTER))
    return text if len(text) <= most else f"{text[: most - 1]}…"
