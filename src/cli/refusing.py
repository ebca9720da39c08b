"""How every process refuses to start: one clear sentence for each fault, and exit code 2."""

import sys
from typing import NoReturn

from application.settings import Settings, boot_objections


def refuse(*sentences: str) -> NoReturn:
    """Say what is wrong and exit."""
    for sentence in sentences:
        print(f"baton: {sentence}", file=sys.stderr)
    raise SystemExit(2)


def refuse_objections(settings: Settings, *, stdio: bool = False) -> None:
    """Exit when these settings must not be started with."""
    if objections := boot_objections(settings, stdio=stdio):
        refuse(*objections)
    if settings.database_url is None:
        refuse("DATABASE_URL is not set; point it at a PostgreSQL, or use `baton up`, which brings its own.")
