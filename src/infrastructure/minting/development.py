"""The development minter of persistent identifiers: deterministic, never fails, and never leaves the process."""

from baton.domain.equipment.values import ExternalIdScheme
from baton.domain.shared.citation import Citation
from baton.domain.shared.ports import MintedIdentifier

PREFIXES = {ExternalIdScheme.DOI: "10.5072", ExternalIdScheme.HANDLE: "20.500.12345"}
"""The registries' prefixes for testing; what is issued under them leads nowhere."""


class DeterministicMinter:
    """Makes the same identifier for the same suffix every time; minting is an upsert on the final string."""

    schemes = frozenset(PREFIXES)

    async def mint(self, scheme: ExternalIdScheme, suffix: str, metadata: Citation) -> MintedIdentifier:
        return MintedIdentifier(scheme, f"{PREFIXES[scheme]}/{suffix}")

    async def tombstone(self, scheme: ExternalIdScheme, value: str, reason: str) -> None:
        return

    async def aclose(self) -> None:
        return
