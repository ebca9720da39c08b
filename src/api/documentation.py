"""The documentation that the service serves: its OpenAPI document, which the package holds, and a page to try operations."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from baton.api.compression import accepts_gzip, gzip_bytes
from baton.api.pages import page_headers
from baton.application.identity import IdentityProvider
from baton.application.settings import Settings
from baton.domain.trust.surface import SYSTEM_HTTP

ASSETS = {
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "favicon-32x32.png": "image/png",
}  # The files of Swagger UI, which the package fastapi-swagger brings.
REDIRECT_PATH = "/docs/oauth2-redirect"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Baton: operations</title>
<link rel="icon" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script>
const signIn = %(sign_in)s;
fetch("/openapi.json").then(answer => answer.json()).then(spec => {
  const page = SwaggerUIBundle({
    spec, dom_id: "#swagger-ui", deepLinking: true, docExpansion: "none", filter: true, validatorUrl: null,
    defaultModelsExpandDepth: -1, displayRequestDuration: true, oauth2RedirectUrl: location.origin + "%(redirect)s"
  });
  if (signIn) page.initOAuth(signIn);
});
</script>
</body>
</html>
"""
REDIRECT_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Baton: signing in</title></head>
<body>
<p id="outcome">Signing in.</p>
<script>
const waiting = window.opener && window.opener.swaggerUIRedirectOauth2;
const answer = Object.fromEntries(new URLSearchParams(location.search));
if (!waiting || answer.state !== waiting.state) {
  document.getElementById("outcome").textContent = "No page waits for this sign-in; start it again from /docs.";
} else if (answer.code) {
  delete waiting.auth.state;
  waiting.auth.code = answer.code;
  waiting.callback({auth: waiting.auth, redirectUrl: waiting.redirectUrl});
  window.close();
} else {
  const message = answer.error_description || answer.error || "The identity provider gave no code.";
  waiting.errCb({authId: waiting.auth.name, source: "auth", level: "error", message});
  window.close();
}
</script>
</body>
</html>
"""


class StoredFile:
    """A file that the first request has made, in a thread, and that is then served whole, with its tag, and compressed where
    the client takes that."""

    def __init__(self, make: Callable[[], bytes], content_type: str) -> None:
        self._make = make
        self._content_type = content_type
        self._made: asyncio.Task[tuple[bytes, bytes, str]] | None = None

    async def answer(self, request: Request) -> Response:
        if self._made is None:
            self._made = asyncio.create_task(asyncio.to_thread(self._encode))
        content, compressed, tag = await asyncio.shield(self._made)
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        headers["Content-Type"] = self._content_type
        if compressed and accepts_gzip(request.headers.get("accept-encoding")):
            return Response(compressed, headers={**headers, "Content-Encoding": "gzip", "Vary": "accept-encoding"})
        return Response(content, headers=headers)

    def _encode(self) -> tuple[bytes, bytes, str]:
        content = self._make()
        tag = f'W/"{hashlib.sha256(content).hexdigest()[:32]}"'
        return content, b"" if self._content_type == "image/png" else gzip_bytes(content), tag


def documentation_routes(settings: Settings) -> APIRouter:
    """Return the routes of the documents and pages of the service about itself; all are open, and say nothing of records."""
    router = APIRouter()
    document = StoredFile(lambda: served_document(settings), "application/json")
    router.add_api_route("/openapi.json", document.answer, name="openapi")
    provider = sign_in_provider(settings)
    page = PAGE % {"redirect": REDIRECT_PATH, "sign_in": script_json(sign_in_options(provider))}
    asked = [origin_of(provider.token_url)] if provider is not None and provider.token_url is not None else []
    headers = page_headers(page, connect=asked, own_files=True)
    # The page of the provider stands between both pages of this service, and would lose its opener by the header of others.
    docs = HTMLResponse(page, headers={**headers, "Cross-Origin-Opener-Policy": "same-origin-allow-popups"})
    redirect_headers = {k: v for k, v in page_headers(REDIRECT_PAGE).items() if k != "Cross-Origin-Opener-Policy"}
    redirect = HTMLResponse(REDIRECT_PAGE, headers=redirect_headers)
    router.add_api_route("/docs", always(docs), name="docs")
    router.add_api_route(REDIRECT_PATH, always(redirect), name="docs")
    for name, content_type in ASSETS.items():
        router.add_api_route(f"/docs/{name}", StoredFile(asset_reader(name), content_type).answer, name="docs")
    return router


def always(page: Response) -> Callable[[], Awaitable[Response]]:
    """Return the endpoint of a page that is always the same."""

    async def endpoint() -> Response:
        return page

    return endpoint


def served_document(settings: Settings) -> bytes:
    """Return the OpenAPI document of the package as JSON, for the service at its address. The document ends with its
    components; what depends on the deployment follows their last member, so nothing has to be parsed."""
    packaged = (files("baton.api") / "openapi.json").read_bytes()
    schemes = security_schemes(settings)
    servers = [{"url": settings.public_base_url or "/", "description": "This service."}]
    security: list[dict[str, list[str]]] = [{name: []} for name in schemes] if settings.identity_providers else []
    components, further = {"securitySchemes": schemes}, {"servers": servers, "security": security}
    assert packaged.endswith(b"}}")
    return b"%b,%b,%b" % (packaged[:-2], orjson.dumps(components)[1:], orjson.dumps(further)[1:])


def security_schemes(settings: Settings) -> dict[str, Any]:
    """Return the ways to sign in: by a token, and at the provider that people can go to from a page."""
    bearer = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "A token."}
    schemes: dict[str, object] = {"bearer": bearer}
    if (provider := sign_in_provider(settings)) is not None:
        addresses = {"authorizationUrl": provider.authorization_url, "tokenUrl": provider.token_url}
        flow: dict[str, object] = {"authorizationCode": {**addresses, "scopes": {}}}
        schemes["sign_in"] = {"type": "oauth2", "description": f"An account at {provider.issuer}.", "flows": flow}
    return schemes


def asset_reader(name: str) -> Callable[[], bytes]:
    """Return what reads a file of Swagger UI."""
    return lambda: (files("fastapi_swagger.resources") / name).read_bytes()


def sign_in_provider(settings: Settings) -> IdentityProvider | None:
    """Return the first identity provider at which people can sign in from a page."""
    return next((provider for provider in settings.identity_providers if provider.authorization_url), None)


def sign_in_options(provider: IdentityProvider | None) -> dict[str, Any] | None:
    """Return what the page needs to send people to their provider; the client is public and proves itself by PKCE."""
    if provider is None:
        return None
    audience = provider.audiences.get(SYSTEM_HTTP)
    extra = {"additionalQueryStringParams": {"resource": audience}} if audience else {}
    return {"clientId": provider.public_client_id, "usePkceWithAuthorizationCodeGrant": True, **extra}


def script_json(value: object) -> str:
    """Return data as it may stand in a script of a page."""
    return orjson.dumps(value).decode().replace("<", "\\u003c")


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
