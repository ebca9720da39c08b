"""Authentication of requests: by bearer token where tokens are required, by a header in development."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID

import orjson
from fastapi import Request, Response

from baton.api.http import Scope, header
from baton.api.origins import OriginRule
from baton.api.parsing import uuid_from
from baton.application.caller import Caller
from baton.application.identity import METADATA_PATH, IdentityRegistry, InvalidTokenError, UnauthenticatedError, bearer_token
from baton.application.identity import challenge as challenge_header
from baton.application.settings import Settings
from baton.domain.access.group import TokenClaims
from baton.domain.kernel import NIL
from baton.domain.shared.refusals import Refusal
from baton.domain.trust.surface import SYSTEM_HTTP, SYSTEM_MCP_STREAMABLE_HTTP, SurfaceKind

OPEN_PATHS = frozenset(
    {"/health", "/readyz", "/metrics", METADATA_PATH, f"{METADATA_PATH}/mcp", "/docs", "/openapi.json", "/console/login"}
)
OPEN_PREFIXES = ("/console/static/",)
SURFACES = {SYSTEM_HTTP: SurfaceKind.HTTP, SYSTEM_MCP_STREAMABLE_HTTP: SurfaceKind.MCP_STREAMABLE_HTTP}


class Authentication:
    """Determines the caller of each request; the surface follows from the routed path alone."""

    def __init__(self, settings: Settings, registry: IdentityRegistry, *, any_host: bool = False) -> None:
        self._registry = registry
        self._client_ids = {one.issuer: one.public_client_id for one in settings.identity_providers if one.public_client_id}
        self._required = settings.tokens_required
        self._cached = "no-store" if settings.public_base_url is None else "public, max-age=300"
        self.origins = OriginRule(settings, tokens_required=self._required, any_host=any_host)

    def is_open(self, path: str) -> bool:
        """Return whether this path is served without authentication."""
        return path in OPEN_PATHS or path.startswith(OPEN_PREFIXES)

    async def caller(self, scope: Scope, correlation_id: UUID) -> Caller:
        """Return the caller of a request; raise a 401 or 503 refusal where it cannot be determined."""
        surface_id = arrival_surface(scope["path"])
        if not self._required:  # a development client may name its principal; it is SYSTEM where it names none
            claimed = header(scope, b"x-principal-id")
            principal_id = NIL if claimed is None else uuid_from(claimed, "header", "X-Principal-Id")
            return Caller(principal_id, surface_id, correlation_id)
        scope["base_url"] = self.origins.base_url(scope)
        authorization = header(scope, b"authorization")
        if authorization is None:
            raise UnauthenticatedError
        principal = await self._registry.authenticate(bearer_token(authorization), surface_id)
        claims = TokenClaims(principal.issuer, principal.claims)
        return Caller(principal.principal_id, surface_id, correlation_id, expires_at=principal.expires_at, claims=claims)

    def metadata(self, suffix: str) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of the protected-resource metadata document."""
        audiences = self._registry.audiences()
        document = {
            "authorization_servers": sorted(self._registry.issuers()),
            "bearer_methods_supported": ["header"],
            "aud_values_supported": sorted({audience for values in audiences.values() for audience in values}),
            "surface_audiences": {
                SURFACES[surface].value: values[0] if len(values) == 1 else list(values)
                for surface, values in audiences.items()
                if surface in SURFACES
            },
            **({"public_client_ids": self._client_ids} if self._client_ids else {}),
        }

        async def endpoint(request: Request) -> Response:
            body = orjson.dumps({"resource": self.origins.base_url(request.scope) + suffix, **document})
            return Response(body, headers={"Cache-Control": self._cached}, media_type="application/json")

        return endpoint


def arrival_surface(path: str) -> UUID:
    """Return the surface of a path; no header or body field can choose it."""
    return SYSTEM_MCP_STREAMABLE_HTTP if path == "/mcp" or path.startswith("/mcp/") else SYSTEM_HTTP


def challenge(refusal: Refusal, scope: Scope) -> bytes:
    """Return the `WWW-Authenticate` header of a 401, which points at the metadata of the request's surface."""
    if not isinstance(refusal, UnauthenticatedError | InvalidTokenError):
        return b"Bearer"
    suffix = "/mcp" if arrival_surface(scope["path"]) == SYSTEM_MCP_STREAMABLE_HTTP else ""
    return challenge_header(refusal, scope["base_url"] + METADATA_PATH + suffix).encode()


def is_expired(caller: Caller) -> bool:
    """Return whether the caller's token has expired by now."""
    return caller.expires_at is not None and caller.expires_at <= datetime.now(UTC)
