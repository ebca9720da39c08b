"""The settings of identity providers, whose tokens are accepted, and the objections to them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from baton.domain.access.actor import ActorKind
from baton.domain.access.principals import SEEDED_AGENT_IDS
from baton.domain.kernel import NIL

SIGNATURE_ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "ES256K", "EdDSA"),
)
TokenText = Annotated[str, Field(min_length=1, max_length=500)]


class ProviderBinding(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    subject: TokenText = Field(repr=False)
    actor_id: UUID
    kind: ActorKind | None = None


class IdentityProvider(BaseModel):
    """One issuer whose tokens are accepted, and how they are checked: by its key set or by asking it."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    issuer: TokenText
    jwks_url: str | None = None
    introspection_url: str | None = None
    introspection_client_id: str | None = None
    introspection_client_secret: SecretStr | None = None
    audiences: dict[UUID, Annotated[str, Field(min_length=1)]] = {}
    allowed_algorithms: tuple[str, ...] = ("RS256", "ES256")
    require_access_token_type: bool = True
    principal_kind: ActorKind = ActorKind.HUMAN
    introspection_cache_ttl_seconds: Annotated[float, Field(ge=1, le=86400)] = 30
    allow_insecure_jwks_url: bool = False
    allow_insecure_introspection_url: bool = False
    subject_bindings: tuple[ProviderBinding, ...] = ()


def provider_objections(providers: Sequence[IdentityProvider]) -> list[str]:
    """Return why these identity providers cannot be used, each alone and all together."""
    found = [
        f"Identity provider {number} ({provider.issuer}) {fault}"
        for number, provider in enumerate(providers, start=1)
        for fault in _provider_faults(provider)
    ]
    issuers = Counter(provider.issuer for provider in providers)
    found += [
        f"IDENTITY_PROVIDERS lists the issuer {issuer} {count} times; merge the entries into one."
        for issuer, count in issuers.items()
        if count > 1
    ]
    pairs = Counter((provider.issuer, binding.subject) for provider in providers for binding in provider.subject_bindings)
    found += [
        f"IDENTITY_PROVIDERS binds a subject of {issuer} more than once; keep one binding for each subject."
        for issuer in dict.fromkeys(issuer for (issuer, _), count in pairs.items() if count > 1)
    ]
    if sum(provider.introspection_url is not None for provider in providers) > 1:
        found.append(
            "More than one identity provider has an introspection_url, so a token that names no issuer could belong to "
            "either; keep one and use jwks_url for the others."
        )
    return found


def _provider_faults(provider: IdentityProvider) -> Iterator[str]:
    if provider.jwks_url is None and provider.introspection_url is None:
        yield "has neither jwks_url nor introspection_url, so its tokens cannot be checked; give one of them."
    secret = provider.introspection_client_secret
    if provider.introspection_url is not None and not (
        provider.introspection_client_id and secret and secret.get_secret_value()
    ):
        yield "has an introspection_url without credentials; give introspection_client_id and introspection_client_secret."
    if not provider.audiences:
        yield "has no audiences, so all its tokens would be refused; give one for each surface its tokens are meant for."
    if unusable := [name for name in provider.allowed_algorithms if name not in SIGNATURE_ALGORITHMS]:
        yield f"allows {', '.join(unusable)}; only public-key algorithms are accepted: {', '.join(SIGNATURE_ALGORITHMS)}."
    if not provider.allowed_algorithms:
        yield "has an empty list of allowed_algorithms; name at least one, or leave the list out for RS256 and ES256."
    for name, insecure in (
        ("jwks_url", provider.allow_insecure_jwks_url),
        ("introspection_url", provider.allow_insecure_introspection_url),
    ):
        url = getattr(provider, name)
        if url is not None and not is_absolute_url(url, ("http", "https") if insecure else ("https",)):
            yield f"has a {name} that is no https URL; use https (in development, allow_insecure_{name} admits http)."
    if any(binding.actor_id == NIL for binding in provider.subject_bindings):
        yield "binds a subject to the nil UUID, which stands for the service itself; give the id of an actor."
    for taken in sorted({binding.actor_id for binding in provider.subject_bindings} & SEEDED_AGENT_IDS):
        yield f"binds a subject to {taken}, which is an agent of the service itself; choose another id for the actor."


def is_absolute_url(url: str, schemes: tuple[str, ...]) -> bool:
    """Return whether this is an absolute URL of one of these schemes."""
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0 and not re.search(r"\s", url)
    except ValueError:
        return False
