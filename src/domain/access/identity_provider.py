"""Identity providers: what is configured about who calls."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class ProviderFacts:
    """What is configured about one issuer and subject."""

    known: bool
    bound: bool
    any_configured: bool = True  # Whether there is any identity provider at all.


class IdentityPort(Protocol):
    """Knows the configured identity providers."""

    async def identity_provider(self, issuer: str, subject: str) -> ProviderFacts:
        """Return whether the issuer is configured, and whether its settings bind the subject."""
