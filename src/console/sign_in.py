"""Signing in: at an identity provider (OIDC code flow with PKCE), with a pasted token, or not at all where no token is
required. The token is checked as that of any request, and kept in the session's cookie."""

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote, unquote, urlencode

import structlog

from baton.api.errors import RequestValidationError
from baton.api.http import Headers, Request, Response
from baton.application.caller import Caller
from baton.application.identity import SENTENCES, IdentityProvider, InvalidTokenError, TokenFault
from baton.console.actions import safe_path, typed_in
from baton.console.rendering import html_response, redirect
from baton.console.sessions import (
    SIGNING_IN,
    ConsoleSession,
    check_form_token,
    comes_from_elsewhere,
    form_token,
    refuse_foreign_sender,
)
from baton.console.shell import ConsoleShell
from baton.domain.shared.refusals import Refusal
from baton.domain.trust.surface import SYSTEM_HTTP
from baton.infrastructure.identity import ProviderClient, ProviderUnreachableError

log = structlog.get_logger()
HOME = "/console"
LOGIN = "/console/login"
SCOPES = "openid profile"
SIGN_IN_SECONDS = 600  # how long a person may take at the provider
LONGEST_NEXT = 1_000  # it stands in a cookie, where it takes three times the room at most
NUMBER = re.compile(r"[0-9]{1,3}")
LOST = "This sign-in was begun elsewhere or too long ago; begin it again."
REFUSED = "The identity provider did not sign you in; begin again, or ask its administrators."
UNREADABLE = "This is no access token; paste it exactly as it was issued."


@dataclass(frozen=True)
class PendingReturn:
    """What the return of a person from a provider is known by; it stays in a cookie of theirs until then."""

    provider: int
    state: str
    verifier: str
    to: str

    def __str__(self) -> str:
        return ".".join((str(self.provider), self.state, self.verifier, quote(self.to, safe="")))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return what a cookie says; None where it says nothing of the kind."""
        number, *rest = text.split(".", 3)
        if len(rest) != 3 or not NUMBER.fullmatch(number):
            return None
        return cls(int(number), rest[0], rest[1], safe_path(unquote(rest[2])) or HOME)

    @property
    def challenge(self) -> str:
        """What the provider knows of the verifier beforehand (RFC 7636)."""
        return base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()


class SignIn:
    """The page that people sign in at."""

    def __init__(self, console: ConsoleShell) -> None:
        self._console = console
        settings = console.parts.host.settings
        self.needed = settings.tokens_required
        self._providers = [one for one in settings.identity_providers if one.authorization_url and one.token_url]

    async def show(self, request: Request, caller: Caller) -> Response:
        """Answer `GET /console/login`: the ways to sign in, the way to a provider, or the return from it."""
        if not self.needed:
            return redirect(HOME)
        try:
            query = typed_in(request.query)
        except RequestValidationError as refusal:
            return self._page(HOME, refusal.detail, refusal.status)
        if "state" in query:
            return await self._return(request, query)
        if comes_from_elsewhere(request):
            return self._console.come_again(request)
        to = next_of(query)
        if (provider := self._provider(query.get("provider", ""))) is not None:
            return self._leave_for(request, provider, to)
        fault = query.get("refused", "")
        sentence = SENTENCES[TokenFault(fault)] if fault in list(TokenFault) else None
        return self._form(request, to, sentence)

    async def submit(self, request: Request, caller: Caller) -> Response:
        """Answer `POST /console/login`: keep a pasted token, if it is genuine."""
        if not self.needed:
            return redirect(HOME)
        to = HOME
        try:
            refuse_foreign_sender(request)
            form = typed_in(await request.body())
            to = next_of(form)
            secret, _ = self._console.sessions.cookies(request).secret()
            check_form_token(form, form_token(secret, ""))
            return await self._keep(request, form.get("token", "").strip(), to)
        except Refusal as refusal:
            unreadable = isinstance(refusal, InvalidTokenError) and refusal.reason == TokenFault.MALFORMED
            return self._form(request, to, UNREADABLE if unreadable else refusal.detail, refusal.status)

    async def leave(self, request: Request, session: ConsoleSession) -> Response:
        """Answer `POST /console/logout`: end the session."""
        session.check_form(typed_in(await request.body()))
        session.new_cookies.clear()
        return redirect(LOGIN, session.cookies.end_session())

    def _form(self, request: Request, to: str, sentence: str | None, status: int = 200) -> Response:
        """Return the page with the form for a token, which only this page can send."""
        secret, fresh = self._console.sessions.cookies(request).secret()
        return self._page(to, sentence, status, form_token(secret, ""), fresh)

    def _page(
        self, to: str, sentence: str | None, status: int = 200, form_token: str = "", headers: Headers | None = None
    ) -> Response:
        names = [provider_name(one) for one in self._providers]
        context = {"next": to, "sentence": sentence, "providers": names, "form_token": form_token}
        return html_response(self._console.templates.render("login.html", context), status, headers)

    async def _keep(self, request: Request, token: str, to: str) -> Response:
        """Keep a token that is genuine, and go on; the next page is asked for by this one, so that its cookies are sent."""
        await self._console.parts.host.identity.authenticate(token, SYSTEM_HTTP)
        kept = self._console.sessions.cookies(request).keep_token(token)
        return html_response(self._console.templates.render("again.html", {"address": to}), headers=kept)

    def _provider(self, number: str) -> int | None:
        """Return the place of a provider among those that people can sign in at; None where there is none."""
        return int(number) if NUMBER.fullmatch(number) and int(number) < len(self._providers) else None

    def _leave_for(self, request: Request, number: int, to: str) -> Response:
        """Lead to an identity provider; what proves the return to be this one stays in a cookie."""
        provider = self._providers[number]
        pending = PendingReturn(number, secrets.token_urlsafe(24), secrets.token_urlsafe(48), to)
        query = {
            "response_type": "code",
            "client_id": provider.public_client_id or "",
            "redirect_uri": self._return_address(request),
            "scope": provider.sign_in_scope or SCOPES,
            "state": pending.state,
            "code_challenge": pending.challenge,
            "code_challenge_method": "S256",
            **resource_of(provider),
        }
        # Lax, not Strict: the provider's page sends the browser back, and this cookie must come along.
        kept = self._console.sessions.cookies(request).write(SIGNING_IN, str(pending), site="Lax", seconds=SIGN_IN_SECONDS)
        joint = "&" if "?" in (provider.authorization_url or "") else "?"
        return redirect(f"{provider.authorization_url}{joint}{urlencode(query)}", [kept])

    async def _return(self, request: Request, query: dict[str, str]) -> Response:
        """Answer the return from an identity provider: have its code made a token. Each sign-in is for one return."""
        cookies = self._console.sessions.cookies(request)
        pending = PendingReturn.parse(cookies.read(SIGNING_IN))
        if pending is None or not hmac.compare_digest(pending.state.encode(), query["state"].encode()):
            return self._page(HOME, LOST, 403)  # the cookie stays: a foreign page may have sent the person here
        try:
            response = await self._finish(request, pending, query)
        except Refusal as refusal:
            response = self._page(pending.to, refusal.detail, refusal.status)
        response.headers.append(cookies.remove(SIGNING_IN))
        return response

    async def _finish(self, request: Request, pending: PendingReturn, query: dict[str, str]) -> Response:
        number = self._provider(str(pending.provider))
        provider = None if number is None else self._providers[number]
        if provider is None or query.get("iss", provider.issuer) != provider.issuer or not query.get("code"):
            return self._page(pending.to, REFUSED, 403)
        token = await self._exchange(request, provider, query["code"], pending.verifier)
        return self._page(pending.to, REFUSED, 502) if token is None else await self._keep(request, token, pending.to)

    async def _exchange(self, request: Request, provider: IdentityProvider, code: str, verifier: str) -> str | None:
        """Return the access token that a provider gives for a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._return_address(request),
            "client_id": provider.public_client_id or "",
            "code_verifier": verifier,
            **resource_of(provider),
        }
        client = ProviderClient()
        try:
            token = (await client.ask("POST", provider.token_url or "", data=form)).get("access_token")
        except ProviderUnreachableError as error:
            log.warning("sign_in_failed", issuer=provider.issuer, because=str(error))
            return None
        finally:
            await client.aclose()
        return token if isinstance(token, str) else None

    def _return_address(self, request: Request) -> str:
        return self._console.parts.authentication.origins.base_url(request.scope) + LOGIN


def next_of(typed: dict[str, str]) -> str:
    """Return the page that a person is on the way to."""
    to = safe_path(typed.get("next")) or HOME
    return to if len(to) <= LONGEST_NEXT else HOME


def resource_of(provider: IdentityProvider) -> dict[str, str]:
    """Return what a provider is told the token is for (RFC 8707), unless a scope of its own says so."""
    audience = None if provider.sign_in_scope else provider.audiences.get(SYSTEM_HTTP)
    return {} if audience is None else {"resource": audience}


def provider_name(provider: IdentityProvider) -> str:
    """Return what a provider is called on the page: the host of its issuer."""
    return provider.issuer.partition("://")[2].partition("/")[0] or provider.issuer
