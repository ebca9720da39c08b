"""Publisher, signer and logbook mirror that keep everything in memory."""

from collections.abc import Mapping
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from baton.application.ports import SigningFailedError
from baton.domain.shared.signatures import Signature
from baton.infrastructure.signing import sign_content


class MemoryPublisher:
    """Keeps what was sent."""

    def __init__(self) -> None:
        self.artifacts: dict[UUID, bytes] = {}

    async def is_sent(self, receipt_id: UUID) -> bool:
        return receipt_id in self.artifacts

    async def send(self, receipt_id: UUID, artifact: bytes) -> None:
        self.artifacts.setdefault(receipt_id, artifact)

    async def published_artifact(self, receipt_id: UUID) -> bytes | None:
        return self.artifacts.get(receipt_id)


class MemorySigner:
    """Signs with the keys it was given, each under its whole reference."""

    def __init__(self, keys: Mapping[str, Ed25519PrivateKey]) -> None:
        self._keys = keys

    async def sign(self, secret_ref: str, content: bytes) -> Signature:
        if (key := self._keys.get(secret_ref)) is None:
            raise SigningFailedError("The credential's key is not here; give it to the signer.")
        return sign_content(key, content)


class MemoryMirror:
    """Keeps what was mirrored, by logbook and decision."""

    def __init__(self) -> None:
        self.logbooks: dict[str, dict[UUID, str]] = {}

    async def mirror_decision(self, decision_id: UUID, narrative: str, target_logbook: str) -> None:
        self.logbooks.setdefault(target_logbook, {}).setdefault(decision_id, narrative)
