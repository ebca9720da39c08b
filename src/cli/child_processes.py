"""Processes of the service as children, the socket that the API inherits, and restarting what dies."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path

import structlog

from baton.application.settings import Settings
from baton.cli.embedded.process import ChildServer, EarlyEndError, Escalation, StartError, available_ports
from baton.cli.messages import MESSAGE_PREFIX
from baton.cli.startup import DATABASE_FAULT

log = structlog.get_logger()

Environment = Callable[[], Mapping[str, str]]
STOPPING: Escalation = ((signal.SIGTERM, 20.0), (signal.SIGKILL, 5.0))
MAX_STARTS = 4  # how often a server is started that ends before the stack is ready
SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 10.0  # seconds before a restart; doubled until the server has lived for a while


class ServiceProcess(ChildServer):
    """One process of the service, in its own session and with its own log."""

    stopping = STOPPING

    def __init__(
        self, name: str, arguments: Sequence[str], directory: Path, environment: Environment, inherited: Sequence[int] = ()
    ) -> None:
        super().__init__(directory / name, f"The {name}", directory / name / f"{name}.log")
        self._arguments = arguments
        self._environment = environment
        self._inherited = inherited

    def _launch(self) -> None:
        """Start the process, and do not wait until it is ready."""
        options = {"environment": {**os.environ, **self._environment()}, "inherited": self._inherited}
        self._spawn([sys.executable, "-P", *self._arguments], Path.cwd(), signal.SIGTERM, **options)

    @property
    def has_refused(self) -> bool:
        """Whether it printed why it refuses to run; an unreachable database does not count, because it may come back."""
        return bool(sentences := self._sentences()) and not sentences[0].startswith(DATABASE_FAULT)

    def start_failure(self) -> StartError:
        """Return the error with its own sentences, or with the end of its log."""
        return StartError("\n".join(sentences)) if (sentences := self._sentences()) else super().start_failure()

    def _sentences(self) -> list[str]:
        lines = self.log_file.output().splitlines()
        return [line.removeprefix(MESSAGE_PREFIX) for line in lines if line.startswith(MESSAGE_PREFIX)]


class Restarter:
    """Starts a server again when it died: always, or a few times while the stack is starting."""

    def __init__(self, name: str, server: ChildServer) -> None:
        self.name = name
        self.server = server
        self._pause = SHORTEST_PAUSE
        self._begun = self._rotated = time.monotonic()
        self._due: float | None = None
        self.starts: int | None = None  # how often it was restarted while the stack is starting; None once that is ready

    def check(self) -> None:
        """Restart the server if it died and its pause is over; raise where that failed too often during the start."""
        now = time.monotonic()
        if now - self._rotated > 1:
            self._rotated = now
            self.server.log_file.rotate()
        if self.server.running:
            return
        if self._due is None:
            if self.starts is not None:
                self.starts += 1
                if self.server.has_refused or self.starts >= MAX_STARTS:
                    raise self.server.start_failure()
            self._pause = SHORTEST_PAUSE if now - self._begun > LONGEST_PAUSE else min(2 * self._pause, LONGEST_PAUSE)
            self._due = now + self._pause
            print(f"{self.name} ended unexpectedly ({self.server.end_text}); starting it again", file=sys.stderr, flush=True)
        if now < self._due:
            return
        self._begun = now
        self._due = None
        try:
            self.server.stop()
            self.server.start()
        except StartError as error:
            print(f"{self.name} could not be started again: {error.sentence}", file=sys.stderr, flush=True)


def start_with_retries(name: str, server: ChildServer) -> None:
    """Start a server; try again, up to MAX_STARTS times in all, where it ends before it is ready."""
    for attempt in range(1, MAX_STARTS):
        try:
            server.start()
            return
        except EarlyEndError as error:
            print(f"{name}: {error.sentence} Starting it again.", file=sys.stderr, flush=True)
            time.sleep(SHORTEST_PAUSE * 2**attempt)
    server.start()


def open_listener(host: str, port: int) -> socket.socket:
    """Return a listening socket on this port, or on a free one for 0; clients wait at it while the API restarts."""
    [chosen] = available_ports(host, {"the API": port})
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, chosen), family=family, backlog=2048)
    except OSError as error:
        raise StartError(f"The API cannot listen on {host} port {chosen}: {error.strerror}.") from error


def require_loopback(listening: socket.socket, settings: Settings, any_host: bool) -> None:
    """Raise where other machines could connect without a token, or warn where --insecure-any-host allows that."""
    address = listening.getsockname()[0]
    if settings.tokens_required or ip_address(address).is_loopback:
        return
    if not any_host:
        listening.close()
        raise StartError(
            f"Whoever reaches {address} could do everything, since no token is required; listen on 127.0.0.1, set "
            "REQUIRE_AUTHENTICATED_PRINCIPAL=true with IDENTITY_PROVIDERS, or give --insecure-any-host if that is meant."
        )
    log.warning("insecure_any_host", address=address)
    sentence = f"Whoever reaches {address} can do everything: no token is required, and --insecure-any-host was given."
    print(f"{MESSAGE_PREFIX}{sentence}", file=sys.stderr, flush=True)


def url_of(listening: socket.socket) -> str:
    """Return the URL by which a client on this machine reaches this socket."""
    host, port, *_ = listening.getsockname()
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # all addresses include that of this machine
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
