"""Signing in: at an identity provider (OIDC code flow with PKCE), with a pasted token, or not at all where no token is
required. The token is checked as that of any request, and kept in the session's cookie."""

import base64
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import httpx
import structlog

from baton.api.http import Headers, Request, Response
from baton.application.identity import SENTENCES, IdentityProvider, InvalidTokenError, ProviderUnavailable, TokenFault
from baton.application.ports import Caller
from baton.application.telemetry import error_location
from baton.console.actions import safe_path, typed_in
from baton.console.rendering import html_response, redirect
from baton.console.sessions import SIGNING_IN, ConsoleSession, cookie, cookies_of, ended_session, expired_cookie
from baton.domain.shared.refusals import Refusal
from baton.domain.trust.surface import SYSTEM_HTTP

if TYPE_CHECKING:
    from baton.console.console import Console

log = structlog.get_logger()
LOGIN = "/console/login"
SCOPES = "openid profile"
ANSWER_SECONDS = 10.0
LOST = "This sign-in was begun elsewhere or too long ago; begin it again."
REFUSED = "The identity provider did not sign you in; begin again, or ask its administrators."


class SignIn:
    """The page that people sign in at."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        settings = console.parts.host.settings
        self.needed = settings.tokens_required
        self._providers = [one for one in settings.identity_providers if one.authorization_url and one.token_url]

    async def show(self, request: Request, caller: Caller) -> Response:
        """Answer `GET /console/login`: the ways to sign in, the way to a provider, or the return from it."""
        query = typed_in(request.query)
        if not self.needed:
            return redirect("/console")
        if "state" in query:
            return await self._return(request, query)
        if (number := query.get("provider", "")).isdigit() and int(number) < len(self._providers):
            return self._leave_for(request, int(number), safe_path(query.get("next")) or "/console")
        fault = query.get("refused", "")
        sentence = SENTENCES[TokenFault(fault)] if fault in list(TokenFault) else None
        return self._page(safe_path(query.get("next")) or "/console", sentence)

    async def submit(self, request: Request, caller: Caller) -> Response:
        """Answer `POST /console/login`: keep a pasted token, if it is genuine."""
        if not self.needed:
            return redirect("/console")
        form = typed_in(await request.body())
        to = safe_path(form.get("next")) or "/console"
        if request.header(b"sec-fetch-site") not in (None, "same-origin", "none"):
            return self._page(to, "Only this page itself can sign you in; paste the token here.", 403)
        return await self._keep(request, form.get("token", "").strip(), to)

    async def leave(self, request: Request, session: ConsoleSession) -> Response:
        """Answer `POST /console/logout`: end the session."""
        session.check_form(typed_in(await request.body()))
        session.new_cookies.clear()
        return redirect(LOGIN, ended_session())

    def _page(self, to: str, sentence: str | None = None, status: int = 200) -> Response:
        names = [provider_name(one) for one in self._providers]
        context = {"next": to, "sentence": sentence, "providers": names}
        return html_response(self._console.templates.render("login.html", context), status)

    async def _keep(self, request: Request, token: str, to: str) -> Response:
        """Keep a token that is genuine, and go on; the next page is asked for by this one, so that its cookies are sent."""
        sessions, identity = self._console.sessions, self._console.parts.host.identity
        try:
            if not token or len(token) > 16_000 or not token.isascii() or any(one in token for one in ' ;,\r\n\t"'):
                raise InvalidTokenError(TokenFault.MALFORMED)
            await identity.authenticate(token, SYSTEM_HTTP)
            kept = sessions.keep(token, sessions.is_secure(request.scope))
        except (InvalidTokenError, ProviderUnavailable, Refusal) as refusal:
            return self._page(to, refusal.detail, refusal.status)
        html = self._console.templates.render("again.html", {"address": to})
        return html_response(html, headers=[*kept, expired_cookie(SIGNING_IN, LOGIN)])

    def _leave_for(self, request: Request, number: int, to: str) -> Response:
        """Lead to an identity provider; what proves the return to be this one stays in a cookie."""
        provider, verifier, state = self._providers[number], secrets.token_urlsafe(48), secrets.token_urlsafe(24)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": provider.public_client_id or "",
            "redirect_uri": self._return_address(request),
            "scope": SCOPES,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        secure = self._console.sessions.is_secure(request.scope)
        kept = "|".join((str(number), state, verifier, to.replace(";", "%3B").replace(",", "%2C")))
        # Lax, not Strict: the provider's page sends the browser back, and this cookie must come along.
        headers: Headers = [cookie(SIGNING_IN, kept, secure, site="Lax", path=LOGIN)]
        joint = "&" if "?" in (provider.authorization_url or "") else "?"
        return redirect(f"{provider.authorization_url}{joint}{urlencode(query)}", headers)

    async def _return(self, request: Request, query: dict[str, str]) -> Response:
        """Answer the return from an identity provider: have its code made a token."""
        kept = cookies_of(request.scope).get(SIGNING_IN, "").split("|")
        if len(kept) != 4 or not hmac.compare_digest(kept[1].encode(), query["state"].encode()):
            return self._page("/console", LOST, 403)
        number, _, verifier, to = kept
        to = safe_path(to) or "/console"
        if "code" not in query:
            return self._page(to, REFUSED, 403)
        token = await self._exchange(request, self._providers[int(number)], query["code"], verifier)
        return self._page(to, REFUSED, 502) if token is None else await self._keep(request, token, to)

    async def _exchange(self, request: Request, provider: IdentityProvider, code: str, verifier: str) -> str | None:
        """Return the access token that a provider gives for a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._return_address(request),
            "client_id": provider.public_client_id or "",
            "code_verifier": verifier,
        }
        try:
            async with httpx.AsyncClient(timeout=ANSWER_SECONDS, follow_redirects=False) as client:
                answer = await client.post(provider.token_url or "", data=form)
                token = answer.json().get("access_token") if answer.status_code == 200 else None
        except (httpx.HTTPError, ValueError, AttributeError) as error:
            log.warning("sign_in_failed", issuer=provider.issuer, **error_location(error))
            return None
        return token if isinstance(token, str) else None

    def _return_address(self, request: Request) -> str:
        return self._console.parts.authentication.origins.base_url(request.scope) + LOGIN


def provider_name(provider: IdentityProvider) -> str:
    """Return what a provider is called on the page: the host of its issuer."""
    return provider.issuer.partition("://")[2].partition("/")[0] or provider.issuer
