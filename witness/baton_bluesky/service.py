"""The service over HTTP, with the standard library: no redirects, verified certificates, bounded answers and waits."""

import http.client
import json
import os
import ssl
import threading
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from baton_bluesky.version import __version__

TIMEOUT_SECONDS = 5.0
MAX_ANSWER = 8 * 2**20  # Bytes.
USER_AGENT = f"baton-bluesky/{__version__}"


class NoServiceError(Exception):
    """The service does not answer, or not as the service."""


class HttpAnswer(NamedTuple):
    """An answer of the service."""

    status: int
    body: dict[str, Any]

    @property
    def sentence(self) -> str:
        """What it says, in one line."""
        said = self.body.get("detail") or self.body.get("code") or "no reason given"
        return f"{self.status}: {said}"[:500]


class BatonService:
    """A client of one service, with a connection for each thread; the token of a file is read for each request."""

    max_answer = MAX_ANSWER

    def __init__(self, address: str, token: str | None = None, timeout: float = TIMEOUT_SECONDS) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{address!r} is no address of a service; give one such as https://baton.example.org.")
        self.address = address
        self._token = token
        self._timeout = timeout
        self._is_secure = parts.scheme == "https"
        self._host, self._port, self._prefix = parts.hostname, parts.port, parts.path.rstrip("/")
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"BatonService({self.address!r})"

    def get(self, path: str, **parameters: str) -> HttpAnswer:
        """Ask a question."""
        return self.request("GET", f"{path}?{urlencode(parameters)}" if parameters else path)

    def post(self, path: str, body: dict[str, Any]) -> HttpAnswer:
        """Give a command."""
        return self.request("POST", path, body)

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> HttpAnswer:
        """Send a request and return its answer; a connection that the service had closed is opened once more."""
        content = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        headers = {"Accept": "application/json", "User-Agent": USER_AGENT, **self.credentials()}
        if content is not None:
            headers["Content-Type"] = "application/json"
        kept: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        for connection in (kept, None) if kept is not None else (None,):
            try:
                return self._exchange(connection or self._connect(), method, path, content, headers)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.disconnect()
                is_stale = isinstance(error, ConnectionError | http.client.BadStatusLine | http.client.CannotSendRequest)
                if connection is None or not is_stale:
                    raise NoServiceError(f"{type(error).__name__}: {error}"[:500]) from error
        raise AssertionError("the second attempt answers or raises")

    def credentials(self) -> dict[str, str]:
        """Return the headers that say who asks."""
        return credentials(self._token)

    def listen(self, path: str) -> http.client.HTTPConnection:
        """Return the connection over which an answer without an end has begun to come; it is the caller's to close."""
        connection = self._connect()
        self._local.connection = None
        try:
            connection.connect()
            headers = {"User-Agent": USER_AGENT, **self.credentials()}
            connection.request("GET", quote(self._prefix) + path, headers=headers)
            # The socket is the connection's, whatever the response makes of an answer without a length.
            sock, status = connection.sock, connection.getresponse().status
            connection.sock = sock
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise NoServiceError(f"{type(error).__name__}: {error}"[:500]) from error
        if status != 200:
            connection.close()
            raise NoServiceError(f"The stream is answered with {status}.")
        return connection

    def disconnect(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
        self._local.connection = None

    def _connect(self) -> http.client.HTTPConnection:
        if self._is_secure:
            context = ssl.create_default_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout, context=context
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        self._local.connection = connection
        return connection

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, content: bytes | None, headers: dict[str, str]
    ) -> HttpAnswer:
        connection.request(method, quote(self._prefix) + path, content, headers)
        response = connection.getresponse()
        text = response.read(self.max_answer + 1)
        if len(text) > self.max_answer:
            raise ValueError(f"the answer has more than {self.max_answer:,} bytes")
        if 300 <= response.status < 400:
            raise ValueError(f"it answers with a redirect to {response.headers.get('Location')}, which is not followed")
        try:
            body = json.loads(text) if text else {}
        except ValueError:
            body = {"detail": text[:200].decode(errors="replace")}
        return HttpAnswer(response.status, body if isinstance(body, dict) else {"items": body})


def credentials(token: str | None) -> dict[str, str]:
    """Return the headers that say who asks: a bearer token, or the principal of a service that requires none."""
    if (secret := read_token(token)) is not None:
        return {"Authorization": f"Bearer {secret}"}
    principal = os.environ.get("BATON_PRINCIPAL_ID")
    return {"X-Principal-Id": principal} if principal else {}


def read_token(name: str | None) -> str | None:
    """Return the token of an environment variable or a file of this name; by default those that the environment names."""
    if name is None:
        name = os.environ.get("BATON_TOKEN_FILE") or "BATON_TOKEN"
    if (secret := os.environ.get(name)) is not None:
        return secret.strip() or None
    try:
        return Path(name).read_text().strip() or None
    except (OSError, ValueError):
        return None
