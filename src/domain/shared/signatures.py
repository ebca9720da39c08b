"""Detached signatures: what one is, and what checking one against a public key can find."""

from enum import StrEnum

from baton.domain.kernel import Value

ED25519_DETACHED = "ed25519-detached"


class Signature(Value):
    """A detached signature: what kind it is, which key made it, and its bytes."""

    envelope_kind: str = ED25519_DETACHED
    kid: str
    bytes_hex: str


class PublicKey(Value):
    """An Ed25519 public key, as peers are told it."""

    kid: str
    public_material: str  # `ed25519:` and the raw key in 64 hex digits


class SignatureVerdict(StrEnum):
    """What checking a signature against public material finds."""

    VALID = "valid"
    FORGED = "forged"  # It names the key of this material, and the key did not sign these bytes.
    WRONG_KEY = "wrong_key"  # It names another key than that of this material.
    UNKNOWN_KEY = "unknown_key"  # There is no material, or it cannot be read here.
