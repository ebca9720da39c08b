"""Texts of the record at a terminal: no escape sequences, no control characters and nothing that turns the direction."""

import json
import re

import pytest

from baton.cli.daily.tables import in_colour, plain_line, table_lines
from tests.support.cli.daily_service import UNIT, DailyService
from tests.support.tables import for_each

HOSTILE = "\x1b[8mhidden\x1b[0m \x1b[31mred \x9b31m \x7f \x85 \u202egnp.exe\u2066 \u200f \u061c end"
"""What colours, conceals, moves or turns what a terminal shows."""
ACTIVE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@for_each("text", [HOSTILE, "\x1b]0;title\x07", "\x1b[2J", "a\tb", "\x1b", "\u2029"])
def test_a_line_holds_nothing_that_a_terminal_obeys(text: str) -> None:
    assert not ACTIVE.search(plain_line(f"reason: {text}"))
    assert not any(ACTIVE.search(plain_line(line)) for line in table_lines(("A", "B"), [(text, 1)], "none"))


def test_our_own_colours_stay_and_those_of_the_record_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    line = plain_line(f"{in_colour('Held')}: \x1b[32mRunning\x1b[0m")
    assert line.startswith("\x1b[33mHeld\x1b[0m: ")
    assert not ACTIVE.search(line.removeprefix("\x1b[33mHeld\x1b[0m"))


async def test_no_answer_of_a_command_obeys_the_record(daily_service: DailyService) -> None:
    opened = await daily_service.answer("call", "open_queue", "name=Hostile", f"asset_id={UNIT}")
    await daily_service.answer("queue", "hold", "Hostile", "--reason", HOSTILE.replace("\x85", ""))
    shown = await daily_service.baton("queue", "show", "Hostile")
    waiting = await daily_service.baton("waiting")
    assert "gnp.exe" in shown.stdout
    assert "gnp.exe" in waiting.stdout
    for done in (shown, waiting):
        assert not ACTIVE.search(done.stdout + done.stderr), done.args
    called = await daily_service.baton("call", "get_queue", f"queue_id={opened['queue_id']}")
    as_json = await daily_service.baton("queue", "show", "Hostile", "--json")
    events = await daily_service.baton("events", "--json")
    for done in (called, as_json, events):
        assert not ACTIVE.search(done.stdout), done.args
    assert "\u202egnp.exe\u2066" in json.loads(called.stdout)["last_status_reason"]
    refused = await daily_service.baton("queue", "show", "No \x1b[8m\u202e such")
    assert refused.returncode
    assert not ACTIVE.search(refused.stdout + refused.stderr)
