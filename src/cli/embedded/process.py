"""A server as a child process: what keeps it from outliving us and from sharing its directory with another.

Two locks guard a directory. `owner.lock` is held by the process that started the server; `server.lock` is inherited by
the server and everything it forks. The kernel drops a lock with its last holder, however that died, so no stale file can
mislead the next start: an owner means hands off, a server without an owner is an orphan and is stopped first.
"""

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
from types import TracebackType
from typing import ClassVar, NamedTuple, Self

from baton.infrastructure.files import sync

PAUSE = 0.02
"""Seconds between two looks at a condition."""
LAST_BREATH = 0.5
"""Seconds that an owner who was just killed may take to be gone."""
PR_SET_PDEATHSIG = 1
TAIL_LENGTH = 3000
LOG_BYTES, LOG_PREDECESSORS = 16 * 2**20, 5
"""How large a log may grow, and how many of those before it are kept."""
CLOCK_ERROR = 2.0
"""Seconds by which the start time of a process, as the system reports it, may be off."""

Escalation = Sequence[tuple[signal.Signals, float]]
"""Signals that stop a server, from polite to final, each with the seconds it may take."""


class StartError(Exception):
    """A server could not be started: one sentence on why and what to do, and the end of what it said, if anything."""

    def __init__(self, sentence: str, *, said: str = "") -> None:
        self.sentence = sentence
        self.said = said
        tail = said[-TAIL_LENGTH:].strip()
        super().__init__(f"{sentence}\n{tail}" if tail else sentence)


class EarlyEndError(StartError):
    """A server ended while it was starting; another attempt may succeed."""


class LogFile:
    """The log of a server over many starts. It is bounded, and several before it are kept.

    The server writes to its end itself, so that nobody it would have to wait for stands between. When the file has grown
    large its owner copies it and empties it; what is written between the two, a few microseconds, is lost.
    """

    def __init__(self, path: Path, most_bytes: int = LOG_BYTES) -> None:
        self.path = path
        self._most_bytes = most_bytes
        self._begin = 0

    def begin(self) -> None:
        """Note where the next process begins to write."""
        self.rotate()
        self._begin = self._size()

    def said(self) -> str:
        """What was written since."""
        with suppress(OSError), self.path.open("rb") as file:
            file.seek(self._begin if self._begin <= self._size() else 0)
            return file.read().decode(errors="replace")
        return ""

    def rotate(self) -> None:
        """Empty the file if it has grown too large, and keep what it held; a full disk leaves it as it is."""
        if self._size() <= self._most_bytes:
            return
        copy = self._predecessor("new")
        try:
            with self.path.open("rb+") as file, open(copy, "wb", opener=_private) as kept:
                shutil.copyfileobj(file, kept)
                kept.flush()
                for number in range(LOG_PREDECESSORS - 1, 0, -1):
                    with suppress(FileNotFoundError):
                        self._predecessor(number).replace(self._predecessor(number + 1))
                copy.replace(self._predecessor(1))
                shutil.copyfileobj(file, kept)
                file.truncate(0)
        except OSError:
            with suppress(OSError):
                copy.unlink()

    def _predecessor(self, number: int | str) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0


class Account(NamedTuple):
    """The system user a child runs as."""

    uid: int
    gid: int


class Premises:
    """A directory that belongs to one server and one owner at a time."""

    def __init__(self, directory: Path, server: str) -> None:
        self.directory = directory
        self.server = server
        self._owner_lock: int | None = None

    def take(self, stopping: Escalation) -> None:
        """Become the owner, or say who is; a server left behind by a dead owner is stopped."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._close_to_others()
            lock = _opened(self.directory / "owner.lock")
        except OSError as error:
            raise StartError(
                f"{self.server} cannot keep its data in {self.directory} ({error.strerror}); choose another data directory."
            ) from error
        if not wait_until(lambda: _locked(lock), LAST_BREATH):
            owner = _pid_in(lock)
            os.close(lock)
            raise StartError(
                f"{self.directory} is in use by process {owner}, which is still running; "
                f"stop it first or choose another data directory."
            )
        _write_pid(lock, os.getpid())
        self._owner_lock = lock
        try:
            self._evict_orphan(stopping)
        except BaseException:
            self.leave()
            raise

    def _close_to_others(self) -> None:
        """Let nobody but its user enter the directory, whoever made it."""
        mode = self.directory.stat().st_mode
        if mode & stat.S_ISVTX:
            raise StartError(f"{self.directory} is shared with other users; choose a data directory below it.")
        if mode & 0o077:
            self.directory.chmod(0o700)

    def leave(self) -> None:
        """Let others have the directory."""
        if self._owner_lock is not None:
            os.close(self._owner_lock)
            self._owner_lock = None

    def server_lock(self) -> int:
        """The lock a new server is to inherit; whoever asked closes it once the server has it."""
        lock = _opened(self.directory / "server.lock")
        if not _locked(lock):
            server = _pid_in(lock)
            os.close(lock)
            raise StartError(f"{self.server} (process {server}) still runs in {self.directory}; stop it first.")
        return lock

    def _evict_orphan(self, stopping: Escalation) -> None:
        lock = _opened(self.directory / "server.lock")
        try:
            for number, patience in stopping:
                if _locked(lock):
                    return
                if _is_older_than(lock, pid := _pid_in(lock)):
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)
                wait_until(lambda: _locked(lock), patience)
            if not _locked(lock):
                raise StartError(
                    f"{self.server} (process {_pid_in(lock)}) was left running in {self.directory}; end it first."
                )
        finally:
            os.close(lock)


class Child:
    """A running server: in its own session, so that Ctrl-C reaches us alone, and gone when we are gone.

    The death signal is tied to the thread that forked. Each child is therefore forked by a thread of its own, which
    then waits for it to end and so lives exactly as long.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        premises: Premises,
        directory: Path,
        log: Path,
        death_signal: signal.Signals,
        account: Account | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: Path | None = None,
        inherited: Sequence[int] = (),
    ) -> None:
        self.ended = threading.Event()
        born: Future[subprocess.Popen[bytes]] = Future()

        def live() -> None:
            try:
                with ExitStack() as files:
                    lock = premises.server_lock()
                    files.callback(os.close, lock)
                    output = files.enter_context(open(log, "ab", opener=_private))
                    process = subprocess.Popen(
                        command,
                        stdin=files.enter_context(stdin.open("rb")) if stdin else subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        cwd=directory,
                        env={"PATH": os.defpath, **(environment or {})},
                        start_new_session=True,
                        pass_fds=(lock, *inherited),
                        user=account.uid if account else None,
                        group=account.gid if account else None,
                        extra_groups=() if account else None,
                        preexec_fn=_tied_to(os.getpid(), lock, death_signal),
                    )
            except BaseException as error:
                born.set_exception(error)
                return
            born.set_result(process)
            process.wait()
            self.ended.set()

        threading.Thread(target=live, name=f"owner of {Path(command[0]).name}", daemon=True).start()
        try:
            self._process = born.result()
        except (OSError, subprocess.SubprocessError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise StartError(f"{command[0]} could not be started in {directory} ({reason}).") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode if self.ended.is_set() else None

    @property
    def ending(self) -> str:
        """How it ended, for people."""
        code = self.exit_code
        if code is None or code >= 0:
            return f"exit code {code}"
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"

    def stop(self, stopping: Escalation) -> None:
        """Send one signal after the other until the process is gone."""
        for number, patience in stopping:
            if self.ended.is_set():
                return
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
            self.ended.wait(patience)


class Server(ABC):
    """Whoever has a directory to itself and, from start to stop, a child process that works there."""

    stopping: ClassVar[Escalation]
    """How it is stopped."""

    def __init__(self, directory: Path, name: str, log: Path) -> None:
        self._premises = Premises(directory, name)
        self._child: Child | None = None
        self.log = log
        self.log_file = LogFile(log)

    @abstractmethod
    def start(self) -> Self:
        """Take the directory and start the process; raises StartError."""

    def stop(self) -> None:
        """Let the process finish what it does, within its time, and let others have the directory."""
        if self._child is not None:
            self._child.stop(self.stopping)
            self._child = None
        self._premises.leave()

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._child is not None and not self._child.ended.is_set()

    @property
    def ending(self) -> str:
        """How the process ended, for people."""
        return self._child.ending if self._child is not None else "did not start"

    @property
    def refused(self) -> bool:
        """Whether it ended because it must not run as things are; another attempt would end likewise."""
        return False

    def objection(self) -> StartError:
        """Why it ended while it was starting."""
        return EarlyEndError(
            f"{self._premises.server} ended while it was starting ({self.ending}); the end of {self.log} says why.",
            said=self.log_file.said(),
        )

    @property
    def pid(self) -> int | None:
        """The number of the process, from start to stop."""
        return self._child.pid if self._child else None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def _tied_to(parent: int, lock: int, death_signal: signal.Signals) -> Callable[[], None]:
    """What the child does between fork and exec; it runs after the change of user, which would undo the death signal."""
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
    """The wanted port of each purpose, if it is free, or any free one where none is named."""
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
                    raise StartError(
                        f"Port {port} on {host} is in use, so {purpose} cannot listen there; "
                        f"stop the program that uses it or choose another port."
                    ) from error
                raise StartError(f"{purpose} cannot listen on {host} port {port}: {error}.") from error
            ports.append(int(listener.getsockname()[1]))
        return ports


def starting_again_if_a_port_is_lost(start: Callable[[], None]) -> None:
    """Start; and choose ports anew if another program took a free one before the server could listen on it."""
    for _ in range(2):
        try:
            return start()
        except StartError as error:
            if not _is_for_a_port(error):
                raise
    return start()


def _is_for_a_port(error: StartError) -> bool:
    """Whether a port was taken; some servers say so first and a great deal afterwards."""
    return "address already in use" in error.said.lower()


def wait_until(condition: Callable[[], bool], patience: float, pause: float = PAUSE) -> bool:
    """Whether the condition came true within so many seconds."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def program_of(pid: int) -> str | None:
    """The name of the program that runs under this process id, if any."""
    import psutil  # comes with the `embedded` extra

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else str(process.name())
    except psutil.Error:
        return None


def write_private(path: Path, text: str) -> None:
    """Write a file that only we can read, and see it safely to disk."""
    with open(path, "w", opener=_private) as file:
        file.write(text)
    sync(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_older_than(lock: int, pid: int) -> bool:
    """Whether this process wrote its number into the lock itself; a later one was merely given the same number."""
    import psutil

    try:
        return bool(psutil.Process(pid).create_time() < os.fstat(lock).st_mtime + CLOCK_ERROR)
    except psutil.Error:
        return False


def _write_pid(lock: int, pid: int) -> None:
    os.pwrite(lock, b"%-10d\n" % pid, 0)


def _pid_in(lock: int) -> int:
    written = os.pread(lock, 20, 0).strip()
    return int(written) if written.isdigit() else 0
