"""An identity provider at which people sign in from a page: codes that are good once, for who began (PKCE)."""

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from baton.application.identity import IdentityProvider
from tests.support.infrastructure.identity_provider import HTTP_AUDIENCE, Issuer

CLIENT = "baton-console"


@dataclass
class CodeGrants:
    """What a provider remembers: codes with the request they were given for, and what was sent for a token."""

    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    redeemed: list[dict[str, str]] = field(default_factory=list)


class CodeIssuer(Issuer):
    """An issuer with an authorization endpoint; everybody who comes there is signed in as `person` at once."""

    def reset(self) -> None:
        super().reset()
        self.grants = CodeGrants()
        self.person = "mira-77"
        self.token_seconds = 300

    def routes(self) -> list[Route]:
        return [*super().routes(), Route("/authorize", self._authorize), Route("/token", self._token, methods=["POST"])]

    def console_provider(self, **changes: Any) -> IdentityProvider:
        """How a deployment configures this issuer so that people sign in at pages."""
        sign_in = {
            "authorization_url": f"{self.url}/authorize",
            "token_url": f"{self.url}/token",
            "public_client_id": CLIENT,
            "allow_insecure_sign_in": True,
        }
        return self.provider(**{**sign_in, **changes})

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        right = {"response_type": "code", "client_id": CLIENT, "code_challenge_method": "S256", "resource": HTTP_AUDIENCE}
        if {name: asked.get(name) for name in right} != right or not asked.get("state"):
            return JSONResponse({"error": "invalid_request", "asked": asked}, 400)
        code = secrets.token_urlsafe(16)
        self.grants.codes[code] = asked
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}", 302)

    async def _token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        self.grants.redeemed.append(form)
        return await self._in_its_manner(self._redeem(form))

    def _redeem(self, form: dict[str, str]) -> Response:
        asked = self.grants.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        told = (form.get("redirect_uri"), form.get("client_id"), form.get("grant_type"), challenge)
        if asked is None or told != (asked["redirect_uri"], CLIENT, "authorization_code", asked["code_challenge"]):
            return JSONResponse({"error": "invalid_grant"}, 400)
        token = self.token(self.person, audience=form.get("resource", ""), jti=secrets.token_hex(4))
        return JSONResponse({"access_token": token, "token_type": "Bearer", "expires_in": self.token_seconds})


async def follow_to_provider(client: httpx.AsyncClient, href: str) -> str:
    """Return the path that a provider sends a person back to, who followed the link to it."""
    leaving = await client.get(href)
    assert leaving.status_code == 303, leaving.text
    async with httpx.AsyncClient(verify=False) as provider:
        returning = await provider.get(leaving.headers["location"])
    assert returning.status_code == 302, returning.text
    address = urlsplit(returning.headers["location"])
    return f"{address.path}?{address.query}"


def parameters_of(address: str) -> dict[str, str]:
    """Return the parameters of an address."""
    return dict(parse_qsl(urlsplit(address).query))
