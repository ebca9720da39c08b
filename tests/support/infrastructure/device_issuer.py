"""An identity provider that signs people in with device codes (RFC 8628), and renews their tokens."""

import secrets
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.infrastructure.identity_provider import HTTP_AUDIENCE, Issuer

PUBLIC_CLIENT = "baton-command-line"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass
class PendingSignIn:
    """A code that was handed out: who confirmed it, or what is answered instead of a token, one after the other."""

    user_code: str
    faults: list[str]
    subject: str | None = None


@dataclass
class DeviceGrants:
    """What a provider remembers of its sign-ins."""

    pending: dict[str, PendingSignIn] = field(default_factory=dict)
    refreshable: dict[str, str] = field(default_factory=dict)
    requests: list[dict[str, str]] = field(default_factory=list)


class DeviceIssuer(Issuer):
    """An issuer with device codes; `confirm` is what a person does in a browser."""

    def reset(self) -> None:
        super().reset()
        self.forget_sign_ins()

    def forget_sign_ins(self) -> None:
        """Begin anew, with the same key."""
        self.grants = DeviceGrants()
        self.token_seconds = 300
        self.first_faults: list[str] = []
        self.metadata_changes: dict[str, Any] = {}

    def routes(self) -> list[Route]:
        return [
            *super().routes(),
            Route("/.well-known/oauth-authorization-server", self._metadata),
            Route("/device", self._device, methods=["POST"]),
            Route("/token", self._token, methods=["POST"]),
        ]

    @property
    def user_codes(self) -> list[str]:
        """The codes that somebody is to confirm."""
        return [one.user_code for one in self.grants.pending.values()]

    def confirm(self, user_code: str, subject: str) -> None:
        """Confirm a code as this person."""
        next(one for one in self.grants.pending.values() if one.user_code == user_code).subject = subject

    async def _metadata(self, request: Request) -> Response:
        known = {
            "issuer": self.url,
            "token_endpoint": f"{self.url}/token",
            "device_authorization_endpoint": f"{self.url}/device",
            **self.metadata_changes,
        }
        return JSONResponse({name: value for name, value in known.items() if value is not None})

    async def _device(self, request: Request) -> Response:
        form = await self._form(request)
        if form.get("client_id") != PUBLIC_CLIENT:
            return JSONResponse({"error": "invalid_client", "error_description": "Nobody knows this client."}, 401)
        device_code, user_code = secrets.token_urlsafe(16), secrets.token_hex(3).upper()
        self.grants.pending[device_code] = PendingSignIn(user_code, list(self.first_faults))
        return JSONResponse(
            {
                "device_code": device_code,
                "user_code": user_code,
                "verification_uri": f"{self.url}/confirm",
                "verification_uri_complete": f"{self.url}/confirm?code={user_code}",
                "expires_in": 60,
                "interval": 0,
            }
        )

    async def _token(self, request: Request) -> Response:
        form = await self._form(request)
        if form.get("grant_type") == "refresh_token":
            subject = self.grants.refreshable.pop(form["refresh_token"], None)
            return self._tokens(subject) if subject else JSONResponse({"error": "invalid_grant"}, 400)
        known = self.grants.pending.get(form.get("device_code", ""))
        if form.get("grant_type") != DEVICE_GRANT or known is None or form.get("client_id") != PUBLIC_CLIENT:
            return JSONResponse({"error": "invalid_grant"}, 400)
        if known.faults:
            return JSONResponse({"error": known.faults.pop(0)}, 400)
        return self._tokens(known.subject) if known.subject else JSONResponse({"error": "authorization_pending"}, 400)

    def _tokens(self, subject: str) -> Response:
        refresh_token = secrets.token_urlsafe(16)
        self.grants.refreshable[refresh_token] = subject
        return JSONResponse(
            {
                "access_token": self.token(subject, audience=HTTP_AUDIENCE, jti=secrets.token_hex(4)),
                "refresh_token": refresh_token,
                "token_type": "Bearer",
                "expires_in": self.token_seconds,
            }
        )

    async def _form(self, request: Request) -> dict[str, str]:
        form = {name: str(value) for name, value in (await request.form()).items()}
        self.grants.requests.append(form)
        return form
