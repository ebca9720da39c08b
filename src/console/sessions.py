"""Sessions: who looks at a page. The token of a person stays in a cookie that no script reads and no other site has sent
along; forms carry a token of their own, made from a secret that only this browser and its own pages know."""

import hashlib
import hmac
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from uuid import UUID

from baton.api.authentication import Authentication
from baton.api.http import Headers, Request, Scope, header, headers_of
from baton.application.ports import Authorizer, Caller
from baton.domain.shared.refusals import Forbidden

SESSION = "baton_session"
SECRET = "baton_form_secret"
SIGNING_IN = "baton_signing_in"
PART = 3500  # characters of a token that one cookie holds; browsers take cookies of 4096 bytes
MOST_PARTS = 4
FORM_TOKEN = "form_token"


class ForeignFormError(Forbidden):
    """A form came without the token that the pages of this session carry."""


@dataclass
class ConsoleSession:
    """One request of a person: the caller it is made as, what that caller may do, and the secret of the browser's forms."""

    caller: Caller
    permitted: frozenset[str]
    form_token: str
    secure: bool
    new_cookies: Headers = field(default_factory=list)

    def check_form(self, form: Mapping[str, str]) -> None:
        """Raise where a form was not made by a page of this session."""
        if not hmac.compare_digest(form.get(FORM_TOKEN, "").encode(), self.form_token.encode()):
            detail = "This form was not sent by a page of this session; load the page again and repeat what you did there."
            raise ForeignFormError(detail, reason="form_token")


class Sessions:
    """Reads and writes the cookies of sessions."""

    def __init__(self, authentication: Authentication, authorizer: Authorizer) -> None:
        self._authentication = authentication
        self._authorizer = authorizer

    async def open(self, request: Request, correlation_id: UUID) -> ConsoleSession:
        """Return the session of a request; raise a refusal of authentication where nobody is signed in."""
        cookies = cookies_of(request.scope)
        token = token_in(cookies)
        if token and header(request.scope, b"authorization") is None:
            headers_of(request.scope)[b"authorization"] = f"Bearer {token}".encode()
        caller = await self._authentication.caller(request.scope, correlation_id)
        secure = self.is_secure(request.scope)
        secret, fresh = cookies.get(SECRET, ""), []
        if len(secret) < 32:
            secret = secrets.token_urlsafe(32)
            fresh = [cookie(SECRET, secret, secure)]
        permitted = await self._authorizer.permitted_commands(caller)
        return ConsoleSession(caller, permitted, form_token(secret, token), secure, fresh)

    async def permitted(self, caller: Caller) -> frozenset[str]:
        """Return what a caller may do now."""
        return await self._authorizer.permitted_commands(caller)

    def is_secure(self, scope: Scope) -> bool:
        """Return whether the browser reaches the service over https."""
        return self._authentication.origins.base_url(scope).startswith("https://")

    def keep(self, token: str, secure: bool) -> Headers:
        """Return the cookies that keep a token; a long one is kept in parts."""
        parts = [token[at : at + PART] for at in range(0, len(token), PART)]
        if len(parts) > MOST_PARTS:
            raise TokenTooLongError("This token is too long to be kept by a browser; ask its issuer for a smaller one.")
        names = list(part_names())
        kept = [cookie(name, part, secure) for name, part in zip(names, parts, strict=False)]
        return [*kept, *(expired_cookie(name) for name in names[len(parts) :])]


class TokenTooLongError(Forbidden):
    """A token does not fit into the cookies of a browser."""


def part_names() -> Iterator[str]:
    """Yield the names of the cookies that a token is kept in."""
    yield SESSION
    for number in range(2, MOST_PARTS + 1):
        yield f"{SESSION}_{number}"


def token_in(cookies: Mapping[str, str]) -> str:
    """Return the token that the cookies hold, or nothing."""
    return "".join(cookies.get(name, "") for name in part_names())


def form_token(secret: str, token: str) -> str:
    """Return the token of the forms of a session; it changes with whoever is signed in."""
    return hmac.new(secret.encode(), token.encode(), hashlib.sha256).hexdigest()


def cookies_of(scope: Scope) -> dict[str, str]:
    """Return the cookies of a request; those that cannot be read count as none."""
    jar: SimpleCookie = SimpleCookie()
    for name, value in scope["headers"]:
        if name == b"cookie":
            try:
                jar.load(value.decode("latin-1"))
            except CookieError:
                continue
    return {name: morsel.value for name, morsel in jar.items()}


def cookie(name: str, value: str, secure: bool, *, site: str = "Strict", path: str = "/console") -> tuple[bytes, bytes]:
    """Return the header that sets a cookie which no script can read."""
    marks = f"Path={path}; HttpOnly; SameSite={site}" + ("; Secure" if secure else "")
    return b"set-cookie", f"{name}={value}; {marks}".encode()


def expired_cookie(name: str, path: str = "/console") -> tuple[bytes, bytes]:
    """Return the header that removes a cookie."""
    return b"set-cookie", f"{name}=; Path={path}; Max-Age=0; HttpOnly; SameSite=Strict".encode()


def ended_session() -> Headers:
    """Return the headers that end a session."""
    return [expired_cookie(name) for name in (*part_names(), SECRET)]
