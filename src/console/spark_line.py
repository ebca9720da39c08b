"""Spark lines: a signal's last half hour as one small line, without axes."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from baton.console.display import number_text
from baton.console.signal_readings import TREND_SECONDS
from baton.domain.shared.thinning import thin

WIDTH, HEIGHT, EDGE = 160, 34, 3
MOST_POINTS = 80
GAP_SECONDS = 60.0  # without a reading, after which the line is broken


def spark_line(points: Sequence[tuple[float, float]], now: float, name: str) -> Markup:
    """Return the line of a signal that ends now; nothing where fewer than two numbers are known."""
    if len(points) < 2:
        return Markup("")
    values = [value for _, value in points]
    low, high = min(values), max(values)
    middle = (low + high) / 2
    span = max(high - low, abs(middle) * 1e-3, 1e-9)  # a line that hardly moves is drawn as one

    def place(at: float, value: float) -> str:
        x = WIDTH - EDGE - (now - at) / TREND_SECONDS * (WIDTH - 2 * EDGE)
        return f"{max(x, EDGE):.1f} {HEIGHT / 2 - (value - middle) / span * (HEIGHT - 2 * EDGE):.1f}"

    parts, before = [], None
    for at, value in thin(points, MOST_POINTS, lambda point: point[1]):
        is_broken = before is None or at - before > GAP_SECONDS
        parts.append(f"{'M' if is_broken else 'L'}{place(at, value)}")
        before = at
    x, y = place(*points[-1]).split()
    label = f"{name}, the last half hour: between {number_text(low)} and {number_text(high)}"
    return Markup(
        f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
        f'<path class="line" d="{" ".join(parts)}"/><circle class="dot" cx="{x}" cy="{y}" r="2.5"/></svg>'
    )
