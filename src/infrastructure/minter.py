"""The development minter of persistent identifiers: deterministic, never fails, and never leaves the process."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PREFIXES = {"DOI": "10.5072", "Handle": "20.500.12345"}
"""The registries' prefixes for testing."""


@dataclass(frozen=True)
class Minted:
    scheme: str
    value: str


class DeterministicMinter:
    """Makes the same identifier for the same suffix every time; minting is an upsert on the final string."""

    async def mint(self, scheme: str, suffix: str, metadata: Mapping[str, Any]) -> Minted:
        return Minted(scheme, f"{PREFIXES[scheme]}/{suffix}")
