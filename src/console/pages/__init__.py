"""The pages of the console; importing this package declares them all, in the order of the menu."""

from baton.console.pages import now, start, queue, waiting  # noqa: I001, F401
from baton.console.pages import notices, find, wall  # noqa: F401
from baton.console.pages import shift, runs, data, subject, equipment, asset, asset_settings, asset_time  # noqa: F401
from baton.console.pages import conduct, run, compare  # noqa: F401
from baton.console.pages import approvals, safety, agents, calendar, people, health  # noqa: F401
from baton.console.pages import records, halt, style  # noqa: F401
