"""`baton conduct watch`: what it shows on a terminal, what it prints, how it exits, and how it comes back."""

import asyncio
import io
import re
import threading
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

import pytest
from rich.console import Console
from typer.testing import CliRunner

from baton.cli.conduct_watch import watch_conduct
from baton.cli.main import app
from tests.support.waiting import until
from tests.support.workflows.conduct_service import PAUSE, ConductService
from tests.support.workflows.step_json import capture, check, criterion, setpoint


def watched(url: str, procedure_id: UUID, console: Console | None = None) -> "asyncio.Future[Any]":
    """The exit code of a watch, from a thread of its own that keeps nobody waiting."""
    loop = asyncio.get_running_loop()
    code: asyncio.Future[Any] = loop.create_future()

    def run() -> None:
        try:
            watch_conduct(url, None, procedure_id, console)
        except SystemExit as done:
            loop.call_soon_threadsafe(code.set_result, done.code)

    threading.Thread(target=run, daemon=True).start()
    return code


def watch(conduct_service: ConductService, procedure_id: UUID, console: Console | None = None) -> "asyncio.Future[Any]":
    return watched(conduct_service.api.base_url, procedure_id, console)


async def test_a_conduct_that_succeeded_is_printed_plainly_and_exits_with_0(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    procedure_id, conduct_id = await conduct_service.conducting(setpoint("a", 3), check("a", 3))
    assert await watch(conduct_service, procedure_id) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"succeeded after 0:00:0\d: ConductProcedure, conduct {conduct_id}", head)
    assert lines == ["  2 steps done of 2", "  a left at 3"]


async def test_a_conduct_that_failed_says_why_and_exits_with_1(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    procedure_id, _ = await conduct_service.conducting(setpoint("a", 3), check("b", 3))
    assert await watch(conduct_service, procedure_id) == 1
    head, why, *_ = capsys.readouterr().out.splitlines()
    assert head.startswith("failed after ")
    assert why.startswith("  check[1] b failed: CheckFailedError: b reads 1.5")


async def test_a_conduct_that_was_held_says_so_and_exits_with_1(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    procedure_id, _ = await conduct_service.conducting(check("b", 3), how="conduct-or-hold")
    assert await watch(conduct_service, procedure_id) == 1
    assert capsys.readouterr().out.startswith("held after ")


async def test_where_nobody_looks_a_line_is_said_whenever_there_is_something_else_to_say(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    procedure_id = await conduct_service.stack.registered()
    watching = watch(conduct_service, procedure_id)
    said: list[str] = []

    async def says(pattern: str) -> None:
        def heard() -> bool:
            said.extend(capsys.readouterr().err.splitlines())
            return any(re.fullmatch(pattern, line) for line in said)

        await until(heard, within=30)

    await says("waiting for a conduct to be opened")
    loop = {"convergence_capture_name": "offset", "criterion": criterion(1.5, 0.1), "steps": [capture("b", "offset"), PAUSE]}
    await conduct_service.conduct(procedure_id, "converge", **loop)
    await conduct_service.pauses.reached()
    await conduct_service.operator.post(f"/procedures/{procedure_id}/hold", {"reason": "lunch"})
    await says(
        r"iteration 1 · step 2 of 2.* · offset 1.5 · asked to hold at .* UTC, waits for do pause, until .* UTC at the latest"
    )
    conduct_service.pauses.end()
    assert await watching == 1, said
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("held after ")
    assert "  1 iterations" in out


def terminal() -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, force_terminal=True, width=120, color_system=None), written


async def test_on_a_terminal_a_bar_moves_and_leaves_nothing_but_the_result(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    console, written = terminal()
    procedure_id, _ = await conduct_service.conducting(setpoint("a", 1), PAUSE, setpoint("a", 2))
    watching = watch(conduct_service, procedure_id, console)
    await until(lambda: "step 2 of 3, action pause" in written.getvalue())
    conduct_service.pauses.end()
    await conduct_service.pauses.reached()
    assert await watching == 0
    shown = written.getvalue()
    assert re.search(r"1/3 0:00:0\d step 2 of 3, action pause", shown)
    assert shown.endswith("\x1b[2K"), "the bar is wiped away"
    assert capsys.readouterr().out.startswith("succeeded after ")


async def test_a_lost_worker_is_shown_with_its_growing_silence(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    console, written = terminal()
    await conduct_service.stack.stop_worker()
    try:
        procedure_id, conduct_id = await conduct_service.conducting(setpoint("a", 1))
        watching = watch(conduct_service, procedure_id, console)
        await until(lambda: "waiting for a worker to take it up" in written.getvalue())
        await conduct_service.take_up(procedure_id, conduct_id)
        await conduct_service.let_pass(procedure_id, seconds=12)
        await until(lambda: len(set(re.findall(r"worker lost (\d+) s ago", written.getvalue()))) > 1)
        silences = [int(seconds) for seconds in re.findall(r"worker lost (\d+) s ago", written.getvalue())]
        assert silences == sorted(silences)
        assert silences[0] >= 12
        await conduct_service.let_pass(procedure_id, seconds=60)
        await conduct_service.operator.done(f"/procedures/{procedure_id}/truncate", {"reason": "power cut"})
        assert await watching == 1
    finally:
        await conduct_service.stack.start_worker()
    assert "ConductLost" in capsys.readouterr().out


class Cable:
    """A connection to the service that can be pulled out and put in again."""

    def __init__(self, url: str) -> None:
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port = int(port)
        self._ends: set[asyncio.StreamWriter] = set()
        self.joined = 0

    async def __aenter__(self) -> "Cable":
        self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        self.pull()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def pull(self) -> None:
        for end in self._ends:
            end.close()
        self._ends.clear()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.joined += 1
        inner_reader, inner_writer = await asyncio.open_connection(self._host, self._port)
        self._ends |= {writer, inner_writer}
        await asyncio.gather(carry(reader, inner_writer), carry(inner_reader, writer))


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while part := await reader.read(4096):
            writer.write(part)
    writer.close()


async def test_a_connection_that_is_lost_is_taken_up_again_and_nothing_is_missed(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    procedure_id, _ = await conduct_service.conducting(PAUSE, setpoint("a", 2))
    await conduct_service.pauses.reached()
    console, written = terminal()
    async with Cable(conduct_service.api.base_url) as cable:
        watching = watched(cable.url, procedure_id, console)
        await until(lambda: "step 1 of 2, action pause" in written.getvalue())
        cable.pull()
        conduct_service.pauses.end()
        assert await watching == 0
        assert cable.joined == 2
    assert "  2 steps done of 2" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [("http://127.0.0.1:1", "No service answers at http://127.0.0.1:1"), ("nonsense", "nonsense is no URL")],
)
async def test_nobody_at_the_address_is_said_and_exits_with_2(
    capsys: pytest.CaptureFixture[str], url: str, sentence: str
) -> None:
    assert await watched(url, uuid4()) == 2
    assert capsys.readouterr().err.startswith(f"baton: {sentence}")


async def test_a_procedure_that_is_not_there_is_said_and_exits_with_2(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = uuid4()
    assert await watch(conduct_service, nothing) == 2
    assert capsys.readouterr().err.startswith(f"baton: There is no procedure {nothing}")


def test_the_command_takes_a_procedure_and_an_address() -> None:
    done = CliRunner().invoke(app, ["conduct", "watch", str(uuid4()), "--url", "http://127.0.0.1:1", "--token", "t"])
    assert (done.exit_code, done.stderr.startswith("baton: No service answers at http://127.0.0.1:1")) == (2, True)
    assert CliRunner().invoke(app, ["conduct", "watch", "nonsense"]).exit_code == 2
