"""What every command says to the person who called it."""

import sys
from typing import NoReturn

from baton.client.wording import terminal_text

MESSAGE_PREFIX = "baton: "  # of our own sentences on a terminal, and in the log of a process, where `baton up` finds them
REFUSED, MISUSED = 1, 2  # exit codes: the service said no; the call was wrong, or nobody answers


def refuse(*sentences: str, code: int = MISUSED) -> NoReturn:
    """Print what is wrong, a sentence for each fault, and exit."""
    for sentence in sentences:
        print(f"{MESSAGE_PREFIX}{terminal_text(sentence)}", file=sys.stderr, flush=True)
    raise SystemExit(code)
