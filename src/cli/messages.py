"""What every command says to the person who called it."""

import sys
from typing import NoReturn

MESSAGE_PREFIX = "baton: "  # of our own sentences on a terminal, and in the log of a process, where `baton up` finds them
REFUSED, MISUSED = 1, 2  # exit codes: the service said no; the call was wrong, or nobody answers


def as_terminal_text(text: str) -> str:
    """Return a text of the record as a terminal may get it; the client is loaded when the first one is printed."""
    from baton.client.wording import terminal_text

    return terminal_text(text)


def refuse(*sentences: str, code: int = MISUSED) -> NoReturn:
    """Print what is wrong, a sentence for each fault, and exit."""
    for sentence in sentences:
        print(f"{MESSAGE_PREFIX}{as_terminal_text(sentence)}", file=sys.stderr, flush=True)
    raise SystemExit(code)
