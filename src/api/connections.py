"""HTTP connections with time limits: a client that sends or reads too slowly is disconnected."""

import asyncio
from typing import Any

import orjson
import uuid_utils.compat
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from baton.api.errors import PROBLEM, RequestTimeoutError, error_body
from baton.api.http import STANDARD_HEADERS
from baton.api.metrics import observe

CHECKS_PER_LIMIT = 4
LINGER_SECONDS = 2.0  # for the client to read a refusal while it is still sending
KEEP_ALIVE_SECONDS = 75
"""How long an idle connection stays open: far longer than the Python client keeps it (5 s). Were it as long, or shorter than
a pause of this process, a connection would be closed while a request already waits in it."""


class TimedConnection(HttpToolsProtocol):
    """A connection whose client has `limit` seconds to send a whole request, and to read some of what waits for it."""

    limit: float = 30.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._reading_since: float | None = self.loop.time()
        self._stalled_since: float | None = None
        self._unsent = 0
        self._refused = False
        self._timer = self.loop.call_later(self.limit / CHECKS_PER_LIMIT, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)

    def on_message_begin(self) -> None:
        self._reading_since = self.loop.time()
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._reading_since = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        self._stalled_since = self.loop.time()
        self._unsent = self.transport.get_write_buffer_size()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stalled_since = None
        super().resume_writing()

    def _check(self) -> None:
        """Disconnect a client that is late; otherwise check again later."""
        if self._is_stalled():
            self.transport.abort()
        elif self._is_late():
            self._send_timeout()
        else:
            self._timer = self.loop.call_later(self.limit / CHECKS_PER_LIMIT, self._check)

    def _is_stalled(self) -> bool:
        """Return whether the client has read nothing for too long while data wait for it."""
        if self._stalled_since is None:
            return False
        if (unsent := self.transport.get_write_buffer_size()) < self._unsent:
            self._stalled_since = self.loop.time()
            self._unsent = unsent
        return self.loop.time() - self._stalled_since >= self.limit

    def _is_late(self) -> bool:
        """Return whether the rest of a request is overdue; time in which this side does not read does not count."""
        if self._reading_since is None or self.loop.time() - self._reading_since < self.limit:
            return False
        answering = self.cycle is not None and not self.cycle.response_complete
        if self.flow.read_paused or (answering and not self.cycle.more_body):
            self._reading_since = self.loop.time()
            return False
        return True

    def _send_timeout(self) -> None:
        """Answer 408 and close; where a response has begun, only close.

        What still arrives is dropped for a while first: closing on it would reset the connection before the answer is read.
        """
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            remedy = "send it without pauses, or have CLIENT_TIMEOUT_SECONDS raised"
            refusal = RequestTimeoutError(f"The request did not arrive within {self.limit:g} s; {remedy}.")
            body = orjson.dumps(error_body(refusal, "edge", uuid_utils.compat.uuid7()))
            headers = [*STANDARD_HEADERS, (b"content-type", PROBLEM), (b"connection", b"close")]
            lines = b"".join(b"%b: %b\r\n" % header for header in [*headers, (b"content-length", b"%d" % len(body))])
            self.transport.write(b"HTTP/1.1 408 Request Timeout\r\n%b\r\n%b" % (lines, body))
            observe("unrouted", refusal.status, self.limit)
            self._refused = True
            self.transport.write_eof()
            self._timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)
        else:
            self.transport.close()


def timed_connection(seconds: float) -> Any:
    """Return the protocol class with this limit, for uvicorn."""
    return type("LimitedConnection", (TimedConnection,), {"limit": seconds})
