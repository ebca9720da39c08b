"""The executors of Bluesky plans that tests start: a queueserver with its Redis, and a blueapi without a broker."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from baton.application.conduct.plan_executors import PlanExecutorSilentError
from baton.infrastructure.plans.blueapi import Blueapi
from baton.infrastructure.plans.queueserver import Queueserver
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
OUTSIDE = ROOT / ".venv-bluesky/bin/python"
COMPILED = ROOT / ".bytecode"  # what is compiled is kept, since these packages take a minute to compile
START_SECONDS = 240.0
PLANS = Path(__file__).with_name("scripted_plans.py")
PERMISSIONS = """user_groups:
  root: {allowed_plans: [null], allowed_devices: [null]}
  primary: {allowed_plans: [":.*"], allowed_devices: [":?.*"]}
"""
MISSING_OUTSIDE = "there is no .venv-bluesky beside, which has queueserver and blueapi; `make test` makes it"
MISSING_REDIS = "redis-server is not installed; queueserver keeps its items there"


def missing_part(*, redis: bool) -> str | None:
    """Return why the servers cannot be started here, or None."""
    if not OUTSIDE.exists():
        return MISSING_OUTSIDE
    return MISSING_REDIS if redis and shutil.which("redis-server") is None else None


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class PlanServer:
    """A server that carries plans out, and the file in which they count their starts."""

    directory: Path
    starts_file: Path
    address: str
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    commands: dict[str, tuple[Sequence[str], Mapping[str, str]]] = field(default_factory=dict)
    killed: list[subprocess.Popen[bytes]] = field(default_factory=list)
    """Processes that were started again; what they had started may have outlived them."""

    def count(self, note: str) -> int:
        """Return how often a plan with this note was started."""
        return self.starts_file.read_text().splitlines().count(note) if self.starts_file.exists() else 0

    def start(self, name: str, command: Sequence[str], more: Mapping[str, str] | None = None) -> None:
        """Start one of its processes, in a session of its own."""
        self.commands[name] = (command, more or {})
        own = {"PLAN_STARTS": str(self.starts_file), "PYTHONPATH": str(self.directory), "PYTHONPYCACHEPREFIX": str(COMPILED)}
        environment = {**os.environ, **own, "PYTHONDONTWRITEBYTECODE": "", **(more or {})}
        with (self.directory / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, cwd=self.directory, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def restart(self, name: str) -> None:
        """Start a process again that was killed."""
        self.killed.append(self.processes[name])
        self.start(name, *self.commands[name])

    def stop(self) -> None:
        """End every process and what it started."""
        for process in (*reversed(self.processes.values()), *self.killed):
            with_children = process.pid
            try:
                os.killpg(with_children, signal.SIGKILL)
            except ProcessLookupError:
                continue
            process.wait(30)

    def log(self) -> str:
        return "\n".join(f"{log.name}: {log.read_text()[-2000:]}" for log in self.directory.glob("*.log"))


@contextmanager
def stopped_at_the_end(server: PlanServer) -> Iterator[PlanServer]:
    try:
        yield server
    finally:
        server.stop()


@asynccontextmanager
async def running_queueserver(directory: Path, plans: str | None = None) -> AsyncIterator[PlanServer]:
    """A queueserver with an open environment."""
    redis, control, info = free_port(), free_port(), free_port()
    startup = directory / "startup"
    startup.mkdir(parents=True)
    (startup / "00-plans.py").write_text(
        f"{plans or PLANS.read_text()}\nfrom bluesky import RunEngine\n\nRE = RunEngine({{}})\n".replace(
            '__all__ = ["counted"', '_all = ["counted"'
        )
    )
    (startup / "user_group_permissions.yaml").write_text(PERMISSIONS)
    server = PlanServer(directory, directory / "starts", f"tcp://127.0.0.1:{control}")
    with stopped_at_the_end(server):
        server.start(
            "redis", ["redis-server", "--port", str(redis), "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]
        )
        manager = "from bluesky_queueserver.manager.start_manager import start_manager; start_manager()"
        arguments = ["--zmq-control-addr", f"tcp://127.0.0.1:{control}", "--zmq-info-addr", f"tcp://127.0.0.1:{info}"]
        arguments += [
            "--startup-dir",
            str(startup),
            "--redis-addr",
            f"127.0.0.1:{redis}",
            "--redis-name-prefix",
            "baton_tests",
        ]
        server.start("manager", [str(OUTSIDE), "-c", manager, *arguments])
        client = Queueserver(server.address)
        try:
            await until(lambda: answers(client), START_SECONDS)
            await client._ask("environment_open")
            await until(lambda: is_open(client), START_SECONDS)
            yield server
        finally:
            await client.close()


async def answers(client: Queueserver | Blueapi) -> bool:
    try:
        await client.catalogue()
    except (PlanExecutorSilentError, TypeError):
        return False
    return True


async def is_open(client: Queueserver) -> bool:
    status = await client._ask("status")
    return bool(status["worker_environment_exists"] and status["manager_state"] == "idle" and status["re_state"] == "idle")


@asynccontextmanager
async def running_blueapi(directory: Path, plans: str | None = None, more_sources: str = "") -> AsyncIterator[PlanServer]:
    """A blueapi with its broker disabled."""
    port = free_port()
    (directory / "scripted_plans.py").write_text(plans or PLANS.read_text())
    (directory / "config.yaml").write_text(
        f"""api: {{url: "http://127.0.0.1:{port}"}}
env: {{sources: [{{kind: planFunctions, module: scripted_plans}}{more_sources}]}}
stomp: {{enabled: false}}
"""
    )
    server = PlanServer(directory, directory / "starts", f"http://127.0.0.1:{port}")
    with stopped_at_the_end(server):
        server.start("blueapi", [str(OUTSIDE), "-m", "blueapi", "-c", str(directory / "config.yaml"), "serve"])
        client = Blueapi(server.address)
        try:
            await until(lambda: is_initialized(server), START_SECONDS)
            yield server
        finally:
            await client.close()


async def is_initialized(server: PlanServer) -> bool:
    async with httpx.AsyncClient(timeout=5) as client:
        try:
            answer: dict[str, Any] = (await client.get(f"{server.address}/api/v1/environment")).json()
        except (httpx.HTTPError, ValueError):
            assert server.processes["blueapi"].poll() is None, server.log()
            await asyncio.sleep(0.2)
            return False
    assert not answer.get("error_message"), answer
    return bool(answer.get("initialized"))
