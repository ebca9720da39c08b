"""Style: every part of the visual language on one page."""

from baton.console.beam_path import PathStation, beam_path
from baton.console.display import GOOD, LOOK, LOOKS, STOP
from baton.console.page import Context, page
from baton.console.page_queries import PageQueries
from baton.console.plots import Series, line_plot
from baton.console.spark_line import spark_line

HUTCH, OUTSIDE = ("Imaging hutch", GOOD, "Permitted"), ("", "", "")
STATIONS = (
    ("Ring", GOOD, "Available", False),
    ("Shutter", GOOD, "Nominal", False),
    ("Filter", LOOK, "Degraded", True),
    ("Rotation stage", GOOD, "108.2°", True),
    ("Camera", STOP, "Faulted", True),
)  # Name, look, word, and whether it stands in the hutch.
SIZES = ("small", "less", "text", "title", "heading", "value", "page", "wall")

style = page("/style", "Style", "Every part of the console's visual language.", template="style.html")


@style.region("parts", asks=[])
async def load_parts(queries: PageQueries) -> Context:
    wave = [(float(x), 100.0 + (x * 37 % 11) - 5) for x in range(40)]
    states = {look: names.split()[:8] for look, names in LOOKS.items()}
    plot = line_plot([Series("counts", tuple(wave), "k")], label="An invented signal over forty steps", band=(97.0, 104.0))
    at = queries.now.timestamp()
    trend = spark_line([(at - 30 * number, 198 + number * 7 % 5 / 10) for number in range(58, -1, -1)], at, "Ring current")
    stations = [
        PathStation(name, "/console/style", look, word, *(HUTCH if is_inside else OUTSIDE))
        for name, look, word, is_inside in STATIONS
    ]
    path = beam_path(stations, 0, "An invented beam path")
    return {"states": states, "plot": plot, "now": queries.now, "trend": trend, "path": path, "sizes": SIZES}
