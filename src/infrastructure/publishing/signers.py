"""Ed25519 signers: keys in files of one directory, or in memory.

A key leaves this module only as signatures, and a secret reference only as the name of a file in that directory.
"""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from baton.application.publishing import SigningFailedError
from baton.domain.calibration.publication import Signature

ENVELOPE_KIND = "ed25519-detached"
REFERENCE = re.compile(r"file://(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{0,99})")


class KeyDirectorySigner:
    """Signs with unencrypted PEM keys: `file://name` is the file `name.pem` of the directory."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    async def sign(self, secret_ref: str, content: bytes) -> Signature:
        return _signature(await asyncio.to_thread(self._key, secret_ref), content)

    def _key(self, secret_ref: str) -> Ed25519PrivateKey:
        if self._directory is None:
            raise SigningFailedError("This deployment has no signing keys; set SIGNING_KEY_DIRECTORY to where they are.")
        found = REFERENCE.fullmatch(secret_ref)
        if found is None:
            raise SigningFailedError(
                "The credential's secret reference names no key file; rotate it to file:// and the name of a key."
            )
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


class MemorySigner:
    """Signs with the keys it was given, each under its whole reference."""

    def __init__(self, keys: Mapping[str, Ed25519PrivateKey]) -> None:
        self._keys = keys

    async def sign(self, secret_ref: str, content: bytes) -> Signature:
        if (key := self._keys.get(secret_ref)) is None:
            raise SigningFailedError("The credential's key is not here; give it to the signer.")
        return _signature(key, content)


def key_id(key: Ed25519PrivateKey) -> str:
    """What a peer knows the key by: the SHA-256 of its public half."""
    return hashlib.sha256(key.public_key().public_bytes_raw()).hexdigest()


def _signature(key: Ed25519PrivateKey, content: bytes) -> Signature:
    return Signature(envelope_kind=ENVELOPE_KIND, kid=key_id(key), bytes_hex=key.sign(content).hex())
