"""The command `baton-witness`: brings journals to the service, and says how a witness is doing."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from baton_bluesky.elsewhere import declare_backfill, declare_follow
from baton_bluesky.version import __version__

Declare = Callable[[Any], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="baton-witness", description="Brings what a RunEngine does to Baton.")
    parser.add_argument("--version", action="version", version=__version__)
    subcommands = parser.add_subparsers(required=True, metavar="COMMAND")
    for declare in SUBCOMMANDS:
        declare(subcommands)
    given = parser.parse_args(arguments)
    try:
        return int(given.carry_out(given))
    except KeyboardInterrupt:
        return 130


def declare_send(subcommands: Any) -> None:
    """Declare `send`."""
    send = subcommands.add_parser("send", help="send a journal until told to end", description=send_directory.__doc__)
    send.add_argument("directory", type=Path, help="the directory of the journal")
    send.add_argument("--while-needed", action="store_true", help="end when no witness lives and everything is sent")
    send.set_defaults(carry_out=send_directory)


def send_directory(given: argparse.Namespace) -> int:
    """Send what the witnesses of a directory journal, also after their RunEngines have ended."""
    from baton_bluesky.sender import send_journal

    if not given.directory.is_dir():
        print(f"There is no directory {given.directory}; a witness makes it with its first document.", file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    if not send_journal(given.directory, while_needed=given.while_needed):
        print("Another process sends this journal.", file=sys.stderr)
    return 0


def declare_standing(subcommands: Any) -> None:
    """Declare `standing`."""
    standing = subcommands.add_parser("standing", help="say how a witness is doing", description=print_standing.__doc__)
    standing.add_argument("directory", type=Path, help="the directory of the journal")
    standing.set_defaults(carry_out=print_standing)


def print_standing(given: argparse.Namespace) -> int:
    """Print what is not sent yet, what was refused, and the last word from the service."""
    from baton_bluesky.journal import SENDER_LOCK, STANDING, is_locked, read_document, run_journals, used_bytes

    sender = read_document(given.directory / STANDING)
    runs = run_journals(given.directory)
    print(f"sender     {'runs' if is_locked(given.directory / SENDER_LOCK) else 'does not run'}")
    print(f"journal    {len(runs)} runs, {used_bytes(given.directory) / 2**20:.1f} MiB")
    for name in ("sent", "refused", "lag_seconds", "waiting", "last_error", "last_word"):
        print(f"{name:<10} {sender.get(name)}")
    return 0


SUBCOMMANDS: tuple[Declare, ...] = (declare_send, declare_standing, declare_follow, declare_backfill)
"""Every subcommand: each declares its arguments and, as `carry_out`, what it does."""

if __name__ == "__main__":
    sys.exit(main())
