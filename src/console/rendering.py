"""Rendering: templates, the shell around every page, and the headers that keep a page to itself."""

import mimetypes
from collections.abc import Mapping
from functools import cache
from hashlib import blake2s
from importlib.resources import files
from urllib.parse import quote
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined

from baton.api.http import Headers, Request, Response
from baton.application.caller import Caller
from baton.console.display import (
    Display,
    duration_text,
    href_of,
    look_of,
    number_text,
    reason_text,
    short_id,
    shown_status,
    sign_of,
    words_of,
)

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
"""What a page may load and where it may send forms: this service alone; no script or style stands in a page itself."""
PAGE_HEADERS: Headers = [
    (b"content-security-policy", "; ".join(f"{name} {value}" for name, value in POLICY.items()).encode()),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
HTML = b"text/html; charset=utf-8"
VISIBLE = "".join(map(chr, range(33, 127)))  # what stays as it is in an address; the rest is quoted, so no header ends early
STATIC = ("console.css", "console.js", "baton.svg")


class Templates:
    """The templates of the console, with the filters that show values on the facility's clock."""

    def __init__(self, zone: ZoneInfo) -> None:
        display = Display(zone)
        self._environment = Environment(
            loader=PackageLoader("baton.console"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
            auto_reload=False,
        )
        shown = (
            display.clock,
            display.age,
            display.hour,
            display.moment,
            display.day_clock,
            display.narrative,
            display.duration_now,
            display.chip,
            display.value,
        )
        self._environment.filters |= {one.__name__: one for one in shown}
        self._environment.filters |= {
            "words": words_of,
            "reason": reason_text,
            "look": look_of,
            "sign": sign_of,
            "shown_status": shown_status,
            "duration": duration_text,
            "number": number_text,
            "short": short_id,
        }
        self._environment.globals |= {"thing": display.link, "href_of": href_of, "asset_url": static_url}

    def load_all(self) -> None:
        """Compile every template, so that no page waits for its own."""
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def render(self, template: str, context: Mapping[str, object]) -> str:
        """Return a template filled with what it shows."""
        return self._environment.get_template(template).render(context)


shared_templates = cache(Templates)
"""Returns the templates for a clock; services of one process share them, since to compile them takes a second."""


@cache
def static_file(name: str) -> tuple[bytes, str]:
    """Return a file of the console and what tells its version."""
    content = (files("baton.console") / "static" / name).read_bytes()
    return content, blake2s(content, digest_size=6).hexdigest()


def static_url(name: str) -> str:
    """Return the address of a file of the console; another version has another address."""
    return f"/console/static/{name}?v={static_file(name)[1]}"


async def serve_static(request: Request, caller: Caller) -> Response:
    """Answer `GET /console/static/{name}`."""
    name = request.path["name"]
    if name not in STATIC:
        return Response(404, b"There is no such file.", content_type=b"text/plain")
    content, version = static_file(name)
    age = b"public, max-age=31536000, immutable" if request.query == f"v={version}".encode() else b"no-cache"
    kind = mimetypes.guess_type(name)[0] or "text/plain"
    return Response(200, content, [(b"cache-control", age)], content_type=f"{kind}; charset=utf-8".encode())


def html_response(html: str, status: int = 200, headers: Headers | None = None) -> Response:
    """Return a page."""
    return Response(status, html.encode(), [*PAGE_HEADERS, *(headers or [])], content_type=HTML)


def redirect(to: str, headers: Headers | None = None, status: int = 303) -> Response:
    """Return an answer that leads elsewhere."""
    address = quote(to, safe=VISIBLE).encode()
    return Response(status, b"", [(b"location", address), (b"cache-control", b"no-store"), *(headers or [])])
