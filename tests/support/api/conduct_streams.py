"""Readers of a conduct's stream, as they come and go on a real socket."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tests.support.api.event_streams import OpenStream
from tests.support.service import Api

LAST = ("held", "halted", "ended")


@dataclass(frozen=True)
class ConductFrame:
    """One frame of a conduct's stream."""

    id: str | None
    event: str
    data: dict[str, Any]

    @property
    def ordinal(self) -> int:
        assert self.id is not None
        return int(self.id.partition(":")[2])

    @property
    def brief(self) -> str:
        """What it says, in a word or two: for comparisons that a person can read."""
        said = self.data
        match self.event:
            case "step":
                loop = f"{said['iteration_index']}." if said["iteration_index"] else ""
                closing = "closing " if said["closing"] else ""
                return f"{closing}{loop}{said['step_index']} {said['state']}"
            case "iteration":
                return f"pass {said['iteration_index']} {said['state']}"
        return self.event


class ConductStreamReader(OpenStream):
    """A reader of a conduct's stream."""

    async def next_frame(self) -> ConductFrame:
        """The next frame."""
        fields = await self.fields()
        return ConductFrame(fields.get("id"), fields["event"], json.loads(fields["data"]))

    async def until(self, brief: str) -> list[ConductFrame]:
        """The frames up to the one that says this."""
        found = [await self.next_frame()]
        while found[-1].brief != brief:
            found.append(await self.next_frame())
        return found

    async def rest(self) -> list[ConductFrame]:
        """The frames up to the end of the stream, which ends by itself."""
        found = []
        while True:
            try:
                found.append(await self.next_frame())
            except StopAsyncIteration:
                return found


@asynccontextmanager
async def open_conduct_stream(
    api: Api, procedure_id: UUID, last_event_id: str | None = None
) -> AsyncIterator[ConductStreamReader]:
    """A reader of the latest conduct of a procedure, until the block ends."""
    resumed = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    path = f"/procedures/{procedure_id}/conduct/stream"
    async with api.client.stream("GET", path, headers={**api.headers, **resumed}) as response:
        assert response.status_code == 200, (await response.aread()).decode()
        yield ConductStreamReader(response, response.aiter_lines())


async def read_conduct_stream(api: Api, procedure_id: UUID, last_event_id: str | None = None) -> list[ConductFrame]:
    """Everything that a reader reads until the stream closes."""
    async with open_conduct_stream(api, procedure_id, last_event_id) as reader:
        return await reader.rest()


def briefs(frames: list[ConductFrame]) -> list[str]:
    """What frames say, without the snapshots and points among them."""
    return [one.brief for one in frames if one.event not in ("snapshot", "point")]
