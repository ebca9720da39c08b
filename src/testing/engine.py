"""A workflow engine in memory: it keeps what it was told to run, and runs nothing; whoever has it plays the workflows."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from baton.application.ports import EngineUnavailableError, EngineView, Job
from baton.domain.agent.reactions import OpenItem


class MemoryEngine:
    """Jobs by id. One that is open stays so until it is ended here; an engine that is not `reachable` does nothing."""

    def __init__(self) -> None:
        self.started: list[Job] = []
        """Every job that was begun, those that have ended too."""
        self.reachable = True
        self._open: dict[str, EngineView] = {}
        self._begun: dict[str, datetime] = {}

    async def start(self, job: Job) -> bool:
        self._reach()
        if job.id in self._open or (job.once and any(job.id == known.id for known in self.started)):
            return False
        self._open[job.id] = EngineView.OPEN
        self._begun[job.id] = datetime.now(UTC)
        self.started.append(job)
        return True

    async def look(self, id: str) -> EngineView:
        self._reach()
        return self._open.get(id, EngineView.ABSENT)

    async def terminate(self, id: str, reason: str) -> None:
        self._reach()
        self.end(id)

    async def open_items(self, workflows: Sequence[str]) -> Sequence[OpenItem]:
        self._reach()
        return [
            OpenItem(
                event_id=UUID(job.memo["event_id"]),
                workflow_id=job.id,
                started_at=self._begun[job.id],
                attempt=1,
                last_error=None,
            )
            for job in self.started
            if job.workflow in workflows and job.id in self._open and "event_id" in job.memo
        ]

    def end(self, id: str) -> None:
        """Let a workflow come to its end, if it is open."""
        self._open.pop(id, None)

    def stall(self, id: str) -> None:
        """Let an open workflow fail to go on, again and again."""
        self._open[id] = EngineView.STALLED

    def _reach(self) -> None:
        if not self.reachable:
            raise EngineUnavailableError("The workflow engine cannot be reached; the work is recorded and will start.")
