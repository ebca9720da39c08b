"""Addresses of files: how the copies whose bytes are believed to be at an address are looked up."""

import hashlib

BELIEVED_COPIES = "distribution-address"  # Look-up kind: the copies at an address that are neither Stale nor Discarded.


def address_key(uri: str) -> str:
    """Return the look-up key of an address; addresses may be longer than a key."""
    return hashlib.sha256(uri.rstrip("/").encode(errors="surrogatepass")).hexdigest()
