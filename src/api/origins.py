"""Origin rules: while no token is required, only local programs and the service's own pages may send requests."""

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from baton.api.errors import RepeatedHeaderError, UnsupportedMediaTypeError
from baton.api.http import Scope, header, headers_of
from baton.application.settings import Settings
from baton.domain.shared.refusals import Forbidden

LOOPBACK = (rb"localhost", rb"127(?:\.[0-9]{1,3}){3}", rb"\[::1\]")
ADDRESSES = (rb"[0-9]{1,3}(?:\.[0-9]{1,3}){3}", rb"\[[0-9a-f:.]+\]")
"""Literal addresses: DNS rebinding cannot serve a foreign page under them."""
OWN_SITES = frozenset({b"same-origin", b"none"})
FETCH_MARKS = frozenset({b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest"})
"""Headers that browsers add to requests of pages; other programs do not send them."""
ONCE = (b"authorization", b"idempotency-key", b"host", b"origin", b"content-type", b"x-principal-id")
"""Headers that may not repeat: a proxy could act on one value and this service on another."""
JSON = b"application/json"
FORM, FILE_FORM = b"application/x-www-form-urlencoded", b"multipart/form-data"
PAGES = "/console"
"""The path of the service's own pages: they send forms, each with a token that no other page knows."""

LANDING = "/landing/"
"""Where the pages are that identifiers lead to, from wherever they are cited."""


class ForeignRequestError(Forbidden):
    """The request came under a foreign host name or from a page of another origin; without required tokens only this
    machine is trusted."""


class OriginRule:
    """Judges the origin of a request by its headers, before anything else of it is read."""

    def __init__(self, settings: Settings, *, tokens_required: bool, any_host: bool = False) -> None:
        self._local_only = not tokens_required
        self._public_url = settings.public_base_url
        self._proxies = settings.trusted_proxies
        public = urlsplit(self._public_url or "")
        self._public_origin = f"{public.scheme}://{public.netloc}".lower() if public.netloc else None
        self._hosts = host_pattern(public.hostname, any_host)

    def check(self, scope: Scope) -> None:
        """Raise for repeated headers, a foreign host, origin or site, or a page's body that is not JSON."""
        headers = headers_of(scope)
        if len(headers) != len(scope["headers"]):
            refuse_repeated(scope)
        if self._local_only:
            if not self._hosts.fullmatch(headers.get(b"host", b"")):
                remedy = "use localhost, or set PUBLIC_BASE_URL to the address it is reached under"
                detail = f"While no token is required, the service answers under loopback names only; {remedy}."
                raise ForeignRequestError(detail, reason="foreign_host")
            if headers.get(b"sec-fetch-site", b"none") not in OWN_SITES and not opens_page(scope):
                raise foreign_page("cross_site")
        if FETCH_MARKS.isdisjoint(headers):
            return
        sends_form = is_page(scope["path"]) and scope["method"] != "GET"
        origin, is_checked = header(scope, b"origin"), self._local_only or scope["path"] == "/mcp" or sends_form
        own_origins = (self._public_origin, self._requested_url(scope).lower())
        if is_checked and origin is not None and origin.lower() not in own_origins:
            raise foreign_page("foreign_origin")
        expected = (JSON, FORM, FILE_FORM) if is_page(scope["path"]) else (JSON,)
        if has_body(scope) and headers.get(b"content-type", b"").partition(b";")[0].strip().lower() not in expected:
            raise UnsupportedMediaTypeError("A page must send its body as application/json; say so in Content-Type.")

    def base_url(self, scope: Scope) -> str:
        """Return the URL that clients use: the configured one, or that of the request and trusted proxies."""
        return self._public_url or self._requested_url(scope)

    def _requested_url(self, scope: Scope) -> str:
        scheme, host = scope.get("scheme", "http"), header(scope, b"host") or "localhost"
        if self._proxies and self._comes_from_proxy(scope):
            host = first_forwarded(scope, b"x-forwarded-host") or host
            if (forwarded_scheme := first_forwarded(scope, b"x-forwarded-proto")) in ("http", "https"):
                scheme = forwarded_scheme
        return f"{scheme}://{host}"

    def _comes_from_proxy(self, scope: Scope) -> bool:
        try:
            peer = ip_address((scope.get("client") or ("", 0))[0])
        except ValueError:
            return False
        return any(peer in network for network in self._proxies)


def host_pattern(public_host: str | None, any_host: bool) -> "re.Pattern[bytes]":
    """Return the pattern of `Host` headers that are answered without a token."""
    names = [*LOOPBACK, *(ADDRESSES if any_host else ())]
    if public_host:
        address = b"[%b]" % public_host.encode() if ":" in public_host else public_host.encode()
        names.append(re.escape(address))
    return re.compile(rb"(?:%b)(?::[0-9]{1,5})?" % b"|".join(names), re.IGNORECASE)


def foreign_page(reason: str) -> ForeignRequestError:
    own = "if the page is one of its own, set PUBLIC_BASE_URL to the address it is served under"
    detail = f"Pages of other origins may not call this service; call it from a program or, {own}."
    return ForeignRequestError(detail, reason=reason)


def refuse_repeated(scope: Scope) -> None:
    """Raise where a header that may not repeat does."""
    names = [name for name, _ in scope["headers"]]
    for name in ONCE:
        if names.count(name) > 1:
            raise RepeatedHeaderError(f"The header {name.decode().title()} stands more than once; send it once.")


def is_page(path: str) -> bool:
    """Return whether a path is that of a page of the service."""
    return path == PAGES or path.startswith(f"{PAGES}/")


def opens_page(scope: Scope) -> bool:
    """Return whether a person follows a link to a page of the service; it is shown on its own, so nothing can read it."""
    headers = headers_of(scope)
    marks = headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")
    return (
        scope["method"] == "GET"
        and marks == (b"navigate", b"document")
        and (scope["path"] == "/" or is_page(scope["path"]) or scope["path"].startswith(LANDING))
    )


def has_body(scope: Scope) -> bool:
    """Return whether a request announces a body."""
    headers = headers_of(scope)
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def first_forwarded(scope: Scope, name: bytes) -> str | None:
    """Return the first value of a forwarding header, which is that of the outermost proxy."""
    value = header(scope, name)
    return value and value.partition(",")[0].strip()
