"""Lines that nobody takes: they are dropped and counted, and their writer goes on."""

import io
import json
import logging
import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog

from baton.application.telemetry import LogStream, configure_logging, dropped_lines, protect_streams


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for end in (reading, writing):
        try:
            os.close(end)
        except OSError:
            continue


def test_lines_arrive_whole_and_in_order(pipe: tuple[int, int]) -> None:
    stream = LogStream(pipe[1])
    print("one", file=stream)
    stream.write("tw")
    stream.write("o\nthr")
    stream.flush()
    assert os.read(pipe[0], 100) == b"one\ntwo\nthr"
    assert stream.dropped == 0


def test_a_line_on_a_pipe_whose_reader_is_gone_is_dropped_and_counted(pipe: tuple[int, int]) -> None:
    stream = LogStream(pipe[1])
    os.close(pipe[0])
    for _ in range(3):
        print("is anybody there?", file=stream, flush=True)
    assert stream.dropped == 3


def test_a_closed_descriptor_and_none_at_all_drop_everything(pipe: tuple[int, int]) -> None:
    os.close(pipe[1])
    for stream in (LogStream(pipe[1]), LogStream(None)):
        print("hello", file=stream, flush=True)
        assert stream.dropped == 1


def test_a_reader_that_does_not_read_keeps_nobody_waiting_and_gets_whole_lines_later(pipe: tuple[int, int]) -> None:
    stream = LogStream(pipe[1])
    for number in range(5000):
        print(f"line {number} {'x' * 80}", file=stream)
    assert stream.dropped > 0
    os.set_blocking(pipe[0], False)
    kept = b""
    while True:
        try:
            kept += os.read(pipe[0], 1 << 20)
        except BlockingIOError:
            break
    dropped = stream.dropped
    assert kept.count(b"\n") + dropped == 5000
    print("here again", file=stream)
    assert os.read(pipe[0], 100).lstrip(b"\n") == b"here again\n"
    assert stream.dropped == dropped


@pytest.mark.server
def test_a_file_that_cannot_grow_drops_lines_and_takes_them_again_when_it_can(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = f"""
        import resource, signal
        from baton.application.telemetry import LogStream
        import os
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        stream = LogStream(os.open({str(log)!r}, os.O_CREAT | os.O_WRONLY | os.O_APPEND))
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, {resource.RLIM_INFINITY}))
        for number in range(4):
            print("a line of twenty-five byt", file=stream)
        dropped = stream.dropped
        resource.setrlimit(resource.RLIMIT_FSIZE, ({resource.RLIM_INFINITY}, {resource.RLIM_INFINITY}))
        print("room again", file=stream)
        print(dropped, stream.dropped)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert ran.stdout == "4 4\n"
    assert log.read_text().splitlines()[1:] == ["room again"]


@contextmanager
def configured_logging(process: str, build: str) -> Iterator[None]:
    """Log as a process of the service does, until the end of the block."""
    before = structlog.get_config()
    try:
        configure_logging("INFO", process, build)
        yield
    finally:
        structlog.configure(**before)


def test_every_line_says_which_process_of_which_build_wrote_it(capsys: pytest.CaptureFixture[str]) -> None:
    with configured_logging("worker", "1.2+site"):
        structlog.get_logger().info("begun", code="X")
    line = json.loads(capsys.readouterr().err)
    said = (line["event"], line["code"], line["process"], line["pid"], line["build"])
    assert said == ("begun", "X", "worker", os.getpid(), "1.2+site")


def test_no_way_to_say_something_raises_where_nobody_listens(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    os.close(pipe[0])
    stream = LogStream(pipe[1])
    monkeypatch.setattr(sys, "stderr", stream)
    with configured_logging("api", "0.1"):
        structlog.get_logger().error("something_failed", code="X")
    handler = logging.StreamHandler()
    handler.handle(logging.LogRecord("uvicorn.error", logging.ERROR, __file__, 1, "failed", (), None))
    handler.handle(logging.LogRecord("uvicorn.error", logging.ERROR, __file__, 1, "failed %d", ("x",), None))
    print("baton: no", file=sys.stderr, flush=True)
    assert stream.dropped >= 4
    assert dropped_lines() == stream.dropped


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.server
def test_standard_streams_that_were_closed_before_the_start_are_not_given_to_others(tmp_path: Path, closed: str) -> None:
    script = f"""
        from baton.application.telemetry import protect_streams, dropped_lines
        import os, socket, sys
        protect_streams()
        with socket.socket() as taken:
            number = taken.fileno()
        print("out", flush=True); print("err", file=sys.stderr, flush=True)
        open({str(tmp_path / "said")!r}, "w").write(f"{{number > 2}} {{dropped_lines()}}")
    """
    command = f"{sys.executable} -c '{textwrap.dedent(script).replace(chr(39), chr(34))}' {closed}"
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    assert (tmp_path / "said").read_text() == f"True {closed.count('>')}"


def test_protecting_twice_keeps_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    protect_streams()
    first = sys.stderr
    protect_streams()
    assert sys.stderr is first
