"""Entries of the catalog, as small as they may be."""

from typing import Any

FREE = {"input": 0.0, "output": 0.0, "cache_write": 0.0, "cache_read": 0.0}
PRICED = {"input": 3.0, "output": 15.0, "cache_write": 3.75, "cache_read": 0.3}


def entry(**fields: Any) -> dict[str, Any]:
    """The fields of a catalog entry."""
    named = {"name": "Acme large", "provider": "acme", "model": "large-4", "served_via": "Direct", "pricing": PRICED}
    return {**named, "data_tier": "Internal", "archivability": "Alias", **fields}
