"""Publishers: artifacts as files of an outbox that a transport of the site's choice empties, or in memory."""

import asyncio
from pathlib import Path
from uuid import UUID

from baton.application.publishing import SendingFailedError
from baton.infrastructure.files import write_once

DELIVERED = "delivered"
"""Where the transport moves what it has taken, so that a receipt stays known."""


class OutboxPublisher:
    """Writes each artifact once, whole or not at all, as `<receipt_id>.json`."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    async def sent(self, receipt_id: UUID) -> bool:
        outbox = self._outbox()
        return await asyncio.to_thread(_is_there, outbox, receipt_id)

    async def send(self, receipt_id: UUID, artifact: bytes) -> None:
        outbox = self._outbox()
        try:
            await asyncio.to_thread(_write, outbox, receipt_id, artifact)
        except OSError as error:
            if await self.sent(receipt_id):
                raise
            raise SendingFailedError(
                f"The outbox does not take the artifact ({error.strerror}); see that PUBLICATION_OUTBOX can be written."
            ) from error

    def _outbox(self) -> Path:
        if self._directory is None:
            raise SendingFailedError("This deployment publishes nothing; set PUBLICATION_OUTBOX to a directory for it.")
        return self._directory


class MemoryPublisher:
    """Keeps what was sent."""

    def __init__(self) -> None:
        self.artifacts: dict[UUID, bytes] = {}

    async def sent(self, receipt_id: UUID) -> bool:
        return receipt_id in self.artifacts

    async def send(self, receipt_id: UUID, artifact: bytes) -> None:
        self.artifacts.setdefault(receipt_id, artifact)


def _is_there(outbox: Path, receipt_id: UUID) -> bool:
    return any((place / f"{receipt_id}.json").exists() for place in (outbox, outbox / DELIVERED))


def _write(outbox: Path, receipt_id: UUID, artifact: bytes) -> None:
    if not _is_there(outbox, receipt_id):
        write_once(outbox / f"{receipt_id}.json", artifact)
