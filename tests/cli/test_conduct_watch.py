"""`baton conduct watch`: what it shows on a terminal, what it prints, how it exits, and how it reconnects."""

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

from baton.cli.daily.session import ServiceSession, reported_errors
from baton.cli.daily.work import watch_to_end
from baton.cli.main import app
from tests.support.waiting import until
from tests.support.workflows.conduct_service import PAUSE, ConductService
from tests.support.workflows.step_json import capture, check, criterion, setpoint


def start_watch(url: str, procedure_id: UUID, console: Console | None = None) -> "asyncio.Future[Any]":
    """Watch a conduct in a thread of its own, and return its exit code to come."""
    loop = asyncio.get_running_loop()
    code: asyncio.Future[Any] = loop.create_future()

    def run() -> None:
        session = ServiceSession(url)
        try:
            with reported_errors(session):
                watch_to_end(session, session.client.procedures[procedure_id], console)
        except SystemExit as result:
            loop.call_soon_threadsafe(code.set_result, result.code)

    threading.Thread(target=run, daemon=True).start()
    return code


def start_service_watch(
    conduct_service: ConductService, procedure_id: UUID, console: Console | None = None
) -> "asyncio.Future[Any]":
    return start_watch(conduct_service.api.base_url, procedure_id, console)


async def test_a_conduct_that_succeeded_is_printed_plainly_and_exits_with_0(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    procedure_id, conduct_id = await conduct_service.start_conduct(setpoint("a", 3), check("a", 3))
    assert await start_service_watch(conduct_service, procedure_id) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"succeeded after 0:00:0\d: ConductProcedure, conduct {conduct_id}", head)
    assert lines == ["  2 steps done of 2", "  a left at 3"]


async def test_a_conduct_that_failed_says_why_and_exits_with_1(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    procedure_id, _ = await conduct_service.start_conduct(setpoint("a", 3), check("b", 3))
    assert await start_service_watch(conduct_service, procedure_id) == 1
    head, why, *_ = capsys.readouterr().out.splitlines()
    assert head.startswith("failed after ")
    assert why.startswith("  check[1] b failed: CheckFailedError: b reads 1.5")


async def test_a_conduct_that_was_held_says_so_and_exits_with_1(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    procedure_id, _ = await conduct_service.start_conduct(check("b", 3), how="conduct-or-hold")
    assert await start_service_watch(conduct_service, procedure_id) == 1
    assert capsys.readouterr().out.startswith("held after ")


async def test_where_nobody_looks_a_line_is_said_whenever_there_is_something_else_to_say(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    procedure_id = await conduct_service.stack.register_procedure()
    exit_code = start_service_watch(conduct_service, procedure_id)
    printed_lines: list[str] = []

    async def wait_for_line(pattern: str) -> None:
        def is_printed() -> bool:
            printed_lines.extend(capsys.readouterr().err.splitlines())
            return any(re.fullmatch(pattern, line) for line in printed_lines)

        await until(is_printed, within=60)

    await wait_for_line("waiting for a conduct to be opened")
    loop = {"convergence_capture_name": "offset", "criterion": criterion(3.0, 0.1), "steps": [capture("b", "offset"), PAUSE]}
    await conduct_service.conduct(procedure_id, "converge", **loop)
    await conduct_service.pauses.wait_until_reached()
    await conduct_service.operator.post(f"/procedures/{procedure_id}/hold", {"reason": "lunch"})
    await wait_for_line(
        r"iteration 1 · step 2 of 2.* · offset 1.5 · asked to hold at .* UTC, waits for do pause, until .* UTC at the latest"
    )
    conduct_service.pauses.end()
    assert await exit_code == 1, printed_lines
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("held after ")
    assert "  1 iterations" in out


def terminal() -> tuple[Console, io.StringIO]:
    """Return a console that behaves like a terminal, and what is written to it."""
    written = io.StringIO()
    return Console(file=written, force_terminal=True, width=120, color_system=None), written


async def test_on_a_terminal_a_bar_moves_and_leaves_nothing_but_the_result(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    console, written = terminal()
    procedure_id, _ = await conduct_service.start_conduct(setpoint("a", 1), PAUSE, setpoint("a", 2))
    exit_code = start_service_watch(conduct_service, procedure_id, console)
    await until(lambda: "step 2 of 3, action pause" in written.getvalue())
    conduct_service.pauses.end()
    await conduct_service.pauses.wait_until_reached()
    assert await exit_code == 0
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
        procedure_id, conduct_id = await conduct_service.start_conduct(setpoint("a", 1))
        exit_code = start_service_watch(conduct_service, procedure_id, console)
        await until(lambda: "waiting for a worker to take it up" in written.getvalue())
        await conduct_service.mark_walking(procedure_id, conduct_id)
        await conduct_service.age_heartbeat(procedure_id, seconds=12)
        await until(lambda: len(set(re.findall(r"worker lost (\d+) s ago", written.getvalue()))) > 1)
        silences = [int(seconds) for seconds in re.findall(r"worker lost (\d+) s ago", written.getvalue())]
        assert silences == sorted(silences)
        assert silences[0] >= 12
        await conduct_service.age_heartbeat(procedure_id, seconds=60)
        await conduct_service.operator.execute(f"/procedures/{procedure_id}/truncate", {"reason": "power cut"})
        assert await exit_code == 1
    finally:
        await conduct_service.stack.start_worker()
    assert "ConductLost" in capsys.readouterr().out


class SeverableProxy:
    """A TCP proxy of the service whose connections can be cut."""

    def __init__(self, url: str) -> None:
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port = int(port)
        self._writers: set[asyncio.StreamWriter] = set()
        self.connections = 0

    async def __aenter__(self) -> "SeverableProxy":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        self.cut()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        inner_reader, inner_writer = await asyncio.open_connection(self._host, self._port)
        self._writers |= {writer, inner_writer}
        await asyncio.gather(forward(reader, inner_writer), forward(inner_reader, writer))


async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while part := await reader.read(4096):
            writer.write(part)
    writer.close()


async def test_a_connection_that_is_lost_is_taken_up_again_and_nothing_is_missed(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    procedure_id, _ = await conduct_service.start_conduct(PAUSE, setpoint("a", 2))
    await conduct_service.pauses.wait_until_reached()
    console, written = terminal()
    async with SeverableProxy(conduct_service.api.base_url) as proxy:
        exit_code = start_watch(proxy.url, procedure_id, console)
        await until(lambda: "step 1 of 2, action pause" in written.getvalue())
        proxy.cut()
        conduct_service.pauses.end()
        assert await exit_code == 0
        assert proxy.connections == 2
    assert "  2 steps done of 2" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [("http://127.0.0.1:1", "No service answers at http://127.0.0.1:1"), ("nonsense", "nonsense is no URL")],
)
async def test_nobody_at_the_address_is_said_and_exits_with_2(
    capsys: pytest.CaptureFixture[str], url: str, sentence: str
) -> None:
    assert await start_watch(url, uuid4()) == 2
    assert capsys.readouterr().err.startswith(f"baton: {sentence}")


async def test_a_procedure_that_is_not_there_is_said_and_exits_with_1(
    conduct_service: ConductService, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = uuid4()
    assert await start_service_watch(conduct_service, nothing) == 1
    assert capsys.readouterr().err.startswith(f"baton: There is no procedure {nothing}")


@pytest.mark.slow
def test_the_command_takes_a_procedure_and_an_address() -> None:
    result = CliRunner().invoke(app, ["conduct", "watch", str(uuid4()), "--url", "http://127.0.0.1:1", "--token", "t"])
    assert (result.exit_code, result.stderr.startswith("baton: No service answers at http://127.0.0.1:1")) == (2, True)
    assert CliRunner().invoke(app, ["conduct", "watch", "nonsense"]).exit_code == 2
