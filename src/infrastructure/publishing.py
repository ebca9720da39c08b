"""Publishing by files: a signer with keys in files, an outbox that a transport of the site empties, and a mirror of the
narrative logbook that people read and a bridge of the site's choice picks up."""

import asyncio
import hashlib
import re
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import structlog
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from baton.application.ports import SendingFailedError, SigningFailedError
from baton.domain.calibration.publication import Signature
from baton.infrastructure.files import write_once

log = structlog.get_logger()

REFERENCE = re.compile(r"file://(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{0,99})")


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


def key_id(key: Ed25519PrivateKey) -> str:
    """Return the SHA-256 of a key's public half, by which peers know it."""
    return hashlib.sha256(key.public_key().public_bytes_raw()).hexdigest()


def sign_content(key: Ed25519PrivateKey, content: bytes) -> Signature:
    return Signature(envelope_kind="ed25519-detached", kid=key_id(key), bytes_hex=key.sign(content).hex())


DELIVERED = "delivered"  # directory to which the transport moves what it has sent, so that a receipt stays known


class OutboxPublisher:
    """Writes each artifact once, whole or not at all, as `<receipt_id>.json`."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    async def is_sent(self, receipt_id: UUID) -> bool:
        return await asyncio.to_thread(_exists, self._outbox(), receipt_id)

    async def send(self, receipt_id: UUID, artifact: bytes) -> None:
        outbox = self._outbox()
        try:
            await asyncio.to_thread(_write, outbox, receipt_id, artifact)
        except OSError as error:
            if await self.is_sent(receipt_id):
                raise
            raise SendingFailedError(
                f"The outbox does not take the artifact ({error.strerror}); see that PUBLICATION_OUTBOX can be written."
            ) from error

    def _outbox(self) -> Path:
        if self._directory is None:
            raise SendingFailedError("This deployment publishes nothing; set PUBLICATION_OUTBOX to a directory for it.")
        return self._directory


def _exists(outbox: Path, receipt_id: UUID) -> bool:
    return any((place / f"{receipt_id}.json").exists() for place in (outbox, outbox / DELIVERED))


def _write(outbox: Path, receipt_id: UUID, artifact: bytes) -> None:
    if not _exists(outbox, receipt_id):
        write_once(outbox / f"{receipt_id}.json", artifact)


PAUSES = (0.2, 1.0, 5.0)  # seconds before each further attempt: a share may be being mounted
ATTEMPT_SECONDS = 10.0  # time after which an attempt counts as failed, whatever the file system still does


class FileMirror:
    """Writes one text file for each decision, once, in a directory of its logbook; the names sort by time."""

    def __init__(self, directory: Path, pauses: tuple[float, ...] = PAUSES) -> None:
        self._directory = directory
        self._pauses = pauses

    async def mirror_decision(self, decision_id: UUID, narrative: str, target_logbook: str) -> None:
        for pause in (0.0, *self._pauses):
            await asyncio.sleep(pause)
            try:
                async with asyncio.timeout(ATTEMPT_SECONDS):
                    await asyncio.to_thread(self._write, decision_id, narrative, target_logbook)
            except Exception as error:
                failure = type(error).__name__
                log.warning("mirroring_failed", decision_id=str(decision_id), logbook=target_logbook, error=failure)
            else:
                return
        log.error("mirroring_given_up", decision_id=str(decision_id), logbook=target_logbook)

    def _write(self, decision_id: UUID, narrative: str, target_logbook: str) -> None:
        write_once(self._directory / mirror_directory_name(target_logbook) / f"{decision_id}.txt", narrative.encode())


def mirror_directory_name(logbook: str) -> str:
    """Return the name of a logbook's directory, which stays inside the mirror whatever the logbook is called."""
    name = quote(logbook, safe=" ")
    return f"%2E{name[1:]}" if name.startswith(".") else name
