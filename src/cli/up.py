"""`baton up`: the whole service in one process tree, brought up side by side, kept alive, and taken down in order."""

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

from baton.application.log_stream import protect_streams
from baton.application.settings import Settings, shown_settings
from baton.cli.api_socket import listener, require_loopback, url_of
from baton.cli.child_processes import STOPPING, Keeper, Piece, start_again
from baton.cli.embedded.process import Premises, Server, StartError, available_ports, wait_until
from baton.cli.stack_address import remove_note, write_note
from baton.cli.startup_errors import chosen_settings, refuse
from baton.infrastructure.temporal.attributes import KIND, NAMES

if TYPE_CHECKING:
    from baton.cli.embedded.postgres import EmbeddedPostgres
    from baton.cli.embedded.temporal import EmbeddedTemporal

LOOPBACK = "127.0.0.1"
PATIENCE = 120.0
"""Seconds until the API must be ready; building projections anew is part of them."""
LOOK_INTERVAL = 0.1
SEARCH_ATTRIBUTES = dict.fromkeys(NAMES, KIND)
PIECES = ("projector", "api", "worker")
"""Our own processes, each a command of its own, in the order they are started in: the first migrates the database."""


class Stack:
    """PostgreSQL and Temporal where none are named, and the service on them."""

    def __init__(
        self, data_dir: Path, host: str, port: int, temporal_port: int, temporal_ui_port: int, *, any_host: bool = False
    ) -> None:
        self._data_dir = data_dir.absolute()
        self._host = host
        self._port = port
        self._any_host = any_host
        self._temporal_ports = {"Temporal": temporal_port, "the Temporal UI": temporal_ui_port}
        self._premises = Premises(self._data_dir, "Baton")
        self._postgres: EmbeddedPostgres | None = None
        self._temporal: EmbeddedTemporal | None = None
        self._pieces: dict[str, Piece] = {}
        self._keepers: list[Keeper] = []
        self._told = False

    def run(self) -> None:
        """Bring everything up, print where it is, keep it running, and take it down when told to."""
        settings = self._settings = chosen_settings()
        protect_streams()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._tell)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under nohup it is
            signal.signal(signal.SIGHUP, self._tell)
        try:
            self._premises.take(())
            self._evict_orphans()
            with listener(self._host, self._port) as listening:
                require_loopback(listening, settings, self._any_host)
                try:
                    self._bring_up(settings, listening)
                    self._keep_up()
                finally:
                    self._take_down(listening)
        except StartError as error:
            refuse(str(error))

    def _tell(self, *_: object) -> None:
        self._told = True

    def _evict_orphans(self) -> None:
        """See everybody out whom a killed stack left behind, because they may still hold our ports."""
        for name in (*PIECES, "temporal"):
            premises = Premises(self._data_dir / name, f"The {name}")
            if premises.directory.exists():
                premises.take(STOPPING)
                premises.leave()

    def _bring_up(self, settings: Settings, listening: socket.socket) -> None:
        """Start everything as early as it can be: our own processes load while Temporal gets ready."""
        begun = time.monotonic()
        self._url = url = url_of(listening)
        self._database_url, self._database_owner_url = settings.database_url or "", settings.database_owner_url or ""
        self._temporal_address, ui_url = settings.temporal_address or "", None
        with ThreadPoolExecutor(2) as side_by_side:
            starts: list[Future[None]] = []
            if settings.temporal_address is None:
                port, ui_port = available_ports(LOOPBACK, self._temporal_ports)
                self._temporal_address, ui_url = f"{LOOPBACK}:{port}", f"http://{LOOPBACK}:{ui_port}"
                starts.append(side_by_side.submit(self._start_temporal, port, ui_port))
            if settings.database_url is None:
                starts.append(side_by_side.submit(self._start_postgres))
            self._await(starts, lambda: bool(self._database_url))
            self._note()
            self._start_pieces(listening)
            self._await(starts, lambda: all(start.done() for start in starts))
        self._await_ready(url)
        if not self._told:
            print(f"ready in {time.monotonic() - begun:.1f} s", flush=True)
            print(f"  API          {url}\n  API docs     {url}/docs\n  MCP          {url}/mcp", flush=True)
            print(f"  Temporal     {self._temporal_address}\n  Temporal UI  {ui_url or 'that of your server'}", flush=True)
            print(f"  Data, logs   {self._data_dir}", flush=True)

    def _await(self, starts: "list[Future[None]]", condition: Callable[[], bool]) -> None:
        """Wait for a condition, and raise what went wrong with any start meanwhile."""

        def settled() -> bool:
            return condition() or any(start.done() and start.exception() for start in starts)

        wait_until(settled, float("inf"))  # every start has a time limit of its own
        for start in starts:
            if start.done():
                start.result()

    def _start_postgres(self) -> None:
        from baton.cli.embedded.postgres import EmbeddedPostgres

        self._postgres = EmbeddedPostgres(self._data_dir / "postgres")
        start_again("PostgreSQL", self._postgres)
        self._database_owner_url, self._database_url = self._postgres.owner_url, self._postgres.runtime_url

    def _start_temporal(self, port: int, ui_port: int) -> None:
        from baton.cli.embedded.temporal import EmbeddedTemporal

        directory = self._data_dir / "temporal"
        self._temporal = EmbeddedTemporal(directory, port=port, ui_port=ui_port, search_attributes=SEARCH_ATTRIBUTES)
        start_again("Temporal", self._temporal)

    def _start_pieces(self, listening: socket.socket) -> None:
        for name in PIECES:
            if self._told:
                return
            inherited = [listening.fileno()] if name == "api" else []
            arguments = [f"--descriptor={descriptor}" for descriptor in inherited]
            if name == "api" and self._any_host:
                arguments.append("--insecure-any-host")
            environment = partial(self._environment, name)
            piece = Piece(name, ["-m", "baton.cli", name, *arguments], self._data_dir, environment, inherited)
            self._pieces[name] = piece
            piece.start()

    def _environment(self, name: str) -> dict[str, str]:
        """Where a piece finds its servers; the owner's login is for the projector, who migrates and rebuilds."""
        return {
            "DATABASE_URL": self._database_url,
            "DATABASE_OWNER_URL": self._database_owner_url if name == "projector" else "",
            "TEMPORAL_ADDRESS": self._temporal_address,
        }

    def _note(self) -> None:
        places = {variable.lower(): place for variable, place in self._environment("projector").items()}
        write_note(self._data_dir, settings=shown_settings(self._settings), url=self._url, **places)

    def _await_ready(self, url: str) -> None:
        """Wait for the API; whatever dies meanwhile is started again, a few times."""
        servers: dict[str, Server | None] = {"PostgreSQL": self._postgres, "Temporal": self._temporal}
        self._keepers = [Keeper(name, server) for name, server in servers.items() if server is not None]
        self._keepers += [Keeper(f"the {name}", piece) for name, piece in self._pieces.items()]
        for keeper in self._keepers:
            keeper.starts = 0

        def settled() -> bool:
            self._look()
            return self._told or is_ready(url)

        if not wait_until(settled, PATIENCE):
            raise StartError(f"The API was not ready after {PATIENCE:.0f} seconds; look into the logs in {self._data_dir}.")
        for keeper in self._keepers:
            keeper.starts = None

    def _look(self) -> None:
        for keeper in self._keepers:
            keeper.look()
        self._follow_database()

    def _keep_up(self) -> None:
        """Start again whatever dies, until told to stop."""
        while not self._told:
            self._look()
            time.sleep(LOOK_INTERVAL)

    def _follow_database(self) -> None:
        """Lead the pieces to the database where it came back on another port."""
        if self._postgres is None or self._postgres.runtime_url == self._database_url:
            return
        self._database_owner_url, self._database_url = self._postgres.owner_url, self._postgres.runtime_url
        self._note()
        for piece in self._pieces.values():
            piece.stop()
            piece.start()

    def _take_down(self, listening: socket.socket) -> None:
        """Whoever serves or works finishes that first; then those they rely on, one after the other."""
        if self._told:
            print("stopping", flush=True)
        listening.close()
        remove_note(self._data_dir)
        pieces = dict(self._pieces)
        projector = pieces.pop("projector", None)
        with ThreadPoolExecutor() as side_by_side:
            for stopped in [side_by_side.submit(piece.stop) for piece in pieces.values()]:
                stopped.result()
        for server in (projector, self._temporal, self._postgres):
            if server is not None:
                server.stop()
        self._premises.leave()


def is_ready(url: str) -> bool:
    """Whether the service answers and its projections are built."""
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or LOOPBACK, place.port, timeout=1)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (HTTPException, OSError):
        return False
    finally:
        connection.close()
