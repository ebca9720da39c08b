"""Publishers: artifacts as files of an outbox that a transport of the site's choice empties, or in memory."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from uuid import UUID

from application.publishing import SendingFailedError

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
    """Appear in the outbox at once and for good: linked there when it is on the disk, and never over another."""
    outbox.mkdir(parents=True, exist_ok=True)
    if _is_there(outbox, receipt_id):
        return
    with NamedTemporaryFile(dir=outbox, prefix=".") as draft:
        os.fchmod(draft.fileno(), 0o640)
        draft.write(artifact)
        draft.flush()
        os.fsync(draft.fileno())
        with suppress(FileExistsError):
            os.link(draft.name, outbox / f"{receipt_id}.json")
    place = os.open(outbox, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)
