"""A real identity provider on loopback: it publishes keys, mints tokens and answers introspection, or misbehaves.

with Issuer.running_server() as issuer:
    provider = issuer.provider(subject_bindings=[{"subject": "mira-77", "actor_id": MIRA}])
    token = issuer.token("mira-77", audience=HTTP_AUDIENCE)
"""

import asyncio
import base64
import json
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import unquote_plus

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from baton.application.identity import IdentityProvider
from baton.domain.trust.surface import SYSTEM_HTTP, SYSTEM_MCP_STREAMABLE_HTTP

HTTP_AUDIENCE = "https://baton.example.org"
MCP_AUDIENCE = "https://baton.example.org/mcp"
CLIENT_ID = "baton+service"
CLIENT_SECRET = "s3cret: with / odd % characters"


@dataclass(frozen=True)
class SigningKey:
    """A private key and the id it is published under."""

    key_id: str
    private: Any
    algorithm: str

    @classmethod
    def elliptic(cls) -> Self:
        return cls(secrets.token_hex(8), ec.generate_private_key(ec.SECP256R1()), "ES256")

    @classmethod
    def rsa(cls, algorithm: str = "RS256", bits: int = 2048) -> Self:
        return cls(secrets.token_hex(8), rsa.generate_private_key(65537, bits), algorithm)

    def public_key(self) -> dict[str, Any]:
        """The public half, as a key set shows it."""
        family = jwt.get_algorithm_by_name(self.algorithm)
        return {**family.to_jwk(self.private.public_key(), as_dict=True), "kid": self.key_id, "use": "sig"}


class Issuer:
    """One identity provider with its own port; `reset` makes it well-behaved again."""

    def __init__(self) -> None:
        self.port = 0
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._speaking = threading.Event()
        self.reset()

    @classmethod
    @contextmanager
    def running_server(cls) -> Iterator[Self]:
        issuer = cls()
        issuer.start()
        try:
            yield issuer
        finally:
            issuer.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reset(self) -> None:
        """A fresh key, no memory, correct and prompt answers."""
        self.key = SigningKey.elliptic()
        self.published = [self.key]
        self.answers: dict[str, dict[str, Any]] = {}
        self.key_set_requests = 0
        self.introspections: list[dict[str, str]] = []
        self.instead: Response | None = None
        self._speaking.set()

    def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(
            Starlette(routes=self.routes()), log_config=None, lifespan="off", timeout_graceful_shutdown=1, ws="none"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()
        wait_until(lambda: self._server is not None and self._server.started)

    def routes(self) -> list[Route]:
        """Return what it serves."""
        return [
            Route("/keys", self._keys),
            Route("/introspect", self._introspect, methods=["POST"]),
            Route("/moved/keys", self._key_set),
            Route("/moved/introspect", self._answer, methods=["POST"]),
        ]

    def stop(self) -> None:
        """Go down: from now on connections are refused."""
        self._speaking.set()
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(10)
            assert not self._thread.is_alive(), "the issuer did not stop"

    def silence(self) -> None:
        """Accept requests but answer none until `speak`."""
        self._speaking.clear()

    def speak(self) -> None:
        self._speaking.set()

    def rotate(self) -> SigningKey:
        """Sign with a new key from now on; the old one is no longer published."""
        self.key = SigningKey.elliptic()
        self.published = [self.key]
        return self.key

    def provider(self, **changes: Any) -> IdentityProvider:
        """How a deployment configures this issuer by its key set."""
        return self._settings({"jwks_url": f"{self.url}/keys", "allow_insecure_jwks_url": True}, changes)

    def asked_provider(self, **changes: Any) -> IdentityProvider:
        """How a deployment configures this issuer by introspection."""
        introspection = {
            "introspection_url": f"{self.url}/introspect",
            "introspection_client_id": CLIENT_ID,
            "introspection_client_secret": CLIENT_SECRET,
            "allow_insecure_introspection_url": True,
        }
        return self._settings(introspection, changes)

    def _settings(self, fields: dict[str, Any], changes: dict[str, Any]) -> IdentityProvider:
        audiences = {SYSTEM_HTTP: HTTP_AUDIENCE, SYSTEM_MCP_STREAMABLE_HTTP: MCP_AUDIENCE}
        return IdentityProvider.model_validate({"issuer": self.url, "audiences": audiences, **fields, **changes})

    def token(
        self,
        subject: str = "mira-77",
        *,
        audience: Any = HTTP_AUDIENCE,
        key: SigningKey | None = None,
        header: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """A signed access token; a claim or header given as None is left out."""
        now, signer = int(time.time()), key or self.key
        said = {"iss": self.url, "sub": subject, "aud": audience, "iat": now, "exp": now + 300, **claims}
        shown = {"typ": "at+jwt", "alg": signer.algorithm, "kid": signer.key_id, **(header or {})}
        signing_input = f"{encode_part(_without_none(shown))}.{encode_part(_without_none(said))}"
        family = jwt.get_algorithm_by_name(signer.algorithm)
        return f"{signing_input}.{base64url(family.sign(signing_input.encode(), signer.private))}"

    def opaque_token(self, subject: str | None = "mira-77", **answer: Any) -> str:
        """A token without readable content, and what introspection will answer about it."""
        token = secrets.token_urlsafe(24)
        self.answers[token] = _without_none({"active": True, "sub": subject, **answer})
        return token

    async def _keys(self, request: Request) -> Response:
        self.key_set_requests += 1
        return await self._in_its_manner(await self._key_set(request))

    async def _key_set(self, request: Request) -> Response:
        return JSONResponse({"keys": [key.public_key() for key in self.published]})

    async def _introspect(self, request: Request) -> Response:
        self.introspections.append({name: str(value) for name, value in (await request.form()).items()})
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        pair = tuple(unquote_plus(half) for half in base64.b64decode(credentials).decode().split(":", 1))
        if scheme != "Basic" or pair != (CLIENT_ID, CLIENT_SECRET):
            return Response(status_code=401)
        return await self._in_its_manner(await self._answer(request))

    async def _answer(self, request: Request) -> Response:
        return JSONResponse(self.answers.get(str((await request.form())["token"]), {"active": False}))

    async def _in_its_manner(self, right: Response) -> Response:
        await asyncio.to_thread(self._speaking.wait, 30)
        return self.instead or right


def wait_until(reached: Callable[[], bool]) -> None:
    """Block this thread until something has come true, a minute at most."""
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline, "it did not come true within a minute"
        threading.Event().wait(0.005)


def dripping_answer() -> Response:
    """An answer that never ends and never pauses long enough to time out."""

    async def drops() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.02)

    return StreamingResponse(drops(), media_type="application/json")


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def encode_part(value: Any) -> str:
    """A JSON value as one part of a token."""
    return base64url(json.dumps(value).encode())


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
