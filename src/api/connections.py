"""Connections that clients cannot keep for nothing: requests arrive in time, and answers are taken, or the line is cut."""

import asyncio
from typing import Any

import orjson
import uuid_utils.compat
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from baton.api.errors import RequestTimeoutError, error_body
from baton.api.metrics import observe

LOOKS = 4
"""How often a connection is looked at within its limit."""


class TimedConnection(HttpToolsProtocol):
    """A connection whose client has so many seconds to send a request as a whole, and to take up any of what is sent."""

    limit: float = 30.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._reading_since: float | None = self.loop.time()
        self._stalled_since: float | None = None
        self._unsent = 0
        self._timer = self.loop.call_later(self.limit / LOOKS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._reading_since = self.loop.time()
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._reading_since = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        self._stalled_since, self._unsent = self.loop.time(), self.transport.get_write_buffer_size()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stalled_since = None
        super().resume_writing()

    def _look(self) -> None:
        """Cut the line of a client that is late; otherwise look again."""
        if self._is_stalled():
            self.transport.abort()
        elif self._is_late():
            self._send_timeout()
        else:
            self._timer = self.loop.call_later(self.limit / LOOKS, self._look)

    def _is_stalled(self) -> bool:
        """Whether the client has taken nothing of what waits for it for too long."""
        if self._stalled_since is None:
            return False
        if (unsent := self.transport.get_write_buffer_size()) < self._unsent:
            self._stalled_since, self._unsent = self.loop.time(), unsent
        return self.loop.time() - self._stalled_since >= self.limit

    def _is_late(self) -> bool:
        """Whether the client has not sent the rest of its request for too long; it cannot while nobody reads it here."""
        if self._reading_since is None or self.loop.time() - self._reading_since < self.limit:
            return False
        answering = self.cycle is not None and not self.cycle.response_complete
        if self.flow.read_paused or (answering and not self.cycle.more_body):
            self._reading_since = self.loop.time()
            return False
        return True

    def _send_timeout(self) -> None:
        """Say why, unless an answer has begun, and close."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            refusal = RequestTimeoutError(
                f"The request did not arrive within {self.limit:g} s; send it without pauses, or have "
                "CLIENT_TIMEOUT_SECONDS raised."
            )
            body = orjson.dumps(error_body(refusal, "edge", uuid_utils.compat.uuid7()))
            head = b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % len(body)
            self.transport.write(head + b"x-content-type-options: nosniff\r\nconnection: close\r\n\r\n" + body)
            observe("unrouted", refusal.status, self.limit)
        self.transport.close()


def timed_connection(seconds: float) -> Any:
    """The kind of connection that has this limit, for a server to make."""
    return type("LimitedConnection", (TimedConnection,), {"limit": seconds})
