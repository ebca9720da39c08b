"""Servers that beamlines run beside the service, each in a process of its own from the environment made for them."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parents[3]
OUTSIDE = ROOT / f"{Path(sys.prefix).name}-bluesky" / "bin"
WITHIN = 120.0
"""Seconds that a server may take to start on a slow day."""


def outside_program(name: str) -> str:
    """Return the path of a program of the environment; skip the test where it is not installed."""
    program = OUTSIDE / name
    if not program.exists():
        pytest.skip(f"{name} is not installed beside us; `make unit` makes its environment.")
    return str(program)


def outside_environment(**more: str) -> dict[str, str]:
    """Return the environment of a program: modules are compiled once, and not beside their source."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(ROOT / ".bytecode"), **more}


def free_port() -> int:
    """Return a port that nothing listens to."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running_server(command: list[str], ready: str, log: Path, **environment: str) -> Iterator[None]:
    """A server that answers under an address, until the end of the block."""
    variables = outside_environment(**environment)
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output, env=variables) as server:
        try:
            wait_for_answer(server, ready, log)
            yield
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()


def wait_for_answer(server: "subprocess.Popen[bytes]", address: str, log: Path) -> None:
    """Wait until a server answers, or fail with what it printed."""
    deadline = time.monotonic() + WITHIN
    while time.monotonic() < deadline:
        assert server.poll() is None, f"the server ended: {log.read_text()[-2000:]}"
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"no answer from {address}: {log.read_text()[-2000:]}")


@contextmanager
def tiled_server(directory: Path) -> Iterator[str]:
    """A Tiled server with an empty catalogue that `TiledWriter` can write to; its key is `secret`."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    command = [outside_program("tiled"), "serve", "catalog", "--temp", "--api-key", "secret", "--port", str(port)]
    with running_server(command, f"{address}/api/v1/", directory / "tiled.log", HOME=str(directory)):
        yield address


@contextmanager
def blueapi_server(directory: Path, plans: Mapping[str, str], **environment: str) -> Iterator[str]:
    """A blueapi server without a message broker that serves modules of plans, given by name and source."""
    address = f"http://127.0.0.1:{free_port()}"
    for name, source in plans.items():
        (directory / f"{name}.py").write_text(source)
    sources = "".join(f"    - kind: planFunctions\n      module: {name}\n" for name in plans)
    config = directory / "blueapi.yaml"
    config.write_text(f"env:\n  sources:\n{sources}stomp:\n  enabled: false\napi:\n  url: {address}\n")
    path = os.pathsep.join([str(directory), str(ROOT / "witness")])
    command = [outside_program("blueapi"), "--config", str(config), "serve"]
    with running_server(command, f"{address}/api/v1/plans", directory / "blueapi.log", PYTHONPATH=path, **environment):
        yield address
