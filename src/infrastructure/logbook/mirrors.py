"""Mirrors of the narrative logbook: files that people read and a bridge of the site's choice picks up, or in memory."""

import asyncio
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import structlog

from baton.infrastructure.files import write_once

log = structlog.get_logger()

PAUSES = (0.2, 1.0, 5.0)
"""Seconds to wait before each further attempt, for what passes by itself: a share that is being mounted, a full disk."""
TIME_LIMIT = 10.0
"""Seconds after which an attempt counts as failed, whatever the file system still does about it."""


class FileMirror:
    """Keeps a directory for each logbook, and in it one text file for each decision, which is never written again.

    Files are named after their decisions, whose ids begin with their time: by name they are in order.
    """

    def __init__(self, directory: Path, pauses: tuple[float, ...] = PAUSES) -> None:
        self._directory = directory
        self._pauses = pauses

    async def mirror_decision(self, decision_id: UUID, narrative: str, target_logbook: str) -> None:
        for pause in (0.0, *self._pauses):
            await asyncio.sleep(pause)
            try:
                async with asyncio.timeout(TIME_LIMIT):
                    await asyncio.to_thread(self._write, decision_id, narrative, target_logbook)
            except Exception as error:
                failure = type(error).__name__
                log.warning("mirroring_failed", decision_id=str(decision_id), logbook=target_logbook, error=failure)
            else:
                return
        log.error("mirroring_given_up", decision_id=str(decision_id), logbook=target_logbook)

    def _write(self, decision_id: UUID, narrative: str, target_logbook: str) -> None:
        write_once(self._directory / directory_name(target_logbook) / f"{decision_id}.txt", narrative.encode())


class MemoryMirror:
    """Keeps what was mirrored, by logbook and decision."""

    def __init__(self) -> None:
        self.logbooks: dict[str, dict[UUID, str]] = {}

    async def mirror_decision(self, decision_id: UUID, narrative: str, target_logbook: str) -> None:
        self.logbooks.setdefault(target_logbook, {}).setdefault(decision_id, narrative)


def directory_name(logbook: str) -> str:
    """The directory of a logbook, which stays inside the mirror whatever the logbook is called."""
    name = quote(logbook, safe=" ")
    return f"%2E{name[1:]}" if name.startswith(".") else name
