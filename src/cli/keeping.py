"""What `baton up` keeps running: our own processes, and the servers beside them."""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from cli.embedded.process import Child, Escalation, Server, StartError, rotated
from cli.refusing import SPOKEN

STOPPING: Escalation = ((signal.SIGTERM, 20.0), (signal.SIGKILL, 5.0))
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
        super().__init__(directory / name, f"The {name}")
        self.log = directory / name / f"{name}.log"
        self._name = name
        self._arguments = arguments
        self._environment = environment
        self._inherited = inherited

    def start(self) -> Self:
        """Start the process; whether it comes up is seen later."""
        self._premises.take(STOPPING)
        rotated(self.log)
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

    def objection(self) -> StartError:
        """Why it ended: its own sentences, or the end of its log."""
        spoken = [line.removeprefix(SPOKEN) for line in self.log.read_text().splitlines() if line.startswith(SPOKEN)]
        if spoken:
            return StartError("\n".join(spoken))
        return StartError(f"The {self._name} ended while it was starting; the end of {self.log} says why.", log=self.log)


class Keeper:
    """Starts a server again when it died."""

    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self.server = server
        self._pause = SHORTEST_PAUSE
        self._begun = time.monotonic()
        self._due: float | None = None

    def look(self) -> None:
        """See whether the server lives, and start it again when its time has come."""
        now = time.monotonic()
        if self.server.running:
            return
        if self._due is None:
            self._pause = SHORTEST_PAUSE if now - self._begun > LONGEST_PAUSE else min(2 * self._pause, LONGEST_PAUSE)
            self._due = now + self._pause
            print(f"{self.name} ended unexpectedly; starting it again", file=sys.stderr, flush=True)
        if now < self._due:
            return
        self._begun, self._due = now, None
        try:
            self.server.stop()
            self.server.start()
        except StartError as error:
            print(f"{self.name} could not be started again: {error.sentence}", file=sys.stderr, flush=True)
