"""Publishing by files: an outbox that a transport of the site empties, and a mirror of the narrative logbook that people
read and a bridge of the site's choice picks up."""

import asyncio
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import structlog

from baton.application.ports import SendingFailedError
from baton.infrastructure.files import write_once

log = structlog.get_logger()

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

    async def published_artifact(self, receipt_id: UUID) -> bytes | None:
        return None if self._directory is None else await asyncio.to_thread(_read, self._directory, receipt_id)

    def _outbox(self) -> Path:
        if self._directory is None:
            raise SendingFailedError("This deployment publishes nothing; set PUBLICATION_OUTBOX to a directory for it.")
        return self._directory


def _exists(outbox: Path, receipt_id: UUID) -> bool:
    return any((place / f"{receipt_id}.json").exists() for place in (outbox, outbox / DELIVERED))


def _read(outbox: Path, receipt_id: UUID) -> bytes | None:
    for place in (outbox, outbox / DELIVERED, outbox):  # it may be moved between two looks
        with suppress(FileNotFoundError):
            return (place / f"{receipt_id}.json").read_bytes()
    return None


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

    async def mirror_decision(self, decision_id: UUID, narrative: str, target_logbook: str) -> bool:
        for pause in (0.0, *self._pauses):
            await asyncio.sleep(pause)
            try:
                async with asyncio.timeout(ATTEMPT_SECONDS):
                    await asyncio.to_thread(self._write, decision_id, narrative, target_logbook)
            except Exception as error:
                failure = type(error).__name__
                log.warning("mirroring_failed", decision_id=str(decision_id), logbook=target_logbook, error=failure)
            else:
                return True
        log.error("mirroring_given_up", decision_id=str(decision_id), logbook=target_logbook)
        return False

    def _write(self, decision_id: UUID, narrative: str, target_logbook: str) -> None:
        write_once(self._directory / mirror_directory_name(target_logbook) / f"{decision_id}.txt", narrative.encode())


def mirror_directory_name(logbook: str) -> str:
    """Return the name of a logbook's directory, which stays inside the mirror whatever the logbook is called."""
    name = quote(logbook, safe=" ")
    return f"%2E{name[1:]}" if name.startswith(".") else name
