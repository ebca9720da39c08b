"""The minter port: the registry that issues persistent identifiers."""

from typing import Protocol

from baton.domain.equipment.values import ExternalIdScheme
from baton.domain.shared.citation import Citation
from baton.domain.shared.ports import MintedIdentifier


class Minter(Protocol):
    """Issues identifiers. Everything may be repeated: the same suffix is the same identifier, issued once."""

    @property
    def schemes(self) -> frozenset[ExternalIdScheme]:
        """The schemes it issues identifiers of."""
        ...

    async def mint(self, scheme: ExternalIdScheme, suffix: str, metadata: Citation) -> MintedIdentifier:
        """Issue the identifier with this suffix, or find it issued by us before; its metadata is then as given.

        Raises ExternalIdMintError, and ExternalIdMintingNotConfiguredError where the metadata name no landing page.
        """
        ...

    async def tombstone(self, scheme: ExternalIdScheme, value: str, reason: str) -> None:
        """Take an identifier that was issued out of the registry's catalog; it keeps leading to its page.

        Of one that was taken out before nothing is changed. Raises ExternalIdMintError.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...
