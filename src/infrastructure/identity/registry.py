"""The configured identity providers: which one verifies a token, and which actor the token stands for."""

import re
from collections.abc import Mapping, Sequence
from uuid import UUID

import jwt

from baton.application import identity
from baton.application.identity import InvalidTokenError, TokenFault, TokenVerifier
from baton.application.identity_providers import IdentityProvider, provider_objections
from baton.application.ports import Clock
from baton.domain.kernel import NIL
from baton.infrastructure.identity.introspection import IntrospectionVerifier
from baton.infrastructure.identity.jwt_verifier import JwtVerifier, KeySet
from baton.infrastructure.identity.provider_client import ProviderClient

MAX_TOKEN_LENGTH = 8192
TOKEN_FORM = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # a bearer token (RFC 6750): no blanks, ASCII only


class ProviderRegistry:
    def __init__(
        self, providers: Sequence[IdentityProvider], bindings: identity.SubjectBindings, client: ProviderClient, now: Clock
    ) -> None:
        if objections := provider_objections(providers):
            raise ValueError(" ".join(objections))
        self._providers = {provider.issuer: provider for provider in providers}
        self._bindings = bindings
        self._by_keys: dict[str, TokenVerifier] = {
            provider.issuer: JwtVerifier(provider, KeySet(provider, client, now))
            for provider in providers
            if provider.jwks_url
        }
        self._by_asking: dict[str, TokenVerifier] = {
            provider.issuer: IntrospectionVerifier(provider, client, now)
            for provider in providers
            if provider.introspection_url
        }
        self._configured = {
            (provider.issuer, binding.subject): (binding.actor_id, binding.kind or provider.principal_kind)
            for provider in providers
            for binding in provider.subject_bindings
        }

    async def authenticate(self, token: str, surface_id: UUID) -> identity.VerifiedPrincipal:
        provider, verifier = self._verifier(token)
        audience = provider.audiences.get(surface_id)
        if audience is None:
            raise InvalidTokenError(TokenFault.WRONG_AUDIENCE)
        return await self._principal(await verifier.verify(token, audience))

    def knows(self, issuer: str) -> bool:
        return issuer in self._providers

    def binds(self, issuer: str, subject: str) -> bool:
        return (issuer, subject) in self._configured

    def issuers(self) -> tuple[str, ...]:
        return tuple(sorted(self._providers))

    def audiences(self) -> Mapping[UUID, tuple[str, ...]]:
        """Return the audiences accepted on each surface, sorted; surfaces that accept none are left out."""
        accepted: dict[UUID, set[str]] = {}
        for provider in self._providers.values():
            for surface_id, audience in provider.audiences.items():
                accepted.setdefault(surface_id, set()).add(audience)
        return {surface_id: tuple(sorted(accepted[surface_id])) for surface_id in sorted(accepted)}

    def _verifier(self, token: str) -> tuple[IdentityProvider, TokenVerifier]:
        if len(token) > MAX_TOKEN_LENGTH or not TOKEN_FORM.fullmatch(token):
            raise InvalidTokenError(TokenFault.MALFORMED)
        if token.count(".") == 2:
            issuer = _claimed_issuer(token)
            if issuer not in self._providers:
                raise InvalidTokenError(TokenFault.WRONG_ISSUER)
            return self._providers[issuer], self._by_keys.get(issuer) or self._by_asking[issuer]
        if not self._by_asking:
            raise InvalidTokenError(TokenFault.MALFORMED)
        issuer, verifier = next(iter(self._by_asking.items()))
        return self._providers[issuer], verifier

    async def _principal(self, token: identity.VerifiedToken) -> identity.VerifiedPrincipal:
        pair = token.issuer, token.subject
        bound = self._configured.get(pair) or await self._bindings.actor_of(*pair)
        if bound is None or bound[0] == NIL:
            raise InvalidTokenError(TokenFault.UNKNOWN_SUBJECT)
        actor_id, kind = bound
        return identity.VerifiedPrincipal(actor_id, token.subject, token.issuer, kind, token.scopes, token.expires_at)


def _claimed_issuer(token: str) -> str:
    """Return the issuer that a token names, which is not proven yet."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except jwt.PyJWTError:
        raise InvalidTokenError(TokenFault.MALFORMED) from None
    issuer = claims.get("iss")
    if not isinstance(issuer, str):
        raise InvalidTokenError(TokenFault.MALFORMED)
    return issuer
