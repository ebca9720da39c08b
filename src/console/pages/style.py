"""Style: every part of the visual language on one page."""

from baton.console.display import LOOKS
from baton.console.page import Context, page
from baton.console.page_queries import PageQueries
from baton.console.plots import Series, line_plot

style = page("/style", "Style", "Every part of the console's visual language.", template="style.html")


@style.region("parts", asks=[])
async def load_parts(queries: PageQueries) -> Context:
    wave = [(float(x), 100.0 + (x * 37 % 11) - 5) for x in range(40)]
    states = {look: names.split()[:8] for look, names in LOOKS.items()}
    plot = line_plot([Series("counts", tuple(wave), "k")], label="An invented signal over forty steps", band=(97.0, 104.0))
    return {"states": states, "plot": plot, "now": queries.now}
