"""What starts cost: processor time, which a busy machine changes less than waiting does, and waiting.

python -m tests.bench.start [--python ANOTHER/.venv/bin/python] [--rounds 5]
"""

import argparse
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]

DEADLINE = 120.0
JSON = {"content-type": "application/json"}
BEAMLINE = {"name": "7-BM", "tier": "Unit", "facility_code": "facility"}
IMPORT = "import resource, baton.client; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"


class Cost(NamedTuple):
    """What one start took, in seconds."""

    processor: float
    wall: float


class Start(NamedTuple):
    """A kind of start, with the medians of several, and the budget of one of its figures."""

    name: str
    processor: float
    wall: float
    budget: tuple[str, float] | None = None


class StartBench:
    """Measures the starts of the installation that a Python belongs to."""

    def __init__(self, python: str, directory: Path) -> None:
        self._python = python
        self._directory = directory  # away from any source, which a Python that is started beside it would import
        self._data = directory / "data"
        own = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "TEMPORAL_ADDRESS")}
        compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(directory / "bytecode")}
        self._environment = {**own, **compiled, "XDG_CONFIG_HOME": str(directory)}

    def measure(self, rounds: int) -> Iterator[Start]:
        """Yield every kind of start; a first round, which compiles, does not count."""
        up = ("`baton up` on an existing data directory, to ready", self.time_up, ("wall", 10.0))
        for name, take, budget in (("`import baton.client`", self.time_import, ("processor", 0.25)), up):
            yield median(name, take, rounds, budget)
        with self._running_stack():
            root = urllib.request.Request(f"{self._note()['url']}/assets", json.dumps(BEAMLINE).encode(), JSON)
            assert body(root)
            yield median("`baton status`, to its end", self.time_status, rounds, ("wall", 0.6))
            yield median("`baton api` alone, to its first answer", self.time_api, rounds, ("processor", 2.0))
            for piece in ("api", "projector", "worker"):
                budget = ("processor", 0.3)
                yield median(
                    f"killed {piece} of `baton up`, to ready again", lambda one=piece: self.time_kill(one), rounds, budget
                )

    def time_import(self) -> Cost:
        return self._time_command("-c", IMPORT)

    def time_status(self) -> Cost:
        return self._time_command("-m", "baton.cli", "status", "--url", self._note()["url"])

    def time_up(self) -> Cost:
        begun = time.monotonic()
        with self._running_stack() as stack:
            processes = [stack, *stack.children(recursive=True)]
            names = [process.name() for process in processes]
            own = [one for one, name in zip(processes, names, strict=True) if name.startswith(("baton", "python"))]
            return Cost(sum(map(processor_time, own)), time.monotonic() - begun)

    def time_api(self) -> Cost:
        servers = {name.upper(): self._note()[name] for name in ("database_url", "temporal_address")}
        begun = time.monotonic()
        command = [self._python, "-m", "baton.cli", "api", "--port=0"]
        with subprocess.Popen(
            command, env={**self._environment, **servers}, stdout=subprocess.PIPE, text=True, cwd=self._directory
        ) as api:
            assert api.stdout is not None
            address = api.stdout.readline().split()[-1]
            until(lambda: answers(f"{address}/health"))
            cost = Cost(processor_time(psutil.Process(api.pid)), time.monotonic() - begun)
            api.kill()
        return cost

    def time_kill(self, piece: str) -> Cost:
        """Kill a piece, and return what the one in its place took until it was ready."""
        lock, log, url = self._data / piece / "server.lock", self._data / piece / f"{piece}.log", self._note()["url"]
        killed, begun = int(lock.read_text()), time.monotonic()
        size = log.stat().st_size
        os.kill(killed, signal.SIGKILL)
        until(lambda: int(lock.read_text()) != killed)
        ready: dict[str, Callable[[], bool]] = {
            "api": lambda: answers(f"{url}/health"),
            "projector": lambda: b"unled_tasks" not in body(f"{url}/readyz"),
            "worker": lambda: b"worker_ready" in log.read_bytes()[size:],
        }
        until(ready[piece])
        return Cost(processor_time(psutil.Process(int(lock.read_text()))), time.monotonic() - begun)

    def _time_command(self, *arguments: str) -> Cost:
        begun, before = time.monotonic(), children_time()
        settings = {"env": self._environment, "cwd": self._directory, "stdout": subprocess.DEVNULL}
        subprocess.run([self._python, *arguments], check=True, **settings)
        return Cost(children_time() - before, time.monotonic() - begun)

    @contextmanager
    def _running_stack(self) -> Iterator[psutil.Process]:
        ports = ("--port=0", "--temporal-port=0", "--temporal-ui-port=0")
        command = [self._python, "-m", "baton.cli", "up", f"--data-dir={self._data}", *ports]
        with subprocess.Popen(
            command, env=self._environment, stdout=subprocess.PIPE, text=True, cwd=self._directory
        ) as stack:
            assert stack.stdout is not None
            assert any(re.match("ready", line) for line in stack.stdout), "the stack was not ready"
            try:
                yield psutil.Process(stack.pid)
            finally:
                stack.terminate()

    def _note(self) -> dict[str, str]:
        note: dict[str, str] = json.loads((self._data / "stack.json").read_text())
        return note


def median(name: str, take: Callable[[], Cost], rounds: int, budget: tuple[str, float] | None) -> Start:
    """Return the medians of several starts, after one that does not count."""
    costs = [take() for _ in range(rounds + 1)][1:]
    return Start(name, *(statistics.median(values) for values in zip(*costs, strict=True)), budget)


def processor_time(process: psutil.Process) -> float:
    """Return the seconds that a process has computed, itself and in the system."""
    times = process.cpu_times()
    return float(times.user + times.system)


def children_time() -> float:
    """Return the seconds that the children of this process have computed that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def body(url: str | urllib.request.Request) -> bytes:
    """Return the body of an answer."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        content: bytes = answer.read()
        return content


def answers(url: str) -> bool:
    """Return whether a service answers."""
    try:
        return bool(body(url))
    except (urllib.error.URLError, OSError):
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the Python of the installation to measure")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="baton-start-") as directory:
        for start in StartBench(arguments.python, Path(directory)).measure(arguments.rounds):
            print(f"{start.name:<52} {start.processor:6.2f} s of processor time {start.wall:6.2f} s", flush=True)


if __name__ == "__main__":
    main()
