"""The ports of publishing: who signs, and who sends what is signed to a peer."""

from typing import Protocol
from uuid import UUID

from baton.domain.calibration.publication import Signature


class SigningFailedError(Exception):
    """Nothing was signed. The message is one sentence for whoever asked; it never names the secret reference."""


class SendingFailedError(Exception):
    """Nothing was sent, for certain; any other failure leaves open whether it was, and is tried again."""


class Signer(Protocol):
    """Signs with keys that it alone can reach."""

    async def sign(self, secret_ref: str, content: bytes) -> Signature:
        """A signature over these bytes by the key that the reference points to; raises SigningFailedError."""
        ...


class Publisher(Protocol):
    """Hands artifacts to peers, each receipt once."""

    async def sent(self, receipt_id: UUID) -> bool:
        """Whether the artifact of this receipt was sent already."""
        ...

    async def send(self, receipt_id: UUID, artifact: bytes) -> None:
        """Send an artifact; a receipt that was sent already is recognised. Raises SendingFailedError."""
        ...
