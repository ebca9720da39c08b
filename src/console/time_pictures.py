"""Pictures of where time went: a range as a strip of its stretches, and days or weeks as bars of their states."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from baton.console.display import GOOD, LIVE, LOOK, PLAIN, STOP, duration_text
from baton.console.plots import clock_text, time_ticks
from baton.domain.views.beam_time import StateTime, TimeGroup, TimeStretch
from baton.domain.views.time_states import TimeState

WIDTH, STRIP, LEFT, BAR = 900, 26, 90, 20
LOOK_OF: Mapping[TimeState, str] = {
    TimeState.MEASURING: GOOD,
    TimeState.PREPARING: LIVE,
    TimeState.BEAM: STOP,
    TimeState.EQUIPMENT: STOP,
    TimeState.SERVICE: STOP,
    TimeState.GATE: LOOK,
    TimeState.PERSON: LOOK,
    TimeState.HANDLING: PLAIN,
    TimeState.IDLE: "idle",
}
"""How each state looks; the words beside a picture say which of them share a colour."""


def time_strip(stretches: Sequence[TimeStretch], begins: datetime, ends: datetime, zone: ZoneInfo, label: str) -> Markup:
    """Return a range as a strip, on the clock of the facility; its place says what each stretch was."""
    first, last = begins.timestamp(), ends.timestamp()
    height = STRIP + 24

    def across(seconds: float) -> float:
        return round((seconds - first) / (last - first) * WIDTH, 2)

    parts = []
    for one in stretches:
        left, right = across(one.begins.timestamp()), across(one.ends.timestamp())
        seconds = (one.ends - one.begins).total_seconds()
        due = f", {one.cause}" if one.cause else ""
        said = f"{clock_text(one.begins.timestamp(), last - first, zone)}: {one.state.value}{due}, {duration_text(seconds)}"
        parts.append(
            f'<rect class="firing {LOOK_OF[one.state]}" x="{left}" y="0" width="{max(right - left, 0.3):.2f}"'
            f' height="{STRIP}"><title>{escape(said)}</title></rect>'
        )
    for at in time_ticks(first, last, zone, 8):
        x, text = across(at), escape(clock_text(at, last - first, zone))
        place = min(max(x, 24), WIDTH - 24)
        parts.append(f'<path class="grid" d="M{x} {STRIP}v4"/>')
        parts.append(f'<text x="{place}" y="{height - 6}" text-anchor="middle">{text}</text>')
    picture = "".join(parts)
    return Markup(
        f'<svg class="plot time" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{picture}</svg>'
    )


def time_bars(groups: Sequence[TimeGroup], label: str) -> Markup:
    """Return days or weeks as bars, each as wide as its time is long."""
    longest = max((one.seconds for one in groups), default=0.0) or 1.0
    parts = []
    for number, group in enumerate(groups):
        top, x = number * (BAR + 8) + 4, float(LEFT)
        parts.append(f'<text class="name" x="{LEFT - 8}" y="{top + 14}" text-anchor="end">{escape(group.group)}</text>')
        for one in group.states:
            wide = one.seconds / longest * (WIDTH - LEFT)
            said = escape(f"{group.group}: {one.state.value}, {duration_text(one.seconds)}, {one.share:.0%}")
            parts.append(
                f'<rect class="firing {LOOK_OF[one.state]}" x="{x:.2f}" y="{top}" width="{wide:.2f}" height="{BAR}">'
                f"<title>{said}</title></rect>"
            )
            x += wide
    height = len(groups) * (BAR + 8) + 4
    picture = "".join(parts)
    return Markup(
        f'<svg class="plot time" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{picture}</svg>'
    )


def told_states(states: Sequence[StateTime]) -> list[tuple[str, StateTime]]:
    """Return states with how each looks."""
    return [(LOOK_OF[one.state], one) for one in states]
