"""httpx without its own command line, which takes half of the time of importing it and draws with rich."""

import sys

COMMAND_LINE = "httpx._main"

if "httpx" not in sys.modules:
    sys.modules[COMMAND_LINE] = None  # type: ignore[assignment]  # what makes its import fail, as httpx allows it to
    try:
        import httpx  # noqa: F401
    finally:
        del sys.modules[COMMAND_LINE]
