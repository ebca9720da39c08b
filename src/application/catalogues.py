"""Keeps catalogues outside up to date. The log is the outbox: every event is noted for each catalogue, and one
task at a time works through what is noted for a catalogue, until that has answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from baton.application.caller import Caller
from baton.application.commands import system_batch
from baton.application.long_work import TaskWork
from baton.application.ports import Catalogue, CatalogueRefusedError, CatalogueUnavailableError, EventRow, Session
from baton.application.unit_of_work import load_row, require_state
from baton.domain.data import catalogue as rules
from baton.domain.data.catalogue import CATALOGUES, PENDING, CatalogueEntry, CatalogueEntryStatus
from baton.domain.registry import REGISTRY
from baton.domain.shared.canonical import derived_uuid7
from baton.domain.shared.deployment import CatalogueName
from baton.domain.shared.tasks import Task, TaskStatus, begin_task, with_answer
from baton.domain.shared.text import shorten
from baton.domain.shared.writes import Drop, Put


@dataclass
class CatalogueWork(TaskWork):
    """Long work: tells one catalogue of every dataset whose entry is Pending there, one after the other."""

    workflow = CATALOGUES
    reaction = "catalogues"
    wakes_on = rules.SHOWN_EVENTS
    command = rules.RetryCatalogueEntry
    readable_with = rules.ListCatalogueEntries.__name__
    catalogues: Sequence[Catalogue]

    @property
    def enabled(self) -> bool:
        return bool(self.catalogues)

    async def concerned_ids(self, event: EventRow) -> Sequence[UUID]:
        stream = REGISTRY.aggregates[event.stream_type].state
        dataset_id = rules.shown_dataset_id(await require_state(self.commands.store, stream, event.stream_id))
        return [await self._request(dataset_id, catalogue.name, event) for catalogue in self.catalogues]

    async def _request(self, dataset_id: UUID, catalogue: CatalogueName, event: EventRow) -> UUID:
        """Note that a catalogue is to show a dataset again; return the task that sees to it, which may be under way."""
        async with self.commands.store.session(CATALOGUES) as session:
            entry = await find_entry(session, rules.entry_id_of(dataset_id, catalogue))
            running = await session.records(Task, {"kind": CATALOGUES, "status": self.running})
            rows = [Put(rules.with_request(entry, dataset_id, catalogue, self.commands.clock()))]
            if (work_id := rules.running_pass(running, catalogue)) is None:
                milliseconds = int(event.recorded_at.timestamp() * 1000)
                work_id = derived_uuid7(milliseconds, str(event.event_id), catalogue)
                call = Caller.system(event.correlation_id).call(self.commands.clock(), work_id)
                begun = begin_task(CATALOGUES, work_id, {"catalogue": catalogue.value}, {"catalogue": catalogue}, call)
                rows += [row for row in begun if isinstance(row, Put)]
            await self._write(session, *rows)
        return work_id

    async def carry_out(self, task: Task) -> Mapping[str, Any]:
        catalogue = next((one for one in self.catalogues if one.name == task.request["catalogue"]), None)
        if catalogue is None:
            detail = f"{task.request['catalogue']} is not configured any more; what is Pending there waits until it is."
            raise rules.CatalogueNotConfiguredError(detail, reason="not_configured")
        counts = {"entered_count": 0, "refused_count": 0, **task.notes}
        while (answer := await self._finish(task, catalogue.name, counts)) is None:
            failure: CatalogueUnavailableError | None = None
            for entry in await self._pending_entries(catalogue.name):
                try:
                    if (status := await self._enter(catalogue, entry.entry_id)) is not PENDING:
                        counts[f"{status.lower()}_count"] += 1
                        await self.note(task.work_id, done=sum(counts.values()), notes=counts)
                except CatalogueUnavailableError as error:
                    if error.reason != "failed":
                        raise
                    failure = error
            if failure is not None:
                raise failure
        return answer

    async def _pending_entries(self, name: CatalogueName) -> Sequence[CatalogueEntry]:
        async with self.commands.store.session() as session:
            return await session.records(CatalogueEntry, {"catalogue": name, "status": PENDING})

    async def _finish(self, task: Task, name: CatalogueName, counts: Mapping[str, int]) -> Mapping[str, Any] | None:
        """End the task where nothing is Pending, under the lock that requests are noted under, and return its answer."""
        async with self.commands.store.session(CATALOGUES) as session:
            if await session.records(CatalogueEntry, {"catalogue": name, "status": PENDING}):
                return None
            (current,) = await session.records(Task, {"work_id": task.work_id})
            answer = {"catalogue": name.value, **counts}
            if current.status is TaskStatus.RUNNING:
                await self._write(session, Put(with_answer(current, answer)))
            return answer

    async def _enter(self, catalogue: Catalogue, entry_id: UUID) -> CatalogueEntryStatus:
        """Enter one dataset into a catalogue and note the result. Another attempt that is still at it comes first, so that
        nothing is entered twice or in the wrong order."""
        async with self.commands.store.session(f"{CATALOGUES}:{catalogue.name}"):
            entry = await load_row(self.commands.store, CatalogueEntry, entry_id=entry_id)
            if entry is None or entry.status is not PENDING:
                return PENDING
            shown = await self.commands.read(rules.catalogued_dataset(entry.dataset_id), Caller.system(entry_id))
            try:
                if not await catalogue.enter(shown):
                    return await self._settle(entry, None)
            except CatalogueRefusedError as refused:
                return await self._settle(entry, rules.REFUSED, str(refused))
            except CatalogueUnavailableError as unavailable:
                await self._settle(entry, PENDING, unavailable.detail)
                raise
            return await self._settle(entry, rules.ENTERED)

    async def _settle(
        self, entry: CatalogueEntry, status: CatalogueEntryStatus | None, error: str | None = None
    ) -> CatalogueEntryStatus:
        """Note the result of an attempt, unless the entry was asked for again meanwhile; None drops an entry of nothing."""
        async with self.commands.store.session(CATALOGUES) as session:
            current = await find_entry(session, entry.entry_id)
            assert current is not None, "only its catalogue's task drops an entry"
            if current.asked != entry.asked:
                status = PENDING
            if status is None:
                await self._write(session, Drop(CatalogueEntry, {"entry_id": entry.entry_id}))
                return rules.ENTERED
            last_error = None if error is None else shorten(error, rules.MAX_ERROR_LENGTH)
            settled = replace(current, status=status, attempts=current.attempts + 1, last_error=last_error)
            if status is rules.ENTERED:
                settled = replace(settled, entered_at=self.commands.clock())
            await self._write(session, Put(settled))
            return status

    async def _write(self, session: Session, *rows: Put | Drop) -> None:
        await session.append(system_batch(self.command_name, self.commands.clock, self.commands.new_id, *rows))


async def find_entry(session: Session, entry_id: UUID) -> CatalogueEntry | None:
    """Return the entry under an id; None where there is none."""
    rows = await session.records(CatalogueEntry, {"entry_id": entry_id})
    return rows[0] if rows else None
