"""Servers as child processes that never outlive their owner and never share a directory. Two locks guard a directory:
`owner.lock` is held by the process that started the server; `server.lock` is inherited by the server and all that it forks.
The kernel drops a lock with its last holder, however that died, so no stale file can mislead the next start: a directory
with an owner is refused, a server without an owner is an orphan and is stopped first."""

import ctypes
import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from errno import EADDRINUSE
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, Self

from baton.infrastructure.files import sync

POLL_SECONDS = 0.02
OWNER_EXIT_SECONDS = 0.5  # how long an owner that was just killed may take to be gone
PR_SET_PDEATHSIG = 1
SHOWN_LENGTH = 1500  # of the output at its beginning, which names a panic, and at its end
START_ATTEMPTS = 5
# What a server says that lost a port, or that broke down for no fault of its settings, which it would name in an error.
TRANSIENT_SIGNS = ("address already in use", "failed to assign a free port", "panic: ", "fatal error: ")
LOG_BYTES, KEPT_LOGS = 16 * 2**20, 5
CLOCK_ERROR_SECONDS = 2.0  # how far off the start time of a process may be, as the system reports it

Escalation = Sequence[tuple[signal.Signals, float]]  # what stops a server, polite to final, with the seconds each may take


class StartError(Exception):
    """A server could not be started: a sentence on why and what to do, and the beginning and the end of its output."""

    def __init__(self, sentence: str, *, output: str = "") -> None:
        self.sentence = sentence
        self.output = output
        shown = output if len(output) <= 2 * SHOWN_LENGTH else f"{output[:SHOWN_LENGTH]}\n...\n{output[-SHOWN_LENGTH:]}"
        super().__init__(f"{sentence}\n{shown.strip()}".rstrip())


class EarlyEndError(StartError):
    """A server ended while it was starting; another attempt may succeed."""


class LogFile:
    """The log of a server over many starts, bounded in size; several older logs are kept. The server writes to the file
    itself, so that it never waits for a reader. Its owner copies and empties the file when it has grown large; what is
    written in the microseconds between the two is lost."""

    def __init__(self, path: Path, max_bytes: int = LOG_BYTES) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._begin = 0

    def begin(self) -> None:
        """Note where the output of the next process begins."""
        self.rotate()
        self._begin = self._size()

    def output(self) -> str:
        """Return what was written since `begin`."""
        with suppress(OSError), self.path.open("rb") as file:
            file.seek(self._begin if self._begin <= self._size() else 0)
            return file.read().decode(errors="replace")
        return ""

    def rotate(self) -> None:
        """Move the content to an older log if the file is too large; on a full disk leave it as it is."""
        if self._size() <= self._max_bytes:
            return
        copy = self._predecessor("new")
        try:
            with self.path.open("rb+") as file, open(copy, "wb", opener=_private) as older:
                shutil.copyfileobj(file, older)
                older.flush()
                for number in range(KEPT_LOGS - 1, 0, -1):
                    with suppress(FileNotFoundError):
                        self._predecessor(number).replace(self._predecessor(number + 1))
                copy.replace(self._predecessor(1))
                shutil.copyfileobj(file, older)
                file.truncate(0)
        except OSError:
            with suppress(OSError):
                copy.unlink()

    def _predecessor(self, number: int | str) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0


class SystemAccount(NamedTuple):
    """The system user that a child runs as."""

    uid: int
    gid: int


class OwnedDirectory:
    """A directory that belongs to one owner and one server at a time."""

    def __init__(self, directory: Path, server: str) -> None:
        self.directory = directory
        self.server = server
        self._owner_lock: int | None = None

    def acquire(self, stopping: Escalation) -> None:
        """Become the owner and shut others out; stop a server that a dead owner left behind; raise where one owns it."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            mode = self.directory.stat().st_mode
            if mode & stat.S_ISVTX:
                raise StartError(f"{self.directory} is shared with other users; choose a data directory below it.")
            if mode & 0o077:
                self.directory.chmod(0o700)
            lock = _open_lock(self.directory / "owner.lock")
        except OSError as error:
            fault = f"{self.server} cannot keep its data in {self.directory} ({error.strerror})"
            raise StartError(f"{fault}; choose another data directory.") from error
        if not wait_until(lambda: _try_lock(lock), OWNER_EXIT_SECONDS):
            fault = f"{self.directory} is in use by process {_pid_in(lock)}, which is still running"
            os.close(lock)
            raise StartError(f"{fault}; stop it first or choose another data directory.")
        _write_pid(lock, os.getpid())
        self._owner_lock = lock
        try:
            self._evict_orphan(stopping)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Give up the ownership."""
        if self._owner_lock is not None:
            os.close(self._owner_lock)
            self._owner_lock = None

    def server_lock(self) -> int:
        """Return the lock for a new server to inherit; the caller closes its own copy then."""
        lock = _open_lock(self.directory / "server.lock")
        if not _try_lock(lock):
            server = _pid_in(lock)
            os.close(lock)
            raise StartError(f"{self.server} (process {server}) still runs in {self.directory}; stop it first.")
        return lock

    def _evict_orphan(self, stopping: Escalation) -> None:
        lock = _open_lock(self.directory / "server.lock")
        try:
            for number, timeout in stopping:
                if _try_lock(lock):
                    return
                if _is_older_than(lock, pid := _pid_in(lock)):
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)
                wait_until(lambda: _try_lock(lock), timeout)
            if not _try_lock(lock):
                orphan = f"{self.server} (process {_pid_in(lock)})"
                raise StartError(f"{orphan} was left running in {self.directory}; end it first.")
        finally:
            os.close(lock)


class RunningProcess(ABC):
    """A process that this one had started, from then until after its end."""

    pid: int
    exit_code: int | None = None  # that of a process that has ended, negative for a signal; None where nobody could read it

    @abstractmethod
    def wait(self, timeout: float) -> bool:
        """Return whether the process has ended, at the latest after so many seconds."""

    def stop(self, stopping: Escalation) -> None:
        """Send one signal after the other until the process is gone."""
        for number, timeout in stopping:
            if self.wait(0):
                return
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
            self.wait(timeout)


class ChildProcess(RunningProcess):
    """A running child process in its own session, so that Ctrl-C does not reach it; it ends when this process ends. The
    death signal is tied to the thread that forked, so each child is forked by a thread of its own, which
    waits for it to end and so lives exactly as long."""

    def __init__(
        self,
        command: Sequence[str],
        owned: OwnedDirectory,
        directory: Path,
        log: Path,
        death_signal: signal.Signals,
        *,
        account: SystemAccount | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: Path | None = None,
        inherited: Sequence[int] = (),
    ) -> None:
        self._ended = threading.Event()
        started: Future[subprocess.Popen[bytes]] = Future()

        def run() -> None:
            try:
                with ExitStack() as files:
                    lock = owned.server_lock()
                    files.callback(os.close, lock)
                    process = subprocess.Popen(
                        command,
                        stdin=files.enter_context(stdin.open("rb")) if stdin else subprocess.DEVNULL,
                        stdout=files.enter_context(open_log(log)),
                        stderr=subprocess.STDOUT,
                        cwd=directory,
                        env={"PATH": os.defpath, **(environment or {})},
                        start_new_session=True,
                        pass_fds=(lock, *inherited),
                        user=account.uid if account else None,
                        group=account.gid if account else None,
                        extra_groups=() if account else None,
                        preexec_fn=tie_to_parent(os.getpid(), lock, death_signal),
                    )
            except BaseException as error:
                started.set_exception(error)
                return
            started.set_result(process)
            self.exit_code = process.wait()
            self._ended.set()

        threading.Thread(target=run, name=f"owner of {Path(command[0]).name}", daemon=True).start()
        try:
            self.pid = started.result().pid
        except (OSError, subprocess.SubprocessError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise StartError(f"{command[0]} could not be started in {directory} ({reason}).") from error

    def wait(self, timeout: float | None) -> bool:
        return self._ended.wait(timeout)


class ChildServer(ABC):
    """A server that owns a directory and, from start to stop, runs a child process there."""

    stopping: ClassVar[Escalation]

    def __init__(self, directory: Path, name: str, log: Path) -> None:
        self._owned = OwnedDirectory(directory, name)
        self._child: RunningProcess | None = None
        self.log = log
        self.log_file = LogFile(log)

    def start(self) -> Self:
        """Acquire the directory and start the process; raise StartError where that fails."""
        self._owned.acquire(self.stopping)
        try:
            self.log_file.begin()
            self._launch()
        except BaseException:
            self.stop()
            raise
        return self

    @abstractmethod
    def _launch(self) -> None:
        """Spawn the child process, and prepare what it serves."""

    def _spawn(self, command: Sequence[str], directory: Path, death_signal: signal.Signals, **options: Any) -> ChildProcess:
        """Start the child process of this server, once that of an earlier attempt is gone; it writes to the server's log."""
        self._end_process()
        self._child = child = ChildProcess(command, self._owned, directory, self.log, death_signal, **options)
        return child

    def _error(self, sentence: str) -> StartError:
        """Return an error with the output of the process."""
        return StartError(sentence, output=self.log_file.output())

    def stop(self) -> None:
        """Stop the process, which may finish its work within the time of the escalation, and release the directory."""
        self._end_process()
        self._child = None
        self._owned.release()

    def _end_process(self) -> None:
        if self._child is not None:
            self._child.stop(self.stopping)

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._child is not None and not self._child.wait(0)

    @property
    def end_text(self) -> str:
        """How the process ended, for messages."""
        if self._child is None:
            return "did not start"
        code = self._child.exit_code
        if code is None:
            return "with the process that forked it"
        if code >= 0:
            return f"exit code {code}"
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"

    @property
    def has_refused(self) -> bool:
        """Whether it ended because it must not run as configured, so that another attempt would fail too."""
        return False

    def start_failure(self) -> StartError:
        """Return the error of a process that ended while it was starting."""
        sentence = f"{self._owned.server} ended while it was starting ({self.end_text}); the end of {self.log} says why."
        return EarlyEndError(sentence, output=self.log_file.output())

    @property
    def pid(self) -> int | None:
        """The process id, from start to stop."""
        return self._child.pid if self._child else None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()


def tie_to_parent(parent: int, lock: int, death_signal: signal.Signals) -> Callable[[], None]:
    """Return what a child runs after it was forked, and after a change of user, which would undo the death signal."""
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    number = ctypes.c_ulong(death_signal)

    def tie() -> None:
        _write_pid(lock, os.getpid())
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(1)

    return tie


def available_ports(host: str, wanted: Mapping[str, int | None]) -> list[int]:
    """Return the wanted port of each purpose, or a free one where none is named; raise where one is in use."""
    with ExitStack() as held:
        ports = []
        for purpose, port in wanted.items():
            listener = held.enter_context(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((host, port or 0))
                listener.listen()
            except (OSError, OverflowError) as error:
                if isinstance(error, OSError) and error.errno == EADDRINUSE:
                    fault = f"Port {port} on {host} is in use, so {purpose} cannot listen there"
                    raise StartError(f"{fault}; stop the program that uses it or choose another port.") from error
                raise StartError(f"{purpose} cannot listen on {host} port {port}: {error}.") from error
            ports.append(int(listener.getsockname()[1]))
        return ports


def retry_start(start: Callable[[], None]) -> None:
    """Start; try again, with other ports, where another program took a free port before the server could listen on it, or
    where the server broke down."""
    for attempt in range(START_ATTEMPTS):
        try:
            return start()
        except StartError as error:
            transient = any(sign in error.output.lower() for sign in TRANSIENT_SIGNS)
            if attempt == START_ATTEMPTS - 1 or not transient:
                raise


def wait_until(condition: Callable[[], bool], timeout: float, pause: float = POLL_SECONDS) -> bool:
    """Return whether the condition became true within the timeout."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def program_of(pid: int) -> str | None:
    """Return the name of the program that runs under this process id, if any."""
    import psutil  # comes with the `embedded` extra

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else str(process.name())
    except psutil.Error:
        return None


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, and sync it to disk."""
    with open(path, "w", opener=_private) as file:
        file.write(text)
    sync(path)


def open_log(path: Path) -> BinaryIO:
    """Open a log that only its owner can read, to be written on at its end."""
    return open(path, "ab", opener=_private)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_older_than(lock: int, pid: int) -> bool:
    """Return whether this process wrote its id into the lock itself; a later one was given the same id by chance."""
    import psutil

    try:
        return bool(psutil.Process(pid).create_time() < os.fstat(lock).st_mtime + CLOCK_ERROR_SECONDS)
    except psutil.Error:
        return False


def _write_pid(lock: int, pid: int) -> None:
    os.pwrite(lock, b"%-10d\n" % pid, 0)


def _pid_in(lock: int) -> int:
    written = os.pread(lock, 20, 0).strip()
    return int(written) if written.isdigit() else 0
