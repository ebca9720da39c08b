"""The loader: a process of `baton up` that has every module of the service loaded and forks the service's processes, its
pieces, so that they start at once. It has one thread, no event loop and no connection, so that a fork shares nothing with
it but memory. Its pieces end with it, and the next piece that is needed starts it again."""

import gc
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from baton.cli.child_processes import Environment, ServiceProcess
from baton.cli.embedded.process import ChildServer, OwnedDirectory, RunningProcess, open_log, tie_to_parent, wait_until
from baton.cli.process_title import show_title

MODULES = (
    *(f"baton.cli.{name}" for name in ("main", "startup", "api_server", "projector", "worker")),
    *("baton.api.mcp.transports", "baton.console.pages", "baton.cli.doctor.own_examination"),
    "baton.infrastructure.temporal.calendars",
    *("anyio._backends._asyncio", "jsonschema", "uvicorn.lifespan.on", "uvicorn.protocols.http.httptools_impl"),
)  # what the pieces have loaded once they are ready
LENGTH_BYTES = 8  # of the number before each request, with which its descriptors come
MAX_DESCRIPTORS = 16


@dataclass(frozen=True)
class PieceRequest:
    """What a piece is: a command of `baton` with its options, in an environment and a directory; and where its data are."""

    command: str
    options: Mapping[str, Any]
    environment: Mapping[str, str]
    directory: str
    place: str


class Loader(ChildServer):
    """The loader as a child of `baton up`."""

    stopping = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "loader", "The loader", directory / "loader" / "loader.log")
        self._requests: socket.socket | None = None

    def _launch(self) -> None:
        """Fork the loader, with what this process has loaded already; start it as a program once there are threads here."""
        own, its = socket.socketpair()
        with its:
            if threading.active_count() == 1:
                self._child = self._fork(its)
            else:
                command = [sys.executable, "-P", "-m", "baton.cli.loader", str(its.fileno()), str(self.log.parent)]
                environment, inherited = dict(os.environ), [its.fileno()]
                self._spawn(command, Path.cwd(), signal.SIGTERM, environment=environment, inherited=inherited)
        self._requests = own

    def _fork(self, requests: socket.socket) -> "OwnFork":
        with ExitStack() as files:
            lock = self._owned.server_lock()
            files.callback(os.close, lock)
            log = files.enter_context(open_log(self.log)).fileno()
            return OwnFork(fork(partial(run_loader, str(self.log.parent), os.getpid(), lock, log, requests)))

    def stop(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        super().stop()

    def fork_piece(self, request: "PieceRequest", owned: OwnedDirectory, log: Path, kept: Sequence[int]) -> "ForkedPiece":
        """Fork a piece with this lock and log, which keeps these descriptors; start the loader first where it has ended."""
        if not self.running:
            self.stop()
            self.start()
        assert self._requests is not None
        status, report = os.pipe()
        with ExitStack() as files:
            files.callback(os.close, report)
            lock = owned.server_lock()
            files.callback(os.close, lock)
            descriptors = [report, lock, files.enter_context(open_log(log)).fileno(), *kept]
            text = json.dumps(asdict(request)).encode()
            with suppress(OSError):  # the loader ended: nothing will be reported
                socket.send_fds(self._requests, [len(text).to_bytes(LENGTH_BYTES)], descriptors)
                self._requests.sendall(text)
        pid = os.read(status, 20)  # comes once everything is loaded
        if not pid:
            os.close(status)
            raise self.start_failure()
        return ForkedPiece(int(pid), status)


class OwnFork(RunningProcess):
    """A process that this one forked."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def wait(self, timeout: float) -> bool:
        return wait_until(self._has_ended, timeout)

    def _has_ended(self) -> bool:
        if self.exit_code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.exit_code = os.waitstatus_to_exitcode(status) if pid else None
        return self.exit_code is not None


class ForkedPiece(RunningProcess):
    """A process that the loader forked; its end is reported in a pipe, which is closed if the loader ends before."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self._status: int | None = status

    def wait(self, timeout: float) -> bool:
        if self._status is not None and select.select([self._status], [], [], timeout)[0]:
            report = os.read(self._status, 20)
            self.exit_code = int(report) if report else None
            os.close(self._status)
            self._status = None
        return self._status is None


class Piece(ServiceProcess):
    """One process of the service, forked by the loader: a command of `baton` with these options."""

    def __init__(
        self,
        loader: Loader,
        name: str,
        options: Mapping[str, object],
        directory: Path,
        environment: Environment,
        inherited: Sequence[int] = (),
    ) -> None:
        super().__init__(name, [], directory, environment, inherited)
        self._loader = loader
        self._name = name
        self._options = options

    def _launch(self) -> None:
        self._end_process()
        environment = {**os.environ, **self._environment()}
        request = PieceRequest(self._name, self._options, environment, os.getcwd(), str(self._owned.directory))
        self._child = self._loader.fork_piece(request, self._owned, self.log, self._inherited)


def run_loader(place: str, parent: int, lock: int, log: int, requests: socket.socket) -> None:
    """Run the loader in the process that was forked for it."""
    begin_process("loader", place, parent, lock, log, [requests.fileno()])
    serve_requests(requests)


def serve_requests(requests: socket.socket) -> None:
    """Load everything, and fork pieces until nobody can ask for more; their ends are reported to who asked for them."""
    for module in MODULES:
        import_module(module)
    import_module("baton.infrastructure.postgres.schema_version").current_definitions()
    gc.freeze()
    reports: dict[int, int] = {}  # the pipe of each piece, by its process id
    woken, waking = os.pipe()
    for descriptor in (woken, waking):
        os.set_blocking(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking)
    while True:
        ready = select.select([requests.fileno(), woken], [], [])[0]
        if woken in ready:
            os.read(woken, 1024)
            report_ends(reports)
        if requests.fileno() in ready:
            descriptors, request = receive(requests)
            if request is None:
                return
            report, *others = descriptors
            pid = fork(partial(run_piece, os.getpid(), others, request))
            os.write(report, b"%-19d\n" % pid)
            reports[pid] = report
            for descriptor in others:
                os.close(descriptor)


def receive(requests: socket.socket) -> tuple[list[int], PieceRequest | None]:
    """Return the descriptors of a request, and itself, or None where there are no more."""
    length, descriptors, _, _ = socket.recv_fds(requests, LENGTH_BYTES, MAX_DESCRIPTORS)
    text = b""
    while len(text) < int.from_bytes(length):
        if not (part := requests.recv(int.from_bytes(length) - len(text))):
            break
        text += part
    return descriptors, PieceRequest(**json.loads(text)) if text else None


def report_ends(reports: dict[int, int]) -> None:
    """Report the exit code of every piece that has ended."""
    for pid, report in list(reports.items()):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with suppress(BrokenPipeError):
                os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
            os.close(reports.pop(pid))


def run_piece(parent: int, descriptors: Sequence[int], request: PieceRequest) -> None:
    """Run one piece in the process that was forked for it."""
    lock, log, *kept = descriptors
    signal.set_wakeup_fd(-1)
    begin_process(request.command, request.place, parent, lock, log, kept)
    settle(request.environment, request.directory)
    getattr(import_module("baton.cli.main"), request.command)(**request.options, **({"descriptor": kept[0]} if kept else {}))


def begin_process(name: str, place: str, parent: int, lock: int, log: int, kept: Sequence[int]) -> None:
    """Give a process that was just forked a session, its log, its lock and its title, and have it end with its parent."""
    os.setsid()
    tie_to_parent(parent, lock, signal.SIGTERM)()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, stream in enumerate((nothing, log, log)):
        os.dup2(stream, descriptor)
    close_others({0, 1, 2, lock, *kept})
    open_streams()
    show_title(f"baton {name}", place)


def close_others(kept: Collection[int]) -> None:
    """Close every descriptor but these: a lock or a socket of the parent's would outlive the parent here."""
    for descriptor in map(int, os.listdir("/dev/fd")):
        if descriptor not in kept:
            with suppress(OSError):  # that of the list itself
                os.close(descriptor)


def open_streams() -> None:
    """Open the standard streams of Python on what the descriptors are now."""
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115


def settle(environment: Mapping[str, str], directory: str) -> None:
    """Take over an environment and a directory, as a program has them from its start."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)


def fork(run: Callable[[], object]) -> int:
    """Fork a process that does this and then ends as a program does, and return its id."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if pid := os.fork():
        return pid
    code: object = 1
    try:
        run()
        code = 0
    except SystemExit as ending:
        code = ending.code
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            threading._shutdown()  # type: ignore[attr-defined] # waits for the threads that a program would wait for
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        finally:  # nothing of what the parent would do at its own end is done here
            os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    show_title("baton loader", sys.argv[2])
    serve_requests(socket.socket(fileno=int(sys.argv[1])))
