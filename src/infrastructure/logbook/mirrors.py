"""Mirror of the narrative logbook as files that people read and a bridge of the site's choice picks up."""

import asyncio
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import structlog

from baton.infrastructure.files import write_once

log = structlog.get_logger()

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
