"""Sessions: who looks at a page. The token of a person stays in a cookie that no script reads and no other site has sent
along; forms carry a token of their own, made from a secret that only this browser and its own pages know."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from baton.api.authentication import Authentication
from baton.api.http import Headers, Request, Scope, header, headers_of
from baton.application.caller import Caller
from baton.application.ports import Authorizer
from baton.console.page_queries import HeldPermissions
from baton.domain.shared.refusals import Forbidden

SESSION = "baton_session"
SECRET = "baton_form_secret"
SIGNING_IN = "baton_signing_in"
HOST_ONLY = "__Host-"  # browsers take a cookie named so from this very host over https alone; no neighbour can plant one
PART = 3500  # characters of a token that one cookie holds; browsers take cookies of 4096 bytes
MOST_PARTS = 3  # so many hold the longest token that is accepted
FORM_TOKEN = "form_token"
SECRET_SECONDS = 365 * 86400  # the secret outlives the browser: tabs that are restored at once would each make their own
SECRET_TEXT = re.compile(r"[A-Za-z0-9_-]{43}")
COOKIE_TEXT = re.compile(r"[!#-+\--:<-\[\]-~]*")  # what the value of a cookie may be made of (RFC 6265)
SIGNATURE_LENGTH = 32
OWN_PAGES = (None, "same-origin", "none")


class ForeignFormError(Forbidden):
    """A form came without the token that the pages of this session carry."""


@dataclass
class ConsoleSession:
    """One request of a person: the caller it is made as, what that caller may do, and the secret of the browser's forms."""

    caller: Caller
    held: HeldPermissions
    form_token: str
    cookies: "Cookies"
    new_cookies: Headers = field(default_factory=list)

    def check_form(self, form: Mapping[str, str]) -> None:
        """Raise where a form was not made by a page of this session."""
        check_form_token(form, self.form_token)

    def sign_message(self, text: str) -> str:
        """Return a message to this person as an address may carry it; nobody else can make one."""
        return signature_of(self.form_token, text) + text

    def read_message(self, signed: str) -> str | None:
        """Return a message that was signed in this session; None for any other text, which a link may have put there."""
        signature, text = signed[:SIGNATURE_LENGTH], signed[SIGNATURE_LENGTH:]
        genuine = hmac.compare_digest(signature.encode(), signature_of(self.form_token, text).encode())
        return text if genuine else None


@dataclass(frozen=True)
class Cookies:
    """The cookies of a request, and those of its answer."""

    held: Mapping[str, str]
    secure: bool  # whether the browser reaches the service over https

    def read(self, name: str) -> str:
        """Return a cookie, or nothing."""
        return self.held.get(self._full_name(name), "")

    def write(self, name: str, value: str, *, site: str = "Strict", seconds: int | None = None) -> tuple[bytes, bytes]:
        """Return the header that sets a cookie which no script can read."""
        if not COOKIE_TEXT.fullmatch(value):
            raise ValueError(f"the cookie {name} cannot hold this value")
        age = "" if seconds is None else f"; Max-Age={seconds}"
        marks = f"Path={'/' if self.secure else '/console'}{age}; HttpOnly; SameSite={site}" + "; Secure" * self.secure
        return b"set-cookie", f"{self._full_name(name)}={value}; {marks}".encode()

    def remove(self, name: str) -> tuple[bytes, bytes]:
        """Return the header that removes a cookie."""
        return self.write(name, "", seconds=0)

    @property
    def token(self) -> str:
        """The bearer token that they hold, or nothing."""
        return "".join(self.read(name) for name in part_names())

    def keep_token(self, token: str) -> Headers:
        """Return the cookies that keep a genuine token; a long one is kept in parts, and the forms get a new secret."""
        parts = {name: token[number * PART : (number + 1) * PART] for number, name in enumerate(part_names())}
        kept = [self.write(name, part) if part else self.remove(name) for name, part in parts.items()]
        return [*kept, self.write_secret(new_secret())]

    def write_secret(self, secret: str) -> tuple[bytes, bytes]:
        """Return the header that keeps the secret of the browser's forms."""
        return self.write(SECRET, secret, seconds=SECRET_SECONDS)

    def secret(self) -> tuple[str, Headers]:
        """Return the secret of the browser's forms, and what keeps it where it is new."""
        if SECRET_TEXT.fullmatch(known := self.read(SECRET)):
            return known, []
        made = new_secret()
        return made, [self.write_secret(made)]

    def end_session(self) -> Headers:
        """Return the headers that end a session."""
        return [self.remove(name) for name in (*part_names(), SECRET)]

    def _full_name(self, name: str) -> str:
        return HOST_ONLY * self.secure + name


class Sessions:
    """Opens the session of each request."""

    def __init__(self, authentication: Authentication, authorizer: Authorizer) -> None:
        self._authentication = authentication
        self._authorizer = authorizer

    async def open(self, request: Request, correlation_id: UUID) -> ConsoleSession:
        """Return the session of a request; raise a refusal of authentication where nobody is signed in."""
        cookies = self.cookies(request)
        token = cookies.token
        if token and header(request.scope, b"authorization") is None:
            headers_of(request.scope)[b"authorization"] = f"Bearer {token}".encode("latin-1")
        caller = await self._authentication.caller(request.scope, correlation_id)
        secret, fresh = cookies.secret()
        return ConsoleSession(caller, await self.permissions(caller), form_token(secret, token), cookies, fresh)

    async def permissions(self, caller: Caller) -> HeldPermissions:
        """Return what a caller may do now."""
        permitted, access = await self._authorizer.permitted_commands(caller), await self._authorizer.access(caller)
        return HeldPermissions(permitted, access.with_approval)

    async def proven_groups(self, caller: Caller) -> frozenset[UUID]:
        """Return the groups that the token of a caller tells now."""
        return await self._authorizer.proven_groups(caller)

    def cookies(self, request: Request) -> Cookies:
        """Return the cookies of a request."""
        secure = self._authentication.origins.base_url(request.scope).startswith("https://")
        return Cookies(cookies_of(request.scope), secure)


def part_names() -> Iterator[str]:
    """Yield the names of the cookies that a token is kept in."""
    yield SESSION
    for number in range(2, MOST_PARTS + 1):
        yield f"{SESSION}_{number}"


def new_secret() -> str:
    """Return a secret for the forms of a browser."""
    return secrets.token_urlsafe(32)


def form_token(secret: str, token: str) -> str:
    """Return the token of the forms of a session; it changes with the person who is signed in."""
    return hmac.new(secret.encode(), token.encode(), hashlib.sha256).hexdigest()


def signature_of(form_token: str, text: str) -> str:
    """Return what proves that a text comes from the session with these forms."""
    return hmac.new(form_token.encode(), text.encode(), hashlib.sha256).hexdigest()[:SIGNATURE_LENGTH]


def check_form_token(form: Mapping[str, str], expected: str) -> None:
    """Raise where a form does not carry the token that its page was given."""
    if not hmac.compare_digest(form.get(FORM_TOKEN, "").encode(), expected.encode()):
        raise foreign_form()


def refuse_foreign_sender(request: Request) -> None:
    """Raise where a browser says that a page of another site sends this; for one that does not say, the form token tells."""
    if request.scope["method"] != "GET" and request.header(b"sec-fetch-site") not in OWN_PAGES:
        raise foreign_form()


def foreign_form() -> ForeignFormError:
    detail = "This form was not sent by a page of this session; load the page again and repeat what you did there."
    return ForeignFormError(detail, reason="form_token")


def comes_from_elsewhere(request: Request) -> bool:
    """Return whether a person follows a link of another site, so that their cookies did not come along."""
    return (
        request.scope["method"] == "GET"
        and request.header(b"sec-fetch-site") in ("cross-site", "same-site")
        and request.header(b"sec-fetch-mode") == "navigate"
    )


def cookies_of(scope: Scope) -> dict[str, str]:
    """Return the cookies of a request, the first of each name; what cannot be read counts as none, and hides no other."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                key, is_pair, text = pair.partition("=")
                if is_pair:
                    found.setdefault(key.strip(), text.strip())
    return found
