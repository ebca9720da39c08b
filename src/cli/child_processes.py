"""Processes of the service as children, and restarting those and the embedded servers when they die."""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from baton.cli.embedded.process import ChildServer, EarlyEndError, Escalation, StartError
from baton.cli.startup import DATABASE_FAULT, MESSAGE_PREFIX

STOPPING: Escalation = ((signal.SIGTERM, 20.0), (signal.SIGKILL, 5.0))
MAX_STARTS = 4  # how often a server is started that ends before the stack is ready
SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
"""Seconds before a restart; doubled each time, until the server has lived for a while."""


class ServiceProcess(ChildServer):
    """One process of the service, in its own session and with its own log."""

    stopping = STOPPING

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        directory: Path,
        environment: Callable[[], Mapping[str, str]],
        inherited: Sequence[int] = (),
    ) -> None:
        super().__init__(directory / name, f"The {name}", directory / name / f"{name}.log")
        self._arguments = arguments
        self._environment = environment
        self._inherited = inherited

    def _launch(self) -> None:
        """Start the process, and do not wait until it is ready."""
        command = [sys.executable, "-P", *self._arguments]
        environment = {**os.environ, **self._environment()}
        self._spawn(command, Path.cwd(), signal.SIGTERM, environment=environment, inherited=self._inherited)

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
        self._begun = time.monotonic()
        self._due: float | None = None
        self._rotated = self._begun
        self.starts: int | None = None
        """How often it was restarted while the stack is starting; None once the stack is ready."""

    def check(self) -> None:
        """Restart the server if it died and its pause is over; raise where that failed too often during the start."""
        now = time.monotonic()
        if now - self._rotated > 1:
            self._rotated = now
            self.server.log_file.rotate()
        if self.server.running:
            return
        if self._due is None:
            self._limit_starts()
            self._pause = SHORTEST_PAUSE if now - self._begun > LONGEST_PAUSE else min(2 * self._pause, LONGEST_PAUSE)
            self._due = now + self._pause
            print(f"{self.name} ended unexpectedly ({self.server.end_text}); starting it again", file=sys.stderr, flush=True)
        if now < self._due:
            return
        self._begun, self._due = now, None
        try:
            self.server.stop()
            self.server.start()
        except StartError as error:
            print(f"{self.name} could not be started again: {error.sentence}", file=sys.stderr, flush=True)

    def _limit_starts(self) -> None:
        if self.starts is None:
            return
        self.starts += 1
        if self.server.has_refused or self.starts >= MAX_STARTS:
            raise self.server.start_failure()


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
