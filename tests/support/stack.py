"""A real `baton up` for tests: free ports, a data directory of its own, and every process it started in sight."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil

from baton.application.settings import Settings
from tests.support.forked_commands import run_command, start_command

DEADLINE = 60.0
PIECES = {"api": "baton api", "worker": "baton worker", "projector": "baton projector", "temporal": "temporal"}
NAMES = {**PIECES, "postgres": "postgres", "loader": "baton loader"}
NO_PROFILES = str(Path(__file__).parent)
PORTS = ("port", "temporal-port", "temporal-ui-port")
T = TypeVar("T")


def clean_environment(**chosen: str) -> dict[str, str]:
    """Return our environment with none of the service's settings and none of our profiles, but these."""
    settings = {name.upper() for name in Settings.model_fields}
    inherited = {name: value for name, value in os.environ.items() if name not in settings and name[:6] != "BATON_"}
    return {**inherited, "XDG_CONFIG_HOME": NO_PROFILES, **chosen}


def run_baton(*arguments: str, timeout: float = DEADLINE, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the command line to its end, in a process that has its modules loaded when it begins."""
    return run_command(arguments, clean_environment(**environment), timeout)


def eventually(condition: Callable[[], T], within: float = DEADLINE, what: object = "", pause: float = 0.05) -> T:
    """Return the first true answer of a condition, asked for after each pause."""
    deadline = time.monotonic() + within
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {within:.0f} s: {what() if callable(what) else what}"
        time.sleep(pause)
    return answer


class Stack:
    """One `baton up`, from its start to its end."""

    def __init__(self, directory: Path, environment: Mapping[str, str], ports: Sequence[int] = (0, 0, 0)) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._output_path = directory / "said.txt"
        options = [f"--{name}={port}" for name, port in zip(PORTS, ports, strict=True)]
        arguments = ("up", f"--data-dir={directory}", *options)
        self.process = start_command(arguments, clean_environment(**environment), self._output_path, self._output_path)
        self.client = httpx.Client(timeout=30)

    def wait_until_ready(self) -> "Stack":
        """Return it once it says that it is ready."""
        eventually(lambda: not self.process.is_alive() or "ready in" in self.output(), 2 * DEADLINE, self.output)
        assert self.process.is_alive(), self.output()
        self.client.base_url = httpx.URL(self.address("url"))
        return self

    def output(self) -> str:
        """Return everything it printed."""
        return self._output_path.read_text() if self._output_path.exists() else ""

    def address(self, name: str) -> str:
        """Return an address from the note it leaves."""
        return str(json.loads((self.directory / "stack.json").read_text())[name])

    @property
    def ports(self) -> list[int]:
        """The ports of the API, of Temporal and of its pages."""
        pages = next(line for line in self.output().splitlines() if "Temporal UI" in line)
        return [int(place.rpartition(":")[2]) for place in (self.address("url"), self.address("temporal_address"), pages)]

    def children(self) -> list[psutil.Process]:
        """Return every process it started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def find(self, piece: str) -> psutil.Process | None:
        """Return the process of one piece, if it lives: the one that wrote its id into its lock."""
        try:
            found = psutil.Process(int((self.directory / piece / "server.lock").read_text()))
            return found if is_alive(found) and found.name() == NAMES[piece] else None
        except (OSError, ValueError, psutil.NoSuchProcess):
            return None

    def piece(self, name: str) -> psutil.Process:
        """Return the process of one piece, as soon as it lives."""
        return eventually(lambda: self.find(name), what=f"no {name}: {self.output()}")  # type: ignore[return-value]

    def kill(self, name: str) -> psutil.Process:
        """Kill a piece, and return the one that took its place."""
        killed = self.piece(name)
        killed.kill()
        return eventually(  # type: ignore[return-value]
            lambda: (found := self.find(name)) and found.pid != killed.pid and found, what=f"{name} stayed away"
        )

    def create(self, path: str, body: Any) -> str:
        """Create something, and return its id."""
        answer = self.client.post(path, json=body)
        assert answer.status_code == 201, answer.text
        return str(next(value for name, value in answer.json().items() if name.endswith("_id")))

    def end(self, number: signal.Signals = signal.SIGTERM, *, group: bool = False) -> list[psutil.Process]:
        """Send a signal (to its whole group, as Ctrl-C does), wait for the end, and return the processes it left behind."""
        children = self.children()
        (os.killpg if group else os.kill)(self.process.pid, number)
        self.process.join(DEADLINE)
        assert not self.process.is_alive(), f"it did not end: {self.output()}"
        return [child for child in children if is_alive(child)]

    def remove(self) -> None:
        """End it whatever happened before."""
        self.client.close()
        if self.process.is_alive():
            left = self.end()
            assert not left, left


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process still runs."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@contextmanager
def running_stack(directory: Path, ports: Sequence[int] = (0, 0, 0), **environment: str) -> Iterator[Stack]:
    """A stack that is ready, until the end of the block."""
    stack = Stack(directory, environment, ports)
    try:
        yield stack.wait_until_ready()
    finally:
        stack.remove()
