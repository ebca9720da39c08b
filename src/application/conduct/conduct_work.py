"""Conducts as long work: how the engine is told of one, where its answer is read, and what is said of those given up."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from baton.application.commands import Commands, execute_with_retry
from baton.application.conduct.reconciliation import LiveConduct
from baton.application.ports import Caller, Job, Progress, Store, WorkItem
from baton.application.record_reader import load_events
from baton.domain.kernel import Command, Event, State
from baton.domain.operation.conduct.progress import ConductPhase, Submission
from baton.domain.shared.writes import Record

LIVE = tuple(phase.value for phase in ConductPhase if phase is not ConductPhase.ENDED)


class ConductKind(Protocol):
    """What is conducted, where that is on record, and in which words it is told."""

    workflow: str
    state: type[State]
    opened: type[Submission]
    progress: type[Any]
    """One row for each aggregate: where its latest conduct stands."""
    ended: type[Event]
    """The event that has the result of a conduct."""

    async def order(self, opened: Any) -> Any:
        """What the workflow is told."""
        ...

    async def attributes(self, opened: Any) -> Mapping[str, str]:
        """What people find a conduct by in the engine, besides what is said of all."""
        ...

    async def told(self, opened: Any, progress: Any) -> Progress:
        """How far a conduct is, in words for whoever waits for it."""
        ...

    def expired(self, opened: Any) -> Command:
        """The end of a conduct that nobody began in time."""
        ...

    def lost(self, opened: Any) -> Command:
        """The end of a conduct that nobody works on any more; what it was of stays as it is, and a person decides."""
        ...


class StallRecord(Protocol):
    """Where it is kept that the engine fails with a conduct."""

    async def stalled(self, progress: type[Record], conduct_id: UUID) -> None:
        """Say so of a conduct that is live; of any other nothing is said."""
        ...


class ConductWork:
    """Long work: conducts of one kind."""

    def __init__(self, kind: ConductKind, store: Store, commands: Commands, stalls: StallRecord, facility_code: str) -> None:
        self.workflow = kind.workflow
        self._kind = kind
        self._store = store
        self._commands = commands
        self._stalls = stalls
        self._facility_code = facility_code

    async def job(self, work_id: UUID) -> Job | None:
        """Nothing is to be told of a conduct that was taken up, or that is not the live one any more."""
        opened, progress = await self._standing(work_id)
        if opened is None or progress is None or progress.phase != ConductPhase.OPENED.value:
            return None
        about, subject_id = self._kind.state.aggregate.label, self._subject_id(opened)
        return Job(
            self.workflow,
            workflow_id(self.workflow, subject_id),
            await self._kind.order(opened),
            attributes={
                "BatonFacility": self._facility_code,
                "BatonCommand": opened.command_name,
                "BatonPrincipal": str(opened.principal_id),
                "BatonState": ConductPhase.OPENED.value,
                **await self._kind.attributes(opened),
            },
            summary=f"{opened.command_name} of {about} {subject_id}",
            succeeds=True,
        )

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        opened, progress = await self._standing(work_id)
        if opened is None or progress is not None:
            return None
        ends: list[Any] = await load_events(self._store, self._subject_id(opened), self._kind.ended)
        return next((end.result.model_dump(mode="json") for end in ends if end.conduct_id == work_id), None)

    async def unfinished(self) -> Sequence[UUID]:
        """The conducts that nobody has taken up."""
        async with self._store.session() as session:
            rows: Any = await session.records(self._kind.progress, {"phase": ConductPhase.OPENED.value})
        return [row.conduct_id for row in rows]

    async def item(self, work_id: UUID) -> WorkItem | None:
        opened, _ = await self._standing(work_id)
        if opened is None:
            return None
        aggregate = self._kind.state.aggregate
        ids = {aggregate.id_name: str(self._subject_id(opened)), "conduct_id": str(work_id), "work_id": str(work_id)}
        return WorkItem(opened.principal_id, f"Get{aggregate.name}", ids, opened.correlation_id)

    async def progress(self, work_id: UUID) -> Progress | None:
        opened, progress = await self._standing(work_id)
        return None if opened is None or progress is None else await self._kind.told(opened, progress)

    async def live(self) -> Sequence[LiveConduct]:
        """Every conduct that has not ended."""
        async with self._store.session() as session:
            rows: Any = await session.records(self._kind.progress, {"phase": LIVE})
        return [
            LiveConduct(
                row.conduct_id,
                workflow_id(self.workflow, self._subject_id(row)),
                row.phase != ConductPhase.OPENED.value,
                row.started_at,
            )
            for row in rows
        ]

    async def is_live(self, conduct_id: UUID) -> bool:
        return (await self._standing(conduct_id))[1] is not None

    async def expire(self, conduct_id: UUID) -> None:
        """Give up a conduct that nobody began in time."""
        opened = await self._opened(conduct_id)
        await self.end(opened, self._kind.expired(opened))

    async def lose(self, conduct_id: UUID) -> None:
        """Say that nobody works on a conduct any more."""
        opened = await self._opened(conduct_id)
        await self.end(opened, self._kind.lost(opened))

    async def stall(self, conduct_id: UUID) -> None:
        """Say that the engine cannot make progress with a conduct."""
        await self._stalls.stalled(self._kind.progress, conduct_id)

    async def end(self, opened: Submission, command: Command) -> None:
        """Put the end of a conduct on the record, as the service itself."""
        caller = Caller.system(opened.correlation_id)
        await execute_with_retry(self._commands, command, caller, target_id=self._subject_id(opened))

    async def _opened(self, conduct_id: UUID) -> Submission:
        opened: Submission | None = (await self._standing(conduct_id))[0]
        assert opened is not None, "what ends was opened"
        return opened

    async def _standing(self, conduct_id: UUID) -> tuple[Any, Any]:
        """The conduct as it was opened, and where it stands while it is live; None each where that is not so."""
        async with self._store.session() as session:
            found: Any = await session.records(self._kind.opened, {"conduct_id": conduct_id})
            if not found:
                return None, None
            key = {self._kind.state.aggregate.id_name: self._subject_id(found[0])}
            rows: Any = await session.records(self._kind.progress, key)
        live = [row for row in rows if row.conduct_id == conduct_id and row.phase != ConductPhase.ENDED.value]
        return found[0], live[0] if live else None

    def _subject_id(self, row: Any) -> UUID:
        id: UUID = getattr(row, self._kind.state.aggregate.id_name)
        return id


def workflow_id(workflow: str, subject_id: UUID) -> str:
    """The id under which the engine knows the conduct of a procedure or of a run."""
    return f"{workflow}:{subject_id}"


def submitter(opened: Submission) -> Caller:
    """Whoever asked for a conduct: every command it gives is authorized as theirs."""
    return Caller(
        principal_id=opened.principal_id,
        surface_id=opened.surface_id,
        conduit_id=opened.conduit_id,
        correlation_id=opened.correlation_id,
        causation_id=opened.conduct_id,
    )
