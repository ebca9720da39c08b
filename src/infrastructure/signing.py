"""Ed25519 signatures with the keys of a directory: a signer with private keys, a verifier with public material."""

import asyncio
import hashlib
import re
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from baton.application.ports import SigningFailedError
from baton.domain.shared.signatures import ED25519_DETACHED, PublicKey, Signature, SignatureVerdict

REFERENCE = re.compile(r"file://(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{0,99})")
INLINE = re.compile(r"ed25519:(?P<key>[0-9a-fA-F]{64})")
HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")


class KeyDirectorySigner:
    """Signs with unencrypted PEM keys: `file://name` is the file `name.pem` of the directory."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    async def sign(self, secret_ref: str, content: bytes) -> Signature:
        return sign_content(await asyncio.to_thread(self._key, secret_ref), content)

    def _key(self, secret_ref: str) -> Ed25519PrivateKey:
        if self._directory is None:
            raise SigningFailedError("This deployment has no signing keys; set SIGNING_KEY_DIRECTORY to where they are.")
        if (found := REFERENCE.fullmatch(secret_ref)) is None:
            detail = "The credential's secret reference names no key file; rotate it to file:// and the name of a key."
            raise SigningFailedError(detail)
        try:
            key = load_pem_private_key((self._directory / f"{found['name']}.pem").read_bytes(), password=None)
        except OSError as error:
            raise SigningFailedError(
                "The credential's key cannot be read; put it into SIGNING_KEY_DIRECTORY under the name it is referred to by."
            ) from error
        except (TypeError, UnsupportedAlgorithm, ValueError) as error:
            raise SigningFailedError("The credential's key is no unencrypted PEM private key; replace it.") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise SigningFailedError("The credential's key is no Ed25519 key; replace it.")
        return key


class KeyDirectoryVerifier:
    """Checks signatures against public keys: `ed25519:` and 64 hex digits, or `file://name`, the PEM file `name.pub`."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    async def verify(self, public_material_ref: str | None, content: bytes, signature: Signature) -> SignatureVerdict:
        key = await asyncio.to_thread(self._key, public_material_ref or "")
        return SignatureVerdict.UNKNOWN_KEY if key is None else check_signature(key, content, signature)

    async def public_key(self, public_material_ref: str | None) -> PublicKey | None:
        """Return the key that a reference stands for, or None where it cannot be read."""
        key = await asyncio.to_thread(self._key, public_material_ref or "")
        return None if key is None else PublicKey(kid=key_id(key), public_material=f"ed25519:{key.public_bytes_raw().hex()}")

    def _key(self, public_material_ref: str) -> Ed25519PublicKey | None:
        if (inline := INLINE.fullmatch(public_material_ref)) is not None:
            return Ed25519PublicKey.from_public_bytes(bytes.fromhex(inline["key"]))
        if self._directory is None or (found := REFERENCE.fullmatch(public_material_ref)) is None:
            return None
        try:
            key = load_pem_public_key((self._directory / f"{found['name']}.pub").read_bytes())
        except (OSError, UnsupportedAlgorithm, ValueError):
            return None
        return key if isinstance(key, Ed25519PublicKey) else None


def key_id(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of a public key's raw bytes, by which peers know it."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def sign_content(key: Ed25519PrivateKey, content: bytes) -> Signature:
    """Return the detached signature of a key over these bytes."""
    return Signature(envelope_kind=ED25519_DETACHED, kid=key_id(key.public_key()), bytes_hex=key.sign(content).hex())


def check_signature(key: Ed25519PublicKey, content: bytes, signature: Signature) -> SignatureVerdict:
    """Return what checking a signature over these bytes against one key finds."""
    if signature.kid.lower() != key_id(key):
        return SignatureVerdict.WRONG_KEY
    if signature.envelope_kind != ED25519_DETACHED or HEX.fullmatch(signature.bytes_hex) is None:
        return SignatureVerdict.FORGED
    try:
        key.verify(bytes.fromhex(signature.bytes_hex), content)
    except InvalidSignature:
        return SignatureVerdict.FORGED
    return SignatureVerdict.VALID
