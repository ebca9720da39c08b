"""Word of which open runs are Held: asked for each second, and as soon as the stream of events says that something changed.

The record answers, the stream only wakes: a stream that is denied, cut off or slow costs at most a second.
"""

import contextlib
import http.client
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from baton_bluesky.service import BatonService, HttpAnswer, NoServiceError

ASK_SECONDS = 1.0
NOT_KNOWN_SECONDS = 3.0
"""Without word for so long, nobody knows whether a run is Held."""
REOPEN_SECONDS = 10.0  # Between two attempts to open the stream.
HELD = "Held"


CHANGES = f"/events/stream?event_type=RunHeld&event_type=RunResumed&after={2**63 - 1}"  # From now on.


class Hold(NamedTuple):
    """Why a run is Held, as the person wrote it."""

    reason: str


@dataclass(frozen=True)
class RunWord:
    """The last word about a run, and when it came."""

    hold: Hold | None
    at: float


class EventWake:
    """A stream of events of which nothing is read but that something came."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection

    def wait(self, seconds: float) -> bool:
        """Wait until something came, for a while at most; return whether the stream is still there."""
        try:
            readable, _, _ = select.select([self._connection.sock], [], [], seconds)
            return not readable or bool(self._connection.sock.recv(65536))
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class HoldWatch:
    """Asks whether open runs are Held, in a thread that lives while there are any."""

    def __init__(self, service: BatonService, tell: Callable[[str], None]) -> None:
        self._service, self._tell = service, tell
        self._lock = threading.Lock()
        self._words: dict[str, RunWord] = {}
        self._listeners: dict[str, Callable[[Hold], None]] = {}
        self._thread: threading.Thread | None = None
        self._told: str | None = None

    def add(self, run_id: str, on_hold: Callable[[Hold], None]) -> None:
        """Ask about a run from now on, and call a function when it becomes Held."""
        with self._lock:
            self._words[run_id] = RunWord(None, time.monotonic())
            self._listeners[run_id] = on_hold
            if self._thread is None:
                self._thread = threading.Thread(target=self._ask_while_open, name="baton-gate", daemon=True)
                self._thread.start()

    def remove(self, run_id: str) -> None:
        """Ask no more about a run."""
        with self._lock:
            self._words.pop(run_id, None)
            self._listeners.pop(run_id, None)

    def hold_of(self, run_id: str) -> Hold | None:
        """Return why a run is Held, by the last word: a hold stays in force until the service says that it is over."""
        word = self._words.get(run_id)
        return None if word is None else word.hold

    def is_known(self, run_id: str) -> bool:
        """Return whether word of a run came within three seconds."""
        word = self._words.get(run_id)
        return word is not None and time.monotonic() - word.at <= NOT_KNOWN_SECONDS

    def _ask_while_open(self) -> None:
        wake, opened_at = None, float("-inf")
        while True:
            with self._lock:
                open_runs = list(self._words)
                if not open_runs:
                    self._thread = None
                    break
            for run_id in open_runs:
                self._ask(run_id)
            if wake is None and time.monotonic() - opened_at > REOPEN_SECONDS:
                wake, opened_at = self._open_stream(), time.monotonic()
            if wake is None:
                time.sleep(ASK_SECONDS)
            elif not wake.wait(ASK_SECONDS):
                wake.close()
                wake = None
        if wake is not None:
            wake.close()

    def _ask(self, run_id: str) -> None:
        try:
            answer = self._service.get(f"/runs/{run_id}")
        except NoServiceError as error:
            answer = HttpAnswer(503, {"detail": str(error)})
        if answer.status == 404:
            hold = None  # Its witness has not recorded it yet.
        elif answer.status == 200:
            hold = Hold(str(answer.body.get("last_hold_reason") or "")) if answer.body.get("status") == HELD else None
        else:
            if not self.is_known(run_id):
                why = f"Baton does not say whether the run is Held ({answer.sentence})."
                self._tell_once(f"{why} No scan is stopped for that, and one that is Held waits on.")
            return
        self._told = None
        with self._lock:
            if (word := self._words.get(run_id)) is None:
                return
            self._words[run_id] = RunWord(hold, time.monotonic())
            listener = self._listeners[run_id] if hold is not None and word.hold is None else None
        if listener is not None and hold is not None:
            listener(hold)

    def _open_stream(self) -> EventWake | None:
        with contextlib.suppress(NoServiceError, OSError):
            return EventWake(self._service.listen(CHANGES))
        return None

    def _tell_once(self, sentence: str) -> None:
        if self._told is None:
            self._tell(sentence)
        self._told = sentence
