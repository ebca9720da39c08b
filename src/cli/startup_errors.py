"""How every process refuses to start: one clear sentence for each fault, and exit code 2."""

import re
import sys
from typing import NoReturn

from pydantic import ValidationError
from pydantic_settings import SettingsError

from baton.application.boot_guards import boot_objections
from baton.application.settings import Settings

SPOKEN = "baton: "
"""How our own sentences begin, on a terminal and in the log of a piece."""
NO_DATABASE = "The database cannot be used"


def refuse(*sentences: str) -> NoReturn:
    """Say what is wrong and exit."""
    for sentence in sentences:
        print(f"{SPOKEN}{sentence}", file=sys.stderr, flush=True)
    raise SystemExit(2)


def chosen_settings(*, stdio: bool = False) -> Settings:
    """What the environment sets, or an exit that says what is wrong with it."""
    try:
        settings = Settings()
    except (SettingsError, ValidationError) as error:
        refuse(*unreadable(error))
    if objections := boot_objections(settings, stdio=stdio):
        refuse(*objections)
    return settings


def unreadable(error: SettingsError | ValidationError) -> list[str]:
    """What cannot be read in the environment, a sentence for each variable; values are not quoted, some are secret."""
    if isinstance(error, ValidationError):
        return [
            f"{_place(fault['loc'])} cannot be used: {fault['msg'].removeprefix('Value error, ').rstrip('.')}; correct it."
            for fault in error.errors(include_url=False, include_context=False, include_input=False)
        ]
    named = re.search(r'field "(\w+)"', str(error))
    return [f"{named[1].upper() if named else 'A setting'} is no valid JSON; correct it or unset it."]


def _place(location: tuple[str | int, ...]) -> str:
    variable, *inside = location
    return str(variable).upper() + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in inside)


def required_database(settings: Settings) -> str:
    """The database of a process that brings none of its own."""
    if settings.database_url is None:
        refuse("DATABASE_URL is not set; point it at a PostgreSQL, or use `baton up`, which brings its own.")
    return settings.database_url
