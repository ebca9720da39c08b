"""`baton up`: the whole service in one process tree, brought up in order and taken down in reverse."""

import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from application.settings import Settings, boot_objections
from cli.embedded.process import Child, Escalation, Premises, StartError, available_ports, rotated, wait_until
from cli.places import remove_note, write_note
from cli.refusing import refuse

STOPPING: Escalation = ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0))
PATIENCE = 60.0
SEARCH_ATTRIBUTES = dict.fromkeys(
    ("BatonFacility", "BatonAsset", "BatonRun", "BatonCommand", "BatonPrincipal", "BatonState"), "Keyword"
)
RESTART_PAUSE = 0.5

A = TypeVar("A")
B = TypeVar("B")


class Piece:
    """One process of the service, started again when it dies."""

    def __init__(self, name: str, command: list[str], directory: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self._command = command
        self._environment = environment
        self._premises = Premises(directory / name, name)
        self._log = directory / name / f"{name}.log"
        self._stopping = False
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def start(self) -> None:
        self._premises.take(STOPPING)
        rotated(self._log)
        self._launch()
        threading.Thread(target=self._keep_alive, name=f"keeper of {self.name}", daemon=True).start()

    def stop(self) -> None:
        self._stopping = True
        if self._child is not None:
            self._child.stop(STOPPING)
        self._premises.leave()

    def failed_early(self) -> bool:
        return self._child is not None and self._child.ended.is_set()

    def objection(self) -> StartError:
        return StartError(f"The {self.name} ended while starting; its log says why.", log=self._log)

    def _launch(self) -> None:
        self._child = Child(
            self._command,
            premises=self._premises,
            directory=Path.cwd(),
            log=self._log,
            death_signal=signal.SIGTERM,
            environment={**os.environ, **self._environment},
        )

    def _keep_alive(self) -> None:
        while not self._stopping:
            assert self._child is not None, "a piece is kept alive only once it was started"
            self._child.ended.wait()
            if self._stopping:
                return
            print(f"the {self.name} ended unexpectedly; starting it again", file=sys.stderr, flush=True)
            time.sleep(RESTART_PAUSE)
            if not self._stopping:
                self._launch()


class Stack:
    """PostgreSQL and Temporal where none are named, then the service on them."""

    def __init__(self, data_dir: Path, host: str, port: int, temporal_port: int, temporal_ui_port: int) -> None:
        self._data_dir = data_dir.absolute()
        self._host = host
        self._port = port
        self._temporal_port = temporal_port
        self._temporal_ui_port = temporal_ui_port
        self._told = threading.Event()

    def run(self) -> None:
        """Bring everything up, print where it is, and take it down when told to."""
        settings = Settings()
        if objections := boot_objections(settings):
            refuse(*objections)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._told.set())
        try:
            with ExitStack() as running:
                self._bring_up(settings, running)
                self._told.wait()
                print("stopping", flush=True)
        except StartError as error:
            refuse(str(error))

    def _bring_up(self, settings: Settings, running: ExitStack) -> None:
        started = time.monotonic()
        self._data_dir.mkdir(parents=True, exist_ok=True)
        (port,) = available_ports(self._host, {"the API": self._port})
        database_url, (temporal_address, ui_url) = concurrently(
            lambda: self._postgres(settings, running), lambda: self._temporal(settings, running)
        )
        if self._told.is_set():
            return
        from infrastructure.postgres.migrate import migrate

        migrate(database_url)
        environment = {"DATABASE_URL": database_url, "TEMPORAL_ADDRESS": temporal_address}
        python = [sys.executable]
        pieces = [
            Piece("projector", [*python, "-m", "cli", "projector"], self._data_dir, environment),
            Piece("worker", [*python, "-m", "cli.worker"], self._data_dir, environment),
            Piece(
                "api", [*python, "-m", "cli", "api", "--host", self._host, "--port", str(port)], self._data_dir, environment
            ),
        ]
        for piece in pieces:
            running.callback(piece.stop)
            piece.start()
        url = f"http://{'127.0.0.1' if self._host == '0.0.0.0' else self._host}:{port}"
        self._await_ready(url, pieces)
        write_note(self._data_dir, database_url=database_url, temporal_address=temporal_address, url=url)
        running.callback(remove_note, self._data_dir)
        print(f"ready in {time.monotonic() - started:.1f} s", flush=True)
        print(f"  API          {url}\n  API docs     {url}/docs\n  MCP          {url}/mcp", flush=True)
        print(f"  Temporal     {temporal_address}\n  Temporal UI  {ui_url or 'see your Temporal'}", flush=True)

    def _postgres(self, settings: Settings, running: ExitStack) -> str:
        if settings.database_url is not None:
            return settings.database_url
        from cli.embedded.postgres import EmbeddedPostgres

        return running.enter_context(EmbeddedPostgres(self._data_dir / "postgres")).url

    def _temporal(self, settings: Settings, running: ExitStack) -> tuple[str, str | None]:
        if settings.temporal_address is not None:
            return settings.temporal_address, None
        from cli.embedded.temporal import EmbeddedTemporal

        server = EmbeddedTemporal(
            self._data_dir / "temporal",
            port=self._temporal_port,
            ui_port=self._temporal_ui_port,
            search_attributes=SEARCH_ATTRIBUTES,
        )
        running.enter_context(server)
        return server.address, server.ui_url

    def _await_ready(self, url: str, pieces: list[Piece]) -> None:
        def settled() -> bool:
            return self._told.is_set() or any(piece.failed_early() for piece in pieces) or is_ready(url)

        in_time = wait_until(settled, PATIENCE)
        for piece in pieces:
            if piece.failed_early():
                raise piece.objection()
        if not in_time:
            raise StartError(f"The API did not become ready within {PATIENCE:.0f} s; see the logs in {self._data_dir}.")


def is_ready(url: str) -> bool:
    """Whether the service answers and its projections are built."""
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def concurrently(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Both results; the first failure is raised once both have ended."""
    with ThreadPoolExecutor(1) as other:
        pending = other.submit(second)
        try:
            result = first()
        finally:
            wait([pending])
        return result, pending.result()
