"""What the claims of a genuine token say, whether it carried them itself or its issuer answered with them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from baton.application.identity import InvalidTokenError, TokenFault, VerifiedToken

LEEWAY = timedelta(seconds=30)
"""How far the clocks of issuer and service may differ."""


def verified_token(issuer: str, claims: Mapping[str, Any]) -> VerifiedToken:
    """The token these claims describe; a missing subject or an impossible time is malformed."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject:
        raise InvalidTokenError(TokenFault.MALFORMED)
    return VerifiedToken(issuer, subject, scopes_of(claims), time_of(claims, "exp"))


def scopes_of(claims: Mapping[str, Any]) -> frozenset[str]:
    """The scopes in `scope` (separated by spaces) or else in `scp` (a text or a list)."""
    match claims.get("scope") or claims.get("scp"):
        case str() as text:
            return frozenset(text.split())
        case list() as scopes:
            return frozenset(scope for scope in scopes if isinstance(scope, str))
        case _:
            return frozenset()


def time_of(claims: Mapping[str, Any], name: str) -> datetime | None:
    """The time in a claim; one that is none is malformed."""
    if claims.get(name) is None:
        return None
    try:
        return datetime.fromtimestamp(int(claims[name]), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise InvalidTokenError(TokenFault.MALFORMED) from None
