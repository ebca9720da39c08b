"""Commands of `baton`, and workers of tests, as processes that start at once: each is forked from one server that has
loaded every command."""

import json
import multiprocessing
import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from baton.cli.loader import MODULES, open_streams, settle
from baton.cli.main import main

COMMANDS = ("doctor.examination", "up", "daily.device_login")
FORKS = multiprocessing.get_context("forkserver")
LOADED = [*MODULES, *(f"baton.cli.{module}" for module in COMMANDS), "baton.client", "pytest", __name__]
FORKS.set_forkserver_preload(LOADED)
SERVER: Any = forkserver._forkserver  # type: ignore[attr-defined]
PROGRAM = """\
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect("\\0" + sys.argv[1])
    asked = {"arguments": sys.argv[2:], "environment": dict(os.environ), "directory": os.getcwd(), "process": os.getpid()}
    server.sendall(json.dumps(asked).encode() + b"\\n")
    sys.exit(int(server.makefile().readline()))
"""
"""What the program `baton` of a shell does: it has a process forked with its own streams, and ends as that one ends."""


def share_server() -> None:
    """Start the server, for the processes too that are forked from this one, which could not ask whether it still runs."""
    SERVER.ensure_running()
    SERVER.ensure_running = lambda: None


@contextmanager
def forked_command(
    arguments: tuple[str, ...], environment: Mapping[str, str], stdout: Path, stderr: Path
) -> Iterator[ForkServerProcess]:
    """A running `baton` with these arguments, which writes to these files and is killed at the end of the block."""
    with forked_process(run_main, arguments, environment, stdout, stderr) as process:
        yield process


@contextmanager
def forked_process(
    function: Callable[..., None], arguments: tuple[str, ...], environment: Mapping[str, str], stdout: Path, stderr: Path
) -> Iterator[ForkServerProcess]:
    """A process that calls a function with these arguments, writes to these files and is killed at the end of the block."""
    process = start_process(function, arguments, environment, stdout, stderr)
    try:
        yield process
    finally:
        process.kill()
        process.join()


def start_command(
    arguments: tuple[str, ...], environment: Mapping[str, str], stdout: Path, stderr: Path
) -> ForkServerProcess:
    """Start `baton` with these arguments, in a session of its own."""
    return start_process(run_main, arguments, environment, stdout, stderr)


def start_process(
    function: Callable[..., None], arguments: tuple[str, ...], environment: Mapping[str, str], stdout: Path, stderr: Path
) -> ForkServerProcess:
    """Start a process that calls a function with these arguments, in a session of its own."""
    given = (function, arguments, dict(environment), Path.cwd(), stdout, stderr)
    process = FORKS.Process(target=execute, args=given, daemon=True)
    process.start()
    return process


def run_command(
    arguments: tuple[str, ...], environment: Mapping[str, str], seconds: float
) -> "subprocess.CompletedProcess[str]":
    """Run `baton` with these arguments to its end, and return what it printed."""
    with TemporaryDirectory() as directory:
        stdout, stderr = Path(directory, "stdout"), Path(directory, "stderr")
        with forked_command(arguments, environment, stdout, stderr) as process:
            process.join(seconds)
            code = process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired(arguments, seconds, stdout.read_text(), stderr.read_text())
        return subprocess.CompletedProcess(arguments, code, stdout.read_text(), stderr.read_text())


@contextmanager
def forking_program(program: Path) -> Iterator[None]:
    """A program `baton` for shells, which works until the end of the block."""
    name = f"baton-{uuid4()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("\0" + name)
        listening.listen()
        program.with_suffix(".py").write_text(PROGRAM)
        command = [sys.executable, "-I", "-S", str(program.with_suffix(".py")), name]
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        program.chmod(0o755)
        threading.Thread(target=answer_shells, args=(listening,), daemon=True).start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def answer_shells(listening: socket.socket) -> None:
    """Run what the programs of shells ask for, each on its own, until nobody listens any more."""
    while True:
        try:
            shell, _ = listening.accept()
        except OSError:
            return
        threading.Thread(target=answer_shell, args=(shell,), daemon=True).start()


def answer_shell(shell: socket.socket) -> None:
    """Run one command with the streams of the program that asks for it, as long as that lives, and tell it the exit code."""
    with shell, shell.makefile() as lines:
        asked: dict[str, Any] = json.loads(lines.readline())
        streams = [Path(f"/proc/{asked['process']}/fd/{number}") for number in range(3)]
        place = asked["environment"], Path(asked["directory"]), *streams[1:], streams[0]
        process = FORKS.Process(target=execute, args=(run_main, tuple(asked["arguments"]), *place), daemon=True)
        process.start()
        wait([process.sentinel, shell])
        if process.exitcode is None:  # the program was killed, and nobody waits for an answer
            process.kill()
        else:
            shell.sendall(f"{process.exitcode}\n".encode())
        process.join()


def run_main(*arguments: str) -> None:
    """Run the command line with these arguments."""
    sys.argv[:] = ["baton", *arguments]
    main()


def execute(
    function: Callable[..., None],
    arguments: tuple[str, ...],
    environment: dict[str, str],
    directory: Path,
    stdout: Path,
    stderr: Path,
    stdin: Path = Path(os.devnull),
) -> None:
    """Call a function in a process that was just forked, as a terminal would have started it: lines come at once."""
    os.setsid()
    writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    for descriptor, (path, mode) in enumerate(((stdin, os.O_RDONLY), (stdout, writing), (stderr, writing))):
        file = os.open(path, mode)
        os.dup2(file, descriptor)
        os.close(file)
    settle(environment, str(directory))
    open_streams()
    function(*arguments)
