"""What follows an advice: the next question of a search, or its end, as an adviser waits for it."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from baton.application.caller import Caller
from baton.application.commands import Commands
from baton.application.ports import Job, WorkItem, WorkProgress
from baton.application.unit_of_work import load_row
from baton.domain.conduct.progress import OpenedConduct
from baton.domain.conduct.steered_conduct import load_followed


class AdviceWork:
    """Long work that the conduct itself carries out; its id is that of the conduct, under which it is no item of its own."""

    workflow = "advice"

    def __init__(self, commands: Commands) -> None:
        self.commands = commands

    async def job(self, work_id: UUID) -> Job | None:
        return None

    async def answer(self, work_id: UUID) -> Mapping[str, Any] | None:
        """Return what the conduct asks next, or how it ended."""
        opened = await load_row(self.commands.store, OpenedConduct, conduct_id=work_id)
        assert opened is not None, "what is advised is conducted"
        reads = load_followed(opened.procedure_id, work_id, self.commands.clock())
        followed = await self.commands.read(reads, Caller.system(opened.correlation_id))
        return None if followed is None else followed.model_dump(mode="json")

    async def unfinished_ids(self) -> Sequence[UUID]:
        return ()

    async def item(self, work_id: UUID) -> WorkItem | None:
        return None

    async def progress(self, work_id: UUID) -> WorkProgress | None:
        return None
