"""The pages of the console; importing this package declares them all, in the order of the menu."""

from baton.console.pages import now, waiting  # noqa: I001, F401
from baton.console.pages import records, halt, style  # noqa: F401
