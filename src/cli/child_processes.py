"""What `baton up` keeps running: our own processes, and the servers beside them."""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from baton.cli.embedded.process import Child, EarlyEndError, Escalation, Server, StartError
from baton.cli.startup_errors import NO_DATABASE, SPOKEN

STOPPING: Escalation = ((signal.SIGTERM, 20.0), (signal.SIGKILL, 5.0))
MOST_STARTS = 4
"""How often something is started that ends before everything is up."""
ROTATE_INTERVAL = 1.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
"""Seconds before something that died is started again; twice as long each time, until it has lived for a while."""


class Piece(Server):
    """One process of the service, in a session of its own and with a log of its own."""

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

    def start(self) -> Self:
        """Start the process; whether it comes up is seen later."""
        self._premises.take(STOPPING)
        self.log_file.begin()
        self._child = Child(
            [sys.executable, "-P", *self._arguments],
            premises=self._premises,
            directory=Path.cwd(),
            log=self.log,
            death_signal=signal.SIGTERM,
            environment={**os.environ, **self._environment()},
            inherited=self._inherited,
        )
        return self

    @property
    def refused(self) -> bool:
        """Whether it said itself why it does not run; that it does not reach its database may pass."""
        return bool(spoken := self._spoken()) and not spoken[0].startswith(NO_DATABASE)

    def objection(self) -> StartError:
        """Why it ended: its own sentences, or the end of its log."""
        return StartError("\n".join(spoken)) if (spoken := self._spoken()) else super().objection()

    def _spoken(self) -> list[str]:
        return [line.removeprefix(SPOKEN) for line in self.log_file.said().splitlines() if line.startswith(SPOKEN)]


class Keeper:
    """Starts a server again when it died: for ever, or a few times while everything is coming up."""

    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self.server = server
        self._pause = SHORTEST_PAUSE
        self._begun = time.monotonic()
        self._due: float | None = None
        self._rotated = self._begun
        self.starts: int | None = None
        """How often it was started while everything is coming up; None where that does not matter any more."""

    def look(self) -> None:
        """See whether the server lives, and start it again when its time has come; raises where that was in vain."""
        now = time.monotonic()
        if now - self._rotated > ROTATE_INTERVAL:
            self._rotated = now
            self.server.log_file.rotate()
        if self.server.running:
            return
        if self._due is None:
            self._give_up_in_time()
            self._pause = SHORTEST_PAUSE if now - self._begun > LONGEST_PAUSE else min(2 * self._pause, LONGEST_PAUSE)
            self._due = now + self._pause
            print(f"{self.name} ended unexpectedly ({self.server.ending}); starting it again", file=sys.stderr, flush=True)
        if now < self._due:
            return
        self._begun, self._due = now, None
        try:
            self.server.stop()
            self.server.start()
        except StartError as error:
            print(f"{self.name} could not be started again: {error.sentence}", file=sys.stderr, flush=True)

    def _give_up_in_time(self) -> None:
        if self.starts is None:
            return
        self.starts += 1
        if self.server.refused or self.starts >= MOST_STARTS:
            raise self.server.objection()


def start_again(name: str, server: Server) -> None:
    """Start a server, and again if it ends before it is ready, a few times in all."""
    for attempt in range(1, MOST_STARTS):
        try:
            server.start()
            return
        except EarlyEndError as error:
            print(f"{name}: {error.sentence} Starting it again.", file=sys.stderr, flush=True)
            time.sleep(SHORTEST_PAUSE * 2**attempt)
    server.start()
