"""Authentication: verified tokens, the ports that verify them, refusals, and the settings of identity providers. No token or
subject is ever logged or shown."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Protocol
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from baton.domain.access.actor import SEEDED_AGENT_IDS, ActorKind
from baton.domain.access.identity_provider import IdentityPort
from baton.domain.kernel import NIL
from baton.domain.shared.refusals import Refusal, Unavailable

METADATA_PATH = "/.well-known/oauth-protected-resource"
UNQUOTABLE = re.compile(r'[^ -~]|["\\]')  # what a quoted string in a header cannot hold
BEARER = re.compile(r"[ \t]*bearer[ \t]+([^ \t]+)[ \t]*", re.IGNORECASE)
SIGNATURE_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "ES256K", "EdDSA")
TokenText = Annotated[str, Field(min_length=1, max_length=500)]


@dataclass(frozen=True)
class VerifiedToken:
    """The content of a genuine token, before an actor is looked up for it."""

    issuer: str
    subject: str = field(repr=False)
    scopes: frozenset[str]
    expires_at: datetime | None
    claims: Mapping[str, Any] = field(repr=False, hash=False)


@dataclass(frozen=True)
class VerifiedPrincipal(VerifiedToken):
    """The actor a genuine token stands for; `kind` informs, rules that ask for it fold the Actor."""

    principal_id: UUID
    kind: ActorKind


class TokenFault(StrEnum):
    """Why a token was refused; the list is closed."""

    BAD_SIGNATURE = "bad_signature"
    EXPIRED = "expired"
    NOT_YET_VALID = "not_yet_valid"
    WRONG_AUDIENCE = "wrong_audience"
    WRONG_ISSUER = "wrong_issuer"
    MALFORMED = "malformed"
    NOT_ACCESS_TOKEN_TYPE = "not_access_token_type"
    UNKNOWN_SUBJECT = "unknown_subject"
    INTROSPECTION_INACTIVE = "introspection_inactive"
    UNSUPPORTED_ALGORITHM = "unsupported_algorithm"


SENTENCES = {
    TokenFault.BAD_SIGNATURE: "The token is not signed with a key its issuer publishes; get a new one.",
    TokenFault.EXPIRED: "The token has expired; get a new one.",
    TokenFault.NOT_YET_VALID: "The token is not valid yet; wait, or have its issuer's clock compared with this one.",
    TokenFault.WRONG_AUDIENCE: f"The token is not meant for this surface; get one for the audience {METADATA_PATH} names.",
    TokenFault.WRONG_ISSUER: f"The token's issuer is not trusted here; get one from a server that {METADATA_PATH} names.",
    TokenFault.MALFORMED: "This is no access token; send 'Authorization: Bearer <token>' with the token exactly as issued.",
    TokenFault.NOT_ACCESS_TOKEN_TYPE: "This is no access token but a refresh or id token; send the access token.",
    TokenFault.UNKNOWN_SUBJECT: "The token is genuine but stands for no actor; ask an administrator to bind its subject.",
    TokenFault.INTROSPECTION_INACTIVE: "The token's issuer says that it is not active; get a new one.",
    TokenFault.UNSUPPORTED_ALGORITHM: "The token's signature algorithm is not accepted from its issuer; ask for another.",
}


class UnauthenticatedError(Refusal):
    """The request carries no credentials, and this service does not answer without."""

    status = 401

    def __init__(self) -> None:
        remedy = f"send a bearer token from a server that {METADATA_PATH} names"
        super().__init__(f"This request carries no credentials; {remedy}.")


class InvalidTokenError(Refusal):
    """The bearer token was refused; the reason says why."""

    status = 401

    def __init__(self, fault: TokenFault, detail: str | None = None) -> None:
        super().__init__(detail or SENTENCES[fault], reason=fault.value)


class ProviderUnavailable(Unavailable):
    """An identity provider that must be asked about this token cannot be reached."""

    retry_after: ClassVar[int] = 5

    def __init__(self) -> None:
        unchecked = "The identity provider cannot be reached, so the token could not be checked"
        super().__init__(f"{unchecked}; try again in a few seconds.")


class KeySetUnavailableError(ProviderUnavailable):
    """The issuer's published keys cannot be fetched and the token's key is not known yet."""


class IntrospectionUnavailableError(ProviderUnavailable):
    """The issuer's introspection endpoint cannot be reached or gave no usable answer."""


class TokenVerifier(Protocol):
    """Verifies that a token of one issuer is genuine and meant for an audience."""

    async def verify(self, token: str, audience: str) -> VerifiedToken:
        """Return what the token says; raise InvalidTokenError or ProviderUnavailable."""


class SubjectBindings(Protocol):
    """The token bindings made at run time."""

    async def actor_of(self, issuer: str, subject: str) -> tuple[UUID, ActorKind] | None:
        """Return the actor that a stored row binds this pair to, and its kind; both texts match exactly."""


class IdentityRegistry(IdentityPort, Protocol):
    """The configured identity providers, as the edge and the commands about bindings see them."""

    async def authenticate(self, token: str, surface_id: UUID) -> VerifiedPrincipal:
        """Return the principal of a token on the surface it arrived on; raise InvalidTokenError or ProviderUnavailable."""

    def issuers(self) -> tuple[str, ...]:
        """Return every configured issuer, sorted."""

    def audiences(self) -> Mapping[UUID, tuple[str, ...]]:
        """Return the audiences accepted on each surface, sorted; surfaces that accept none are left out."""


def bearer_token(authorization: str) -> str:
    """Return the token in an `Authorization` header; refuse any other shape as malformed."""
    if (found := BEARER.fullmatch(authorization)) is None:
        raise InvalidTokenError(TokenFault.MALFORMED)
    return found[1]


def challenge(refusal: UnauthenticatedError | InvalidTokenError, resource_metadata: str) -> str:
    """Return the `WWW-Authenticate` header of a 401; the metadata URL may come from request headers, so it is made safe."""
    parameters = {"realm": "baton", "resource_metadata": resource_metadata}
    if isinstance(refusal, InvalidTokenError):
        parameters |= {"error": "invalid_token", "error_description": refusal.reason or ""}
    return "Bearer " + ", ".join(f'{name}="{UNQUOTABLE.sub("", value)}"' for name, value in parameters.items())


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
    public_client_id: TokenText | None = None  # as which client people sign in, where they can
    sign_in_scope: TokenText | None = None  # what the console asks for, where the audience as `resource` is not understood
    introspection_cache_ttl_seconds: Annotated[float, Field(ge=1, le=86400)] = 30
    allow_insecure_jwks_url: bool = False
    allow_insecure_introspection_url: bool = False
    subject_bindings: tuple[ProviderBinding, ...] = ()
    authorization_url: str | None = None  # where people sign in from the page of the operations
    token_url: str | None = None  # where that page gets their token
    allow_insecure_sign_in: bool = False


def provider_objections(providers: Sequence[IdentityProvider]) -> Iterator[str]:
    """Yield why these identity providers cannot be used, each alone and all together."""
    for number, provider in enumerate(providers, start=1):
        for fault in _provider_faults(provider):
            yield f"Identity provider {number} ({provider.issuer}) {fault}"
    for issuer, count in Counter(provider.issuer for provider in providers).items():
        if count > 1:
            yield f"IDENTITY_PROVIDERS lists the issuer {issuer} {count} times; merge the entries into one."
    pairs = Counter((provider.issuer, binding.subject) for provider in providers for binding in provider.subject_bindings)
    for issuer in dict.fromkeys(issuer for (issuer, _), count in pairs.items() if count > 1):
        yield f"IDENTITY_PROVIDERS binds a subject of {issuer} more than once; keep one binding for each subject."
    if sum(provider.introspection_url is not None for provider in providers) > 1:
        doubt = "so a token that names no issuer could belong to either; keep one and use jwks_url for the others"
        yield f"More than one identity provider has an introspection_url, {doubt}."


def _provider_faults(provider: IdentityProvider) -> Iterator[str]:
    if provider.jwks_url is None and provider.introspection_url is None:
        yield "has neither jwks_url nor introspection_url, so its tokens cannot be checked; give one of them."
    secret = provider.introspection_client_secret
    credentials = provider.introspection_client_id and secret and secret.get_secret_value()
    if provider.introspection_url is not None and not credentials:
        yield "has an introspection_url without credentials; give introspection_client_id and introspection_client_secret."
    if not provider.audiences:
        yield "has no audiences, so all its tokens would be refused; give one for each surface its tokens are meant for."
    if unusable := [name for name in provider.allowed_algorithms if name not in SIGNATURE_ALGORITHMS]:
        yield f"allows {', '.join(unusable)}; only public-key algorithms are accepted: {', '.join(SIGNATURE_ALGORITHMS)}."
    if not provider.allowed_algorithms:
        yield "has an empty list of allowed_algorithms; name at least one, or leave the list out for RS256 and ES256."
    for name in ("jwks_url", "introspection_url"):
        url, insecure = getattr(provider, name), getattr(provider, f"allow_insecure_{name}")
        if url is not None and not is_absolute_url(url, ("http", "https") if insecure else ("https",)):
            yield f"has a {name} that is no https URL; use https (in development, allow_insecure_{name} admits http)."
    yield from _sign_in_faults(provider)
    if any(binding.actor_id == NIL for binding in provider.subject_bindings):
        yield "binds a subject to the nil UUID, which stands for the service itself; give the id of an actor."
    for taken in sorted({binding.actor_id for binding in provider.subject_bindings} & SEEDED_AGENT_IDS):
        yield f"binds a subject to {taken}, which is an agent of the service itself; choose another id for the actor."


def _sign_in_faults(provider: IdentityProvider) -> Iterator[str]:
    addresses = {"authorization_url": provider.authorization_url, "token_url": provider.token_url}
    given = [url for url in addresses.values() if url is not None]
    if given and (len(given) < len(addresses) or provider.public_client_id is None):
        yield "cannot be signed in at from a page; give authorization_url, token_url and public_client_id, or no address."
    if not all(is_absolute_url(url, ("http", "https") if provider.allow_insecure_sign_in else ("https",)) for url in given):
        yield "has sign-in addresses that are no https URLs; use https (in development, allow_insecure_sign_in admits http)."


def is_absolute_url(url: str, schemes: tuple[str, ...]) -> bool:
    """Return whether this is an absolute URL of one of these schemes."""
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0 and not re.search(r"\s", url)
    except ValueError:
        return False
