"""Authentication: verified tokens, the ports that verify them, and refusals. No token or subject is ever logged or shown."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Protocol
from uuid import UUID

from baton.domain.access.actor import ActorKind
from baton.domain.shared.refusals import Refusal, Unavailable

METADATA_PATH = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True)
class VerifiedToken:
    """The content of a genuine token, before an actor is looked up for it."""

    issuer: str
    subject: str = field(repr=False)
    scopes: frozenset[str]
    expires_at: datetime | None


@dataclass(frozen=True)
class VerifiedPrincipal:
    """The actor a genuine token stands for; `kind` informs, rules that ask for it fold the Actor."""

    principal_id: UUID
    subject: str = field(repr=False)
    issuer: str
    kind: ActorKind
    scopes: frozenset[str]
    expires_at: datetime | None


class TokenFault(StrEnum):
    """Why a token was refused; the list is closed."""

    BAD_SIGNATURE = "bad_signature"
    EXPIRED = "expired"
    NOT_YET_VALID = "not_yet_valid"
    WRONG_AUDIENCE = "wrong_audience"
    WRONG_ISSUER = "wrong_issuer"
    MALFORMED = "malformed"
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
    TokenFault.UNKNOWN_SUBJECT: "The token is genuine but stands for no actor; ask an administrator to bind its subject.",
    TokenFault.INTROSPECTION_INACTIVE: "The token's issuer says that it is not active; get a new one.",
    TokenFault.UNSUPPORTED_ALGORITHM: "The token's signature algorithm is not accepted from its issuer; ask for another.",
}


class UnauthenticatedError(Refusal):
    """The request carries no credentials, and this service does not answer without."""

    status = 401

    def __init__(self) -> None:
        super().__init__(
            f"This request carries no credentials; send a bearer token from a server that {METADATA_PATH} names."
        )


class InvalidTokenError(Refusal):
    """The bearer token was refused; the reason says why."""

    status = 401

    def __init__(self, fault: TokenFault) -> None:
        super().__init__(SENTENCES[fault], reason=fault.value)


class ProviderUnavailable(Unavailable):
    """An identity provider that must be asked about this token cannot be reached."""

    retry_after: ClassVar[int] = 5

    def __init__(self) -> None:
        super().__init__(
            "The identity provider cannot be reached, so the token could not be checked; try again in a few seconds."
        )


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


class IdentityRegistry(Protocol):
    """The configured identity providers, as the edge and the commands about bindings see them."""

    async def authenticate(self, token: str, surface_id: UUID) -> VerifiedPrincipal:
        """Return the principal of a token on the surface it arrived on; raise InvalidTokenError or ProviderUnavailable."""

    def knows(self, issuer: str) -> bool:
        """Return whether a provider with exactly this issuer is configured."""

    def binds(self, issuer: str, subject: str) -> bool:
        """Return whether configuration binds this pair."""

    def issuers(self) -> tuple[str, ...]:
        """Return every configured issuer, sorted."""

    def audiences(self) -> Mapping[UUID, tuple[str, ...]]:
        """Return the audiences accepted on each surface, sorted; surfaces that accept none are left out."""


BEARER = re.compile(r"[ \t]*bearer[ \t]+([^ \t]+)[ \t]*", re.IGNORECASE)


def bearer_token(authorization: str) -> str:
    """Return the token in an `Authorization` header; refuse any other shape as malformed."""
    found = BEARER.fullmatch(authorization)
    if found is None:
        raise InvalidTokenError(TokenFault.MALFORMED)
    return found[1]


def challenge(refusal: UnauthenticatedError | InvalidTokenError, resource_metadata: str) -> str:
    """Return the `WWW-Authenticate` header of a 401; the metadata URL may come from request headers, so it is made safe."""
    parameters = {"realm": "baton", "resource_metadata": resource_metadata}
    if isinstance(refusal, InvalidTokenError):
        parameters |= {"error": "invalid_token", "error_description": refusal.reason or ""}
    return "Bearer " + ", ".join(f'{name}="{_quotable(value)}"' for name, value in parameters.items())


def _quotable(text: str) -> str:
    return "".join(character for character in text if " " <= character <= "~" and character not in '"\\')
