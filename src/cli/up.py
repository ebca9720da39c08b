"""`baton up`: starts the whole service in one process tree, restarts what dies, and stops everything in order."""

import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from baton.application.settings import Settings, shown_settings
from baton.application.telemetry import protect_streams
from baton.cli.child_processes import STOPPING, Restarter, open_listener, require_loopback, start_with_retries, url_of
from baton.cli.embedded.process import ChildServer, OwnedDirectory, StartError, available_ports, wait_until
from baton.cli.loader import Loader, Piece
from baton.cli.messages import refuse
from baton.cli.stack_note import NOTE, write_note
from baton.cli.startup import load_settings
from baton.infrastructure.temporal.attributes import NAMES

if TYPE_CHECKING:
    from baton.cli.embedded.postgres import EmbeddedPostgres
    from baton.cli.embedded.temporal import EmbeddedTemporal

LOOPBACK = "127.0.0.1"
READY_SECONDS = 120.0  # until the API must be ready; includes building projections
SEARCH_ATTRIBUTES = dict.fromkeys(NAMES, "Keyword")
PIECES = ("projector", "api", "worker")  # each a command, in starting order: the first migrates the database


class Stack:
    """The service, with PostgreSQL and Temporal where none are configured."""

    def __init__(self, data_dir: Path, host: str, port: int, temporal_port: int, ui_port: int, *, any_host: bool) -> None:
        self._data_dir = data_dir.absolute()
        self._host = host
        self._port = port
        self._any_host = any_host
        self._temporal_ports = {"Temporal": temporal_port, "the Temporal UI": ui_port}
        self._owned = OwnedDirectory(self._data_dir, "Baton")
        self._postgres: EmbeddedPostgres | None = None
        self._temporal: EmbeddedTemporal | None = None
        self._loader = Loader(self._data_dir)
        self._pieces: dict[str, Piece] = {}
        self._restarters: list[Restarter] = []
        self._stopping = False

    def run(self) -> None:
        """Start everything, print the addresses, keep it running, and stop it on a signal."""
        settings = self._settings = load_settings()
        protect_streams()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._request_stop)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under nohup it is
            signal.signal(signal.SIGHUP, self._request_stop)
        try:
            self._owned.acquire(())
            for name in (*PIECES, "loader", "temporal"):  # what a killed stack left behind may still hold our ports
                orphaned = OwnedDirectory(self._data_dir / name, f"The {name}")
                if orphaned.directory.exists():
                    orphaned.acquire(STOPPING)
                    orphaned.release()
            with open_listener(self._host, self._port) as listening:
                require_loopback(listening, settings, self._any_host)
                try:
                    self._start(settings, listening)
                    while not self._stopping:
                        self._check()
                        time.sleep(0.1)
                finally:
                    self._stop(listening)
        except StartError as error:
            refuse(str(error))

    def _request_stop(self, *_: object) -> None:
        self._stopping = True

    def _start(self, settings: Settings, listening: socket.socket) -> None:
        """Start everything as early as possible: the loader loads while PostgreSQL and Temporal get ready."""
        begun = time.monotonic()
        self._loader.start()  # before there are threads
        self._url = url = url_of(listening)
        self._database_url = settings.database_url or ""
        self._database_owner_url = settings.database_owner_url or ""
        self._temporal_address, ui_url = settings.temporal_address or "", None
        with ThreadPoolExecutor(2) as threads:
            starts: list[Future[None]] = []
            if settings.temporal_address is None:
                port, ui_port = available_ports(LOOPBACK, self._temporal_ports)
                self._temporal_address, ui_url = f"{LOOPBACK}:{port}", f"http://{LOOPBACK}:{ui_port}"
                starts.append(threads.submit(self._start_temporal, port, ui_port))
            if settings.database_url is None:
                starts.append(threads.submit(self._start_postgres))
            self._await(starts, lambda: bool(self._database_url))
            self._write_note()
            self._start_pieces(listening)
            self._await(starts, lambda: all(start.done() for start in starts))
        self._await_ready(url)
        if not self._stopping:
            print(f"ready in {time.monotonic() - begun:.1f} s")
            print(f"  Console      {url}/console\n  API          {url}\n  API docs     {url}/docs\n  MCP          {url}/mcp")
            print(f"  Temporal     {self._temporal_address}\n  Temporal UI  {ui_url or 'that of your server'}")
            print(f"  Data, logs   {self._data_dir}", flush=True)

    def _await(self, starts: "list[Future[None]]", condition: Callable[[], bool]) -> None:
        """Wait for a condition; raise the error of a start that failed meanwhile."""
        # Every start has a time limit of its own.
        wait_until(lambda: condition() or any(start.done() and start.exception() for start in starts), float("inf"))
        for start in starts:
            if start.done():
                start.result()

    def _start_postgres(self) -> None:
        from baton.cli.embedded.postgres import EmbeddedPostgres

        self._postgres = EmbeddedPostgres(self._data_dir / "postgres")
        start_with_retries("PostgreSQL", self._postgres)
        self._database_owner_url = self._postgres.owner_url
        self._database_url = self._postgres.runtime_url

    def _start_temporal(self, port: int, ui_port: int) -> None:
        from baton.cli.embedded.temporal import EmbeddedTemporal

        directory = self._data_dir / "temporal"
        self._temporal = EmbeddedTemporal(directory, port=port, ui_port=ui_port, search_attributes=SEARCH_ATTRIBUTES)
        start_with_retries("Temporal", self._temporal)

    def _start_pieces(self, listening: socket.socket) -> None:
        for name in PIECES:
            if self._stopping:
                return
            inherited = [listening.fileno()] if name == "api" else []
            options = {"insecure_any_host": self._any_host} if name == "api" else {}
            environment = partial(self._environment, name)
            self._pieces[name] = Piece(self._loader, name, options, self._data_dir, environment, inherited)
            self._pieces[name].start()

    def _environment(self, name: str) -> dict[str, str]:
        """Return the servers of a piece; only the projector, which migrates and rebuilds, gets the owner's login."""
        return {
            "DATABASE_URL": self._database_url,
            "DATABASE_OWNER_URL": self._database_owner_url if name == "projector" else "",
            "TEMPORAL_ADDRESS": self._temporal_address,
        }

    def _write_note(self) -> None:
        addresses = {variable.lower(): address for variable, address in self._environment("projector").items()}
        write_note(self._data_dir, settings=shown_settings(self._settings), url=self._url, **addresses)

    def _await_ready(self, url: str) -> None:
        """Wait for the API; what dies meanwhile is restarted a few times."""
        servers: dict[str, ChildServer | None] = {"PostgreSQL": self._postgres, "Temporal": self._temporal}
        self._restarters = [Restarter(name, server) for name, server in servers.items() if server is not None]
        self._restarters += [Restarter(f"the {name}", piece) for name, piece in self._pieces.items()]
        for restarter in self._restarters:
            restarter.starts = 0

        def is_settled() -> bool:
            self._check()
            return self._stopping or is_ready(url)

        if not wait_until(is_settled, READY_SECONDS):
            fault = f"The API was not ready after {READY_SECONDS:.0f} seconds"
            raise StartError(f"{fault}; look into the logs in {self._data_dir}.")
        for restarter in self._restarters:
            restarter.starts = None

    def _check(self) -> None:
        """Restart what died, and the pieces where the database came back on another port."""
        for restarter in self._restarters:
            restarter.check()
        if self._postgres is None or self._postgres.runtime_url == self._database_url:
            return
        self._database_owner_url = self._postgres.owner_url
        self._database_url = self._postgres.runtime_url
        self._write_note()
        for piece in self._pieces.values():
            piece.stop()
            piece.start()

    def _stop(self, listening: socket.socket) -> None:
        """Stop API and worker, which finish their work first, then one after the other what they rely on."""
        if self._stopping:
            print("stopping", flush=True)
        listening.close()
        (self._data_dir / NOTE).unlink(missing_ok=True)
        pieces = dict(self._pieces)
        projector = pieces.pop("projector", None)
        with ThreadPoolExecutor() as threads:
            for stop in [threads.submit(piece.stop) for piece in pieces.values()]:
                stop.result()
        for server in (projector, self._loader, self._temporal, self._postgres):
            if server is not None:
                server.stop()
        self._owned.release()


def is_ready(url: str) -> bool:
    """Return whether the service answers that it is ready."""
    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or LOOPBACK, address.port, timeout=1)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (HTTPException, OSError):
        return False
    finally:
        connection.close()
